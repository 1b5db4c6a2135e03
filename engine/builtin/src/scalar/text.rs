//! Text functions evaluated vector by vector: case, parts, padding, lengths.

use super::characters::{TextRow, Unit, transform};
use nacre_column::{Values, Vector};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Arity;
use nacre_function::entry::definition::Call;
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::Parameter::{Integer, Text, TextLikeFirst};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::definition::{Expression, Parameters, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes, takes_at_least};
use nacre_function::kernel::concat::concat;
use nacre_function::kernel::search::find;
use nacre_function::vector::map::map_integers;
use nacre_function::vector::room::check_length;
use nacre_function::vector::validity::validity;
use nacre_function::vector::view::Texts;
use nacre_types::{DataType, Error, Result};

const TEXT: DataType = DataType::TEXT;
const INT: DataType = DataType::Int64;
const TRIMMED: Parameters = takes_at_least(1, &[Text, Text]);

static LENGTH: ScalarFunction = function(
    &["length", "len"],
    Doc::new(
        "length(s), len",
        "Characters of a text, bytes of a binary value.",
        "length('Grüße')",
        "5",
    ),
    Rule(Arity::exactly(1), |binding, arguments| {
        let [value] = arguments.exactly()?;
        let value = binding.settle(value, TEXT);
        if coerce::is_binary(binding, &value) {
            return Ok(binding.call(&OCTET_LENGTH, vec![value], INT));
        }
        let value = coerce::text(binding, value)?;
        Ok(binding.call(&LENGTH, vec![value], INT))
    }),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        let (unit, texts) = (Unit::of(arg), Texts::new(arg));
        map_integers(call.data_type, arg.validity().cloned(), call.rows, &mut |i| {
            Ok(unit.count(texts.bytes(i)) as i128)
        })
    }),
)
.infallible();

static OCTET_LENGTH: ScalarFunction = function(
    &["octet_length"],
    Doc::new("octet_length(s)", "Bytes of a text or binary value.", "octet_length('Grüße')", "7"),
    Rule(Arity::exactly(1), |binding, arguments| {
        let [value] = arguments.exactly()?;
        let value = binding.settle(value, TEXT);
        let value = coerce::text_or_bytes(binding, value)?;
        Ok(binding.call(&OCTET_LENGTH, vec![value], INT))
    }),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        let texts = Texts::new(arg);
        map_integers(call.data_type, arg.validity().cloned(), call.rows, &mut |i| {
            Ok(texts.bytes(i).len() as i128)
        })
    }),
)
.infallible();

/// Returns a part of a text; the syntax form `SUBSTRING(… FROM … FOR …)` refers to it.
pub static SUBSTRING: ScalarFunction = function(
    &["substring", "substr"],
    Doc::new(
        "substring(s, from[, length]), substr",
        "The part of a text from a position on, counted from 1.",
        "substring('hello', 2, 3)",
        "ell",
    ),
    Declared(takes_at_least(2, &[TextLikeFirst, Integer, Integer]), TEXT),
    Vectors(|call| transform(call, substring)),
);

/// Trims both ends; the syntax form `TRIM(BOTH … FROM …)` refers to it.
pub static TRIM: ScalarFunction = function(
    &["trim", "btrim"],
    Doc::new(
        "trim(s), btrim(s[, characters])",
        "Without blanks, or these characters, at both ends.",
        "btrim('xxaxx', 'x')",
        "a",
    ),
    Declared(TRIMMED, TEXT),
    Vectors(|call| transform(call, |row, out| trim(row, out, true, true))),
)
.infallible();

/// Trims the start; the syntax form `TRIM(LEADING … FROM …)` refers to it.
pub static LEFT_TRIM: ScalarFunction = function(
    &["ltrim"],
    Doc::new(
        "ltrim(s[, characters])",
        "Without blanks, or these characters, at the start.",
        "ltrim('  a')",
        "a",
    ),
    Declared(TRIMMED, TEXT),
    Vectors(|call| transform(call, |row, out| trim(row, out, true, false))),
)
.infallible();

/// Trims the end; the syntax form `TRIM(TRAILING … FROM …)` refers to it.
pub static RIGHT_TRIM: ScalarFunction = function(
    &["rtrim"],
    Doc::new(
        "rtrim(s[, characters])",
        "Without blanks, or these characters, at the end.",
        "rtrim('abb', 'b')",
        "a",
    ),
    Declared(TRIMMED, TEXT),
    Vectors(|call| transform(call, |row, out| trim(row, out, false, true))),
)
.infallible();

/// The position of one text in another; the syntax form `POSITION(… IN …)` refers to it.
pub static POSITION: ScalarFunction = function(
    &["position", "locate"],
    Doc::new(
        "position(a in s), locate(a, s)",
        "Where `s` first contains `a`, counted from 1; 0 when it does not.",
        "position('l' in 'hello')",
        "3",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [needle, haystack] = arguments.exactly()?;
        position(binding, needle, haystack)
    }),
    Vectors(|call| {
        let [needle, haystack] = call.exactly()?;
        let unit = Unit::of(needle);
        let (needles, haystacks) = (Texts::new(needle), Texts::new(haystack));
        let validity = validity(&[needle, haystack]);
        map_integers(call.data_type, validity, call.rows, &mut |i| {
            let text = haystacks.bytes(i);
            let found = find(text, needles.bytes(i));
            Ok(found.map_or(0, |at| unit.count(&text[..at]) as i128 + 1))
        })
    }),
);

static CONCAT: ScalarFunction = function(
    &["concat"],
    Doc::new(
        "concat(…)",
        "The texts of all arguments; null when one is null.",
        "concat('a', 1, 'b')",
        "a1b",
    ),
    Rule(Arity::at_least(1), |binding, arguments| {
        let texts = arguments.operands.into_iter().map(|operand| coerce::text(binding, operand));
        let texts = texts.collect::<Result<_>>()?;
        Ok(binding.call(&CONCAT, texts, TEXT))
    }),
    Vectors(|call| concat(&call.vectors(), call.data_type, call.rows, call.room())),
)
.infallible();

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &LENGTH,
    &OCTET_LENGTH,
    &function(
        &["lower", "lcase"],
        Doc::new("lower(s), lcase", "In lower case.", "lower('ABC')", "abc"),
        Declared(takes(&[Text]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                with_case(row, out, <[u8]>::make_ascii_lowercase, str::to_lowercase)
            })
        }),
    )
    .infallible(),
    &function(
        &["upper", "ucase"],
        Doc::new("upper(s), ucase", "In upper case.", "upper('straße')", "STRASSE"),
        Declared(takes(&[Text]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                with_case(row, out, <[u8]>::make_ascii_uppercase, str::to_uppercase)
            })
        }),
    )
    .infallible(),
    &TRIM,
    &LEFT_TRIM,
    &RIGHT_TRIM,
    &SUBSTRING,
    &function(
        &["left"],
        Doc::new(
            "left(s, n)",
            "The first `n` characters; all but the last `-n` when `n` is negative.",
            "left('hello', 2)",
            "he",
        ),
        Declared(takes(&[TextLikeFirst, Integer]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                out.extend_from_slice(row.unit.slice(row.bytes(0), 0, kept(row)));
                Ok(())
            })
        }),
    ),
    &function(
        &["right"],
        Doc::new(
            "right(s, n)",
            "The last `n` characters; all but the first `-n` when `n` is negative.",
            "right('hello', 2)",
            "lo",
        ),
        Declared(takes(&[TextLikeFirst, Integer]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                let length = row.unit.count(row.bytes(0));
                out.extend_from_slice(row.unit.slice(row.bytes(0), length - kept(row), length));
                Ok(())
            })
        }),
    ),
    &function(
        &["replace"],
        Doc::new(
            "replace(s, from, to)",
            "With every occurrence of `from` replaced.",
            "replace('banana', 'an', 'x')",
            "bxxa",
        ),
        Declared(takes(&[TextLikeFirst, TextLikeFirst, TextLikeFirst]), TEXT),
        Vectors(|call| transform(call, replace)),
    ),
    &CONCAT,
    &function(
        &["repeat"],
        Doc::new("repeat(s, n)", "`n` times after one another.", "repeat('ab', 3)", "ababab"),
        Declared(takes(&[TextLikeFirst, Integer]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                let value = row.bytes(0);
                let n = if value.is_empty() { 0 } else { row.number(1).max(0) as usize };
                check_length(value.len().saturating_mul(n))?;
                (0..n).for_each(|_| out.extend_from_slice(value));
                Ok(())
            })
        }),
    ),
    &function(
        &["reverse"],
        Doc::new("reverse(s)", "Characters in reverse order.", "reverse('abc')", "cba"),
        Declared(takes(&[TextLikeFirst]), TEXT),
        Vectors(|call| {
            transform(call, |row, out| {
                match row.unit {
                    Unit::Bytes => out.extend(row.bytes(0).iter().rev()),
                    Unit::Characters => {
                        out.extend(row.string(0).chars().rev().collect::<String>().bytes())
                    }
                }
                Ok(())
            })
        }),
    ),
    &function(
        &["lpad"],
        Doc::new(
            "lpad(s, n[, fill])",
            "Filled up to `n` characters at the start, or cut to them.",
            "lpad('7', 3, '0')",
            "007",
        ),
        Declared(takes_at_least(2, &[TextLikeFirst, Integer, TextLikeFirst]), TEXT),
        Vectors(|call| transform(call, |row, out| pad(row, out, Side::Start))),
    ),
    &function(
        &["rpad"],
        Doc::new(
            "rpad(s, n[, fill])",
            "Filled up to `n` characters at the end, or cut to them.",
            "rpad('ab', 5, '.')",
            "ab...",
        ),
        Declared(takes_at_least(2, &[TextLikeFirst, Integer, TextLikeFirst]), TEXT),
        Vectors(|call| transform(call, |row, out| pad(row, out, Side::End))),
    ),
    &POSITION,
    &function(
        &["starts_with", "startswith", "prefix"],
        Doc::new(
            "starts_with(s, a), startswith, prefix",
            "Whether a text starts with another.",
            "starts_with('hello', 'he')",
            "true",
        ),
        Declared(takes(&[TextLikeFirst, TextLikeFirst]), DataType::Boolean),
        Vectors(starts_with),
    )
    .infallible(),
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["char_length", "character_length"],
        Doc::new(
            "char_length(s), character_length",
            "Characters of a value, as text.",
            "char_length('Grüße')",
            "5",
        ),
        Arity::exactly(1),
        |binding, arguments| {
            let [value] = arguments.exactly()?;
            let value = coerce::text(binding, value)?;
            Ok(binding.call(&LENGTH, vec![value], INT))
        },
    ),
    &expression(
        &["mid"],
        Doc::new(
            "mid(s, from, length)",
            "MySQL's name for `substring`.",
            "mid('hello', 2, 3)",
            "ell",
        ),
        Arity::exactly(3),
        |binding, arguments| SUBSTRING.bind(binding, arguments),
    ),
    &expression(
        &["instr", "strpos"],
        Doc::new(
            "instr(s, a), strpos",
            "`position` with its arguments exchanged.",
            "instr('hello', 'lo')",
            "4",
        ),
        Arity::exactly(2),
        |binding, arguments| {
            let [haystack, needle] = arguments.exactly()?;
            position(binding, needle, haystack)
        },
    ),
];

fn position(binding: &mut dyn Binding, needle: Operand, haystack: Operand) -> Result<Operand> {
    let of_bytes = coerce::is_binary(binding, &needle) && coerce::is_binary(binding, &haystack);
    let arguments = if of_bytes {
        vec![needle, haystack]
    } else {
        vec![coerce::text(binding, needle)?, coerce::text(binding, haystack)?]
    };
    Ok(binding.call(&POSITION, arguments, INT))
}

fn with_case(
    row: &TextRow<'_>,
    out: &mut Vec<u8>,
    ascii: fn(&mut [u8]),
    any: fn(&str) -> String,
) -> Result<()> {
    let value = row.bytes(0);
    if value.is_ascii() {
        out.extend_from_slice(value);
        ascii(out);
    } else {
        out.extend_from_slice(any(&row.string(0)).as_bytes());
    }
    Ok(())
}

fn trim(row: &TextRow<'_>, out: &mut Vec<u8>, start: bool, end: bool) -> Result<()> {
    let set = if row.has(1) { row.string(1) } else { " ".into() };
    let inside = |c: char| set.contains(c);
    let value = row.string(0);
    let text = if start { value.trim_start_matches(inside) } else { &value };
    let text = if end { text.trim_end_matches(inside) } else { text };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn substring(row: &TextRow<'_>, out: &mut Vec<u8>) -> Result<()> {
    let start = row.number(1);
    let mut end = i64::MAX;
    if row.has(2) {
        let length = row.number(2);
        if length < 0 {
            return Err(Error::type_error("negative substring length").with_sqlstate("22011"));
        }
        end = start + length;
    }
    // Positions before the first character count towards the length, as in the SQL standard.
    let from = (start - 1).max(0) as usize;
    let to = end.saturating_sub(1).max(0) as usize;
    out.extend_from_slice(row.unit.slice(row.bytes(0), from, to));
    Ok(())
}

/// Number of characters that `left` and `right` keep: a negative count drops characters from the
/// other end.
fn kept(row: &TextRow<'_>) -> usize {
    let (n, length) = (row.number(1), row.unit.count(row.bytes(0)));
    if n >= 0 { (n as usize).min(length) } else { length.saturating_sub(n.unsigned_abs() as usize) }
}

fn replace(row: &TextRow<'_>, out: &mut Vec<u8>) -> Result<()> {
    let (mut rest, from, to) = (row.bytes(0), row.bytes(1), row.bytes(2));
    if !from.is_empty() {
        while let Some(at) = find(rest, from) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(to);
            check_length(out.len())?;
            rest = &rest[at + from.len()..];
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Start,
    End,
}

fn pad(row: &TextRow<'_>, out: &mut Vec<u8>, side: Side) -> Result<()> {
    let (value, unit) = (row.bytes(0), row.unit);
    let n = row.number(1).max(0) as usize;
    let fill = if row.has(2) { row.bytes(2) } else { b" " };
    let length = unit.count(value);
    if length >= n || fill.is_empty() {
        out.extend_from_slice(unit.slice(value, 0, n));
        return Ok(());
    }
    let (missing, width) = (n - length, unit.count(fill).max(1));
    let (times, rest) = (missing / width, unit.slice(fill, 0, missing % width));
    let filled = fill.len().saturating_mul(times).saturating_add(rest.len());
    check_length(value.len().saturating_add(filled))?;
    if side == Side::End {
        out.extend_from_slice(value);
    }
    (0..times).for_each(|_| out.extend_from_slice(fill));
    out.extend_from_slice(rest);
    if side == Side::Start {
        out.extend_from_slice(value);
    }
    Ok(())
}

fn starts_with(call: &Call<'_>) -> Result<Vector> {
    let [text, start] = call.exactly()?;
    let (texts, starts) = (Texts::new(text), Texts::new(start));
    let mut out = vec![false; call.rows.len];
    call.rows.iter().for_each(|i| out[i] = texts.bytes(i).starts_with(starts.bytes(i)));
    Ok(Vector::new(DataType::Boolean, Values::Bool(out), validity(&[text, start])))
}
