//! Constraints on new rows: nullability, ranges, lengths, and the length of a row.

use nacre_column::{Batch, Form, Values, Vector};
use nacre_types::{Column, DataType, Error, Result, Value, limits};

/// Checks nulls, ranges and lengths of a column of new rows.
pub(crate) fn check_column(column: &Column, vector: &Vector) -> Result<()> {
    debug_assert!(
        vector.data_type().physical() == column.data_type.physical(),
        "a vector of {} for column {}",
        vector.data_type(),
        column.name
    );
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
    // A value under a null, or in the dictionary but unused, belongs to no row and may violate the
    // limits.
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

/// Rejects rows that could be written but then neither changed nor deleted: moving a row out of a
/// segment takes one log record.
pub(crate) fn check_row_length(bytes: usize) -> Result<()> {
    // Leaves room for the row's key and numbers in the record.
    let most = nacre_log::MAX_RECORD_BYTES / 2;
    if bytes > most {
        return Err(Error::limit(format!("a row of {bytes} bytes exceeds the maximum of {most}")));
    }
    Ok(())
}

/// Like [`check_row_length`], for the rows of a batch.
pub(crate) fn check_row_lengths(batch: &Batch) -> Result<()> {
    debug_assert!(batch.selection.is_none(), "a batch to be loaded is not compact");
    if check_row_length(batch.longest_row()).is_ok() {
        return Ok(());
    }
    let bytes_of = |row: usize| {
        batch.columns.iter().filter_map(|c| c.bytes(row)).map(<[u8]>::len).sum::<usize>()
    };
    (0..batch.rows).try_for_each(|row| check_row_length(bytes_of(row)))
}
