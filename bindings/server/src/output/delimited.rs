//! Writes CSV (RFC 4180), TSV and TBL. Null is an empty field and the empty text is `""`, so that
//! an import restores both. TBL has no quotes and cannot represent text that contains its
//! delimiter.

use super::{Cell, RowFormat};
use nacredb::{Batch, Error, Field, Result};

/// Writer of delimited fields.
pub struct Delimited {
    delimiter: char,
    header: bool,
    quotes: bool,
    terminator: &'static str,
    cell: String,
}

impl Delimited {
    /// Comma-separated, with a header.
    pub fn csv() -> Delimited {
        Delimited {
            delimiter: ',',
            header: true,
            quotes: true,
            terminator: "\n",
            cell: String::new(),
        }
    }

    /// Tab-separated, with a header.
    pub fn tsv() -> Delimited {
        Delimited { delimiter: '\t', ..Delimited::csv() }
    }

    /// Pipe-separated with a pipe at the end, no header, no quotes.
    pub fn tbl() -> Delimited {
        Delimited {
            delimiter: '|',
            header: false,
            quotes: false,
            terminator: "|\n",
            cell: String::new(),
        }
    }

    fn field(&self, out: &mut String, text: &str, is_text: bool) -> Result<()> {
        let special =
            |c: char| c == self.delimiter || c == '\n' || c == '\r' || (c == '"' && self.quotes);
        if !text.contains(special) && (!is_text || !text.is_empty()) {
            out.push_str(text);
            return Ok(());
        }
        if !self.quotes {
            if text.is_empty() {
                return Ok(());
            }
            return Err(Error::unsupported(format!(
                "TBL cannot represent text that contains {:?} or a line break: {text:?}",
                self.delimiter
            ))
            .with_hint("export to CSV or Parquet"));
        }
        out.push('"');
        for (at, part) in text.split('"').enumerate() {
            if at > 0 {
                out.push_str("\"\"");
            }
            out.push_str(part);
        }
        out.push('"');
        Ok(())
    }
}

impl RowFormat for Delimited {
    fn begin(&mut self, out: &mut String, columns: &[Field]) -> Result<()> {
        if self.header {
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    out.push(self.delimiter);
                }
                self.field(out, &column.name, true)?;
            }
            out.push('\n');
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
        for (at, vector) in batch.columns.iter().enumerate() {
            if at > 0 {
                out.push(self.delimiter);
            }
            match Cell::of(vector, row) {
                Cell::Null => {}
                Cell::Text(text) | Cell::Json(text) => self.field(out, text, true)?,
                cell => {
                    let mut text = std::mem::take(&mut self.cell);
                    text.clear();
                    cell.push_text(&mut text);
                    self.field(out, &text, false)?;
                    self.cell = text;
                }
            }
        }
        out.push_str(self.terminator);
        Ok(())
    }

    fn end(&mut self, _out: &mut String) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{sample, written};
    use super::super::write_rows;
    use super::*;
    use crate::failure::Failure;

    #[test]
    fn csv_quotes_special_fields() {
        assert_eq!(
            written(&mut Delimited::csv()),
            "id,price,name,raw,ok,ratio,day,doc\n\
             9223372036854775807,-12.30,\"a \"\"b\"\", c\nd\",\\x00ff,true,0.5,1970-01-01,\"{\"\"a\"\": [1]}\"\n\
             ,,,,,,,\n"
        );
    }

    #[test]
    fn csv_crate_reads_the_output() {
        let text = written(&mut Delimited::csv());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().len(), 8);
        let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(&rows[0][2], "a \"b\", c\nd");
        assert!(rows[1].iter().all(str::is_empty));
    }

    #[test]
    fn empty_text_is_not_null() {
        let mut out = String::new();
        Delimited::csv().field(&mut out, "", true).unwrap();
        assert_eq!(out, "\"\"");
    }

    #[test]
    fn tbl_rejects_text_with_its_delimiter() {
        let (columns, batches) = sample();
        let (mut out, mut batches) = (Vec::new(), batches.into_iter());
        let refused =
            write_rows(&mut out, &mut Delimited::tbl(), &columns, &mut || Ok(batches.next()))
                .unwrap_err();
        let Failure::Error { error, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(error.kind(), nacredb::ErrorKind::Unsupported);
    }
}
