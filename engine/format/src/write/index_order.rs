//! Columns in another order than the rows: the part of an index that is stored in a segment.
//!
//! The values of the index columns are written a second time, sorted, together with the numbers of
//! their rows, ascending among equal values. To the file these are columns like any other, with ids
//! of their own: they have zone maps, encodings, checksums and a place in the cache.
//! [`Segment::lower_bound`] and [`Segment::upper_bound`] find a key in them.
//!
//! [`Segment::lower_bound`]: crate::Segment::lower_bound
//! [`Segment::upper_bound`]: crate::Segment::upper_bound

use nacre_column::{Bitmap, BlockValues, Values, gather};
use nacre_types::PhysicalType;
use nacre_types::limits::BLOCK_ROWS;

/// An index to write with a segment.
#[derive(Clone, Debug)]
pub struct IndexOrder {
    /// Positions of its columns in the builder.
    pub columns: Vec<usize>,
    /// Id of the column of row numbers.
    pub rows: u32,
    /// Ids of the sorted columns, one for each of `columns`.
    pub keys: Vec<u32>,
    /// Id of the filter column.
    pub filter: u32,
}

/// A block of a column in another order of its rows, given the numbers of the block's rows.
pub(super) fn permuted_block(
    blocks: &[BlockValues],
    physical: PhysicalType,
    rows: &[u32],
) -> BlockValues {
    debug_assert!(rows.len() <= BLOCK_ROWS, "a block of {} rows", rows.len());
    let has_nulls = blocks.iter().any(|(_, validity)| validity.is_some());
    let bits = has_nulls.then(|| {
        let mut bits = Bitmap::default();
        for row in rows {
            let validity = &blocks[*row as usize / BLOCK_ROWS].1;
            bits.push(validity.as_ref().is_none_or(|v| v.get(*row as usize % BLOCK_ROWS)));
        }
        bits
    });
    let mut values = Values::empty(physical);
    gather(blocks, rows, &mut values);
    (values, bits.filter(|bits| bits.count_ones() < bits.len()))
}
