//! Conversion of numbers to doubles, and range checks of doubles.

use super::decimals::overflow;
use crate::vector::view::{self, View};
use nacre_column::Vector;
use nacre_types::{DataType, Error, Result, decimal};

/// A view of numbers of any type as doubles.
pub fn doubles(vector: &Vector) -> Result<View<'_, f64>> {
    if let Some(v) = view::f64s(vector) {
        return Ok(v);
    }
    let scale = vector.data_type().scale();
    let convert = |v: i128| decimal::to_f64(v, scale);
    Ok(match view::wide(vector) {
        Some(view::Wide::Narrow(View::Constant(v))) => View::Constant(convert(v as i128)),
        Some(view::Wide::Full(View::Constant(v))) => View::Constant(convert(v)),
        Some(v) => View::Rows((0..vector.len()).map(|i| convert(v.get(i))).collect()),
        None => return Err(not_a_number(vector.data_type())),
    })
}

/// The error of a numeric kernel for a value of another type.
#[cold]
pub fn not_a_number(data_type: DataType) -> Error {
    Error::type_error(format!("{data_type} is not a number"))
}

/// Rounds to the type. An infinity computed from finite operands is `22003`.
pub fn finite(v: f64, from_finite: bool, data_type: DataType) -> Result<f64> {
    let v = if data_type == DataType::Float32 { v as f32 as f64 } else { v };
    if from_finite && !v.is_finite() { Err(overflow(data_type)) } else { Ok(v) }
}
