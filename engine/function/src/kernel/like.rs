//! `LIKE`: `%` matches any sequence, `_` any single character. A constant pattern is compiled once,
//! and the common shapes (`abc`, `abc%`, `%abc`, `%abc%`) become byte comparisons.

use super::search::find;
use crate::vector::rows::ActiveRows;
use crate::vector::validity::{valid, validity};
use crate::vector::view::Texts;
use nacre_column::{Form, Values, Vector};
use nacre_types::{DataType, Error, Result};

#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// Exactly these bytes.
    Exactly(Vec<u8>),
    /// This number of arbitrary characters.
    Characters(usize),
}

/// A pattern split at its `%`: each run of parts matches somewhere after the preceding run.
struct Pattern {
    runs: Vec<Vec<Part>>,
    fold: bool,
}

impl Pattern {
    fn compile(pattern: &str, escape: char, fold: bool) -> Result<Pattern> {
        let mut runs: Vec<Vec<Part>> = vec![Vec::new()];
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let Some(run) = runs.last_mut() else { break };
            let literal = if c == escape {
                chars.next().ok_or_else(|| {
                    Error::type_error("LIKE pattern ends with its escape character")
                        .with_sqlstate("22025")
                })?
            } else if c == '%' {
                runs.push(Vec::new());
                continue;
            } else if c == '_' {
                match run.last_mut() {
                    Some(Part::Characters(n)) => *n += 1,
                    _ => run.push(Part::Characters(1)),
                }
                continue;
            } else {
                c
            };
            let mut buffer = [0; 4];
            let bytes = literal.encode_utf8(&mut buffer).as_bytes();
            let bytes = bytes.iter().map(|b| if fold { b.to_ascii_lowercase() } else { *b });
            match run.last_mut() {
                Some(Part::Exactly(own)) => own.extend(bytes),
                _ => run.push(Part::Exactly(bytes.collect())),
            }
        }
        // Adjacent `%` act as one.
        let last = runs.len() - 1;
        let mut at = 0;
        runs.retain(|run| {
            at += 1;
            at == 1 || at == last + 1 || !run.is_empty()
        });
        Ok(Pattern { runs, fold })
    }

    fn matches(&self, text: &[u8]) -> bool {
        let folded;
        let text = if self.fold {
            folded = text.to_ascii_lowercase();
            &folded[..]
        } else {
            text
        };
        let [first, middle @ .., last] = &self.runs[..] else {
            return self.runs.first().is_some_and(|run| match_run(run, text) == Some(text.len()));
        };
        let Some(mut at) = match_run(first, text) else { return false };
        for run in middle {
            match find_run(run, text, at) {
                Some(end) => at = end,
                None => return false,
            }
        }
        match_at_end(last, text, at)
    }
}

/// Matches a run at the start of `text`; returns its end.
fn match_run(run: &[Part], text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for part in run {
        match part {
            Part::Exactly(bytes) => {
                if !text.get(at..)?.starts_with(bytes) {
                    return None;
                }
                at += bytes.len();
            }
            Part::Characters(n) => {
                for _ in 0..*n {
                    at += char_len(*text.get(at)?);
                }
            }
        }
    }
    (at <= text.len()).then_some(at)
}

fn char_len(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

fn is_boundary(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|b| b & 0xc0 != 0x80)
}

/// Finds the first match of a run at or after `from`; returns its end.
fn find_run(run: &[Part], text: &[u8], from: usize) -> Option<usize> {
    if let [Part::Exactly(needle)] = run {
        return find(text.get(from..)?, needle).map(|at| from + at + needle.len());
    }
    let lead = if let Some(Part::Exactly(bytes)) = run.first() { &bytes[..] } else { &[] };
    let mut at = from;
    while at <= text.len() {
        at += find(&text[at..], lead)?;
        if is_boundary(text, at)
            && let Some(len) = match_run(run, &text[at..])
        {
            return Some(at + len);
        }
        at += 1;
    }
    None
}

fn match_at_end(run: &[Part], text: &[u8], from: usize) -> bool {
    match run {
        [] => true,
        [Part::Exactly(bytes)] => text.len() >= from + bytes.len() && text.ends_with(bytes),
        _ => (from..=text.len()).any(|at| {
            is_boundary(text, at) && match_run(run, &text[at..]) == Some(text.len() - at)
        }),
    }
}

/// Whether a pattern ends in its escape character, which is an error; `escape` is a backslash if
/// `None`.
pub fn ends_in_escape(pattern: &str, escape: Option<char>) -> bool {
    let escape = escape.unwrap_or('\\');
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if c == escape && chars.next().is_none() {
            return true;
        }
    }
    false
}

/// `LIKE` over vectors; `fold` ignores ASCII case; `escape` is a backslash if `None`.
pub fn like(
    arg: &Vector,
    pattern: &Vector,
    escape: Option<char>,
    negated: bool,
    fold: bool,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let validity = validity(&[arg, pattern]);
    let escape = escape.unwrap_or('\\');
    let (texts, patterns) = (Texts::new(arg), Texts::new(pattern));
    let mut out = vec![false; rows.len];
    let constant = matches!(pattern.form(), Form::Constant(_));
    let mut compiled: Option<Pattern> = None;
    for i in rows.iter().filter(|i| valid(&validity, *i)) {
        let reusable = compiled.take().filter(|_| constant);
        let current = match reusable {
            Some(current) => current,
            None => Pattern::compile(&patterns.text(i), escape, fold)?,
        };
        out[i] = current.matches(texts.bytes(i)) != negated;
        compiled = Some(current);
    }
    Ok(Vector::new(DataType::Boolean, Values::Bool(out), validity))
}
