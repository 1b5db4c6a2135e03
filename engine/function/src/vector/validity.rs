//! Nulls of one or several vectors.

use nacre_column::{Bitmap, Form, Values, Vector};
use std::sync::Arc;

/// The rows at which all arguments are valid; `None` if there is no null.
pub fn validity(args: &[&Vector]) -> Option<Bitmap> {
    let mut out: Option<Bitmap> = None;
    for arg in args {
        if let Some(v) = arg.validity() {
            out = Some(match out {
                None => v.clone(),
                Some(sum) => sum.and(v),
            });
        }
    }
    out
}

/// The vector with additional nulls: valid only where `validity` is set, too.
pub fn mask(vector: Vector, validity: &Bitmap) -> Vector {
    debug_assert_eq!(vector.len(), validity.len(), "a mask has one bit a row");
    let both = match vector.validity() {
        Some(own) => own.and(validity),
        None => validity.clone(),
    };
    let data_type = vector.data_type();
    match vector.form() {
        Form::Dictionary { codes, values } => {
            Vector::dictionary(data_type, codes.clone(), values.clone(), Some(both))
        }
        Form::Constant(one @ Values::Bytes(_)) if !both.is_empty() && vector.null_count() == 0 => {
            Vector::dictionary(data_type, vec![0; vector.len()], Arc::new(one.clone()), Some(both))
        }
        _ => Vector::new(data_type, vector.flat().into_owned(), Some(both)),
    }
}

/// Whether row `i` is valid.
#[inline]
pub fn valid(validity: &Option<Bitmap>, i: usize) -> bool {
    validity.as_ref().is_none_or(|v| v.get(i))
}
