//! Between batches of vectors and encoded rows and keys.

use crate::table::version::Table;
use nacre_column::{Batch, Form, Values, Vector, VectorBuilder};
use nacre_rowstore::Row;
use nacre_types::row::RowLayout;
use nacre_types::{Column, DataType, Error, PhysicalType, Result, Value, limits};
use std::sync::Arc;

/// Checks nulls, ranges and lengths of a column of new rows.
pub(crate) fn check_column(column: &Column, vector: &Vector) -> Result<()> {
    if !column.nullable && vector.null_count() > 0 {
        column.check(&Value::Null)?;
    }
    let check_all = |values: &Values| -> Result<()> {
        match (column.data_type, values) {
            (DataType::Text { max_chars }, Values::Bytes(bytes)) => {
                let longest = max_chars.map_or(limits::MAX_VALUE_BYTES, |n| n as usize);
                for row in 0..bytes.len() {
                    let value = bytes.get(row);
                    if value.len() > longest {
                        check_length(value)?;
                        column.check(&Value::Text(String::from_utf8_lossy(value).into_owned()))?;
                    }
                }
            }
            (DataType::Binary { max_bytes }, Values::Bytes(bytes)) => {
                let longest = max_bytes.map_or(limits::MAX_VALUE_BYTES, |n| n as usize);
                for row in 0..bytes.len() {
                    let value = bytes.get(row);
                    if value.len() > longest {
                        check_length(value)?;
                        column.check(&Value::Binary(value.to_vec()))?;
                    }
                }
            }
            (DataType::Json, Values::Bytes(bytes)) => {
                (0..bytes.len()).try_for_each(|row| check_length(bytes.get(row)))?;
            }
            (data_type, Values::I64(values)) => {
                if let Some((low, high)) = data_type.stored_range() {
                    let out = values
                        .iter()
                        .enumerate()
                        .find(|(_, v)| !(low..=high).contains(&(**v as i128)));
                    if let Some((_, v)) = out {
                        column.check(&nacre_types::key::from_integer(data_type, *v as i128))?;
                    }
                }
            }
            (data_type @ DataType::Decimal { .. }, Values::I128(values)) => {
                for v in values {
                    column.check(&nacre_types::key::from_integer(data_type, *v))?;
                }
            }
            _ => {}
        }
        Ok(())
    };
    let (checked, all_are_rows) = match vector.form() {
        Form::Flat(values) | Form::Constant(values) => {
            (check_all(values), vector.null_count() == 0)
        }
        Form::Dictionary { values, .. } => (check_all(values), false),
    };
    if checked.is_ok() || all_are_rows {
        return checked;
    }
    // What stands below a null, or in a dictionary and in no row, is nobody's.
    (0..vector.len()).filter(|row| !vector.is_null(*row)).try_for_each(|row| {
        vector.bytes(row).map_or(Ok(()), check_length)?;
        column.check(&vector.value(row))
    })
}

fn check_length(value: &[u8]) -> Result<()> {
    if value.len() > limits::MAX_VALUE_BYTES {
        return Err(Error::limit(format!("value longer than {} bytes", limits::MAX_VALUE_BYTES)));
    }
    Ok(())
}

/// Refuses rows that could be written, and then neither changed nor deleted: what moves a row is one record of the log.
pub(crate) fn check_row_length(bytes: usize) -> Result<()> {
    // A transaction's row has a key beside it, and numbers.
    let most = nacre_log::MAX_RECORD_BYTES / 2;
    if bytes > most {
        return Err(Error::limit(format!("a row of {bytes} bytes; at most {most} are possible")));
    }
    Ok(())
}

/// One row of a batch as values.
pub(crate) fn values_of(batch: &Batch, row: usize) -> Vec<Value> {
    batch.columns.iter().map(|c| c.value(row)).collect()
}

/// The key values of a row given as values.
pub(crate) fn key_of(columns: &[usize], row: &[Value]) -> Vec<Value> {
    columns.iter().map(|c| row[*c].clone()).collect()
}

/// Decodes encoded rows into vectors of the projected columns. `limit` when a vector has no room for their texts.
pub(crate) fn to_batch(layout: &RowLayout, rows: &[Row], projection: &[usize]) -> Result<Batch> {
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
                            Error::limit(format!(
                                "texts of {} rows are more than 4 GiB",
                                rows.len()
                            ))
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

/// A batch for this table's segments: the rows' columns, then the hidden row numbers if it has them.
pub(crate) fn to_segment_batch(table: &Table, rows: &[Row], keys: &[Arc<[u8]>]) -> Result<Batch> {
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    let mut batch = to_batch(table.layout(), rows, &all)?;
    if table.key_columns().is_none() {
        let mut numbers = Vec::with_capacity(keys.len());
        for key in keys {
            match nacre_types::key::decode(key, &[DataType::Int64])?.first() {
                Some(Value::Int(number)) => numbers.push(*number),
                _ => return Err(Error::corrupt("row number is null")),
            }
        }
        batch.columns.push(Arc::new(Vector::new(DataType::Int64, Values::I64(numbers), None)));
    }
    Ok(batch)
}
