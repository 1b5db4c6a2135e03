//! Text functions evaluated value by value. Positions and lengths count characters.

use nacre_function::entry::definition::Kernel::Values;
use nacre_function::entry::definition::Parameter::{RoundedInteger, Text};
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Nulls, ScalarFunction};
use nacre_function::entry::definition::{RowCall, boolean, int, text};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{function, takes, takes_many};
use nacre_function::vector::room::check_length;
use nacre_types::{DataType, Error, Result, Value};

const TEXT: DataType = DataType::TEXT;
const INT: DataType = DataType::Int64;
const BOOLEAN: DataType = DataType::Boolean;

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &function(
        &["initcap"],
        Doc::new(
            "initcap(s)",
            "With every word in lower case after a capital.",
            "initcap('hello WORLD')",
            "Hello World",
        ),
        Declared(takes(&[Text]), TEXT),
        Values(|row| text(capitals(&row.text(0)))),
    ),
    &function(
        &["translate"],
        Doc::new(
            "translate(s, from, to)",
            "With each character of `from` replaced by that of `to` at its place, or removed.",
            "translate('hello', 'el', 'ip')",
            "hippo",
        ),
        Declared(takes(&[Text, Text, Text]), TEXT),
        Values(|row| text(translate(&row.text(0), &row.text(1), &row.text(2)))),
    ),
    &function(
        &["insert"],
        Doc::new(
            "insert(s, at, length, new)",
            "With `length` characters from a position on replaced.",
            "insert('Quadratic', 3, 4, 'What')",
            "QuWhattic",
        ),
        Declared(takes(&[Text, RoundedInteger, RoundedInteger, Text]), TEXT),
        Values(|row| text(insert(&row.text(0), row.int(1), row.int(2), &row.text(3)))),
    ),
    &function(
        &["concat_ws"],
        Doc::new(
            "concat_ws(separator, …)",
            "The arguments that are not null, with a separator between them.",
            "concat_ws('-', 'a', null, 'b')",
            "a-b",
        ),
        Declared(takes_many(1, &[Text, Text]), TEXT),
        Values(concat_with_separator),
    )
    .nulls(Nulls::Seen),
    &function(
        &["space"],
        Doc::new("space(n)", "`n` blanks.", "'[' || space(2) || ']'", "[  ]"),
        Declared(takes(&[RoundedInteger]), TEXT),
        Values(|row| {
            let count = usize::try_from(row.int(0).max(0)).unwrap_or(usize::MAX);
            check_length(count)?;
            text(" ".repeat(count))
        }),
    ),
    &function(
        &["ends_with", "endswith", "suffix"],
        Doc::new(
            "ends_with(s, a), endswith, suffix",
            "Whether a text ends with another.",
            "ends_with('hello', 'lo')",
            "true",
        ),
        Declared(takes(&[Text, Text]), BOOLEAN),
        Values(|row| boolean(row.text(0).ends_with(&*row.text(1)))),
    ),
    &function(
        &["contains"],
        Doc::new(
            "contains(s, a)",
            "Whether a text contains another.",
            "contains('hello', 'ell')",
            "true",
        ),
        Declared(takes(&[Text, Text]), BOOLEAN),
        Values(|row| boolean(row.text(0).contains(&*row.text(1)))),
    ),
    &function(
        &["split_part"],
        Doc::new(
            "split_part(s, separator, n)",
            "The `n`th of the parts between separators; from the end when `n` is negative.",
            "split_part('a,b,c', ',', -1)",
            "c",
        ),
        Declared(takes(&[Text, Text, RoundedInteger]), TEXT),
        Values(split_part),
    ),
    &function(
        &["substring_index"],
        Doc::new(
            "substring_index(s, separator, n)",
            "Everything before the `n`th separator; after it, from the end, when `n` is negative.",
            "substring_index('www.nacre.dev', '.', 2)",
            "www.nacre",
        ),
        Declared(takes(&[Text, Text, RoundedInteger]), TEXT),
        Values(|row| text(substring_index(&row.text(0), &row.text(1), row.int(2)))),
    ),
    &function(
        &["field"],
        Doc::new(
            "field(s, …)",
            "Which of the further arguments equals the first; 0 when none does.",
            "field('b', 'a', 'b', 'c')",
            "2",
        ),
        Declared(takes_many(2, &[Text, Text]), INT),
        Values(|row| {
            let first = row.text(0);
            let same = |at: &usize| !row.value(*at).is_null() && row.text(*at) == first;
            let found = (1..row.args.len()).find(same).filter(|_| !row.value(0).is_null());
            int(found.unwrap_or(0) as i64)
        }),
    )
    .nulls(Nulls::Seen),
    &function(
        &["elt"],
        Doc::new(
            "elt(n, …)",
            "The `n`th of the further arguments; null when there is none.",
            "elt(2, 'a', 'b', 'c')",
            "b",
        ),
        Declared(takes_many(2, &[RoundedInteger, Text]), TEXT),
        Values(|row| match usize::try_from(row.int(0)) {
            Ok(at) if at >= 1 && !row.value(0).is_null() => Ok(row.value(at).clone()),
            _ => Ok(Value::Null),
        }),
    )
    .nulls(Nulls::SeenPartial),
    &function(
        &["find_in_set"],
        Doc::new(
            "find_in_set(s, list)",
            "The position of a text in a list with commas; 0 when it is not there.",
            "find_in_set('b', 'a,b,c')",
            "2",
        ),
        Declared(takes(&[Text, Text]), INT),
        Values(|row| {
            let (wanted, list) = (row.text(0), row.text(1));
            let mut parts = list.split(',').filter(|_| !list.is_empty());
            int(parts.position(|part| part == wanted).map_or(0, |at| at as i64 + 1))
        }),
    ),
    &function(
        &["strcmp"],
        Doc::new(
            "strcmp(a, b)",
            "-1, 0 or 1 for less, equal or greater.",
            "strcmp('a', 'b')",
            "-1",
        ),
        Declared(takes(&[Text, Text]), INT),
        Values(|row| int(row.text(0).cmp(&row.text(1)) as i64)),
    ),
    &function(
        &["ascii", "unicode", "ord"],
        Doc::new(
            "ascii(s), unicode, ord",
            "The code point of the first character; 0 for an empty text.",
            "ascii('A')",
            "65",
        ),
        Declared(takes(&[Text]), INT),
        Values(|row| int(row.text(0).chars().next().map_or(0, |c| c as i64))),
    ),
    &function(
        &["chr"],
        Doc::new("chr(n)", "The character of a code point.", "chr(8364)", "€"),
        Declared(takes(&[RoundedInteger]), TEXT),
        Values(|row| text(character(row, row.value(0))?)),
    ),
    &function(
        &["char"],
        Doc::new(
            "char(…)",
            "The characters of code points; nulls are left out.",
            "char(72, 105)",
            "Hi",
        ),
        Declared(takes_many(1, &[RoundedInteger]), TEXT),
        Values(|row| {
            let codes = row.args.iter().filter(|code| !code.is_null());
            text(codes.map(|code| character(row, code)).collect::<Result<String>>()?)
        }),
    )
    .nulls(Nulls::Seen),
    &function(
        &["quote"],
        Doc::new("quote(s)", "As a literal of SQL.", "quote('it''s')", "'it''s'"),
        Declared(takes(&[Text]), TEXT),
        Values(|row| text(format!("'{}'", row.text(0).replace('\'', "''")))),
    ),
    &function(
        &["soundex"],
        Doc::new("soundex(s)", "The Soundex code of an English word.", "soundex('Robert')", "R163"),
        Declared(takes(&[Text]), TEXT),
        Values(|row| text(soundex(&row.text(0)))),
    ),
    &function(
        &["levenshtein", "editdist3"],
        Doc::new(
            "levenshtein(a, b), editdist3",
            "Insertions, deletions and replacements that turn one text into the other.",
            "levenshtein('kitten', 'sitting')",
            "3",
        ),
        Declared(takes(&[Text, Text]), INT),
        Values(|row| int(levenshtein(&row.text(0), &row.text(1))? as i64)),
    ),
    &function(
        &["hamming", "mismatches"],
        Doc::new(
            "hamming(a, b), mismatches",
            "Characters in which two texts of one length differ.",
            "hamming('karolin', 'kathrin')",
            "3",
        ),
        Declared(takes(&[Text, Text]), INT),
        Values(|row| {
            let (a, b) = (row.text(0), row.text(1));
            if a.chars().count() != b.chars().count() {
                return Err(row.error("the texts must be of the same length", "22023"));
            }
            int(a.chars().zip(b.chars()).filter(|(a, b)| a != b).count() as i64)
        }),
    ),
    &function(
        &["url_encode"],
        Doc::new("url_encode(s)", "Percent-encoded for a URL.", "url_encode('a b/c')", "a%20b%2Fc"),
        Declared(takes(&[Text]), TEXT),
        Values(|row| text(url_encode(&row.text(0)))),
    ),
    &function(
        &["url_decode"],
        Doc::new("url_decode(s)", "Percent-decoded.", "url_decode('a%20b')", "a b"),
        Declared(takes(&[Text]), TEXT),
        Values(|row| text(url_decode(row, &row.text(0))?)),
    ),
];

/// The character of a code point.
fn character(row: &RowCall<'_>, code: &Value) -> Result<char> {
    let code = match code {
        Value::Int(v) => u32::try_from(*v).ok().and_then(char::from_u32),
        _ => None,
    };
    code.ok_or_else(|| row.error("there is no such character", "22023"))
}

fn concat_with_separator(row: &RowCall<'_>) -> Result<Value> {
    if row.value(0).is_null() {
        return Ok(Value::Null);
    }
    let (separator, mut out) = (row.text(0), String::new());
    let present = (1..row.args.len()).filter(|at| !row.value(*at).is_null());
    for (count, at) in present.enumerate() {
        if count > 0 {
            out += &separator;
        }
        out += &row.text(at);
        check_length(out.len())?;
    }
    text(out)
}

fn split_part(row: &RowCall<'_>) -> Result<Value> {
    let (value, separator, n) = (row.text(0), row.text(1), row.int(2));
    if n == 0 {
        return Err(row.error("parts are counted from 1, or from -1 from the end", "22023"));
    }
    let parts: Vec<&str> =
        if separator.is_empty() { vec![&*value] } else { value.split(&*separator).collect() };
    let at = if n > 0 { n - 1 } else { parts.len() as i64 + n };
    let part = usize::try_from(at).ok().and_then(|at| parts.get(at));
    // A missing part is empty.
    text(part.copied().unwrap_or_default())
}

/// The most steps of an edit distance: the length of one text times that of the other.
const MAX_EDIT_STEPS: usize = 1 << 26;

fn levenshtein(a: &str, b: &str) -> Result<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().saturating_mul(b.len()) > MAX_EDIT_STEPS {
        return Err(Error::limit(format!(
            "the lengths of the texts of an edit distance, multiplied, exceed {MAX_EDIT_STEPS}"
        )));
    }
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, cb) in b.iter().enumerate() {
            row.push((last[j] + usize::from(ca != cb)).min(last[j + 1] + 1).min(row[j] + 1));
        }
        last = row;
    }
    Ok(last[b.len()])
}

fn url_decode(row: &RowCall<'_>, value: &str) -> Result<String> {
    let mut out = Vec::with_capacity(value.len());
    let bytes = value.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).filter(|p| p.iter().all(u8::is_ascii_hexdigit));
        let pair = pair.and_then(|p| std::str::from_utf8(p).ok());
        match (bytes[at], pair.and_then(|p| u8::from_str_radix(p, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).map_err(|_| row.error("the result is not text", "22021"))
}

fn capitals(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut inside = false;
    for c in value.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphanumeric();
    }
    out
}

fn substring_index(value: &str, separator: &str, n: i64) -> String {
    if separator.is_empty() || n == 0 {
        return String::new();
    }
    let parts: Vec<&str> = value.split(separator).collect();
    let wanted = usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX).min(parts.len());
    let kept = if n > 0 { &parts[..wanted] } else { &parts[parts.len() - wanted..] };
    kept.join(separator)
}

/// As in MySQL, a position outside the text changes nothing, and a length past the end means the
/// end.
fn insert(value: &str, position: i64, length: i64, new: &str) -> String {
    let count = value.chars().count() as i64;
    if position < 1 || position > count {
        return value.to_string();
    }
    let start = position as usize - 1;
    // A negative length means the end.
    let removed = usize::try_from(length).unwrap_or(usize::MAX);
    let head = value.chars().take(start);
    let tail = value.chars().skip(start.saturating_add(removed));
    head.chain(new.chars()).chain(tail).collect()
}

fn translate(value: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    let map = |c: char| match from.chars().position(|f| f == c) {
        Some(at) => to.get(at).copied(),
        None => Some(c),
    };
    value.chars().filter_map(map).collect()
}

fn soundex(value: &str) -> String {
    let code = |c: char| match c {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        'H' | 'W' => '-',
        _ => '0',
    };
    let mut letters =
        value.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase());
    let Some(first) = letters.next() else { return String::new() };
    let mut out = String::from(first);
    let mut last = code(first);
    for letter in letters {
        let digit = code(letter);
        if digit == '-' {
            continue;
        }
        if digit != '0' && digit != last {
            out.push(digit);
        }
        last = digit;
        if out.len() == 4 {
            break;
        }
    }
    while out.len() < 4 {
        out.push('0');
    }
    out
}

fn url_encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}
