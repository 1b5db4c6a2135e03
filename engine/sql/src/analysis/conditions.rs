//! Conditions as filters and as join keys.

use crate::analysis::columns::{all, columns, shift_columns};
use crate::analysis::equality::same;
use crate::analysis::may_fail::expr_may_fail;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::Plan;
use nacre_types::DataType;

/// Filters the plan by the conditions, if there are any. Conditions that cannot fail come first and
/// protect the others, which keep their order.
pub(crate) fn filter(plan: Plan, mut conditions: Vec<Expr>) -> Plan {
    if conditions.is_empty() {
        return plan;
    }
    conditions.sort_by_cached_key(expr_may_fail);
    Plan::Filter { input: Box::new(plan), predicate: all(conditions) }
}

/// Splits `left = right` into a pair of keys if each operand reads only one side of the join.
pub(crate) fn key(condition: Expr, width: usize) -> Result<(Expr, Expr), Expr> {
    let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &condition.kind else {
        return Err(condition);
    };
    // `1 day` equals `24 hours` but is a different key.
    if left.data_type == DataType::Interval {
        return Err(condition);
    }
    let side = |e: &Expr| {
        let (mut l, mut r) = (false, false);
        columns(e, &mut |at| if at < width { l = true } else { r = true });
        (l, r)
    };
    let swap = match (side(left), side(right)) {
        ((true, false), (false, true)) => false,
        ((false, true), (true, false)) => true,
        _ => return Err(condition),
    };
    match condition.kind {
        ExprKind::Binary { left, right, .. } => {
            let (l, mut r) = if swap { (*right, *left) } else { (*left, *right) };
            shift_columns(&mut r, -(width as isize));
            Ok((l, r))
        }
        kind => Err(Expr { kind, data_type: condition.data_type }),
    }
}

/// Splits `left = right` or `left IS NOT DISTINCT FROM right` into pairs of keys if each operand
/// reads only one side of the join. Null-safe equality takes two pairs.
pub(crate) fn key_pairs(condition: Expr, width: usize) -> Result<Vec<(Expr, Expr)>, Expr> {
    let ExprKind::Binary { op: BinaryOp::NotDistinct, left, right } = &condition.kind else {
        return key(condition, width).map(|pair| vec![pair]);
    };
    if left.data_type == DataType::Interval {
        return Err(condition);
    }
    let mut equalities = Vec::new();
    same((**left).clone(), (**right).clone(), true, &mut equalities);
    let pairs: Result<Vec<_>, _> = equalities.into_iter().map(|each| key(each, width)).collect();
    pairs.map_err(|_| condition)
}
