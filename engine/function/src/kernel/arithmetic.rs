//! Arithmetic over vectors. Integer and decimal loops compute every row with wrapping operations
//! and collect one overflow flag; only if it is set does a second pass check the selected, valid
//! rows.

use super::decimals::{self, Exact};
use super::double::{doubles, finite, not_a_number};
use super::interval;
use crate::operator::BinaryOp;
use crate::vector::map::{map_doubles, map_integers, map_values};
use crate::vector::room::Room;
use crate::vector::rows::ActiveRows;
use crate::vector::validity::{valid, validity};
use crate::vector::view::{self, View, Wide};
use nacre_column::{Bitmap, Values, Vector};
use nacre_types::{DataType, Error, PhysicalType, Result, Value};

/// Computes `left op right` for every operator except comparisons and `||`.
pub fn binary(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let (l, r) = (left.data_type(), right.data_type());
    if l == DataType::Null || r == DataType::Null {
        return Ok(Vector::constant(data_type, &Value::Null, rows.len));
    }
    if interval::is_temporal(l) || interval::is_temporal(r) {
        return interval::binary(op, left, right, data_type, rows);
    }
    let exact = !l.is_float() && !r.is_float();
    if exact && !data_type.is_float() {
        return integers(op, left, right, data_type, rows);
    }
    let (a, b) = (doubles(left)?, doubles(right)?);
    floats(op, &a, &b, validity(&[left, right]), data_type, rows)
}

fn integers(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let exact = Exact::new(op, left.data_type(), right.data_type(), data_type);
    let validity = validity(&[left, right]);
    let natural_scale = match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            exact.left_scale == exact.right_scale && exact.left_scale == data_type.scale()
        }
        BinaryOp::Multiply => exact.left_scale + exact.right_scale == data_type.scale(),
        _ => false,
    };
    let (Some(a), Some(b)) = (view::wide(left), view::wide(right)) else {
        return Err(not_a_number(
            if view::wide(left).is_none() { left } else { right }.data_type(),
        ));
    };
    let one = |i: usize| exact.one(a.get(i), b.get(i));
    let is_wide = data_type.physical() == PhysicalType::I128;
    let (values, bad) = match (&a, &b) {
        _ if !natural_scale || !rows.is_dense() => {
            return map_integers(data_type, validity, rows, &mut |i| one(i));
        }
        (Wide::Narrow(a), Wide::Narrow(b)) if is_wide => {
            widening(op, a, b, rows.len, exact.range())
        }
        (Wide::Narrow(a), Wide::Narrow(b)) => narrow(op, a, b, rows.len, exact.range()),
        _ if is_wide => full(op, &a, &b, rows.len, exact.range()),
        _ => return map_integers(data_type, validity, rows, &mut |i| one(i)),
    };
    if bad {
        for i in rows.iter().filter(|i| valid(&validity, *i)) {
            one(i)?;
        }
    }
    Ok(Vector::new(data_type, values, validity))
}

/// A sum, difference or product as a decimal of 18 digits of this scale. `None` if a row, selected or not, may
/// not fit, or if the scale is not the one that the operands give.
pub fn short(op: BinaryOp, left: &Vector, right: &Vector, scale: u8) -> Option<Vector> {
    let (a, b) = (view::i64s(left)?, view::i64s(right)?);
    let (from, to) = (left.data_type().scale(), right.data_type().scale());
    let (a, b) = match op {
        BinaryOp::Multiply if from + to == scale => (a, b),
        BinaryOp::Add | BinaryOp::Subtract => (aligned(a, from, scale)?, aligned(b, to, scale)?),
        _ => return None,
    };
    let data_type = DataType::Decimal { precision: 18, scale };
    let (values, bad) = narrow(op, &a, &b, left.len(), decimals::bounds(data_type));
    (!bad).then(|| Vector::new(data_type, values, validity(&[left, right])))
}

/// The values at another scale, if that is the same or they are a constant.
fn aligned(values: View<'_, i64>, from: u8, to: u8) -> Option<View<'_, i64>> {
    match values {
        _ if from == to => Some(values),
        View::Constant(v) => {
            let moved = nacre_types::decimal::rescale(v.into(), from, to)?;
            (from < to).then_some(View::Constant(i64::try_from(moved).ok()?))
        }
        View::Rows(_) => None,
    }
}

/// The results of operands that may have 128 bits, and whether one is out of range.
fn full(
    op: BinaryOp,
    a: &Wide<'_>,
    b: &Wide<'_>,
    len: usize,
    (low, high): (i128, i128),
) -> (Values, bool) {
    let mut bad = false;
    let values = (0..len).map(|i| {
        let (a, b) = (a.get(i), b.get(i));
        let value = match op {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Subtract => a.checked_sub(b),
            _ => decimals::multiply(a, b),
        };
        bad |= value.is_none_or(|v| v < low || v > high);
        value.unwrap_or_default()
    });
    (Values::I128(values.collect()), bad)
}

fn zip<T: Copy>(
    a: &View<'_, i64>,
    b: &View<'_, i64>,
    len: usize,
    f: impl Fn(i64, i64) -> (T, bool),
) -> (Vec<T>, bool) {
    let mut bad = false;
    let mut step = |(v, overflow): (T, bool)| {
        bad |= overflow;
        v
    };
    let out = match (a, b) {
        (View::Rows(a), View::Rows(b)) => {
            a.iter().zip(b.iter()).map(|(a, b)| step(f(*a, *b))).collect()
        }
        (View::Rows(a), View::Constant(b)) => a.iter().map(|a| step(f(*a, *b))).collect(),
        (View::Constant(a), View::Rows(b)) => b.iter().map(|b| step(f(*a, *b))).collect(),
        (View::Constant(a), View::Constant(b)) => vec![step(f(*a, *b)); len],
    };
    (out, bad)
}

fn narrow(
    op: BinaryOp,
    a: &View<'_, i64>,
    b: &View<'_, i64>,
    len: usize,
    range: (i128, i128),
) -> (Values, bool) {
    let (low, high) = (range.0 as i64, range.1 as i64);
    let outside = |v: i64| (v < low) | (v > high);
    let (values, bad) = match op {
        BinaryOp::Add => zip(a, b, len, |a, b| {
            let v = a.wrapping_add(b);
            (v, (((a ^ v) & (b ^ v)) < 0) | outside(v))
        }),
        BinaryOp::Subtract => zip(a, b, len, |a, b| {
            let v = a.wrapping_sub(b);
            (v, (((a ^ b) & (a ^ v)) < 0) | outside(v))
        }),
        _ => zip(a, b, len, |a, b| {
            let (v, overflow) = a.overflowing_mul(b);
            (v, overflow | outside(v))
        }),
    };
    (Values::I64(values), bad)
}

fn widening(
    op: BinaryOp,
    a: &View<'_, i64>,
    b: &View<'_, i64>,
    len: usize,
    range: (i128, i128),
) -> (Values, bool) {
    let (low, high) = range;
    let outside = |v: i128| (v < low) | (v > high);
    let (values, bad) = match op {
        BinaryOp::Add => {
            zip(a, b, len, |a, b| (a as i128 + b as i128, outside(a as i128 + b as i128)))
        }
        BinaryOp::Subtract => {
            zip(a, b, len, |a, b| (a as i128 - b as i128, outside(a as i128 - b as i128)))
        }
        _ => zip(a, b, len, |a, b| (a as i128 * b as i128, outside(a as i128 * b as i128))),
    };
    (Values::I128(values), bad)
}

fn floats(
    op: BinaryOp,
    a: &View<'_, f64>,
    b: &View<'_, f64>,
    validity: Option<Bitmap>,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    map_doubles(data_type, validity, rows, |i| float(op, a.get(i), b.get(i), data_type))
}

/// One operation on doubles. An infinite or undefined result of finite operands is an error.
fn float(op: BinaryOp, a: f64, b: f64, data_type: DataType) -> Result<f64> {
    let divides = matches!(op, BinaryOp::Divide | BinaryOp::IntegerDivide | BinaryOp::Modulo);
    if divides && b == 0.0 {
        return Err(decimals::zero_division());
    }
    let v = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::IntegerDivide => (a / b).trunc(),
        BinaryOp::Modulo => a % b,
        _ => return Err(Error::type_error(format!("{} needs integers", op.symbol()))),
    };
    finite(v, a.is_finite() && b.is_finite(), data_type)
}

/// Computes `-arg`; overflow is an error.
pub fn negate(arg: &Vector, data_type: DataType, rows: ActiveRows<'_>) -> Result<Vector> {
    let validity = validity(&[arg]);
    if let Some(v) = view::f64s(arg) {
        let out = (0..arg.len()).map(|i| -v.get(i)).collect();
        return Ok(Vector::new(data_type, Values::F64(out), validity));
    }
    if arg.data_type() == DataType::Interval {
        return map_values(&[arg], data_type, rows, Room::of_vector(), &mut |i| {
            interval::negate(&arg.value(i))
        });
    }
    if arg.data_type() == DataType::Null {
        return Ok(Vector::constant(data_type, &Value::Null, rows.len));
    }
    let Some(v) = view::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let (from, to) = (arg.data_type().scale(), data_type.scale());
    map_integers(data_type, validity, rows, &mut |i| {
        let negated =
            v.get(i).checked_neg().and_then(|v| nacre_types::decimal::rescale(v, from, to));
        decimals::fit(negated, data_type)
    })
}
