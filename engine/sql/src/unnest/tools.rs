//! Predicates and small rewrites on plans and expressions that unnesting uses.

use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind};
use crate::plan::node::limit_by::LimitBy;
use crate::plan::{Field, JoinKind, Plan};
use nacre_types::DataType;
use nacre_types::hash::Set;

/// All columns as expressions.
pub(super) fn columns_of(fields: &[Field]) -> Vec<Expr> {
    fields.iter().enumerate().map(|(at, f)| Expr::column(at, f.data_type)).collect()
}

/// The first `width` columns of a plan.
pub(super) fn first_columns(plan: Plan, width: usize) -> Plan {
    let mut fields = plan.fields();
    if fields.len() == width {
        return plan;
    }
    fields.truncate(width);
    Plan::Project { input: Box::new(plan), exprs: columns_of(&fields), fields }
}

/// One row without columns.
pub(super) fn one_empty_row() -> Plan {
    Plan::Values { fields: Vec::new(), rows: vec![Vec::new()] }
}

/// Whether a plan is one row without columns.
pub(super) fn is_one_empty_row(plan: &Plan) -> bool {
    matches!(plan, Plan::Values { fields, rows } if fields.is_empty() && rows.len() == 1)
}

/// Whether a plan yields exactly one row.
pub(super) fn exactly_one_row(plan: &Plan) -> bool {
    // A shared plan met before returns one row: otherwise the search would have stopped there.
    fn is_one(plan: &Plan, seen: &mut Set<u32>) -> bool {
        match plan {
            Plan::Aggregate { groups, .. } => groups.is_empty(),
            Plan::Values { rows, .. } => rows.len() == 1,
            Plan::Project { input, .. } | Plan::Sort { input, .. } => is_one(input, seen),
            Plan::Shared { id, input } => !seen.insert(*id) || is_one(input, seen),
            Plan::Join { left, right, kind: JoinKind::Inner, keys, residual: None }
                if keys.is_empty() =>
            {
                is_one(left, seen) && is_one(right, seen)
            }
            _ => false,
        }
    }
    is_one(plan, &mut Set::default())
}

/// Whether the plan is an aggregate without groups, possibly below filters and projections.
pub(super) fn over_one_row(plan: &Plan) -> bool {
    match plan {
        Plan::Filter { input, .. } => over_one_row(input),
        Plan::Limit { input, .. } => over_one_row(input),
        Plan::Node(_) => plan.as_node::<LimitBy>().is_some_and(|node| over_one_row(&node.input)),
        Plan::Project { input, .. } | Plan::Sort { input, .. } => over_one_row(input),
        Plan::Aggregate { groups, .. } => groups.is_empty(),
        _ => false,
    }
}

/// The value of an aggregate over no rows.
pub(super) fn empty_value(aggregate: &Aggregate) -> Expr {
    Expr::literal(aggregate.function.over_nothing(), aggregate.data_type)
}

/// Whether an expression is null when the columns for which `null` holds are.
pub(super) fn null_of_null(expr: &Expr, null: &dyn Fn(usize) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Column(at) => null(*at),
        ExprKind::Literal(value) => value.is_null(),
        ExprKind::Cast(arg) | ExprKind::Negate(arg) | ExprKind::Not(arg) => null_of_null(arg, null),
        ExprKind::Binary { op, left, right }
            if !matches!(op, BinaryOp::Distinct | BinaryOp::NotDistinct) =>
        {
            null_of_null(left, null) || null_of_null(right, null)
        }
        _ => false,
    }
}

/// `expr IS TRUE`.
pub(super) fn is_true(expr: Expr) -> Expr {
    let kind = ExprKind::IsBoolean { arg: Box::new(expr), value: true, negated: false };
    Expr { kind, data_type: DataType::Boolean }
}

/// The cross product.
pub(super) fn cross(left: Plan, right: Plan) -> Plan {
    let (left, right) = (Box::new(left), Box::new(right));
    Plan::Join { left, right, kind: JoinKind::Inner, keys: Vec::new(), residual: None }
}
