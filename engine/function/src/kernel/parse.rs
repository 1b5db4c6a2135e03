//! Parses text into values for `CAST(text AS …)`. Surrounding blanks are ignored.

use super::decimals::fit;
use super::double::finite;
use nacre_types::{
    DataType, Error, Result, Value, decimal, interval, json, key, parse_float, temporal, uuid,
};

/// The error for text that is not a value of the type (`22P02`).
#[cold]
pub fn bad_text(value: &Value, to: DataType) -> Error {
    let mut text = value.to_string();
    if text.chars().count() > 60 {
        text = text.chars().take(57).chain("...".chars()).collect();
    }
    Error::type_error(format!("'{text}' is not a valid {to}")).with_sqlstate("22P02")
}

/// Parses a value of a type other than text.
pub fn parse(text: &str, to: DataType) -> Result<Value> {
    use DataType as T;
    let bad = || bad_text(&Value::Text(text.to_string()), to);
    let trimmed = text.trim();
    Ok(match to {
        T::Null => Value::Null,
        T::Boolean => Value::Boolean(boolean(trimmed).ok_or_else(bad)?),
        T::Float32 | T::Float64 => {
            let v = parse_float(trimmed).ok_or_else(bad)?;
            // `inf` is a double; digits that overflow to infinity are not.
            let spelled = trimmed.trim_start_matches(['-', '+']).starts_with(['i', 'I']);
            Value::Float(finite(v, !spelled && !v.is_nan(), to)?)
        }
        T::Decimal { scale, .. } => {
            let (unscaled, from) = decimal::parse(trimmed).ok_or_else(bad)?;
            key::from_integer(to, fit(decimal::rescale(unscaled, from, scale), to)?)
        }
        t if t.is_integer() => {
            let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                let (unscaled, scale) = decimal::parse(trimmed).ok_or_else(bad)?;
                return Ok(key::from_integer(to, fit(decimal::rescale(unscaled, scale, 0), to)?));
            }
            key::from_integer(to, fit(trimmed.parse().ok(), to)?)
        }
        T::Date => Value::Date(temporal::parse_date_of(trimmed).ok_or_else(bad)?),
        T::Time => Value::Time(temporal::parse_time_of(trimmed).ok_or_else(bad)?),
        T::Timestamp => Value::Timestamp(temporal::parse_timestamp(trimmed).ok_or_else(bad)?),
        T::TimestampTz => {
            Value::TimestampTz(temporal::parse_timestamp_tz(trimmed).ok_or_else(bad)?)
        }
        T::Uuid => Value::Uuid(uuid::parse(trimmed).ok_or_else(bad)?),
        T::Interval => Value::Interval(interval::parse(trimmed).ok_or_else(bad)?),
        T::Json => Value::Json(json::normal(text)?.into_owned()),
        T::Binary { max_bytes } => {
            if max_bytes.is_some_and(|n| text.len() > n as usize) {
                return Err(
                    Error::type_error(format!("value too long for {to}")).with_sqlstate("22001")
                );
            }
            Value::Binary(text.as_bytes().to_vec())
        }
        _ => return Err(bad()),
    })
}

fn boolean(text: &str) -> Option<bool> {
    let any = |words: &[&str]| words.iter().any(|w| text.eq_ignore_ascii_case(w));
    if any(&["true", "t", "yes", "y", "on", "1"]) {
        Some(true)
    } else if any(&["false", "f", "no", "n", "off", "0"]) {
        Some(false)
    } else {
        None
    }
}
