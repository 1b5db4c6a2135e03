//! `GLOB` and regular expressions. A compiled expression is kept for as long as the pattern stays the same,
//! which within a statement it nearly always does.

use super::{Call, text};
use crate::expr::text::check_length;
use nacre_sql::Builtin as B;
use nacre_types::{Error, Result, Value};
use regex_lite::{Regex, RegexBuilder};

/// Bytes a compiled expression may take.
const SIZE_LIMIT: usize = 1 << 20;

/// The last expression compiled.
#[derive(Default)]
pub(super) struct Patterns(Option<(String, String, Regex)>);

impl Patterns {
    fn get(&mut self, pattern: &str, flags: &str) -> Result<&Regex> {
        let same = matches!(&self.0, Some((p, f, _)) if p == pattern && f == flags);
        if !same {
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(SIZE_LIMIT);
            for flag in flags.chars() {
                match flag {
                    'i' => builder.case_insensitive(true),
                    'c' => builder.case_insensitive(false),
                    'm' | 'n' => builder.multi_line(true),
                    's' => builder.dot_matches_new_line(true),
                    'g' => &mut builder,
                    other => {
                        let message = format!("regular expressions have no flag {other}");
                        return Err(Error::type_error(message).with_sqlstate("22023"));
                    }
                };
            }
            let regex = builder.build().map_err(|e| {
                Error::type_error(format!("'{pattern}' is not a regular expression: {e}"))
                    .with_sqlstate("2201B")
            })?;
            self.0 = Some((pattern.to_string(), flags.to_string(), regex));
        }
        match &self.0 {
            Some((_, _, regex)) => Ok(regex),
            None => Err(Error::unsupported("regular expressions")),
        }
    }
}

impl Call<'_> {
    /// `None`: not a function of this file.
    pub(super) fn matched(&self, patterns: &mut Patterns) -> Result<Option<Value>> {
        let flags_at = match self.function {
            B::Glob => return Ok(Some(Value::Boolean(glob(&self.text(0), &self.text(1))))),
            B::RegexpLike | B::RegexpCount | B::RegexpPosition => 2,
            B::RegexpExtract | B::RegexpReplace => 3,
            _ => return Ok(None),
        };
        let flags = self.text(flags_at);
        let value = self.text(0);
        let regex = patterns.get(&self.text(1), &flags)?;
        Ok(match self.function {
            B::RegexpLike => Some(Value::Boolean(regex.is_match(&value))),
            B::RegexpCount => Some(Value::Int(regex.find_iter(&value).count() as i64)),
            B::RegexpPosition => {
                let found =
                    regex.find(&value).map(|m| value[..m.start()].chars().count() as i64 + 1);
                Some(Value::Int(found.unwrap_or(0)))
            }
            B::RegexpExtract => {
                let group = usize::try_from(self.int(2)).unwrap_or(usize::MAX);
                if group >= regex.captures_len() {
                    return Err(self.error("the expression has no such group", "22023"));
                }
                let found = regex.captures(&value).and_then(|c| c.get(group));
                found.map_or(Some(Value::Null), |m| text(m.as_str().to_string()))
            }
            _ => {
                let matches = if flags.contains('g') { usize::MAX } else { 1 };
                text(replaced(regex, &value, matches, &pieces(&self.text(2)))?)
            }
        })
    }
}

/// A piece of what comes in the place of a match.
enum Piece {
    Text(String),
    Group(usize),
}

/// `\1` is a group, as PostgreSQL and DuckDB write it, `\\` a backslash.
fn pieces(new: &str) -> Vec<Piece> {
    let (mut out, mut literal) = (Vec::new(), String::new());
    let mut chars = new.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(digit @ '0'..='9')) => {
                out.push(Piece::Text(std::mem::take(&mut literal)));
                out.push(Piece::Group(digit.to_digit(10).unwrap_or(0) as usize));
                chars.next();
            }
            ('\\', Some('\\')) => {
                literal.push('\\');
                chars.next();
            }
            _ => literal.push(c),
        }
    }
    out.push(Piece::Text(literal));
    out
}

/// The value with other text in the place of the first so many matches. What comes out may be far longer than what
/// goes in, so that its length is looked at on the way.
fn replaced(regex: &Regex, value: &str, matches: usize, new: &[Piece]) -> Result<String> {
    let (mut out, mut from) = (String::new(), 0);
    for found in regex.captures_iter(value).take(matches) {
        let Some(whole) = found.get(0) else { continue };
        out += value.get(from..whole.start()).unwrap_or_default();
        for piece in new {
            out += match piece {
                Piece::Text(text) => text,
                Piece::Group(at) => found.get(*at).map_or("", |group| group.as_str()),
            };
            check_length(out.len())?;
        }
        from = whole.end();
    }
    out += value.get(from..).unwrap_or_default();
    Ok(out)
}

/// `*` any run, `?` any one character, `[a-z]` one of a set, `[^a-z]` one not of it.
fn glob(value: &str, pattern: &str) -> bool {
    let (value, pattern): (Vec<char>, Vec<char>) =
        (value.chars().collect(), pattern.chars().collect());
    let (mut v, mut p) = (0, 0);
    // Where the last star was, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, v));
                p += 1;
                continue;
            }
            None if v == value.len() => return true,
            None => None,
            Some(_) if v >= value.len() => None,
            Some('?') => Some(p + 1),
            Some('[') => set(&pattern, p, value[v]),
            Some(c) => (*c == value[v]).then_some(p + 1),
        };
        match (step, &mut star) {
            (Some(next), _) => {
                p = next;
                v += 1;
            }
            (None, Some((after, reach))) if *reach < value.len() => {
                *reach += 1;
                (p, v) = (*after, *reach);
            }
            _ => return false,
        }
    }
}

/// The place after the set that begins at `at` when the character is in it.
fn set(pattern: &[char], at: usize, c: char) -> Option<usize> {
    let negated = pattern.get(at + 1) == Some(&'^');
    let start = at + 1 + usize::from(negated);
    let mut found = false;
    let mut i = start;
    while let Some(low) = pattern.get(i) {
        if *low == ']' && i > start {
            return (found != negated).then_some(i + 1);
        }
        match (pattern.get(i + 1), pattern.get(i + 2)) {
            (Some('-'), Some(high)) if *high != ']' => {
                found |= (*low..=*high).contains(&c);
                i += 3;
            }
            _ => {
                found |= *low == c;
                i += 1;
            }
        }
    }
    None
}
