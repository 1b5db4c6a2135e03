//! Reads the entries for a new hash table: the distinct keys of a segment, or the entries of other
//! tables.

use crate::index::hash::table::{
    HASH, HashTable, LEFT_OUT, PLACE, POSITION_BITS, bad_entry, pack, stored, unpack,
};
use crate::layout::keys::KeyRows;
use crate::layout::table_layout::TableLayout;
use crate::record::KeySet;
use crate::segments::state::SegmentState;
use nacre_column::{Values, Vector};
use nacre_segment::Segment;
use nacre_types::hash::hash_bytes;
use nacre_types::{Error, Result, invariant, limits};
use std::sync::Arc;

/// Leading hash bits by which a segment's entries are partitioned while they are read; each
/// partition is then sorted separately.
const SHARE_BITS: u32 = 8;
const STORED_BITS: u32 = 64 - LEFT_OUT;
// An entry is sorted as one number: the stored hash, then the position.
const _: () = assert!(STORED_BITS + POSITION_BITS <= 64 && SHARE_BITS <= STORED_BITS);

/// Where a segment stores the keys of a key set: a file, and the positions of its columns.
pub(crate) struct KeyPlace {
    file: Arc<Segment>,
    columns: Vec<usize>,
}

impl KeyPlace {
    /// Finds the keys of a segment; `None` if its index part is not built yet.
    pub fn find(
        layout: &TableLayout,
        keys: KeySet,
        state: &SegmentState,
    ) -> Result<Option<KeyPlace>> {
        Ok(match keys {
            KeySet::Primary => Some(KeyPlace {
                file: state.segment.clone(),
                columns: layout.key_positions(&state.segment)?,
            }),
            KeySet::Index(id) => state
                .part(id)
                .map(|part| KeyPlace { file: part.file().clone(), columns: part.keys().to_vec() }),
        })
    }
}

/// The entries of one segment, sorted.
pub(crate) struct SegmentKeys {
    place: KeyPlace,
    next_row: usize,
    /// The previous key: equal keys are adjacent and counted once.
    last: Vec<u8>,
    /// Stored hash and position, by the leading bits of the hash.
    shares: Vec<Vec<u64>>,
    next_share: usize,
}

impl SegmentKeys {
    /// Creates a reader that has read no keys.
    pub fn new(place: KeyPlace) -> SegmentKeys {
        debug_assert!(!place.columns.is_empty(), "keys without columns");
        debug_assert!(
            place.file.rows() <= limits::MAX_SEGMENT_ROWS,
            "positions of {} rows do not fit an entry",
            place.file.rows()
        );
        let shares = vec![Vec::new(); 1 << SHARE_BITS];
        SegmentKeys { place, next_row: 0, last: Vec::new(), shares, next_share: 0 }
    }

    /// Whether all keys are read, so that entries may be taken.
    pub fn is_read(&self) -> bool {
        self.next_row >= self.place.file.rows()
    }

    /// Reads the keys of a block.
    pub fn read_block(&mut self) -> Result<()> {
        debug_assert!(!self.is_read(), "keys are read after the last");
        debug_assert!(self.next_share == 0, "keys are read after entries were taken");
        let KeyPlace { file, columns } = &self.place;
        let count = limits::BLOCK_ROWS.min(file.rows() - self.next_row);
        let decoded = columns.iter().map(|c| file.decode(*c, self.next_row, count));
        let decoded: Vec<Vector> = decoded.collect::<Result<_>>()?;
        let keys = KeyRows::new(&decoded);
        let mut bytes = Vec::new();
        for row in 0..count {
            bytes.clear();
            // A key with a null is never looked up.
            if keys.put(row, &mut bytes) {
                continue;
            }
            if bytes == self.last {
                continue;
            }
            let hash = stored(hash_bytes(&bytes)) as u64;
            let share = (hash >> (STORED_BITS - SHARE_BITS)) as usize;
            self.shares[share].push(hash << POSITION_BITS | (self.next_row + row) as u64);
            std::mem::swap(&mut bytes, &mut self.last);
        }
        self.next_row += count;
        Ok(())
    }

    /// Appends the next entries, sorted. Returns whether there were any left.
    pub fn take(&mut self, hashes: &mut Vec<i64>, places: &mut Vec<i64>) -> bool {
        let Some(share) = self.shares.get_mut(self.next_share) else { return false };
        debug_assert!(
            self.place.file.rows() <= self.next_row,
            "entries are taken before all keys are read"
        );
        let mut share = std::mem::take(share);
        self.next_share += 1;
        share.sort_unstable();
        debug_assert!(
            hashes.last() <= share.first().map(|entry| (entry >> POSITION_BITS) as i64).as_ref()
                || share.is_empty(),
            "shares of the entries of a segment are out of order"
        );
        for entry in share {
            hashes.push((entry >> POSITION_BITS) as i64);
            places.push((entry & ((1 << POSITION_BITS) - 1)) as i64);
        }
        true
    }
}

/// Reads the entries of a hash table in order, one block at a time.
pub(crate) struct TableReader {
    table: Arc<HashTable>,
    /// The new table's number for each segment; `None` if the segment is gone.
    numbers: Vec<Option<usize>>,
    file: usize,
    next_row: usize,
    hashes: Vec<i64>,
    places: Vec<i64>,
    at: usize,
    /// The last hash read, of segments that are gone too.
    last: i64,
}

impl TableReader {
    /// Reads a hash table. `numbers` are the new table's numbers of its segments; `None` for
    /// segments that are gone.
    pub fn new(table: Arc<HashTable>, numbers: Vec<Option<usize>>) -> TableReader {
        invariant!(
            numbers.len() == table.segments().len(),
            "{} numbers for {} segments of a hash table",
            numbers.len(),
            table.segments().len()
        );
        let (hashes, places) = (Vec::new(), Vec::new());
        TableReader { table, numbers, file: 0, next_row: 0, hashes, places, at: 0, last: i64::MIN }
    }

    /// The next entry.
    pub fn peek(&self) -> Option<(i64, i64)> {
        debug_assert!(self.hashes.len() == self.places.len(), "an entry without its place");
        Some((*self.hashes.get(self.at)?, *self.places.get(self.at)?))
    }

    /// Moves past the current entry.
    pub fn advance(&mut self) {
        debug_assert!(self.at < self.hashes.len(), "a step behind the last entry read");
        self.at += 1;
    }

    /// Whether another block must be read before [`TableReader::peek`].
    pub fn is_empty(&self) -> bool {
        self.at == self.hashes.len() && self.file < self.table.files().len()
    }

    /// Reads the next block, without the entries of segments that are gone.
    pub fn read_block(&mut self) -> Result<()> {
        invariant!(
            self.at == self.hashes.len(),
            "{} entries of a hash table are skipped",
            self.hashes.len() - self.at
        );
        let Some(file) = self.table.files().get(self.file) else { return Ok(()) };
        let count = limits::BLOCK_ROWS.min(file.rows() - self.next_row);
        (self.hashes, self.places, self.at) =
            (Vec::with_capacity(count), Vec::with_capacity(count), 0);
        let (hashes, places) =
            (file.decode(HASH, self.next_row, count)?, file.decode(PLACE, self.next_row, count)?);
        let (hashes, places) = (hashes.flat(), places.flat());
        let (Values::I64(hashes), Values::I64(places)) = (&*hashes, &*places) else {
            return Err(Error::corrupt(format!("{}: entries are not integers", file.name())));
        };
        debug_assert!(
            hashes.len() == count && places.len() == count,
            "{} hashes and {} places of {count} entries",
            hashes.len(),
            places.len()
        );
        for (hash, place) in hashes.iter().zip(places) {
            if *hash < self.last {
                return Err(Error::corrupt(format!("{}: hashes are out of order", file.name())));
            }
            self.last = *hash;
            let (segment, position) = unpack(*place);
            match self.numbers.get(segment) {
                Some(Some(number)) => {
                    self.hashes.push(*hash);
                    self.places.push(pack(*number, position));
                }
                Some(None) => {}
                None => return Err(bad_entry(file, self.next_row)),
            }
        }
        self.next_row += count;
        if self.next_row == file.rows() {
            (self.file, self.next_row) = (self.file + 1, 0);
        }
        Ok(())
    }
}
