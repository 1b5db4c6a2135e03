//! A bound statement of any family, and those that read or write rows.

use super::catalog::CatalogStatement;
use super::control::ControlStatement;
use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{IndexId, TableSchema};
use std::sync::Arc;

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

/// How an insert handles a row with a duplicate unique key.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDuplicateKey {
    /// `INSERT IGNORE`, `ON CONFLICT DO NOTHING`: keeps the old row.
    Ignore,
    /// `REPLACE`: replaces the old row by the new one.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`, `ON CONFLICT DO UPDATE`: updates the old row. Expressions are
    /// over the columns of the old row followed by those of the new row.
    Update {
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
        /// Condition under which the old row is updated.
        filter: Option<Expr>,
    },
}

/// A statement that writes rows of one table.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteStatement {
    /// `INSERT`: `source` yields the table's columns in table order, already cast, with defaults
    /// filled in.
    Insert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
    },
    /// An insert with handling of duplicate keys. Rows are like those of `Insert` and are written
    /// in order: a later row sees the effect of an earlier one.
    Upsert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
        /// Unique keys to handle: indexes, and `None` for the primary key. A duplicate of any other
        /// key is an error.
        keys: Vec<Option<IndexId>>,
        /// Handling of a duplicate of one of `keys`.
        on_duplicate: OnDuplicateKey,
    },
    /// `UPDATE`: `input` scans the target (all columns in table order); `assignments` are over that
    /// row.
    Update {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to update.
        input: Plan,
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
    },
    /// `DELETE`: `input` scans the target (all columns in table order).
    Delete {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to delete.
        input: Plan,
    },
    /// `UPDATE` or `DELETE` that reads more than the row it changes.
    Change {
        /// Target.
        table: Arc<TableSchema>,
        /// Candidate rows: a scan of the target (all columns in table order) with the conditions on
        /// its columns alone.
        target: Plan,
        /// Id of the `Given` in `matches`: the rows of `target`, each followed by its number, from
        /// zero.
        rows: u32,
        /// Yields the number of a row, the new values of `columns`, then the columns of other
        /// tables for `RETURNING`. A row with several matches changes once, by its first match.
        matches: Plan,
        /// Columns that get new values; `None` deletes the rows.
        columns: Option<Vec<usize>>,
    },
    /// `MERGE`.
    Merge {
        /// Target.
        table: Arc<TableSchema>,
        /// The target's rows: a scan of all columns in table order.
        target: Plan,
        /// Id of the `Given` in `matches`: the rows of `target`, each followed by its number, from
        /// zero.
        rows: u32,
        /// Yields the number of a row of the target, or null for a row that is new; the number of the
        /// clause that applies to it; the message of an error; the values of all columns of the table,
        /// in table order; then for `RETURNING` the name of the action, and the columns of the source.
        matches: Plan,
        /// What each clause does.
        actions: Vec<MergeAction>,
        /// Columns that some clause updates.
        assigned: Vec<usize>,
    },
}

/// What a clause of a `MERGE` does with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeAction {
    /// Inserts the row.
    Insert,
    /// Gives it new values.
    Update,
    /// Deletes it.
    Delete,
    /// Leaves it.
    Nothing,
    /// Fails.
    Fail,
}

impl MergeAction {
    /// What `merge_action` says.
    pub fn name(self) -> &'static str {
        match self {
            MergeAction::Insert => "INSERT",
            MergeAction::Update => "UPDATE",
            MergeAction::Delete => "DELETE",
            MergeAction::Nothing | MergeAction::Fail => "NOTHING",
        }
    }
}

/// The rows that a `SELECT … FOR UPDATE` locks and returns.
#[derive(Clone, Debug, PartialEq)]
pub enum LockedRows {
    /// All; then this plan, the query itself, reads the same rows.
    All(Plan),
    /// The first ones in the order of the query.
    First {
        /// Id of the `Given` in `plan`: the rows to lock, each followed by its number, from zero.
        rows: u32,
        /// The query without its limits. Yields its columns, then the number of the row.
        plan: Plan,
        /// Output columns.
        fields: Vec<Field>,
        /// Number of rows that are locked and not returned.
        offset: Option<Expr>,
        /// Number of rows to return.
        limit: Option<Expr>,
    },
}

/// What a statement does about a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfLocked {
    /// Waits for the lock.
    Wait,
    /// `NOWAIT`: fails with `lock_timeout`.
    Fail,
    /// `SKIP LOCKED`: goes on without the row.
    Skip,
}

/// A bound statement that reads or writes rows.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStatement {
    /// Returns rows.
    Query(Plan),
    /// `SELECT … FOR UPDATE`.
    Lock {
        /// Table whose rows are locked.
        table: Arc<TableSchema>,
        /// Rows to lock: a scan of the table (all columns in table order) with the query's `WHERE`.
        input: Plan,
        /// Which of them are locked, and what is returned.
        rows: LockedRows,
        /// What is done about a row that another transaction has locked.
        if_locked: IfLocked,
    },
    /// Writes rows.
    Write(WriteStatement),
    /// Writes rows and returns expressions over each written or deleted row, followed by the extra
    /// columns of a `Change`.
    Returning {
        /// The write.
        write: WriteStatement,
        /// Expressions to return.
        exprs: Vec<Expr>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `CREATE TABLE … AS`: creates the table, then inserts the rows.
    CreateTableAs {
        /// New table.
        schema: TableSchema,
        /// `OR REPLACE`: drops a table of this name in the same commit.
        replace: bool,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Rows to insert, cast to the column types.
        source: Plan,
    },
    /// `EXPLAIN`: returns the plan of the statement without running it.
    Explain(Box<Statement>),
    /// `PROFILE`, `EXPLAIN ANALYZE`: runs the statement and returns measurements for each plan node
    /// instead of its rows.
    Profile(Box<RowStatement>),
}

impl From<RowStatement> for Statement {
    fn from(statement: RowStatement) -> Statement {
        Statement::Rows(statement)
    }
}

impl From<WriteStatement> for Statement {
    fn from(write: WriteStatement) -> Statement {
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
}
