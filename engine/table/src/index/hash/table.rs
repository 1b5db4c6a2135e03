//! One hash table: from a key's hash to the segments that have the key and the position in each where
//! the key's rows begin. Source: Prout et al., *Cloud-Native Transactions and Analytics in
//! SingleStore*, SIGMOD 2022, section 4.1.
//!
//! A table covers some segments of a partition: it has an entry for each of their distinct keys
//! without nulls, so a key it does not know is not in them. Tables of one set of keys are levels of an
//! LSM tree: each segment gets a table of its own, and tables of similar size are merged. A segment
//! that is dropped leaves its entries behind; a reader skips them, and a table is rewritten when half
//! of its segments are gone. Only 40 bits of each hash are stored, and no values: a reader compares
//! the key at the entry's place.
//!
//! A table is made of files of the segment format with two columns, both sorted by hash, so a look-up
//! is a search that begins where the even spread of hashes puts it, and zone maps, encodings,
//! checksums and the block cache are those of any segment. The log names the files. A table knows
//! nothing of snapshots and deletions.

use crate::layout::columns::{HASH_COLUMN, PLACE_COLUMN};
use crate::record::{KeySet, NewTable};
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::{DataType, Error, Result, Value, invariant};
use std::sync::Arc;

/// Position of the column of hashes.
pub(crate) const HASH: usize = 0;
/// Position of the column of places.
pub(crate) const PLACE: usize = 1;
/// Bits of a position inside a segment.
pub(crate) const POSITION_BITS: u32 = nacre_types::limits::MAX_SEGMENT_ROWS.ilog2();
/// Bits of a hash that are not stored.
pub(crate) const LEFT_OUT: u32 = 24;

/// One immutable hash table.
pub(crate) struct HashTable {
    keys: KeySet,
    /// At least one, in the order of their hashes.
    files: Vec<Arc<Segment>>,
    /// The greatest hash of each file.
    lasts: Vec<i64>,
    /// The segments it covers, by the number they have in it. Some may be gone.
    segments: Vec<u64>,
}

/// The part of a hash that is stored.
pub(crate) fn stored(hash: u64) -> i64 {
    (hash >> LEFT_OUT) as i64
}

/// A segment's number in a table, and a position in the segment. The inverse of [`pack`]; a damaged
/// place has a number that no table has.
pub(crate) fn unpack(place: i64) -> (usize, u32) {
    (
        usize::try_from(place >> POSITION_BITS).unwrap_or(usize::MAX),
        (place & ((1 << POSITION_BITS) - 1)) as u32,
    )
}

/// The stored form of a segment's number in a table and a position in the segment.
pub(crate) fn pack(segment: usize, position: u32) -> i64 {
    let place = (segment as i64) << POSITION_BITS | i64::from(position);
    debug_assert!(unpack(place) == (segment, position), "place {place} does not unpack");
    place
}

/// Starts a file.
pub(crate) fn file_builder() -> SegmentBuilder {
    let column = |id| ColumnSpec { id, data_type: DataType::Int64, nullable: false };
    SegmentBuilder::new(vec![column(HASH_COLUMN), column(PLACE_COLUMN)])
}

impl HashTable {
    /// A table of these files. `corrupt` if they are not files of a hash table.
    pub fn new(keys: KeySet, files: Vec<Arc<Segment>>, segments: Vec<u64>) -> Result<HashTable> {
        invariant!(!files.is_empty(), "a hash table without files");
        let mut lasts = Vec::with_capacity(files.len());
        for file in &files {
            let ids: Vec<_> = file.columns().iter().map(|c| (c.id, c.data_type)).collect();
            if ids != [(HASH_COLUMN, DataType::Int64), (PLACE_COLUMN, DataType::Int64)] {
                return Err(Error::corrupt(format!("{}: this is not a hash table", file.name())));
            }
            // A file without rows has no hashes.
            lasts.push(if let Value::Int(last) = file.columns()[HASH].max {
                last
            } else {
                i64::MIN
            });
        }
        Ok(HashTable { keys, files, lasts, segments })
    }

    /// The keys it covers.
    pub fn keys(&self) -> KeySet {
        self.keys
    }

    /// Its files, at least one, in the order of their hashes.
    pub fn files(&self) -> &[Arc<Segment>] {
        &self.files
    }

    /// The segments it covers, by the number they have in it. Some may be gone.
    pub fn segments(&self) -> &[u64] {
        &self.segments
    }

    /// Its identity: the number of its first file.
    pub fn id(&self) -> u64 {
        self.files[0].id()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.rows()).sum()
    }

    /// How the log names it.
    pub fn as_logged(&self) -> NewTable {
        let files = self.files.iter().map(|file| file.id()).collect();
        NewTable { keys: self.keys, files, segments: self.segments.clone() }
    }

    /// Visits the entries of a hash: a segment's number and the position in it.
    pub fn find(&self, hash: u64, mut visit: impl FnMut(usize, u32)) -> Result<()> {
        let wanted = Value::Int(stored(hash));
        let first = self.lasts.partition_point(|last| *last < stored(hash));
        for file in &self.files[first..] {
            let Some(mut row) = file.find_even(HASH, stored(hash))? else { return Ok(()) };
            loop {
                let Value::Int(place) = file.get(PLACE, row)? else {
                    return Err(bad_entry(file, row));
                };
                let (segment, position) = unpack(place);
                if segment >= self.segments.len() {
                    return Err(bad_entry(file, row));
                }
                visit(segment, position);
                row += 1;
                if row == file.rows() {
                    // Entries of one hash may continue in the next file.
                    break;
                }
                if file.get(HASH, row)? != wanted {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// The error for an entry that no table can have.
pub(crate) fn bad_entry(file: &Segment, row: usize) -> Error {
    Error::corrupt(format!(
        "{}: entry {row} names a segment that the table does not cover",
        file.name()
    ))
}
