//! Texts against the standard library's parser, and the middles of neighbours in all sizes.

use super::*;

fn agrees(text: &str) {
    let expected = text.parse::<f64>().ok();
    let found = parse_float(text);
    let bits = |v: Option<f64>| v.map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() });
    assert_eq!(bits(found), bits(expected), "{text}: {found:?}, not {expected:?}");
}

/// The next number of a fixed sequence.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (mixed >> 31)
}

/// The digits of a number, least first, times a small factor.
fn times(digits: &mut Vec<u8>, factor: u8) {
    let mut carry = 0u16;
    for digit in digits.iter_mut() {
        carry += u16::from(*digit) * u16::from(factor);
        *digit = (carry % 10) as u8;
        carry /= 10;
    }
    while carry > 0 {
        digits.push((carry % 10) as u8);
        carry /= 10;
    }
}

/// The middle between a double and the next one, exactly: digits, least first, and a power of ten.
fn middle(below: u64) -> (Vec<u8>, i32) {
    let field = below >> 52;
    let mantissa = below & ((1 << 52) - 1) | u64::from(field > 0) << 52;
    let exponent = field.max(1) as i32 - 1076;
    let text = (2 * mantissa + 1).to_string();
    let mut digits: Vec<u8> = text.bytes().rev().map(|byte| byte - b'0').collect();
    let factor = if exponent < 0 { 5 } else { 2 };
    (0..exponent.unsigned_abs()).for_each(|_| times(&mut digits, factor));
    (digits, exponent.min(0))
}

fn shown(digits: &[u8], power: i32) -> String {
    let text: String = digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
    format!("{text}e{power}")
}

#[test]
fn forms_are_those_of_the_standard_library() {
    let words =
        ["", "+", "-", ".", "e", "1", "00", "1.", ".5", "+.5e1", "-0", "-0.0e-5", "1e", "1e+"];
    let others =
        ["1e5x", "1..2", "1.2.3", "1_0", " 1", "0x1", "inf", "-INF", "Infinity", "infinityx"];
    let more = ["nan", "+NaN", "-nan", "--1", "1e-0", "1E5", "1e+05", "e5", ".e5", "5.e5", "1e--5"];
    words.iter().chain(&others).chain(&more).for_each(|text| agrees(text));
}

#[test]
fn limits_are_those_of_the_standard_library() {
    for text in [
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "179769313486231580793e289",
        "4.9e-324",
        "2.5e-324",
        "2.4e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "9007199254740993",
        "9007199254740993.000000000000000000000001",
        "18446744073709551616",
        "1e22",
        "1e23",
        "1e-22",
        "1e-23",
        "1e309",
        "0e400",
        "0e-400",
        "1e2147483648",
        "1e-99999999999999999999",
        "10000000000000000000000000000000000000000e-40",
    ] {
        agrees(text);
    }
    let zeros = "0".repeat(1_000);
    agrees(&format!("0.{zeros}17e1001"));
    agrees(&format!("17{zeros}e-1000"));
    agrees(&format!("17{zeros}1e-1001"));
}

#[test]
fn random_texts_agree() {
    let mut state = 1;
    for _ in 0..20_000 {
        let value = f64::from_bits(next(&mut state) & (u64::MAX >> 1));
        if !value.is_finite() {
            continue;
        }
        agrees(&format!("{value:e}"));
        agrees(&format!("{value:.16e}"));
        agrees(&format!("{value:.18e}"));
        agrees(&format!("{value:.19e}"));
        agrees(&format!("{value:.40e}"));
        let power = (next(&mut state) % 700) as i32 - 370;
        agrees(&format!("{}e{power}", next(&mut state) >> (next(&mut state) % 64)));
        agrees(&format!("{}{}e{power}", next(&mut state), next(&mut state)));
        agrees(&format!("{}.{}", next(&mut state) % 1_000_000, next(&mut state) % 1_000_000_000));
    }
}

#[test]
fn middles_are_rounded_to_even_and_their_neighbours_are_not() {
    let mut state = 2;
    let edges = [0, 1, 2, (1 << 52) - 1, 1 << 52, (1 << 52) + 1, LARGEST - 1, LARGEST];
    let random = (0..300).map(|_| next(&mut state) % LARGEST);
    for below in edges.into_iter().chain(random.collect::<Vec<_>>()) {
        let (mut digits, power) = middle(below);
        let text = shown(&digits, power);
        agrees(&text);
        agrees(&format!("{}.0e{power}", shown(&digits, 0).trim_end_matches("e0")));
        // Far behind the last digit, something follows.
        let zeros = "0".repeat(400);
        agrees(&format!("{}{zeros}1e{}", shown(&digits, 0).trim_end_matches("e0"), power - 401));
        for last in 0..10 {
            digits[0] = last;
            agrees(&shown(&digits, power));
        }
    }
}

#[test]
fn powers_are_rounded_down() {
    for (at, coarse) in COARSE.iter().enumerate() {
        let power = (FIRST_COARSE + at as i32) * STEP;
        // 5^-n is 2^n · 10^-n, and 2^-n is 5^n · 10^-n.
        let shift = 127 - floor_log2_of_5(power);
        let (fives, twos, fraction) = match (power, shift) {
            (..0, _) => (0, shift - power, -power),
            (_, 0..) => (power, shift, 0),
            _ => (power - shift, 0, -shift),
        };
        let mut digits = vec![1];
        (0..fives).for_each(|_| times(&mut digits, 5));
        (0..twos).for_each(|_| times(&mut digits, 2));
        let whole = digits.split_off(fraction as usize);
        let text: String = whole.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        assert_eq!(text, coarse.to_string(), "5^{power}");
    }
}
