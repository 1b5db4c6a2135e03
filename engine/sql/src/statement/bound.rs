//! A bound statement of any family.

use super::catalog::CatalogStatement;
use super::control::ControlStatement;
use super::row::{PlanRole, RowStatement, Write};
use crate::plan::Plan;

/// A bound statement. The families differ in how they relate to transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Reads or writes rows inside a transaction: the open one, or one of its own.
    Rows(RowStatement),
    /// Changes the catalog or maintains a table, outside any transaction.
    Catalog(CatalogStatement),
    /// Begins or ends a transaction, or sets an option of the session.
    Control(ControlStatement),
}

impl From<RowStatement> for Statement {
    fn from(statement: RowStatement) -> Statement {
        Statement::Rows(statement)
    }
}

impl From<Write> for Statement {
    fn from(write: Write) -> Statement {
        Statement::Rows(RowStatement::Write(write))
    }
}

impl From<CatalogStatement> for Statement {
    fn from(statement: CatalogStatement) -> Statement {
        Statement::Catalog(statement)
    }
}

impl From<ControlStatement> for Statement {
    fn from(statement: ControlStatement) -> Statement {
        Statement::Control(statement)
    }
}

impl Statement {
    /// Builds the statement that returns the rows of a plan.
    pub(crate) fn query(plan: Plan) -> Statement {
        Statement::Rows(RowStatement::Query(plan))
    }

    /// Returns the plans that the statement runs, with their roles.
    pub(crate) fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        match self {
            Statement::Rows(statement) => statement.plans_mut(),
            Statement::Catalog(_) | Statement::Control(_) => Vec::new(),
        }
    }
}
