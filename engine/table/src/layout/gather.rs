//! Picks rows from several batches into one.

use nacre_column::{Batch, Form, Values, VectorBuilder};
use nacre_types::{DataType, PhysicalType, invariant, limits};
use std::sync::Arc;

/// How many rows to gather at once, given a limit of about `gather_bytes` and rows of at most
/// `longest_row` bytes.
pub(crate) fn rows_at_once(longest_row: usize, gather_bytes: usize) -> usize {
    (gather_bytes / longest_row.max(1)).clamp(1, limits::BLOCK_ROWS)
}

/// A row of one of several batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub batch: u32,
    pub row: u32,
}

/// A batch of the picked rows, in the order of the picks. All batches have columns of these types.
pub(crate) fn gather(types: &[DataType], batches: &[&Batch], picks: &[Pick]) -> Batch {
    // A batch that has ended has no columns.
    debug_assert!(
        batches.iter().all(|b| b.columns.is_empty() || b.columns.len() == types.len()),
        "a batch to gather has not {} columns",
        types.len()
    );
    let columns = types
        .iter()
        .enumerate()
        .map(|(position, data_type)| {
            let sources: Vec<_> = batches.iter().map(|b| b.columns.get(position)).collect();
            let mut builder = VectorBuilder::new(*data_type);
            for pick in picks {
                let row = pick.row as usize;
                let Some(vector) = sources[pick.batch as usize] else {
                    invariant!(false, "a row is picked from batch {}, which has ended", pick.batch);
                    continue;
                };
                if vector.is_null(row) {
                    builder.push_null();
                    continue;
                }
                let (values, at) = match vector.form() {
                    Form::Flat(values) => (values, row),
                    Form::Constant(value) => (value, 0),
                    Form::Dictionary { codes, values } => (&**values, codes[row] as usize),
                };
                match (values, data_type.physical()) {
                    (Values::Bool(v), PhysicalType::Bool) => builder.push_bool(v[at]),
                    (Values::I64(v), PhysicalType::I64) => builder.push_i64(v[at]),
                    (Values::I128(v), PhysicalType::I128) => builder.push_i128(v[at]),
                    (Values::F64(v), PhysicalType::F64) => builder.push_f64(v[at]),
                    (Values::Bytes(v), PhysicalType::Bytes) => builder.push_bytes(v.get(at)),
                    _ => invariant!(false, "a batch to gather has no {data_type} in {position}"),
                }
            }
            Arc::new(builder.finish())
        })
        .collect();
    let gathered = Batch::new(columns, picks.len());
    debug_assert!(
        gathered.columns.iter().all(|column| column.len() == picks.len()),
        "a gathered column does not have {} rows",
        picks.len()
    );
    gathered
}
