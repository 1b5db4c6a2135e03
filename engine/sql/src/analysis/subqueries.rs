//! What expressions and plans refer to besides their own row: subqueries and enclosing rows.

use crate::expr::{Expr, ExprKind};
use crate::plan::Plan;

/// Whether an expression contains a subquery.
pub(crate) fn has_subquery(expr: &Expr) -> bool {
    if matches!(expr.kind, ExprKind::Subquery(_)) {
        return true;
    }
    let mut found = false;
    expr.for_each_child(&mut |e| found |= has_subquery(e));
    found
}

/// Whether an expression refers to the enclosing row of this frame.
pub(crate) fn is_outer(expr: &Expr, frame: u32) -> bool {
    match &expr.kind {
        ExprKind::Outer { frame: f, .. } => *f == frame,
        ExprKind::Subquery(sub) if correlated(&sub.plan, frame) => true,
        _ => {
            let mut found = false;
            expr.for_each_child(&mut |e| found |= is_outer(e, frame));
            found
        }
    }
}

/// Whether a plan refers to the enclosing row of this frame.
pub(crate) fn correlated(plan: &Plan, frame: u32) -> bool {
    plan.any_node(&mut |node| {
        let mut found = false;
        node.for_each_expr(&mut |e| found = found || is_outer(e, frame));
        found
    })
}

/// Collects the arguments of the frame that a plan refers to, ascending.
pub(crate) fn used_args(plan: &Plan, frame: u32, used: &mut Vec<usize>) {
    fn walk(expr: &Expr, frame: u32, used: &mut Vec<usize>) {
        match &expr.kind {
            ExprKind::Outer { frame: f, index } if *f == frame => {
                if let Err(at) = used.binary_search(index) {
                    used.insert(at, *index);
                }
            }
            _ => expr.for_each_child(&mut |e| walk(e, frame, used)),
        }
    }
    plan.any_node(&mut |node| {
        node.for_each_expr(&mut |e| walk(e, frame, used));
        false
    });
}

/// Whether an expression reads columns of its input row.
pub(crate) fn has_column(expr: &Expr) -> bool {
    if matches!(expr.kind, ExprKind::Column(_)) {
        return true;
    }
    let mut found = false;
    expr.for_each_child(&mut |e| found |= has_column(e));
    found
}
