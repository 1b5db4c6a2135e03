//! Intervals: parsing and formatting (`1 year 2 months -3 days 04:05:06`), and addition to a
//! timestamp.

use super::decimal;
use super::temporal::{self, MAX_DATE, MICROS_PER_DAY, MIN_DATE, format_time};

/// `INTERVAL`: months, days and microseconds, kept apart as in the SQL standard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    /// Whole months.
    pub months: i32,
    /// Whole days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// Packs into the 128-bit physical form of `INTERVAL` vectors: months, days, microseconds, high
    /// to low.
    pub fn pack(self) -> i128 {
        ((self.months as i128) << 96)
            | (((self.days as u32) as i128) << 64)
            | ((self.micros as u64) as i128)
    }

    /// The inverse of [`Interval::pack`].
    pub fn unpack(packed: i128) -> Interval {
        Interval {
            months: (packed >> 96) as i32,
            days: (packed >> 64) as i32,
            micros: packed as i64,
        }
    }
}

/// Returns the months, days and microseconds of the unit with this name.
pub fn unit_of(name: &str) -> Option<(i32, i32, i64)> {
    let lower = name.to_ascii_lowercase();
    let short = matches!(lower.as_str(), "s" | "ms" | "us");
    let unit = if short { &lower } else { lower.strip_suffix('s').unwrap_or(&lower) };
    Some(match unit {
        "millennium" | "millennia" => (12_000, 0, 0),
        "century" | "centurie" => (1_200, 0, 0),
        "decade" => (120, 0, 0),
        "y" | "year" | "yr" => (12, 0, 0),
        "quarter" => (3, 0, 0),
        "mon" | "month" => (1, 0, 0),
        "w" | "week" => (0, 7, 0),
        "d" | "day" => (0, 1, 0),
        "h" | "hour" | "hr" => (0, 0, 3_600_000_000),
        "m" | "minute" | "min" => (0, 0, 60_000_000),
        "s" | "second" | "sec" => (0, 0, 1_000_000),
        "ms" | "millisecond" | "milli" => (0, 0, 1_000),
        "us" | "microsecond" | "micro" => (0, 0, 1),
        _ => return None,
    })
}

/// Builds an interval of `quantity` units. A fraction of a month counts as days, of which a month
/// has 30, and a fraction of a day as microseconds, rounded.
pub fn of(quantity: &str, unit: (i32, i32, i64)) -> Option<Interval> {
    let (unscaled, scale) = decimal::parse(quantity)?;
    let one = 10i128.checked_pow(u32::from(scale))?;
    let months = unscaled.checked_mul(i128::from(unit.0))?;
    let days = (months % one).checked_mul(30)?.checked_add(unscaled.checked_mul(unit.1.into())?)?;
    let micros = (days % one)
        .checked_mul(MICROS_PER_DAY.into())?
        .checked_add(unscaled.checked_mul(unit.2.into())?)?;
    Some(Interval {
        months: i32::try_from(months / one).ok()?,
        days: i32::try_from(days / one).ok()?,
        micros: i64::try_from(decimal::rescale(micros, scale, 0)?).ok()?,
    })
}

/// Parses text such as `1 year 2 months -3 days 04:05:06`. A number at the end without a unit counts
/// seconds, and `ago` at the end turns the signs.
pub fn parse(text: &str) -> Option<Interval> {
    let mut total = Interval::default();
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    let mut is_empty = true;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") {
            return (words.next().is_none() && !is_empty).then(|| negated(total)).flatten();
        }
        is_empty = false;
        let part = if word.contains(':') {
            let (sign, clock) = match word.strip_prefix('-') {
                Some(clock) => (-1, clock),
                None => (1, word.strip_prefix('+').unwrap_or(word)),
            };
            Interval { months: 0, days: 0, micros: sign * temporal::parse_time(clock)? }
        } else {
            let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
            let (quantity, unit) = word.split_at(split);
            let unit = if unit.is_empty() { words.next().unwrap_or("second") } else { unit };
            of(quantity, unit_of(unit)?)?
        };
        total.months = total.months.checked_add(part.months)?;
        total.days = total.days.checked_add(part.days)?;
        total.micros = total.micros.checked_add(part.micros)?;
    }
    Some(total)
}

fn negated(interval: Interval) -> Option<Interval> {
    Some(Interval {
        months: interval.months.checked_neg()?,
        days: interval.days.checked_neg()?,
        micros: interval.micros.checked_neg()?,
    })
}

/// Formats an interval, such as `1 year 2 months 3 days 04:05:06`.
pub fn format(interval: Interval) -> String {
    let mut parts = Vec::new();
    let mut push = |n: i64, unit: &str| {
        if n != 0 {
            parts.push(format!("{n} {unit}{}", if n.abs() == 1 { "" } else { "s" }));
        }
    };
    push((interval.months / 12) as i64, "year");
    push((interval.months % 12) as i64, "month");
    push(interval.days as i64, "day");
    if interval.micros != 0 || parts.is_empty() {
        let sign = if interval.micros < 0 { "-" } else { "" };
        parts.push(format!("{sign}{}", format_time(interval.micros.saturating_abs())));
    }
    parts.join(" ")
}

/// Adds an interval to a timestamp; `None` if the result is outside the calendar.
pub fn add(micros: i64, interval: Interval) -> Option<i64> {
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok()?;
    let moved =
        if interval.months == 0 { days } else { temporal::add_months(days, interval.months)? };
    let moved = moved.checked_add(interval.days)?;
    let midnight = i64::from(moved).checked_mul(MICROS_PER_DAY)?;
    let total = midnight.checked_add(micros.rem_euclid(MICROS_PER_DAY))?;
    let total = total.checked_add(interval.micros)?;
    let day = total.div_euclid(MICROS_PER_DAY);
    (MIN_DATE as i64..=MAX_DATE as i64).contains(&day).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_beyond_the_calendar_is_none() {
        for days in [i32::MAX, i32::MIN, 106_751_991, 106_751_992, -106_751_993] {
            let interval = Interval { months: 0, days, micros: 0 };
            assert_eq!(add(1, interval), None, "{days}");
        }
        assert_eq!(add(1, Interval { months: 0, days: 1, micros: -1 }), Some(MICROS_PER_DAY));
    }

    #[test]
    fn intervals_read_from_text_and_print() {
        for (text, months, days, micros) in [
            ("1 year 2 months -3 days 04:05:06.5", 14, -3, 14_706_500_000),
            ("1y 2 mon 1 w", 14, 7, 0),
            ("500 ms", 0, 0, 500_000),
            ("500ms 3us", 0, 0, 500_003),
            ("2 m 3 s", 0, 0, 123_000_000),
            ("1.5 days", 0, 1, 43_200_000_000),
            ("-1.5 weeks", 0, -10, -43_200_000_000),
            ("1.5 months", 1, 15, 0),
            ("0.25 years", 3, 0, 0),
            ("1.05 mon", 1, 1, 43_200_000_000),
            ("42", 0, 0, 42_000_000),
            ("1 day -47.21", 0, 1, -47_210_000),
            ("14 months 2 days ago", -14, -2, 0),
            ("1 millennium 2 centuries 3 decades", 14_760, 0, 0),
            ("2 Hours -00:30", 0, 0, 5_400_000_000),
        ] {
            assert_eq!(parse(text), Some(Interval { months, days, micros }), "{text}");
        }
        assert_eq!(format(Interval { months: 14, days: 3, micros: 0 }), "1 year 2 months 3 days");
        for text in ["", "1 x", "days", "1 day 25:00", "ago", "1 day ago 2", "1e40 years"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
