//! `EXTRACT` and `DATE_TRUNC`.

use nacre_column::Vector;
use nacre_function::kernel::{cast, decimals, order};
use nacre_function::vector::{map, room::Room, rows::ActiveRows};
use nacre_sql::expr::DatePart;
use nacre_types::temporal::{MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, days_from_civil};
use nacre_types::{DataType, Error, Result, Value, decimal};

fn wrong(what: &str, data_type: DataType) -> Error {
    Error::type_error(format!("no {what} of {data_type}")).with_sqlstate("42883")
}

/// A field of a date, time, timestamp or interval. Weeks are ISO 8601's, days of the week count from
/// Sunday, 0. Seconds and the epoch have a fraction when the result type has room for one.
pub(super) fn extract(
    part: DatePart,
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let exact = if data_type.is_float() {
        DataType::Decimal { precision: 38, scale: 6 }
    } else {
        data_type
    };
    let scale = exact.scale();
    let finish = |micros: i128| {
        // Whole units round towards the past, so that 59.9 seconds are 59.
        let v = if scale == 0 {
            Some(micros.div_euclid(1_000_000))
        } else {
            decimal::rescale(micros, 6, scale)
        };
        decimals::fit(v, exact)
    };
    let validity = arg.validity().cloned();
    let extracted = if arg.data_type() == DataType::Interval {
        map::map_integers(exact, validity, rows, &mut |i| finish(of_interval(part, &arg.value(i))))?
    } else {
        let date_part = matches!(
            part,
            DatePart::Year
                | DatePart::Quarter
                | DatePart::Month
                | DatePart::Week
                | DatePart::Day
                | DatePart::DayOfWeek
                | DatePart::DayOfYear
        );
        let known =
            matches!(arg.data_type(), DataType::Date | DataType::Timestamp | DataType::Time);
        if !known || (date_part && arg.data_type() == DataType::Time) {
            return Err(wrong("date field", arg.data_type()));
        }
        let Some(micros) = cast::micros(arg) else {
            return Err(wrong("date field", arg.data_type()));
        };
        map::map_integers(exact, validity, rows, &mut |i| finish(of_micros(part, micros(i))))?
    };
    cast::cast_vector(&extracted, data_type, rows)
}

/// The field in millionths.
fn of_micros(part: DatePart, micros: i64) -> i128 {
    let days = micros.div_euclid(MICROS_PER_DAY) as i32;
    let clock = micros.rem_euclid(MICROS_PER_DAY);
    let whole = |v: i64| v as i128 * 1_000_000;
    let date = || civil_from_days(days);
    match part {
        DatePart::Year => whole(date().0 as i64),
        DatePart::Quarter => whole((date().1 as i64 - 1) / 3 + 1),
        DatePart::Month => whole(date().1 as i64),
        DatePart::Week => whole(iso_week(days) as i64),
        DatePart::Day => whole(date().2 as i64),
        DatePart::DayOfWeek => whole((days as i64 + 4).rem_euclid(7)),
        DatePart::DayOfYear => whole((days - days_from_civil(date().0, 1, 1)) as i64 + 1),
        DatePart::Epoch => micros as i128,
        _ => of_clock(part, clock),
    }
}

fn of_clock(part: DatePart, clock: i64) -> i128 {
    let whole = |v: i64| v as i128 * 1_000_000;
    let minute = clock % (60 * MICROS_PER_SECOND);
    match part {
        DatePart::Hour => whole(clock / (3600 * MICROS_PER_SECOND)),
        DatePart::Minute => whole(clock / (60 * MICROS_PER_SECOND) % 60),
        DatePart::Second => minute as i128,
        DatePart::Millisecond => minute as i128 * 1000,
        DatePart::Microsecond => whole(minute),
        _ => 0,
    }
}

fn of_interval(part: DatePart, value: &Value) -> i128 {
    let Value::Interval(v) = value else { return 0 };
    let whole = |v: i64| v as i128 * 1_000_000;
    match part {
        DatePart::Year => whole((v.months / 12) as i64),
        DatePart::Quarter => whole((v.months % 12 / 3) as i64 + 1),
        DatePart::Month => whole((v.months % 12) as i64),
        DatePart::Week => whole((v.days / 7) as i64),
        DatePart::Day => whole(v.days as i64),
        DatePart::Epoch => order::length(value),
        _ => of_clock(part, v.micros),
    }
}

/// The ISO 8601 week: the one that holds the year's first Thursday is week 1.
fn iso_week(days: i32) -> i32 {
    let weekday = (days as i64 + 3).rem_euclid(7) as i32;
    let thursday = days - weekday + 3;
    let (year, _, _) = civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}

/// Sets every smaller field to its start.
pub(super) fn truncate(
    part: DatePart,
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    if !matches!(arg.data_type(), DataType::Date | DataType::Timestamp) {
        return Err(wrong("DATE_TRUNC", arg.data_type()));
    }
    let Some(micros) = cast::micros(arg) else { return Err(wrong("DATE_TRUNC", arg.data_type())) };
    let truncated =
        map::map_values(&[arg], DataType::Timestamp, rows, Room::of_vector(), &mut |i| {
            Ok(Value::Timestamp(truncated_micros(part, micros(i))))
        })?;
    cast::cast_vector(&truncated, data_type, rows)
}

fn truncated_micros(part: DatePart, micros: i64) -> i64 {
    let days = micros.div_euclid(MICROS_PER_DAY) as i32;
    let (year, month, _) = civil_from_days(days);
    let start = |days: i32| days as i64 * MICROS_PER_DAY;
    let down = |unit: i64| micros - micros.rem_euclid(unit);
    match part {
        DatePart::Year => start(days_from_civil(year, 1, 1)),
        DatePart::Quarter => start(days_from_civil(year, (month - 1) / 3 * 3 + 1, 1)),
        DatePart::Month => start(days_from_civil(year, month, 1)),
        DatePart::Week => start(days - (days as i64 + 3).rem_euclid(7) as i32),
        DatePart::Day | DatePart::DayOfWeek | DatePart::DayOfYear => start(days),
        DatePart::Hour => down(3600 * MICROS_PER_SECOND),
        DatePart::Minute => down(60 * MICROS_PER_SECOND),
        DatePart::Second | DatePart::Epoch => down(MICROS_PER_SECOND),
        DatePart::Millisecond => down(1000),
        DatePart::Microsecond => micros,
    }
}
