//! Exact decimal arithmetic on unscaled 128-bit integers. Overflow is `None`, never a wrap.

use super::double::parse_float;
use crate::invariant::broken;

/// `10^n` for `n <= 38`.
pub const POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// Number of decimal digits of the magnitude; 0 for zero.
pub fn digits(unscaled: i128) -> u8 {
    let magnitude = unscaled.unsigned_abs();
    POWERS.iter().take_while(|p| p.unsigned_abs() <= magnitude).count() as u8
}

/// Changes the scale; rounds half away from zero if digits are lost. `None` on overflow.
pub fn rescale(unscaled: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        let factor = POWERS.get((to - from) as usize)?;
        return unscaled.checked_mul(*factor);
    }
    let factor = *POWERS.get((from - to) as usize)?;
    Some(divide_rounded(unscaled, factor))
}

/// Divides and rounds half away from zero. The divisor must not be zero.
pub fn divide_rounded(dividend: i128, divisor: i128) -> i128 {
    let quotient = dividend / divisor;
    let remainder = dividend % divisor;
    if remainder.unsigned_abs() >= divisor.unsigned_abs() - remainder.unsigned_abs() {
        quotient + if (dividend < 0) == (divisor < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// Formats a decimal: `-12.30` for `(-1230, 2)`.
pub fn format(unscaled: i128, scale: u8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    let sign = if unscaled < 0 { "-" } else { "" };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// Parses `[+-]digits[.digits][e[+-]digits]` exactly into `(unscaled, scale)`; `None` if the text
/// has another form or needs more than 38 digits.
pub fn parse(text: &str) -> Option<(i128, u8)> {
    let text = text.trim();
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at)?, text.get(at + 1..)?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, mantissa.get(1..)?),
        b'+' => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut unscaled = 0i128;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        unscaled = unscaled.checked_mul(10)?.checked_add((byte - b'0') as i128)?;
    }
    if negative {
        unscaled = -unscaled;
    }
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if scale < 0 {
        return Some((unscaled.checked_mul(*POWERS.get(scale.unsigned_abs() as usize)?)?, 0));
    }
    let scale = u8::try_from(scale).ok().filter(|s| *s <= 38)?;
    (digits_fit(unscaled)).then_some((unscaled, scale))
}

fn digits_fit(unscaled: i128) -> bool {
    digits(unscaled) <= 38
}

/// Converts to the nearest double.
pub fn to_f64(unscaled: i128, scale: u8) -> f64 {
    // Parsing the text rounds correctly. The fast path rounds once, because both operands are
    // exact.
    if unscaled.unsigned_abs() < (1 << 53) && scale <= 22 {
        return unscaled as f64 / 10f64.powi(scale as i32);
    }
    let digits = format(unscaled, scale);
    match parse_float(&digits) {
        Some(value) => value,
        None => broken(format_args!("the decimal {digits} is not a double")),
    }
}

/// Converts a double to a decimal of this scale, rounded half away from zero; `None` if out of
/// range.
pub fn from_f64(value: f64, scale: u8) -> Option<i128> {
    shifted(value, scale, divide_rounded)
}

/// Like [`from_f64`], but rounds towards zero.
pub fn cut_f64(value: f64, scale: u8) -> Option<i128> {
    shifted(value, scale, |unscaled, power| unscaled / power)
}

/// The digits of a double as an integer of this scale. `divide` drops those that it does not have.
fn shifted(value: f64, scale: u8, divide: fn(i128, i128) -> i128) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    // The shortest digits that identify this double, and a power of ten.
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e')?;
    let (unscaled, from) = parse(mantissa)?;
    let shift = exponent.parse::<i32>().ok()? + i32::from(scale) - i32::from(from);
    let power = POWERS.get(shift.unsigned_abs() as usize);
    match (power, shift >= 0) {
        (Some(power), true) => unscaled.checked_mul(*power).filter(|v| digits_fit(*v)),
        (None, true) => (unscaled == 0).then_some(0),
        (Some(power), false) => Some(divide(unscaled, *power)),
        (None, false) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_and_rounds() {
        for (text, unscaled, scale) in
            [("0", 0, 0), ("-12.30", -1230, 2), ("0.05", 5, 2), ("1e3", 1000, 0), ("1.5e-2", 15, 3)]
        {
            assert_eq!(parse(text), Some((unscaled, scale)), "{text}");
        }
        assert_eq!(format(-1230, 2), "-12.30");
        assert_eq!(format(5, 2), "0.05");
        assert_eq!(rescale(125, 2, 1), Some(13));
        assert_eq!(rescale(-125, 2, 1), Some(-13));
        assert_eq!(rescale(124, 2, 1), Some(12));
        assert_eq!(parse("1.2.3"), None);
        assert_eq!(parse(""), None);
        assert_eq!(parse("-"), None);
        assert_eq!(from_f64(0.1, 2), Some(10));
        assert_eq!(from_f64(1e300, 2), None);
        assert_eq!(from_f64(1e-300, 2), Some(0));
        assert_eq!(from_f64(0.0, 38), Some(0));
        assert_eq!(from_f64(1.2345678901234567e-23, 30), Some(12_345_679));
        assert_eq!(from_f64(-1.5e-38, 38), Some(-2));
        assert_eq!(from_f64(4.9e-39, 38), Some(0));
        assert_eq!(from_f64(9e37, 0), Some(90_000_000_000_000_000_000_000_000_000_000_000_000));
        assert_eq!(from_f64(1e38, 0), None);
        assert_eq!(from_f64(123.456, 1), Some(1235));
        assert_eq!((cut_f64(123.456, 2), cut_f64(-0.29, 1)), (Some(12345), Some(-2)));
        assert_eq!(digits(0), 0);
        assert_eq!(digits(i128::MAX), 39);
    }
}
