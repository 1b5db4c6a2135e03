//! What a file says about itself, apart from its columns: which file of which table it is, and the
//! range of its rows.

use nacre_types::{TableId, invariant};
use std::fmt;
use std::sync::Arc;

/// Identifies a file among the files of all databases. Two valid files that were exchanged differ
/// in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Identity of the database, as in its log.
    pub database: u64,
    /// The table that the file belongs to.
    pub table: TableId,
    /// Number of the file, unique in its database.
    pub number: u64,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { database, table, number } = self;
        write!(f, "file {number} of table {table} in database {database:016x}")
    }
}

/// What can be known of a segment without its footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Number of rows.
    pub rows: usize,
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Checksum of the footer, which has the checksums of everything else.
    pub footer_checksum: u64,
    /// Uncompressed size of its values, in bytes.
    pub raw_bytes: u64,
    /// Bounds of its rows in the order in which they were written, if it has any.
    pub order_bounds: Option<Arc<OrderBounds>>,
    /// Ids of its columns, in file order.
    pub columns: Arc<[u32]>,
    /// Bounds of the columns that the owner is interested in. See
    /// [`Segment::with_bounds_of`](crate::Segment::with_bounds_of).
    pub bounds: Arc<BoundsOfColumns>,
    /// The greatest value of a column that the owner is interested in, if it has that column. See
    /// [`Segment::with_greatest_of`](crate::Segment::with_greatest_of).
    pub greatest: Option<u64>,
}

impl Known {
    /// Whether a file can be the one that is known.
    pub fn is_of_same_file(&self, found: &Known) -> bool {
        let is_same = self.footer_checksum == found.footer_checksum && self.bytes == found.bytes;
        let (greatest, bounds) = (self.greatest, self.bounds.clone());
        is_same && Known { greatest, bounds, ..found.clone() } == *self
    }

    /// The bounds of the column with this id, if they are known.
    pub fn bounds_of(&self, column: u32) -> Option<ColumnBounds<'_>> {
        self.bounds.iter().find(|bounds| bounds.column == column)
    }
}

/// Bounds of the values of a column, in the owner's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnBounds<'a> {
    /// Id of the column.
    pub column: u32,
    /// Number of nulls.
    pub nulls: u32,
    /// At or below every value.
    pub low: &'a [u8],
    /// At or above every value.
    pub high: &'a [u8],
}

/// Bounds of several columns of a file. Together in memory: opening a database reads those of every file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundsOfColumns {
    columns: Vec<BoundsPlace>,
    bytes: Vec<u8>,
}

/// A column, and where its bounds end; they begin where those of the column before end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BoundsPlace {
    column: u32,
    nulls: u32,
    low_end: u32,
    high_end: u32,
}

impl BoundsOfColumns {
    /// Room for this many columns, and this many bytes of bounds.
    pub fn with_capacity(columns: usize, bytes: usize) -> BoundsOfColumns {
        BoundsOfColumns { columns: Vec::with_capacity(columns), bytes: Vec::with_capacity(bytes) }
    }

    /// Adds those of a column.
    pub fn push(&mut self, bounds: ColumnBounds<'_>) {
        let ColumnBounds { column, nulls, low, high } = bounds;
        self.bytes.extend_from_slice(low);
        let low_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(high);
        invariant!(self.bytes.len() <= u32::MAX as usize, "bounds of too many bytes");
        let high_end = self.bytes.len() as u32;
        self.columns.push(BoundsPlace { column, nulls, low_end, high_end });
    }

    /// Those of each column, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = ColumnBounds<'_>> {
        let mut from = 0;
        self.columns.iter().map(move |place| {
            let (low_end, high_end) = (place.low_end as usize, place.high_end as usize);
            debug_assert!(low_end <= high_end, "bounds of column {} cross", place.column);
            let low = &self.bytes[std::mem::replace(&mut from, high_end)..low_end];
            let high = &self.bytes[low_end..high_end];
            ColumnBounds { column: place.column, nulls: place.nulls, low, high }
        })
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        debug_assert!(
            self.columns.last().map_or(0, |last| last.high_end as usize) == self.bytes.len(),
            "{} bytes of bounds, of {} columns",
            self.bytes.len(),
            self.columns.len()
        );
        size_of::<BoundsOfColumns>()
            + self.columns.capacity() * size_of::<BoundsPlace>()
            + self.bytes.capacity()
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Known { rows, bytes, footer_checksum, columns, .. } = self;
        let columns = columns.len();
        write!(
            f,
            "{columns} columns of {rows} rows, {bytes} bytes and footer checksum \
             {footer_checksum:016x}"
        )
    }
}

/// Bounds of the rows of a file in the order in which it was written. The bytes are the caller's
/// encoding, compared as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBounds {
    /// Not above any row.
    pub first: Vec<u8>,
    /// Not below any row.
    pub last: Vec<u8>,
}

/// Bytes kept of an order bound. As many as several numbers take.
const BOUND_BYTES: usize = 64;

impl OrderBounds {
    /// Bounds of the rows from `first` to `last`, cut to a fixed length.
    pub fn cut(mut first: Vec<u8>, mut last: Vec<u8>) -> OrderBounds {
        debug_assert!(first <= last, "the first row of a file is above the last");
        // A prefix is not above the whole.
        first.truncate(BOUND_BYTES);
        if let Some(cut) = last.get(..BOUND_BYTES).filter(|cut| cut.len() < last.len()) {
            // The next greater string of this length or less; bytes that have no next are dropped.
            let kept = cut.iter().rposition(|byte| *byte < u8::MAX);
            if let Some(at) = kept {
                last.truncate(at + 1);
                last[at] += 1;
            }
        }
        debug_assert!(first <= last, "the bounds of a file are out of order");
        OrderBounds { first, last }
    }

    /// Whether all rows of a file may come before all rows of another. Certain unless a bound of
    /// `next` was cut, or `next` begins exactly where this file ends.
    pub fn may_precede(&self, next: &OrderBounds) -> bool {
        let is_in_order = self.first <= next.first && self.last <= next.last;
        is_in_order && self.may_end_before(&next.first)
    }

    /// Whether all rows may come before a key, or the key may be that of the last row. The bound is
    /// at most the next key with as many bytes as a bound has.
    pub fn may_end_before(&self, key: &[u8]) -> bool {
        self.last.as_slice() <= key || key.len() >= BOUND_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_bounds_enclose_what_they_were_cut_from() {
        let short = OrderBounds::cut(vec![1, 2], vec![1, 3]);
        assert_eq!(short, OrderBounds { first: vec![1, 2], last: vec![1, 3] });
        for (fill, tail) in [(0, 0), (7, 3), (7, 64), (0xff, 0), (0xff, 5)] {
            let mut key = vec![1];
            key.resize(BOUND_BYTES - tail.min(BOUND_BYTES - 1), fill);
            key.resize(BOUND_BYTES + 9, 0xff);
            let OrderBounds { first, last } = OrderBounds::cut(key.clone(), key.clone());
            assert!(first <= key && key <= last, "{key:?} is not in {first:?}..={last:?}");
            assert!(first.len() <= BOUND_BYTES && last.len() <= BOUND_BYTES);
        }
        let endless = vec![0xff; 100];
        assert_eq!(OrderBounds::cut(endless.clone(), endless.clone()).last, endless);
    }

    #[test]
    fn files_whose_cut_bounds_meet_may_be_in_order() {
        let long = |last: u8| [vec![7; BOUND_BYTES], vec![last]].concat();
        let bounds = |first: u8, last: u8| OrderBounds::cut(long(first), long(last));
        assert!(bounds(1, 3).may_precede(&bounds(4, 6)));
        let short = |first: u8, last: u8| OrderBounds::cut(vec![first], vec![last]);
        assert!(short(1, 3).may_precede(&short(4, 6)));
        assert!(!short(1, 4).may_precede(&short(3, 6)));
        assert!(!short(4, 6).may_precede(&short(1, 3)));
    }
}
