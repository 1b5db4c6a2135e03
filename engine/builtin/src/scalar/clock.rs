//! A timestamp split into fields, and the names of months and days.

use nacre_function::entry::definition::RowCall;
use nacre_types::Value;
use nacre_types::temporal::{MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, days_from_civil};

pub(super) const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
pub(super) const MONTHS: [&str; 12] = [
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

/// Julian day of 1970-01-01 at midnight.
pub(super) const JULIAN: f64 = 2_440_587.5;

/// An argument that is a date or timestamp, in microseconds.
pub(super) fn micros(row: &RowCall<'_>, at: usize) -> i64 {
    match row.value(at) {
        Value::Timestamp(v) => *v,
        Value::Date(v) => *v as i64 * MICROS_PER_DAY,
        _ => 0,
    }
}

/// A timestamp split into its fields.
pub(super) struct Clock {
    pub days: i32,
    pub year: i32,
    pub month: u32,
    pub day: u32,
    /// Microseconds since midnight.
    pub micros: i64,
}

impl Clock {
    /// The fields of the first argument of a call.
    pub fn of(row: &RowCall<'_>) -> Clock {
        Clock::new(micros(row, 0))
    }

    pub fn new(micros: i64) -> Clock {
        let days = micros.div_euclid(MICROS_PER_DAY) as i32;
        let (year, month, day) = civil_from_days(days);
        Clock { days, year, month, day, micros: micros.rem_euclid(MICROS_PER_DAY) }
    }

    pub fn of_day(days: i32) -> Clock {
        Clock::new(days as i64 * MICROS_PER_DAY)
    }

    pub fn hour(&self) -> i64 {
        self.micros / (3600 * MICROS_PER_SECOND)
    }

    pub fn minute(&self) -> i64 {
        self.micros / (60 * MICROS_PER_SECOND) % 60
    }

    pub fn second(&self) -> i64 {
        self.micros / MICROS_PER_SECOND % 60
    }

    /// Monday is 0.
    pub fn weekday(&self) -> i64 {
        (self.days as i64 + 3).rem_euclid(7)
    }

    pub fn day_of_year(&self) -> i64 {
        (self.days - days_from_civil(self.year, 1, 1)) as i64 + 1
    }

    /// ISO 8601 year and week.
    pub fn iso_week(&self) -> (i32, i64) {
        let thursday = self.days - self.weekday() as i32 + 3;
        let year = civil_from_days(thursday).0;
        (year, ((thursday - days_from_civil(year, 1, 1)) / 7 + 1) as i64)
    }

    /// The week of the year if weeks begin on day `first`; earlier days are in week 0.
    pub fn week_from(&self, first: i64) -> i64 {
        (self.day_of_year() + 6 - (self.weekday() - first).rem_euclid(7)) / 7
    }

    /// MySQL's week starting on Monday: week 1 is the first with four days in the year; earlier
    /// days are in week 0.
    pub fn week_from_monday(&self) -> i64 {
        (self.day_of_year() - 1 - self.weekday() + 10) / 7
    }

    /// Year and week if weeks begin on Sunday and week 1 is the first full week of a year.
    pub fn sunday_week(&self) -> (i32, i64) {
        match self.week_from(6) {
            0 => (self.year - 1, Clock::of_day(days_from_civil(self.year, 1, 1) - 1).week_from(6)),
            week => (self.year, week),
        }
    }

    pub fn day_name(&self) -> &'static str {
        DAYS[self.weekday() as usize]
    }

    pub fn month_name(&self) -> &'static str {
        MONTHS[(self.month as usize - 1).min(11)]
    }
}
