//! `CAST`: typed loops between numbers, value by value for everything else.
//!
//! Text longer than the target's limit is an error, never truncated: the same kernel converts
//! inserted values.

use super::decimals::{bounds, fit, overflow};
use super::double::{doubles, finite};
use super::parse;
use crate::json::select;
use crate::vector::map::{map_doubles, map_integers, map_values};
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use crate::vector::validity::valid;
use crate::vector::view;
use nacre_column::{Values, Vector};
use nacre_types::invariant::broken;
use nacre_types::temporal::{self, MICROS_PER_DAY};
use nacre_types::{
    DataType, Error, PhysicalType, Result, Value, decimal, format_float32, json, key,
};

/// Like [`cast_value`], for a value of a type that it does not show: a `FLOAT` is held as a double,
/// and its shortest text is that of the 32-bit number.
pub fn cast_value_of(from: DataType, value: &Value, to: DataType) -> Result<Value> {
    match (value, to) {
        (Value::Float(v), DataType::Text { .. } | DataType::Json)
            if from == DataType::Float32 && v.is_finite() =>
        {
            cast_value(&Value::Text(format_float32(*v as f32)), to)
        }
        _ => cast_value(value, to),
    }
}

/// Converts a value to a type; null stays null. Errors: `22003` if the value is out of range,
/// `22001` if it is too long, `22P02` if text does not parse as the type, `42846` without a
/// conversion.
pub fn cast_value(value: &Value, to: DataType) -> Result<Value> {
    use DataType as T;
    if let (Value::Json(text), T::Json) = (value, to) {
        // A value that a program made may be any text.
        return json::normal(text).map(|text| Value::Json(text.into_owned()));
    }
    if value.is_null() || is_of_type(value, to) {
        return Ok(value.clone());
    }
    let bad = || parse::bad_text(value, to);
    if let Value::Text(text) = value
        && !matches!(to, T::Text { .. })
    {
        return parse::parse(text, to);
    }
    if let Value::Json(text) = value
        && !matches!(to, T::Text { .. } | T::Binary { .. })
    {
        return match select::text(text) {
            Some(text) => parse::parse(&text, to),
            None => Ok(Value::Null),
        };
    }
    Ok(match (value, to) {
        (_, T::Null) => Value::Null,
        (Value::Binary(v), T::Text { .. } | T::Json) => {
            let text = std::str::from_utf8(v).map_err(|_| bad())?;
            return cast_value(&Value::Text(text.to_string()), to);
        }
        (_, T::Text { max_chars }) => {
            let text = value.to_string();
            if max_chars
                .is_some_and(|n| text.len() > n as usize && text.chars().count() > n as usize)
            {
                return Err(too_long(to));
            }
            Value::Text(text)
        }
        (Value::Binary(v), T::Binary { max_bytes }) => {
            if max_bytes.is_some_and(|n| v.len() > n as usize) {
                return Err(too_long(to));
            }
            Value::Binary(v.clone())
        }
        (Value::Boolean(v), T::Boolean) => Value::Boolean(*v),
        (Value::Boolean(v), t) if t.is_numeric() => return cast_value(&Value::Int(*v as i64), to),
        (Value::Int(_) | Value::UInt(_) | Value::Decimal { .. }, T::Boolean) => {
            Value::Boolean(key::integer(value) != Some(0))
        }
        (Value::Float(v), T::Boolean) => Value::Boolean(*v != 0.0),
        (Value::Float(v), T::Float32 | T::Float64) => Value::Float(finite(*v, v.is_finite(), to)?),
        (Value::Float(v), t) if t.is_numeric() => key::from_integer(to, float_to_integer(*v, to)?),
        (Value::Int(_) | Value::UInt(_) | Value::Decimal { .. }, t) if t.is_numeric() => {
            let scale = if let Value::Decimal { scale, .. } = value { *scale } else { 0 };
            let Some(unscaled) = key::integer(value) else {
                broken(format_args!(
                    "{value} is an integer or a decimal without an unscaled integer"
                ))
            };
            if t.is_float() {
                Value::Float(finite(decimal::to_f64(unscaled, scale), true, to)?)
            } else {
                key::from_integer(to, fit(decimal::rescale(unscaled, scale, to.scale()), to)?)
            }
        }
        (Value::Date(v), T::Timestamp | T::TimestampTz) => {
            key::from_integer(to, (*v as i64 * MICROS_PER_DAY) as i128)
        }
        (Value::Timestamp(v) | Value::TimestampTz(v), T::Date) => {
            Value::Date(v.div_euclid(MICROS_PER_DAY) as i32)
        }
        (Value::Timestamp(v) | Value::TimestampTz(v), T::Time) => {
            Value::Time(v.rem_euclid(MICROS_PER_DAY))
        }
        // Sessions are in UTC.
        (Value::Timestamp(v) | Value::TimestampTz(v), T::Timestamp | T::TimestampTz) => {
            key::from_integer(to, *v as i128)
        }
        (Value::Time(v), T::Interval) => {
            Value::Interval(nacre_types::Interval { months: 0, days: 0, micros: *v })
        }
        (Value::Boolean(_) | Value::Int(_) | Value::UInt(_) | Value::Decimal { .. }, T::Json) => {
            Value::Json(value.to_string())
        }
        (Value::Float(v), T::Json) if v.is_finite() => Value::Json(value.to_string()),
        (Value::Date(_) | Value::Time(_) | Value::Timestamp(_), T::Json)
        | (Value::TimestampTz(_) | Value::Uuid(_), T::Json) => {
            Value::Json(json::quoted(&value.to_string()))
        }
        _ => return Err(no_cast(value.natural_type(), to)),
    })
}

#[cold]
fn no_cast(from: DataType, to: DataType) -> Error {
    Error::type_error(format!("cannot cast {from} to {to}")).with_sqlstate("42846")
}

#[cold]
fn too_long(to: DataType) -> Error {
    Error::type_error(format!("value too long for {to}")).with_sqlstate("22001")
}

/// Whether a value already has the type and is within its limits.
pub fn is_of_type(value: &Value, data_type: DataType) -> bool {
    match (value, data_type) {
        (Value::Boolean(_), DataType::Boolean)
        | (Value::Float(_), DataType::Float64)
        | (Value::Text(_), DataType::Text { max_chars: None })
        | (Value::Binary(_), DataType::Binary { max_bytes: None })
        | (Value::Date(_), DataType::Date)
        | (Value::Time(_), DataType::Time)
        | (Value::Timestamp(_), DataType::Timestamp)
        | (Value::Interval(_), DataType::Interval)
        | (Value::TimestampTz(_), DataType::TimestampTz)
        | (Value::Uuid(_), DataType::Uuid)
        | (Value::Json(_), DataType::Json) => true,
        (Value::Int(v), t) if t != DataType::UInt64 => {
            t.integer_range().is_some_and(|(low, high)| (low..=high).contains(&(*v as i128)))
        }
        (Value::UInt(_), DataType::UInt64) => true,
        (Value::Decimal { unscaled, scale }, DataType::Decimal { precision, scale: s }) => {
            *scale == s && decimal::digits(*unscaled) <= precision
        }
        (Value::Text(v), DataType::Text { max_chars: Some(n) }) => v.len() <= n as usize,
        _ => false,
    }
}

fn float_to_integer(v: f64, to: DataType) -> Result<i128> {
    let scale = to.scale();
    let unscaled = if scale == 0 && v.abs() < 1e18 {
        Some(v.round() as i128)
    } else {
        decimal::from_f64(v, scale)
    };
    fit(unscaled, to)
}

/// Converts the rows of a vector; the errors are those of [`cast_value`].
pub fn cast_vector(arg: &Vector, to: DataType, rows: ActiveRows<'_>) -> Result<Vector> {
    let from = arg.data_type();
    if from == to {
        return Ok(arg.clone());
    }
    if from == DataType::Null {
        return Ok(Vector::constant(to, &Value::Null, rows.len));
    }
    let unlimited =
        matches!(to, DataType::Text { max_chars: None } | DataType::Binary { max_bytes: None });
    if unlimited
        && from.physical() == PhysicalType::Bytes
        && !matches!(from, DataType::Binary { .. })
    {
        return Ok(arg.clone().with_type(to));
    }
    let from_number = from.is_integer() || from.is_decimal();
    if from_number && (to.is_integer() || to.is_decimal()) {
        return integers(arg, to, rows);
    }
    if from.is_numeric() && to.is_float() {
        return floats(arg, to, rows);
    }
    if matches!(from, DataType::Timestamp | DataType::TimestampTz)
        && matches!(to, DataType::Timestamp | DataType::TimestampTz)
    {
        return Ok(arg.clone().with_type(to));
    }
    if from == DataType::Date
        && matches!(to, DataType::Timestamp | DataType::TimestampTz)
        && let Some(days) = view::i64s(arg)
    {
        let out = (0..arg.len()).map(|i| days.get(i).wrapping_mul(MICROS_PER_DAY)).collect();
        return Ok(Vector::new(to, Values::I64(out), arg.validity().cloned()));
    }
    map_values(&[arg], to, rows, Room::of_vector(), &mut |i| {
        let value = arg.value(i);
        match (&value, to) {
            (Value::Text(text), DataType::Json) => {
                json::normal(text).map(|text| Value::Json(text.into_owned()))
            }
            _ => cast_value_of(from, &value, to),
        }
    })
}

fn integers(arg: &Vector, to: DataType, rows: ActiveRows<'_>) -> Result<Vector> {
    let (from_scale, scale) = (arg.data_type().scale(), to.scale());
    let validity = arg.validity().cloned();
    let (low, high) = bounds(to);
    if from_scale == scale
        && let Some(v) = view::i64s(arg)
    {
        let fits = |v: i64| (low..=high).contains(&(v as i128));
        // Widening never fails; otherwise check only the active rows.
        let (from_low, from_high) = bounds(arg.data_type());
        if (from_low < low || from_high > high)
            && rows.iter().any(|i| valid(&validity, i) && !fits(v.get(i)))
        {
            return Err(overflow(to));
        }
        if to.physical() == PhysicalType::I64 {
            return Ok(arg.clone().with_type(to));
        }
        let out = (0..arg.len()).map(|i| v.get(i) as i128).collect();
        return Ok(Vector::new(to, Values::I128(out), validity));
    }
    let Some(v) = view::wide(arg) else { return Err(no_cast(arg.data_type(), to)) };
    map_integers(to, validity, rows, &mut |i| {
        decimal::rescale(v.get(i), from_scale, scale)
            .filter(|v| (low..=high).contains(v))
            .ok_or_else(|| overflow(to))
    })
}

fn floats(arg: &Vector, to: DataType, rows: ActiveRows<'_>) -> Result<Vector> {
    let validity = arg.validity().cloned();
    let values = doubles(arg)?;
    map_doubles(to, validity, rows, |i| {
        let v = values.get(i);
        finite(v, v.is_finite(), to)
    })
}

/// A view of timestamps or dates as microseconds.
pub fn micros(vector: &Vector) -> Option<impl Fn(usize) -> i64> {
    let factor = if vector.data_type() == DataType::Date { temporal::MICROS_PER_DAY } else { 1 };
    let values = view::i64s(vector)?;
    Some(move |i: usize| values.get(i).wrapping_mul(factor))
}
