//! Infers the narrowest type that represents every text of a column exactly.
//!
//! Examines the whole column rather than a sample, so that a file always loads into the table that
//! was created from it. Digits with a leading zero (`00501`) stay text: a number would lose the
//! zero.

use nacredb::{DataType, temporal};

/// Number of significant decimal digits that every double preserves.
const DOUBLE_DIGITS: usize = 15;

/// Types still possible for a column, and the range of its numbers.
#[derive(Clone, Debug)]
pub struct Inference {
    boolean: bool,
    integer: bool,
    decimal: bool,
    float: bool,
    date: bool,
    time: bool,
    timestamp: bool,
    json: bool,
    /// Whether a double preserves all digits of every number.
    double: bool,
    /// Maximum number of digits before and after the decimal point.
    whole: usize,
    fraction: usize,
    low: i128,
    high: i128,
    seen: bool,
}

impl Default for Inference {
    fn default() -> Inference {
        Inference {
            boolean: true,
            integer: true,
            decimal: true,
            float: true,
            date: true,
            time: true,
            timestamp: true,
            json: true,
            double: true,
            whole: 0,
            fraction: 0,
            low: 0,
            high: 0,
            seen: false,
        }
    }
}

impl Inference {
    /// Takes one non-null text into account.
    pub fn observe(&mut self, text: &str) {
        self.seen = true;
        self.json = false;
        self.boolean &= matches!(text, "true" | "false" | "TRUE" | "FALSE" | "True" | "False");
        if self.decimal || self.float {
            self.observe_number(text);
        }
        self.date = self.date && text.len() == 10 && temporal::parse_date(text).is_some();
        self.time = self.time
            && is_clock(text)
            && temporal::parse_time(text).is_some()
            && has_microseconds_only(text);
        self.timestamp = self.timestamp
            && text.len() >= 10
            && temporal::parse_timestamp(text).is_some()
            && has_microseconds_only(text);
    }

    /// Takes a text into account whose format rules out numbers and booleans, such as a JSON
    /// string.
    pub fn observe_string(&mut self, text: &str) {
        (self.boolean, self.integer, self.decimal, self.float) = (false, false, false, false);
        self.observe(text);
    }

    /// Takes a JSON object or array into account.
    pub fn observe_json(&mut self) {
        self.seen = true;
        (self.boolean, self.integer, self.decimal, self.float) = (false, false, false, false);
        (self.date, self.time, self.timestamp) = (false, false, false);
    }

    fn observe_number(&mut self, text: &str) {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if whole.len() > 1 && whole.starts_with('0') && all_digits(whole) {
            // A code such as a postal code, not a number.
            (self.integer, self.decimal, self.float) = (false, false, false);
            return;
        }
        let plain = !whole.is_empty()
            && all_digits(whole)
            && all_digits(fraction)
            && !digits.ends_with('.');
        self.decimal &= plain;
        self.integer = self.integer && plain && fraction.is_empty();
        if plain {
            self.whole = self.whole.max(if whole == "0" { 0 } else { whole.len() });
            self.fraction = self.fraction.max(fraction.len());
            if self.integer {
                let value = text.parse::<i128>().unwrap_or(i128::MAX);
                self.low = self.low.min(value);
                self.high = self.high.max(value);
            }
        } else {
            // Words that parse as floats ("nan", "infinity") are not evidence of a numeric column.
            self.float = self.float
                && text.parse::<f64>().is_ok_and(f64::is_finite)
                && digits.starts_with(|c: char| c.is_ascii_digit());
        }
        // A number with an exponent is a double, regardless of its number of digits.
        if self.double && digits.len() > DOUBLE_DIGITS && !digits.contains(['e', 'E']) {
            self.double = double_has_digits(digits);
        }
    }

    /// Returns the inferred type; `TEXT` if every value was null.
    pub fn data_type(&self) -> DataType {
        if !self.seen {
            return DataType::TEXT;
        }
        if self.json {
            return DataType::Json;
        }
        if self.boolean {
            return DataType::Boolean;
        }
        if self.integer {
            if self.low >= i64::MIN as i128 && self.high <= i64::MAX as i128 {
                return DataType::Int64;
            }
            if self.low >= 0 && self.high <= u64::MAX as i128 {
                return DataType::UInt64;
            }
            if self.whole <= 38 {
                return DataType::Decimal { precision: 38, scale: 0 };
            }
            return DataType::TEXT;
        }
        // Numbers with few decimal places are amounts, which must be exact. Others are
        // measurements, stored as doubles unless a double would lose digits.
        if self.decimal && self.fraction <= 4 && self.whole + self.fraction <= 18 {
            return DataType::Decimal { precision: 18, scale: self.fraction as u8 };
        }
        if self.float && self.double {
            return DataType::Float64;
        }
        if self.decimal && self.whole + self.fraction <= 38 {
            let precision = if self.whole + self.fraction <= 18 { 18 } else { 38 };
            return DataType::Decimal { precision, scale: self.fraction as u8 };
        }
        if self.date {
            return DataType::Date;
        }
        if self.timestamp {
            return DataType::Timestamp;
        }
        if self.time {
            return DataType::Time;
        }
        DataType::TEXT
    }
}

/// Whether the double nearest to a number prints with the same digits. The number has no exponent.
fn double_has_digits(digits: &str) -> bool {
    let Ok(double) = digits.parse::<f64>() else { return false };
    let written = format!("{double:e}");
    let significant = |text: &str| text.replace('.', "").trim_matches('0').to_owned();
    double.is_finite()
        && significant(written.split('e').next().unwrap_or_default()) == significant(digits)
}

/// Whether a text has the form of a time of day, `10:30` or `10:30:00`. Shorter forms such as `3:2`
/// are more likely scores or ratios.
fn is_clock(text: &str) -> bool {
    let digits = |list: &[u8]| list.iter().all(u8::is_ascii_digit);
    match *text.as_bytes() {
        [a, b, b':', c, d] => digits(&[a, b, c, d]),
        [a, b, b':', c, d, b':', e, f, ..] => digits(&[a, b, c, d, e, f]),
        _ => false,
    }
}

/// Whether a time or timestamp has no digits beyond microseconds.
fn has_microseconds_only(text: &str) -> bool {
    let beyond = text.split_once('.').and_then(|(_, fraction)| fraction.get(6..));
    beyond.is_none_or(|digits| !digits.contains(|c: char| matches!(c, '1'..='9')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(texts: &[&str]) -> DataType {
        let mut inference = Inference::default();
        texts.iter().for_each(|text| inference.observe(text));
        inference.data_type()
    }

    #[test]
    fn infers_the_narrowest_exact_type() {
        for (texts, data_type) in [
            (&[][..], DataType::TEXT),
            (&["1", "-2", "0"], DataType::Int64),
            (&["9223372036854775808"], DataType::UInt64),
            (&["9223372036854775808", "-1"], DataType::Decimal { precision: 38, scale: 0 }),
            (&["1", "2.50"], DataType::Decimal { precision: 18, scale: 2 }),
            (&["0.123456"], DataType::Float64),
            (&["1", "1e5"], DataType::Float64),
            (&["nan"], DataType::TEXT),
            (&["00501", "10001"], DataType::TEXT),
            (&["0", "0.5"], DataType::Decimal { precision: 18, scale: 1 }),
            (&["true", "FALSE"], DataType::Boolean),
            (&["true", "1"], DataType::TEXT),
            (&["2026-11-21"], DataType::Date),
            (&["2026-11-21", "2026-11-21 10:00:00"], DataType::Timestamp),
            (&["10:30"], DataType::Time),
            (&["10:30", "09:15:30.25"], DataType::Time),
            (&["3:2", "1:30"], DataType::TEXT),
            (&["10:30", "10:3"], DataType::TEXT),
            (&["10:30:5"], DataType::TEXT),
            (&["1", ""], DataType::TEXT),
            (&["1.", "2"], DataType::Float64),
            (&["-"], DataType::TEXT),
            (&["1-2-3"], DataType::TEXT),
        ] {
            assert_eq!(infer(texts), data_type, "{texts:?}");
        }
    }

    #[test]
    fn inferred_types_preserve_all_digits() {
        let wide = |scale| DataType::Decimal { precision: 38, scale };
        let nines = "9".repeat(38);
        let small = format!("0.{nines}");
        for (texts, data_type) in [
            (&["12345678901.12345678"][..], wide(8)),
            (&["-1.234567890123456789"], wide(18)),
            (&["1.23456789012345671"], DataType::Decimal { precision: 18, scale: 17 }),
            (&["12345678901234567890", "0.5"], wide(1)),
            (&["9999999999999999", "0.5678"], wide(4)),
            (&["0.5678", "9999999999999999"], wide(4)),
            (&["12345678901234567890.1234567890"], wide(10)),
            (&[&nines], wide(0)),
            (&[&small], wide(38)),
            (&[&small, "1"], DataType::TEXT),
            (&[&nines, "0.5"], DataType::TEXT),
            // The shortest text of a double has up to 17 digits.
            (&["0.30000000000000004", "-0.8444218515250481"], DataType::Float64),
            (&["0.000012345678901234", "10000000000000000000.5"], wide(18)),
            (&["0.30000000000000004", "1e-7"], DataType::Float64),
            (&["12345678901234567890", "1e5"], DataType::TEXT),
            (&["1.2345678901234567890e5"], DataType::Float64),
            (&["1e999"], DataType::TEXT),
            (&["-1e999", "1"], DataType::TEXT),
            (&["2026-01-01 00:00:00.123456789"], DataType::TEXT),
            (&["2026-01-01T00:00:00.123456000Z", "2026-01-01 00:00:00"], DataType::Timestamp),
            (&["10:30:00.1234567"], DataType::TEXT),
            (&["10:30:00.1234560"], DataType::Time),
        ] {
            assert_eq!(infer(texts), data_type, "{texts:?}");
        }
    }

    #[test]
    fn json_mixed_with_text_is_text() {
        let mut inference = Inference::default();
        inference.observe_json();
        inference.observe_json();
        assert_eq!(inference.data_type(), DataType::Json);
        let mut inference = Inference::default();
        inference.observe("1");
        inference.observe_json();
        assert_eq!(inference.data_type(), DataType::TEXT);
        let mut inference = Inference::default();
        inference.observe_json();
        inference.observe("1");
        assert_eq!(inference.data_type(), DataType::TEXT);
    }
}
