//! Columns in another order than the rows: what an index over some columns needs of a segment.
//!
//! The values of those columns are written a second time, sorted, and beside them the numbers of the rows they are of,
//! ascending among equal values. To the file these are columns like others, with ids of their own, so they have zone
//! maps, encodings, checksums and a place in the cache; [`Segment::lower_bound`] and [`Segment::upper_bound`] find a key.

use crate::builder::Rows;
use crate::key_order::order_of;
use crate::segment::Segment;
use nacre_column::{Bitmap, BytesColumn, Values};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{PhysicalType, Result, Value};

/// An index to be written with a segment.
#[derive(Clone, Debug)]
pub struct IndexOrder {
    /// Positions of its columns among the builder's.
    pub columns: Vec<usize>,
    /// Id of the column of row numbers.
    pub rows: u32,
    /// Ids of the sorted columns, as many as `columns`.
    pub keys: Vec<u32>,
    /// Id of the filter column.
    pub filter: u32,
}

/// Row numbers in the order of some columns, and those columns in that order, in blocks.
pub(crate) fn sorted(
    columns: &[&[Rows]],
    types: &[PhysicalType],
    rows: usize,
) -> (Vec<i64>, Vec<Vec<Rows>>) {
    let order = order_of(columns, rows);
    let sorted = columns
        .iter()
        .zip(types)
        .map(|(blocks, physical)| permuted(blocks, *physical, &order))
        .collect();
    (order, sorted)
}

fn permuted(blocks: &[Rows], physical: PhysicalType, order: &[i64]) -> Vec<Rows> {
    let has_nulls = blocks.iter().any(|(_, validity)| validity.is_some());
    let block = |rows: &[i64]| {
        let bits = has_nulls.then(|| {
            let mut bits = Bitmap::default();
            for row in rows {
                let validity = &blocks[*row as usize / BLOCK_ROWS].1;
                bits.push(validity.as_ref().is_none_or(|v| v.get(*row as usize % BLOCK_ROWS)));
            }
            bits
        });
        (gathered(blocks, physical, rows), bits.filter(|bits| bits.count_ones() < bits.len()))
    };
    order.chunks(BLOCK_ROWS).map(block).collect()
}

/// The values of some rows; all blocks are of this type.
fn gathered(blocks: &[Rows], physical: PhysicalType, rows: &[i64]) -> Values {
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
            Values::Bytes(out)
        }
    }
}

impl Segment {
    /// The first row, from `from` on, whose key is above all keys with this prefix, comparing as many columns as the
    /// prefix has; the number of rows if there is none. No key before `from` is above, and the file must be sorted
    /// ascending by `key_columns`. Looks near `from` first.
    pub fn upper_bound(
        &self,
        key_columns: &[usize],
        key_prefix: &[Value],
        from: usize,
    ) -> Result<usize> {
        let key_columns = &key_columns[..key_prefix.len().min(key_columns.len())];
        let (mut low, mut high, mut step) = (from, self.rows(), 1);
        if key_columns.is_empty() {
            return Ok(high);
        }
        while low < high {
            let middle = if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
            if self.compare_row(middle, key_columns, key_prefix)?.is_gt() {
                (high, step) = (middle, 0);
            } else {
                (low, step) = (middle + 1, step * 2);
            }
        }
        Ok(low)
    }
}
