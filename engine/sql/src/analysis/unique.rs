//! Determines which columns identify a row of a plan.

use crate::expr::{Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_types::Value;
use nacre_types::hash::Set;

/// Whether at most one row has given values in the columns for which `fixed` holds.
pub(crate) fn unique_on(plan: &Plan, fixed: &dyn Fn(usize) -> bool) -> bool {
    at_most_one(plan, fixed, true)
}

/// Like [`unique_on`], ignoring rows with a null in one of the columns, as `=` does.
pub(crate) fn unique_among_equal(plan: &Plan, fixed: &dyn Fn(usize) -> bool) -> bool {
    at_most_one(plan, fixed, false)
}

fn at_most_one(plan: &Plan, fixed: &dyn Fn(usize) -> bool, with_nulls: bool) -> bool {
    let unique_on =
        |plan: &Plan, fixed: &dyn Fn(usize) -> bool| at_most_one(plan, fixed, with_nulls);
    let is_one = |limit: &Option<Expr>| matches!(limit.as_ref().map(|l| &l.kind), Some(ExprKind::Literal(Value::Int(n))) if *n <= 1);
    let column = |e: &Expr| match e.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    };
    match plan {
        Plan::Aggregate { groups, .. } => (0..groups.len()).all(fixed),
        Plan::Values { rows, .. } => rows.len() <= 1,
        Plan::Filter { input, .. } | Plan::Sort { input, .. } => unique_on(input, fixed),
        Plan::Limit { input, limit, .. } => is_one(limit) || unique_on(input, fixed),
        Plan::Node(node) => node.is_unique(fixed, &unique_on),
        Plan::Project { input, exprs, .. } => {
            // Resolve each column once, not once per use at every level.
            let of = |(i, e): (usize, &Expr)| column(e).filter(|_| fixed(i));
            let below: Set<usize> = exprs.iter().enumerate().filter_map(of).collect();
            unique_on(input, &|at| below.contains(&at))
        }
        Plan::Scan { table, projection, .. } => {
            let is_fixed = |c: &usize| projection.iter().position(|p| p == c).is_some_and(fixed);
            table.unique_sets(with_nulls).any(|set| set.iter().all(is_fixed))
        }
        Plan::Join {
            left,
            kind: JoinKind::Semi | JoinKind::Anti | JoinKind::Mark | JoinKind::MarkIn,
            ..
        } => unique_on(left, fixed),
        Plan::Join { right, kind: JoinKind::RightSemi | JoinKind::RightAnti, .. } => {
            unique_on(right, fixed)
        }
        Plan::Join { left, right, kind: JoinKind::Inner, .. } => {
            let width = left.fields().len();
            unique_on(left, fixed) && unique_on(right, &|at| fixed(at + width))
        }
        _ => false,
    }
}
