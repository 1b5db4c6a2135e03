//! The values that a path names.
//!
//! A step passes on where a value begins; only that of the last one is read to its end.

use super::path::{JsonPath, Step};
use nacre_types::Result;
use nacre_types::json::{Token, Tokens, unquoted};
use std::borrow::Cow;

/// The first value that a path names.
pub fn first<'a>(document: &'a str, path: &JsonPath) -> Result<Option<&'a str>> {
    match starts(document, path)?.first() {
        Some(start) => whole(start).map(Some),
        None => Ok(None),
    }
}

/// All values that a path names, in the order of the document.
pub fn every<'a>(document: &'a str, path: &JsonPath) -> Result<Vec<&'a str>> {
    starts(document, path)?.into_iter().map(whole).collect()
}

/// The text from each value that a path names to the end of the document.
pub(super) fn starts<'a>(document: &'a str, path: &JsonPath) -> Result<Vec<&'a str>> {
    let mut values = vec![document];
    for step in &path.steps {
        let mut inside = Vec::new();
        for value in values {
            enter(value, step, &mut inside)?;
        }
        values = inside;
    }
    Ok(values)
}

/// The value with which a text begins.
pub(super) fn whole(start: &str) -> Result<&str> {
    Ok(Tokens::new(start).value()?.unwrap_or_default())
}

/// Whether a value is an object or an array.
pub fn is_container(value: &str) -> bool {
    value.starts_with(['{', '['])
}

/// The text of a JSON value: the characters of a string, other values as they are written; `None`
/// for null.
pub fn text(value: &str) -> Option<Cow<'_, str>> {
    match value.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => Some(unquoted(value)),
        _ => Some(Cow::Borrowed(value)),
    }
}

fn enter<'a>(value: &'a str, step: &Step, out: &mut Vec<&'a str>) -> Result<()> {
    let mut tokens = Tokens::new(value);
    match (tokens.next()?, step) {
        (Some(Token::ObjectStart), Step::Key(_) | Step::Named(_) | Step::Members) => {
            let wanted = step.key();
            while let Some(Token::Key(key)) = tokens.next()? {
                let found = wanted.is_none_or(|wanted| key == wanted);
                if found {
                    out.push(&value[tokens.offset()..]);
                    if wanted.is_some() {
                        break;
                    }
                }
                tokens.value()?;
            }
        }
        (Some(Token::ArrayStart), Step::Elements) => elements(value, tokens, usize::MAX, out)?,
        (Some(Token::ArrayStart), Step::Slice(from, to)) => {
            let mut all = Vec::new();
            elements(value, tokens, usize::MAX, &mut all)?;
            let bounds = (at(*from, all.len()), at(*to, all.len()));
            if let (Some(from), Some(to)) = bounds {
                out.extend(all.iter().take(to.saturating_add(1)).skip(from));
            }
        }
        (Some(Token::ArrayStart), step) => {
            let Some(index) = step.index() else { return Ok(()) };
            let most = usize::try_from(index).map_or(usize::MAX, |at| at.saturating_add(1));
            let mut found = Vec::new();
            elements(value, tokens, most, &mut found)?;
            out.extend(at(index, found.len()).and_then(|at| found.get(at)));
        }
        _ => {}
    }
    Ok(())
}

/// Where the first elements of an array begin.
fn elements<'a>(
    array: &'a str,
    mut tokens: Tokens<'a>,
    most: usize,
    out: &mut Vec<&'a str>,
) -> Result<()> {
    let from = out.len();
    while out.len() - from < most {
        match tokens.next()? {
            None | Some(Token::ArrayEnd) => break,
            Some(_) => {}
        }
        out.push(&array[tokens.range().start..]);
        if out.len() - from < most {
            tokens.finish()?;
        }
    }
    Ok(())
}

/// The position of an index in an array of some length; beyond its end if the index is.
pub(super) fn at(index: i64, len: usize) -> Option<usize> {
    match u64::try_from(index) {
        // What a `usize` of 32 bits cannot hold is beyond the end too.
        Ok(at) => Some(usize::try_from(at).unwrap_or(usize::MAX)),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::every;
    use crate::json::path::JsonPath;

    #[test]
    fn a_path_names_values_in_order() {
        let document = r#"{"a":[1,[2,3],{"b":"x","c":null}],"":0,"0":{"b":"y"},"d":{}}"#;
        for (path, values) in [
            ("$", vec![document]),
            ("a[0]", vec!["1"]),
            ("a[-1].b", vec!["\"x\""]),
            ("a[-4]", vec![]),
            ("a[3]", vec![]),
            ("$.a[*]", vec!["1", "[2,3]", r#"{"b":"x","c":null}"#]),
            ("$.a[1 to last]", vec!["[2,3]", r#"{"b":"x","c":null}"#]),
            ("$.a[2 to 1]", vec![]),
            ("$.*.b", vec!["\"y\""]),
            ("$.a[*].*", vec!["\"x\"", "null"]),
            ("/a/1/0", vec!["2"]),
            ("/0/b", vec!["\"y\""]),
            ("{a,1,-1}", vec!["3"]),
            ("$.a.b", vec![]),
            ("$[0]", vec![]),
            ("$.d.*", vec![]),
            ("", vec!["0"]),
        ] {
            assert_eq!(every(document, &JsonPath::parse(path).unwrap()).unwrap(), values, "{path}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}1{}", "[".repeat(9_999), "]".repeat(9_999));
        let path = JsonPath::parse(&format!("${}", "[0]".repeat(9_999))).unwrap();
        assert_eq!(every(&deep, &path).unwrap(), ["1"]);
    }
}
