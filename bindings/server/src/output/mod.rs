//! Results as text: tables for people, CSV, TBL and JSON for programs. One cell is looked at
//! without copying it; formats differ only in how they write cells and rows.

mod delimited;
mod json;
pub mod table;

pub use delimited::Delimited;
pub use json::{Json, JsonShape};

use nacredb::{Batch, Field, Form, Result, Value, Values, Vector};
use std::io;

/// One cell, borrowed where its bytes are long.
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Json(&'a str),
    Binary(&'a [u8]),
    /// Everything of fixed width.
    Other(Value),
}

impl<'a> Cell<'a> {
    /// The cell of a row of a vector.
    pub fn of(vector: &'a Vector, row: usize) -> Cell<'a> {
        if vector.is_null(row) {
            return Cell::Null;
        }
        let (values, at) = match vector.form() {
            Form::Flat(values) => (values, row),
            Form::Constant(values) => (values, 0),
            Form::Dictionary { codes, values } => (&**values, codes[row] as usize),
        };
        let Values::Bytes(bytes) = values else { return Cell::Other(vector.value(row)) };
        let bytes = bytes.get(at);
        match (vector.data_type(), std::str::from_utf8(bytes)) {
            (nacredb::DataType::Binary { .. }, _) | (_, Err(_)) => Cell::Binary(bytes),
            (nacredb::DataType::Json, Ok(text)) => Cell::Json(text),
            (_, Ok(text)) => Cell::Text(text),
        }
    }

    /// Appends the cell as `CAST(… AS TEXT)` prints it; nothing for null.
    pub fn push_text(&self, out: &mut String) {
        use std::fmt::Write;
        // Writing into a String cannot fail.
        let _ = match self {
            Cell::Null => Ok(()),
            Cell::Text(text) | Cell::Json(text) => out.write_str(text),
            Cell::Binary(bytes) => {
                out.push_str("\\x");
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
            Cell::Other(value) => write!(out, "{value}"),
        };
    }
}

/// A text format that takes a result row by row.
pub trait RowFormat {
    /// Before the first row.
    fn begin(&mut self, out: &mut String, columns: &[Field]) -> Result<()>;
    /// One row.
    fn row(&mut self, out: &mut String, columns: &[Field], batch: &Batch, row: usize) -> Result<()>;
    /// After the last row.
    fn end(&mut self, out: &mut String) -> Result<()>;
}

/// Writes batches in a row format. The outer error is the writer's, the inner the format's.
pub fn write_rows(
    out: &mut dyn io::Write,
    format: &mut dyn RowFormat,
    columns: &[Field],
    batches: &[Batch],
) -> io::Result<Result<()>> {
    const CHUNK: usize = 64 << 10;
    let mut text = String::with_capacity(CHUNK + (4 << 10));
    if let Err(error) = format.begin(&mut text, columns) {
        return Ok(Err(error));
    }
    for batch in batches {
        let selected = batch.selection.as_deref();
        for at in 0..batch.selected() {
            let row = selected.map_or(at, |s| s[at] as usize);
            if let Err(error) = format.row(&mut text, columns, batch, row) {
                return Ok(Err(error));
            }
            if text.len() >= CHUNK {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
    }
    if let Err(error) = format.end(&mut text) {
        return Ok(Err(error));
    }
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(Ok(()))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use nacredb::DataType;
    use std::sync::Arc;

    /// Two rows of many types, the second all null.
    pub fn sample() -> (Vec<Field>, Vec<Batch>) {
        let columns: Vec<(&str, DataType, Value)> = vec![
            ("id", DataType::Int64, Value::Int(i64::MAX)),
            ("price", DataType::Decimal { precision: 15, scale: 2 }, Value::Decimal { unscaled: -1230, scale: 2 }),
            ("name", DataType::TEXT, Value::Text("a \"b\", c\nd".into())),
            ("raw", DataType::BLOB, Value::Binary(vec![0, 255])),
            ("ok", DataType::Boolean, Value::Boolean(true)),
            ("ratio", DataType::Float64, Value::Float(0.5)),
            ("day", DataType::Date, Value::Date(0)),
            ("doc", DataType::Json, Value::Json("{\"a\": [1]}".into())),
        ];
        let fields =
            columns.iter().map(|(n, t, _)| Field { name: (*n).into(), data_type: *t, nullable: true }).collect();
        let vectors = columns.iter().map(|(_, t, v)| Arc::new(Vector::from_values(*t, [v, &Value::Null]))).collect();
        (fields, vec![Batch::new(vectors, 2)])
    }

    /// What a format writes for the sample.
    pub fn written(format: &mut dyn RowFormat) -> String {
        let (columns, batches) = sample();
        let mut out = Vec::new();
        write_rows(&mut out, format, &columns, &batches).unwrap().unwrap();
        String::from_utf8(out).unwrap()
    }
}
