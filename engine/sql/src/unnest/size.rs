//! Limits how large expressions become when columns are replaced by their definitions. `x + x` over
//! `x + x` over … doubles at every level, so pushing it through all levels could exhaust memory.

use crate::analysis::size::{MAX_GROWTH, nodes, replaced};
use crate::analysis::subqueries::correlated;
use crate::expr::Expr;
use crate::plan::Plan;
use crate::plan::node::limit_by::LimitBy;

/// Whether hoisting a plan's references to this frame's row to its top ([`super::hoist`]) would
/// make an expression too large.
pub(super) fn hoisting_grows(plan: &Plan, frame: u32) -> bool {
    outputs(plan, frame).is_none()
}

/// For each output column, the number of nodes of its definition after hoisting; `None` if one
/// grows too large.
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
    let size = |e: &Expr| replaced(e, &|at| input[at]);
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
