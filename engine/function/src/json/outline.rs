//! The values of a document as a list, for the functions that make rows of it.

use super::convert::type_name;
use super::select::{is_container, text};
use nacre_types::json::{Token, Tokens, quoted, unquoted};
use nacre_types::{DataType, Result, Value};
use std::fmt::Write;
use std::ops::Range;

/// One value.
#[derive(Debug)]
struct Entry {
    /// Its key in an object, with quotes; empty elsewhere.
    key: Range<u32>,
    value: Range<u32>,
    /// The entry of its container; its own for the document.
    parent: u32,
    /// Its place in its container, from 0.
    place: u32,
}

/// The values of a document, each before those in it.
#[derive(Debug)]
pub struct Outline {
    text: String,
    /// Notation of the path to the document.
    root: String,
    entries: Vec<Entry>,
    /// The entries that become rows.
    rows: Vec<u32>,
}

/// Which values of a document become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The members or elements of the document; a scalar itself.
    Children,
    /// The document, and all values in it.
    Tree,
}

/// What a column shows of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The key of a member, the index of an element.
    Key,
    /// The value.
    Value,
    /// Its text, as of `->>`.
    Text,
    /// The name of its type, as of `json_type`.
    Type,
    /// The value, if it is a scalar.
    Atom,
    /// Its number in the document.
    Id,
    /// The number of its container.
    Parent,
    /// The path to it.
    FullKey,
    /// The path to its container.
    Path,
    /// The number of the row, from 1.
    Ordinal,
}

impl Part {
    /// The name of the column.
    pub fn name(self) -> &'static str {
        match self {
            Part::Key => "key",
            Part::Value | Part::Text => "value",
            Part::Type => "type",
            Part::Atom => "atom",
            Part::Id => "id",
            Part::Parent => "parent",
            Part::FullKey => "fullkey",
            Part::Path => "path",
            Part::Ordinal => "ordinality",
        }
    }

    /// The type of the column.
    pub fn data_type(self) -> DataType {
        match self {
            Part::Value | Part::Atom => DataType::Json,
            Part::Id | Part::Parent | Part::Ordinal => DataType::Int64,
            Part::Key | Part::Text | Part::Type | Part::FullKey | Part::Path => DataType::TEXT,
        }
    }

    /// Whether the column may be null.
    pub fn is_nullable(self) -> bool {
        matches!(self, Part::Key | Part::Text | Part::Atom | Part::Parent)
    }
}

impl Outline {
    /// Reads a document in its normal form. `root` is the notation of the path that led to it.
    pub fn new(text: &str, root: &str, extent: Extent) -> Result<Outline> {
        let mut outline =
            Outline { text: text.into(), root: root.into(), entries: Vec::new(), rows: Vec::new() };
        let narrow = |range: Range<usize>| range.start as u32..range.end as u32;
        let mut tokens = Tokens::new(text);
        // The open containers, each with the number of values in it.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut key = 0..0;
        while let Some(token) = tokens.next()? {
            match token {
                Token::Key(_) => {
                    key = narrow(tokens.range());
                    continue;
                }
                Token::ObjectEnd | Token::ArrayEnd => {
                    if let Some((entry, _)) = open.pop() {
                        outline.entries[entry as usize].value.end = tokens.range().end as u32;
                    }
                    continue;
                }
                _ => {}
            }
            let start = tokens.range().start;
            let number = outline.entries.len() as u32;
            let (parent, place) = match open.last_mut() {
                Some((parent, count)) => {
                    *count += 1;
                    (*parent, *count - 1)
                }
                None => (number, 0),
            };
            let starts = matches!(token, Token::ObjectStart | Token::ArrayStart);
            match extent {
                Extent::Children if starts && open.len() == 1 => tokens.finish()?,
                _ if starts => open.push((number, 0)),
                _ => {}
            }
            let (key, value) = (std::mem::take(&mut key), narrow(start..tokens.range().end));
            let is_row = extent == Extent::Tree || number > 0 || !starts;
            outline.rows.extend(is_row.then_some(number));
            outline.entries.push(Entry { key, value, parent, place });
        }
        Ok(outline)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.text.len() + self.entries.len() * size_of::<Entry>() + self.rows.len() * 4
    }

    /// What a column shows of a row.
    pub fn part(&self, row: usize, part: Part) -> Value {
        let value = self.value(row);
        let shown = |text: Option<String>| text.map_or(Value::Null, Value::Text);
        match part {
            Part::Key => shown(self.key(row)),
            Part::Value => Value::Json(value.to_string()),
            Part::Text => shown(text(value).map(Into::into)),
            Part::Type => shown(Some(type_name(value, false).into())),
            Part::Atom if is_container(value) => Value::Null,
            Part::Atom => Value::Json(value.to_string()),
            Part::Id => Value::Int(self.rows[row].into()),
            Part::Parent => self.parent(row).map_or(Value::Null, |at| Value::Int(at.into())),
            Part::FullKey => shown(Some(self.path(row, false))),
            Part::Path => shown(Some(self.path(row, true))),
            Part::Ordinal => Value::Int(row as i64 + 1),
        }
    }

    fn entry(&self, row: usize) -> &Entry {
        &self.entries[self.rows[row] as usize]
    }

    fn slice(&self, range: &Range<u32>) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }

    /// The value of a row.
    fn value(&self, row: usize) -> &str {
        self.slice(&self.entry(row).value)
    }

    /// The number of the container of a row's value; `None` for the document.
    fn parent(&self, row: usize) -> Option<u32> {
        Some(self.entry(row).parent).filter(|parent| *parent != self.rows[row])
    }

    /// The key of a member, the index of an element; `None` for the document.
    fn key(&self, row: usize) -> Option<String> {
        self.parent(row)?;
        let entry = self.entry(row);
        Some(match entry.key.is_empty() {
            true => entry.place.to_string(),
            false => unquoted(self.slice(&entry.key)).into_owned(),
        })
    }

    /// The path to a row's value, or to its container.
    fn path(&self, row: usize, of_container: bool) -> String {
        let mut at = self.rows[row];
        let mut steps = Vec::new();
        loop {
            let entry = &self.entries[at as usize];
            if entry.parent == at {
                break;
            }
            steps.push(entry);
            at = entry.parent;
        }
        let skipped = usize::from(of_container && !steps.is_empty());
        let mut path = self.root.clone();
        for entry in steps[skipped..].iter().rev() {
            if entry.key.is_empty() {
                let _ = write!(path, "[{}]", entry.place);
                continue;
            }
            let key = unquoted(self.slice(&entry.key));
            let is_plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            match is_plain && !key.is_empty() {
                true => path.extend([".", &key]),
                false => path.extend([".", &quoted(&key)]),
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::{Extent, Outline};

    #[test]
    fn rows_of_a_document() {
        let text = r#"{"a":[1,{"b c":null}],"d":"x"}"#;
        let tree = Outline::new(text, "$", Extent::Tree).unwrap();
        let shown: Vec<_> = (0..tree.rows())
            .map(|row| (tree.path(row, false), tree.value(row), tree.key(row), tree.parent(row)))
            .collect();
        let key = |key: &str| Some(key.to_string());
        assert_eq!(
            shown,
            [
                ("$".into(), text, None, None),
                ("$.a".into(), r#"[1,{"b c":null}]"#, key("a"), Some(0)),
                ("$.a[0]".into(), "1", key("0"), Some(1)),
                ("$.a[1]".into(), r#"{"b c":null}"#, key("1"), Some(1)),
                ("$.a[1].\"b c\"".into(), "null", key("b c"), Some(3)),
                ("$.d".into(), "\"x\"", key("d"), Some(0)),
            ]
        );
        assert_eq!(tree.path(4, true), "$.a[1]");
        let each = Outline::new(text, "$.x", Extent::Children).unwrap();
        let shown: Vec<_> =
            (0..each.rows()).map(|row| (each.path(row, false), each.rows[row])).collect();
        assert_eq!(shown, [("$.x.a".into(), 1), ("$.x.d".into(), 2)]);
        let scalar = Outline::new("7", "$", Extent::Children).unwrap();
        assert_eq!((scalar.rows(), scalar.value(0), scalar.key(0)), (1, "7", None));
        assert_eq!(Outline::new("[]", "$", Extent::Children).unwrap().rows(), 0);
    }
}
