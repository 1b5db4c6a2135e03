//! Splits bytes into records: handles quotes, doubled quotes, line ends and the byte order mark,
//! but no types.
//!
//! The `csv` crate does not report whether a field was quoted, which distinguishes the empty text
//! from null. The tests compare this reader with that crate.

use nacredb::{Error, Result};
use std::io::Read;

/// One record.
#[derive(Default)]
pub struct Record {
    /// The fields' bytes, concatenated.
    pub data: Vec<u8>,
    /// End of each field in `data`, and whether the field was quoted.
    pub fields: Vec<(usize, bool)>,
    /// Line on which the record begins, from 1.
    pub line: u64,
}

impl Record {
    /// Whether the last field is empty.
    pub fn is_last_empty(&self) -> bool {
        let before = self.fields.iter().rev().nth(1).map_or(0, |(end, _)| *end);
        self.data.len() == before
    }

    fn end_field(&mut self, quoted: bool) {
        self.fields.push((self.data.len(), quoted));
    }

    /// Returns each field's text and whether it was quoted. Fails if the bytes are not UTF-8.
    pub fn texts(&self) -> Result<impl ExactSizeIterator<Item = (&str, bool)>> {
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
pub struct Reader<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    delimiter: u8,
    quotes: bool,
    /// Line of the next record, from 1.
    pub line: u64,
    /// Number of bytes read from the input.
    pub bytes: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// After a quote in a quoted field: either the closing quote or the first of a doubled quote.
    Quote,
}

impl<R: Read> Reader<R> {
    const BUFFER: usize = 256 << 10;

    /// Creates a reader of delimited fields, with or without quoting.
    pub fn new(input: R, delimiter: u8, quotes: bool) -> Reader<R> {
        Reader { input, buffer: Vec::new(), at: 0, delimiter, quotes, line: 1, bytes: 0 }
    }

    /// Refills the buffer, all of which has been consumed. Returns false at the end of the input.
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
        // Skip a byte order mark at the start of the input.
        if self.bytes == 0 && self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        self.bytes += read as u64;
        Ok(read > 0)
    }

    /// Reads the next record. Returns false at the end of the input.
    pub fn read(&mut self, record: &mut Record) -> Result<bool> {
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
                    let length = rest
                        .iter()
                        .position(|&b| b == delimiter || b == b'\n')
                        .unwrap_or(rest.len());
                    record.data.extend_from_slice(&rest[..length]);
                    state = State::Plain;
                    let Some(&stop) = rest.get(length) else {
                        self.at += length;
                        continue;
                    };
                    self.at += length + 1;
                    if stop == b'\n' {
                        self.line += 1;
                        drop_carriage_return(record);
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
            State::Quoted => Err(Error::corrupt("unterminated quoted field")),
            State::FieldStart if record.fields.is_empty() => Ok(false),
            _ => {
                if state == State::Plain {
                    drop_carriage_return(record);
                }
                record.end_field(quoted);
                Ok(true)
            }
        }
    }
}

/// Removes the CR of a CR LF line end from the last field.
fn drop_carriage_return(record: &mut Record) {
    let start = record.fields.last().map_or(0, |(end, _)| *end);
    if record.data.len() > start && record.data.last() == Some(&b'\r') {
        record.data.pop();
    }
}
