//! CSV, TSV and TBL. Quoting is known to the reader of a field, because an empty field is null
//! and a quoted empty field is the empty text.

use super::rows::{RowBuilder, match_names};
use super::{BATCH_ROWS, FileColumn, Source, TextOptions, Tick};
use crate::failure::file_error;
use crate::infer::Inference;
use nacredb::{Batch, DataType, Error, Result, TableSchema};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One record: its fields end to end, where each ends, and whether it was quoted.
#[derive(Default)]
struct Record {
    data: Vec<u8>,
    fields: Vec<(usize, bool)>,
    /// Line on which it begins, from 1.
    line: u64,
}

impl Record {
    fn end_field(&mut self, quoted: bool) {
        self.fields.push((self.data.len(), quoted));
    }

    /// The fields as text; an error when the bytes are not UTF-8.
    fn texts(&self) -> Result<impl ExactSizeIterator<Item = (&str, bool)>> {
        let invalid = || Error::corrupt("not UTF-8 text");
        let data = std::str::from_utf8(&self.data).map_err(|_| invalid())?;
        if self.fields.iter().any(|(end, _)| !data.is_char_boundary(*end)) {
            return Err(invalid());
        }
        let mut start = 0;
        Ok(self.fields.iter().map(move |(end, quoted)| {
            let text = &data[start..*end];
            start = *end;
            (text, *quoted)
        }))
    }
}

/// Splits bytes into records.
struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    delimiter: u8,
    quotes: bool,
    line: u64,
    /// Bytes taken from the input.
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote inside a quoted field: its end, or the first half of a doubled quote.
    Quote,
}

impl<R: Read> Reader<R> {
    const BUFFER: usize = 256 << 10;

    fn new(input: R, delimiter: u8, quotes: bool) -> Reader<R> {
        Reader { input, buffer: Vec::new(), at: 0, delimiter, quotes, line: 1, bytes: 0 }
    }

    /// Refills the empty buffer; false at the end.
    fn fill(&mut self) -> std::io::Result<bool> {
        self.at = 0;
        self.buffer.resize(Self::BUFFER, 0);
        let read = loop {
            match self.input.read(&mut self.buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.buffer.truncate(read);
        // A mark of byte order in front of everything is not data.
        if self.bytes == 0 && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        self.bytes += read as u64;
        Ok(read > 0)
    }

    /// Reads the next record; false at the end of the input.
    fn read(&mut self, record: &mut Record) -> Result<bool> {
        record.data.clear();
        record.fields.clear();
        record.line = self.line;
        let mut state = State::FieldStart;
        let mut quoted = false;
        loop {
            if self.at == self.buffer.len() && !self.fill().map_err(|e| Error::io(e.to_string()))? {
                return self.end(record, state, quoted);
            }
            let rest = &self.buffer[self.at..];
            let Some(&byte) = rest.first() else { continue };
            match state {
                State::FieldStart if byte == b'"' && self.quotes => {
                    state = State::Quoted;
                    quoted = true;
                    self.at += 1;
                }
                State::FieldStart | State::Plain => {
                    let delimiter = self.delimiter;
                    let length = rest.iter().position(|&b| b == delimiter || b == b'\n').unwrap_or(rest.len());
                    record.data.extend_from_slice(&rest[..length]);
                    state = State::Plain;
                    let Some(&stop) = rest.get(length) else {
                        self.at += length;
                        continue;
                    };
                    self.at += length + 1;
                    if stop == b'\n' {
                        self.line += 1;
                        drop_return(record);
                        record.end_field(quoted);
                        return Ok(true);
                    }
                    record.end_field(quoted);
                    state = State::FieldStart;
                    quoted = false;
                }
                State::Quoted => {
                    let length = rest.iter().position(|&b| b == b'"').unwrap_or(rest.len());
                    let text = &rest[..length];
                    self.line += text.iter().filter(|b| **b == b'\n').count() as u64;
                    record.data.extend_from_slice(text);
                    self.at += length;
                    if length < rest.len() {
                        self.at += 1;
                        state = State::Quote;
                    }
                }
                State::Quote => {
                    self.at += 1;
                    match byte {
                        b'"' => {
                            record.data.push(b'"');
                            state = State::Quoted;
                        }
                        b'\n' => {
                            self.line += 1;
                            record.end_field(true);
                            return Ok(true);
                        }
                        b'\r' => {}
                        _ if byte == self.delimiter => {
                            record.end_field(true);
                            state = State::FieldStart;
                            quoted = false;
                        }
                        _ => return Err(Error::corrupt("text after a closing quote")),
                    }
                }
            }
        }
    }

    fn end(&self, record: &mut Record, state: State, quoted: bool) -> Result<bool> {
        match state {
            State::Quoted => Err(Error::corrupt("a quote is opened and never closed")),
            State::FieldStart if record.fields.is_empty() => Ok(false),
            _ => {
                if state == State::Plain {
                    drop_return(record);
                }
                record.end_field(quoted);
                Ok(true)
            }
        }
    }
}

/// Lines may end in CR LF.
fn drop_return(record: &mut Record) {
    let start = record.fields.last().map_or(0, |(end, _)| *end);
    if record.data.len() > start && record.data.last() == Some(&b'\r') {
        record.data.pop();
    }
}

/// A CSV, TSV or TBL file.
pub struct DelimitedSource {
    path: PathBuf,
    reader: Reader<File>,
    delimiter: u8,
    tbl: bool,
    null: Option<String>,
    /// Names of the header.
    names: Option<Vec<String>>,
    /// Fields of every record; zero for an empty file.
    width: usize,
    /// The first record, when it is data.
    first: Option<Record>,
    size: u64,
    target: Option<(RowBuilder, Vec<usize>)>,
}

impl DelimitedSource {
    /// With quotes, and a header unless the options say otherwise.
    pub fn csv(path: &Path, delimiter: u8, options: &TextOptions, size: u64) -> Result<DelimitedSource> {
        DelimitedSource::open(path, delimiter, false, options, size)
    }

    /// Pipe-separated, one more pipe at the end of a line, no header.
    pub fn tbl(path: &Path, options: &TextOptions, size: u64) -> Result<DelimitedSource> {
        DelimitedSource::open(path, b'|', true, options, size)
    }

    fn open(path: &Path, delimiter: u8, tbl: bool, options: &TextOptions, size: u64) -> Result<DelimitedSource> {
        let file = File::open(path).map_err(|e| file_error(path, &e))?;
        let mut source = DelimitedSource {
            path: path.to_owned(),
            reader: Reader::new(file, delimiter, !tbl),
            delimiter,
            tbl,
            null: options.null.clone(),
            names: None,
            width: 0,
            first: None,
            size,
            target: None,
        };
        let mut record = Record::default();
        let found = source.reader.read(&mut record).map_err(|e| at_line(path, 1, e))?;
        if !found {
            return match tbl || options.no_header {
                true => Ok(source),
                false => Err(Error::corrupt(format!("{}: line 1: no header, the file is empty", path.display()))),
            };
        }
        if tbl && record.fields.len() > 1 && is_last_empty(&record) {
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

    /// The next record that counts, with the right number of fields.
    fn record(&mut self, record: &mut Record) -> Result<bool> {
        if let Some(first) = self.first.take() {
            *record = first;
            return Ok(true);
        }
        loop {
            let line = self.reader.line;
            if !self.reader.read(record).map_err(|e| at_line(&self.path, line, e))? {
                return Ok(false);
            }
            let fields = record.fields.len();
            if fields == self.width {
                return Ok(true);
            }
            if self.tbl && fields == self.width + 1 && is_last_empty(record) {
                record.fields.pop();
                return Ok(true);
            }
            // A blank line is no record where a record has several fields.
            if fields == 1 && record.data.is_empty() {
                continue;
            }
            let message = format!(
                "{}: line {line}: {fields} field{} where line 1 has {}",
                self.path.display(),
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

fn is_last_empty(record: &Record) -> bool {
    let before = record.fields.iter().rev().nth(1).map_or(0, |(end, _)| *end);
    record.data.len() == before
}

fn at_line(path: &Path, line: u64, error: Error) -> Error {
    error.context(format!("{}: line {line}", path.display()))
}

impl Source for DelimitedSource {
    fn describe(&mut self, tick: Tick<'_>) -> Result<Vec<FileColumn>> {
        // A reader of its own: this one stands where the rows begin.
        let options = TextOptions { no_header: self.names.is_none(), null: self.null.clone() };
        let mut pass = DelimitedSource::open(&self.path, self.delimiter, self.tbl, &options, self.size)?;
        let mut columns = vec![Inference::default(); self.width];
        let mut record = Record::default();
        let mut rows = 0;
        while pass.record(&mut record)? {
            let texts = record.texts().map_err(|e| at_line(&self.path, record.line, e))?;
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
            return Err(Error::corrupt(format!("{}: line 1: the file is empty", self.path.display()))
                .with_hint("create the table first to load an empty file into it"));
        }
        let names = self.names.clone().unwrap_or_default();
        let described = columns.iter().enumerate().map(|(at, column)| FileColumn {
            name: names.get(at).filter(|n| !n.is_empty()).cloned().unwrap_or_else(|| format!("column{}", at + 1)),
            data_type: if rows == 0 { DataType::TEXT } else { column.data_type() },
        });
        Ok(described.collect())
    }

    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        let columns: Vec<usize> = match &self.names {
            Some(names) => {
                let numbered = names.iter().enumerate();
                let names: Vec<String> = numbered
                    .map(|(at, n)| if n.is_empty() { format!("column{}", at + 1) } else { n.clone() })
                    .collect();
                match_names(schema, &names, &self.path)?
            }
            None if self.width == schema.columns.len() || self.width == 0 => (0..self.width).collect(),
            None => {
                return Err(Error::type_error(format!(
                    "{}: line 1: {} fields, table {} has {} columns",
                    self.path.display(),
                    self.width,
                    schema.name,
                    schema.columns.len()
                )));
            }
        };
        let present = (0..schema.columns.len()).map(|c| columns.contains(&c)).collect();
        if self.width > 0 {
            self.target = Some((RowBuilder::new(schema, present, &self.path)?, columns));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let Some((mut builder, columns)) = self.target.take() else { return Ok(None) };
        let mut record = Record::default();
        while builder.rows() < BATCH_ROWS && self.record(&mut record)? {
            self.fill_row(&record, &mut builder, &columns).map_err(|e| at_line(&self.path, record.line, e))?;
        }
        let batch = builder.take();
        self.target = Some((builder, columns));
        Ok(batch)
    }

    fn total(&self) -> u64 {
        self.size
    }

    fn done(&self) -> u64 {
        self.reader.bytes
    }
}

#[cfg(test)]
#[path = "delimited_tests.rs"]
mod tests;
