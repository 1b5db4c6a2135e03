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

use crate::plan::{Catalog, Plan, Statement};
use estimate::Estimates;
use nacre_types::hash::Map;
use std::sync::Arc;

/// Optimises every plan of a statement.
pub(crate) fn optimize(statement: Statement, catalog: &dyn Catalog) -> Statement {
    optimize_with(statement, &Estimates::new(catalog))
}

fn optimize_with(statement: Statement, estimates: &Estimates<'_>) -> Statement {
    match statement {
        Statement::Query(plan) => Statement::Query(query(plan, estimates)),
        Statement::Insert { table, source } => {
            Statement::Insert { table, source: query(source, estimates) }
        }
        Statement::Upsert { table, source, keys, on_duplicate } => {
            Statement::Upsert { table, source: query(source, estimates), keys, on_duplicate }
        }
        Statement::CreateTableAs { schema, if_not_exists, source } => {
            Statement::CreateTableAs { schema, if_not_exists, source: query(source, estimates) }
        }
        // Writers need the whole row, so their scans keep all columns.
        Statement::Update { table, input, assignments } => Statement::Update {
            table,
            input: push::push(input, Vec::new(), estimates),
            assignments,
        },
        Statement::Delete { table, input } => {
            Statement::Delete { table, input: push::push(input, Vec::new(), estimates) }
        }
        Statement::Lock { table, input, output } => {
            let input = push::push(input, Vec::new(), estimates);
            Statement::Lock { table, input, output: query(output, estimates) }
        }
        Statement::Change { table, target, rows, matches, columns } => {
            let target = push::push(target, Vec::new(), estimates);
            Statement::Change { table, target, rows, matches: query(matches, estimates), columns }
        }
        Statement::Returning { statement, exprs, fields } => Statement::Returning {
            statement: Box::new(optimize_with(*statement, estimates)),
            exprs,
            fields,
        },
        Statement::Explain(inner) => Statement::Explain(Box::new(optimize_with(*inner, estimates))),
        Statement::Profile(inner) => Statement::Profile(Box::new(optimize_with(*inner, estimates))),
        other => other,
    }
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
