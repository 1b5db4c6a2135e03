//! Exact arithmetic on one pair of unscaled integers: the slow path of arithmetic, and the fallback
//! of its fast loops after an overflow.

use crate::operator::BinaryOp;
use nacre_types::{DataType, Error, Result, decimal};

/// Inclusive bounds of a type held as an integer.
pub fn bounds(data_type: DataType) -> (i128, i128) {
    match data_type {
        DataType::Decimal { precision, .. } => {
            let limit = decimal::POWERS.get(precision as usize).map_or(i128::MAX, |p| p - 1);
            (-limit, limit)
        }
        _ => data_type.integer_range().unwrap_or((i64::MIN as i128, i64::MAX as i128)),
    }
}

/// The error for a number out of range of its type.
#[cold]
pub fn overflow(data_type: DataType) -> Error {
    Error::out_of_range(format!("{data_type} out of range"))
}

/// The error for division by zero.
#[cold]
pub fn zero_division() -> Error {
    Error::type_error("division by zero").with_sqlstate("22012")
}

/// The value if it is within the bounds of the type, else `22003`.
pub fn fit(value: Option<i128>, data_type: DataType) -> Result<i128> {
    let (low, high) = bounds(data_type);
    value.filter(|v| (low..=high).contains(v)).ok_or_else(|| overflow(data_type))
}

/// One exact operation: operand scales and the result type.
#[derive(Clone, Copy)]
pub struct Exact {
    /// Operator.
    pub op: BinaryOp,
    /// Scale of the left operand.
    pub left_scale: u8,
    /// Scale of the right operand.
    pub right_scale: u8,
    /// Result type.
    pub data_type: DataType,
    low: i128,
    high: i128,
}

impl Exact {
    /// An operation on operands of these types.
    pub fn new(op: BinaryOp, left: DataType, right: DataType, data_type: DataType) -> Exact {
        let (low, high) = bounds(data_type);
        Exact { op, left_scale: left.scale(), right_scale: right.scale(), data_type, low, high }
    }

    /// Inclusive bounds of the result.
    pub fn range(&self) -> (i128, i128) {
        (self.low, self.high)
    }

    /// The result; `22012` for division by zero, `22003` if out of range.
    pub fn one(&self, a: i128, b: i128) -> Result<i128> {
        let scale = self.data_type.scale();
        let common = self.left_scale.max(self.right_scale);
        let aligned =
            || Some((align(a, self.left_scale, common)?, align(b, self.right_scale, common)?));
        let divides =
            matches!(self.op, BinaryOp::Divide | BinaryOp::IntegerDivide | BinaryOp::Modulo);
        if divides && b == 0 {
            return Err(zero_division());
        }
        let value = match self.op {
            BinaryOp::Add => aligned().and_then(|(a, b)| rescale(a.checked_add(b)?, common, scale)),
            BinaryOp::Subtract => {
                aligned().and_then(|(a, b)| rescale(a.checked_sub(b)?, common, scale))
            }
            BinaryOp::Multiply => {
                multiply(a, b).and_then(|v| rescale(v, self.left_scale + self.right_scale, scale))
            }
            BinaryOp::Divide => {
                divide(a, b, scale as i32 + self.right_scale as i32 - self.left_scale as i32)
            }
            BinaryOp::IntegerDivide => {
                aligned().and_then(|(a, b)| rescale(quotient(a, b)?, 0, scale))
            }
            BinaryOp::Modulo => {
                aligned().and_then(|(a, b)| rescale(remainder(a, b), common, scale))
            }
            _ => self.bits(a, b)?,
        };
        match value {
            Some(v) if (self.low..=self.high).contains(&v) => Ok(v),
            _ => Err(overflow(self.data_type)),
        }
    }

    /// Operates on the bits of 64-bit two's complement, read as signed or unsigned according to the
    /// result type.
    fn bits(&self, a: i128, b: i128) -> Result<Option<i128>> {
        let (x, y) = (a as u64, b as u64);
        let shift = u32::try_from(b).ok();
        let bits = match (self.op, shift) {
            (BinaryOp::BitAnd, _) => x & y,
            (BinaryOp::BitOr, _) => x | y,
            (BinaryOp::BitXor, _) => x ^ y,
            (BinaryOp::ShiftLeft, Some(n)) => x.checked_shl(n).unwrap_or(0),
            (BinaryOp::ShiftRight, Some(n)) => return Ok(Some(a >> n.min(64))),
            (BinaryOp::ShiftLeft | BinaryOp::ShiftRight, None) if b > 0 => return Ok(Some(0)),
            (BinaryOp::ShiftLeft | BinaryOp::ShiftRight, None) => {
                return Err(Error::out_of_range("cannot shift by a negative number"));
            }
            _ => {
                return Err(Error::unsupported(format!(
                    "{} on {}",
                    self.op.symbol(),
                    self.data_type
                )));
            }
        };
        Ok(Some(if self.data_type == DataType::UInt64 {
            bits as i128
        } else {
            bits as i64 as i128
        }))
    }
}

fn rescale(v: i128, from: u8, to: u8) -> Option<i128> {
    if from == to { Some(v) } else { decimal::rescale(v, from, to) }
}

fn align(v: i128, from: u8, to: u8) -> Option<i128> {
    rescale(v, from, to)
}

/// The product; 64-bit factors cannot overflow and need no check.
#[inline]
pub fn multiply(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) => Some(x as i128 * y as i128),
        _ => a.checked_mul(b),
    }
}

/// The truncated quotient, by 64-bit division if possible, which is several times faster.
#[inline]
fn quotient(a: i128, b: i128) -> Option<i128> {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) => x.checked_div(y).map(i128::from).or_else(|| a.checked_div(b)),
        _ => a.checked_div(b),
    }
}

#[inline]
fn remainder(a: i128, b: i128) -> i128 {
    match (i64::try_from(a), i64::try_from(b)) {
        (Ok(x), Ok(y)) => x.wrapping_rem(y) as i128,
        _ => a.wrapping_rem(b),
    }
}

/// `a * 10^shift / b`, rounded half away from zero. `b` is not zero.
pub fn divide(a: i128, b: i128, shift: i32) -> Option<i128> {
    if shift < 0 {
        let factor = *decimal::POWERS.get(shift.unsigned_abs() as usize)?;
        return Some(match b.checked_mul(factor) {
            Some(divisor) => decimal::divide_rounded(a, divisor),
            None => 0,
        });
    }
    if let Some(dividend) = decimal::POWERS.get(shift as usize).and_then(|f| multiply(a, *f)) {
        return Some(match (i64::try_from(dividend), i64::try_from(b)) {
            (Ok(x), Ok(y)) if y != -1 => divide_rounded_i64(x, y) as i128,
            _ => decimal::divide_rounded(dividend, b),
        });
    }
    // The shifted dividend does not fit in 128 bits: long division, one decimal digit at a time.
    let (magnitude, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    let mut quotient = magnitude / divisor;
    let mut rest = magnitude % divisor;
    for _ in 0..shift {
        let digit;
        (digit, rest) = next_digit(rest, divisor);
        quotient = quotient.checked_mul(10)?.checked_add(digit)?;
    }
    if rest >= divisor - rest {
        quotient = quotient.checked_add(1)?;
    }
    let quotient = i128::try_from(quotient).ok()?;
    Some(if (a < 0) == (b < 0) { quotient } else { -quotient })
}

/// Quotient and remainder of `10 * rest` by the divisor. `rest` is less than the divisor, which has
/// at most 127 bits.
fn next_digit(rest: u128, divisor: u128) -> (u128, u128) {
    if let Some(next) = rest.checked_mul(10) {
        return (next / divisor, next % divisor);
    }
    (0..10).fold((0, 0), |(digit, sum), _| match sum + rest {
        sum if sum >= divisor => (digit + 1, sum - divisor),
        sum => (digit, sum),
    })
}

fn divide_rounded_i64(a: i64, b: i64) -> i64 {
    let (quotient, rest) = (a / b, a % b);
    if rest.unsigned_abs() >= b.unsigned_abs() - rest.unsigned_abs() {
        quotient + if (a < 0) == (b < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}
