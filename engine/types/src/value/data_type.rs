//! SQL data types and the few physical types that kernels compute with.
//!
//! A [`DataType`] is what a user declares; a [`PhysicalType`] is its representation in kernels.
//! Many data types share one physical type so that the engine stays small.

use std::fmt;

/// A SQL data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// The type of a bare `NULL`; coerces to anything.
    Null,
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`
    Int8,
    /// `SMALLINT`
    Int16,
    /// `INT`
    Int32,
    /// `BIGINT`
    Int64,
    /// `TINYINT UNSIGNED`
    UInt8,
    /// `SMALLINT UNSIGNED`
    UInt16,
    /// `INT UNSIGNED`
    UInt32,
    /// `BIGINT UNSIGNED`
    UInt64,
    /// `FLOAT` / `REAL`: 32-bit IEEE 754
    Float32,
    /// `DOUBLE`: 64-bit IEEE 754
    Float64,
    /// `DECIMAL(precision, scale)`, `1 <= precision <= 38`, `scale <= precision`
    Decimal {
        /// Total number of decimal digits.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `CHAR(n)`, `VARCHAR(n)`, `TEXT`; the limit is in characters. Never padded.
    Text {
        /// Longest value, in characters.
        max_chars: Option<u32>,
    },
    /// `BINARY(n)`, `VARBINARY(n)`, `BLOB`; the limit is in bytes.
    Binary {
        /// Longest value, in bytes.
        max_bytes: Option<u32>,
    },
    /// `DATE`: days since 1970-01-01
    Date,
    /// `TIME`: microseconds since midnight
    Time,
    /// `DATETIME` / `TIMESTAMP`: microseconds since 1970-01-01 00:00:00, no time zone
    Timestamp,
    /// `INTERVAL`: in expressions only, never in a table
    Interval,
    /// `JSON`: stored as its text
    Json,
    /// `TIMESTAMPTZ`: microseconds since 1970-01-01 00:00:00 UTC
    TimestampTz,
    /// `UUID`: 128 bits, ordered as its text
    Uuid,
}

/// Representation of a data type's values in vectors and kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhysicalType {
    /// One `bool` per value.
    Bool,
    /// 64-bit signed: all integers except `BIGINT UNSIGNED`, dates, times, timestamps, decimals of
    /// up to 18 digits.
    I64,
    /// 128-bit signed: `BIGINT UNSIGNED`, wider decimals, intervals
    /// ([`Interval::pack`](crate::Interval::pack)) and UUIDs ([`uuid::pack`](crate::uuid::pack)).
    I128,
    /// 64-bit float; `FLOAT` is widened to it.
    F64,
    /// UTF-8 text, JSON or binary.
    Bytes,
}

/// Largest precision of a decimal held in an `i64`.
pub const DECIMAL64_MAX_PRECISION: u8 = 18;
/// Largest precision of a decimal.
pub const DECIMAL_MAX_PRECISION: u8 = 38;

impl DataType {
    /// Unlimited text.
    pub const TEXT: DataType = DataType::Text { max_chars: None };
    /// Unlimited binary.
    pub const BLOB: DataType = DataType::Binary { max_bytes: None };

    /// The physical type. `Null` is represented as Booleans that are all null.
    pub fn physical(self) -> PhysicalType {
        use DataType::*;
        match self {
            Null | Boolean => PhysicalType::Bool,
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 => PhysicalType::I64,
            Date | Time | Timestamp | TimestampTz => PhysicalType::I64,
            UInt64 | Interval | Uuid => PhysicalType::I128,
            Float32 | Float64 => PhysicalType::F64,
            Decimal { precision, .. } if precision <= DECIMAL64_MAX_PRECISION => PhysicalType::I64,
            Decimal { .. } => PhysicalType::I128,
            Text { .. } | Binary { .. } | Json => PhysicalType::Bytes,
        }
    }

    /// Whether this is a signed or unsigned integer type.
    pub fn is_integer(self) -> bool {
        self.integer_range().is_some()
    }

    /// Inclusive range of an integer type.
    pub fn integer_range(self) -> Option<(i128, i128)> {
        use DataType::*;
        Some(match self {
            Int8 => (i8::MIN as i128, i8::MAX as i128),
            Int16 => (i16::MIN as i128, i16::MAX as i128),
            Int32 => (i32::MIN as i128, i32::MAX as i128),
            Int64 => (i64::MIN as i128, i64::MAX as i128),
            UInt8 => (0, u8::MAX as i128),
            UInt16 => (0, u16::MAX as i128),
            UInt32 => (0, u32::MAX as i128),
            UInt64 => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// Smallest and largest physical integer of a type: integers, unscaled decimals, days and
    /// microseconds. `None` for other types.
    pub fn stored_range(self) -> Option<(i128, i128)> {
        use super::temporal::{MAX_DATE, MICROS_PER_DAY, MIN_DATE};
        let (first, last, day) = (MIN_DATE as i128, MAX_DATE as i128, MICROS_PER_DAY as i128);
        Some(match self {
            DataType::Decimal { precision, .. } => {
                let bound = super::decimal::POWERS[precision as usize];
                (1 - bound, bound - 1)
            }
            DataType::Date => (first, last),
            DataType::Time => (0, day - 1),
            DataType::Timestamp | DataType::TimestampTz => (first * day, (last + 1) * day - 1),
            _ => return self.integer_range(),
        })
    }

    /// Whether this is `FLOAT` or `DOUBLE`.
    pub fn is_float(self) -> bool {
        matches!(self, DataType::Float32 | DataType::Float64)
    }

    /// Whether this is a `DECIMAL`.
    pub fn is_decimal(self) -> bool {
        matches!(self, DataType::Decimal { .. })
    }

    /// Whether this is an integer, decimal or float type.
    pub fn is_numeric(self) -> bool {
        self.is_integer() || self.is_float() || self.is_decimal()
    }

    /// Whether this is `DATE`, `TIME`, `TIMESTAMP` or `TIMESTAMPTZ`.
    pub fn is_moment(self) -> bool {
        use DataType::*;
        matches!(self, Date | Time | Timestamp | TimestampTz)
    }

    /// Whether this is a text type. JSON is not.
    pub fn is_text(self) -> bool {
        matches!(self, DataType::Text { .. })
    }

    /// The scale of a decimal, zero for every other type.
    pub fn scale(self) -> u8 {
        match self {
            DataType::Decimal { scale, .. } => scale,
            _ => 0,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DataType::*;
        match *self {
            Null => f.write_str("NULL"),
            Boolean => f.write_str("BOOLEAN"),
            Int8 => f.write_str("TINYINT"),
            Int16 => f.write_str("SMALLINT"),
            Int32 => f.write_str("INT"),
            Int64 => f.write_str("BIGINT"),
            UInt8 => f.write_str("TINYINT UNSIGNED"),
            UInt16 => f.write_str("SMALLINT UNSIGNED"),
            UInt32 => f.write_str("INT UNSIGNED"),
            UInt64 => f.write_str("BIGINT UNSIGNED"),
            Float32 => f.write_str("FLOAT"),
            Float64 => f.write_str("DOUBLE"),
            Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            Text { max_chars: Some(n) } => write!(f, "VARCHAR({n})"),
            Text { max_chars: None } => f.write_str("TEXT"),
            Binary { max_bytes: Some(n) } => write!(f, "VARBINARY({n})"),
            Binary { max_bytes: None } => f.write_str("BLOB"),
            Date => f.write_str("DATE"),
            Time => f.write_str("TIME"),
            Timestamp => f.write_str("TIMESTAMP"),
            Interval => f.write_str("INTERVAL"),
            Json => f.write_str("JSON"),
            TimestampTz => f.write_str("TIMESTAMPTZ"),
            Uuid => f.write_str("UUID"),
        }
    }
}
