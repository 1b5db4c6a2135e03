//! The plans that a statement runs.

use super::bound::{LockedRows, RowStatement, Statement, WriteStatement};
use crate::plan::Plan;

/// Which output columns of a plan a statement needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanRole {
    /// Only the columns that it uses.
    Result,
    /// Every column of the table, because rows are rewritten or locked.
    Target,
}

impl Statement {
    /// Returns the plans that the statement runs, with their roles.
    pub(crate) fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        match self {
            Statement::Rows(statement) => statement.plans_mut(),
            Statement::Catalog(_) | Statement::Control(_) => Vec::new(),
        }
    }
}

impl RowStatement {
    /// Returns the plans that the statement runs, with their roles.
    pub(crate) fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        use PlanRole::{Result, Target};
        match self {
            RowStatement::Query(plan) => vec![(Result, plan)],
            RowStatement::Lock { input, rows, .. } => {
                let (LockedRows::All(plan) | LockedRows::First { plan, .. }) = rows;
                vec![(Target, input), (Result, plan)]
            }
            RowStatement::Write(write) | RowStatement::Returning { write, .. } => write.plans_mut(),
            RowStatement::CreateTableAs { source, .. } => vec![(Result, source)],
            RowStatement::Explain(inner) => inner.plans_mut(),
            RowStatement::Profile(inner) => inner.plans_mut(),
        }
    }
}

impl WriteStatement {
    fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        use PlanRole::{Result, Target};
        match self {
            WriteStatement::Insert { source, .. } | WriteStatement::Upsert { source, .. } => {
                vec![(Result, source)]
            }
            WriteStatement::Update { input, .. } | WriteStatement::Delete { input, .. } => {
                vec![(Target, input)]
            }
            WriteStatement::Change { target, matches, .. }
            | WriteStatement::Merge { target, matches, .. } => {
                vec![(Target, target), (Result, matches)]
            }
        }
    }
}
