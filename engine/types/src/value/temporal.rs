//! Dates, times and timestamps: the proleptic Gregorian calendar on integers, no time zones.

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// 0000-01-01, the first representable date.
pub const MIN_DATE: i32 = -719_528;
/// 9999-12-31, the last representable date.
pub const MAX_DATE: i32 = 2_932_896;

/// Converts a civil date, which must be valid, to days since 1970-01-01 (Howard Hinnant's
/// `days_from_civil`).
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i32 {
    let y = year as i64 - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month as i64 + 9) % 12) + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era * 146_097 + day_of_era - 719_468) as i32
}

/// Converts days since 1970-01-01 to `(year, month, day)`.
pub fn civil_from_days(days: i32) -> (i32, u32, u32) {
    let z = days as i64 + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = (doy - (153 * mp + 2) / 5 + 1) as u32;
    let month = if mp < 10 { mp + 3 } else { mp - 9 } as u32;
    ((yoe + era * 400 + i64::from(month <= 2)) as i32, month, day)
}

/// Number of days in a month; months count from 1.
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Returns the days since 1970-01-01 of a date from 0000-01-01 to 9999-12-31, or `None` if it is
/// not valid.
pub fn date_from_parts(year: i32, month: u32, day: u32) -> Option<i32> {
    let valid = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && day >= 1
        && day <= days_in_month(year, month);
    valid.then(|| days_from_civil(year, month, day))
}

/// Formats a date, such as `2026-11-21`.
pub fn format_date(days: i32) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats a time, such as `13:05:07`, with six decimals if it has a fraction of a second.
pub fn format_time(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    let base = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 { base } else { format!("{base}.{fraction:06}") }
}

/// Formats a timestamp, such as `2026-11-21 13:05:07`.
pub fn format_timestamp(micros: i64) -> String {
    let days = micros.div_euclid(MICROS_PER_DAY) as i32;
    format!("{} {}", format_date(days), format_time(micros.rem_euclid(MICROS_PER_DAY)))
}

fn number(text: &str, max_digits: usize) -> Option<u32> {
    if text.is_empty() || text.len() > max_digits || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Parses `YYYY-MM-DD`.
pub fn parse_date(text: &str) -> Option<i32> {
    let mut parts = text.trim().split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    date_from_parts(number(year, 4)? as i32, number(month, 2)?, number(day, 2)?)
}

/// Parses `HH:MM[:SS[.ffffff]]`; further digits are truncated.
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |s| number(s, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.is_empty() {
        return None;
    }
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = number(&format!("{:0<6.6}", fraction), 6)?;
    Some(((hour * 3600 + minute * 60 + second) as i64) * MICROS_PER_SECOND + fraction as i64)
}

/// Parses a date, optionally followed by a space or `T` and a time, optionally by `Z`.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let text = text.trim();
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (text.get(..at)?, parse_time(text.get(at + 1..)?)?),
        None => (text, 0),
    };
    Some(parse_date(date)? as i64 * MICROS_PER_DAY + time)
}

/// Parses a timestamp and the time zone behind it: `Z`, `UTC`, `+HH`, `+HHMM`, `+HH:MM` or `+HH:MM:SS`, with blanks
/// before it or without; UTC if there is none.
pub fn parse_timestamp_tz(text: &str) -> Option<i64> {
    let text = text.trim();
    let clock = text.find([' ', 'T']).map_or(text.len(), |at| at + 1);
    let zone = text.get(clock..)?.find(['+', '-']).map(|at| clock + at);
    let Some(zone) = zone else {
        return parse_timestamp(text.strip_suffix("UTC").unwrap_or(text));
    };
    let (local, zone) = text.split_at_checked(zone)?;
    let offset = parse_offset(zone)?;
    let micros = parse_timestamp(local)? - offset;
    let days = micros.div_euclid(MICROS_PER_DAY);
    (MIN_DATE as i64..=MAX_DATE as i64).contains(&days).then_some(micros)
}

/// Parses how far a time zone is east of UTC, in microseconds: `+02`, `-0330`, `+05:45`, `+01:00:30`.
fn parse_offset(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-'])?;
    let parts: Vec<&str> = match digits.len() {
        4 => vec![digits.get(..2)?, digits.get(2..)?],
        _ => digits.split(':').collect(),
    };
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        let value = number(part, 2)?;
        if value >= 60 {
            return None;
        }
        seconds += value as i64 * unit;
    }
    let is_offset = parts.len() <= 3 && seconds < 16 * 3600;
    let sign = if text.starts_with('-') { -1 } else { 1 };
    is_offset.then_some(sign * seconds * MICROS_PER_SECOND)
}

/// Parses a date, or a timestamp, of which the date counts.
pub fn parse_date_of(text: &str) -> Option<i32> {
    parse_timestamp(text).map(|micros| micros.div_euclid(MICROS_PER_DAY) as i32)
}

/// Parses a time, or a timestamp, of which the time counts.
pub fn parse_time_of(text: &str) -> Option<i64> {
    parse_time(text).or_else(|| parse_timestamp(text).map(|m| m.rem_euclid(MICROS_PER_DAY)))
}

/// Adds months to a date and clamps the day to the last of the month; `None` if the result is
/// outside the calendar.
pub fn add_months(days: i32, months: i32) -> Option<i32> {
    let (year, month, day) = civil_from_days(days);
    let total = (year as i64) * 12 + month as i64 - 1 + months as i64;
    let year = i32::try_from(total.div_euclid(12)).ok()?;
    let month = total.rem_euclid(12) as u32 + 1;
    date_from_parts(year, month, day.min(days_in_month(year, month)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones() {
        let utc = parse_timestamp("2026-01-01 10:00:00").unwrap();
        for same in [
            "2026-01-01 10:00:00",
            "2026-01-01 10:00:00Z",
            "2026-01-01T10:00:00.000+00:00",
            "2026-01-01 10:00 UTC",
            "2026-01-01 12:00:00+02",
            " 2026-01-01 06:30:00 -0330 ",
            "2026-01-01 15:45:00+05:45",
            "2026-01-01 11:00:30+01:00:30",
            "2025-12-31T23:00:00-11:00",
        ] {
            assert_eq!(parse_timestamp_tz(same), Some(utc), "{same}");
        }
        for wrong in [
            "2026-01-01 10:00:00+",
            "2026-01-01 10:00:00+16",
            "2026-01-01 10:00:00+02:60",
            "2026-01-01 10:00:00+2:00:00:00",
            "2026-01-01 10:00:00 CET",
            "2026-01-01 25:00:00+02",
            "0000-01-01 01:00:00+02",
            "+02",
            "",
        ] {
            assert_eq!(parse_timestamp_tz(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn calendar_round_trips() {
        for days in (MIN_DATE..=MAX_DATE).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, m, d), days);
            assert_eq!(parse_date(&format_date(days)), Some(days));
        }
        assert_eq!(format_date(MIN_DATE), "0000-01-01");
        assert_eq!(format_date(MAX_DATE), "9999-12-31");
        assert_eq!(parse_date("2026-02-29"), None);
        assert_eq!(parse_date("2024-02-29").map(format_date).as_deref(), Some("2024-02-29"));
        assert_eq!(parse_timestamp("1970-01-01T00:00:01.5Z"), Some(1_500_000));
        assert_eq!(parse_time("24:00"), None);
        assert_eq!(parse_date_of("1970-01-02 03:04:05"), Some(1));
        assert_eq!(
            (parse_date_of("1970-01-02"), parse_date_of("1970-01-02 24:00")),
            (Some(1), None)
        );
        assert_eq!(parse_time_of("1970-01-02T00:00:01"), Some(1_000_000));
        assert_eq!(
            add_months(days_from_civil(2024, 1, 31), 1).map(format_date).as_deref(),
            Some("2024-02-29")
        );
    }
}
