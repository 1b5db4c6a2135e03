//! Statements that read or write rows. They run inside a transaction.

use super::bound::Statement;
use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, IndexId, TableSchema};
use std::sync::Arc;

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
pub enum Write {
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
}

/// A bound statement that reads or writes rows.
#[derive(Clone, Debug, PartialEq)]
pub enum RowStatement {
    /// Returns rows.
    Query(Plan),
    /// `SELECT … FOR UPDATE`: locks every row of `input`, then returns the rows of `output`.
    Lock {
        /// Table whose rows are locked.
        table: Arc<TableSchema>,
        /// Rows to lock: a scan of the table (all columns in table order) with the query's `WHERE`.
        input: Plan,
        /// The query itself, over the same rows.
        output: Plan,
    },
    /// Writes rows.
    Write(Write),
    /// Writes rows and returns expressions over each written or deleted row, followed by the extra
    /// columns of a `Change`.
    Returning {
        /// The write.
        write: Write,
        /// Expressions to return.
        exprs: Vec<Expr>,
        /// Output columns.
        fields: Vec<Field>,
    },
    /// `CREATE TABLE … AS`: creates the table, then inserts the rows.
    CreateTableAs {
        /// New table.
        schema: TableSchema,
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

/// How a statement accesses rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads rows.
    Reads,
    /// Writes rows, or moves them to the rowstore in order to lock them.
    Writes,
    /// Writes rows and changes the catalog, so it needs a transaction of its own.
    WritesAlone,
}

impl Access {
    /// Whether the statement may write rows, or move them to lock them.
    pub fn writes(self) -> bool {
        self != Access::Reads
    }
}

/// Columns of a statement's result.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// No rows.
    Nothing,
    /// Columns of a plan.
    Plan(&'a Plan),
    /// Columns listed here.
    Fields(&'a [Field]),
    /// One line of `EXPLAIN` text per row.
    Explanation,
    /// The lines of a plan, each with its measurements.
    Profile,
}

impl Output<'_> {
    /// Returns the columns.
    pub fn fields(self) -> Vec<Field> {
        let field =
            |name: &str, data_type, nullable| Field { name: name.into(), data_type, nullable };
        match self {
            Output::Nothing => Vec::new(),
            Output::Plan(plan) => plan.fields(),
            Output::Fields(fields) => fields.to_vec(),
            Output::Explanation => vec![field("plan", DataType::TEXT, false)],
            Output::Profile => vec![
                field("plan", DataType::TEXT, true),
                field("rows", DataType::Int64, true),
                field("time_us", DataType::Int64, true),
                field("access", DataType::TEXT, true),
            ],
        }
    }
}

/// Title line above the plans of a statement in its `EXPLAIN`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Title<'a> {
    /// No title: the plan stands alone.
    Untitled,
    /// An action and the name of its target.
    Action(&'static str, &'a str),
    /// An insert with handling of duplicate keys.
    Upsert(&'a TableSchema, &'a OnDuplicateKey),
    /// Assignments over the rows of a plan.
    Update(&'a TableSchema, &'a Plan, &'a [(usize, Expr)]),
    /// A change of matching rows: an update of columns, or a delete without columns.
    Matches(&'a TableSchema, Option<&'a [usize]>),
}

/// Properties of a row statement that the engine needs apart from running it. It borrows from the
/// statement and allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription<'a> {
    /// Name in error messages, such as `INSERT`.
    pub name: &'static str,
    /// How it accesses rows.
    pub access: Access,
    /// Columns of its result.
    pub output: Output<'a>,
    /// Title line above its plans in an `EXPLAIN`.
    pub(crate) title: Title<'a>,
    /// Its plans in the order an `EXPLAIN` shows them.
    pub(crate) plans: [Option<&'a Plan>; 2],
}

/// Which output columns of a plan a statement needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanRole {
    /// Only the columns that it uses.
    Result,
    /// Every column of the table, because rows are rewritten or locked.
    Target,
}

impl Write {
    fn describe(&self) -> RowDescription<'_> {
        let (name, title, plans) = match self {
            Write::Insert { table, source } => {
                ("INSERT", Title::Action("Insert", &table.name), [Some(source), None])
            }
            Write::Upsert { table, source, on_duplicate, .. } => {
                ("INSERT", Title::Upsert(table, on_duplicate), [Some(source), None])
            }
            Write::Update { table, input, assignments } => {
                ("UPDATE", Title::Update(table, input, assignments), [Some(input), None])
            }
            Write::Delete { table, input } => {
                ("DELETE", Title::Action("Delete", &table.name), [Some(input), None])
            }
            Write::Change { table, target, matches, columns, .. } => {
                let name = if columns.is_some() { "UPDATE" } else { "DELETE" };
                let title = Title::Matches(table, columns.as_deref());
                (name, title, [Some(target), Some(matches)])
            }
        };
        RowDescription { name, access: Access::Writes, output: Output::Nothing, title, plans }
    }

    fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        use PlanRole::{Result, Target};
        match self {
            Write::Insert { source, .. } | Write::Upsert { source, .. } => vec![(Result, source)],
            Write::Update { input, .. } | Write::Delete { input, .. } => vec![(Target, input)],
            Write::Change { target, matches, .. } => vec![(Target, target), (Result, matches)],
        }
    }
}

impl RowStatement {
    /// Describes the statement.
    pub fn describe(&self) -> RowDescription<'_> {
        match self {
            RowStatement::Query(plan) => RowDescription {
                name: "SELECT",
                access: Access::Reads,
                output: Output::Plan(plan),
                title: Title::Untitled,
                plans: [Some(plan), None],
            },
            RowStatement::Lock { table, input, output } => RowDescription {
                name: "SELECT FOR UPDATE",
                access: Access::Writes,
                output: Output::Plan(output),
                title: Title::Action("Lock", &table.name),
                plans: [Some(input), Some(output)],
            },
            RowStatement::Write(write) => write.describe(),
            RowStatement::Returning { write, fields, .. } => {
                RowDescription { output: Output::Fields(fields), ..write.describe() }
            }
            RowStatement::CreateTableAs { schema, source, .. } => RowDescription {
                name: "CREATE TABLE AS",
                access: Access::WritesAlone,
                output: Output::Nothing,
                title: Title::Action("CreateTableAs", &schema.name),
                plans: [Some(source), None],
            },
            RowStatement::Explain(_) => RowDescription {
                name: "EXPLAIN",
                access: Access::Reads,
                output: Output::Explanation,
                title: Title::Untitled,
                plans: [None, None],
            },
            RowStatement::Profile(inner) => {
                RowDescription { output: Output::Profile, ..inner.describe() }
            }
        }
    }

    /// Returns the plans that the statement runs, with their roles.
    pub(crate) fn plans_mut(&mut self) -> Vec<(PlanRole, &mut Plan)> {
        use PlanRole::{Result, Target};
        match self {
            RowStatement::Query(plan) => vec![(Result, plan)],
            RowStatement::Lock { input, output, .. } => vec![(Target, input), (Result, output)],
            RowStatement::Write(write) | RowStatement::Returning { write, .. } => write.plans_mut(),
            RowStatement::CreateTableAs { source, .. } => vec![(Result, source)],
            RowStatement::Explain(inner) => inner.plans_mut(),
            RowStatement::Profile(inner) => inner.plans_mut(),
        }
    }
}
