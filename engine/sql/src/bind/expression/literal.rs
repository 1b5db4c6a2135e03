//! Literals: parsing of numbers, and the casts of values that are safe at bind time. A value that
//! may be out of range is left to run time; text that does not parse as its type is an error here.

use crate::expr::BinaryOp;
use nacre_types::{
    DataType, Error, Result, Value, decimal, format_float32, interval, json, key, parse_float,
    temporal, uuid,
};
use std::borrow::Cow;

/// Parses a number: an integer or an exact decimal, or a double if it has an exponent.
pub(crate) fn number(text: &str) -> Result<Value> {
    let digits =
        if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    if digits.contains(['e', 'E']) {
        let v =
            parse_float(&digits).ok_or_else(|| Error::syntax(format!("{text} is not a number")))?;
        return if v.is_finite() {
            Ok(Value::Float(v))
        } else {
            Err(out_of_range(text, DataType::Float64))
        };
    }
    if let Ok(v) = digits.parse::<i64>() {
        return Ok(Value::Int(v));
    }
    match decimal::parse(&digits) {
        Some((unscaled, scale)) => Ok(Value::Decimal { unscaled, scale }),
        None => Err(Error::out_of_range(format!("number {text} has more than 38 digits"))),
    }
}

#[cold]
fn invalid(text: &str, to: DataType) -> Error {
    let state = match to {
        t if t.is_moment() || t == DataType::Interval => "22007",
        _ => "22P02",
    };
    Error::type_error(format!("'{text}' is not a valid {to}")).with_sqlstate(state)
}

#[cold]
fn out_of_range(text: &str, to: DataType) -> Error {
    Error::out_of_range(format!("{text} is out of range of {to}"))
}

/// Returns `(unscaled, scale)` of an exact number, whose value is `unscaled / 10^scale`.
pub(crate) fn exact(value: &Value) -> Option<(i128, u8)> {
    match value {
        Value::Int(v) => Some((*v as i128, 0)),
        Value::UInt(v) => Some((*v as i128, 0)),
        Value::Decimal { unscaled, scale } => Some((*unscaled, *scale)),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(v) => Some(*v),
        _ => exact(value).map(|(unscaled, scale)| decimal::to_f64(unscaled, scale)),
    }
}

fn integer(v: i128, to: DataType) -> Option<Value> {
    let (low, high) = to.integer_range()?;
    if !(low..=high).contains(&v) {
        return None;
    }
    if to == DataType::UInt64 {
        u64::try_from(v).ok().map(Value::UInt)
    } else {
        i64::try_from(v).ok().map(Value::Int)
    }
}

fn decimal_value((unscaled, from): (i128, u8), precision: u8, scale: u8) -> Option<Value> {
    let unscaled = decimal::rescale(unscaled, from, scale)?;
    (decimal::digits(unscaled) <= precision).then_some(Value::Decimal { unscaled, scale })
}

/// Parses text as an exact number; `to` is the target type named in the error.
pub(crate) fn exact_number(text: &str, to: DataType) -> Result<Value> {
    let (unscaled, scale) = decimal::parse(text).ok_or_else(|| invalid(text, to))?;
    Ok(Value::Decimal { unscaled, scale })
}

/// Casts a value. `None` leaves the cast, or its error, to run time.
pub(crate) fn cast(value: &Value, to: DataType) -> Result<Option<Value>> {
    use DataType as T;
    let text = match value {
        Value::Null => return Ok(Some(Value::Null)),
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    };
    if let Some(text) = text {
        let trimmed = text.trim();
        let bad = || invalid(text, to);
        return Ok(match to {
            T::Boolean => match trimmed.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" | "yes" | "y" | "on" => Some(Value::Boolean(true)),
                "false" | "f" | "0" | "no" | "n" | "off" => Some(Value::Boolean(false)),
                _ => return Err(bad()),
            },
            T::Decimal { precision, scale } => {
                exact(&exact_number(text, to)?).and_then(|v| decimal_value(v, precision, scale))
            }
            T::Float64 | T::Float32 => {
                let v = parse_float(trimmed).ok_or_else(bad)?;
                let v = if to == T::Float32 { v as f32 as f64 } else { v };
                // The words for infinity are valid; digits that overflow to infinity are not.
                if v.is_infinite() && trimmed.contains(|c: char| c.is_ascii_digit()) {
                    return Err(out_of_range(text, to));
                }
                Some(Value::Float(v))
            }
            T::Date => Some(Value::Date(temporal::parse_date_of(text).ok_or_else(bad)?)),
            T::Time => Some(Value::Time(temporal::parse_time_of(text).ok_or_else(bad)?)),
            T::Timestamp => {
                Some(Value::Timestamp(temporal::parse_timestamp(text).ok_or_else(bad)?))
            }
            T::TimestampTz => {
                Some(Value::TimestampTz(temporal::parse_timestamp_tz(text).ok_or_else(bad)?))
            }
            T::Uuid => Some(Value::Uuid(uuid::parse(text).ok_or_else(bad)?)),
            T::Interval => Some(Value::Interval(interval::parse(text).ok_or_else(bad)?)),
            T::Text { max_chars } => {
                let fits = max_chars.is_none_or(|n| text.chars().count() <= n as usize);
                fits.then(|| value.clone())
            }
            _ if to.is_integer() => {
                let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    let (unscaled, scale) = decimal::parse(trimmed).ok_or_else(bad)?;
                    let whole = decimal::rescale(unscaled, scale, 0);
                    return Ok(whole.and_then(|v| integer(v, to)));
                }
                trimmed.parse().ok().and_then(|v| integer(v, to))
            }
            _ => None,
        });
    }
    Ok(match to {
        T::Boolean => match value {
            Value::Boolean(_) => Some(value.clone()),
            _ => None,
        },
        T::Decimal { precision, scale } => {
            exact(value).and_then(|v| decimal_value(v, precision, scale))
        }
        T::Float64 => float(value).map(Value::Float),
        T::Float32 => {
            float(value).map(|v| v as f32 as f64).filter(|v| v.is_finite()).map(Value::Float)
        }
        T::Date => match value {
            Value::Date(_) => Some(value.clone()),
            _ => None,
        },
        T::Timestamp | T::TimestampTz => {
            let micros = match value {
                Value::Timestamp(micros) | Value::TimestampTz(micros) => Some(*micros),
                Value::Date(days) => Some(*days as i64 * temporal::MICROS_PER_DAY),
                _ => None,
            };
            micros.map(|micros| key::from_integer(to, micros as i128))
        }
        T::Uuid => matches!(value, Value::Uuid(_)).then(|| value.clone()),
        _ if to.is_integer() => exact(value)
            .and_then(|(unscaled, scale)| decimal::rescale(unscaled, scale, 0))
            .and_then(|v| integer(v, to)),
        _ => None,
    })
}

/// Casts a value of a type with the semantics of run time; `None` if the value does not fit.
pub(crate) fn cast_fully(from: DataType, value: &Value, to: DataType) -> Result<Option<Value>> {
    use DataType as T;
    if let Some(value) = cast(value, to)? {
        return Ok(Some(value));
    }
    let bytes = |bytes: &[u8], most: Option<u32>| {
        let fits = most.is_none_or(|n| bytes.len() <= n as usize);
        fits.then(|| Value::Binary(bytes.to_vec()))
    };
    Ok(match (value, to) {
        (Value::Text(text), T::Json) => Some(Value::Json(json::normal(text)?.into_owned())),
        (Value::Text(text), T::Binary { max_bytes }) => bytes(text.as_bytes(), max_bytes),
        (Value::Binary(v), T::Binary { max_bytes }) => bytes(v, max_bytes),
        (Value::Binary(v), T::Text { .. }) => match std::str::from_utf8(v) {
            Ok(text) => cast(&Value::Text(text.to_string()), to)?,
            Err(_) => None,
        },
        (Value::Text(_), _) => None,
        (Value::Float(v), T::Text { .. }) if from == T::Float32 => {
            cast(&Value::Text(format_float32(*v as f32)), to)?
        }
        (_, T::Text { .. }) => cast(&Value::Text(value.to_string()), to)?,
        (Value::Boolean(v), t) if t.is_numeric() => cast(&Value::Int(*v as i64), to)?,
        (Value::Float(v), T::Boolean) => Some(Value::Boolean(*v != 0.0)),
        (_, T::Boolean) => exact(value).map(|(unscaled, _)| Value::Boolean(unscaled != 0)),
        (Value::Float(v), t) if t.is_integer() || t.is_decimal() => {
            let exact = decimal::from_f64(*v, to.scale())
                .map(|unscaled| Value::Decimal { unscaled, scale: to.scale() });
            exact.map_or(Ok(None), |v| cast(&v, to))?
        }
        (Value::Timestamp(v) | Value::TimestampTz(v), T::Date) => {
            Some(Value::Date(v.div_euclid(temporal::MICROS_PER_DAY) as i32))
        }
        (Value::Timestamp(v) | Value::TimestampTz(v), T::Time) => {
            Some(Value::Time(v.rem_euclid(temporal::MICROS_PER_DAY)))
        }
        _ => None,
    })
}

/// Converts a number to another numeric type if that is lossless.
pub(crate) fn fit(value: &Value, to: DataType) -> Option<Value> {
    if to.is_float() {
        let v = float(value)?;
        return (to == DataType::Float64).then_some(Value::Float(v));
    }
    let (mut unscaled, mut scale) = exact(value)?;
    while scale > to.scale() && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    if scale > to.scale() {
        return None;
    }
    match to {
        DataType::Decimal { precision, scale: s } => decimal_value((unscaled, scale), precision, s),
        _ => integer(unscaled, to),
    }
}

/// Sum, difference or product of two exact numbers; `None` on overflow, which is reported at run
/// time.
pub(crate) fn arithmetic(op: BinaryOp, a: &Value, b: &Value) -> Option<Value> {
    let ((a, s), (b, t)) = (exact(a)?, exact(b)?);
    let scale = s.max(t);
    let aligned = || Some((decimal::rescale(a, s, scale)?, decimal::rescale(b, t, scale)?));
    let (unscaled, scale) = match op {
        BinaryOp::Add => aligned().and_then(|(a, b)| a.checked_add(b)).map(|v| (v, scale))?,
        BinaryOp::Subtract => aligned().and_then(|(a, b)| a.checked_sub(b)).map(|v| (v, scale))?,
        BinaryOp::Multiply => (a.checked_mul(b)?, s.checked_add(t)?),
        _ => return None,
    };
    Some(Value::Decimal { unscaled, scale })
}

/// Compares two values of one type, to fold comparisons of literals.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::UInt(a), Value::UInt(b)) => Some(a.cmp(b)),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b))
        | (Value::TimestampTz(a), Value::TimestampTz(b)) => Some(a.cmp(b)),
        (Value::Uuid(a), Value::Uuid(b)) => Some(a.cmp(b)),
        (Value::Decimal { unscaled: a, scale: s }, Value::Decimal { unscaled: b, scale: t })
            if s == t =>
        {
            Some(a.cmp(b))
        }
        _ => None,
    }
}
