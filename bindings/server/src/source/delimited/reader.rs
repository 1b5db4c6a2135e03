//! Bytes to records: quotes, doubled quotes, line ends, the mark of byte order. Knows no types.
//!
//! A reader of our own because it must tell whether a field was quoted: that is the difference between
//! null and the empty text, and the `csv` crate does not pass it on. The tests hold it against that crate.

use nacredb::{Error, Result};
use std::io::Read;

/// One record: its fields end to end, where each ends, and whether it was quoted.
#[derive(Default)]
pub struct Record {
    pub data: Vec<u8>,
    pub fields: Vec<(usize, bool)>,
    /// Line on which it begins, from 1.
    pub line: u64,
}

impl Record {
    /// Whether the last field has no text.
    pub fn is_last_empty(&self) -> bool {
        let before = self.fields.iter().rev().nth(1).map_or(0, |(end, _)| *end);
        self.data.len() == before
    }

    fn end_field(&mut self, quoted: bool) {
        self.fields.push((self.data.len(), quoted));
    }

    /// The fields as text; an error when the bytes are not UTF-8.
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
    /// Bytes taken from the input.
    pub bytes: u64,
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

    /// Records of fields between delimiters, with or without quotes.
    pub fn new(input: R, delimiter: u8, quotes: bool) -> Reader<R> {
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
