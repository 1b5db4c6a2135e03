//! Picking rows from several batches into one.

use nacre_column::{Batch, Values, VectorBuilder};
use nacre_types::{DataType, PhysicalType};
use std::sync::Arc;

/// A row of one of several batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub batch: u32,
    pub row: u32,
}

/// A batch of the picked rows, in the order of the picks. All batches have columns of these types.
pub(crate) fn gather(types: &[DataType], batches: &[&Batch], picks: &[Pick]) -> Batch {
    let columns = types
        .iter()
        .enumerate()
        .map(|(position, data_type)| {
            // Only the batches that are picked from: a source that has ended has no columns.
            let flats: Vec<_> = batches.iter().map(|b| b.columns.get(position).map(|c| (c, c.flat()))).collect();
            let mut builder = VectorBuilder::new(*data_type);
            for pick in picks {
                let row = pick.row as usize;
                let Some((vector, flat)) = &flats[pick.batch as usize] else { continue };
                if vector.is_null(row) {
                    builder.push_null();
                    continue;
                }
                match (&**flat, data_type.physical()) {
                    (Values::Bool(v), PhysicalType::Bool) => builder.push_bool(v[row]),
                    (Values::I64(v), PhysicalType::I64) => builder.push_i64(v[row]),
                    (Values::I128(v), PhysicalType::I128) => builder.push_i128(v[row]),
                    (Values::F64(v), PhysicalType::F64) => builder.push_f64(v[row]),
                    (Values::Bytes(v), PhysicalType::Bytes) => builder.push_bytes(v.get(row)),
                    // Types were checked when the batch was made.
                    _ => builder.push_null(),
                }
            }
            Arc::new(builder.finish())
        })
        .collect();
    Batch::new(columns, picks.len())
}
