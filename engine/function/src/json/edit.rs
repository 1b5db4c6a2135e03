//! Changes of one value of a document. What a path does not find, and cannot add, changes nothing.

use super::path::{JsonPath, Step};
use super::select::{at, starts, whole};
use nacre_types::json::{Token, Tokens, quoted};
use nacre_types::{Error, Result};
use std::ops::Range;

/// What happens to the value that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaced; added to its object or array if it is missing.
    Set,
    /// Added if it is missing.
    Insert,
    /// Replaced if it is there.
    Replace,
    /// An array gets another last element; another value becomes the first of two.
    Append,
    /// A new element before it.
    InsertElement,
    /// Removed.
    Remove,
}

/// Changes a document in its normal form.
///
/// # Errors
/// `22023` if the path may name several values.
pub fn edit(document: &str, path: &JsonPath, how: Edit, value: &str) -> Result<String> {
    if !path.is_single() {
        let message = "the path of a change must not name several JSON values";
        return Err(Error::type_error(message).with_sqlstate("22023"));
    }
    let unchanged = || Ok(document.to_string());
    let Some((last, outer)) = path.steps.split_last() else {
        return Ok(match how {
            Edit::Set | Edit::Replace => value.to_string(),
            Edit::Append => appended(document, value)?,
            Edit::Insert | Edit::InsertElement | Edit::Remove => document.to_string(),
        });
    };
    let outer = JsonPath { steps: outer.to_vec() };
    let found = starts(document, &outer)?;
    let Some(container) = found.first() else { return unchanged() };
    let from = document.len() - container.len();
    let Some(place) = place(container, last)? else { return unchanged() };
    let text = |range: &Range<usize>| &document[from + range.start..from + range.end];
    let (range, new) = match (place, how) {
        (Place::There(part), Edit::Set | Edit::Replace) => (part.value, value.to_string()),
        (Place::There(part), Edit::Append) => {
            let new = appended(text(&part.value), value)?;
            (part.value, new)
        }
        (Place::There(part), Edit::InsertElement) if part.whole == part.value => {
            (part.whole.start..part.whole.start, format!("{value},"))
        }
        (Place::There(part), Edit::Remove) => (with_comma(container, part.whole), String::new()),
        (Place::Missing { end, empty, key }, Edit::Set | Edit::Insert) => {
            (end..end, added(empty, key, value))
        }
        (Place::Missing { end, empty, key: None }, Edit::InsertElement) => {
            (end..end, added(empty, None, value))
        }
        _ => return unchanged(),
    };
    Ok([&document[..from + range.start], &new, &document[from + range.end..]].concat())
}

/// A member of an object or an element of an array, as byte ranges.
struct Part {
    /// With its key.
    whole: Range<usize>,
    value: Range<usize>,
}

enum Place<'a> {
    There(Part),
    /// It could be added before the end of its container.
    Missing {
        end: usize,
        empty: bool,
        key: Option<&'a str>,
    },
}

/// Where a step leads from the container with which a text begins; `None` if it leads nowhere.
fn place<'a>(container: &str, step: &'a Step) -> Result<Option<Place<'a>>> {
    let mut tokens = Tokens::new(container);
    match tokens.next()? {
        Some(Token::ObjectStart) => {
            let Some(wanted) = step.key() else { return Ok(None) };
            let mut empty = true;
            while let Some(Token::Key(key)) = tokens.next()? {
                empty = false;
                let start = tokens.range().start;
                let found = key == wanted;
                tokens.next()?;
                let from = tokens.range().start;
                tokens.finish()?;
                let end = tokens.range().end;
                if found {
                    return Ok(Some(Place::There(Part { whole: start..end, value: from..end })));
                }
            }
            let end = tokens.range().start;
            Ok(Some(Place::Missing { end, empty, key: Some(wanted) }))
        }
        Some(Token::ArrayStart) => {
            let Some(index) = step.index() else { return Ok(None) };
            let mut elements = Vec::new();
            while !matches!(tokens.next()?, None | Some(Token::ArrayEnd)) {
                let start = tokens.range().start;
                tokens.finish()?;
                elements.push(start..tokens.range().end);
            }
            let (end, empty) = (tokens.range().start, elements.is_empty());
            Ok(at(index, elements.len()).map(|at| match elements.get(at) {
                Some(value) => Place::There(Part { whole: value.clone(), value: value.clone() }),
                None => Place::Missing { end, empty, key: None },
            }))
        }
        _ => Ok(None),
    }
}

/// A part with the comma after it, or else the one before it.
fn with_comma(container: &str, part: Range<usize>) -> Range<usize> {
    let bytes = container.as_bytes();
    if bytes.get(part.end) == Some(&b',') {
        return part.start..part.end + 1;
    }
    let before = part.start.checked_sub(1).filter(|before| bytes[*before] == b',');
    before.unwrap_or(part.start)..part.end
}

/// What is written before the end of a container to add a value.
fn added(empty: bool, key: Option<&str>, value: &str) -> String {
    let comma = if empty { "" } else { "," };
    match key {
        Some(key) => format!("{comma}{}:{value}", quoted(key)),
        None => format!("{comma}{value}"),
    }
}

/// An array with one more element.
fn appended(array: &str, value: &str) -> Result<String> {
    let array = whole(array)?;
    Ok(match array.strip_suffix(']').filter(|_| array.starts_with('[')) {
        Some("[") => format!("[{value}]"),
        Some(elements) => format!("{elements},{value}]"),
        None => format!("[{array},{value}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Edit, edit};
    use crate::json::path::JsonPath;
    use nacre_types::json::is_normal;

    #[test]
    fn changes() {
        let document = r#"{"a":1,"b":[2,{"c":3}],"d":{}}"#;
        for (how, path, result) in [
            (Edit::Set, "a", r#"{"a":9,"b":[2,{"c":3}],"d":{}}"#),
            (Edit::Set, "$.e", r#"{"a":1,"b":[2,{"c":3}],"d":{},"e":9}"#),
            (Edit::Set, "$.d.\"e\"", r#"{"a":1,"b":[2,{"c":3}],"d":{"e":9}}"#),
            (Edit::Set, "$.b[7]", r#"{"a":1,"b":[2,{"c":3},9],"d":{}}"#),
            (Edit::Set, "$.b[-3]", document),
            (Edit::Set, "$.x.y", document),
            (Edit::Set, "$.a.y", document),
            (Edit::Set, "$", "9"),
            (Edit::Set, "/b/-", r#"{"a":1,"b":[2,{"c":3},9],"d":{}}"#),
            (Edit::Insert, "a", document),
            (Edit::Insert, "{b,2}", r#"{"a":1,"b":[2,{"c":3},9],"d":{}}"#),
            (Edit::Replace, "x", document),
            (Edit::Replace, "/b/1/c", r#"{"a":1,"b":[2,{"c":9}],"d":{}}"#),
            (Edit::Append, "b", r#"{"a":1,"b":[2,{"c":3},9],"d":{}}"#),
            (Edit::Append, "a", r#"{"a":[1,9],"b":[2,{"c":3}],"d":{}}"#),
            (Edit::Append, "x", document),
            (Edit::InsertElement, "$.b[0]", r#"{"a":1,"b":[9,2,{"c":3}],"d":{}}"#),
            (Edit::InsertElement, "$.b[last]", r#"{"a":1,"b":[2,9,{"c":3}],"d":{}}"#),
            (Edit::InsertElement, "$.b[5]", r#"{"a":1,"b":[2,{"c":3},9],"d":{}}"#),
            (Edit::InsertElement, "$.a", document),
            (Edit::Remove, "a", r#"{"b":[2,{"c":3}],"d":{}}"#),
            (Edit::Remove, "d", r#"{"a":1,"b":[2,{"c":3}]}"#),
            (Edit::Remove, "$.b[1].c", r#"{"a":1,"b":[2,{}],"d":{}}"#),
            (Edit::Remove, "$.b[-1]", r#"{"a":1,"b":[2],"d":{}}"#),
            (Edit::Remove, "$.b[2]", document),
        ] {
            let changed = edit(document, &JsonPath::parse(path).unwrap(), how, "9").unwrap();
            assert_eq!(changed, result, "{how:?} {path}");
            assert!(is_normal(&changed));
        }
        let several = edit(document, &JsonPath::parse("$.*").unwrap(), Edit::Set, "9");
        assert_eq!(several.unwrap_err().sqlstate(), "22023");
    }
}
