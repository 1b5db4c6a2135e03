//! Limits how large expressions become when columns are replaced by their definitions. `x + x` over
//! `x + x` over … doubles at every level, so pushing it through all levels could exhaust memory.

use crate::expr::{Expr, ExprKind};

/// The most nodes by which an expression may grow when its columns are replaced.
pub(crate) const MAX_GROWTH: usize = 256;

/// Counts the nodes of an expression after replacing each column by an expression of `by(column)`
/// nodes.
pub(crate) fn replaced(expr: &Expr, by: &dyn Fn(usize) -> usize) -> usize {
    let mut nodes = match expr.kind {
        ExprKind::Column(at) => by(at),
        _ => 1,
    };
    expr.for_each_child(&mut |e| nodes = nodes.saturating_add(replaced(e, by)));
    nodes
}

pub(crate) fn nodes(expr: &Expr) -> usize {
    replaced(expr, &|_| 1)
}

/// Whether an expression grows too much when its columns are replaced.
pub(crate) fn grows(expr: &Expr, by: &[Expr]) -> bool {
    replaced(expr, &|at| by.get(at).map_or(1, nodes)) > nodes(expr).saturating_add(MAX_GROWTH)
}
