//! Every scalar function and the arithmetic of dates, on single values.

use super::*;
use crate::testing::*;
use nacre_sql::expr::{BinaryOp, DatePart, ScalarFunction as F};
use nacre_types::{Interval, temporal};

const I64: DataType = DataType::Int64;
const F64: DataType = DataType::Float64;
const T: DataType = DataType::TEXT;

fn evaluate_one(expr: &Expr) -> Result<Value> {
    evaluate_constant(expr, &Fixture::new().context())
}

/// Arguments are literals of their natural types, integers as `BIGINT`.
fn arg(value: &Value) -> Expr {
    let data_type = match value {
        Value::Int(_) => I64,
        other => other.natural_type(),
    };
    lit(value.clone(), data_type)
}

fn check(function: F, args: &[Value], data_type: DataType, expected: Value) {
    let expr = call(function, args.iter().map(arg).collect(), data_type);
    assert_eq!(evaluate_one(&expr).unwrap(), expected, "{function:?} {args:?}");
}

fn check_error(function: F, args: &[Value], data_type: DataType, sqlstate: &str) {
    let expr = call(function, args.iter().map(arg).collect(), data_type);
    assert_eq!(evaluate_one(&expr).unwrap_err().sqlstate(), sqlstate, "{function:?} {args:?}");
}

fn date(v: &str) -> Value {
    Value::Date(temporal::parse_date(v).unwrap())
}

fn stamp(v: &str) -> Value {
    Value::Timestamp(temporal::parse_timestamp(v).unwrap())
}

fn float(v: f64) -> Value {
    Value::Float(v)
}

#[test]
fn numbers() {
    check(F::Abs, &[int(-5)], I64, int(5));
    check(F::Abs, &[dec(-55, 1)], decimal(3, 1), dec(55, 1));
    check_error(F::Abs, &[int(i64::MIN)], I64, "22003");
    check(F::Ceil, &[dec(-15, 1)], decimal(3, 0), dec(-1, 0));
    check(F::Ceil, &[dec(11, 1)], decimal(3, 0), dec(2, 0));
    check(F::Floor, &[dec(-15, 1)], decimal(3, 0), dec(-2, 0));
    check(F::Floor, &[float(1.7)], F64, float(1.0));
    check(F::Sign, &[float(-2.5)], I64, int(-1));
    check(F::Sign, &[dec(-25, 1)], I64, int(-1));
    check(F::Round, &[dec(12345, 3), int(2)], decimal(5, 2), dec(1235, 2));
    check(F::Round, &[dec(-12345, 3)], decimal(3, 0), dec(-12, 0));
    check(F::Round, &[int(1250), int(-2)], I64, int(1300));
    check(F::Round, &[float(2.675), int(2)], F64, float(2.68));
    check(F::Round, &[float(-2.5)], F64, float(-3.0));
    check(F::Trunc, &[dec(-199, 2), int(1)], decimal(3, 2), dec(-190, 2));
    check(F::Trunc, &[float(1.79), int(1)], F64, float(1.7));
    check(F::Sqrt, &[float(9.0)], F64, float(3.0));
    check_error(F::Sqrt, &[float(-1.0)], F64, "2201F");
    check_error(F::Ln, &[float(0.0)], F64, "2201E");
    check(F::Power, &[float(2.0), float(10.0)], F64, float(1024.0));
    check_error(F::Power, &[float(0.0), float(-1.0)], F64, "22012");
    check_error(F::Exp, &[float(1000.0)], F64, "22003");
    check(F::Log10, &[float(1000.0)], F64, float(3.0));
    check(F::Mod, &[int(-7), int(3)], I64, int(-1));
    check(F::Greatest, &[int(1), int(9), int(4)], I64, int(9));
    check(F::Least, &[text("b"), text("a")], T, text("a"));
    check(F::Least, &[text("b"), Value::Null], T, Value::Null);
    check(F::NullIf, &[int(1), int(1)], I64, Value::Null);
    check(F::NullIf, &[int(1), Value::Null], I64, int(1));
    check(F::TypeOf, &[int(1)], T, text("BIGINT"));
    check(F::CurrentTimestamp, &[], DataType::Timestamp, Value::Timestamp(1_000_000));
    check(F::CurrentDate, &[], DataType::Date, Value::Date(0));
}

#[test]
fn texts() {
    check(F::Length, &[text("日本")], I64, int(2));
    check(F::OctetLength, &[text("日本")], I64, int(6));
    check(F::Length, &[Value::Binary(vec![0xe6, 0x97])], I64, int(2));
    check(F::Lower, &[text("ÄB")], T, text("äb"));
    check(F::Upper, &[text("ab1")], T, text("AB1"));
    check(F::Trim, &[text("  a b ")], T, text("a b"));
    check(F::Trim, &[text("xxaxx"), text("x")], T, text("a"));
    check(F::LeftTrim, &[text("  a ")], T, text("a "));
    check(F::RightTrim, &[text("  a ")], T, text("  a"));
    check(F::Substring, &[text("日本語x"), int(2), int(2)], T, text("本語"));
    check(F::Substring, &[text("abc"), int(2)], T, text("bc"));
    check(F::Substring, &[text("abc"), int(-1), int(3)], T, text("a"));
    check(F::Substring, &[text("abc"), int(9)], T, text(""));
    check_error(F::Substring, &[text("abc"), int(1), int(-1)], T, "22011");
    check(F::Replace, &[text("banana"), text("an"), text("x")], T, text("bxxa"));
    check(F::Replace, &[text("banana"), text(""), text("x")], T, text("banana"));
    check(F::Concat, &[text("a"), text("b"), text("c")], T, text("abc"));
    check(F::Concat, &[text("a"), Value::Null], T, Value::Null);
    check(F::Position, &[text("本"), text("日本")], I64, int(2));
    check(F::Position, &[text("z"), text("日本")], I64, int(0));
    check(F::Left, &[text("日本語"), int(2)], T, text("日本"));
    check(F::Left, &[text("abc"), int(-1)], T, text("ab"));
    check(F::Right, &[text("abc"), int(2)], T, text("bc"));
    check(F::Right, &[text("abc"), int(9)], T, text("abc"));
    check(F::Reverse, &[text("añb")], T, text("bña"));
    check(F::Repeat, &[text("ab"), int(3)], T, text("ababab"));
    let expr = call(F::Repeat, vec![arg(&text("ab")), arg(&int(1 << 30))], T);
    assert_eq!(evaluate_one(&expr).unwrap_err().kind(), nacre_types::ErrorKind::Limit);
    check(F::LeftPad, &[text("7"), int(3), text("0")], T, text("007"));
    check(F::RightPad, &[text("7"), int(4), text("ab")], T, text("7aba"));
    check(F::LeftPad, &[text("abcd"), int(2)], T, text("ab"));
    check(F::StartsWith, &[text("abc"), text("ab")], DataType::Boolean, Value::Boolean(true));
}

#[test]
fn dates() {
    let at = stamp("2024-02-29 13:14:15.678901");
    for (part, expected) in [
        (DatePart::Year, 2024),
        (DatePart::Quarter, 1),
        (DatePart::Month, 2),
        (DatePart::Week, 9),
        (DatePart::Day, 29),
        (DatePart::DayOfWeek, 4),
        (DatePart::DayOfYear, 60),
        (DatePart::Hour, 13),
        (DatePart::Minute, 14),
        (DatePart::Second, 15),
        (DatePart::Millisecond, 15678),
        (DatePart::Microsecond, 15678901),
    ] {
        check(F::Extract(part), std::slice::from_ref(&at), I64, int(expected));
    }
    check(F::Extract(DatePart::Second), std::slice::from_ref(&at), F64, float(15.678901));
    check(F::Extract(DatePart::Epoch), &[date("1970-01-02")], I64, int(86400));
    check(F::Extract(DatePart::Week), &[date("2021-01-03")], I64, int(53));
    check(
        F::Extract(DatePart::Day),
        &[Value::Interval(Interval { months: 14, days: 3, micros: 0 })],
        I64,
        int(3),
    );
    check(F::Year, &[date("1994-05-01")], I64, int(1994));
    for (part, expected) in [
        (DatePart::Year, "2024-01-01"),
        (DatePart::Quarter, "2024-01-01"),
        (DatePart::Month, "2024-02-01"),
        (DatePart::Week, "2024-02-26"),
        (DatePart::Day, "2024-02-29"),
        (DatePart::Hour, "2024-02-29 13:00"),
    ] {
        check(F::DateTrunc(part), std::slice::from_ref(&at), DataType::Timestamp, stamp(expected));
    }
    check(F::DateTrunc(DatePart::Month), &[date("1994-05-17")], DataType::Date, date("1994-05-01"));
}

#[test]
fn date_arithmetic() {
    use BinaryOp::{Add, Divide, Multiply, Subtract};
    let interval = |months, days, micros| Value::Interval(Interval { months, days, micros });
    for (op, left, right, data_type, expected) in [
        (Add, date("2024-01-31"), interval(1, 0, 0), DataType::Date, date("2024-02-29")),
        (Subtract, date("1998-12-01"), interval(0, 90, 0), DataType::Date, date("1998-09-02")),
        (
            Add,
            date("2024-01-01"),
            interval(0, 0, 3_600_000_000),
            DataType::Timestamp,
            stamp("2024-01-01 01:00"),
        ),
        (Subtract, date("2024-03-01"), date("2024-02-01"), I64, int(29)),
        (Add, date("2024-02-28"), int(2), DataType::Date, date("2024-03-01")),
        (
            Subtract,
            stamp("2024-01-02 01:00"),
            stamp("2024-01-01"),
            DataType::Interval,
            interval(0, 1, 3_600_000_000),
        ),
        (Multiply, interval(1, 2, 3), int(3), DataType::Interval, interval(3, 6, 9)),
        (Divide, interval(3, 1, 0), int(2), DataType::Interval, interval(1, 15, 43_200_000_000)),
        (Add, interval(1, 0, 0), interval(0, 5, 0), DataType::Interval, interval(1, 5, 0)),
        (Add, Value::Time(0), interval(0, 0, -1), DataType::Time, Value::Time(86_399_999_999)),
    ] {
        let expr = binary(op, arg(&left), arg(&right), data_type);
        assert_eq!(evaluate_one(&expr).unwrap(), expected, "{left} {} {right}", op.symbol());
    }
    let far = binary(Add, arg(&date("9999-12-31")), arg(&int(1)), DataType::Date);
    assert_eq!(evaluate_one(&far).unwrap_err().sqlstate(), "22008");
    let longer = compare(BinaryOp::Greater, arg(&interval(1, 0, 0)), arg(&interval(0, 29, 0)));
    assert_eq!(evaluate_one(&longer).unwrap(), Value::Boolean(true));
}

#[test]
fn long_results_of_many_rows_are_refused() {
    let mut fixture = Fixture::new();
    fixture.memory_limit = 1 << 20;
    let context = fixture.context();
    let long = text(&"x".repeat(1_000_000));
    let flat = batch(&[(T, vec![long.clone(); 70]), (I64, (0..70).map(int).collect())]);
    let coded =
        Batch::new(vec![Arc::new(dictionary(&flat.columns[0])), flat.columns[1].clone()], 70);
    let is_even = |e| {
        compare(BinaryOp::Equal, call(F::Mod, vec![e, lit(int(2), I64)], I64), lit(int(0), I64))
    };
    let case = |long: Expr| {
        let branches = vec![(is_even(col(1, I64)), long.clone())];
        Expr { kind: ExprKind::Case { branches, otherwise: Some(Box::new(long)) }, data_type: T }
    };
    for (what, expr) in [
        ("repeat", call(F::Repeat, vec![col(0, T), lit(int(1), I64)], T)),
        ("||", binary(BinaryOp::Concat, col(0, T), lit(text("!"), T), T)),
        ("lpad", call(F::LeftPad, vec![col(0, T), lit(int(1_000_001), I64)], T)),
        ("greatest", call(F::Greatest, vec![col(0, T), lit(text("a"), T)], T)),
        ("case", case(lit(long.clone(), T))),
    ] {
        for input in [&flat, &coded] {
            let error = evaluate(&expr, input, &context).unwrap_err();
            assert_eq!(error.kind(), nacre_types::ErrorKind::Limit, "{what}");
        }
        let few = Batch { selection: Some(vec![3, 4]), ..flat.clone() };
        assert!(evaluate(&expr, &few, &context).is_ok(), "{what}");
    }
}
