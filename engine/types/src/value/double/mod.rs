//! Doubles from decimal text, rounded to the nearest one, ties to even.
//!
//! Accepts and returns what the standard library's parser does, which keeps 10 KB of powers of ten
//! that do not compress. Here a power is the product of one of 25 rounded ones and an exact one, so
//! one text in 10¹⁸ is too close to the middle of two doubles and is compared with it exactly.

mod exact;

use exact::{Comparison, LAST_BIT, MANTISSA_BITS};
use std::cmp::Ordering;

/// Digits of a mantissa that always fit a `u64`.
const MAX_DIGITS: u32 = 19;

/// Powers of ten that are doubles.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// `5^27` is the greatest power of five that fits a `u64`.
const STEP: i32 = 27;

/// The first 128 bits of `5^(27k)`, for `k` from -13, rounded down. That of `k = 0` is exact.
const COARSE: [u128; 25] = [
    0x8049_a4ac_0c58_11ae_205b_896d_777d_6278,
    0xcf42_894a_5dce_35ea_5206_4cac_8286_75b9,
    0xa76c_5823_38ed_2621_af2a_f2b8_0af6_f24e,
    0x873e_4f75_e222_4e68_5a77_44a6_e804_a291,
    0xda7f_5bf5_9096_6848_af39_a475_506a_899e,
    0xb080_392c_c434_9dec_bd8d_794d_96aa_cfb3,
    0x8e93_8662_882a_f53e_547e_b47b_7282_ee9c,
    0xe658_29b3_046b_0afa_0cb4_a5a3_112a_5112,
    0xba12_1a46_50e4_ddeb_92f3_4d62_616c_e413,
    0x964e_858c_91ba_2655_3a6a_07f8_d510_f86f,
    0xf2d5_6790_ab41_c2a2_fae2_7299_423f_b9c3,
    0xc428_d05a_a475_1e4c_aa97_e14c_3c26_b886,
    0x9e74_d1b7_91e0_7e48_775e_a264_cf55_347d,
    0x8000_0000_0000_0000_0000_0000_0000_0000,
    0xcecb_8f27_f420_0f3a_0000_0000_0000_0000,
    0xa70c_3c40_a64e_6c51_9990_90b6_5f67_d924,
    0x86f0_ac99_b4e8_dafd_69a0_28bb_3ded_71a3,
    0xda01_ee64_1a70_8de9_e80e_6f48_20cc_9495,
    0xb01a_e745_b101_e9e4_5ec0_5dcf_f72e_7f8f,
    0x8e41_ade9_fbeb_c27d_1458_8f13_be84_7307,
    0xe5d3_ef28_2a24_2e81_8f16_68c8_a86d_a5fa,
    0xb9a7_4a06_37ce_2ee1_6d95_3e2b_d717_3692,
    0x95f8_3d0a_1fb6_9cd9_4abd_af10_1564_f98e,
    0xf24a_01a7_3cf2_dccf_bc63_3b39_673c_8cec,
    0xc3b8_3581_09e8_4f07_0a86_2f80_ec47_00c8,
];
const FIRST_COARSE: i32 = -13;

/// Below and above these powers of ten, any mantissa rounds to zero or to infinity.
const LEAST_POWER: i32 = -344;
const GREATEST_POWER: i32 = 308;

const LARGEST: u64 = 0x7fef_ffff_ffff_ffff;

/// Parses `[+-]digits[.digits][e[+-]digits]`, `inf`, `infinity` or `nan`, in any case. `None` if the
/// text has another form. What is too large is infinite.
pub fn parse_float(text: &str) -> Option<f64> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let magnitude = match Number::read(unsigned) {
        Some(number) => number.value(),
        None => word(unsigned)?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn word(text: &[u8]) -> Option<f64> {
    if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
        return Some(f64::INFINITY);
    }
    text.eq_ignore_ascii_case(b"nan").then_some(f64::NAN)
}

/// A decimal number: `mantissa · 10^power`, and more if digits were left out.
struct Number<'t> {
    mantissa: u64,
    power: i32,
    /// Whether further digits follow those of the mantissa.
    has_more: bool,
    /// The digits, possibly with a point, and the power of ten of their last one.
    digits: &'t [u8],
    last_power: i32,
}

impl Number<'_> {
    fn read(text: &[u8]) -> Option<Number<'_>> {
        let (mut mantissa, mut taken, mut left_out) = (0u64, 0, 0i32);
        let (mut seen, mut after_point, mut has_point, mut has_more) = (0usize, 0i32, false, false);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'0'..=b'9' => {
                    seen += 1;
                    after_point += i32::from(has_point);
                    if taken < MAX_DIGITS {
                        mantissa = mantissa * 10 + u64::from(byte - b'0');
                        taken += u32::from(mantissa > 0);
                    } else {
                        left_out += 1;
                        has_more |= byte != b'0';
                    }
                }
                b'.' if !has_point => has_point = true,
                _ => break,
            }
            at += 1;
        }
        if seen == 0 {
            return None;
        }
        let digits = &text[..at];
        let last_power = exponent(&text[at..])?.saturating_sub(after_point);
        let power = last_power.saturating_add(left_out);
        Some(Number { mantissa, power, has_more, digits, last_power })
    }

    fn value(&self) -> f64 {
        let exact = self.mantissa < 1 << (MANTISSA_BITS + 1) && !self.has_more;
        if exact && let Some(&power) = POWERS.get(self.power.unsigned_abs() as usize) {
            let mantissa = self.mantissa as f64;
            return if self.power < 0 { mantissa / power } else { mantissa * power };
        }
        if self.mantissa == 0 || self.power < LEAST_POWER {
            return 0.0;
        }
        if self.power > GREATEST_POWER {
            return f64::INFINITY;
        }
        f64::from_bits(self.bits())
    }

    fn bits(&self) -> u64 {
        let (below, order) = estimate(self.mantissa, self.power);
        let is_certain = order.is_some()
            && (!self.has_more || estimate(self.mantissa + 1, self.power) == (below, order));
        let order = match order {
            Some(order) if is_certain => order,
            _ => Comparison { digits: self.digits, power: self.last_power }.with_middle(below),
        };
        let to_even = if below.is_multiple_of(2) { Ordering::Less } else { Ordering::Greater };
        // Bits count up with doubles; infinity follows the largest one.
        below + u64::from(order.then(to_even).is_gt())
    }
}

/// The number after `e`, or 0 if the text ends instead. `None` if the text has another form.
fn exponent(text: &[u8]) -> Option<i32> {
    let digits = match text {
        [] => return Some(0),
        [b'e' | b'E', b'-' | b'+', digits @ ..] | [b'e' | b'E', digits @ ..] => digits,
        _ => return None,
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0i32;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.saturating_mul(10).saturating_add(i32::from(byte - b'0'));
    }
    Some(if text[1] == b'-' { -value } else { value })
}

/// The bits of the greatest double that is at most `mantissa · 10^power`, and how that compares with
/// the middle between it and the next one: `None` if that is too close to tell.
fn estimate(mantissa: u64, power: i32) -> (u64, Option<Ordering>) {
    debug_assert!(mantissa > 0 && (LEAST_POWER..=GREATEST_POWER).contains(&power));
    let step = power.div_euclid(STEP);
    let fine = 5u64.pow(power.rem_euclid(STEP) as u32);
    let coarse = COARSE[(step - FIRST_COARSE) as usize];
    let shift = mantissa.leading_zeros() + fine.leading_zeros();
    let exact =
        u128::from(mantissa << mantissa.leading_zeros()) * u128::from(fine << fine.leading_zeros());
    // The power is rounded down by less than one of its 128 bits, so the product lacks less than 1.
    let (product, rest) = multiply(exact, coarse);
    let last_bit = power - shift as i32 + 1 + floor_log2_of_5(step * STEP);
    let bits = 128 - product.leading_zeros();
    let dropped = (bits as i32 - 1 - MANTISSA_BITS as i32).max(LAST_BIT - last_bit);
    if dropped > 128 {
        return (0, Some(Ordering::Less));
    }
    let kept = product.checked_shr(dropped as u32).unwrap_or(0) as u64;
    let exponent = (last_bit + dropped - LAST_BIT) as u64;
    if exponent >= 2046 {
        return (LARGEST, Some(Ordering::Greater));
    }
    let remainder = product - u128::from(kept).checked_shl(dropped as u32).unwrap_or(0);
    let middle = 1u128 << (dropped - 1);
    let order = match remainder.cmp(&middle) {
        order if step == 0 => Some(order.then(rest.cmp(&0))),
        Ordering::Greater => Some(Ordering::Greater),
        _ if middle - remainder >= 2 => Some(Ordering::Less),
        _ => None,
    };
    ((exponent << MANTISSA_BITS) + kept, order)
}

/// The halves of a product.
fn multiply(a: u128, b: u128) -> (u128, u128) {
    let halves = |n: u128| (n >> 64, u128::from(n as u64));
    let ((a1, a0), (b1, b0)) = (halves(a), halves(b));
    let (low_high, low) = halves(a0 * b0);
    let (middle_high, middle) = halves(a1 * b0 + low_high);
    let (other_high, other) = halves(a0 * b1 + middle);
    (a1 * b1 + middle_high + other_high, other << 64 | low)
}

/// `⌊log₂ 5^n⌋`, exact for magnitudes up to 350.
fn floor_log2_of_5(n: i32) -> i32 {
    ((n * 217_706) >> 16) - n
}

#[cfg(test)]
mod tests;
