//! Comparisons and `IN`. Every physical type has one total order (NaN equals itself and is largest,
//! negative zero equals zero), so that comparing, grouping and sorting agree.

use super::order;
use super::truth::Truth;
use crate::operator::BinaryOp;
use crate::vector::rows::ActiveRows;
use crate::vector::validity::{valid, validity};
use crate::vector::view::{self, Texts, View};
use nacre_column::{Bitmap, Form, Values, Vector};
use nacre_types::hash::Set;
use nacre_types::{DataType, Error, PhysicalType, Result, Value, key};
use std::cmp::Ordering;
use std::sync::Arc;

/// A comparison as one of two loops: `equal` or `less`, with operands swapped or the result
/// negated.
#[derive(Clone, Copy)]
struct Test {
    less: bool,
    swap: bool,
    negate: bool,
}

fn test_of(op: BinaryOp) -> Test {
    let (less, swap, negate) = match op {
        BinaryOp::NotEqual | BinaryOp::Distinct => (false, false, true),
        BinaryOp::Less => (true, false, false),
        BinaryOp::GreaterOrEqual => (true, false, true),
        BinaryOp::Greater => (true, true, false),
        BinaryOp::LessOrEqual => (true, true, true),
        _ => (false, false, false),
    };
    Test { less, swap, negate }
}

/// Whether an ordering of two values satisfies the operator.
pub fn holds(op: BinaryOp, ordering: Ordering) -> bool {
    match op {
        BinaryOp::NotEqual | BinaryOp::Distinct => ordering.is_ne(),
        BinaryOp::Less => ordering.is_lt(),
        BinaryOp::LessOrEqual => ordering.is_le(),
        BinaryOp::Greater => ordering.is_gt(),
        BinaryOp::GreaterOrEqual => ordering.is_ge(),
        _ => ordering.is_eq(),
    }
}

/// Applies a comparison operator to vectors of one physical type.
pub fn compare(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let mut out = vec![false; rows.len];
    compare_rows(op, left, right, rows, &mut out)?;
    if !matches!(op, BinaryOp::NotDistinct | BinaryOp::Distinct) {
        let validity = validity(&[left, right]);
        return Ok(Vector::new(DataType::Boolean, Values::Bool(out), validity));
    }
    if left.validity().is_some() || right.validity().is_some() {
        for i in rows.iter() {
            let nulls = (left.is_null(i), right.is_null(i));
            if nulls != (false, false) {
                out[i] = (nulls == (true, true)) == (op == BinaryOp::NotDistinct);
            }
        }
    }
    Ok(Vector::new(DataType::Boolean, Values::Bool(out), None))
}

fn compare_rows(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    rows: ActiveRows<'_>,
    out: &mut [bool],
) -> Result<()> {
    if left.data_type() == DataType::Null || right.data_type() == DataType::Null {
        return Ok(());
    }
    if left.data_type() == DataType::Interval {
        for i in rows.iter() {
            if !left.is_null(i) && !right.is_null(i) {
                out[i] =
                    holds(op, order::length(&left.value(i)).cmp(&order::length(&right.value(i))));
            }
        }
        return Ok(());
    }
    let test = test_of(op);
    let (a, b) = if test.swap { (right, left) } else { (left, right) };
    if let (Some(a), Some(b)) = (view::i64s(a), view::i64s(b)) {
        compare_fast(test, &a, &b, rows, out);
    } else if let (Some(a), Some(b)) = (view::f64s(a), view::f64s(b)) {
        compare_fast(test, &ordered(a), &ordered(b), rows, out);
    } else if let (Some(a), Some(b)) = (view::wide(a), view::wide(b)) {
        for i in rows.iter() {
            out[i] =
                (if test.less { a.get(i) < b.get(i) } else { a.get(i) == b.get(i) }) != test.negate;
        }
    } else if let (Some(a), Some(b)) = (view::bools(a), view::bools(b)) {
        for i in rows.iter() {
            out[i] = (if test.less { !a.get(i) & b.get(i) } else { a.get(i) == b.get(i) })
                != test.negate;
        }
    } else if left.data_type().physical() == PhysicalType::Bytes
        && right.data_type().physical() == PhysicalType::Bytes
    {
        let (a, b) = (Texts::new(a), Texts::new(b));
        for i in rows.iter() {
            out[i] = (if test.less { a.bytes(i) < b.bytes(i) } else { a.bytes(i) == b.bytes(i) })
                != test.negate;
        }
    } else {
        return Err(Error::type_error(format!(
            "cannot compare {} with {}",
            left.data_type(),
            right.data_type()
        )));
    }
    Ok(())
}

/// Doubles as integers of the same total order.
fn ordered(values: View<'_, f64>) -> View<'static, i64> {
    let order = |v: f64| (key::order_f64(v) ^ (1 << 63)) as i64;
    match values {
        View::Constant(v) => View::Constant(order(v)),
        View::Rows(v) => View::Rows(v.iter().map(|v| order(*v)).collect()),
    }
}

fn compare_fast(
    test: Test,
    a: &View<'_, i64>,
    b: &View<'_, i64>,
    rows: ActiveRows<'_>,
    out: &mut [bool],
) {
    if !rows.is_dense() {
        for i in rows.iter() {
            out[i] =
                (if test.less { a.get(i) < b.get(i) } else { a.get(i) == b.get(i) }) != test.negate;
        }
        return;
    }
    match (a, b) {
        (View::Rows(a), View::Rows(b)) => {
            let pairs = out.iter_mut().zip(a.iter().zip(b.iter()));
            if test.less {
                pairs.for_each(|(out, (a, b))| *out = (a < b) != test.negate);
            } else {
                pairs.for_each(|(out, (a, b))| *out = (a == b) != test.negate);
            }
        }
        // Against a constant, each test is a range check: one subtraction, one comparison.
        (View::Rows(a), View::Constant(c)) => {
            let range = if test.less {
                c.checked_sub(1).map(|high| (i64::MIN, high))
            } else {
                Some((*c, *c))
            };
            in_range(a, range, test.negate, out);
        }
        (View::Constant(c), View::Rows(b)) => {
            let range = if test.less {
                c.checked_add(1).map(|low| (low, i64::MAX))
            } else {
                Some((*c, *c))
            };
            in_range(b, range, test.negate, out);
        }
        (View::Constant(a), View::Constant(b)) => {
            out.fill((if test.less { a < b } else { a == b }) != test.negate);
        }
    }
}

fn in_range(values: &[i64], range: Option<(i64, i64)>, negate: bool, out: &mut [bool]) {
    let Some((low, high)) = range else {
        out.fill(negate);
        return;
    };
    let width = high.wrapping_sub(low) as u64;
    for (out, v) in out.iter_mut().zip(values) {
        *out = ((v.wrapping_sub(low) as u64) <= width) != negate;
    }
}

/// `arg [NOT] IN (list)`: true if a candidate is equal, else null if the argument or a candidate is
/// null, else false.
pub fn in_list(
    arg: &Vector,
    list: &[Arc<Vector>],
    negated: bool,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let constant = list.iter().all(|c| matches!(c.form(), Form::Constant(_)));
    if constant && list.len() > 4 && arg.data_type() != DataType::Interval {
        return Ok(in_set(arg, list, negated, rows));
    }
    let mut found = vec![false; rows.len];
    let mut validity = Bitmap::filled(rows.len, true);
    let mut any_null = false;
    for candidate in list {
        let equal = compare(BinaryOp::Equal, arg, candidate, rows)?;
        let truth = Truth::new(&equal);
        for i in rows.iter() {
            match truth.get(i) {
                Some(hit) => found[i] |= hit,
                None => {
                    validity.set(i, false);
                    any_null = true;
                }
            }
        }
    }
    Ok(membership(found, any_null.then_some(validity), negated))
}

fn in_set(arg: &Vector, list: &[Arc<Vector>], negated: bool, rows: ActiveRows<'_>) -> Vector {
    let null_candidate = list.iter().any(|c| c.is_null(0));
    let candidates: Vec<&Vector> = list.iter().map(|c| &**c).filter(|c| !c.is_null(0)).collect();
    let validity = arg.validity().cloned();
    let mut found = vec![false; rows.len];
    if let Some(values) = view::i64s(arg) {
        let mut set: Vec<i64> =
            candidates.iter().filter_map(|c| view::i64s(c).map(|v| v.get(0))).collect();
        set.sort_unstable();
        rows.iter().for_each(|i| found[i] = set.binary_search(&values.get(i)).is_ok());
    } else if let Some(values) = view::wide(arg) {
        let mut set: Vec<i128> =
            candidates.iter().filter_map(|c| view::wide(c).map(|v| v.get(0))).collect();
        set.sort_unstable();
        rows.iter().for_each(|i| found[i] = set.binary_search(&values.get(i)).is_ok());
    } else if let Some(values) = view::f64s(arg) {
        let mut set: Vec<_> = candidates
            .iter()
            .filter_map(|c| view::f64s(c).map(|v| key::order_f64(v.get(0))))
            .collect();
        set.sort_unstable();
        rows.iter()
            .for_each(|i| found[i] = set.binary_search(&key::order_f64(values.get(i))).is_ok());
    } else if arg.data_type().physical() == PhysicalType::Bytes {
        let set: Set<&[u8]> = candidates.iter().map(|c| Texts::new(c).bytes(0)).collect();
        let values = Texts::new(arg);
        rows.iter().for_each(|i| found[i] = set.contains(values.bytes(i)));
    } else {
        let set: Vec<Value> = candidates.iter().map(|c| c.value(0)).collect();
        rows.iter().for_each(|i| {
            if valid(&validity, i) {
                let value = arg.value(i);
                found[i] = set.iter().any(|c| order::compare_values(c, &value).is_eq());
            }
        });
    }
    let validity = if null_candidate { Some(Bitmap::filled(rows.len, false)) } else { validity };
    // A null argument has a null result for any list; clear matches on the values under its null
    // rows.
    if arg.validity().is_some() {
        rows.iter().for_each(|i| found[i] &= !arg.is_null(i));
    }
    membership(found, validity, negated)
}

/// A match decides, even if another candidate was null.
fn membership(found: Vec<bool>, validity: Option<Bitmap>, negated: bool) -> Vector {
    let validity = validity.map(|mut validity| {
        for (i, hit) in found.iter().enumerate() {
            if *hit {
                validity.set(i, true);
            }
        }
        validity
    });
    let out = if negated { found.iter().map(|hit| !hit).collect() } else { found };
    Vector::new(DataType::Boolean, Values::Bool(out), validity)
}
