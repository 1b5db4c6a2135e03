//! Columns in another order than the rows: the part of an index that is stored in a segment.
//!
//! The values of the index columns are written a second time, sorted, together with the numbers of
//! their rows, ascending among equal values. To the file these are columns like any other, with ids
//! of their own: they have zone maps, encodings, checksums and a place in the cache.
//! [`Segment::lower_bound`] and [`Segment::upper_bound`] find a key in them.
//!
//! [`Segment::lower_bound`]: crate::Segment::lower_bound
//! [`Segment::upper_bound`]: crate::Segment::upper_bound

use crate::column::BlockValues;
use nacre_column::{Bitmap, BytesColumn, Values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{PhysicalType, invariant};

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
    rows: &[i64],
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
    (gathered(blocks, physical, rows), bits.filter(|bits| bits.count_ones() < bits.len()))
}

/// The values of some rows. All blocks have the same type.
fn gathered(blocks: &[BlockValues], physical: PhysicalType, rows: &[i64]) -> Values {
    for (values, _) in blocks {
        let found = values.physical();
        invariant!(found == physical, "a block of {found:?} in a column of {physical:?}");
    }
    macro_rules! pick {
        ($kind:ident, $empty:expr) => {
            Values::$kind(
                rows.iter()
                    .map(|row| match &blocks[*row as usize / BLOCK_ROWS].0 {
                        Values::$kind(values) => values[*row as usize % BLOCK_ROWS],
                        _ => $empty,
                    })
                    .collect(),
            )
        };
    }
    match physical {
        PhysicalType::Bool => pick!(Bool, false),
        PhysicalType::I64 => pick!(I64, 0),
        PhysicalType::I128 => pick!(I128, 0),
        PhysicalType::F64 => pick!(F64, 0.0),
        PhysicalType::Bytes => {
            let mut out = BytesColumn::default();
            out.offsets.reserve(rows.len());
            for row in rows {
                if let Values::Bytes(values) = &blocks[*row as usize / BLOCK_ROWS].0 {
                    out.push(values.get(*row as usize % BLOCK_ROWS));
                }
            }
            debug_assert!(out.len() == rows.len(), "{} of {} texts", out.len(), rows.len());
            Values::Bytes(out)
        }
    }
}
