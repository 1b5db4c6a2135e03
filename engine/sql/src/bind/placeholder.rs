//! Finding and resolving placeholders of aggregates and window functions.

use crate::expr::{Expr, ExprKind, Placeholder};

/// Whether an expression has a placeholder that passes `test`.
pub(super) fn holds(expr: &Expr, test: &dyn Fn(Placeholder) -> bool) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Placeholder(of) if test(of));
    expr.for_each_child(&mut |e| found = found || holds(e, test));
    found
}

/// Replaces every placeholder by an expression of the same type.
pub(super) fn resolve(expr: &mut Expr, by: &dyn Fn(Placeholder) -> ExprKind) {
    if let ExprKind::Placeholder(of) = expr.kind {
        expr.kind = by(of);
    }
    expr.for_each_child_mut(&mut |e| resolve(e, by));
}

/// Whether an expression uses an aggregate of the query, or the number of its grouping set.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    holds(expr, &|of| matches!(of, Placeholder::Aggregate(_) | Placeholder::Grouping(_)))
}

/// Whether an expression uses a window function of the query.
pub(super) fn has_window(expr: &Expr) -> bool {
    holds(expr, &|of| matches!(of, Placeholder::Window(_)))
}
