//! Numbers whose text follows from their value: only these become integers and doubles.

use nacre_types::{format_float, parse_float};

/// A number as a value from which its text comes back.
pub(super) enum Number {
    Integer(i64),
    Double(f64),
}

/// The value of a JSON number, if [`write_integer`] or [`write_double`] gives its text again.
pub(super) fn exact(text: &str) -> Option<Number> {
    debug_assert!(!text.is_empty(), "a number without text");
    if text.len() <= 20 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        // JSON has no leading zeroes and no plus sign: only negative zero has two texts.
        return (text != "-0").then(|| text.parse().ok().map(Number::Integer))?;
    }
    let value = parse_float(text)?;
    (value.is_finite() && format_float(value) == text).then_some(Number::Double(value))
}

/// Appends the text of an integer.
pub(super) fn write_integer(value: i64, out: &mut String) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Appends the text of a double: the shortest one that parses to it, with a point or an exponent.
pub(super) fn write_double(value: f64, out: &mut String) {
    debug_assert!(value.is_finite(), "{value} in JSON");
    out.push_str(&format_float(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(text: &str) -> Option<String> {
        let mut out = String::new();
        match exact(text)? {
            Number::Integer(value) => write_integer(value, &mut out),
            Number::Double(value) => write_double(value, &mut out),
        }
        Some(out)
    }

    #[test]
    fn only_numbers_that_come_back_are_values() {
        for text in [
            "0",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "1.0",
            "-0.0",
            "0.1",
            "1.5",
            "1e300",
            "1e16",
            "1.7976931348623157e308",
            "0.0001",
            "1e-5",
            "5e-324",
            "12.25",
        ] {
            assert_eq!(again(text).as_deref(), Some(text));
        }
        for text in [
            "-0",
            "9223372036854775808",
            "1.00",
            "1E3",
            "1e3",
            "1e+21",
            "1e-07",
            "10.50",
            "1e999",
            "123456789012345678901234567890",
            "0.30000000000000004000",
            "1.0e0",
        ] {
            assert_eq!(again(text), None, "{text}");
        }
    }
}
