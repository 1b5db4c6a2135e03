//! Reads CSV, TSV and TBL. Tracks whether each field was quoted: an empty field is null, a quoted
//! empty field is the empty text.

mod reader;

use super::definition::{BATCH_ROWS, FileColumn, Source, TextOptions, Tick};
use super::input::{Input, InputReader};
use super::rows::{RowBuilder, match_names};
use crate::infer::Inference;
use nacredb::{Batch, DataType, Error, Result, TableSchema};
use reader::{Reader, Record};
use std::path::Path;
use std::sync::Arc;

/// Source of a CSV, TSV or TBL file.
pub struct DelimitedSource {
    input: Input,
    reader: Reader<InputReader>,
    delimiter: u8,
    tbl: bool,
    null: Option<String>,
    /// Column names of the header line.
    names: Option<Vec<String>>,
    /// Number of fields per record; 0 for an empty file.
    width: usize,
    /// The first record, if it is data and has not been returned yet.
    first: Option<Record>,
    target: Option<(RowBuilder, Vec<usize>)>,
}

impl DelimitedSource {
    /// Opens a file with quoting, and with a header line unless the options exclude it.
    pub fn csv(input: &Input, delimiter: u8, options: &TextOptions) -> Result<DelimitedSource> {
        DelimitedSource::open(input, delimiter, false, options)
    }

    /// Opens a pipe-separated file, in which a pipe may end each line, without a header.
    pub fn tbl(input: &Input, options: &TextOptions) -> Result<DelimitedSource> {
        DelimitedSource::open(input, b'|', true, options)
    }

    fn open(
        input: &Input,
        delimiter: u8,
        tbl: bool,
        options: &TextOptions,
    ) -> Result<DelimitedSource> {
        let path = input.path();
        let mut source = DelimitedSource {
            input: input.clone(),
            reader: Reader::new(input.reader(), delimiter, !tbl),
            delimiter,
            tbl,
            null: options.null.clone(),
            names: None,
            width: 0,
            first: None,
            target: None,
        };
        let mut record = Record::default();
        let found = source.reader.read(&mut record).map_err(|e| at_line(path, 1, e))?;
        if !found {
            return match tbl || options.no_header {
                true => Ok(source),
                false => Err(Error::corrupt(format!(
                    "{}: line 1: the file is empty and has no header",
                    path.display()
                ))),
            };
        }
        if tbl && record.fields.len() > 1 && record.is_last_empty() {
            record.fields.pop();
        }
        source.width = record.fields.len();
        if tbl || options.no_header {
            source.first = Some(record);
        } else {
            let texts = record.texts().map_err(|e| at_line(path, 1, e))?;
            source.names = Some(texts.map(|(text, _)| text.trim().to_owned()).collect());
        }
        Ok(source)
    }

    /// Reads the next record that is not blank and checks its number of fields. Returns false at
    /// the end.
    fn record(&mut self, record: &mut Record) -> Result<bool> {
        if let Some(first) = self.first.take() {
            *record = first;
            return Ok(true);
        }
        loop {
            let line = self.reader.line;
            if !self.reader.read(record).map_err(|e| at_line(self.input.path(), line, e))? {
                return Ok(false);
            }
            let fields = record.fields.len();
            if fields == self.width {
                return Ok(true);
            }
            if self.tbl && fields == self.width + 1 && record.is_last_empty() {
                record.fields.pop();
                return Ok(true);
            }
            // Skip a blank line. With one field per record it would be a null, and was returned
            // above.
            if fields == 1 && record.data.is_empty() {
                continue;
            }
            let message = format!(
                "{}: line {line}: {fields} field{} where line 1 has {}",
                self.input.path().display(),
                if fields == 1 { "" } else { "s" },
                self.width
            );
            return Err(Error::corrupt(message));
        }
    }

    fn fill_row(&self, record: &Record, builder: &mut RowBuilder, columns: &[usize]) -> Result<()> {
        for ((text, quoted), &column) in record.texts()?.zip(columns) {
            let empty = !quoted && (text.is_empty() || self.null.as_deref() == Some(text));
            if !empty {
                builder.text(column, text)?;
                continue;
            }
            let definition = &builder.schema().columns[column];
            if !definition.nullable && definition.data_type.is_text() && text.is_empty() {
                builder.text(column, "")?;
            } else {
                builder.null(column)?;
            }
        }
        builder.end_row();
        Ok(())
    }
}

fn at_line(path: &Path, line: u64, error: Error) -> Error {
    error.context(format!("{}: line {line}", path.display()))
}

impl Source for DelimitedSource {
    fn describe(&mut self, tick: Tick<'_>) -> Result<Vec<FileColumn>> {
        // Use a separate reader: `self` stays at the first row.
        let options = TextOptions { no_header: self.names.is_none(), null: self.null.clone() };
        let mut pass = DelimitedSource::open(&self.input, self.delimiter, self.tbl, &options)?;
        let mut columns = vec![Inference::default(); self.width];
        let mut record = Record::default();
        let mut rows = 0;
        while pass.record(&mut record)? {
            let texts = record.texts().map_err(|e| at_line(self.input.path(), record.line, e))?;
            for ((text, quoted), column) in texts.zip(&mut columns) {
                if quoted && text.is_empty() {
                    column.observe_string(text);
                } else if !text.is_empty() && (quoted || self.null.as_deref() != Some(text)) {
                    column.observe(text);
                }
            }
            rows += 1;
            if rows % BATCH_ROWS as u64 == 0 {
                tick(pass.reader.bytes, rows);
            }
        }
        if columns.is_empty() {
            return Err(Error::corrupt(format!(
                "{}: line 1: the file is empty",
                self.input.path().display()
            ))
            .with_hint("create the table first to load an empty file into it"));
        }
        let names = self.names.clone().unwrap_or_default();
        let described = columns.iter().enumerate().map(|(at, column)| FileColumn {
            name: names
                .get(at)
                .filter(|n| !n.is_empty())
                .cloned()
                .unwrap_or_else(|| format!("column{}", at + 1)),
            data_type: if rows == 0 { DataType::TEXT } else { column.data_type() },
        });
        Ok(described.collect())
    }

    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        let columns: Vec<usize> = match &self.names {
            Some(names) => {
                let numbered = names.iter().enumerate();
                let names: Vec<String> = numbered
                    .map(
                        |(at, n)| {
                            if n.is_empty() { format!("column{}", at + 1) } else { n.clone() }
                        },
                    )
                    .collect();
                match_names(schema, &names, self.input.path())?
            }
            None if self.width == schema.columns.len() || self.width == 0 => {
                (0..self.width).collect()
            }
            None => {
                return Err(Error::type_error(format!(
                    "{}: line 1: {} fields, table {} has {} columns",
                    self.input.path().display(),
                    self.width,
                    schema.name,
                    schema.columns.len()
                )));
            }
        };
        let present = (0..schema.columns.len()).map(|c| columns.contains(&c)).collect();
        if self.width > 0 {
            self.target = Some((RowBuilder::new(schema, present, self.input.path())?, columns));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let Some((mut builder, columns)) = self.target.take() else { return Ok(None) };
        let mut record = Record::default();
        while builder.rows() < BATCH_ROWS && self.record(&mut record)? {
            self.fill_row(&record, &mut builder, &columns)
                .map_err(|e| at_line(self.input.path(), record.line, e))?;
        }
        let batch = builder.take();
        self.target = Some((builder, columns));
        Ok(batch)
    }

    fn total(&self) -> u64 {
        self.input.size()
    }

    fn done(&self) -> u64 {
        self.reader.bytes
    }
}

#[cfg(test)]
mod tests;
