//! Three-valued logic over boolean vectors.

use crate::vector::view::{self, View};
use nacre_column::{Bitmap, Values, Vector};
use nacre_types::DataType;
use nacre_types::invariant::broken;

/// A boolean vector read as three values: `Some(true)`, `Some(false)` and null.
pub struct Truth<'a> {
    values: View<'a, bool>,
    validity: Option<&'a Bitmap>,
}

impl<'a> Truth<'a> {
    /// Creates a view of a boolean vector, or of untyped nulls.
    pub fn new(vector: &'a Vector) -> Truth<'a> {
        let values = match view::bools(vector) {
            Some(values) => values,
            None if vector.data_type() == DataType::Null => View::Constant(false),
            None => broken(format_args!("a condition is {}", vector.data_type())),
        };
        Truth { values, validity: vector.validity() }
    }

    /// The truth value of row `i`; `None` is null.
    #[inline]
    pub fn get(&self, i: usize) -> Option<bool> {
        match self.validity {
            Some(v) if !v.get(i) => None,
            _ => Some(self.values.get(i)),
        }
    }

    /// Whether row `i` is true.
    #[inline]
    pub fn is_true(&self, i: usize) -> bool {
        self.values.get(i) & self.validity.is_none_or(|v| v.get(i))
    }
}

/// `NOT`.
pub fn not(arg: &Vector) -> Vector {
    let truth = Truth::new(arg);
    let out = (0..arg.len()).map(|i| !truth.values.get(i)).collect();
    Vector::new(DataType::Boolean, Values::Bool(out), arg.validity().cloned())
}

/// `IS [NOT] NULL`.
pub fn is_null(arg: &Vector, negated: bool) -> Vector {
    let out = match arg.validity() {
        None => vec![negated; arg.len()],
        Some(v) => (0..arg.len()).map(|i| v.get(i) == negated).collect(),
    };
    Vector::new(DataType::Boolean, Values::Bool(out), None)
}

/// `IS [NOT] TRUE` and `IS [NOT] FALSE`.
pub fn is_boolean(arg: &Vector, value: bool, negated: bool) -> Vector {
    let truth = Truth::new(arg);
    let out = (0..arg.len()).map(|i| (truth.get(i) == Some(value)) != negated).collect();
    Vector::new(DataType::Boolean, Values::Bool(out), None)
}
