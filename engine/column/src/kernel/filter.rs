//! Filtering decoded values by a [`Predicate`], into bits: 1 where a row passes. Null rows never do.

use super::Predicate;
use super::predicate::domain;
use super::spans::Spans;
use crate::{Bitmap, Form, Values, Vector};
use nacre_types::{PhysicalType, key};

/// Appends a bit for every value.
pub(crate) fn filter_values(values: &Values, predicate: &Predicate, out: &mut Bitmap) {
    debug_assert_eq!(values.physical(), predicate.physical());
    let ranges = predicate.numbers();
    match values {
        Values::Bool(v) => {
            let pass = [predicate.accepts_number(0), predicate.accepts_number(1)];
            Spans::<u32>::new(&[(1, 1)], (0, 1), 0).filter(v, |v| pass[v as usize] as u32, out);
        }
        Values::I64(v) => {
            Spans::<u64>::new(ranges, domain(PhysicalType::I64), 0).filter(v, |v| v as u64, out)
        }
        Values::I128(v) => {
            Spans::<u128>::new(ranges, domain(PhysicalType::I128), 0).filter(v, |v| v as u128, out)
        }
        Values::F64(v) => {
            Spans::<u64>::new(ranges, domain(PhysicalType::F64), 0).filter(v, key::order_f64, out)
        }
        Values::Bytes(v) => {
            (0..v.len()).for_each(|row| out.push(predicate.accepts_bytes(v.get(row))))
        }
    }
}

/// Appends a bit for every row of a form, whatever is null.
pub(crate) fn filter_form(form: &Form, len: usize, predicate: &Predicate, out: &mut Bitmap) {
    match form {
        Form::Flat(values) => filter_values(values, predicate, out),
        Form::Constant(one) => {
            let mut answer = Bitmap::default();
            filter_values(one, predicate, &mut answer);
            out.extend_run(answer.get(0), len);
        }
        Form::Dictionary { codes, values } => {
            // The predicate runs once a distinct value, then the codes look its answer up.
            let mut passes = Bitmap::default();
            filter_values(values, predicate, &mut passes);
            codes.iter().for_each(|code| out.push(passes.get(*code as usize)));
        }
    }
}

/// The rows of a vector that pass, which must be of the predicate's physical type.
pub fn filter(vector: &Vector, predicate: &Predicate) -> Bitmap {
    let mut out = Bitmap::default();
    filter_form(vector.form(), vector.len(), predicate, &mut out);
    match vector.validity() {
        Some(validity) => out.and(validity),
        None => out,
    }
}
