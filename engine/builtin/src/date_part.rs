//! Fields of dates and times, as named by `EXTRACT` and `DATE_TRUNC`.

use nacre_types::{Error, Result};

/// A field of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DatePart {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    DayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Epoch,
}

impl DatePart {
    /// Parses a name, in any case, singular or plural; `unsupported` for other names.
    pub fn named(name: &str) -> Result<DatePart> {
        let lower = name.to_ascii_lowercase();
        Ok(match lower.strip_suffix('s').filter(|s| s.len() > 2).unwrap_or(&lower) {
            "year" => DatePart::Year,
            "quarter" => DatePart::Quarter,
            "month" => DatePart::Month,
            "week" => DatePart::Week,
            "day" => DatePart::Day,
            "dow" | "dayofweek" => DatePart::DayOfWeek,
            "doy" | "dayofyear" => DatePart::DayOfYear,
            "hour" => DatePart::Hour,
            "minute" => DatePart::Minute,
            "second" => DatePart::Second,
            "millisecond" => DatePart::Millisecond,
            "microsecond" => DatePart::Microsecond,
            "epoch" => DatePart::Epoch,
            _ => return Err(Error::unsupported(format!("date part {name} is not supported"))),
        })
    }

    /// Its name, which [`DatePart::named`] parses.
    pub fn name(self) -> &'static str {
        match self {
            DatePart::Year => "year",
            DatePart::Quarter => "quarter",
            DatePart::Month => "month",
            DatePart::Week => "week",
            DatePart::Day => "day",
            DatePart::DayOfWeek => "dow",
            DatePart::DayOfYear => "doy",
            DatePart::Hour => "hour",
            DatePart::Minute => "minute",
            DatePart::Second => "second",
            DatePart::Millisecond => "millisecond",
            DatePart::Microsecond => "microsecond",
            DatePart::Epoch => "epoch",
        }
    }
}
