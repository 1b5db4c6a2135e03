//! The order of a dictionary, asserted by the builder and checked by the reader.

use crate::Values;
use nacre_types::key;

/// Whether values ascend strictly, in key order.
pub(in crate::encoding) fn ascends(values: &Values) -> bool {
    match values {
        Values::Bool(v) => v.is_sorted_by(|a, b| a < b),
        Values::I64(v) => v.is_sorted_by(|a, b| a < b),
        Values::I128(v) => v.is_sorted_by(|a, b| a < b),
        Values::F64(v) => v.is_sorted_by(|a, b| key::order_f64(*a) < key::order_f64(*b)),
        Values::Bytes(v) => (1..v.len()).all(|row| v.get(row - 1) < v.get(row)),
    }
}
