//! Conversions between batches of vectors and encoded rows and keys.

use crate::layout::table_layout::TableLayout;
use nacre_column::{Batch, Values, Vector, VectorBuilder};
use nacre_rowstore::Row;
use nacre_types::row::{self, RowLayout};
use nacre_types::{DataType, Error, PhysicalType, Result, Value};
use std::sync::Arc;

/// The key values of a row given as values.
pub(crate) fn key_of(columns: &[usize], row: &[Value]) -> Vec<Value> {
    debug_assert!(columns.iter().all(|c| *c < row.len()), "a key column of {} values", row.len());
    columns.iter().map(|c| row[*c].clone()).collect()
}

/// Decodes encoded rows into vectors of the projected columns. `limit` if the text of a column
/// exceeds 4 GiB.
pub(crate) fn to_batch(layout: &RowLayout, rows: &[Row], projection: &[usize]) -> Result<Batch> {
    debug_assert!(
        rows.iter().all(|row| row::version(row) == Some(layout.version())),
        "a row is not of version {} of its schema",
        layout.version()
    );
    debug_assert!(
        projection.iter().all(|column| *column < layout.types().len()),
        "a column is projected that rows of {} columns do not have",
        layout.types().len()
    );
    let columns = projection
        .iter()
        .map(|&column| {
            let data_type = layout.types()[column];
            let (mut builder, mut room) = (VectorBuilder::new(data_type), u32::MAX as usize);
            for row in rows {
                if layout.is_null(row, column) {
                    builder.push_null();
                    continue;
                }
                match data_type.physical() {
                    PhysicalType::Bool => builder.push_bool(layout.bool(row, column)),
                    PhysicalType::I64 => builder.push_i64(layout.i64(row, column)),
                    PhysicalType::I128 => builder.push_i128(layout.i128(row, column)),
                    PhysicalType::F64 => builder.push_f64(layout.f64(row, column)),
                    PhysicalType::Bytes => {
                        let bytes = layout.bytes(row, column);
                        let too_many = || {
                            Error::limit(format!("text values of {} rows exceed 4 GiB", rows.len()))
                        };
                        room = room.checked_sub(bytes.len()).ok_or_else(too_many)?;
                        builder.push_bytes(bytes);
                    }
                }
            }
            Ok(Arc::new(builder.finish()))
        })
        .collect::<Result<_>>()?;
    Ok(Batch::new(columns, rows.len()))
}

/// A batch for a table's segments: the rows' columns, then the hidden row numbers if the table has
/// them.
pub(crate) fn to_segment_batch(
    layout: &TableLayout,
    rows: &[Row],
    keys: &[Arc<[u8]>],
) -> Result<Batch> {
    debug_assert!(rows.len() == keys.len(), "{} rows have {} keys", rows.len(), keys.len());
    let all: Vec<usize> = (0..layout.schema().columns.len()).collect();
    let mut batch = to_batch(layout.rows(), rows, &all)?;
    if layout.key_columns().is_none() {
        let mut numbers = Vec::with_capacity(keys.len());
        for key in keys {
            match nacre_types::key::decode(key, &[DataType::Int64])?.first() {
                Some(Value::Int(number)) => numbers.push(*number),
                _ => return Err(Error::corrupt("row number is null")),
            }
        }
        debug_assert!(
            numbers.len() == rows.len(),
            "{} of {} rows are numbered",
            numbers.len(),
            rows.len()
        );
        batch.columns.push(Arc::new(Vector::new(DataType::Int64, Values::I64(numbers), None)));
    }
    debug_assert!(
        batch.columns.len() == layout.segment_columns().len(),
        "a batch of {} columns for a segment",
        batch.columns.len()
    );
    Ok(batch)
}
