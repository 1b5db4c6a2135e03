//! How many pairs joins check, and how many rows they return at a time.

use crate::build;
use crate::testing::*;
use nacre_operator::buffer::limits::BATCH_BYTES;
use nacre_sql::expr::BinaryOp;
use nacre_sql::plan::{Field, JoinKind, Plan};
use nacre_types::{DataType, Value};

const I64: DataType = DataType::Int64;

fn numbers(values: impl Iterator<Item = i64>) -> Box<Plan> {
    let field = Field { name: "n".into(), data_type: I64, nullable: false };
    Box::new(Plan::Values {
        fields: vec![field],
        rows: values.map(|v| vec![lit(int(v), I64)]).collect(),
    })
}

#[test]
fn rows_with_a_partner_need_no_other() {
    let fixture = Fixture::new();
    let context = fixture.context();
    // Most left rows find their partner in the first right row. The residual fails on the last
    // right row, so a row that reaches it raises an error.
    let quotient = binary(BinaryOp::IntegerDivide, lit(int(4_000_000), I64), col(1, I64), I64);
    let residual = compare(BinaryOp::LessOrEqual, col(0, I64), quotient);
    for (kind, expected) in [
        (JoinKind::Semi, (1..=300).map(|n| vec![int(n)]).collect()),
        (JoinKind::Anti, Vec::new()),
        (JoinKind::Mark, (1..=300).map(|n| vec![int(n), Value::Boolean(true)]).collect()),
        (JoinKind::MarkIn, (1..=300).map(|n| vec![int(n), Value::Boolean(true)]).collect()),
    ] {
        let join = Plan::Join {
            left: numbers(1..=300),
            right: numbers((0..=20_000).rev()),
            kind,
            keys: Vec::new(),
            residual: Some(residual.clone()),
        };
        assert_eq!(
            run(&mut *build(&join, &context).unwrap(), &context).unwrap(),
            expected,
            "{kind:?}"
        );
    }
}

#[test]
fn pairs_with_long_texts_come_a_few_at_a_time() {
    const PAIRS: usize = 40;
    let fixture = Fixture::new();
    let context = fixture.context();
    let long = text(&"x".repeat(BATCH_BYTES / 3));
    let field = |data_type| Field { name: "c".into(), data_type, nullable: true };
    let wide = || {
        let row = |n| vec![lit(int(n), I64), lit(long.clone(), DataType::TEXT)];
        Box::new(Plan::Values {
            fields: vec![field(I64), field(DataType::TEXT)],
            rows: (0..2).map(row).collect(),
        })
    };
    let many = || numbers((0..PAIRS as i64).map(|n| n % 2));
    for (kind, mirrored, rows) in [
        (JoinKind::Inner, false, PAIRS),
        (JoinKind::Inner, true, PAIRS),
        (JoinKind::Left, false, PAIRS),
        (JoinKind::Full, true, PAIRS),
    ] {
        let (left, right) = if mirrored { (many(), wide()) } else { (wide(), many()) };
        let join = Plan::Join {
            left,
            right,
            kind,
            keys: vec![(col(0, I64), col(0, I64))],
            residual: None,
        };
        let mut operator = build(&join, &context).unwrap();
        let mut found = 0;
        while let Some(batch) = operator.next(&context).unwrap() {
            let bytes = batch.flat_bytes();
            assert!(
                bytes <= BATCH_BYTES + 100_000,
                "{kind:?}: {bytes} bytes in {} rows",
                batch.rows
            );
            for row in rows_of(&batch) {
                assert_eq!(
                    (&row[0], row.contains(&long)),
                    (&row[if mirrored { 1 } else { 2 }], true)
                );
                found += 1;
            }
        }
        assert_eq!(found, rows);
    }
    // A value of a subquery has one row, wherever the pairs are cut.
    let single = Plan::Join {
        left: many(),
        right: wide(),
        kind: JoinKind::Single,
        keys: vec![(col(0, I64), col(0, I64))],
        residual: None,
    };
    assert_eq!(run(&mut *build(&single, &context).unwrap(), &context).unwrap().len(), PAIRS);
    let single = Plan::Join {
        left: wide(),
        right: many(),
        kind: JoinKind::Single,
        keys: Vec::new(),
        residual: None,
    };
    assert_eq!(
        run(&mut *build(&single, &context).unwrap(), &context).unwrap_err().sqlstate(),
        "21000"
    );
}
