//! Rules on bound plans: conditions move down to where they cost least, joins are reordered and find
//! their keys, columns nobody reads are dropped, limits reach the sorts below them.
//!
//! Invariants: a plan's fields and rows never change; conditions of outer joins stay where they mean the
//! same; errors that a row may raise are left to run time.

mod columns;
mod estimate;
mod join;
mod prune;
mod push;

pub(crate) use columns::shift_columns;

use crate::plan::{Catalog, Plan, Statement};

/// Optimises every plan of a statement.
pub(crate) fn optimize(statement: Statement, catalog: &dyn Catalog) -> Statement {
    match statement {
        Statement::Query(plan) => Statement::Query(query(plan, catalog)),
        Statement::Insert { table, source } => Statement::Insert { table, source: query(source, catalog) },
        Statement::Upsert { table, source, on_duplicate } => {
            Statement::Upsert { table, source: query(source, catalog), on_duplicate }
        }
        Statement::CreateTableAs { schema, if_not_exists, source } => {
            Statement::CreateTableAs { schema, if_not_exists, source: query(source, catalog) }
        }
        // Writers need the whole row, so their scans keep all columns.
        Statement::Update { table, input, assignments } => {
            Statement::Update { table, input: push::push(input, Vec::new(), catalog), assignments }
        }
        Statement::Delete { table, input } => {
            Statement::Delete { table, input: push::push(input, Vec::new(), catalog) }
        }
        Statement::Lock { table, input, output } => {
            let input = push::push(input, Vec::new(), catalog);
            Statement::Lock { table, input, output: query(output, catalog) }
        }
        Statement::Explain(inner) => Statement::Explain(Box::new(optimize(*inner, catalog))),
        other => other,
    }
}

fn query(plan: Plan, catalog: &dyn Catalog) -> Plan {
    prune::prune_root(push::push(plan, Vec::new(), catalog))
}
