//! `EXTRACT` and `DATE_TRUNC`: fields of dates, times and intervals, and the functions named after
//! a field.

use crate::date_part::DatePart;
use nacre_column::Vector;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Call;
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::Typing::Rule;
use nacre_function::entry::definition::{Arguments, Arity, BarePart};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::definition::{Expression, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function};
use nacre_function::kernel::cast::{cast_vector, micros as micros_of};
use nacre_function::kernel::decimals;
use nacre_function::kernel::order::length;
use nacre_function::vector::map::{map_integers, map_values};
use nacre_function::vector::room::Room;
use nacre_function::vector::view::Texts;
use nacre_types::temporal::{
    MICROS_PER_DAY, MICROS_PER_SECOND, MIN_DATE, civil_from_days, days_from_civil,
};
use nacre_types::{DataType, Error, Result, Value, decimal};

const INT: DataType = DataType::Int64;
const TEXT: DataType = DataType::TEXT;

static YEAR: ScalarFunction = function(
    &["year"],
    Doc::new("year(t)", "The year.", "year(timestamp '2024-02-29 13:05:07.25')", "2024"),
    Rule(Arity::exactly(1), |binding, arguments| field(binding, DatePart::Year, arguments)),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        extract(DatePart::Year, arg, call)
    }),
)
.infallible();

static MONTH: ScalarFunction = function(
    &["month"],
    Doc::new("month(t)", "The month, from 1.", "month(timestamp '2024-02-29 13:05:07.25')", "2"),
    Rule(Arity::exactly(1), |binding, arguments| field(binding, DatePart::Month, arguments)),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        extract(DatePart::Month, arg, call)
    }),
)
.infallible();

static DAY: ScalarFunction = function(
    &["day", "dayofmonth"],
    Doc::new("day(t), dayofmonth", "The day of the month.", "day(date '2024-02-29')", "29"),
    Rule(Arity::exactly(1), |binding, arguments| field(binding, DatePart::Day, arguments)),
    Vectors(|call| {
        let [arg] = call.exactly()?;
        extract(DatePart::Day, arg, call)
    }),
)
.infallible();

/// Extracts any field. Its first argument is the name of a [`DatePart`], a literal.
static DATE_PART: ScalarFunction = function(
    &["date_part"],
    Doc::new(
        "extract(part from t), date_part('part', t)",
        "A field of a date, time or interval.",
        "extract(year from date '2024-02-29')",
        "2024",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [part, value] = arguments.exactly()?;
        let part = named_part(binding, &part, "date_part")?;
        date_part(binding, part, value)
    }),
    Vectors(|call| {
        let [part, arg] = call.exactly()?;
        extract(part_of(part)?, arg, call)
    }),
)
.part(BarePart::Always);

static DATE_TRUNC: ScalarFunction = function(
    &["date_trunc"],
    Doc::new(
        "date_trunc('part', t)",
        "The start of a part of a date or timestamp.",
        "date_trunc('month', date '2024-02-29')",
        "2024-02-01",
    ),
    Rule(Arity::exactly(2), |binding, arguments| {
        let [part, value] = arguments.exactly()?;
        let part = named_part(binding, &part, "date_trunc")?;
        let value = coerce::temporal(binding, value)?;
        let data_type = binding.data_type(&value);
        if !matches!(data_type, DataType::Date | DataType::Timestamp) {
            let message = format!("DATE_TRUNC takes a DATE or TIMESTAMP, not {data_type}");
            return Err(Error::type_error(message));
        }
        let part = binding.constant(Value::Text(part.name().to_string()), TEXT);
        Ok(binding.call(&DATE_TRUNC, vec![part, value], data_type))
    }),
    Vectors(|call| {
        let [part, arg] = call.exactly()?;
        truncate(part_of(part)?, arg, call)
    }),
)
.part(BarePart::Always);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[&YEAR, &MONTH, &DAY, &DATE_PART, &DATE_TRUNC];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["quarter"],
        Doc::new(
            "quarter(t)",
            "The quarter, from 1.",
            "quarter(timestamp '2024-02-29 13:05:07.25')",
            "1",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Quarter, arguments),
    ),
    &expression(
        &["week", "weekofyear"],
        Doc::new(
            "week(t), weekofyear",
            "The week of ISO 8601.",
            "week(timestamp '2024-02-29 13:05:07.25')",
            "9",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Week, arguments),
    ),
    &expression(
        &["dayofweek"],
        Doc::new(
            "dayofweek(t)",
            "The day of the week; Sunday is 0.",
            "dayofweek(timestamp '2024-02-29 13:05:07.25')",
            "4",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::DayOfWeek, arguments),
    ),
    &expression(
        &["dayofyear"],
        Doc::new(
            "dayofyear(t)",
            "The day of the year, from 1.",
            "dayofyear(timestamp '2024-02-29 13:05:07.25')",
            "60",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::DayOfYear, arguments),
    ),
    &expression(
        &["hour"],
        Doc::new("hour(t)", "The hour.", "hour(timestamp '2024-02-29 13:05:07.25')", "13"),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Hour, arguments),
    ),
    &expression(
        &["minute"],
        Doc::new("minute(t)", "The minute.", "minute(timestamp '2024-02-29 13:05:07.25')", "5"),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Minute, arguments),
    ),
    &expression(
        &["second"],
        Doc::new("second(t)", "The second.", "second(timestamp '2024-02-29 13:05:07.25')", "7"),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Second, arguments),
    ),
    &expression(
        &["millisecond"],
        Doc::new(
            "millisecond(t)",
            "Milliseconds of the minute.",
            "millisecond(timestamp '2024-02-29 13:05:07.25')",
            "7250",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Millisecond, arguments),
    ),
    &expression(
        &["microsecond"],
        Doc::new(
            "microsecond(t)",
            "Microseconds of the minute.",
            "microsecond(timestamp '2024-02-29 13:05:07.25')",
            "7250000",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Microsecond, arguments),
    ),
    &expression(
        &["epoch"],
        Doc::new(
            "epoch(t)",
            "Seconds since 1970-01-01.",
            "epoch(timestamp '2024-02-29 13:05:07.25')",
            "1709211907",
        ),
        Arity::exactly(1),
        |binding, arguments| field(binding, DatePart::Epoch, arguments),
    ),
];

/// Binds `EXTRACT(part FROM value)`.
pub fn date_part(binding: &mut dyn Binding, part: DatePart, value: Operand) -> Result<Operand> {
    let value = coerce::temporal(binding, value)?;
    let is_calendar = matches!(binding.data_type(&value), DataType::Date | DataType::Timestamp);
    let own = match part {
        DatePart::Year => Some(&YEAR),
        DatePart::Month => Some(&MONTH),
        DatePart::Day => Some(&DAY),
        _ => None,
    };
    Ok(match own.filter(|_| is_calendar) {
        Some(function) => binding.call(function, vec![value], INT),
        None => {
            let part = binding.constant(Value::Text(part.name().to_string()), TEXT);
            binding.call(&DATE_PART, vec![part, value], INT)
        }
    })
}

fn field(binding: &mut dyn Binding, part: DatePart, arguments: Arguments<'_>) -> Result<Operand> {
    let [value] = arguments.exactly()?;
    date_part(binding, part, value)
}

fn named_part(binding: &dyn Binding, part: &Operand, name: &str) -> Result<DatePart> {
    match binding.literal(part) {
        Some(Value::Text(part)) => DatePart::named(part),
        _ => Err(Error::type_error(format!("{name} takes the name of a date part first"))),
    }
}

/// The field named by a literal, equal at every row.
fn part_of(vector: &Vector) -> Result<DatePart> {
    DatePart::named(&Texts::new(vector).text(0))
}

fn wrong(what: &str, data_type: DataType) -> Error {
    Error::type_error(format!("no {what} of {data_type}")).with_sqlstate("42883")
}

/// A field of a date, time, timestamp or interval. Weeks follow ISO 8601, days of the week count
/// from Sunday (0). Seconds and the epoch have a fraction if the result type has a scale.
fn extract(part: DatePart, arg: &Vector, call: &Call<'_>) -> Result<Vector> {
    let (data_type, rows) = (call.data_type, call.rows);
    let exact = if data_type.is_float() {
        DataType::Decimal { precision: 38, scale: 6 }
    } else {
        data_type
    };
    let scale = exact.scale();
    let finish = |micros: i128| {
        // Whole units round down, so that 59.9 seconds are 59.
        let v = if scale == 0 {
            Some(micros.div_euclid(1_000_000))
        } else {
            decimal::rescale(micros, 6, scale)
        };
        decimals::fit(v, exact)
    };
    let validity = arg.validity().cloned();
    let extracted = if arg.data_type() == DataType::Interval {
        map_integers(exact, validity, rows, &mut |i| finish(of_interval(part, &arg.value(i))))?
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
        let Some(micros) = micros_of(arg) else {
            return Err(wrong("date field", arg.data_type()));
        };
        map_integers(exact, validity, rows, &mut |i| finish(of_micros(part, micros(i))))?
    };
    cast_vector(&extracted, data_type, rows)
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
        DatePart::Epoch => length(value),
        _ => of_clock(part, v.micros),
    }
}

/// The ISO 8601 week: week 1 contains the year's first Thursday.
fn iso_week(days: i32) -> i32 {
    let weekday = (days as i64 + 3).rem_euclid(7) as i32;
    let thursday = days - weekday + 3;
    let (year, _, _) = civil_from_days(thursday);
    (thursday - days_from_civil(year, 1, 1)) / 7 + 1
}

/// Sets every field smaller than the part to its minimum.
fn truncate(part: DatePart, arg: &Vector, call: &Call<'_>) -> Result<Vector> {
    let (data_type, rows) = (call.data_type, call.rows);
    if !matches!(arg.data_type(), DataType::Date | DataType::Timestamp) {
        return Err(wrong("DATE_TRUNC", arg.data_type()));
    }
    let Some(micros) = micros_of(arg) else { return Err(wrong("DATE_TRUNC", arg.data_type())) };
    let truncated = map_values(&[arg], DataType::Timestamp, rows, Room::of_vector(), &mut |i| {
        match truncated_micros(part, micros(i)) {
            // The first week of the calendar begins before it.
            start if start < i64::from(MIN_DATE) * MICROS_PER_DAY => {
                Err(Error::out_of_range(format!("{} out of range", call.function.name())))
            }
            start => Ok(Value::Timestamp(start)),
        }
    })?;
    cast_vector(&truncated, data_type, rows)
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
