//! Parses parameter values given on the command line.

use nacredb::{Value, decimal};

/// Parses a number, `true`, `false` or `null` as such; anything else, and anything in single
/// quotes, is text.
pub fn parse(text: &str) -> Value {
    if text.len() >= 2 && text.starts_with('\'') && text.ends_with('\'') {
        return Value::Text(text[1..text.len() - 1].replace("''", "'"));
    }
    match text.to_ascii_lowercase().as_str() {
        "null" => return Value::Null,
        "true" => return Value::Boolean(true),
        "false" => return Value::Boolean(false),
        _ => {}
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Value::Int(integer);
    }
    if let Ok(integer) = text.parse::<u64>() {
        return Value::UInt(integer);
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if numeric && text.contains(['e', 'E']) {
        return text.parse().map_or_else(|_| Value::Text(text.into()), Value::Float);
    }
    match decimal::parse(text).filter(|_| numeric && text.trim() == text) {
        Some((unscaled, scale)) => Value::Decimal { unscaled, scale },
        None => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_literals_and_text() {
        for (text, value) in [
            ("1", Value::Int(1)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("18446744073709551615", Value::UInt(u64::MAX)),
            ("1.50", Value::Decimal { unscaled: 150, scale: 2 }),
            ("1e3", Value::Float(1000.0)),
            ("NULL", Value::Null),
            ("true", Value::Boolean(true)),
            ("'1'", Value::Text("1".into())),
            ("'it''s'", Value::Text("it's".into())),
            ("2026-11-21", Value::Text("2026-11-21".into())),
            ("", Value::Text("".into())),
            ("-", Value::Text("-".into())),
            ("'", Value::Text("'".into())),
            ("east", Value::Text("east".into())),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
    }
}
