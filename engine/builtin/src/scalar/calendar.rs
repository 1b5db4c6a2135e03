//! Dates and times: names, parts, differences, formats. Timestamps are microseconds without a time
//! zone.

use super::clock::{Clock, JULIAN, micros};
use super::date_format::{Letters, formatted, parsed};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::{Values, Vectors};
use nacre_function::entry::definition::Parameter::{Date, Double, RoundedInteger, Text, Timestamp};
use nacre_function::entry::definition::Typing::{Declared, Rule};
use nacre_function::entry::definition::{Arguments, Arity, BarePart};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::definition::{Expression, ScalarFunction};
use nacre_function::entry::definition::{RowCall, int, text};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes};
use nacre_function::kernel::cast::cast_value;
use nacre_function::operator::BinaryOp;
use nacre_types::temporal::{
    MAX_DATE, MICROS_PER_DAY, MICROS_PER_SECOND, MIN_DATE, date_from_parts, days_from_civil,
    days_in_month,
};
use nacre_types::{DataType, Result, Value};

const INT: DataType = DataType::Int64;
const TEXT: DataType = DataType::TEXT;
const DATE: DataType = DataType::Date;
const TIMESTAMP: DataType = DataType::Timestamp;

/// Days from 0000-01-01, which MySQL counts as 1, to 1970-01-01.
const MYSQL_DAYS: i64 = 719_528;

static CURRENT_TIMESTAMP: ScalarFunction = function(
    &["current_timestamp", "now", "localtimestamp", "localtime", "sysdate", "utc_timestamp"],
    Doc::new(
        "now(), current_timestamp, localtimestamp, localtime, sysdate(), utc_timestamp()",
        "The statement's time, the same wherever it asks.",
        "now() = current_timestamp",
        "true",
    ),
    Declared(takes(&[]), TIMESTAMP),
    Vectors(|call| {
        let now = Value::Timestamp(call.surroundings.now_us);
        Ok(call.constant(&cast_value(&now, call.data_type)?))
    }),
)
.stable();

static CURRENT_DATE: ScalarFunction = function(
    &["current_date", "curdate", "today", "utc_date"],
    Doc::new(
        "current_date, curdate(), today(), utc_date()",
        "The statement's date.",
        "current_date = date(now())",
        "true",
    ),
    Declared(takes(&[]), DATE),
    Vectors(|call| {
        let today = call.surroundings.now_us.div_euclid(MICROS_PER_DAY) as i32;
        Ok(call.constant(&cast_value(&Value::Date(today), call.data_type)?))
    }),
)
.stable();

static DATE_DIFF: ScalarFunction = function(
    &["date_diff"],
    Doc::new(
        "date_diff('part', from, to)",
        "Boundaries of a part crossed between two points in time.",
        "date_diff('month', date '2024-01-31', date '2024-02-01')",
        "1",
    ),
    Declared(takes(&[Text, Timestamp, Timestamp]), INT),
    Values(|row| int(difference(row, Counted::Boundaries)?)),
)
.part(BarePart::Among(3));

/// Called through the expression of the same name, which adds a missing argument.
static UNIX_TIMESTAMP: ScalarFunction = function(
    &["unix_timestamp"],
    Doc::new("", "", "", ""),
    Declared(takes(&[Timestamp]), INT),
    Values(|row| int(micros(row, 0).div_euclid(MICROS_PER_SECOND))),
);

static STRFTIME: ScalarFunction = function(
    &["strftime"],
    Doc::new(
        "strftime(t, format)",
        "Formatted by C's letters; SQLite's order of arguments works, too.",
        "strftime(timestamp '2024-02-29 13:05:07.25', '%d.%m.%Y %H:%M')",
        "29.02.2024 13:05",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [first, second] = arguments.exactly()?;
        // SQLite takes the format first.
        let format_first =
            matches!(binding.literal(&first), Some(Value::Text(text)) if text.contains('%'));
        let (time, format) = if format_first { (second, first) } else { (first, second) };
        let time = coerce::timestamp(binding, time)?;
        let format = coerce::text(binding, format)?;
        Ok(binding.call(&STRFTIME, vec![time, format], TEXT))
    }),
    Values(|row| text(formatted(row, &Clock::of(row), &row.text(1), Letters::C)?)),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &function(
        &["weekday"],
        Doc::new(
            "weekday(t)",
            "The day of the week; Monday is 0.",
            "weekday(date '2024-02-29')",
            "3",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int(Clock::of(row).weekday())),
    ),
    &function(
        &["isodow"],
        Doc::new(
            "isodow(t)",
            "The day of the week; Monday is 1, Sunday 7.",
            "isodow(date '2024-02-29')",
            "4",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int(Clock::of(row).weekday() + 1)),
    ),
    &function(
        &["isoyear"],
        Doc::new(
            "isoyear(t)",
            "The year of the ISO 8601 week.",
            "isoyear(date '2027-01-01')",
            "2026",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int(Clock::of(row).iso_week().0.into())),
    ),
    &function(
        &["yearweek"],
        Doc::new(
            "yearweek(t)",
            "Year and week of ISO 8601 as six digits.",
            "yearweek(date '2027-01-01')",
            "202653",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| {
            let (year, week) = Clock::of(row).iso_week();
            int(year as i64 * 100 + week)
        }),
    ),
    &function(
        &["century"],
        Doc::new("century(t)", "The century.", "century(date '2024-02-29')", "21"),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int((Clock::of(row).year as i64 - 1).div_euclid(100) + 1)),
    ),
    &function(
        &["decade"],
        Doc::new("decade(t)", "The year divided by ten.", "decade(date '2024-02-29')", "202"),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int((Clock::of(row).year as i64).div_euclid(10))),
    ),
    &function(
        &["millennium"],
        Doc::new("millennium(t)", "The millennium.", "millennium(date '2024-02-29')", "3"),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int((Clock::of(row).year as i64 - 1).div_euclid(1000) + 1)),
    ),
    &function(
        &["dayname"],
        Doc::new("dayname(t)", "The name of the day.", "dayname(date '2024-02-29')", "Thursday"),
        Declared(takes(&[Timestamp]), TEXT),
        Values(|row| text(Clock::of(row).day_name())),
    ),
    &function(
        &["monthname"],
        Doc::new(
            "monthname(t)",
            "The name of the month.",
            "monthname(date '2024-02-29')",
            "February",
        ),
        Declared(takes(&[Timestamp]), TEXT),
        Values(|row| text(Clock::of(row).month_name())),
    ),
    &function(
        &["last_day"],
        Doc::new(
            "last_day(t)",
            "The last day of the month.",
            "last_day(date '2023-02-01')",
            "2023-02-28",
        ),
        Declared(takes(&[Date]), DATE),
        Values(|row| {
            let Clock { year, month, .. } = Clock::of(row);
            Ok(Value::Date(days_from_civil(year, month, days_in_month(year, month))))
        }),
    ),
    &function(
        &["make_date"],
        Doc::new(
            "make_date(y, m, d)",
            "A date of its parts.",
            "make_date(2024, 2, 29)",
            "2024-02-29",
        ),
        Declared(takes(&[RoundedInteger, RoundedInteger, RoundedInteger]), DATE),
        Values(|row| Ok(Value::Date(date_at(row, 0)?))),
    ),
    &function(
        &["make_time", "maketime"],
        Doc::new(
            "make_time(h, m, s), maketime",
            "A time of its parts.",
            "make_time(13, 5, 7)",
            "13:05:07",
        ),
        Declared(takes(&[RoundedInteger, RoundedInteger, Double]), DataType::Time),
        Values(|row| Ok(Value::Time(time_at(row, 0)?))),
    ),
    &function(
        &["make_timestamp"],
        Doc::new(
            "make_timestamp(y, m, d, h, min, s)",
            "A timestamp of its parts.",
            "make_timestamp(2024, 2, 29, 13, 5, 7)",
            "2024-02-29 13:05:07",
        ),
        Declared(
            takes(&[
                RoundedInteger,
                RoundedInteger,
                RoundedInteger,
                RoundedInteger,
                RoundedInteger,
                Double,
            ]),
            TIMESTAMP,
        ),
        Values(|row| {
            Ok(Value::Timestamp(date_at(row, 0)? as i64 * MICROS_PER_DAY + time_at(row, 3)?))
        }),
    ),
    &function(
        &["timestampdiff"],
        Doc::new(
            "timestampdiff(part, from, to)",
            "Whole parts between two points in time.",
            "timestampdiff(month, date '2024-01-31', date '2024-02-29')",
            "0",
        ),
        Declared(takes(&[Text, Timestamp, Timestamp]), INT),
        Values(|row| int(difference(row, Counted::Whole)?)),
    )
    .part(BarePart::Always),
    &function(
        &["to_days"],
        Doc::new(
            "to_days(t)",
            "Days since the year 0, as in MySQL.",
            "to_days(date '2024-02-29')",
            "739310",
        ),
        Declared(takes(&[Date]), INT),
        Values(|row| int(Clock::of(row).days as i64 + MYSQL_DAYS)),
    ),
    &function(
        &["from_days"],
        Doc::new(
            "from_days(n)",
            "The date of a number of `to_days`.",
            "from_days(739310)",
            "2024-02-29",
        ),
        Declared(takes(&[RoundedInteger]), DATE),
        Values(|row| Ok(Value::Date(checked_days(row, row.int(0).saturating_sub(MYSQL_DAYS))?))),
    ),
    &function(
        &["from_unixtime", "to_timestamp"],
        Doc::new(
            "from_unixtime(s), to_timestamp",
            "The timestamp of seconds since 1970-01-01.",
            "from_unixtime(1709211907)",
            "2024-02-29 13:05:07",
        ),
        Declared(takes(&[Double]), TIMESTAMP),
        Values(|row| {
            let micros = row.double(0) * MICROS_PER_SECOND as f64;
            if !micros.is_finite() || micros.abs() > 9e18 {
                return Err(row.out_of_range());
            }
            let micros = micros.round() as i64;
            checked_days(row, micros.div_euclid(MICROS_PER_DAY))?;
            Ok(Value::Timestamp(micros))
        }),
    ),
    &function(
        &["epoch_ms"],
        Doc::new(
            "epoch_ms(t)",
            "Milliseconds since 1970-01-01.",
            "epoch_ms(timestamp '2024-02-29 13:05:07.25')",
            "1709211907250",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int(micros(row, 0).div_euclid(1000))),
    ),
    &function(
        &["epoch_us"],
        Doc::new(
            "epoch_us(t)",
            "Microseconds since 1970-01-01.",
            "epoch_us(timestamp '2024-02-29 13:05:07.25')",
            "1709211907250000",
        ),
        Declared(takes(&[Timestamp]), INT),
        Values(|row| int(micros(row, 0))),
    ),
    &function(
        &["julianday", "julian"],
        Doc::new(
            "julianday(t), julian",
            "The Julian day.",
            "julianday(date '2000-01-01')",
            "2451544.5",
        ),
        Declared(takes(&[Timestamp]), DataType::Float64),
        Values(|row| Ok(Value::Float(micros(row, 0) as f64 / MICROS_PER_DAY as f64 + JULIAN))),
    ),
    &function(
        &["date_format"],
        Doc::new(
            "date_format(t, format)",
            "Formatted by MySQL's letters.",
            "date_format(timestamp '2024-02-29 13:05:07.25', '%W, %M %D, %l:%i %p')",
            "Thursday, February 29th, 1:05 PM",
        ),
        Declared(takes(&[Timestamp, Text]), TEXT),
        Values(|row| text(formatted(row, &Clock::of(row), &row.text(1), Letters::MySql)?)),
    ),
    &function(
        &["strptime"],
        Doc::new(
            "strptime(s, format)",
            "The timestamp of a text, read by C's letters.",
            "strptime('29 Feb 2024', '%d %b %Y')",
            "2024-02-29 00:00:00",
        ),
        Declared(takes(&[Text, Text]), TIMESTAMP),
        Values(|row| parsed(row, Letters::C)),
    ),
    &function(
        &["str_to_date"],
        Doc::new(
            "str_to_date(s, format)",
            "The timestamp of a text, read by MySQL's letters.",
            "str_to_date('2/29/24 1:05', '%c/%e/%y %k:%i')",
            "2024-02-29 01:05:00",
        ),
        Declared(takes(&[Text, Text]), TIMESTAMP),
        Values(|row| parsed(row, Letters::MySql)),
    ),
    &DATE_DIFF,
    &STRFTIME,
    &CURRENT_TIMESTAMP,
    &CURRENT_DATE,
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["date"],
        Doc::new(
            "date(t)",
            "The date of a point in time; a cast.",
            "date(timestamp '2024-02-29 13:05:07.25')",
            "2024-02-29",
        ),
        Arity::exactly(1),
        |binding, arguments| converted(binding, arguments, DataType::Timestamp, DATE),
    ),
    &expression(
        &["time"],
        Doc::new(
            "time(t)",
            "The time of a timestamp; a cast.",
            "time(timestamp '2024-02-29 13:05:07')",
            "13:05:07",
        ),
        Arity::exactly(1),
        |binding, arguments| converted(binding, arguments, DataType::Time, DataType::Time),
    ),
    &expression(
        &["timestamp"],
        Doc::new(
            "timestamp(t)",
            "The timestamp of a date; a cast.",
            "timestamp(date '2024-02-29')",
            "2024-02-29 00:00:00",
        ),
        Arity::exactly(1),
        |binding, arguments| converted(binding, arguments, TIMESTAMP, TIMESTAMP),
    ),
    &expression(
        &["date_add", "adddate"],
        Doc::new(
            "date_add(t, interval), adddate",
            "A point in time plus an interval.",
            "date_add(date '2024-01-31', interval 1 month)",
            "2024-02-29",
        ),
        Arity::exactly(2),
        |binding, arguments| moved(binding, BinaryOp::Add, arguments),
    ),
    &expression(
        &["date_sub", "subdate"],
        Doc::new(
            "date_sub(t, interval), subdate",
            "A point in time minus an interval.",
            "date_sub(date '2024-03-01', interval 1 day)",
            "2024-02-29",
        ),
        Arity::exactly(2),
        |binding, arguments| moved(binding, BinaryOp::Subtract, arguments),
    ),
    &expression(
        &["datediff"],
        Doc::new(
            "datediff(a, b), datediff('part', from, to)",
            "Days from the second date to the first, as in MySQL; with a part as `date_diff`.",
            "datediff(date '2024-03-01', date '2024-02-01')",
            "29",
        ),
        Arity::between(2, 3),
        |binding, arguments| {
            if arguments.operands.len() == 3 {
                return DATE_DIFF.bind(binding, arguments);
            }
            let [to, from] = arguments.exactly()?;
            let (to, from) = (coerce::date(binding, to)?, coerce::date(binding, from)?);
            binding.binary(BinaryOp::Subtract, to, from)
        },
    )
    // With two arguments, both are dates.
    .part(BarePart::Among(3)),
    &expression(
        &["unix_timestamp"],
        Doc::new(
            "unix_timestamp([t])",
            "Seconds since 1970-01-01, of now without an argument.",
            "unix_timestamp(timestamp '2024-02-29 13:05:07.25')",
            "1709211907",
        ),
        Arity::between(0, 1),
        |binding, mut arguments| {
            if arguments.operands.is_empty() {
                arguments.operands.push(binding.call(&CURRENT_TIMESTAMP, Vec::new(), TIMESTAMP));
            }
            UNIX_TIMESTAMP.bind(binding, arguments)
        },
    ),
    &expression(
        &["current_time", "curtime"],
        Doc::new(
            "current_time, curtime()",
            "The statement's time of day.",
            "current_time = time(now())",
            "true",
        ),
        Arity::exactly(0),
        |binding, _| {
            let now = binding.call(&CURRENT_TIMESTAMP, Vec::new(), TIMESTAMP);
            binding.cast(now, DataType::Time)
        },
    ),
];

fn converted(
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
    open: DataType,
    to: DataType,
) -> Result<Operand> {
    let [value] = arguments.exactly()?;
    let value = binding.settle(value, open);
    binding.explicit_cast(value, to)
}

fn moved(binding: &mut dyn Binding, op: BinaryOp, arguments: Arguments<'_>) -> Result<Operand> {
    let [start, amount] = arguments.exactly()?;
    let start = coerce::temporal(binding, start)?;
    binding.binary(op, start, amount)
}

fn checked_days(row: &RowCall<'_>, days: i64) -> Result<i32> {
    match i32::try_from(days) {
        Ok(days) if (MIN_DATE..=MAX_DATE).contains(&days) => Ok(days),
        _ => Err(row.out_of_range()),
    }
}

/// The date from the year, month and day in the arguments from `at` on.
fn date_at(row: &RowCall<'_>, at: usize) -> Result<i32> {
    // A part out of range of its type is outside the calendar.
    let part = |n: usize| u32::try_from(row.int(at + n)).unwrap_or(u32::MAX);
    let year = i32::try_from(row.int(at)).unwrap_or(-1);
    date_from_parts(year, part(1), part(2)).ok_or_else(|| row.out_of_range())
}

/// The time in microseconds from the hour, minute and second in the arguments from `at` on.
fn time_at(row: &RowCall<'_>, at: usize) -> Result<i64> {
    let (hour, minute, second) = (row.int(at), row.int(at + 1), row.double(at + 2));
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
        return Err(row.out_of_range());
    }
    let micros = (second * MICROS_PER_SECOND as f64).round() as i64;
    Ok((hour * 3600 + minute * 60) * MICROS_PER_SECOND + micros.min(60 * MICROS_PER_SECOND - 1))
}

/// What a difference counts.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    /// Boundaries crossed between parts.
    Boundaries,
    /// Complete parts.
    Whole,
}

/// The difference of the second and third argument in the part named by the first.
fn difference(row: &RowCall<'_>, counted: Counted) -> Result<i64> {
    let (from, to) = (micros(row, 1), micros(row, 2));
    let name = row.text(0).to_ascii_lowercase();
    let name = name.strip_suffix('s').unwrap_or(&name);
    let months = match name {
        "month" => 1,
        "quarter" => 3,
        "year" => 12,
        "decade" => 120,
        "century" => 1200,
        _ => 0,
    };
    if months > 0 {
        return Ok(month_difference(from, to, months, counted));
    }
    let unit = match name {
        "microsecond" => 1,
        "millisecond" => 1000,
        "second" => MICROS_PER_SECOND,
        "minute" => 60 * MICROS_PER_SECOND,
        "hour" => 3600 * MICROS_PER_SECOND,
        "day" => MICROS_PER_DAY,
        "week" => 7 * MICROS_PER_DAY,
        other => return Err(row.error(&format!("there is no part {other}"), "22023")),
    };
    if counted == Counted::Whole {
        return Ok((to - from) / unit);
    }
    // Weeks begin on Monday; 1970-01-01 was a Thursday.
    let shift = if name == "week" { 3 * MICROS_PER_DAY } else { 0 };
    Ok((to + shift).div_euclid(unit) - (from + shift).div_euclid(unit))
}

fn month_difference(from: i64, to: i64, unit: i64, counted: Counted) -> i64 {
    let (from, to) = (Clock::new(from), Clock::new(to));
    let month = |clock: &Clock| clock.year as i64 * 12 + clock.month as i64 - 1;
    if counted == Counted::Boundaries {
        return month(&to).div_euclid(unit) - month(&from).div_euclid(unit);
    }
    // A month is complete when the day and the time of the start are reached again.
    let rest = |clock: &Clock| (clock.day, clock.micros);
    let mut whole = month(&to) - month(&from);
    whole -= i64::from(whole > 0 && rest(&to) < rest(&from));
    whole += i64::from(whole < 0 && rest(&to) > rest(&from));
    whole / unit
}
