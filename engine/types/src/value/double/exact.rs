//! Compares a decimal number exactly with the middle of two doubles, by integers of any length.

use std::cmp::Ordering;

pub(super) const MANTISSA_BITS: u32 = 52;
/// Binary exponent of the last bit of the least double.
pub(super) const LAST_BIT: i32 = -1074;

/// A middle has at most 767 significant digits, so that digits behind these only break ties.
const MAX_DIGITS: usize = 800;

/// A decimal number.
pub(super) struct Comparison<'t> {
    /// Digits, possibly with a point.
    pub digits: &'t [u8],
    /// Power of ten of the last digit.
    pub power: i32,
}

impl Comparison<'_> {
    /// Compares the number with the middle of a double, given by its bits, and the next one.
    pub fn with_middle(&self, below: u64) -> Ordering {
        let mut number = Integer(Vec::new());
        let (mut taken, mut left_out, mut has_more) = (0, 0i32, false);
        for digit in self.digits.iter().filter(|byte| **byte != b'.').map(|byte| byte - b'0') {
            if taken < MAX_DIGITS {
                number.multiply_add(10, digit.into());
                taken += usize::from(!number.0.is_empty());
            } else {
                left_out += 1;
                has_more |= digit != 0;
            }
        }
        let power = self.power + left_out;
        let field = below >> MANTISSA_BITS;
        let implied = u64::from(field > 0) << MANTISSA_BITS;
        let mantissa = below & ((1 << MANTISSA_BITS) - 1) | implied;
        let mut middle = Integer(Vec::new());
        middle.multiply_add(0, (mantissa >> 31) as u32);
        middle.shift(32);
        middle.multiply_add(1, (mantissa << 1) as u32 | 1);
        let exponent = LAST_BIT - 1 + field.max(1) as i32 - 1;
        // Ten is twice five: both sides become integers, times powers of two.
        let fives = if power < 0 { &mut middle } else { &mut number };
        (0..power.unsigned_abs()).for_each(|_| fives.multiply_add(5, 0));
        let twos = exponent - power;
        if twos < 0 { &mut number } else { &mut middle }.shift(twos.unsigned_abs());
        number.compare(&middle).then(if has_more { Ordering::Greater } else { Ordering::Equal })
    }
}

/// A natural number, its least part first and its greatest part not zero.
struct Integer(Vec<u32>);

impl Integer {
    fn multiply_add(&mut self, factor: u32, added: u32) {
        let mut carry = u64::from(added);
        for part in &mut self.0 {
            carry += u64::from(*part) * u64::from(factor);
            *part = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    fn shift(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, bits as usize / 32));
        }
    }

    fn compare(&self, other: &Integer) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}
