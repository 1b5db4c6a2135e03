//! Converts operands to the types that kernels expect.

use super::definition::{Binding, Operand};
use nacre_types::{DataType, Error, Result, Value};

/// Whether an operand is binary.
pub fn is_binary(binding: &dyn Binding, operand: &Operand) -> bool {
    matches!(binding.data_type(operand), DataType::Binary { .. })
}

/// Whether an operand is the literal `NULL`.
pub fn is_null(binding: &dyn Binding, operand: &Operand) -> bool {
    binding.literal(operand).is_some_and(Value::is_null)
}

/// Converts a number to a double.
pub fn double(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::Float64);
    match binding.data_type(&operand) {
        DataType::Float64 => Ok(operand),
        t if t.is_numeric() || t == DataType::Null => binding.cast(operand, DataType::Float64),
        t => Err(Error::type_error(format!("expected a number, not {t}"))),
    }
}

/// Converts to an integer of at most 64 bits; `name` is the function's name in messages.
pub fn integer(binding: &mut dyn Binding, operand: Operand, name: &str) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::Int64);
    match binding.data_type(&operand) {
        t if t.is_integer() && t != DataType::UInt64 => Ok(operand),
        DataType::Null | DataType::UInt64 => binding.cast(operand, DataType::Int64),
        t => Err(Error::type_error(format!("{name} expects an integer, not {t}"))),
    }
}

/// Like [`integer`], but rounds a decimal literal to an integer.
pub fn rounded_integer(binding: &mut dyn Binding, operand: Operand, name: &str) -> Result<Operand> {
    match binding.literal(&operand) {
        Some(Value::Decimal { .. }) if binding.data_type(&operand).is_decimal() => {
            binding.cast(operand, DataType::Int64)
        }
        _ => integer(binding, operand, name),
    }
}

/// Checks for a number of any type; `name` is the function's name in messages.
pub fn number(binding: &mut dyn Binding, operand: Operand, name: &str) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::Float64);
    match binding.data_type(&operand) {
        DataType::Null => binding.cast(operand, DataType::Float64),
        t if t.is_numeric() => Ok(operand),
        t => Err(Error::type_error(format!("{name} expects a number, not {t}"))),
    }
}

/// Converts to a date, time, timestamp or interval; a text literal is parsed as a timestamp, and one with a time zone
/// becomes that of UTC.
pub fn temporal(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::Timestamp);
    let is_literal = binding.literal(&operand).is_some();
    match binding.data_type(&operand) {
        DataType::TimestampTz => binding.cast(operand, DataType::Timestamp),
        DataType::Date | DataType::Timestamp | DataType::Time | DataType::Interval => Ok(operand),
        DataType::Null => binding.cast(operand, DataType::Timestamp),
        DataType::Text { .. } if is_literal => binding.cast(operand, DataType::Timestamp),
        t => Err(Error::type_error(format!("expected a DATE or TIMESTAMP, not {t}"))),
    }
}

/// Converts a point in time to a timestamp.
pub fn timestamp(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = temporal(binding, operand)?;
    binding.cast(operand, DataType::Timestamp)
}

/// Converts a point in time to a date.
pub fn date(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = timestamp(binding, operand)?;
    binding.cast(operand, DataType::Date)
}

/// Converts a value of any type to text.
pub fn text(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::TEXT);
    let is_text = binding.data_type(&operand).is_text();
    if is_text { Ok(operand) } else { binding.cast(operand, DataType::TEXT) }
}

/// Converts a value to binary.
pub fn bytes(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::BLOB);
    if is_binary(binding, &operand) { Ok(operand) } else { binding.cast(operand, DataType::BLOB) }
}

/// Leaves a binary value unchanged and converts others to text.
pub fn text_or_bytes(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    if is_binary(binding, &operand) { Ok(operand) } else { text(binding, operand) }
}

/// Converts a text that spells JSON, and values that JSON has a form for.
pub fn json(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::Json);
    binding.cast(operand, DataType::Json)
}

/// Prepares a value of any type for becoming JSON. Kernels hold a `FLOAT` as a double, which has
/// more digits.
pub fn json_value(binding: &mut dyn Binding, operand: Operand) -> Result<Operand> {
    let operand = binding.settle(operand, DataType::TEXT);
    match binding.data_type(&operand) {
        DataType::Float32 => binding.cast(operand, DataType::Json),
        _ => Ok(operand),
    }
}
