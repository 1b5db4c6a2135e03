//! Formats and parses timestamps with a format of `%` letters.

use super::clock::{Clock, DAYS, JULIAN, MONTHS, micros};
use nacre_function::entry::definition::RowCall;
use nacre_types::temporal::{MICROS_PER_DAY, MICROS_PER_SECOND, date_from_parts};
use nacre_types::{Result, Value};

/// The letters of a format.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Letters {
    /// Letters of C's `strftime`.
    C,
    /// Letters of MySQL's `DATE_FORMAT`.
    MySql,
}

/// Formats a timestamp; `22007` for an unknown letter.
pub(super) fn formatted(
    row: &RowCall<'_>,
    clock: &Clock,
    format: &str,
    letters: Letters,
) -> Result<String> {
    let mut out = String::new();
    let mysql = letters == Letters::MySql;
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut letter = chars.next();
        // C's `%-d` is `%d` without leading zeros and blanks.
        let bare = letter == Some('-') && !mysql;
        if bare {
            letter = chars.next();
        }
        let Some(letter) = letter else {
            return Err(row.error("the format ends after %", "22007"));
        };
        let field = field(row, clock, letter, mysql)?;
        let digits = if bare { field.trim_start_matches(['0', ' ']) } else { &field };
        out += if digits.is_empty() && bare { "0" } else { digits };
    }
    Ok(out)
}

fn field(row: &RowCall<'_>, clock: &Clock, letter: char, mysql: bool) -> Result<String> {
    let two = |v: i64| format!("{v:02}");
    let twelve = (clock.hour() + 11) % 12 + 1;
    let half = if clock.hour() < 12 { "AM" } else { "PM" };
    let fraction = clock.micros % MICROS_PER_SECOND;
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
        ('f', _) => format!("{fraction:06}"),
        ('g', false) => format!("{:03}", fraction / 1000),
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
        ('D', false) => formatted(row, clock, "%m/%d/%y", Letters::C)?,
        ('F', false) => formatted(row, clock, "%Y-%m-%d", Letters::C)?,
        ('T', _) => formatted(row, clock, "%H:%i:%S", Letters::MySql)?,
        ('R', false) => formatted(row, clock, "%H:%M", Letters::C)?,
        ('r', _) => formatted(row, clock, "%I:%i:%S %p", Letters::MySql)?,
        ('s', false) => micros(row, 0).div_euclid(MICROS_PER_SECOND).to_string(),
        ('J', false) => (micros(row, 0) as f64 / MICROS_PER_DAY as f64 + JULIAN).to_string(),
        ('n', false) => "\n".to_string(),
        ('t', false) => "\t".to_string(),
        ('%', _) => "%".to_string(),
        (other, _) => return Err(row.error(&format!("there is no %{other}"), "22007")),
    })
}

/// Parses a timestamp; `22007` for text that does not match the format.
pub(super) fn parsed(row: &RowCall<'_>, letters: Letters) -> Result<Value> {
    let (value, format) = (row.text(0), row.text(1));
    let read = Reading::of(&value, &format, letters).and_then(Reading::micros);
    let wrong = || row.error(&format!("'{value}' does not read as '{format}'"), "22007");
    read.map(Value::Timestamp).ok_or_else(wrong)
}

/// The fields parsed so far.
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
    fn of(value: &'a str, format: &str, letters: Letters) -> Option<Reading<'a>> {
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
        let mysql = letters == Letters::MySql;
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            match c {
                '%' => {
                    let mut letter = chars.next()?;
                    if letter == '-' && !mysql {
                        letter = chars.next()?;
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

    /// Parses one of some names, in full or by its first three letters; returns its position.
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
