//! The global half of an index: immutable hash tables from a key's hash to the segments that have the key and the
//! place in each where its rows begin (paper, 4.1).
//!
//! A table covers some segments of a partition: it has an entry for each of their distinct keys without nulls, so what
//! it does not know is not in them. Tables of one set of keys are levels of an LSM tree: each segment gets one of its
//! own ([`build`]), and tables of like size are merged. A segment that goes leaves its entries behind; whoever meets one
//! passes it over, and a table is rewritten when half of its segments are gone. Only 40 bits of each hash are stored,
//! never values: whoever finds an entry compares the key at its place.
//!
//! A table is made of files of the segment format with two columns, both sorted by hash, so that looking is a search
//! that begins where the even spread of hashes puts it, and zone maps, encodings, checksums and the block cache are
//! those of any segment. The log names the files. A table says nothing about snapshots and deletions.

use crate::record::NewTable;
use nacre_segment::{ColumnSpec, Segment, SegmentBuilder};
use nacre_types::{DataType, Error, IndexId, Result, Value};
use std::sync::Arc;

/// Column of hashes, ascending.
const HASH_COLUMN: u32 = u32::MAX - 2;
/// Column of places: the segment's number among those the table covers, and the position in it.
const PLACE_COLUMN: u32 = u32::MAX - 3;
/// Positions of the columns.
pub(crate) const HASH: usize = 0;
pub(crate) const PLACE: usize = 1;
/// Bits of a position inside a segment.
pub(crate) const POSITION_BITS: u32 = nacre_types::limits::MAX_SEGMENT_ROWS.ilog2();
/// Bits of a hash that are not stored.
pub(crate) const LEFT_OUT: u32 = 24;

/// The keys that a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySet {
    /// Those that identify rows. Positions are row numbers.
    Primary,
    /// An index's. Positions are in its part.
    Index(IndexId),
}

/// One immutable hash table.
pub(crate) struct HashTable {
    pub keys: KeySet,
    /// One after the other; at least one.
    pub files: Vec<Arc<Segment>>,
    /// The greatest hash of each file.
    lasts: Vec<i64>,
    /// The segments it covers, by the number they have in it. Some may be gone.
    pub segments: Vec<u64>,
}

/// What of a hash is stored.
pub(crate) fn stored(hash: u64) -> i64 {
    (hash >> LEFT_OUT) as i64
}

/// A segment's number in a table, and a position in the segment.
pub(crate) fn unpack(place: i64) -> (usize, u32) {
    (
        usize::try_from(place >> POSITION_BITS).unwrap_or(usize::MAX),
        (place & ((1 << POSITION_BITS) - 1)) as u32,
    )
}

pub(crate) fn pack(segment: usize, position: u32) -> i64 {
    (segment as i64) << POSITION_BITS | i64::from(position)
}

/// A builder of a file.
pub(crate) fn file_builder() -> SegmentBuilder {
    let column = |id| ColumnSpec { id, data_type: DataType::Int64, nullable: false };
    SegmentBuilder::new(vec![column(HASH_COLUMN), column(PLACE_COLUMN)])
}

impl HashTable {
    /// A table of these files. `corrupt` when they cannot be one.
    pub fn new(keys: KeySet, files: Vec<Arc<Segment>>, segments: Vec<u64>) -> Result<HashTable> {
        let mut lasts = Vec::with_capacity(files.len());
        for file in &files {
            let ids: Vec<_> = file.columns().iter().map(|c| (c.id, c.data_type)).collect();
            if ids != [(HASH_COLUMN, DataType::Int64), (PLACE_COLUMN, DataType::Int64)] {
                return Err(Error::corrupt(format!(
                    "{}: this is no hash table of an index",
                    file.name()
                )));
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

    /// What names it: the number of its first file.
    pub fn id(&self) -> u64 {
        self.files.first().map_or(0, |file| file.id())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.rows()).sum()
    }

    /// How the log names it.
    pub fn name(&self) -> NewTable {
        let files = self.files.iter().map(|file| file.id()).collect();
        NewTable { keys: self.keys, files, segments: self.segments.clone() }
    }

    /// Visits the entries of a hash: the segment's number and the position in it.
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
                    // Entries of one hash may go on in the next file.
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

pub(crate) fn bad_entry(file: &Segment, row: usize) -> Error {
    Error::corrupt(format!(
        "{}: entry {row} names a segment that the table does not cover",
        file.name()
    ))
}
