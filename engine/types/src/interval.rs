//! Intervals from text: `1 year 2 months -3 days 04:05:06`.

use crate::{Interval, decimal, temporal};

/// Unit of an interval: months, days and microseconds of one.
pub fn unit_of(name: &str) -> Option<(i32, i32, i64)> {
    let lower = name.to_ascii_lowercase();
    let short = matches!(lower.as_str(), "s" | "ms" | "us");
    let unit = if short { &lower } else { lower.strip_suffix('s').unwrap_or(&lower) };
    Some(match unit {
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

/// `quantity` units; a fraction is allowed for days and below, where it is exact to the microsecond.
pub fn of(quantity: &str, unit: (i32, i32, i64)) -> Option<Interval> {
    let (unscaled, scale) = decimal::parse(quantity)?;
    if let Some(whole) = decimal::rescale(unscaled, scale, 0)
        .filter(|w| decimal::rescale(*w, 0, scale) == Some(unscaled))
    {
        return Some(Interval {
            months: i32::try_from(whole.checked_mul(unit.0 as i128)?).ok()?,
            days: i32::try_from(whole.checked_mul(unit.1 as i128)?).ok()?,
            micros: i64::try_from(whole.checked_mul(unit.2 as i128)?).ok()?,
        });
    }
    if unit.0 != 0 {
        return None;
    }
    let unit_micros = unit.1 as i128 * temporal::MICROS_PER_DAY as i128 + unit.2 as i128;
    let micros = decimal::rescale(unscaled.checked_mul(unit_micros)?, scale, 0)?;
    Some(Interval { months: 0, days: 0, micros: i64::try_from(micros).ok()? })
}

/// `1 year 2 months -3 days 04:05:06`.
pub fn parse(text: &str) -> Option<Interval> {
    let mut total = Interval::default();
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        let part = if word.contains(':') {
            let (sign, clock) = match word.strip_prefix('-') {
                Some(clock) => (-1, clock),
                None => (1, word.strip_prefix('+').unwrap_or(word)),
            };
            Interval { months: 0, days: 0, micros: sign * temporal::parse_time(clock)? }
        } else {
            let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
            let (quantity, unit) = word.split_at(split);
            let unit = if unit.is_empty() { words.next()? } else { unit };
            of(quantity, unit_of(unit)?)?
        };
        total.months = total.months.checked_add(part.months)?;
        total.days = total.days.checked_add(part.days)?;
        total.micros = total.micros.checked_add(part.micros)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, months, days, micros) in [
            ("1 year 2 months -3 days 04:05:06.5", 14, -3, 14_706_500_000),
            ("1y 2 mon 1 w", 14, 7, 0),
            ("500 ms", 0, 0, 500_000),
            ("500ms 3us", 0, 0, 500_003),
            ("2 m 3 s", 0, 0, 123_000_000),
            ("1.5 days", 0, 0, 129_600_000_000),
            ("2 Hours -00:30", 0, 0, 5_400_000_000),
        ] {
            assert_eq!(parse(text), Some(Interval { months, days, micros }), "{text}");
        }
        for text in ["", "1", "1 x", "1.5 months", "days", "1 day 25:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
