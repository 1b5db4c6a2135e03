//! A single value, as it enters and leaves the engine. Inside, values live in vectors.

use crate::{DataType, decimal, temporal};
use std::fmt;

/// `INTERVAL`: months, days and microseconds are kept apart, as in the SQL standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    /// Whole months.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// Packs into the 128-bit physical shape of `INTERVAL` vectors: months, days, microseconds, high to low.
    pub fn pack(self) -> i128 {
        ((self.months as i128) << 96)
            | (((self.days as u32) as i128) << 64)
            | ((self.micros as u64) as i128)
    }

    /// The inverse of [`Interval::pack`].
    pub fn unpack(packed: i128) -> Interval {
        Interval {
            months: (packed >> 96) as i32,
            days: (packed >> 64) as i32,
            micros: packed as i64,
        }
    }
}

/// One SQL value. The data type travels beside it; `Int` serves every signed and small unsigned integer.
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
}

impl Value {
    /// Whether this is `NULL`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The narrowest type this value has by itself: what a literal or a parameter is bound as.
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
        }
    }
}

impl fmt::Display for Value {
    /// As `CAST(… AS TEXT)` prints it; `NULL` as `NULL`.
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
            Value::Interval(v) => f.write_str(&temporal::format_interval(*v)),
        }
    }
}

/// Shortest text that reads back as the same double; always with a point or exponent, so it stays a float.
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

/// The same for a float of 32 bits, which has fewer digits.
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
