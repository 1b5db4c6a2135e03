//! Rules on bound plans: conditions move down to where they cost least, joins are reordered and find
//! their keys, columns nobody reads are dropped, limits reach the sorts below them.
//!
//! Invariants: a plan's fields and rows never change; conditions of outer joins stay where they mean the
//! same; errors that a row may raise are left to run time.

mod estimate;
mod graph;
mod groups;
mod join;
mod prune;
mod push;
mod search;
mod sides;

use crate::plan::{Catalog, Plan, PlanRole, Statement};
use estimate::Estimates;
use nacre_types::hash::Map;
use std::sync::Arc;

/// Optimises every plan of a statement.
pub(crate) fn optimize(mut statement: Statement, catalog: &dyn Catalog) -> Statement {
    let estimates = Estimates::new(catalog);
    for (role, plan) in statement.plans_mut() {
        let bound = std::mem::replace(plan, Plan::nothing());
        *plan = match role {
            PlanRole::Result => query(bound, &estimates),
            // Writers need the whole row, so their scans keep all columns.
            PlanRole::Target => push::push(bound, Vec::new(), &estimates),
        };
    }
    statement
}

fn query(mut plan: Plan, estimates: &Estimates<'_>) -> Plan {
    shared(&mut plan, &mut Map::default(), estimates);
    let mut plan = push::push(plan, Vec::new(), estimates);
    groups::reduce(&mut plan);
    prune::prune_root(plan)
}

/// Optimises what is computed once, once; for everything else it is a leaf.
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
    let mut inner = push::push(inner, Vec::new(), estimates);
    groups::reduce(&mut inner);
    *input = Arc::new(prune::prune_root(inner));
    done.insert(*id, input.clone());
}
