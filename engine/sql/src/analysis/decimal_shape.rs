//! How many digits the values of a numeric type have.

use nacre_types::DataType;

/// Decimal digits an integer type needs.
fn integer_digits(t: DataType) -> u8 {
    match t {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        _ => 20,
    }
}

/// Precision and scale of a decimal or an integer seen as one.
pub(crate) fn decimal_shape(t: DataType) -> Option<(u8, u8)> {
    match t {
        DataType::Decimal { precision, scale } => Some((precision, scale)),
        _ if t.is_integer() => Some((integer_digits(t), 0)),
        _ => None,
    }
}
