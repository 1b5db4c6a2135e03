//! The total order of values, shared by comparing, grouping and sorting.

use nacre_types::temporal::MICROS_PER_DAY;
use nacre_types::{Interval, Value, key};
use std::cmp::Ordering;

/// Length of an interval in microseconds, counting a month as 30 days: the sort key of intervals.
pub fn length(value: &Value) -> i128 {
    match value {
        Value::Interval(v) => packed_length(v.pack()),
        _ => 0,
    }
}

/// [`length`] of a packed interval.
pub fn packed_length(packed: i128) -> i128 {
    let v = Interval::unpack(packed);
    (v.months as i128 * 30 + v.days as i128) * MICROS_PER_DAY as i128 + v.micros as i128
}

/// Total order of two values of one type; null is smallest.
pub fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => b.is_null().cmp(&a.is_null()),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => key::order_f64(*a).cmp(&key::order_f64(*b)),
        (Value::Text(a) | Value::Json(a), Value::Text(b) | Value::Json(b)) => {
            a.as_bytes().cmp(b.as_bytes())
        }
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        (Value::Interval(_), Value::Interval(_)) => length(a).cmp(&length(b)),
        _ => key::integer(a).cmp(&key::integer(b)),
    }
}
