//! Reads NDJSON, one JSON object per line. Numbers are read as text and keep all their digits.
//! Nested objects and arrays become JSON values.

use super::definition::{BATCH_ROWS, FileColumn, Source, Tick};
use super::input::{Input, InputReader};
use super::rows::RowBuilder;
use crate::failure::file_error;
use crate::infer::Inference;
use nacredb::{Batch, Error, Result, TableSchema};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

/// An object's members in the order of the text, with unparsed values.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one JSON object per line")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    if members.iter().any(|(other, _)| *other == name) {
                        return Err(M::Error::custom(format!("duplicate member {name:?}")));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A string, borrowed if it contains no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A member's value.
enum Member<'a> {
    Null,
    /// The text of a number or a boolean.
    Word(&'a str),
    String(Cow<'a, str>),
    /// An object or an array.
    Json(&'a str),
}

fn member(raw: &RawValue) -> Result<Member<'_>> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Member::Null,
        Some(b'"') => {
            let Name(text) =
                serde_json::from_str(text).map_err(|e| Error::corrupt(e.to_string()))?;
            Member::String(text)
        }
        Some(b'{' | b'[') => Member::Json(text),
        _ => Member::Word(text),
    })
}

struct Lines {
    input: Input,
    reader: BufReader<InputReader>,
    text: Vec<u8>,
    line: u64,
    bytes: u64,
}

impl Lines {
    fn of(input: &Input) -> Lines {
        let reader = BufReader::with_capacity(256 << 10, input.reader());
        Lines { input: input.clone(), reader, text: Vec::new(), line: 0, bytes: 0 }
    }

    /// Returns the next object's members, skipping blank lines, or `None` at the end.
    fn next(&mut self) -> Result<Option<Members<'_>>> {
        loop {
            self.text.clear();
            let read = self
                .reader
                .read_until(b'\n', &mut self.text)
                .map_err(|e| file_error(self.input.path(), &e))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.bytes += read as u64;
            if !self.text.trim_ascii().is_empty() {
                break;
            }
        }
        let members = serde_json::from_slice(self.text.trim_ascii_end()).map_err(|error| {
            let text = error.to_string();
            // Drop the position from the message: it counts within this line.
            let what = text.split(" at line ").next().unwrap_or_default();
            Error::corrupt(format!("{}: column {}: {what}", self.place(), error.column()))
        })?;
        Ok(Some(members))
    }

    fn place(&self) -> String {
        format!("{}: line {}", self.input.path().display(), self.line)
    }
}

/// Source of an NDJSON file.
pub struct NdjsonSource {
    lines: Lines,
    builder: Option<RowBuilder>,
    /// Column index by lower-case name.
    columns: HashMap<String, usize>,
}

impl NdjsonSource {
    /// Creates a source that reads the input from its beginning.
    pub fn new(input: &Input) -> NdjsonSource {
        NdjsonSource { lines: Lines::of(input), builder: None, columns: HashMap::new() }
    }
}

fn fill_row(
    members: &Members<'_>,
    builder: &mut RowBuilder,
    columns: &HashMap<String, usize>,
) -> Result<()> {
    let mut found = vec![None; builder.schema().columns.len()];
    for (name, raw) in &members.0 {
        let at = columns.get(&**name).or_else(|| columns.get(&name.to_ascii_lowercase()));
        match at {
            Some(at) if found[*at].replace(*raw).is_some() => {
                return Err(Error::corrupt(format!("duplicate member {name:?}")));
            }
            Some(_) => {}
            None => {
                return Err(Error::not_found(format!(
                    "table {} has no column {name:?}",
                    builder.schema().name
                )));
            }
        }
    }
    for (column, raw) in found.into_iter().enumerate() {
        let Some(raw) = raw else {
            builder.default(column)?;
            continue;
        };
        match member(raw)? {
            Member::Null => builder.null(column)?,
            Member::Word(text) | Member::Json(text) => builder.text(column, text)?,
            Member::String(_)
                if builder.schema().columns[column].data_type == nacredb::DataType::Json =>
            {
                builder.text(column, raw.get())?;
            }
            Member::String(text) => builder.text(column, &text)?,
        }
    }
    builder.end_row();
    Ok(())
}

impl Source for NdjsonSource {
    fn describe(&mut self, tick: Tick<'_>) -> Result<Vec<FileColumn>> {
        let mut names: Vec<String> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        let mut columns: Vec<Inference> = Vec::new();
        let mut lines = Lines::of(&self.lines.input);
        let mut rows = 0u64;
        while let Some(members) = lines.next()? {
            let mut problem = None;
            for (name, raw) in &members.0 {
                let at = match index.get(&**name) {
                    Some(at) => *at,
                    None => {
                        let at = *index.entry(name.to_ascii_lowercase()).or_insert(columns.len());
                        if at == columns.len() {
                            columns.push(Inference::default());
                            names.push(name.to_string());
                        }
                        index.insert(name.to_string(), at);
                        at
                    }
                };
                match member(raw) {
                    Ok(Member::Null) => {}
                    Ok(Member::Word(text)) => columns[at].observe(text),
                    Ok(Member::String(text)) => columns[at].observe_string(&text),
                    Ok(Member::Json(_)) => columns[at].observe_json(),
                    Err(error) => problem = Some(error),
                }
            }
            if let Some(error) = problem {
                return Err(error.context(lines.place()));
            }
            rows += 1;
            if rows.is_multiple_of(BATCH_ROWS as u64) {
                tick(lines.bytes, rows);
            }
        }
        if columns.is_empty() {
            return Err(Error::corrupt(format!(
                "{}: line 1: the file contains no object with members",
                self.lines.input.path().display()
            )));
        }
        let typed = names.into_iter().zip(&columns);
        Ok(typed.map(|(name, column)| FileColumn { name, data_type: column.data_type() }).collect())
    }

    fn bind(&mut self, schema: &Arc<TableSchema>) -> Result<()> {
        self.columns = schema
            .columns
            .iter()
            .enumerate()
            .map(|(at, c)| (c.name.to_ascii_lowercase(), at))
            .collect();
        self.builder = Some(RowBuilder::new(
            schema,
            vec![true; schema.columns.len()],
            self.lines.input.path(),
        )?);
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(builder) = &mut self.builder else { return Ok(None) };
        while builder.rows() < BATCH_ROWS {
            let Some(members) = self.lines.next()? else { break };
            if let Err(error) = fill_row(&members, builder, &self.columns) {
                return Err(error.context(self.lines.place()));
            }
        }
        Ok(builder.take())
    }

    fn total(&self) -> u64 {
        self.lines.input.size()
    }

    fn done(&self) -> u64 {
        self.lines.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{rows, schema, temp};
    use super::super::{Input, TextOptions, open};
    use super::*;
    use crate::args::FileFormat;
    use nacredb::{DataType, ErrorKind, Value};

    fn source(text: &str) -> Box<dyn Source> {
        let file = temp(".ndjson", text.as_bytes());
        open(&Input::open(&file.0).unwrap(), FileFormat::Ndjson, &TextOptions::default()).unwrap()
    }

    #[test]
    fn objects_become_rows() {
        let text = "{\"id\": 9223372036854775807, \"name\": \"a\\\"b\", \"doc\": {\"x\": 1}}\n\n{\"ID\":1,\"on\":true}\n";
        let file = temp(".ndjson", text.as_bytes());
        let mut source =
            open(&Input::open(&file.0).unwrap(), FileFormat::Ndjson, &TextOptions::default())
                .unwrap();
        let columns = source.describe(&|_, _| ()).unwrap();
        let described: Vec<(&str, DataType)> =
            columns.iter().map(|c| (c.name.as_str(), c.data_type)).collect();
        let expected = [
            ("id", DataType::Int64),
            ("name", DataType::TEXT),
            ("doc", DataType::Json),
            ("on", DataType::Boolean),
        ];
        assert_eq!(described, expected);
        source.bind(&schema(&described)).unwrap();
        let expected = [
            [
                Value::Int(i64::MAX),
                Value::Text("a\"b".into()),
                Value::Json("{\"x\":1}".into()),
                Value::Null,
            ],
            [Value::Int(1), Value::Null, Value::Null, Value::Boolean(true)],
        ];
        assert_eq!(rows(&mut *source).unwrap(), expected);
    }

    #[test]
    fn errors_name_the_line() {
        let table = schema(&[("id!", DataType::Int64)]);
        for (text, kind, part) in [
            ("{\"id\":1}\n{\"id\":", ErrorKind::Corrupt, "line 2"),
            ("[1]\n", ErrorKind::Corrupt, "one JSON object per line"),
            ("{\"id\":1}{\"id\":2}\n", ErrorKind::Corrupt, "line 1"),
            ("{\"id\":1.5}\n", ErrorKind::Type, "line 1: column id"),
            ("{\"id\":1}\n{}\n", ErrorKind::Constraint, "line 2"),
            ("{\"id\":1,\"x\":2}\n", ErrorKind::NotFound, "no column \"x\""),
            ("{\"id\":1,\"id\":2}\n", ErrorKind::Corrupt, "duplicate member"),
            ("{\"id\":1,\"ID\":2}\n", ErrorKind::Corrupt, "line 1: duplicate member \"ID\""),
        ] {
            let mut source = source(text);
            source.bind(&table).unwrap();
            let error = rows(&mut *source).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }
}
