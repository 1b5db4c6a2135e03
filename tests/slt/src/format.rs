//! Formats values as sqllogictest prints them, by the type letter that the script expects: `I`
//! integer, `R` three decimal places, anything else text.

use md5::{Digest, Md5};
use nacredb::{QueryResult, Value};

/// Formats all values, row by row. `letters` may be too short or empty: further values are text.
/// With `sqlite`, text is formatted as in SQLite: truth values are 1 and 0, and every byte other
/// than printable ASCII is `@`.
pub fn rows(result: &QueryResult, letters: &[char], sqlite: bool) -> Vec<Vec<String>> {
    let mut rows = Vec::with_capacity(result.rows());
    for batch in &result.batches {
        for row in 0..batch.rows {
            let values = batch.columns.iter().enumerate();
            rows.push(
                values
                    .map(|(at, column)| {
                        value(&column.value(row), letters.get(at).copied().unwrap_or('T'), sqlite)
                    })
                    .collect(),
            );
        }
    }
    rows
}

/// Formats one value under a type letter.
pub fn value(value: &Value, letter: char, sqlite: bool) -> String {
    match (letter, value) {
        (_, Value::Null) => "NULL".into(),
        ('I', value) => integer(value).to_string(),
        ('R', value) => format!("{:.3}", number(value)),
        (_, Value::Boolean(v)) if sqlite => u8::from(*v).to_string(),
        (_, value) => match value.to_string() {
            text if text.is_empty() => "(empty)".into(),
            text if sqlite => text
                .bytes()
                .map(|b| if matches!(b, b' '..=b'~') { char::from(b) } else { '@' })
                .collect(),
            text => text.chars().map(|c| if c.is_control() { '@' } else { c }).collect(),
        },
    }
}

/// Reads a value as an integer like SQLite: truncated, and text up to its first non-numeric
/// character.
fn integer(value: &Value) -> i128 {
    match value {
        Value::Int(v) => *v as i128,
        Value::UInt(v) => *v as i128,
        Value::Boolean(v) => *v as i128,
        Value::Decimal { unscaled, scale } => unscaled / 10i128.pow(*scale as u32),
        Value::Float(v) => *v as i128,
        other => {
            let text = other.to_string();
            let digits = text.strip_prefix('-').unwrap_or(&text);
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let magnitude: i128 = digits[..end].parse().unwrap_or(0);
            if digits.len() < text.len() { -magnitude } else { magnitude }
        }
    }
}

fn number(value: &Value) -> f64 {
    match value {
        Value::Int(v) => *v as f64,
        Value::UInt(v) => *v as f64,
        Value::Boolean(v) => f64::from(u8::from(*v)),
        Value::Float(v) => *v,
        other => other.to_string().parse().unwrap_or(0.0),
    }
}

/// `30 values hashing to …`, the short form of long results.
pub fn hash(rows: &[Vec<String>]) -> String {
    let mut md5 = Md5::new();
    for value in rows.iter().flatten() {
        md5.update(value.as_bytes());
        md5.update(b"\n");
    }
    let digits: String = md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} values hashing to {digits}", rows.iter().map(Vec::len).sum::<usize>())
}

/// Whether an expected result is given in its short form.
pub fn is_hash(expected: &[String]) -> bool {
    let [line] = expected else { return false };
    let words: Vec<&str> = line.split(' ').collect();
    matches!(words[..], [count, "values", "hashing", "to", digits]
        if count.bytes().all(|b| b.is_ascii_digit()) && digits.len() == 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_decide() {
        for (v, letter, text) in [
            (Value::Null, 'I', "NULL"),
            (Value::Float(2.9), 'I', "2"),
            (Value::Decimal { unscaled: -295, scale: 2 }, 'I', "-2"),
            (Value::Text("12abc".into()), 'I', "12"),
            (Value::Text("abc".into()), 'I', "0"),
            (Value::Int(2), 'R', "2.000"),
            (Value::Decimal { unscaled: 12345, scale: 4 }, 'R', "1.234"),
            (Value::Boolean(true), 'I', "1"),
            (Value::Boolean(true), 'T', "true"),
            (Value::Text(String::new()), 'T', "(empty)"),
            (Value::Text("a\nb".into()), 'T', "a@b"),
            (Value::Date(0), 'T', "1970-01-01"),
        ] {
            assert_eq!(value(&v, letter, false), text, "{v} {letter}");
        }
    }

    #[test]
    fn text_as_sqlite_shows_it() {
        assert_eq!(value(&Value::Boolean(true), 'T', true), "1");
        assert_eq!(value(&Value::Text("aé~\t".into()), 'T', true), "a@@~@");
    }

    #[test]
    fn hashes_are_sqlites() {
        // printf '1\n2\n' | md5sum
        let rows = vec![vec!["1".to_owned()], vec!["2".to_owned()]];
        let text = hash(&rows);
        assert_eq!(text, "2 values hashing to 6ddb4095eb719e2a9f0a3f95677d24e0");
        assert!(is_hash(&[text]));
        assert!(!is_hash(&["2 values".into()]));
    }
}
