//! Which expressions tell equal values apart. `0.0` and `-0.0` are equal, and so one group, but their
//! texts differ. Equal values of all other types that can be keys are the same.

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::tree::Plan;
use nacre_types::DataType;

/// Whether an expression may differ for two rows that are equal in the columns that it reads.
pub(crate) fn tells_equals_apart(expr: &Expr) -> bool {
    may_differ(expr, &|e| matches!(e.kind, ExprKind::Column(_)))
}

/// Whether a plan may differ for equal values of an argument of the frame.
pub(crate) fn tells_arguments_apart(plan: &Plan, frame: u32, argument: usize) -> bool {
    let is_key = |e: &Expr| e.kind == ExprKind::Outer { frame, index: argument };
    plan.any_node(&mut |node| {
        let mut found = false;
        node.for_each_expr(&mut |e| found = found || may_differ(e, &is_key));
        found
    })
}

/// Whether a type has a negative zero.
pub(crate) fn is_float(data_type: DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Whether an expression may differ for equal keys.
fn may_differ(expr: &Expr, is_key: &dyn Fn(&Expr) -> bool) -> bool {
    if is_key(expr) {
        return is_float(expr.data_type);
    }
    let reads_values = match &expr.kind {
        ExprKind::Binary { op, .. } => op.is_comparison(),
        ExprKind::InList { .. } | ExprKind::IsNull { .. } => true,
        _ => false,
    };
    let mut found = false;
    expr.for_each_child(&mut |child| {
        found = found || may_differ(child, is_key) && !(reads_values && stays_equal(child, is_key));
    });
    found
}

/// Whether an expression has equal values for equal keys.
fn stays_equal(expr: &Expr, is_key: &dyn Fn(&Expr) -> bool) -> bool {
    let is_arithmetic = match &expr.kind {
        ExprKind::Cast(arg) => is_float(arg.data_type) && is_float(expr.data_type),
        ExprKind::Binary { op, .. } => {
            matches!(op, BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply)
        }
        ExprKind::Negate(_) => true,
        _ => false,
    };
    if !is_arithmetic {
        return is_key(expr) || !may_differ(expr, is_key);
    }
    let mut all = true;
    expr.for_each_child(&mut |child| all = all && stays_equal(child, is_key));
    all
}
