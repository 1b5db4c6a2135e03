//! Dates and times: names, parts, formats. Timestamps are microseconds without a time zone.

use super::{Call, text};
use nacre_sql::Builtin as B;
use nacre_types::temporal::{
    MAX_DATE, MICROS_PER_DAY, MICROS_PER_SECOND, MIN_DATE, civil_from_days, date_from_parts,
    days_from_civil, days_in_month,
};
use nacre_types::{Result, Value};

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Days from 0000-01-01, which MySQL counts as 1, to 1970-01-01.
const MYSQL_DAYS: i64 = 719_528;
/// Julian day of 1970-01-01 at midnight.
const JULIAN: f64 = 2_440_587.5;

/// A timestamp taken apart.
struct Clock {
    days: i32,
    year: i32,
    month: u32,
    day: u32,
    /// Of the day.
    micros: i64,
}

impl Clock {
    fn new(micros: i64) -> Clock {
        let days = micros.div_euclid(MICROS_PER_DAY) as i32;
        let (year, month, day) = civil_from_days(days);
        Clock { days, year, month, day, micros: micros.rem_euclid(MICROS_PER_DAY) }
    }

    fn of_day(days: i32) -> Clock {
        Clock::new(days as i64 * MICROS_PER_DAY)
    }

    fn hour(&self) -> i64 {
        self.micros / (3600 * MICROS_PER_SECOND)
    }

    fn minute(&self) -> i64 {
        self.micros / (60 * MICROS_PER_SECOND) % 60
    }

    fn second(&self) -> i64 {
        self.micros / MICROS_PER_SECOND % 60
    }

    /// Monday is 0.
    fn weekday(&self) -> i64 {
        (self.days as i64 + 3).rem_euclid(7)
    }

    fn day_of_year(&self) -> i64 {
        (self.days - days_from_civil(self.year, 1, 1)) as i64 + 1
    }

    /// Year and week of ISO 8601.
    fn iso_week(&self) -> (i32, i64) {
        let thursday = self.days - self.weekday() as i32 + 3;
        let year = civil_from_days(thursday).0;
        (year, ((thursday - days_from_civil(year, 1, 1)) / 7 + 1) as i64)
    }

    /// Weeks that begin on a day of the week, before the first of which is week 0.
    fn week_from(&self, first: i64) -> i64 {
        (self.day_of_year() + 6 - (self.weekday() - first).rem_euclid(7)) / 7
    }

    /// MySQL's week 1 is the first with four days of the year, counted from Monday; before it is week 0.
    fn week_from_monday(&self) -> i64 {
        (self.day_of_year() - 1 - self.weekday() + 10) / 7
    }

    /// Year and week where weeks begin on Sunday, and the first whole week of a year is week 1.
    fn sunday_week(&self) -> (i32, i64) {
        match self.week_from(6) {
            0 => (self.year - 1, Clock::of_day(days_from_civil(self.year, 1, 1) - 1).week_from(6)),
            week => (self.year, week),
        }
    }

    fn day_name(&self) -> &'static str {
        DAYS[self.weekday() as usize]
    }

    fn month_name(&self) -> &'static str {
        MONTHS[(self.month as usize - 1).min(11)]
    }
}

impl Call<'_> {
    fn micros(&self, at: usize) -> i64 {
        match self.value(at) {
            Value::Timestamp(v) => *v,
            Value::Date(v) => *v as i64 * MICROS_PER_DAY,
            _ => 0,
        }
    }

    /// `None`: not a function of this file.
    pub(super) fn time(&self) -> Result<Option<Value>> {
        let clock = Clock::new(self.micros(0));
        let int = |v: i64| Some(Value::Int(v));
        let year = clock.year as i64;
        Ok(match self.function {
            B::DayName => text(clock.day_name()),
            B::MonthName => text(clock.month_name()),
            B::Weekday => int(clock.weekday()),
            B::IsoDayOfWeek => int(clock.weekday() + 1),
            B::IsoYear => int(clock.iso_week().0 as i64),
            B::YearWeek => int(clock.iso_week().0 as i64 * 100 + clock.iso_week().1),
            B::LastDay => {
                let last = days_from_civil(
                    clock.year,
                    clock.month,
                    days_in_month(clock.year, clock.month),
                );
                Some(Value::Date(last))
            }
            B::MakeDate => Some(Value::Date(self.date(0)?)),
            B::MakeTime => Some(Value::Time(self.clock(0)?)),
            B::MakeTimestamp => {
                Some(Value::Timestamp(self.date(0)? as i64 * MICROS_PER_DAY + self.clock(3)?))
            }
            B::ToDays => int(clock.days as i64 + MYSQL_DAYS),
            B::FromDays => {
                Some(Value::Date(self.checked_days(self.int(0).saturating_sub(MYSQL_DAYS))?))
            }
            B::FromUnixTime => {
                let micros = self.double(0) * MICROS_PER_SECOND as f64;
                if !micros.is_finite() || micros.abs() > 9e18 {
                    return Err(self.out_of_range());
                }
                let micros = micros.round() as i64;
                self.checked_days(micros.div_euclid(MICROS_PER_DAY))?;
                Some(Value::Timestamp(micros))
            }
            B::UnixTimestamp => int(self.micros(0).div_euclid(MICROS_PER_SECOND)),
            B::EpochMs => int(self.micros(0).div_euclid(1000)),
            B::EpochUs => int(self.micros(0)),
            B::StrFTime => text(self.formatted(&clock, &self.text(1), false)?),
            B::DateFormat => text(self.formatted(&clock, &self.text(1), true)?),
            B::StrPTime => Some(self.parsed(&self.text(0), &self.text(1), false)?),
            B::StrToDate => Some(self.parsed(&self.text(0), &self.text(1), true)?),
            B::Century => int((year - 1).div_euclid(100) + 1),
            B::Decade => int(year.div_euclid(10)),
            B::Millennium => int((year - 1).div_euclid(1000) + 1),
            B::JulianDay => {
                Some(Value::Float(self.micros(0) as f64 / MICROS_PER_DAY as f64 + JULIAN))
            }
            B::DateDiff | B::TimestampDiff => int(self.difference()?),
            _ => None,
        })
    }

    fn checked_days(&self, days: i64) -> Result<i32> {
        match i32::try_from(days) {
            Ok(days) if (MIN_DATE..=MAX_DATE).contains(&days) => Ok(days),
            _ => Err(self.out_of_range()),
        }
    }

    fn date(&self, at: usize) -> Result<i32> {
        let part = |n: usize| u32::try_from(self.int(at + n)).unwrap_or(u32::MAX);
        let year = i32::try_from(self.int(at)).unwrap_or(-1);
        date_from_parts(year, part(1), part(2)).ok_or_else(|| self.out_of_range())
    }

    fn clock(&self, at: usize) -> Result<i64> {
        let (hour, minute, second) = (self.int(at), self.int(at + 1), self.double(at + 2));
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..60.0).contains(&second)
        {
            return Err(self.out_of_range());
        }
        let micros = (second * MICROS_PER_SECOND as f64).round() as i64;
        Ok((hour * 3600 + minute * 60) * MICROS_PER_SECOND + micros.min(60 * MICROS_PER_SECOND - 1))
    }

    /// Parts crossed, or whole parts between.
    fn difference(&self) -> Result<i64> {
        let (from, to) = (self.micros(1), self.micros(2));
        let name = self.text(0).to_ascii_lowercase();
        let name = name.strip_suffix('s').unwrap_or(&name);
        let crossed = self.function == B::DateDiff;
        let months = |n: i64, unit: i64| {
            if crossed { n.div_euclid(unit) } else { n }
        };
        let month_of = |t: i64| {
            let clock = Clock::new(t);
            clock.year as i64 * 12 + clock.month as i64 - 1
        };
        let unit_months = match name {
            "month" => 1,
            "quarter" => 3,
            "year" => 12,
            "decade" => 120,
            "century" => 1200,
            _ => 0,
        };
        if unit_months > 0 {
            if crossed {
                return Ok(months(month_of(to), unit_months) - months(month_of(from), unit_months));
            }
            // A month is whole when the day and the clock of the start are reached again.
            let rest = |t: i64| {
                let clock = Clock::new(t);
                (clock.day, clock.micros)
            };
            let mut whole = month_of(to) - month_of(from);
            whole -= i64::from(whole > 0 && rest(to) < rest(from));
            whole += i64::from(whole < 0 && rest(to) > rest(from));
            return Ok(whole / unit_months);
        }
        let unit = match name {
            "microsecond" => 1,
            "millisecond" => 1000,
            "second" => MICROS_PER_SECOND,
            "minute" => 60 * MICROS_PER_SECOND,
            "hour" => 3600 * MICROS_PER_SECOND,
            "day" => MICROS_PER_DAY,
            "week" => 7 * MICROS_PER_DAY,
            other => return Err(self.error(&format!("there is no part {other}"), "22023")),
        };
        if !crossed {
            return Ok((to - from) / unit);
        }
        // Weeks begin on Mondays; 1970-01-01 was a Thursday.
        let shift = if name == "week" { 3 * MICROS_PER_DAY } else { 0 };
        Ok((to + shift).div_euclid(unit) - (from + shift).div_euclid(unit))
    }

    /// By the letters of C, or of MySQL's `DATE_FORMAT` where they differ.
    fn formatted(&self, clock: &Clock, format: &str, mysql: bool) -> Result<String> {
        let mut out = String::new();
        let mut letters = format.chars();
        while let Some(c) = letters.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut letter = letters.next();
            // C's `%-d` is `%d` without what fills it up.
            let bare = letter == Some('-') && !mysql;
            if bare {
                letter = letters.next();
            }
            let Some(letter) = letter else {
                return Err(self.error("the format ends after %", "22007"));
            };
            let field = self.field(clock, letter, mysql)?;
            let digits = if bare { field.trim_start_matches(['0', ' ']) } else { &field };
            out += if digits.is_empty() && bare { "0" } else { digits };
        }
        Ok(out)
    }

    fn field(&self, clock: &Clock, letter: char, mysql: bool) -> Result<String> {
        let two = |v: i64| format!("{v:02}");
        let twelve = (clock.hour() + 11) % 12 + 1;
        let half = if clock.hour() < 12 { "AM" } else { "PM" };
        let micros = clock.micros % MICROS_PER_SECOND;
        let filled = |v: i64| format!("{v:2}");
        Ok(match (letter, mysql) {
            ('Y', _) => format!("{:04}", clock.year),
            ('y', _) => two(clock.year as i64 % 100),
            ('m', _) => two(clock.month as i64),
            ('d', _) => two(clock.day as i64),
            ('e', true) => clock.day.to_string(),
            ('e', false) => filled(clock.day as i64),
            ('C', false) => two(clock.year as i64 / 100),
            ('H', _) => two(clock.hour()),
            ('k', true) => clock.hour().to_string(),
            ('k', false) => filled(clock.hour()),
            ('I', _) | ('h', true) => two(twelve),
            ('l', true) => twelve.to_string(),
            ('l', false) => filled(twelve),
            ('i', true) | ('M', false) => two(clock.minute()),
            ('S', _) | ('s', true) => two(clock.second()),
            ('f', _) => format!("{micros:06}"),
            ('g', false) => format!("{:03}", micros / 1000),
            ('p', _) => half.to_string(),
            ('j', _) => format!("{:03}", clock.day_of_year()),
            ('a', _) => clock.day_name()[..3].to_string(),
            ('W', true) | ('A', false) => clock.day_name().to_string(),
            ('b', _) | ('h', false) => clock.month_name()[..3].to_string(),
            ('M', true) | ('B', false) => clock.month_name().to_string(),
            ('c', true) => clock.month.to_string(),
            ('D', true) => {
                let ending = match (clock.day, clock.day % 10) {
                    (11..=13, _) => "th",
                    (_, 1) => "st",
                    (_, 2) => "nd",
                    (_, 3) => "rd",
                    _ => "th",
                };
                format!("{}{ending}", clock.day)
            }
            ('u', false) => (clock.weekday() + 1).to_string(),
            ('w', _) => ((clock.weekday() + 1) % 7).to_string(),
            ('U', _) => two(clock.week_from(6)),
            ('W', false) => two(clock.week_from(0)),
            ('u', true) => two(clock.week_from_monday()),
            ('V', true) => two(clock.sunday_week().1),
            ('X', true) => format!("{:04}", clock.sunday_week().0),
            ('V', false) | ('v', true) => two(clock.iso_week().1),
            ('G', false) | ('x', true) => format!("{:04}", clock.iso_week().0),
            ('D', false) => self.formatted(clock, "%m/%d/%y", false)?,
            ('F', false) => self.formatted(clock, "%Y-%m-%d", false)?,
            ('T', _) => self.formatted(clock, "%H:%i:%S", true)?,
            ('R', false) => self.formatted(clock, "%H:%M", false)?,
            ('r', _) => self.formatted(clock, "%I:%i:%S %p", true)?,
            ('s', false) => self.micros(0).div_euclid(MICROS_PER_SECOND).to_string(),
            ('J', false) => (self.micros(0) as f64 / MICROS_PER_DAY as f64 + JULIAN).to_string(),
            ('n', false) => "\n".to_string(),
            ('t', false) => "\t".to_string(),
            ('%', _) => "%".to_string(),
            (other, _) => return Err(self.error(&format!("there is no %{other}"), "22007")),
        })
    }

    /// Text read by the same letters.
    fn parsed(&self, value: &str, format: &str, mysql: bool) -> Result<Value> {
        let read = Reading::of(value, format, mysql).and_then(|r| r.micros());
        let what = || self.error(&format!("'{value}' does not read as '{format}'"), "22007");
        read.map(Value::Timestamp).ok_or_else(what)
    }
}

/// What has been read of a text so far.
struct Reading<'a> {
    rest: &'a str,
    year: i32,
    month: u32,
    day: u32,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    afternoon: Option<bool>,
    day_of_year: Option<i64>,
}

impl<'a> Reading<'a> {
    fn of(value: &'a str, format: &str, mysql: bool) -> Option<Reading<'a>> {
        let mut r = Reading {
            rest: value.trim(),
            year: 1900,
            month: 1,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
            afternoon: None,
            day_of_year: None,
        };
        let mut letters = format.chars();
        while let Some(c) = letters.next() {
            match c {
                '%' => {
                    let mut letter = letters.next()?;
                    if letter == '-' && !mysql {
                        letter = letters.next()?;
                    }
                    r.read(letter, mysql)?;
                }
                c if c.is_whitespace() => r.rest = r.rest.trim_start(),
                c => r.rest = r.rest.strip_prefix(c)?,
            }
        }
        r.rest.trim().is_empty().then_some(r)
    }

    fn digits(&mut self, most: usize) -> Option<i64> {
        let end = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits.parse().ok()
    }

    /// One of some names, whole or its first three letters; its position.
    fn name(&mut self, names: &[&str]) -> Option<usize> {
        for length in [usize::MAX, 3] {
            for (at, name) in names.iter().enumerate() {
                let name = name.get(..length.min(name.len()))?;
                if self.rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                {
                    self.rest = &self.rest[name.len()..];
                    return Some(at);
                }
            }
        }
        None
    }

    fn read(&mut self, letter: char, mysql: bool) -> Option<()> {
        match (letter, mysql) {
            ('Y', _) => self.year = self.digits(4)? as i32,
            ('y', _) => {
                let short = self.digits(2)? as i32;
                self.year = short + if short < 70 { 2000 } else { 1900 };
            }
            ('m', _) | ('c', true) => self.month = self.digits(2)? as u32,
            ('d', _) => self.day = self.digits(2)? as u32,
            ('e', _) => {
                self.rest = self.rest.trim_start();
                self.day = self.digits(2)? as u32;
            }
            ('k' | 'l', false) => {
                self.rest = self.rest.trim_start();
                self.hour = self.digits(2)?;
            }
            ('j', _) => self.day_of_year = Some(self.digits(3)?),
            ('H', _) | ('I', _) | ('k' | 'h' | 'l', true) => self.hour = self.digits(2)?,
            ('i', true) | ('M', false) => self.minute = self.digits(2)?,
            ('S', _) | ('s', true) => self.second = self.digits(2)?,
            ('f', _) => {
                let before = self.rest.len();
                let digits = self.digits(6)?;
                self.micros = digits * 10i64.pow(6 - (before - self.rest.len()) as u32);
            }
            ('p', _) => self.afternoon = Some(self.name(&["AM", "PM"])? == 1),
            ('b', _) | ('h', false) | ('M', true) | ('B', false) => {
                self.month = self.name(&MONTHS)? as u32 + 1
            }
            ('a', _) | ('W', true) | ('A', false) => {
                self.name(&DAYS)?;
            }
            ('T', _) => {
                self.read('H', true)?;
                self.rest = self.rest.strip_prefix(':')?;
                self.read('i', true)?;
                self.rest = self.rest.strip_prefix(':')?;
                self.read('S', true)?;
            }
            ('F', false) => {
                self.read('Y', false)?;
                self.rest = self.rest.strip_prefix('-')?;
                self.read('m', false)?;
                self.rest = self.rest.strip_prefix('-')?;
                self.read('d', false)?;
            }
            ('%', _) => self.rest = self.rest.strip_prefix('%')?,
            _ => return None,
        }
        Some(())
    }

    fn micros(self) -> Option<i64> {
        let hour = match self.afternoon {
            Some(_) if !(1..=12).contains(&self.hour) => return None,
            Some(afternoon) => self.hour % 12 + if afternoon { 12 } else { 0 },
            None => self.hour,
        };
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let days = match self.day_of_year {
            Some(n) => {
                let (first, last) =
                    (date_from_parts(self.year, 1, 1)?, date_from_parts(self.year, 12, 31)?);
                let day = i32::try_from(n).ok()?.checked_sub(1)?.checked_add(first)?;
                (first..=last).contains(&day).then_some(day)?
            }
            None => date_from_parts(self.year, self.month, self.day)?,
        };
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        Some(days as i64 * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + self.micros)
    }
}
