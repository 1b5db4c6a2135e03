//! Arithmetic on dates, times, timestamps and intervals, value by value: it is rare in inner loops.

use super::cast::cast_value;
use super::decimals;
use crate::operator::BinaryOp;
use crate::vector::map::map_values;
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use nacre_column::Vector;
use nacre_types::temporal::{self, MICROS_PER_DAY};
use nacre_types::{DataType, Error, Interval, Result, Value, interval};

/// Whether a type uses calendar arithmetic.
pub fn is_temporal(data_type: DataType) -> bool {
    data_type.is_moment() || data_type == DataType::Interval
}

#[cold]
fn out_of_calendar() -> Error {
    Error::out_of_range("date or time out of range").with_sqlstate("22008")
}

/// Computes `left op right` if one side is a date, time, timestamp or interval.
pub fn binary(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    map_values(&[left, right], data_type, rows, Room::of_vector(), &mut |i| {
        one(op, &in_utc(left.value(i)), &in_utc(right.value(i)), data_type)
    })
}

/// A timestamp with a time zone as one without, which is that of UTC.
fn in_utc(value: Value) -> Value {
    match value {
        Value::TimestampTz(micros) => Value::Timestamp(micros),
        other => other,
    }
}

fn one(op: BinaryOp, left: &Value, right: &Value, data_type: DataType) -> Result<Value> {
    use BinaryOp::{Add, Divide, Multiply, Subtract};
    let value = match (op, left, right) {
        (Add, Value::Interval(v), at) if !matches!(at, Value::Interval(_)) => shift(at, *v)?,
        (Add, at, Value::Interval(v)) if !matches!(at, Value::Interval(_)) => shift(at, *v)?,
        (Subtract, at, Value::Interval(v)) if !matches!(at, Value::Interval(_)) => {
            shift(at, inverse(*v)?)?
        }
        (Add, Value::Interval(a), Value::Interval(b)) => Value::Interval(sum(*a, *b)?),
        (Subtract, Value::Interval(a), Value::Interval(b)) => {
            Value::Interval(sum(*a, inverse(*b)?)?)
        }
        (Add, Value::Date(day), Value::Int(n)) | (Add, Value::Int(n), Value::Date(day)) => {
            move_days(*day, Some(*n))?
        }
        (Subtract, Value::Date(day), Value::Int(n)) => move_days(*day, n.checked_neg())?,
        (Add, Value::Timestamp(_), Value::Int(n)) => shift(left, days(*n)?)?,
        (Subtract, Value::Timestamp(_), Value::Int(n)) => shift(left, inverse(days(*n)?)?)?,
        (Subtract, Value::Date(a), Value::Date(b)) => {
            let days = *a as i64 - *b as i64;
            if data_type == DataType::Interval {
                Value::Interval(Interval { months: 0, days: days as i32, micros: 0 })
            } else {
                Value::Int(days)
            }
        }
        (Subtract, Value::Time(a), Value::Time(b)) => {
            Value::Interval(Interval { months: 0, days: 0, micros: a - b })
        }
        (Subtract, Value::Date(_) | Value::Timestamp(_), Value::Date(_) | Value::Timestamp(_)) => {
            let micros =
                micros_of(left).checked_sub(micros_of(right)).ok_or_else(out_of_calendar)?;
            let days = i32::try_from(micros / MICROS_PER_DAY).map_err(|_| out_of_calendar())?;
            Value::Interval(Interval { months: 0, days, micros: micros % MICROS_PER_DAY })
        }
        (Multiply, Value::Interval(v), Value::Int(n))
        | (Multiply, Value::Int(n), Value::Interval(v)) => Value::Interval(times(*v, *n)?),
        (Divide, Value::Interval(_), Value::Int(0)) => return Err(decimals::zero_division()),
        (Divide, Value::Interval(v), Value::Int(n)) => {
            // The remainder of months becomes days, that of days becomes microseconds.
            let months = v.months as i64 / n;
            let days = v.days as i64 + v.months as i64 % n * 30;
            let micros = v.micros as i128 + (days % n) as i128 * MICROS_PER_DAY as i128;
            Value::Interval(narrow(months, days / n, micros / *n as i128)?)
        }
        _ => {
            let (l, r) = (left.natural_type(), right.natural_type());
            return Err(Error::type_error(format!("no operator {l} {} {r}", op.symbol()))
                .with_sqlstate("42883"));
        }
    };
    cast_value(&value, data_type)
}

fn micros_of(value: &Value) -> i64 {
    match value {
        Value::Date(days) => *days as i64 * MICROS_PER_DAY,
        Value::Timestamp(micros) => *micros,
        _ => 0,
    }
}

fn days(n: i64) -> Result<Interval> {
    let days = i32::try_from(n).map_err(|_| out_of_calendar())?;
    Ok(Interval { months: 0, days, micros: 0 })
}

fn move_days(day: i32, by: Option<i64>) -> Result<Value> {
    let moved = by.and_then(|by| (day as i64).checked_add(by)).and_then(|d| i32::try_from(d).ok());
    let moved = moved.filter(|d| (temporal::MIN_DATE..=temporal::MAX_DATE).contains(d));
    moved.map(Value::Date).ok_or_else(out_of_calendar)
}

/// A date, time or timestamp plus an interval. A date plus days stays a date; the caller casts.
fn shift(at: &Value, by: Interval) -> Result<Value> {
    match at {
        Value::Date(day) => {
            let moved =
                interval::add(*day as i64 * MICROS_PER_DAY, by).ok_or_else(out_of_calendar)?;
            Ok(Value::Timestamp(moved))
        }
        Value::Timestamp(micros) => {
            interval::add(*micros, by).map(Value::Timestamp).ok_or_else(out_of_calendar)
        }
        Value::Time(micros) => {
            let moved = (*micros as i128 + by.micros as i128).rem_euclid(MICROS_PER_DAY as i128);
            Ok(Value::Time(moved as i64))
        }
        _ => Err(Error::type_error(format!("cannot add an interval to {}", at.natural_type()))),
    }
}

fn narrow(months: i64, days: i64, micros: i128) -> Result<Interval> {
    match (i32::try_from(months), i32::try_from(days), i64::try_from(micros)) {
        (Ok(months), Ok(days), Ok(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(Error::out_of_range("INTERVAL out of range").with_sqlstate("22015")),
    }
}

fn times(v: Interval, n: i64) -> Result<Interval> {
    let product = |a: i32| (a as i64).checked_mul(n).unwrap_or(i64::MAX);
    narrow(product(v.months), product(v.days), v.micros as i128 * n as i128)
}

fn inverse(v: Interval) -> Result<Interval> {
    times(v, -1)
}

fn sum(a: Interval, b: Interval) -> Result<Interval> {
    let micros = a.micros as i128 + b.micros as i128;
    narrow(a.months as i64 + b.months as i64, a.days as i64 + b.days as i64, micros)
}

/// Computes `-interval`.
pub fn negate(value: &Value) -> Result<Value> {
    match value {
        Value::Interval(v) => inverse(*v).map(Value::Interval),
        other => Ok(other.clone()),
    }
}
