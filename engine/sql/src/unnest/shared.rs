//! Decides which plans used in several places are computed once. A plan used once, or cheap enough
//! to recompute, is inlined, so that conditions can be pushed into it. One with a volatile function
//! stays: a copy of the function would have another value.

use crate::analysis::volatile::plan_is_volatile;
use crate::expr::{Expr, ExprKind};
use crate::plan::{Plan, Statement};
use nacre_types::hash::Map;
use std::sync::Arc;

/// Inlines plans that need not be shared. `is_volatile`: whether the statement has a volatile
/// function.
pub(super) fn inline(statement: &mut Statement, is_volatile: bool) {
    let mut uses = Map::default();
    for (_, plan) in statement.plans_mut() {
        count(plan, &mut uses);
    }
    if uses.is_empty() {
        return;
    }
    let mut inliner = Inliner { uses, kept: Map::default(), is_volatile };
    for (_, plan) in statement.plans_mut() {
        let old = std::mem::replace(plan, super::tools::one_empty_row());
        *plan = inliner.plan(old);
    }
}

fn count(plan: &Plan, uses: &mut Map<u32, usize>) {
    if let Plan::Shared { id, .. } = plan {
        let uses = uses.entry(*id).or_insert(0);
        *uses += 1;
        if *uses > 1 {
            return;
        }
    }
    plan.for_each_expr(&mut |e| count_in(e, uses));
    plan.for_each_input(&mut |p| count(p, uses));
}

fn count_in(expr: &Expr, uses: &mut Map<u32, usize>) {
    if let ExprKind::Subquery(sub) = &expr.kind {
        count(&sub.plan, uses);
    }
    expr.for_each_child(&mut |e| count_in(e, uses));
}

struct Inliner {
    uses: Map<u32, usize>,
    kept: Map<u32, Arc<Plan>>,
    is_volatile: bool,
}

impl Inliner {
    fn plan(&mut self, mut plan: Plan) -> Plan {
        if let Plan::Shared { id, input } = plan {
            let is_used_once = self.uses.get(&id).copied().unwrap_or(0) < 2;
            let stays = self.is_volatile && plan_is_volatile(&input);
            if (is_used_once || is_cheap(&input)) && !stays {
                let input = Arc::try_unwrap(input).unwrap_or_else(|shared| (*shared).clone());
                return self.plan(input);
            }
            let input = match self.kept.get(&id) {
                Some(known) => known.clone(),
                None => {
                    let new = Arc::new(self.plan((*input).clone()));
                    self.kept.insert(id, new.clone());
                    new
                }
            };
            return Plan::Shared { id, input };
        }
        plan.for_each_expr_mut(&mut |e| self.expr(e));
        plan.for_each_input_mut(&mut |p| {
            let input = std::mem::replace(p, super::tools::one_empty_row());
            *p = self.plan(input);
        });
        plan
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let ExprKind::Subquery(sub) = &mut expr.kind {
            let plan = std::mem::replace(&mut sub.plan, super::tools::one_empty_row());
            sub.plan = self.plan(plan);
        }
        expr.for_each_child_mut(&mut |e| self.expr(e));
    }
}

/// Whether a plan only reads a table row by row.
fn is_cheap(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } | Plan::Values { .. } => true,
        Plan::Filter { input, .. } | Plan::Project { input, .. } => is_cheap(input),
        _ => false,
    }
}
