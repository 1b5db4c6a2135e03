//! Types of the parameter values that are known when a statement is bound.

use nacre_types::temporal::{self, MICROS_PER_DAY};
use nacre_types::{DataType, Value, decimal};

/// Types of one parameter value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Type of the value; `BIGINT` for every integer, so that small and large values share a
    /// binding.
    pub natural: DataType,
    /// Narrowest type that represents the value exactly in a comparison: `DATE` for a timestamp at
    /// midnight, `DECIMAL` for text with digits after the decimal point, `TIMESTAMP` for text with
    /// a time of day, otherwise `natural`.
    pub exact: DataType,
}

impl Given {
    /// Derives both types from the value.
    pub fn of(value: &Value) -> Given {
        let natural = Given::type_of(value);
        let exact = match value {
            Value::Timestamp(micros) if micros.rem_euclid(MICROS_PER_DAY) == 0 => DataType::Date,
            Value::Text(text) => spelled(text).unwrap_or(natural),
            _ => natural,
        };
        Given { natural, exact }
    }

    /// Returns the natural type alone.
    pub fn type_of(value: &Value) -> DataType {
        match value {
            Value::Int(_) => DataType::Int64,
            other => other.natural_type(),
        }
    }
}

impl From<DataType> for Given {
    fn from(natural: DataType) -> Given {
        Given { natural, exact: natural }
    }
}

/// Type of the number or time that `text` spells where comparing as its natural type would lose
/// digits.
fn spelled(text: &str) -> Option<DataType> {
    // Shortcut: most text does not start like a number.
    text.trim_start().bytes().next().filter(|b| b.is_ascii_digit() || b"+-.".contains(b))?;
    if let Some((unscaled, scale)) = decimal::parse(text) {
        // Only two precisions, so that values share a binding.
        let precision = if decimal::digits(unscaled).max(scale) <= 18 { 18 } else { 38 };
        return (scale > 0).then_some(DataType::Decimal { precision, scale });
    }
    let micros = temporal::parse_timestamp(text)?;
    (micros.rem_euclid(MICROS_PER_DAY) != 0).then_some(DataType::Timestamp)
}
