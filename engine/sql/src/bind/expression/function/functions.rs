//! Scalar functions by every name: how many arguments they take, and of which types. What is not so simple is bound by
//! code of its own (`function`).

use crate::expr::{DatePart, ScalarFunction as F};
use nacre_types::DataType;

/// How arguments are typed and what comes out.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Signature {
    /// Doubles to a double.
    Double,
    /// One number to the same kind of number.
    Number,
    /// A number rounded: `(x[, digits])`.
    Rounded,
    /// Text, then text or integers as the letters say (`t`, `i`), to text, integer or boolean.
    Text(&'static str, DataType),
    /// All of one type, to that type.
    Same,
    /// A date or timestamp to an integer.
    DateField,
    /// Bound by code of its own.
    Special,
}

pub(crate) struct Entry {
    pub name: &'static str,
    pub function: F,
    pub signature: Signature,
    pub min: u8,
    pub max: u8,
}

/// Arguments at most, where there is no limit.
pub(crate) const MANY: u8 = u8::MAX;

const fn entry(name: &'static str, function: F, signature: Signature, min: u8, max: u8) -> Entry {
    Entry { name, function, signature, min, max }
}

pub(crate) const TEXT: DataType = DataType::TEXT;
pub(crate) const INT: DataType = DataType::Int64;

use Signature::*;
/// Every scalar function by every name.
pub(crate) static FUNCTIONS: &[Entry] = &[
    entry("abs", F::Abs, Number, 1, 1),
    entry("sign", F::Sign, Number, 1, 1),
    entry("ceil", F::Ceil, Rounded, 1, 1),
    entry("ceiling", F::Ceil, Rounded, 1, 1),
    entry("floor", F::Floor, Rounded, 1, 1),
    entry("round", F::Round, Rounded, 1, 2),
    entry("trunc", F::Trunc, Rounded, 1, 2),
    entry("truncate", F::Trunc, Rounded, 1, 2),
    entry("sqrt", F::Sqrt, Double, 1, 1),
    entry("exp", F::Exp, Double, 1, 1),
    entry("ln", F::Ln, Double, 1, 1),
    entry("log10", F::Log10, Double, 1, 1),
    entry("log", F::Log10, Special, 1, 2),
    entry("log2", F::Ln, Special, 1, 1),
    entry("power", F::Power, Double, 2, 2),
    entry("pow", F::Power, Double, 2, 2),
    entry("mod", F::Mod, Special, 2, 2),
    entry("div", F::Mod, Special, 2, 2),
    entry("greatest", F::Greatest, Same, 1, MANY),
    entry("least", F::Least, Same, 1, MANY),
    entry("coalesce", F::Coalesce, Same, 1, MANY),
    entry("ifnull", F::Coalesce, Same, 2, 2),
    entry("nvl", F::Coalesce, Same, 2, 2),
    entry("nullif", F::NullIf, Special, 2, 2),
    entry("if", F::Coalesce, Special, 3, 3),
    entry("iif", F::Coalesce, Special, 3, 3),
    entry("length", F::Length, Special, 1, 1),
    entry("len", F::Length, Special, 1, 1),
    entry("char_length", F::Length, Text("t", INT), 1, 1),
    entry("character_length", F::Length, Text("t", INT), 1, 1),
    entry("octet_length", F::OctetLength, Special, 1, 1),
    entry("lower", F::Lower, Text("t", TEXT), 1, 1),
    entry("lcase", F::Lower, Text("t", TEXT), 1, 1),
    entry("upper", F::Upper, Text("t", TEXT), 1, 1),
    entry("ucase", F::Upper, Text("t", TEXT), 1, 1),
    entry("trim", F::Trim, Text("tt", TEXT), 1, 2),
    entry("btrim", F::Trim, Text("tt", TEXT), 1, 2),
    entry("ltrim", F::LeftTrim, Text("tt", TEXT), 1, 2),
    entry("rtrim", F::RightTrim, Text("tt", TEXT), 1, 2),
    entry("substring", F::Substring, Text("tii", TEXT), 2, 3),
    entry("substr", F::Substring, Text("tii", TEXT), 2, 3),
    entry("mid", F::Substring, Text("tii", TEXT), 3, 3),
    entry("replace", F::Replace, Text("ttt", TEXT), 3, 3),
    entry("concat", F::Concat, Special, 1, MANY),
    entry("position", F::Position, Text("tt", INT), 2, 2),
    entry("locate", F::Position, Text("tt", INT), 2, 2),
    entry("instr", F::Position, Special, 2, 2),
    entry("strpos", F::Position, Special, 2, 2),
    entry("left", F::Left, Text("ti", TEXT), 2, 2),
    entry("right", F::Right, Text("ti", TEXT), 2, 2),
    entry("reverse", F::Reverse, Text("t", TEXT), 1, 1),
    entry("repeat", F::Repeat, Text("ti", TEXT), 2, 2),
    entry("lpad", F::LeftPad, Text("tit", TEXT), 2, 3),
    entry("rpad", F::RightPad, Text("tit", TEXT), 2, 3),
    entry("starts_with", F::StartsWith, Text("tt", DataType::Boolean), 2, 2),
    entry("startswith", F::StartsWith, Text("tt", DataType::Boolean), 2, 2),
    entry("year", F::Year, DateField, 1, 1),
    entry("month", F::Month, DateField, 1, 1),
    entry("day", F::Day, DateField, 1, 1),
    entry("dayofmonth", F::Day, DateField, 1, 1),
    entry("quarter", F::Extract(DatePart::Quarter), DateField, 1, 1),
    entry("week", F::Extract(DatePart::Week), DateField, 1, 1),
    entry("dayofweek", F::Extract(DatePart::DayOfWeek), DateField, 1, 1),
    entry("dayofyear", F::Extract(DatePart::DayOfYear), DateField, 1, 1),
    entry("hour", F::Extract(DatePart::Hour), DateField, 1, 1),
    entry("minute", F::Extract(DatePart::Minute), DateField, 1, 1),
    entry("second", F::Extract(DatePart::Second), DateField, 1, 1),
    entry("microsecond", F::Extract(DatePart::Microsecond), DateField, 1, 1),
    entry("epoch", F::Extract(DatePart::Epoch), DateField, 1, 1),
    entry("date_part", F::Extract(DatePart::Year), Special, 2, 2),
    entry("date_trunc", F::DateTrunc(DatePart::Year), Special, 2, 2),
    entry("date", F::CurrentDate, Special, 1, 1),
    entry("typeof", F::TypeOf, Special, 1, 1),
    entry("pg_typeof", F::TypeOf, Special, 1, 1),
    entry("now", F::CurrentTimestamp, Special, 0, 0),
    entry("current_timestamp", F::CurrentTimestamp, Special, 0, 0),
    entry("localtimestamp", F::CurrentTimestamp, Special, 0, 0),
    entry("current_date", F::CurrentDate, Special, 0, 0),
    entry("curdate", F::CurrentDate, Special, 0, 0),
];

/// Every name of a scalar function.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|e| e.name).chain(crate::bind::expression::function::builtin::names())
}
