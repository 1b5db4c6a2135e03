//! How much joins look at.

use crate::build;
use crate::testing::*;
use nacre_sql::expr::BinaryOp;
use nacre_sql::plan::{Field, JoinKind, Plan};
use nacre_types::{DataType, Value};

const I64: DataType = DataType::Int64;

fn numbers(values: impl Iterator<Item = i64>) -> Box<Plan> {
    let field = Field { name: "n".into(), data_type: I64, nullable: false };
    Box::new(Plan::Values { fields: vec![field], rows: values.map(|v| vec![lit(int(v), I64)]).collect() })
}

#[test]
fn rows_with_a_partner_look_for_no_other() {
    let fixture = Fixture::new();
    let context = fixture.context();
    // Most left rows have a partner in the first right row, the others further on; who gets to the last one fails.
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
        assert_eq!(run(&mut *build(&join, &context).unwrap(), &context).unwrap(), expected, "{kind:?}");
    }
}
