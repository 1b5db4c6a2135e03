//! How large expressions become when columns are replaced by what they stand for. `x + x` over `x + x` over … doubles
//! at every level, so that moving it through them all takes more memory than there is.

use crate::analysis::size::{MAX_GROWTH, nodes, replaced};
use crate::analysis::subqueries::correlated;
use crate::expr::Expr;
use crate::plan::Plan;
use crate::plan::node::limit_by::LimitBy;

/// Whether some expression would grow too much if what a plan asks of this frame's row were moved to its top
/// ([`super::hoist`]).
pub(super) fn hoisting_grows(plan: &Plan, frame: u32) -> bool {
    outputs(plan, frame).is_none()
}

/// Nodes of what a plan's columns stand for when it has been taken apart; none if something grows too much.
fn outputs(plan: &Plan, frame: u32) -> Option<Vec<usize>> {
    let plain = || vec![1; plan.fields().len()];
    if !correlated(plan, frame) {
        return Some(plain());
    }
    let mut input = Vec::new();
    match plan {
        Plan::Node(_) => match plan.as_node::<LimitBy>() {
            Some(node) => input = outputs(&node.input, frame)?,
            None => return Some(plain()),
        },
        Plan::Filter { input: below, .. }
        | Plan::Project { input: below, .. }
        | Plan::Sort { input: below, .. }
        | Plan::Limit { input: below, .. }
        | Plan::Aggregate { input: below, .. } => input = outputs(below, frame)?,
        Plan::Join { left, right, .. } => {
            input = outputs(left, frame)?;
            input.resize(left.fields().len(), 1);
            input.append(&mut outputs(right, frame)?);
        }
        Plan::Values { rows, .. } if rows.len() == 1 => {}
        _ => return Some(plain()),
    }
    let size = |e: &Expr| replaced(e, &|at| input.get(at).copied().unwrap_or(1));
    let mut grows = false;
    plan.for_each_expr(&mut |e| grows |= size(e) > nodes(e).saturating_add(MAX_GROWTH));
    if grows {
        return None;
    }
    Some(match plan {
        Plan::Project { exprs, .. } => exprs.iter().map(size).collect(),
        Plan::Values { rows, .. } => rows.iter().flatten().map(size).collect(),
        Plan::Aggregate { .. } => plain(),
        _ => {
            input.resize(plan.fields().len(), 1);
            input
        }
    })
}
