//! Helpers on expressions that the rules share: finding, moving and replacing columns, and
//! splitting conditions into conjuncts.

use crate::analysis::may_fail::expr_may_fail;
use crate::expr::{Expr, ExprKind};
use crate::plan::tree::ColumnMap;
use nacre_types::invariant::broken;
use nacre_types::{DataType, Value, invariant};

/// Replaces every column position by `to` of it.
pub(crate) fn remap(expr: &mut Expr, to: &dyn Fn(usize) -> usize) {
    if let ExprKind::Column(at) = &mut expr.kind {
        *at = to(*at);
    }
    expr.for_each_child_mut(&mut |e| remap(e, to));
}

/// Shifts every column position by `delta`.
pub(crate) fn shift_columns(expr: &mut Expr, delta: isize) {
    remap(expr, &|at| at.saturating_add_signed(delta));
}

/// Replaces every column by its definition.
pub(crate) fn substitute(expr: &mut Expr, by: &[Expr]) {
    if let ExprKind::Column(at) = expr.kind {
        if let Some(replacement) = by.get(at) {
            *expr = replacement.clone();
        }
        return;
    }
    expr.for_each_child_mut(&mut |e| substitute(e, by));
}

/// Calls `f` with every column read.
pub(crate) fn columns(expr: &Expr, f: &mut dyn FnMut(usize)) {
    if let ExprKind::Column(at) = expr.kind {
        f(at);
    }
    expr.for_each_child(&mut |e| columns(e, f));
}

/// Whether all columns read satisfy `test`.
pub(crate) fn only(expr: &Expr, test: &dyn Fn(usize) -> bool) -> bool {
    let mut all = true;
    columns(expr, &mut |at| all &= test(at));
    all
}

/// Splits a condition into conjuncts and factors out what all branches of an `OR` share: `(a and b)
/// or (a and c)` becomes `a and (b or c)`. A factored part that may fail comes after what protects
/// it in its branch.
pub(crate) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr.kind {
        ExprKind::And(list) => list.into_iter().for_each(|e| conjuncts(e, out)),
        ExprKind::Literal(Value::Boolean(true)) => {}
        ExprKind::Or(list) => factor(list, out),
        kind => out.push(Expr { kind, data_type: expr.data_type }),
    }
}

fn factor(list: Vec<Expr>, out: &mut Vec<Expr>) {
    let or = |list: Vec<Expr>| Expr { kind: ExprKind::Or(list), data_type: DataType::Boolean };
    // Long lists of alternatives rarely share anything, and the check is quadratic.
    if list.len() > 64 || !matches!(list.first().map(|e| &e.kind), Some(ExprKind::And(_))) {
        out.push(or(list));
        return;
    }
    let mut branches: Vec<Vec<Expr>> = Vec::with_capacity(list.len());
    for expr in list {
        let mut parts = Vec::new();
        conjuncts(expr, &mut parts);
        branches.push(parts);
    }
    let mut common: Vec<Expr> = branches[0].clone();
    common.retain(|e| branches.iter().all(|b| b.contains(e)));
    // A conjunct may protect later ones that can fail, so those are factored out only if every
    // conjunct is.
    if branches.iter().flatten().any(|e| !common.contains(e) && expr_may_fail(e)) {
        common.retain(|e| !expr_may_fail(e));
    }
    let mut rest = Vec::with_capacity(branches.len());
    let mut always = false;
    for mut branch in branches {
        branch.retain(|e| !common.contains(e));
        always |= branch.is_empty();
        rest.push(all(branch));
    }
    let (late, early): (Vec<_>, Vec<_>) = common.into_iter().partition(expr_may_fail);
    out.extend(early);
    if !always {
        out.push(or(rest));
    }
    out.extend(late);
}

/// The conjunction of any number of conditions.
pub(crate) fn all(mut list: Vec<Expr>) -> Expr {
    match list.len() {
        0 => Expr::literal(Value::Boolean(true), DataType::Boolean),
        1 => list.swap_remove(0),
        _ => Expr { kind: ExprKind::And(list), data_type: DataType::Boolean },
    }
}

/// Replaces references to the frame's row by `by` of the argument and the reference's type.
pub(crate) fn replace_outer(
    expr: &mut Expr,
    frame: u32,
    by: &dyn Fn(usize, DataType) -> Option<Expr>,
) {
    match &expr.kind {
        ExprKind::Outer { frame: f, index } if *f == frame => {
            if let Some(new) = by(*index, expr.data_type) {
                *expr = new;
            }
        }
        _ => expr.for_each_child_mut(&mut |e| replace_outer(e, frame, by)),
    }
}

/// Marks every column that an expression reads.
pub(crate) fn mark(expr: &Expr, needed: &mut [bool]) {
    columns(expr, &mut |at| {
        let width = needed.len();
        invariant!(at < width, "an expression reads column {at} of {width}");
        needed[at] = true;
    });
}

/// Remaps an expression to where the columns it reads went.
pub(crate) fn moved(expr: &mut Expr, map: &ColumnMap) {
    remap(expr, &|at| match map.get(at) {
        Some(Some(to)) => *to,
        _ => broken(format_args!("an expression reads column {at}, which was pruned")),
    });
}
