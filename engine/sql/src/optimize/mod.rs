//! Rewrite rules on bound plans: push conditions down, reorder joins and find their keys, hand
//! parts of documents to scans, drop unread columns, and pass limits to the sorts below them.
//!
//! Invariants: a plan's fields and rows never change; conditions of outer joins stay where they
//! mean the same; errors that a row may raise are left to run time.

mod estimate;
mod graph;
mod groups;
mod join;
mod paths;
mod prune;
mod push;
mod search;
mod sides;
mod sums;

use crate::analysis::validate::broken_rule;
use crate::plan::{Catalog, Plan, PlanRole, Statement};
use estimate::Estimates;
use nacre_types::hash::Map;
use nacre_types::invariant::broken;
use std::sync::Arc;

/// Optimises every plan of a statement.
pub(crate) fn optimize(mut statement: Statement, catalog: &dyn Catalog) -> Statement {
    let estimates = Estimates::new(catalog);
    for (role, plan) in statement.plans_mut() {
        let bound = std::mem::replace(plan, Plan::nothing());
        *plan = match role {
            PlanRole::Result => query(bound, &estimates),
            // A statement that changes rows needs whole rows, so its scans keep all columns.
            PlanRole::Target => {
                let mut plan = pushed(bound, &estimates);
                paths::share_in_target(&mut plan);
                let mut plan = checked(plan, "the sharing of paths");
                paths::name_keys(&mut plan);
                plan
            }
        };
    }
    statement
}

fn query(mut plan: Plan, estimates: &Estimates<'_>) -> Plan {
    shared(&mut plan, &mut Map::default(), estimates);
    rules(plan, estimates)
}

/// Applies the rules in order to a plan whose shared parts are already optimised.
fn rules(plan: Plan, estimates: &Estimates<'_>) -> Plan {
    let mut plan = pushed(checked(plan, "unnesting"), estimates);
    groups::reduce(&mut plan);
    let mut plan = checked(plan, "the reduction of groups");
    sums::share(&mut plan);
    let mut plan = checked(plan, "the sharing of sums");
    paths::share(&mut plan);
    let plan = checked(plan, "the sharing of paths");
    let mut plan = checked(prune::prune_root(plan), "column pruning");
    paths::name_keys(&mut plan);
    plan
}

/// Pushes the plan's conditions down as far as they go.
fn pushed(plan: Plan, estimates: &Estimates<'_>) -> Plan {
    checked(push::push(plan, Vec::new(), estimates), "filter push-down")
}

/// Checks the invariants of a plan after an optimizer step, in debug builds.
fn checked(plan: Plan, step: &str) -> Plan {
    if cfg!(debug_assertions)
        && let Some(rule) = broken_rule(&plan)
    {
        broken(format_args!("after {step}, {rule}"));
    }
    plan
}

/// Optimises each shared plan once. Its consumers treat it as a leaf.
fn shared(plan: &mut Plan, done: &mut Map<u32, Arc<Plan>>, estimates: &Estimates<'_>) {
    let Plan::Shared { id, input } = plan else {
        return plan.for_each_input_mut(&mut |p| shared(p, done, estimates));
    };
    if let Some(known) = done.get(id) {
        *input = known.clone();
        return;
    }
    let mut inner = (**input).clone();
    shared(&mut inner, done, estimates);
    *input = Arc::new(rules(inner, estimates));
    done.insert(*id, input.clone());
}
