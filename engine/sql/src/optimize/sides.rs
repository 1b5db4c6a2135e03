//! Which side of an outer, semi or anti join is collected: the executor collects the right one, so a small left
//! one is better on the right.

use super::estimate::Estimates;
use crate::analysis::columns::remap;
use crate::expr::Expr;
use crate::plan::{JoinKind, Plan};

/// The join, or its mirror image when that is cheaper. Its columns stay what they are.
pub(super) fn choose(join: Plan, estimates: &Estimates<'_>) -> Plan {
    let Plan::Join { left, right, kind, keys, residual } = join else { return join };
    let mirrored = match kind {
        JoinKind::Semi => JoinKind::RightSemi,
        JoinKind::Anti => JoinKind::RightAnti,
        JoinKind::Left => JoinKind::Right,
        JoinKind::Right => JoinKind::Left,
        _ => return Plan::Join { left, right, kind, keys, residual },
    };
    // Without keys every pair is looked at, whichever side is collected.
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
