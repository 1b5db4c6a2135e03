//! Arithmetic over vectors. Integer and decimal loops compute every row with wrapping operations and
//! one overflow flag a block; only when the flag is up are the selected, valid rows looked at one by one.

use super::access::{self, ActiveRows, Operand, Room, valid};
use super::decimals::{self, Exact};
use super::interval;
use nacre_column::{Bitmap, Values, Vector};
use nacre_sql::expr::BinaryOp;
use nacre_types::{DataType, Error, PhysicalType, Result, Value};

/// `left op right` for every operator but comparisons and `||`.
pub(super) fn binary(
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
    floats(op, &a, &b, access::validity(&[left, right]), data_type, rows)
}

/// Numbers of any type as doubles.
pub(crate) fn doubles(vector: &Vector) -> Result<Operand<'_, f64>> {
    if let Some(v) = access::f64s(vector) {
        return Ok(v);
    }
    let scale = vector.data_type().scale();
    let convert = |v: i128| nacre_types::decimal::to_f64(v, scale);
    Ok(match access::wide(vector) {
        Some(access::Wide::Narrow(Operand::Constant(v))) => Operand::Constant(convert(v as i128)),
        Some(access::Wide::Full(Operand::Constant(v))) => Operand::Constant(convert(v)),
        Some(v) => Operand::Rows((0..vector.len()).map(|i| convert(v.get(i))).collect()),
        None => return Err(not_a_number(vector.data_type())),
    })
}

#[cold]
pub(super) fn not_a_number(data_type: DataType) -> Error {
    Error::type_error(format!("{data_type} is not a number"))
}

fn integers(
    op: BinaryOp,
    left: &Vector,
    right: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let exact = Exact::new(op, left.data_type(), right.data_type(), data_type);
    let validity = access::validity(&[left, right]);
    let natural_scale = match op {
        BinaryOp::Add | BinaryOp::Subtract => {
            exact.left_scale == exact.right_scale && exact.left_scale == data_type.scale()
        }
        BinaryOp::Multiply => exact.left_scale + exact.right_scale == data_type.scale(),
        _ => false,
    };
    if natural_scale
        && rows.is_dense()
        && let (Some(a), Some(b)) = (access::i64s(left), access::i64s(right))
    {
        let (values, bad) = match data_type.physical() {
            PhysicalType::I64 => narrow(op, &a, &b, rows.len, exact.range()),
            _ => widening(op, &a, &b, rows.len, exact.range()),
        };
        if bad {
            for i in rows.iter().filter(|i| valid(&validity, *i)) {
                exact.one(a.get(i) as i128, b.get(i) as i128)?;
            }
        }
        return Ok(Vector::new(data_type, values, validity));
    }
    let (Some(a), Some(b)) = (access::wide(left), access::wide(right)) else {
        return Err(not_a_number(
            if access::wide(left).is_none() { left } else { right }.data_type(),
        ));
    };
    each(data_type, validity, rows, &mut |i| exact.one(a.get(i), b.get(i)))
}

/// One integer a valid row; zero at the others.
pub(super) fn each(
    data_type: DataType,
    validity: Option<Bitmap>,
    rows: ActiveRows<'_>,
    compute: &mut dyn FnMut(usize) -> Result<i128>,
) -> Result<Vector> {
    let mut wide = Vec::new();
    let mut narrow = Vec::new();
    let is_wide = data_type.physical() == PhysicalType::I128;
    if is_wide {
        wide.resize(rows.len, 0i128)
    } else {
        narrow.resize(rows.len, 0i64)
    }
    for i in rows.iter() {
        if valid(&validity, i) {
            let v = compute(i)?;
            if is_wide { wide[i] = v } else { narrow[i] = v as i64 }
        }
    }
    Ok(Vector::new(
        data_type,
        if is_wide { Values::I128(wide) } else { Values::I64(narrow) },
        validity,
    ))
}

fn zip<T: Copy>(
    a: &Operand<'_, i64>,
    b: &Operand<'_, i64>,
    len: usize,
    f: impl Fn(i64, i64) -> (T, bool),
) -> (Vec<T>, bool) {
    let mut bad = false;
    let mut step = |(v, overflow): (T, bool)| {
        bad |= overflow;
        v
    };
    let out = match (a, b) {
        (Operand::Rows(a), Operand::Rows(b)) => {
            a.iter().zip(b.iter()).map(|(a, b)| step(f(*a, *b))).collect()
        }
        (Operand::Rows(a), Operand::Constant(b)) => a.iter().map(|a| step(f(*a, *b))).collect(),
        (Operand::Constant(a), Operand::Rows(b)) => b.iter().map(|b| step(f(*a, *b))).collect(),
        (Operand::Constant(a), Operand::Constant(b)) => vec![step(f(*a, *b)); len],
    };
    (out, bad)
}

fn narrow(
    op: BinaryOp,
    a: &Operand<'_, i64>,
    b: &Operand<'_, i64>,
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
    a: &Operand<'_, i64>,
    b: &Operand<'_, i64>,
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
    a: &Operand<'_, f64>,
    b: &Operand<'_, f64>,
    validity: Option<Bitmap>,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let mut out = vec![0.0; rows.len];
    for i in rows.iter().filter(|i| valid(&validity, *i)) {
        out[i] = float(op, a.get(i), b.get(i), data_type)?;
    }
    Ok(Vector::new(data_type, Values::F64(out), validity))
}

/// One operation on doubles. Finite operands have a finite result or are an error.
pub(super) fn float(op: BinaryOp, a: f64, b: f64, data_type: DataType) -> Result<f64> {
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

/// Rounds to the type and refuses an infinity that finite operands made.
pub(super) fn finite(v: f64, from_finite: bool, data_type: DataType) -> Result<f64> {
    let v = if data_type == DataType::Float32 { v as f32 as f64 } else { v };
    if from_finite && !v.is_finite() { Err(decimals::overflow(data_type)) } else { Ok(v) }
}

/// `-arg`.
pub(super) fn negate(arg: &Vector, data_type: DataType, rows: ActiveRows<'_>) -> Result<Vector> {
    let validity = access::validity(&[arg]);
    if let Some(v) = access::f64s(arg) {
        let out = (0..arg.len()).map(|i| -v.get(i)).collect();
        return Ok(Vector::new(data_type, Values::F64(out), validity));
    }
    if arg.data_type() == DataType::Interval {
        return access::map_values(&[arg], data_type, rows, Room::of_column(), &mut |i| {
            interval::negate(&arg.value(i))
        });
    }
    if arg.data_type() == DataType::Null {
        return Ok(Vector::constant(data_type, &Value::Null, rows.len));
    }
    let Some(v) = access::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let (from, to) = (arg.data_type().scale(), data_type.scale());
    each(data_type, validity, rows, &mut |i| {
        let negated =
            v.get(i).checked_neg().and_then(|v| nacre_types::decimal::rescale(v, from, to));
        decimals::fit(negated, data_type)
    })
}
