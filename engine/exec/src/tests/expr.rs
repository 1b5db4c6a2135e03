//! Evaluation of operators, logic, casts and `LIKE`; laziness; vectors in every form.

use crate::testing::*;
use BinaryOp::*;
use nacre_column::{Batch, Vector};
use nacre_function::kernel::compare;
use nacre_operator::expr::*;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, ErrorKind, Interval, Result, Value};
use std::sync::Arc;

const I64: DataType = DataType::Int64;
const BOOL: DataType = DataType::Boolean;

fn eval(expr: &Expr, batch: &Batch) -> Result<Vec<Value>> {
    let fixture = Fixture::new();
    let vector = evaluate(expr, batch, &fixture.context())?;
    assert_eq!(vector.len(), batch.rows);
    assert_eq!(vector.data_type(), expr.data_type);
    Ok((0..batch.rows).map(|row| vector.value(row)).collect())
}

/// The result over flat vectors, dictionary-coded vectors, and under a selection of every other
/// row.
fn check(expr: &Expr, batch: &Batch, expected: &[Value]) {
    assert_eq!(eval(expr, batch).unwrap(), expected, "{expr:?}");
    let coded = batch.columns.iter().map(|c| Arc::new(dictionary(c))).collect();
    assert_eq!(
        eval(expr, &Batch::new(coded, batch.rows)).unwrap(),
        expected,
        "dictionary {expr:?}"
    );
    let mut selected = batch.clone();
    selected.selection = Some((0..batch.rows as u32).step_by(2).collect());
    let fixture = Fixture::new();
    let vector = evaluate(expr, &selected, &fixture.context()).unwrap();
    for row in (0..batch.rows).step_by(2) {
        assert_eq!(vector.value(row), expected[row], "selected {expr:?}");
    }
}

fn check_error(expr: &Expr, batch: &Batch, sqlstate: &str) {
    let error = eval(expr, batch).expect_err("an error");
    assert_eq!(error.sqlstate(), sqlstate, "{error}");
}

fn one() -> Batch {
    Batch::new(Vec::new(), 1)
}

fn check_one(expr: Expr, expected: Value) {
    assert_eq!(eval(&expr, &one()).unwrap(), [expected], "{expr:?}");
}

#[test]
fn integer_arithmetic_is_checked() {
    let batch = batch(&[
        (I64, vec![int(7), int(-7), Value::Null, int(i64::MAX)]),
        (I64, vec![int(2), int(2), int(0), int(1)]),
    ]);
    let (a, b) = (|| col(0, I64), || col(1, I64));
    check(
        &binary(Subtract, a(), b(), I64),
        &batch,
        &[int(5), int(-9), Value::Null, int(i64::MAX - 1)],
    );
    check(
        &binary(IntegerDivide, a(), b(), I64),
        &batch,
        &[int(3), int(-3), Value::Null, int(i64::MAX)],
    );
    check(&binary(Modulo, a(), b(), I64), &batch, &[int(1), int(-1), Value::Null, int(0)]);
    check_error(&binary(Add, a(), b(), I64), &batch, "22003");
    check_error(&binary(Multiply, a(), lit(int(2), I64), I64), &batch, "22003");
    check_error(&binary(Add, a(), b(), DataType::Int32), &batch, "22003");
    check_error(&binary(IntegerDivide, a(), lit(int(0), I64), I64), &batch, "22012");
    let min = lit(int(i64::MIN), I64);
    check_error(
        &Expr { kind: ExprKind::Negate(Box::new(min.clone())), data_type: I64 },
        &one(),
        "22003",
    );
    check_error(&binary(IntegerDivide, min.clone(), lit(int(-1), I64), I64), &one(), "22003");
    check_one(binary(Modulo, min, lit(int(-1), I64), I64), int(0));
    check_one(binary(ShiftLeft, lit(int(3), I64), lit(int(2), I64), I64), int(12));
    check_one(binary(BitXor, lit(int(6), I64), lit(int(3), I64), I64), int(5));
    let big = lit(Value::UInt(u64::MAX), DataType::UInt64);
    check_error(
        &binary(Add, big.clone(), lit(Value::UInt(1), DataType::UInt64), DataType::UInt64),
        &one(),
        "22003",
    );
    check_one(binary(BitAnd, big.clone(), big, DataType::UInt64), Value::UInt(u64::MAX));
}

#[test]
fn unselected_and_null_rows_raise_nothing() {
    let mut batch = batch(&[
        (I64, vec![int(i64::MAX), int(1), int(5), Value::Null]),
        (I64, vec![int(0), int(1), int(2), int(0)]),
    ]);
    batch.selection = Some(vec![1, 2, 3]);
    let fixture = Fixture::new();
    for (op, expected) in [(Add, 7), (IntegerDivide, 2), (Modulo, 1)] {
        let vector =
            evaluate(&binary(op, col(0, I64), col(1, I64), I64), &batch, &fixture.context())
                .unwrap();
        assert_eq!(vector.value(2), int(expected));
        assert!(vector.is_null(3));
    }
    let narrow = evaluate(&cast(col(0, I64), DataType::Int8), &batch, &fixture.context()).unwrap();
    assert_eq!(narrow.value(2), int(5));
    batch.selection = Some(Vec::new());
    let impossible = binary(IntegerDivide, lit(int(1), I64), lit(int(0), I64), I64);
    assert!(evaluate(&impossible, &batch, &fixture.context()).is_ok());
}

#[test]
fn decimals_are_exact() {
    let price = lit(dec(12345, 2), decimal(15, 2));
    let tax = lit(dec(107, 2), decimal(15, 2));
    check_one(binary(Multiply, price.clone(), tax.clone(), decimal(30, 4)), dec(12345 * 107, 4));
    check_one(binary(Divide, price.clone(), tax.clone(), decimal(21, 8)), dec(11537383178, 8));
    check_one(binary(Divide, lit(int(-7), I64), lit(int(2), I64), decimal(20, 0)), dec(-4, 0));
    check_one(binary(Divide, lit(int(1), I64), lit(int(3), I64), decimal(38, 6)), dec(333333, 6));
    let huge = lit(dec(10i128.pow(37), 0), decimal(38, 0));
    check_error(&binary(Multiply, huge.clone(), huge.clone(), decimal(38, 0)), &one(), "22003");
    check_one(binary(Divide, huge.clone(), huge.clone(), decimal(38, 20)), dec(10i128.pow(20), 20));
    check_error(
        &binary(Add, lit(dec(999, 2), decimal(3, 2)), lit(dec(1, 2), decimal(3, 2)), decimal(3, 2)),
        &one(),
        "22003",
    );
    check_error(
        &binary(Divide, price, lit(dec(0, 2), decimal(15, 2)), decimal(20, 8)),
        &one(),
        "22012",
    );
}

/// Operands of 128 bits: whole vectors at once, with rows that fail unselected.
#[test]
fn wide_decimals_agree_with_single_values() {
    let (wide, of_two) = (decimal(38, 2), decimal(38, 4));
    let numbers = [0, 1, -1, 7_500_000, 10i128.pow(18), -(10i128.pow(20)), 10i128.pow(37)];
    let values = |shift: usize| -> Vec<Value> {
        (0..49).map(|row| dec(numbers[row / shift % 7], 2)).collect()
    };
    let mut batch = batch(&[
        (wide, values(1)),
        (wide, values(7)),
        (decimal(15, 2), { (0..49).map(|row| dec(numbers[row / 7 % 4], 2)).collect() }),
    ]);
    let fixture = Fixture::new();
    for (right, right_type) in [(1, wide), (2, decimal(15, 2))] {
        for (op, result) in [(Add, wide), (Subtract, wide), (Multiply, of_two)] {
            let expr = binary(op, col(0, wide), col(right, right_type), result);
            let single = |row: usize| {
                let operand = |at: usize, t| lit(batch.columns[at].value(row), t);
                let expr = binary(op, operand(0, wide), operand(right, right_type), result);
                eval(&expr, &one()).map(|values| values[0].clone())
            };
            let found: Vec<_> = (0..49).map(single).collect();
            let fits: Vec<u32> = (0..49).filter(|row| found[*row as usize].is_ok()).collect();
            assert!(op != Multiply || fits.len() < 49, "one product does not fit");
            batch.selection = Some(fits.clone());
            let vector = evaluate(&expr, &batch, &fixture.context()).unwrap();
            for row in fits {
                assert_eq!(&vector.value(row as usize), found[row as usize].as_ref().unwrap());
            }
            batch.selection = None;
            let all = evaluate(&expr, &batch, &fixture.context());
            assert_eq!(all.is_ok(), found.iter().all(Result::is_ok), "{op:?}");
        }
    }
}

#[test]
fn floats_refuse_to_overflow() {
    let float = |v| lit(Value::Float(v), DataType::Float64);
    check_one(binary(Divide, float(1.0), float(4.0), DataType::Float64), Value::Float(0.25));
    check_error(&binary(Multiply, float(1e308), float(10.0), DataType::Float64), &one(), "22003");
    check_error(&binary(Divide, float(1.0), float(0.0), DataType::Float64), &one(), "22012");
    let (nan, infinity) = (float(f64::NAN), float(f64::INFINITY));
    check_one(compare(Equal, nan.clone(), nan.clone()), Value::Boolean(true));
    check_one(compare(Greater, nan, infinity), Value::Boolean(true));
    check_one(compare(Equal, float(-0.0), float(0.0)), Value::Boolean(true));
}

#[test]
fn comparisons_agree_with_a_model_in_every_form() {
    let mut random = Random::new(11);
    for data_type in [
        I64,
        DataType::Float64,
        DataType::TEXT,
        DataType::UInt64,
        BOOL,
        DataType::Date,
        decimal(30, 2),
    ] {
        let column = |random: &mut Random, nulls| {
            (0..50).map(|_| random_value(random, data_type, 6, nulls)).collect::<Vec<_>>()
        };
        let (left, right) = (column(&mut random, 5), column(&mut random, 4));
        let constant = random_value(&mut random, data_type, 6, 0);
        let columns = batch(&[(data_type, left.clone()), (data_type, right.clone())]);
        for op in
            [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, NotDistinct, Distinct]
        {
            let model = |a: &Value, b: &Value| match op {
                NotDistinct => Value::Boolean(a == b),
                Distinct => Value::Boolean(a != b),
                _ if a.is_null() || b.is_null() => Value::Null,
                _ => Value::Boolean(compare::holds(op, compare_values(a, b))),
            };
            let pairs: Vec<_> = left.iter().zip(&right).map(|(a, b)| model(a, b)).collect();
            check(&compare(op, col(0, data_type), col(1, data_type)), &columns, &pairs);
            let with_constant: Vec<_> = left.iter().map(|a| model(a, &constant)).collect();
            check(
                &compare(op, col(0, data_type), lit(constant.clone(), data_type)),
                &columns,
                &with_constant,
            );
            let turned: Vec<_> = left.iter().map(|a| model(&constant, a)).collect();
            check(
                &compare(op, lit(constant.clone(), data_type), col(0, data_type)),
                &columns,
                &turned,
            );
        }
    }
    for (op, edge) in
        [(Less, i64::MIN), (GreaterOrEqual, i64::MIN), (Greater, i64::MAX), (LessOrEqual, i64::MAX)]
    {
        let columns = batch(&[(I64, vec![int(i64::MIN), int(0), int(i64::MAX)])]);
        let expected: Vec<_> = [i64::MIN, 0, i64::MAX]
            .iter()
            .map(|v| Value::Boolean(compare::holds(op, v.cmp(&edge))))
            .collect();
        check(&compare(op, col(0, I64), lit(int(edge), I64)), &columns, &expected);
    }
}

#[test]
fn three_valued_logic() {
    let values = [Value::Boolean(true), Value::Boolean(false), Value::Null];
    let truth = |v: &Value| if let Value::Boolean(b) = v { Some(*b) } else { None };
    let value = |v: Option<bool>| v.map_or(Value::Null, Value::Boolean);
    for a in &values {
        for b in &values {
            let (x, y) = (truth(a), truth(b));
            let and = if x == Some(false) || y == Some(false) { Some(false) } else { x.and(y) };
            let or = if x == Some(true) || y == Some(true) { Some(true) } else { x.and(y) };
            let columns = batch(&[(BOOL, vec![a.clone()]), (BOOL, vec![b.clone()])]);
            let args = || vec![col(0, BOOL), col(1, BOOL)];
            check(&boolean(ExprKind::And(args())), &columns, &[value(and)]);
            check(&boolean(ExprKind::Or(args())), &columns, &[value(or)]);
        }
        let columns = batch(&[(BOOL, vec![a.clone()])]);
        let arg = || Box::new(col(0, BOOL));
        check(&boolean(ExprKind::Not(arg())), &columns, &[value(truth(a).map(|b| !b))]);
        for negated in [false, true] {
            let is_null = ExprKind::IsNull { arg: arg(), negated };
            check(&boolean(is_null), &columns, &[Value::Boolean(a.is_null() != negated)]);
            for asked in [false, true] {
                let is = ExprKind::IsBoolean { arg: arg(), value: asked, negated };
                check(
                    &boolean(is),
                    &columns,
                    &[Value::Boolean((truth(a) == Some(asked)) != negated)],
                );
            }
        }
    }
}

#[test]
fn in_lists() {
    let columns = batch(&[(I64, vec![int(1), int(9), Value::Null])]);
    let list = |values: &[Value]| values.iter().map(|v| lit(v.clone(), I64)).collect::<Vec<_>>();
    let is_in = |values: &[Value], negated| {
        boolean(ExprKind::InList { arg: Box::new(col(0, I64)), list: list(values), negated })
    };
    let (t, f, n) = (Value::Boolean(true), Value::Boolean(false), Value::Null);
    let short = [int(1), int(2)];
    let long = [int(1), int(2), int(3), int(4), int(5), int(6)];
    let short_null = [int(1), n.clone()];
    let long_null = [int(1), int(2), int(3), int(4), int(5), n.clone()];
    for values in [&short[..], &long] {
        check(&is_in(values, false), &columns, &[t.clone(), f.clone(), n.clone()]);
        check(&is_in(values, true), &columns, &[f.clone(), t.clone(), n.clone()]);
    }
    for values in [&short_null[..], &long_null] {
        check(&is_in(values, false), &columns, &[t.clone(), n.clone(), n.clone()]);
        check(&is_in(values, true), &columns, &[f.clone(), n.clone(), n.clone()]);
    }
    let texts = batch(&[(DataType::TEXT, vec![text("b"), text("zz"), n.clone()])]);
    let words = ["a", "b", "c", "d", "e"].map(|w| lit(text(w), DataType::TEXT)).to_vec();
    let arg = Box::new(col(0, DataType::TEXT));
    check(
        &boolean(ExprKind::InList { arg, list: words, negated: false }),
        &texts,
        &[t.clone(), f.clone(), n.clone()],
    );
    // A column among the candidates.
    for (constant, expected) in [("b", [&t, &t, &t]), ("c", [&f, &f, &n])] {
        let list = vec![
            col(0, DataType::TEXT),
            lit(text(if constant == "b" { "b" } else { "x" }), DataType::TEXT),
        ];
        let arg = || Box::new(lit(text(constant), DataType::TEXT));
        let expected = expected.map(Value::clone);
        check(
            &boolean(ExprKind::InList { arg: arg(), list: list.clone(), negated: false }),
            &texts,
            &expected,
        );
    }
}

#[test]
fn a_branch_not_taken_raises_nothing() {
    let columns = batch(&[(I64, vec![int(0), int(2), Value::Null, int(1)])]);
    let x = || col(0, I64);
    let inverse = || binary(IntegerDivide, lit(int(10), I64), x(), I64);
    let not_zero = || compare(NotEqual, x(), lit(int(0), I64));
    let case = Expr {
        kind: ExprKind::Case { branches: vec![(not_zero(), inverse())], otherwise: None },
        data_type: I64,
    };
    check(&case, &columns, &[Value::Null, int(5), Value::Null, int(10)]);
    let big = || compare(Greater, inverse(), lit(int(5), I64));
    let (t, f, n) = (Value::Boolean(true), Value::Boolean(false), Value::Null);
    check(
        &boolean(ExprKind::And(vec![not_zero(), big()])),
        &columns,
        &[f.clone(), f.clone(), n.clone(), t.clone()],
    );
    let zero = compare(Equal, x(), lit(int(0), I64));
    check(&boolean(ExprKind::Or(vec![zero, big()])), &columns, &[t.clone(), f, n, t]);
    let coalesce = call("coalesce", vec![x(), inverse(), lit(int(-1), I64)], I64);
    check(&coalesce, &columns, &[int(0), int(2), int(-1), int(1)]);
    let fixture = Fixture::new();
    assert_eq!(filter(&[not_zero(), big()], &columns, &fixture.context()).unwrap(), [3]);
    assert_eq!(
        filter(&[boolean(ExprKind::And(vec![not_zero(), big()]))], &columns, &fixture.context())
            .unwrap(),
        [3]
    );
    assert!(filter(&[big()], &columns, &fixture.context()).is_err());
    let either = boolean(ExprKind::Or(vec![compare(Equal, x(), lit(int(0), I64)), big()]));
    assert_eq!(filter(&[either], &columns, &fixture.context()).unwrap(), [0, 3]);
}

#[test]
fn case_mixes_branches_of_every_type() {
    for data_type in [I64, DataType::TEXT, DataType::Float64, DataType::UInt64, BOOL] {
        let mut random = Random::new(5);
        let values: Vec<Value> =
            (0..20).map(|_| random_value(&mut random, data_type, 9, 3)).collect();
        let flags: Vec<Value> = (0..20).map(|_| random_value(&mut random, BOOL, 2, 3)).collect();
        let columns = batch(&[(BOOL, flags.clone()), (data_type, values.clone())]);
        let other = random_value(&mut random, data_type, 9, 0);
        let kind = ExprKind::Case {
            branches: vec![(col(0, BOOL), col(1, data_type))],
            otherwise: Some(Box::new(lit(other.clone(), data_type))),
        };
        let expected: Vec<_> = flags
            .iter()
            .zip(values)
            .map(|(flag, value)| if *flag == Value::Boolean(true) { value } else { other.clone() })
            .collect();
        check(&Expr { kind, data_type }, &columns, &expected);
    }
}

#[test]
fn dictionary_entries_no_row_uses_raise_nothing() {
    let values =
        Vector::from_values(DataType::TEXT, &[text("1"), text("x"), text("3")]).flat().into_owned();
    let coded = Vector::dictionary(DataType::TEXT, vec![0, 2, 2, 0], Arc::new(values), None);
    let batch = Batch::new(vec![Arc::new(coded)], 4);
    let expected = [int(1), int(3), int(3), int(1)];
    assert_eq!(eval(&cast(col(0, DataType::TEXT), I64), &batch).unwrap(), expected);
}

#[test]
fn like_patterns() {
    for (value, pattern, expected) in [
        ("special requests", "%special%requests%", true),
        ("special", "%special%requests%", false),
        ("PROMO BRUSHED", "PROMO%", true),
        ("forest green", "forest%", true),
        ("large brass", "%brass", true),
        ("large brassy", "%brass", false),
        ("abc", "a_c", true),
        ("aéc", "a_c", true),
        ("aéc", "a__c", false),
        ("", "%", true),
        ("", "_", false),
        ("aXbXc", "%X_", true),
        ("100%", "100\\%", true),
        ("1000", "100\\%", false),
        ("aaab", "%aab", true),
        ("abab", "ab%ab", true),
        ("ab", "ab%ab", false),
        ("日本語", "%本%", true),
        ("日本語", "_本_", true),
        ("xaby", "%_b%", true),
    ] {
        let like = |pattern: Expr, negated, case_insensitive| {
            let (arg, pattern) = (Box::new(col(0, DataType::TEXT)), Box::new(pattern));
            boolean(ExprKind::Like { arg, pattern, escape: None, negated, case_insensitive })
        };
        let columns =
            batch(&[(DataType::TEXT, vec![text(value)]), (DataType::TEXT, vec![text(pattern)])]);
        let constant = || lit(text(pattern), DataType::TEXT);
        check(&like(constant(), false, false), &columns, &[Value::Boolean(expected)]);
        check(&like(constant(), true, false), &columns, &[Value::Boolean(!expected)]);
        check(&like(col(1, DataType::TEXT), false, false), &columns, &[Value::Boolean(expected)]);
    }
    let arg = Box::new(lit(text("PROMO x"), DataType::TEXT));
    let pattern = Box::new(lit(text("promo!_%"), DataType::TEXT));
    let kind =
        ExprKind::Like { arg, pattern, escape: Some('!'), negated: false, case_insensitive: true };
    check_one(boolean(kind), Value::Boolean(false));
    let dangling = Box::new(lit(text("a\\"), DataType::TEXT));
    let arg = Box::new(lit(text("a"), DataType::TEXT));
    let kind = ExprKind::Like {
        arg,
        pattern: dangling,
        escape: None,
        negated: false,
        case_insensitive: false,
    };
    check_error(&boolean(kind), &one(), "22025");
}

#[test]
fn casts() {
    let day = nacre_types::temporal::parse_date("2024-02-29").unwrap();
    let ok: Vec<(Value, DataType, Value)> = vec![
        (text(" 42 "), I64, int(42)),
        (text("1.005"), decimal(5, 2), dec(101, 2)),
        (text("t"), BOOL, Value::Boolean(true)),
        (text("2024-02-29"), DataType::Date, Value::Date(day)),
        (text("2.5e3"), DataType::Float64, Value::Float(2500.0)),
        (
            text("1 day 02:00:00"),
            DataType::Interval,
            Value::Interval(Interval { months: 0, days: 1, micros: 7_200_000_000 }),
        ),
        (
            text("{\"a\": [1, 2.5e1, null]}"),
            DataType::Json,
            Value::Json("{\"a\":[1,2.5e1,null]}".into()),
        ),
        (
            Value::Json("{\"a\": 1, \"a\": 2}".into()),
            DataType::Json,
            Value::Json("{\"a\":2}".into()),
        ),
        (text("ab"), DataType::BLOB, Value::Binary(b"ab".to_vec())),
        (int(5), decimal(4, 2), dec(500, 2)),
        (dec(-125, 1), I64, int(-13)),
        (Value::Float(2.5), DataType::Int32, int(3)),
        (Value::Float(0.1), decimal(3, 2), dec(10, 2)),
        (int(7), DataType::UInt64, Value::UInt(7)),
        (int(3), DataType::TEXT, text("3")),
        (dec(-5, 2), DataType::TEXT, text("-0.05")),
        (Value::Boolean(true), I64, int(1)),
        (Value::Date(day), DataType::Timestamp, Value::Timestamp(day as i64 * 86_400_000_000)),
        (Value::Timestamp(-1), DataType::Date, Value::Date(-1)),
        (Value::Null, DataType::Date, Value::Null),
    ];
    for (value, to, expected) in ok {
        let from = value.natural_type();
        assert_eq!(cast_value(&value, to).unwrap(), expected, "{value} to {to}");
        // Vectors hold JSON in its normal form: only a value that a program made is not.
        if !value.is_null() && from != to {
            check(&cast(col(0, from), to), &batch(&[(from, vec![value])]), &[expected]);
        }
    }
    for (value, to, sqlstate) in [
        (text("4x"), I64, "22P02"),
        (text(""), DataType::Float64, "22P02"),
        (text("2023-02-29"), DataType::Date, "22P02"),
        (text("{"), DataType::Json, "22032"),
        (text("300"), DataType::UInt8, "22003"),
        (text("1e999"), DataType::Float64, "22003"),
        (int(-1), DataType::UInt64, "22003"),
        (int(128), DataType::Int8, "22003"),
        (Value::Float(f64::NAN), I64, "22003"),
        (Value::Float(1e300), DataType::Float32, "22003"),
        (dec(1000, 0), decimal(3, 0), "22003"),
        (text("abcd"), DataType::Text { max_chars: Some(3) }, "22001"),
        (Value::Date(0), I64, "42846"),
        (Value::Binary(vec![0xff]), DataType::TEXT, "22P02"),
    ] {
        let error = cast_value(&value, to).expect_err("an error");
        assert_eq!(
            (error.kind(), error.sqlstate()),
            (ErrorKind::Type, sqlstate),
            "{value} to {to}: {error}"
        );
        check_error(&cast(lit(value.clone(), value.natural_type()), to), &one(), sqlstate);
    }
    let float = batch(&[(DataType::Float32, vec![Value::Float(0.1f32 as f64)])]);
    check(&cast(col(0, DataType::Float32), DataType::TEXT), &float, &[text("0.1")]);
}

#[test]
fn parameters_are_constants() {
    let mut fixture = Fixture::new();
    fixture.parameters = vec![int(5)];
    let parameter = |index| Expr { kind: ExprKind::Parameter(index), data_type: I64 };
    assert_eq!(evaluate_constant(&parameter(0), &fixture.context()).unwrap(), int(5));
    assert_eq!(
        evaluate_constant(&parameter(1), &fixture.context()).unwrap_err().sqlstate(),
        "07001"
    );
}
