//! The number of digits of numeric types, and decimal types built from digits.

use nacre_types::{DECIMAL_MAX_PRECISION, DataType};

/// Number of decimal digits of an integer type.
fn integer_digits(t: DataType) -> u8 {
    match t {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        _ => 20,
    }
}

/// Precision and scale of a decimal, or of an integer converted to one.
pub fn decimal_shape(t: DataType) -> Option<(u8, u8)> {
    match t {
        DataType::Decimal { precision, scale } => Some((precision, scale)),
        _ if t.is_integer() => Some((integer_digits(t), 0)),
        _ => None,
    }
}

/// `DECIMAL(precision, scale)`, with both capped at the maximum.
pub fn decimal(precision: u32, scale: u32) -> DataType {
    let scale = scale.min(DECIMAL_MAX_PRECISION as u32);
    let precision = precision.clamp(scale.max(1), DECIMAL_MAX_PRECISION as u32);
    DataType::Decimal { precision: precision as u8, scale: scale as u8 }
}
