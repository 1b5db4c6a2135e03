//! How many rows a plan yields, roughly: table sizes and fixed selectivities. Only ratios matter, and
//! only for join order and build sides.

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Catalog, JoinKind, Plan};
use nacre_types::{TableSchema, Value};

/// Rows of a plan's output.
pub(crate) fn rows(plan: &Plan, catalog: &dyn Catalog) -> f64 {
    let rows = match plan {
        Plan::Scan { table, projection, filters } => {
            let mut rows = catalog.row_count(table) as f64;
            let equal = |column: usize| filters.iter().any(|f| is_equal_to_constant(f, column));
            let key = table.primary_key.as_ref();
            let by_key = key
                .is_some_and(|k| k.columns.iter().all(|c| projection.iter().position(|p| p == c).is_some_and(equal)));
            if by_key {
                return 1.0;
            }
            for filter in filters {
                rows *= selectivity(filter);
            }
            rows
        }
        Plan::Values { rows, .. } => rows.len() as f64,
        Plan::Filter { input, predicate } => rows(input, catalog) * selectivity(predicate),
        Plan::Project { input, .. } | Plan::Sort { input, .. } | Plan::Window { input, .. } => rows(input, catalog),
        Plan::Aggregate { groups, .. } if groups.is_empty() => 1.0,
        Plan::Aggregate { input, .. } => rows(input, catalog) / 4.0,
        Plan::Join { left, right, kind, keys, .. } => {
            let (l, r) = (rows(left, catalog), rows(right, catalog));
            match kind {
                JoinKind::Semi | JoinKind::Anti => l / 2.0,
                JoinKind::RightSemi | JoinKind::RightAnti => r / 2.0,
                JoinKind::Mark | JoinKind::MarkIn | JoinKind::Single => l,
                _ if keys.is_empty() => l * r,
                _ => l.max(r),
            }
        }
        Plan::Union { inputs, .. } => inputs.iter().map(|input| rows(input, catalog)).sum(),
        Plan::SetOperation { left, .. } => rows(left, catalog) / 2.0,
        Plan::Limit { input, limit, .. } => match limit.as_ref().map(|l| &l.kind) {
            Some(ExprKind::Literal(Value::Int(n))) => rows(input, catalog).min(*n as f64),
            _ => rows(input, catalog),
        },
        Plan::LimitBy { input, .. } => rows(input, catalog) / 2.0,
        Plan::Given { .. } => 1_000.0,
        Plan::Recursive { base, .. } => 10.0 * rows(base, catalog),
        Plan::Shared { input, .. } => rows(input, catalog),
    };
    rows.max(1.0)
}

fn is_equal_to_constant(filter: &Expr, column: usize) -> bool {
    match &filter.kind {
        ExprKind::Binary { op: BinaryOp::Equal, left, right } => {
            matches!(left.kind, ExprKind::Column(at) if at == column)
                && matches!(right.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
        }
        _ => false,
    }
}

/// Share of rows a condition lets through.
pub(crate) fn selectivity(condition: &Expr) -> f64 {
    match &condition.kind {
        ExprKind::Binary { op, .. } => match op {
            BinaryOp::Equal | BinaryOp::NotDistinct => 0.05,
            BinaryOp::NotEqual | BinaryOp::Distinct => 0.9,
            _ => 0.3,
        },
        ExprKind::And(list) => list.iter().map(selectivity).product(),
        ExprKind::Or(list) => list.iter().map(selectivity).sum::<f64>().min(0.9),
        ExprKind::InList { list, negated, .. } => {
            let share = (0.05 * list.len() as f64).min(0.5);
            if *negated { 1.0 - share } else { share }
        }
        ExprKind::Like { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        ExprKind::IsNull { negated, .. } => {
            if *negated {
                0.95
            } else {
                0.05
            }
        }
        ExprKind::Not(arg) => 1.0 - selectivity(arg),
        ExprKind::Literal(Value::Boolean(false) | Value::Null) => 0.0001,
        _ => 0.5,
    }
}

/// Distinct values, roughly, of columns (positions in the table) an equi-join matches, and whether they
/// cover the primary key.
pub(crate) fn distinct(table: &TableSchema, matched: &[usize], catalog: &dyn Catalog) -> (f64, bool) {
    let rows = (catalog.row_count(table) as f64).max(1.0);
    let Some(key) = &table.primary_key else { return (rows.sqrt(), false) };
    let covered = key.columns.iter().filter(|c| matched.contains(c)).count();
    if covered == key.columns.len() {
        return (rows, true);
    }
    let share = covered as f64 / key.columns.len() as f64;
    (rows.powf(share.max(0.5)), false)
}
