//! SQL values as JSON, and JSON as SQL values.

use super::select::{is_container, text};
use crate::kernel::cast::cast_value;
use nacre_types::json::quoted;
use nacre_types::{DataType, Error, Result, Value, decimal, parse_float};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The JSON text of a value: null and booleans as such, numbers as they are shown, anything else as
/// a string. JSON stays as it is.
///
/// # Errors
/// `22023` for what JSON has no form for: infinite numbers and binary values.
pub fn to_json(value: &Value) -> Result<Cow<'_, str>> {
    Ok(match value {
        Value::Null => Cow::Borrowed("null"),
        Value::Json(text) => Cow::Borrowed(text),
        Value::Text(text) => Cow::Owned(quoted(text)),
        Value::Boolean(_) | Value::Int(_) | Value::UInt(_) | Value::Decimal { .. } => {
            Cow::Owned(value.to_string())
        }
        Value::Float(v) if v.is_finite() => Cow::Owned(value.to_string()),
        Value::Float(_) | Value::Binary(_) => {
            let message = format!("JSON has no form for {value}");
            return Err(Error::type_error(message).with_sqlstate("22023"));
        }
        Value::Date(_)
        | Value::Time(_)
        | Value::Timestamp(_)
        | Value::TimestampTz(_)
        | Value::Interval(_)
        | Value::Uuid(_) => Cow::Owned(quoted(&value.to_string())),
    })
}

/// A scalar as a value of a type. Null if the JSON value is null, an object or an array, and if it
/// has no value of the type.
pub fn scalar(value: &str, to: DataType) -> Value {
    let Some(text) = text(value).filter(|_| !is_container(value)) else { return Value::Null };
    let cast = match (value, to) {
        (_, DataType::Json) => return Value::Json(value.to_string()),
        ("true" | "false", _) if to.is_numeric() => {
            cast_value(&Value::Boolean(value == "true"), to)
        }
        _ => cast_value(&Value::Text(text.into_owned()), to),
    };
    match (cast, parse_float(value)) {
        (Ok(value), _) => value,
        // A number with an exponent, or one of which a boolean is asked.
        (Err(_), Some(number)) => cast_value(&Value::Float(number), to).unwrap_or(Value::Null),
        (Err(_), None) => Value::Null,
    }
}

/// The name of a JSON value's type: of MySQL, or the shorter one of PostgreSQL.
pub fn type_name(value: &str, short: bool) -> &'static str {
    let (long, name) = match value.as_bytes().first() {
        Some(b'{') => ("OBJECT", "object"),
        Some(b'[') => ("ARRAY", "array"),
        Some(b'"') => ("STRING", "string"),
        Some(b't' | b'f') => ("BOOLEAN", "boolean"),
        Some(b'n') => ("NULL", "null"),
        _ if value.contains(['.', 'e', 'E']) => ("DOUBLE", "number"),
        _ => ("INTEGER", "number"),
    };
    if short { name } else { long }
}

/// Whether two scalars are equal: numbers by value, others as they are written.
pub fn is_same_scalar(a: &str, b: &str) -> bool {
    let is_number = |v: &str| v.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    a == b || is_number(a) && is_number(b) && order(a, b) == Some(Ordering::Equal)
}

/// The order of two numbers: exact up to 38 digits.
fn order(a: &str, b: &str) -> Option<Ordering> {
    let exact = |text: &str| decimal::parse(text);
    if let (Some((x, from)), Some((y, to))) = (exact(a), exact(b)) {
        let scale = from.max(to);
        let aligned = decimal::rescale(x, from, scale).zip(decimal::rescale(y, to, scale));
        if let Some((x, y)) = aligned {
            return Some(x.cmp(&y));
        }
    }
    parse_float(a)?.partial_cmp(&parse_float(b)?)
}

#[cfg(test)]
mod tests {
    use super::{is_same_scalar, scalar, to_json};
    use nacre_types::{DataType, Value};

    #[test]
    fn scalars_become_values() {
        let int = DataType::Int64;
        for (json, to, value) in [
            ("5", int, Value::Int(5)),
            ("\"5\"", int, Value::Int(5)),
            ("1e3", int, Value::Int(1000)),
            ("true", int, Value::Int(1)),
            ("\"x\"", int, Value::Null),
            ("1e300", int, Value::Null),
            ("null", int, Value::Null),
            ("[5]", int, Value::Null),
            ("5.25", DataType::Float64, Value::Float(5.25)),
            ("\"t\"", DataType::Boolean, Value::Boolean(true)),
            ("2.0", DataType::Boolean, Value::Boolean(true)),
            ("\"1970-01-02\"", DataType::Date, Value::Date(1)),
            ("9007199254740993", int, Value::Int(9_007_199_254_740_993)),
            ("\"a\\n\"", DataType::TEXT, Value::Text("a\n".into())),
        ] {
            assert_eq!(scalar(json, to), value, "{json} as {to}");
        }
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert!(is_same_scalar("1", "1.00") && is_same_scalar("1e3", "1000"));
        assert!(!is_same_scalar("9007199254740993", "9007199254740992"));
        assert!(!is_same_scalar("1", "\"1\"") && !is_same_scalar("true", "1"));
    }

    #[test]
    fn values_become_json() {
        assert_eq!(to_json(&Value::Text("a\"".into())).unwrap(), "\"a\\\"\"");
        assert_eq!(to_json(&Value::Float(1.0)).unwrap(), "1.0");
        assert_eq!(to_json(&Value::Date(0)).unwrap(), "\"1970-01-01\"");
        assert_eq!(to_json(&Value::Float(f64::NAN)).unwrap_err().sqlstate(), "22023");
    }
}
