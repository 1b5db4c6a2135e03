//! A single value, as passed into and out of the engine. Inside the engine, vectors hold values.

use super::data_type::DataType;
use super::interval::{self, Interval};
use super::{decimal, temporal, uuid};
use std::fmt;

/// One SQL value. It does not determine its data type: `Int` represents every integer type except
/// `BIGINT UNSIGNED`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `NULL` of any type.
    Null,
    /// `BOOLEAN`
    Boolean(bool),
    /// `TINYINT…BIGINT` and unsigned integers below 64 bits.
    Int(i64),
    /// `BIGINT UNSIGNED`
    UInt(u64),
    /// `FLOAT`, `DOUBLE`
    Float(f64),
    /// `unscaled / 10^scale`
    Decimal {
        /// The digits as one integer.
        unscaled: i128,
        /// Digits after the point.
        scale: u8,
    },
    /// `CHAR`, `VARCHAR`, `TEXT`
    Text(String),
    /// `BINARY`, `VARBINARY`, `BLOB`
    Binary(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970-01-01 00:00:00.
    Timestamp(i64),
    /// Months, days, microseconds.
    Interval(Interval),
    /// JSON text.
    Json(String),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    TimestampTz(i64),
    /// `UUID`, its first byte the most significant one.
    Uuid(u128),
}

impl Value {
    /// Whether this is `NULL`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The type with which a literal is bound: `INT` if an integer fits, a decimal with just its
    /// digits.
    pub fn natural_type(&self) -> DataType {
        match self {
            Value::Null => DataType::Null,
            Value::Boolean(_) => DataType::Boolean,
            Value::Int(v) if i32::try_from(*v).is_ok() => DataType::Int32,
            Value::Int(_) => DataType::Int64,
            Value::UInt(_) => DataType::UInt64,
            Value::Float(_) => DataType::Float64,
            Value::Decimal { unscaled, scale } => {
                let digits = decimal::digits(*unscaled).max(*scale).max(1);
                DataType::Decimal { precision: digits, scale: *scale }
            }
            Value::Text(_) => DataType::TEXT,
            Value::Binary(_) => DataType::BLOB,
            Value::Date(_) => DataType::Date,
            Value::Time(_) => DataType::Time,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::Interval(_) => DataType::Interval,
            Value::Json(_) => DataType::Json,
            Value::TimestampTz(_) => DataType::TimestampTz,
            Value::Uuid(_) => DataType::Uuid,
        }
    }
}

impl fmt::Display for Value {
    /// Formats like `CAST(… AS TEXT)`; null as `NULL`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::UInt(v) => write!(f, "{v}"),
            Value::Float(v) => f.write_str(&format_float(*v)),
            Value::Decimal { unscaled, scale } => f.write_str(&decimal::format(*unscaled, *scale)),
            Value::Text(v) | Value::Json(v) => f.write_str(v),
            Value::Binary(v) => {
                f.write_str("\\x")?;
                v.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Date(v) => f.write_str(&temporal::format_date(*v)),
            Value::Time(v) => f.write_str(&temporal::format_time(*v)),
            Value::Timestamp(v) => f.write_str(&temporal::format_timestamp(*v)),
            Value::Interval(v) => f.write_str(&interval::format(*v)),
            Value::TimestampTz(v) => write!(f, "{}+00", temporal::format_timestamp(*v)),
            Value::Uuid(v) => f.write_str(&uuid::format(*v)),
        }
    }
}

/// Returns the shortest text that parses to the same double. It always has a decimal point or an
/// exponent, so that it parses as a float.
pub fn format_float(v: f64) -> String {
    if v.is_nan() {
        return "NaN".into();
    }
    if v.is_infinite() {
        return if v > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let magnitude = v.abs();
    if magnitude != 0.0 && !(1e-5..1e16).contains(&magnitude) {
        format!("{v:e}")
    } else {
        format!("{v:?}")
    }
}

/// Like [`format_float`], for a 32-bit float, which has fewer digits.
pub fn format_float32(v: f32) -> String {
    let magnitude = v.abs();
    if !v.is_finite() {
        format_float(v.into())
    } else if magnitude != 0.0 && !(1e-5..1e7).contains(&magnitude) {
        format!("{v:e}")
    } else {
        format!("{v:?}")
    }
}
