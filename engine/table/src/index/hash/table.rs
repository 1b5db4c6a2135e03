//! A hash table maps a key's hash to the segments that hold the key and the position in each where
//! the key's rows begin. Source: Prout et al., *Cloud-Native Transactions and Analytics in
//! SingleStore*, SIGMOD 2022, section 4.1.
//!
//! A table covers some segments of a partition: it has an entry for each of their distinct keys
//! without nulls, so a key that it does not have is not in them. The tables of one key set are
//! levels of an LSM tree: each segment gets its own table, and tables of similar size are merged. A
//! dropped segment leaves its entries behind; readers skip them, and a table is rewritten once half
//! of its segments are gone. Only 40 bits of each hash are stored, and no keys: a reader compares
//! the key at the entry's position.
//!
//! A table consists of files in the segment format with two columns, sorted by hash. Hashes are
//! evenly distributed, so an interpolation search finds them; zone maps, encodings, checksums and
//! the block cache work as for any segment. The log names the files. A table does not know about
//! snapshots or deletions.

use crate::layout::columns::{HASH_COLUMN, PLACE_COLUMN};
use crate::record::{KeySet, NewTable};
use nacre_host::fetched::Misses;
use nacre_segment::{ColumnMeta, ColumnSpec, Segment, SegmentBuilder};
use nacre_types::{DataType, Error, Result, Value, invariant};
use std::sync::{Arc, OnceLock};

/// Position of the hash column.
pub(crate) const HASH: usize = 0;
/// Position of the place column.
pub(crate) const PLACE: usize = 1;
/// Bits of a position within a segment.
pub(crate) const POSITION_BITS: u32 = nacre_types::limits::MAX_SEGMENT_ROWS.ilog2();
// Every position has its own bits.
const _: () = assert!(1 << POSITION_BITS == nacre_types::limits::MAX_SEGMENT_ROWS);
/// Hash bits that are not stored.
pub(crate) const LEFT_OUT: u32 = 24;

/// One immutable hash table.
pub(crate) struct HashTable {
    keys: KeySet,
    /// At least one, in hash order.
    files: Vec<Arc<Segment>>,
    /// The greatest hash of each file, once one was looked for.
    lasts: OnceLock<Vec<i64>>,
    /// The segments it covers, indexed by their number in the table. Some may be gone.
    segments: Vec<u64>,
}

/// The stored part of a hash.
pub(crate) fn stored(hash: u64) -> i64 {
    let stored = (hash >> LEFT_OUT) as i64;
    debug_assert!(stored >= 0, "the stored part of hash {hash} is negative");
    stored
}

/// Splits a place into the segment's number and the position in the segment; the inverse of
/// [`pack`]. A damaged place yields a number that no table has.
pub(crate) fn unpack(place: i64) -> (usize, u32) {
    (
        usize::try_from(place >> POSITION_BITS).unwrap_or(usize::MAX),
        (place & ((1 << POSITION_BITS) - 1)) as u32,
    )
}

/// Encodes a segment's number in the table and a position in the segment.
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
    /// Bytes of what is known of its files without their footers.
    pub fn handle_bytes(&self) -> usize {
        debug_assert!(!self.files.is_empty(), "a hash table without files");
        self.files.iter().map(|file| file.handle_bytes()).sum()
    }

    /// Creates a table from its files, which are not read. `corrupt` if they are not hash table
    /// files.
    pub fn new(keys: KeySet, files: Vec<Arc<Segment>>, segments: Vec<u64>) -> Result<HashTable> {
        invariant!(!files.is_empty(), "a hash table without files");
        for file in &files {
            if file.column_ids() != [HASH_COLUMN, PLACE_COLUMN] {
                return Err(no_table(file.name()));
            }
        }
        Ok(HashTable { keys, files, lasts: OnceLock::new(), segments })
    }

    /// The greatest hash of each file.
    fn lasts(&self) -> Result<&[i64]> {
        if let Some(lasts) = self.lasts.get() {
            return Ok(lasts);
        }
        let mut lasts = Vec::with_capacity(self.files.len());
        Misses::each(&self.files, |file| {
            let columns = file.columns()?;
            check_types(file.name(), &columns)?;
            // A file without rows has no hashes.
            lasts.push(if let Value::Int(last) = columns[HASH].max { last } else { i64::MIN });
            Ok(())
        })?;
        debug_assert!(lasts.len() == self.files.len(), "{} files end", lasts.len());
        Ok(self.lasts.get_or_init(|| lasts))
    }

    /// The key set it covers.
    pub fn keys(&self) -> KeySet {
        self.keys
    }

    /// Its files, at least one, in hash order.
    pub fn files(&self) -> &[Arc<Segment>] {
        &self.files
    }

    /// The segments it covers, indexed by their number in the table. Some may be gone.
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

    /// The table as the log names it.
    pub fn as_logged(&self) -> NewTable {
        let files = self.files.iter().map(|file| file.id()).collect();
        NewTable { keys: self.keys, files, segments: self.segments.clone() }
    }

    /// Visits the entries of a hash: the segment's number and the position in the segment.
    pub fn find(&self, hash: u64, mut visit: impl FnMut(usize, u32)) -> Result<()> {
        let wanted = Value::Int(stored(hash));
        let first = self.lasts()?.partition_point(|last| *last < stored(hash));
        for file in &self.files[first..] {
            let Some(mut row) = file.find_even(HASH, stored(hash))? else { return Ok(()) };
            loop {
                debug_assert!(row < file.rows(), "entry {row} of {}", file.rows());
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
                    // The hash's entries may continue in the next file.
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

/// Fails with `corrupt` unless these are the columns of a file of a hash table.
pub(crate) fn check_types(file: &str, columns: &[ColumnMeta]) -> Result<()> {
    let is_integer = |column: &ColumnMeta| column.data_type == DataType::Int64;
    match columns.len() == 2 && columns.iter().all(is_integer) {
        true => Ok(()),
        false => Err(no_table(file)),
    }
}

fn no_table(file: &str) -> Error {
    Error::corrupt(format!("{file}: not a hash table file"))
}

/// The error for an entry with an impossible segment number.
pub(crate) fn bad_entry(file: &Segment, row: usize) -> Error {
    Error::corrupt(format!(
        "{}: entry {row} names a segment that the table does not cover",
        file.name()
    ))
}
