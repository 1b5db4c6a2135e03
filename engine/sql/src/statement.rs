//! Bound statements: what a text asks for, with the plans that it runs.

use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{IndexId, IndexSchema, TableSchema, ViewSchema};
use std::sync::Arc;

/// A setting of a session, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOption {
    /// How many threads may work on one statement; 0 for the default.
    Threads(u32),
    /// Bytes that one statement may hold in memory; the default when not there.
    MemoryLimit(Option<u64>),
}

/// What an insert does with a row whose primary key is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDuplicateKey {
    /// `INSERT IGNORE`, `ON CONFLICT DO NOTHING`: leaves the old row.
    Ignore,
    /// `REPLACE`: the new row takes its place.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`, `ON CONFLICT DO UPDATE`: changes the old row. Expressions see the old row's columns,
    /// then the new one's.
    Update {
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
        /// Only when it is true.
        filter: Option<Expr>,
    },
}

/// A bound statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Returns rows.
    Query(Plan),
    /// `INSERT`: `source` yields the table's columns in table order, already cast, with defaults filled in.
    Insert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
    },
    /// `UPDATE`: `input` scans the target (all columns in table order); `assignments` are over that row.
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
    /// `UPDATE` or `DELETE` that looks beyond the row it changes.
    Change {
        /// Target.
        table: Arc<TableSchema>,
        /// Its rows that may change: scans it (all columns in table order) under conditions of its own.
        target: Plan,
        /// Of the `Given` in `matches`: the rows of `target`, each followed by its number, from zero.
        rows: u32,
        /// A row's number, new values of `columns`, then what `RETURNING` sees beside the row. A row that comes
        /// several times is changed once, as it came first.
        matches: Plan,
        /// Columns that get new values; none: the rows are deleted.
        columns: Option<Vec<usize>>,
    },
    /// A statement that writes, and what it answers of each row: expressions over the row as it was written, or
    /// deleted, and what `Change` has beside it.
    Returning {
        /// `Insert`, `Upsert`, `Update`, `Delete` or `Change`.
        statement: Box<Statement>,
        /// Over the row.
        exprs: Vec<Expr>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `SELECT … FOR UPDATE`: locks every row of `input`, then returns the rows of `output`.
    Lock {
        /// Table whose rows are locked.
        table: Arc<TableSchema>,
        /// Rows to lock: scans the table (all columns in table order) under the query's `WHERE`.
        input: Plan,
        /// The query itself, over the same rows.
        output: Plan,
    },
    /// `CREATE TABLE`. The schema's id is zero; the catalog assigns it.
    CreateTable {
        /// New table.
        schema: TableSchema,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `CREATE TABLE … AS`: makes the table, then inserts the rows.
    CreateTableAs {
        /// New table.
        schema: TableSchema,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// Its rows, in its column types.
        source: Plan,
    },
    /// `CREATE VIEW`.
    CreateView {
        /// New view.
        view: ViewSchema,
        /// `OR REPLACE`.
        replace: bool,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
    },
    /// `DROP VIEW`.
    DropView {
        /// Names as written.
        names: Vec<String>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// An insert that says what becomes of a row whose primary key is taken: rows as of `Insert`, one after the
    /// other, so that a later row meets what an earlier one left.
    Upsert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
        /// Unique keys that count: the primary key, which is `None`, and indexes. Another that is taken is an error.
        keys: Vec<Option<IndexId>>,
        /// What to do when one of them is taken.
        on_duplicate: OnDuplicateKey,
    },
    /// `DROP TABLE`.
    DropTable {
        /// Names as written.
        names: Vec<String>,
        /// `IF EXISTS`.
        if_exists: bool,
    },
    /// `CREATE INDEX`.
    CreateIndex {
        /// The table as it was when the statement was bound.
        table: Arc<TableSchema>,
        /// New index. Its id is zero; the storage assigns it.
        index: IndexSchema,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// Tables as they were when the statement was bound, and names of their indexes.
        indexes: Vec<(Arc<TableSchema>, String)>,
    },
    /// `ALTER TABLE`.
    AlterTable {
        /// The table as it was when the statement was bound.
        table: Arc<TableSchema>,
        /// What it is to become. Columns are told by their ids; the storage counts the version on.
        changed: TableSchema,
    },
    /// `TRUNCATE TABLE`.
    Truncate {
        /// Tables that lose all their rows.
        tables: Vec<Arc<TableSchema>>,
    },
    /// `BEGIN`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK`.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint(String),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(String),
    /// `RELEASE [SAVEPOINT] name`.
    Release(String),
    /// `SET`.
    Set(SessionOption),
    /// `EXPLAIN`.
    Explain(Box<Statement>),
    /// `PROFILE`, `EXPLAIN ANALYZE`: runs it and answers what each part of the plan did instead of its rows.
    Profile(Box<Statement>),
    /// `OPTIMIZE TABLE t [FLUSH | FULL]`: `FLUSH` moves the rowstore's rows to a segment.
    Optimize {
        /// Table.
        table: Arc<TableSchema>,
        /// `FULL`: also merge all segments into one sorted run.
        full: bool,
    },
    /// `SHOW TABLES`, `DESCRIBE t` and the like are bound to `Query(Values …)` by the binder.
    Nothing,
}

impl Statement {
    /// The plans it runs.
    pub fn plans_mut(&mut self) -> Vec<&mut Plan> {
        match self {
            Statement::Query(plan)
            | Statement::Insert { source: plan, .. }
            | Statement::Upsert { source: plan, .. }
            | Statement::CreateTableAs { source: plan, .. }
            | Statement::Update { input: plan, .. }
            | Statement::Delete { input: plan, .. } => vec![plan],
            Statement::Lock { input, output, .. } => vec![input, output],
            Statement::Change { target, matches, .. } => vec![target, matches],
            Statement::Returning { statement, .. } => statement.plans_mut(),
            Statement::Explain(inner) | Statement::Profile(inner) => inner.plans_mut(),
            _ => Vec::new(),
        }
    }
}
