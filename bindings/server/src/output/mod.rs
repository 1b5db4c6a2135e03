//! Writes results as text: tables for reading; CSV, TSV, TBL and JSON for programs. The formats
//! share access to the cells, which are borrowed, and differ only in how they write cells and rows.

mod delimited;
mod drawing;
mod json;
pub mod table;

pub use delimited::Delimited;
pub use drawing::{Drawing, Shape};
pub use json::{Json, JsonShape};

use crate::failure::Outcome;
use nacredb::{Batch, DataType, Field, Form, Result, Value, Values, Vector, format_float32};
use std::io;

/// One cell of a result; bytes are borrowed.
pub enum Cell<'a> {
    Null,
    Text(&'a str),
    Json(&'a str),
    Binary(&'a [u8]),
    /// A vector stores it as a double, but its text has fewer digits than that double.
    Float32(f32),
    /// A value of any other type, all of fixed width.
    Other(Value),
}

impl<'a> Cell<'a> {
    /// Returns the cell at a row of a vector.
    pub fn of(vector: &'a Vector, row: usize) -> Cell<'a> {
        if vector.is_null(row) {
            return Cell::Null;
        }
        let (values, at) = match vector.form() {
            Form::Flat(values) => (values, row),
            Form::Constant(values) => (values, 0),
            Form::Dictionary { codes, values } => (&**values, codes[row] as usize),
        };
        let Values::Bytes(bytes) = values else {
            return match (vector.data_type(), vector.value(row)) {
                (DataType::Float32, Value::Float(wide)) => Cell::Float32(wide as f32),
                (_, value) => Cell::Other(value),
            };
        };
        let bytes = bytes.get(at);
        match (vector.data_type(), std::str::from_utf8(bytes)) {
            (DataType::Binary { .. }, _) | (_, Err(_)) => Cell::Binary(bytes),
            (DataType::Json, Ok(text)) => Cell::Json(text),
            (_, Ok(text)) => Cell::Text(text),
        }
    }

    /// Appends the cell as `CAST(… AS TEXT)` prints it, or nothing if it is null.
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
            Cell::Float32(v) => out.write_str(&format_float32(*v)),
            Cell::Other(value) => write!(out, "{value}"),
        };
    }
}

/// A text format that is written row by row.
pub trait RowFormat {
    /// Writes what precedes the first row.
    fn begin(&mut self, out: &mut String, columns: &[Field]) -> Result<()>;
    /// Writes one row.
    fn row(&mut self, out: &mut String, columns: &[Field], batch: &Batch, row: usize)
    -> Result<()>;
    /// Writes what follows the last row.
    fn end(&mut self, out: &mut String) -> Result<()>;
}

/// Writes rows as they arrive, flushing each batch before requesting the next one. Returns the
/// number of rows.
pub fn write_rows(
    out: &mut dyn io::Write,
    format: &mut dyn RowFormat,
    columns: &[Field],
    next: &mut dyn FnMut() -> Outcome<Option<Batch>>,
) -> Outcome<u64> {
    const CHUNK: usize = 64 << 10;
    let mut text = String::with_capacity(CHUNK + (4 << 10));
    let mut rows = 0;
    format.begin(&mut text, columns)?;
    while let Some(batch) = next()? {
        let selected = batch.selection.as_deref();
        for at in 0..batch.selected() {
            let row = selected.map_or(at, |s| s[at] as usize);
            format.row(&mut text, columns, &batch, row)?;
            if text.len() >= CHUNK {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        rows += batch.selected() as u64;
        out.write_all(text.as_bytes())?;
        out.flush()?;
        text.clear();
    }
    format.end(&mut text)?;
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(rows)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn floats_match_cast_to_text() {
        let cells = [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (16_777_216.0, "1.6777216e7"),
            (-1e-7, "-1e-7"),
            (f64::NAN, "NaN"),
        ];
        let values: Vec<Value> =
            cells.iter().map(|(v, _)| Value::Float(f64::from(*v as f32))).collect();
        let vector = Vector::from_values(DataType::Float32, &values);
        for (row, (_, text)) in cells.iter().enumerate() {
            let mut out = String::new();
            Cell::of(&vector, row).push_text(&mut out);
            assert_eq!(out, *text);
        }
        let fields = [Field { name: "f".into(), data_type: DataType::Float32, nullable: false }];
        let mut batches = Some(Batch::new(vec![Arc::new(vector)], values.len())).into_iter();
        let mut out = Vec::new();
        write_rows(&mut out, &mut Json::new(JsonShape::Lines), &fields, &mut || Ok(batches.next()))
            .unwrap();
        let lines =
            "{\"f\":0.1}\n{\"f\":1.0}\n{\"f\":1.6777216e7}\n{\"f\":-1e-7}\n{\"f\":\"NaN\"}\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }

    /// Returns two rows of many types; the second row is all null.
    pub fn sample() -> (Vec<Field>, Vec<Batch>) {
        let columns: Vec<(&str, DataType, Value)> = vec![
            ("id", DataType::Int64, Value::Int(i64::MAX)),
            (
                "price",
                DataType::Decimal { precision: 15, scale: 2 },
                Value::Decimal { unscaled: -1230, scale: 2 },
            ),
            ("name", DataType::TEXT, Value::Text("a \"b\", c\nd".into())),
            ("raw", DataType::BLOB, Value::Binary(vec![0, 255])),
            ("ok", DataType::Boolean, Value::Boolean(true)),
            ("ratio", DataType::Float64, Value::Float(0.5)),
            ("day", DataType::Date, Value::Date(0)),
            ("doc", DataType::Json, Value::Json("{\"a\": [1]}".into())),
        ];
        let fields = columns
            .iter()
            .map(|(n, t, _)| Field { name: (*n).into(), data_type: *t, nullable: true })
            .collect();
        let vectors = columns
            .iter()
            .map(|(_, t, v)| Arc::new(Vector::from_values(*t, [v, &Value::Null])))
            .collect();
        (fields, vec![Batch::new(vectors, 2)])
    }

    /// Returns the sample as written by a format.
    pub fn written(format: &mut dyn RowFormat) -> String {
        let (columns, batches) = sample();
        let (mut out, mut batches) = (Vec::new(), batches.into_iter());
        assert_eq!(write_rows(&mut out, format, &columns, &mut || Ok(batches.next())).unwrap(), 2);
        String::from_utf8(out).unwrap()
    }
}
