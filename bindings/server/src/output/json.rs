//! Writes JSON: one array of objects, or one object per line. Integers and decimals are numbers
//! with all their digits; dates, binary values and non-finite doubles are strings.

use super::{Cell, RowFormat};
use nacredb::{Batch, Field, Result, Value};

/// How the objects are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum JsonShape {
    /// `[{…}, …]`
    Array,
    /// One object per line.
    Lines,
}

/// Writer of rows as objects.
pub struct Json {
    shape: JsonShape,
    /// `"name":` of each column.
    keys: Vec<String>,
    rows: u64,
}

impl Json {
    /// Creates a writer.
    pub fn new(shape: JsonShape) -> Json {
        Json { shape, keys: Vec::new(), rows: 0 }
    }
}

/// Appends a JSON string.
fn string(out: &mut String, text: &str) {
    use std::fmt::Write;
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escape);
        if escape.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        }
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.push('"');
}

fn cell(out: &mut String, cell: &Cell<'_>) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Text(text) => string(out, text),
        // A line break between tokens would split the object over two lines.
        Cell::Json(text) => {
            out.extend(text.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }))
        }
        Cell::Other(Value::Float(v)) if !v.is_finite() => {
            string(out, &Value::Float(*v).to_string())
        }
        Cell::Float32(v) if !v.is_finite() => string(out, &Value::Float(f64::from(*v)).to_string()),
        Cell::Float32(_) => cell_text(out, cell),
        Cell::Other(
            Value::Boolean(_)
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::Decimal { .. },
        ) => {
            cell_text(out, cell);
        }
        Cell::Other(_) | Cell::Binary(_) => {
            let mut text = String::new();
            cell_text(&mut text, cell);
            string(out, &text);
        }
    }
}

fn cell_text(out: &mut String, cell: &Cell<'_>) {
    cell.push_text(out);
}

impl RowFormat for Json {
    fn begin(&mut self, out: &mut String, columns: &[Field]) -> Result<()> {
        self.keys = columns
            .iter()
            .map(|column| {
                let mut key = String::new();
                string(&mut key, &column.name);
                key + ":"
            })
            .collect();
        if self.shape == JsonShape::Array {
            out.push('[');
        }
        Ok(())
    }

    fn row(
        &mut self,
        out: &mut String,
        _columns: &[Field],
        batch: &Batch,
        row: usize,
    ) -> Result<()> {
        if self.shape == JsonShape::Array {
            out.push_str(if self.rows > 0 { ",\n " } else { "" });
        }
        self.rows += 1;
        out.push('{');
        for (at, (key, vector)) in self.keys.iter().zip(&batch.columns).enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(key);
            cell(out, &Cell::of(vector, row));
        }
        out.push('}');
        if self.shape == JsonShape::Lines {
            out.push('\n');
        }
        Ok(())
    }

    fn end(&mut self, out: &mut String) -> Result<()> {
        if self.shape == JsonShape::Array {
            out.push_str("]\n");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::written;
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let text = written(&mut Json::new(JsonShape::Array));
        assert_eq!(
            text,
            "[{\"id\":9223372036854775807,\"price\":-12.30,\"name\":\"a \\\"b\\\", c\\nd\",\"raw\":\"\\\\x00ff\",\
             \"ok\":true,\"ratio\":0.5,\"day\":\"1970-01-01\",\"doc\":{\"a\": [1]}},\n \
             {\"id\":null,\"price\":null,\"name\":null,\"raw\":null,\"ok\":null,\"ratio\":null,\"day\":null,\"doc\":null}]\n"
        );
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn each_line_is_one_object() {
        let text = written(&mut Json::new(JsonShape::Lines));
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn control_characters_are_escaped() {
        let mut out = String::new();
        string(&mut out, "\u{1}é\u{7f}");
        assert_eq!(out, "\"\\u0001é\u{7f}\"");
    }
}
