//! Computes several sums of one expression and constants from one sum: `sum(x + 3)` is
//! `sum(x) + 3 * count(x)`. Only where `x + 3` cannot overflow, so that no error is lost.

use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind};
use crate::plan::{Field, Plan};
use nacre_function::aggregate::count::COUNT;
use nacre_function::aggregate::sum::SUM;
use nacre_types::{DataType, Value};

/// Constants up to this many cannot make the sum with a narrower integer leave `BIGINT`.
const MOST: i64 = 1 << 61;
/// The type of sums of integers.
const TOTAL: DataType = DataType::Decimal { precision: 38, scale: 0 };
/// The type of counts and constants as factors: their product has the type of sums.
const FACTOR: DataType = DataType::Decimal { precision: 19, scale: 0 };

/// A sum of `plus` and an expression, or of `plus` less the expression.
struct Shifted {
    of: Expr,
    is_negated: bool,
    plus: i64,
}

/// Rewrites sums in all aggregations of a plan.
pub(super) fn share(plan: &mut Plan) {
    plan.for_each_own_input_mut(&mut share);
    let Plan::Aggregate { input, groups, aggregates, fields } = plan else { return };
    let sums: Vec<Option<Shifted>> = aggregates.iter().map(shifted).collect();
    let same = |a: usize, b: usize| match (&sums[a], &sums[b]) {
        (Some(x), Some(y)) => x.of == y.of && aggregates[a].filter == aggregates[b].filter,
        _ => false,
    };
    let is_shared = |at: usize| {
        let others = (0..sums.len()).filter(|other| same(at, *other));
        others.clone().count() > 2
            && sums[at].as_ref().is_some_and(|sum| sum.plus != 0 || sum.is_negated)
    };
    let shared: Vec<bool> = (0..sums.len()).map(is_shared).collect();
    if !shared.contains(&true) {
        return;
    }
    let old = std::mem::take(fields);
    let keys = groups.len();
    let mut kept: Vec<Aggregate> = Vec::new();
    let mut new_fields: Vec<Field> = old[..keys].to_vec();
    let mut exprs: Vec<Expr> =
        old[..keys].iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect();
    for (at, aggregate) in std::mem::take(aggregates).into_iter().enumerate() {
        let field = &old[keys + at];
        let mut place = |aggregate: Aggregate, field: Field| {
            let data_type = aggregate.data_type;
            let known = kept.iter().position(|known| *known == aggregate);
            let at = known.unwrap_or_else(|| {
                kept.push(aggregate);
                new_fields.push(field);
                kept.len() - 1
            });
            Expr::column(keys + at, data_type)
        };
        match &sums[at] {
            Some(sum) if shared[at] => {
                let total = Aggregate { args: vec![sum.of.clone()], ..aggregate };
                let function = (&COUNT).into();
                let count = Aggregate { function, data_type: DataType::Int64, ..total.clone() };
                let named =
                    Field { name: "count".into(), data_type: DataType::Int64, nullable: false };
                let (total, count) = (place(total, field.clone()), place(count, named));
                exprs.push(restored(sum, total, count));
            }
            _ => exprs.push(place(aggregate, field.clone())),
        }
    }
    let input = std::mem::replace(&mut **input, Plan::nothing());
    let (groups, fields) = (std::mem::take(groups), new_fields);
    let aggregate = Plan::Aggregate { input: Box::new(input), groups, aggregates: kept, fields };
    *plan = Plan::Project { input: Box::new(aggregate), exprs, fields: old };
}

/// The constant in the argument of a sum of integers, 0 if there is none.
fn shifted(aggregate: &Aggregate) -> Option<Shifted> {
    let [arg] = &aggregate.args[..] else { return None };
    if aggregate.function != (&SUM).into()
        || aggregate.distinct
        || !aggregate.order.is_empty()
        || aggregate.data_type != TOTAL
    {
        return None;
    }
    let narrow = |e: &Expr| {
        use DataType::{Int8, Int16, Int32, UInt8, UInt16, UInt32};
        matches!(e.data_type, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32)
    };
    let constant = |e: &Expr| match e.kind {
        ExprKind::Literal(Value::Int(value)) => Some(value).filter(|v| (-MOST..=MOST).contains(v)),
        _ => None,
    };
    let parts = match &arg.kind {
        ExprKind::Binary { op, left, right } if arg.data_type == DataType::Int64 => {
            match (op, constant(left), constant(right)) {
                (BinaryOp::Add, None, Some(plus)) => Some((left, false, plus)),
                (BinaryOp::Subtract, None, Some(minus)) => Some((left, false, -minus)),
                (BinaryOp::Add, Some(plus), None) => Some((right, false, plus)),
                (BinaryOp::Subtract, Some(plus), None) => Some((right, true, plus)),
                _ => None,
            }
        }
        _ => None,
    };
    match parts {
        Some((of, is_negated, plus)) if narrow(of) => {
            Some(Shifted { of: (**of).clone(), is_negated, plus })
        }
        _ if narrow(arg) => Some(Shifted { of: arg.clone(), is_negated: false, plus: 0 }),
        _ => None,
    }
}

/// The sum of `sum.plus` and an expression, from the expression's sum and count.
fn restored(sum: &Shifted, total: Expr, count: Expr) -> Expr {
    let binary = |op, left, right| Expr {
        kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) },
        data_type: TOTAL,
    };
    let count = Expr { kind: ExprKind::Cast(Box::new(count)), data_type: FACTOR };
    let plus = Value::Decimal { unscaled: sum.plus.into(), scale: 0 };
    let plus = binary(BinaryOp::Multiply, Expr::literal(plus, FACTOR), count);
    match sum.is_negated {
        true => binary(BinaryOp::Subtract, plus, total),
        false => binary(BinaryOp::Add, total, plus),
    }
}
