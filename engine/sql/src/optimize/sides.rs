//! Chooses the build side of outer, semi and anti joins. The executor builds on the right side, so
//! a smaller left side is moved there.

use super::estimate::Estimates;
use crate::analysis::columns::remap;
use crate::expr::Expr;
use crate::plan::{JoinKind, Plan};

/// Returns the join or, if that is cheaper, its mirror image with the same output columns.
pub(super) fn choose(join: Plan, estimates: &Estimates<'_>) -> Plan {
    let Plan::Join { left, right, kind, keys, residual } = join else { return join };
    let mirrored = match kind {
        JoinKind::Semi => JoinKind::RightSemi,
        JoinKind::Anti => JoinKind::RightAnti,
        JoinKind::Left => JoinKind::Right,
        JoinKind::Right => JoinKind::Left,
        _ => return Plan::Join { left, right, kind, keys, residual },
    };
    // Without keys the join compares every pair, whichever side it builds on.
    if keys.is_empty() || estimates.of(&left).rows >= estimates.of(&right).rows {
        return Plan::Join { left, right, kind, keys, residual };
    }
    let fields = match kind {
        JoinKind::Left | JoinKind::Right => Plan::Join {
            left: left.clone(),
            right: right.clone(),
            kind,
            keys: Vec::new(),
            residual: None,
        }
        .fields(),
        _ => Vec::new(),
    };
    let (l, r) = (left.fields().len(), right.fields().len());
    let residual = residual.map(|mut e| {
        remap(&mut e, &|at| if at < l { at + r } else { at - l });
        e
    });
    let keys = keys.into_iter().map(|(a, b)| (b, a)).collect();
    let join = Plan::Join { left: right, right: left, kind: mirrored, keys, residual };
    if fields.is_empty() {
        return join;
    }
    let column = |(at, field): (usize, &crate::plan::Field)| {
        Expr::column(if at < l { at + r } else { at - l }, field.data_type)
    };
    let exprs = fields.iter().enumerate().map(column).collect();
    Plan::Project { input: Box::new(join), exprs, fields }
}
