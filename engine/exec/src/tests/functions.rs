//! Every scalar function and the arithmetic of dates, on single values.

use crate::testing::*;
use nacre_column::Batch;
use nacre_operator::expr::*;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, Interval, Result, Value, temporal};
use std::sync::Arc;

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

fn check(name: &str, args: &[Value], data_type: DataType, expected: Value) {
    let expr = call(name, args.iter().map(arg).collect(), data_type);
    assert_eq!(evaluate_one(&expr).unwrap(), expected, "{name} {args:?}");
}

fn check_error(name: &str, args: &[Value], data_type: DataType, sqlstate: &str) {
    let expr = call(name, args.iter().map(arg).collect(), data_type);
    assert_eq!(evaluate_one(&expr).unwrap_err().sqlstate(), sqlstate, "{name} {args:?}");
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
    check("abs", &[int(-5)], I64, int(5));
    check("abs", &[dec(-55, 1)], decimal(3, 1), dec(55, 1));
    check_error("abs", &[int(i64::MIN)], I64, "22003");
    check("ceil", &[dec(-15, 1)], decimal(3, 0), dec(-1, 0));
    check("ceil", &[dec(11, 1)], decimal(3, 0), dec(2, 0));
    check("floor", &[dec(-15, 1)], decimal(3, 0), dec(-2, 0));
    check("floor", &[float(1.7)], F64, float(1.0));
    check("sign", &[float(-2.5)], I64, int(-1));
    check("sign", &[dec(-25, 1)], I64, int(-1));
    check("round", &[dec(12345, 3), int(2)], decimal(5, 2), dec(1235, 2));
    check("round", &[dec(-12345, 3)], decimal(3, 0), dec(-12, 0));
    check("round", &[int(1250), int(-2)], I64, int(1300));
    check("round", &[float(2.675), int(2)], F64, float(2.68));
    check("round", &[float(-2.5)], F64, float(-3.0));
    check("trunc", &[dec(-199, 2), int(1)], decimal(3, 2), dec(-190, 2));
    check("trunc", &[float(1.79), int(1)], F64, float(1.7));
    check("sqrt", &[float(9.0)], F64, float(3.0));
    check_error("sqrt", &[float(-1.0)], F64, "2201F");
    check_error("ln", &[float(0.0)], F64, "2201E");
    check("power", &[float(2.0), float(10.0)], F64, float(1024.0));
    check_error("power", &[float(0.0), float(-1.0)], F64, "22012");
    check_error("exp", &[float(1000.0)], F64, "22003");
    check("log10", &[float(1000.0)], F64, float(3.0));
    check("greatest", &[int(1), int(9), int(4)], I64, int(9));
    check("least", &[text("b"), text("a")], T, text("a"));
    check("least", &[text("b"), Value::Null], T, Value::Null);
    check("nullif", &[int(1), int(1)], I64, Value::Null);
    check("nullif", &[int(1), Value::Null], I64, int(1));
    check("current_timestamp", &[], DataType::Timestamp, Value::Timestamp(1_000_000));
    check("current_date", &[], DataType::Date, Value::Date(0));
}

#[test]
fn texts() {
    check("length", &[text("日本")], I64, int(2));
    check("octet_length", &[text("日本")], I64, int(6));
    check("length", &[Value::Binary(vec![0xe6, 0x97])], I64, int(2));
    check("lower", &[text("ÄB")], T, text("äb"));
    check("upper", &[text("ab1")], T, text("AB1"));
    check("trim", &[text("  a b ")], T, text("a b"));
    check("trim", &[text("xxaxx"), text("x")], T, text("a"));
    check("ltrim", &[text("  a ")], T, text("a "));
    check("rtrim", &[text("  a ")], T, text("  a"));
    check("substring", &[text("日本語x"), int(2), int(2)], T, text("本語"));
    check("substring", &[text("abc"), int(2)], T, text("bc"));
    check("substring", &[text("abc"), int(-1), int(3)], T, text("a"));
    check("substring", &[text("abc"), int(9)], T, text(""));
    check_error("substring", &[text("abc"), int(1), int(-1)], T, "22011");
    check("replace", &[text("banana"), text("an"), text("x")], T, text("bxxa"));
    check("replace", &[text("banana"), text(""), text("x")], T, text("banana"));
    check("concat", &[text("a"), text("b"), text("c")], T, text("abc"));
    check("concat", &[text("a"), Value::Null], T, Value::Null);
    check("position", &[text("本"), text("日本")], I64, int(2));
    check("position", &[text("z"), text("日本")], I64, int(0));
    check("left", &[text("日本語"), int(2)], T, text("日本"));
    check("left", &[text("abc"), int(-1)], T, text("ab"));
    check("right", &[text("abc"), int(2)], T, text("bc"));
    check("right", &[text("abc"), int(9)], T, text("abc"));
    check("reverse", &[text("añb")], T, text("bña"));
    check("repeat", &[text("ab"), int(3)], T, text("ababab"));
    let expr = call("repeat", vec![arg(&text("ab")), arg(&int(1 << 30))], T);
    assert_eq!(evaluate_one(&expr).unwrap_err().kind(), nacre_types::ErrorKind::Limit);
    check("lpad", &[text("7"), int(3), text("0")], T, text("007"));
    check("rpad", &[text("7"), int(4), text("ab")], T, text("7aba"));
    check("lpad", &[text("abcd"), int(2)], T, text("ab"));
    check("starts_with", &[text("abc"), text("ab")], DataType::Boolean, Value::Boolean(true));
}

#[test]
fn dates() {
    let at = stamp("2024-02-29 13:14:15.678901");
    for (part, expected) in [
        ("year", 2024),
        ("quarter", 1),
        ("month", 2),
        ("week", 9),
        ("day", 29),
        ("dow", 4),
        ("doy", 60),
        ("hour", 13),
        ("minute", 14),
        ("second", 15),
        ("millisecond", 15678),
        ("microsecond", 15678901),
    ] {
        check("date_part", &[text(part), at.clone()], I64, int(expected));
    }
    check("date_part", &[text("second"), at.clone()], F64, float(15.678901));
    check("date_part", &[text("epoch"), date("1970-01-02")], I64, int(86400));
    check("date_part", &[text("week"), date("2021-01-03")], I64, int(53));
    check(
        "date_part",
        &[text("day"), Value::Interval(Interval { months: 14, days: 3, micros: 0 })],
        I64,
        int(3),
    );
    check("year", &[date("1994-05-01")], I64, int(1994));
    for (part, expected) in [
        ("year", "2024-01-01"),
        ("quarter", "2024-01-01"),
        ("month", "2024-02-01"),
        ("week", "2024-02-26"),
        ("day", "2024-02-29"),
        ("hour", "2024-02-29 13:00"),
    ] {
        check("date_trunc", &[text(part), at.clone()], DataType::Timestamp, stamp(expected));
    }
    check("date_trunc", &[text("month"), date("1994-05-17")], DataType::Date, date("1994-05-01"));
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
        compare(
            BinaryOp::Equal,
            binary(BinaryOp::Modulo, e, lit(int(2), I64), I64),
            lit(int(0), I64),
        )
    };
    let case = |long: Expr| {
        let branches = vec![(is_even(col(1, I64)), long.clone())];
        Expr { kind: ExprKind::Case { branches, otherwise: Some(Box::new(long)) }, data_type: T }
    };
    for (what, expr) in [
        ("repeat", call("repeat", vec![col(0, T), lit(int(1), I64)], T)),
        ("||", binary(BinaryOp::Concat, col(0, T), lit(text("!"), T), T)),
        ("lpad", call("lpad", vec![col(0, T), lit(int(1_000_001), I64)], T)),
        ("greatest", call("greatest", vec![col(0, T), lit(text("a"), T)], T)),
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
