//! Filters decoded values by a [`Predicate`] into bits: 1 if a row passes. Null rows never pass.

use super::predicate::{Predicate, domain};
use super::spans::Spans;
use crate::{Bitmap, Form, Values, Vector};
use nacre_types::{PhysicalType, key};

/// Appends a bit for every value.
pub(crate) fn filter_values(values: &Values, predicate: &Predicate, out: &mut Bitmap) {
    debug_assert_eq!(values.physical(), predicate.physical(), "type of values and filter");
    let before = out.len();
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
    debug_assert_eq!(out.len(), before + values.len(), "bits of filtered values");
}

fn accepts(values: &Values, at: usize, predicate: &Predicate) -> bool {
    match values {
        Values::Bool(v) => predicate.accepts_number(v[at] as i128),
        Values::I64(v) => predicate.accepts_number(v[at] as i128),
        Values::I128(v) => predicate.accepts_number(v[at]),
        Values::F64(v) => predicate.accepts_number(key::order_f64(v[at]) as i128),
        Values::Bytes(v) => predicate.accepts_bytes(v.get(at)),
    }
}

/// Appends a bit for every row of a form, as if no row were null.
pub(crate) fn filter_form(form: &Form, len: usize, predicate: &Predicate, out: &mut Bitmap) {
    let before = out.len();
    match form {
        Form::Flat(values) => filter_values(values, predicate, out),
        Form::Constant(one) => {
            debug_assert_eq!(one.len(), 1, "values of a constant");
            let mut answer = Bitmap::default();
            filter_values(one, predicate, &mut answer);
            out.extend_run(answer.get(0), len);
        }
        // A test for each distinct value would be more than one for each row.
        Form::Dictionary { codes, values } if codes.len() < values.len() => {
            codes.iter().for_each(|code| out.push(accepts(values, *code as usize, predicate)));
        }
        Form::Dictionary { codes, values } => {
            // Tests each distinct value once; the codes then look up the results.
            let mut passes = Bitmap::default();
            filter_values(values, predicate, &mut passes);
            debug_assert!(
                codes.iter().all(|code| (*code as usize) < passes.len()),
                "a code outside its dictionary of {} values",
                passes.len()
            );
            codes.iter().for_each(|code| out.push(passes.get(*code as usize)));
        }
    }
    debug_assert_eq!(out.len(), before + len, "bits of a filtered form");
}

/// The rows of a vector that pass. The vector must have the predicate's physical type.
pub fn filter(vector: &Vector, predicate: &Predicate) -> Bitmap {
    let mut out = Bitmap::default();
    filter_form(vector.form(), vector.len(), predicate, &mut out);
    debug_assert_eq!(out.len(), vector.len(), "bits of a filtered vector");
    match vector.validity() {
        Some(validity) => out.and(validity),
        None => out,
    }
}
