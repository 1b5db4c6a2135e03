//! What is known of the values given for a statement's parameters while it is bound.

use nacre_types::temporal::{self, MICROS_PER_DAY};
use nacre_types::{DataType, Value, decimal};

/// What is known of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its type; integers all alike, so that small and large values share a binding.
    pub natural: DataType,
    /// The type to compare it as where a lesser one would cut it: of a timestamp at midnight `DATE`, of text that
    /// spells digits after the point `DECIMAL`, of text that spells a time of day `TIMESTAMP`, else its own.
    pub exact: DataType,
}

impl Given {
    /// What the value says of itself.
    pub fn of(value: &Value) -> Given {
        let natural = Given::type_of(value);
        let exact = match value {
            Value::Timestamp(micros) if micros.rem_euclid(MICROS_PER_DAY) == 0 => DataType::Date,
            Value::Text(text) => spelled(text).unwrap_or(natural),
            _ => natural,
        };
        Given { natural, exact }
    }

    /// The natural type alone.
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

fn spelled(text: &str) -> Option<DataType> {
    // Most text does not begin like a number.
    text.trim_start().bytes().next().filter(|b| b.is_ascii_digit() || b"+-.".contains(b))?;
    if let Some((unscaled, scale)) = decimal::parse(text) {
        // Few types, so that values share a binding.
        let precision = if decimal::digits(unscaled).max(scale) <= 18 { 18 } else { 38 };
        return (scale > 0).then_some(DataType::Decimal { precision, scale });
    }
    let micros = temporal::parse_timestamp(text)?;
    (micros.rem_euclid(MICROS_PER_DAY) != 0).then_some(DataType::Timestamp)
}
