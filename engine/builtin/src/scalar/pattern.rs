//! `GLOB` and regular expressions.

use nacre_column::Vector;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Arity;
use nacre_function::entry::definition::Kernel::{Values, Vectors};
use nacre_function::entry::definition::Parameter::{RoundedInteger, Text};
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Call, RowCall, boolean, int, text};
use nacre_function::entry::definition::{Expression, Nulls, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes, takes_at_least};
use nacre_function::vector::map::map_values;
use nacre_function::vector::room::check_length;
use nacre_types::{DataType, Error, Result, Value};
use regex_lite::{Regex, RegexBuilder};

const TEXT: DataType = DataType::TEXT;
const INT: DataType = DataType::Int64;
const BOOLEAN: DataType = DataType::Boolean;

/// Shell patterns; the operator `GLOB` refers to it.
pub static GLOB: ScalarFunction = function(
    &["glob_match"],
    Doc::new(
        "glob_match(s, pattern)",
        "Whether a text matches a pattern of `*`, `?` and `[…]`; also `s GLOB pattern`.",
        "'data.csv' glob '*.[ct]sv'",
        "true",
    ),
    Declared(takes(&[Text, Text]), BOOLEAN),
    Values(|row| boolean(glob(&row.text(0), &row.text(1)))),
);

/// Regular expressions; the operators `REGEXP`, `RLIKE` and `~` refer to it.
pub static REGEXP_LIKE: ScalarFunction = function(
    &["regexp_like", "regexp_matches"],
    Doc::new(
        "regexp_like(s, pattern[, flags]), regexp_matches",
        "Whether a regular expression matches a part of a text.",
        "regexp_like('Hello', '^h', 'i')",
        "true",
    ),
    Declared(takes_at_least(2, &[Text, Text, Text]), BOOLEAN),
    Vectors(|call| matched(call, 2, |row, regex, _| boolean(regex.is_match(&row.text(0))))),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &GLOB,
    &REGEXP_LIKE,
    &function(
        &["regexp_extract", "regexp_substr"],
        Doc::new(
            "regexp_extract(s, pattern[, group[, flags]]), regexp_substr",
            "The first match of a regular expression, or of one of its groups.",
            "regexp_extract('id=42;', 'id=([0-9]+)', 1)",
            "42",
        ),
        Declared(takes_at_least(2, &[Text, Text, RoundedInteger, Text]), TEXT),
        Vectors(|call| matched(call, 3, extract)),
    )
    .nulls(Nulls::Partial),
    &function(
        &["regexp_replace"],
        Doc::new(
            "regexp_replace(s, pattern, new[, flags])",
            "With the first match replaced, or all with the flag `g`; `\\1` is a group.",
            "regexp_replace('2026-11-21', '([0-9]+)-([0-9]+)-([0-9]+)', '\\3.\\2.\\1')",
            "21.11.2026",
        ),
        Declared(takes_at_least(3, &[Text, Text, Text, Text]), TEXT),
        Vectors(|call| {
            matched(call, 3, |row, regex, flags| {
                let matches = if flags.contains('g') { usize::MAX } else { 1 };
                text(replaced(regex, &row.text(0), matches, &pieces(&row.text(2)))?)
            })
        }),
    ),
    &function(
        &["regexp_count"],
        Doc::new(
            "regexp_count(s, pattern[, flags])",
            "How often a regular expression matches.",
            "regexp_count('banana', 'an')",
            "2",
        ),
        Declared(takes_at_least(2, &[Text, Text, Text]), INT),
        Vectors(|call| {
            matched(call, 2, |row, regex, _| int(regex.find_iter(&row.text(0)).count() as i64))
        }),
    ),
    &function(
        &["regexp_instr"],
        Doc::new(
            "regexp_instr(s, pattern[, flags])",
            "Where a regular expression first matches, counted from 1; 0 when it does not.",
            "regexp_instr('hello', 'l+')",
            "3",
        ),
        Declared(takes_at_least(2, &[Text, Text, Text]), INT),
        Vectors(|call| {
            matched(call, 2, |row, regex, _| {
                let value = row.text(0);
                let start = regex.find(&value).map(|found| found.start());
                int(start.map_or(0, |at| value[..at].chars().count() as i64 + 1))
            })
        }),
    ),
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[&expression(
    &["glob"],
    Doc::new(
        "glob(pattern, s)",
        "SQLite's form of `glob_match`, with the pattern first.",
        "glob('h*o', 'hello')",
        "true",
    ),
    Arity::exactly(2),
    |binding, arguments| {
        let [pattern, value] = arguments.exactly()?;
        let (pattern, value) = (coerce::text(binding, pattern)?, coerce::text(binding, value)?);
        Ok(binding.call(&GLOB, vec![value, pattern], BOOLEAN))
    },
)];

/// Maximum size of a compiled expression in bytes.
const SIZE_LIMIT: usize = 1 << 20;

/// The last compiled expression: within a statement, the pattern rarely changes.
#[derive(Default)]
struct Patterns(Option<(String, String, Regex)>);

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

/// Tells for each name whether a regular expression matches a part of it, in any case.
#[cold]
pub fn names_matching<'n>(
    pattern: &str,
    names: impl Iterator<Item = &'n str>,
) -> Result<Vec<bool>> {
    let mut patterns = Patterns::default();
    let regex = patterns.get(pattern, "i")?;
    Ok(names.map(|name| regex.is_match(name)).collect())
}

/// Runs a function of a text, a regular expression and flags, which are argument `flags_at`.
fn matched(
    call: &Call<'_>,
    flags_at: usize,
    compute: fn(&RowCall<'_>, &Regex, &str) -> Result<Value>,
) -> Result<Vector> {
    let mut patterns = Patterns::default();
    let mut args = vec![Value::Null; call.args.len()];
    map_values(&call.vectors(), call.data_type, call.rows, call.room(), &mut |at| {
        for (value, arg) in args.iter_mut().zip(call.args) {
            *value = arg.value(at);
        }
        let row = RowCall { function: call.function, data_type: call.data_type, args: &args };
        let flags = row.text(flags_at);
        let value = compute(&row, patterns.get(&row.text(1), &flags)?, &flags)?;
        if let Value::Text(text) = &value {
            check_length(text.len())?;
        }
        Ok(value)
    })
}

/// Null if nothing matches, or if the group did not take part in the match.
fn extract(row: &RowCall<'_>, regex: &Regex, _: &str) -> Result<Value> {
    // A group number beyond `usize` certainly does not exist.
    let group = usize::try_from(row.int(2)).unwrap_or(usize::MAX);
    if group >= regex.captures_len() {
        return Err(row.error("the expression has no such group", "22023"));
    }
    let value = row.text(0);
    let found = regex.captures(&value).and_then(|captures| captures.get(group));
    found.map_or(Ok(Value::Null), |found| text(found.as_str()))
}

/// A part of a replacement.
enum Piece {
    Text(String),
    Group(usize),
}

/// Parses a replacement: `\1` is a group, as in PostgreSQL and DuckDB, and `\\` a backslash.
fn pieces(new: &str) -> Vec<Piece> {
    let (mut out, mut literal) = (Vec::new(), String::new());
    let mut chars = new.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(digit @ '0'..='9')) => {
                out.push(Piece::Text(std::mem::take(&mut literal)));
                out.push(Piece::Group(*digit as usize - '0' as usize));
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

/// Replaces the first `matches` matches. The result may be far longer than the value, so its length
/// is checked as it grows.
fn replaced(regex: &Regex, value: &str, matches: usize, new: &[Piece]) -> Result<String> {
    let (mut out, mut from) = (String::new(), 0);
    for found in regex.captures_iter(value).take(matches) {
        let Some(whole) = found.get(0) else { continue };
        out += &value[from..whole.start()];
        for piece in new {
            out += match piece {
                Piece::Text(text) => text,
                Piece::Group(at) => found.get(*at).map_or("", |group| group.as_str()),
            };
            check_length(out.len())?;
        }
        from = whole.end();
    }
    out += &value[from..];
    Ok(out)
}

/// `*` matches any sequence, `?` any single character, `[a-z]` one of a set, `[^a-z]` one outside
/// it.
fn glob(value: &str, pattern: &str) -> bool {
    let (value, pattern): (Vec<char>, Vec<char>) =
        (value.chars().collect(), pattern.chars().collect());
    let (mut v, mut p) = (0, 0);
    // The position after the last star in the pattern, and the end of its match in the value.
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

/// The position after the set that begins at `at`, if the character is in the set.
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
