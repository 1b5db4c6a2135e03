//! Statements that read or write rows. They run inside a transaction.

use super::bound::Statement;
use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, IndexId, TableSchema};
use std::sync::Arc;

/// What an insert does with a row one of whose unique keys is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum OnDuplicateKey {
    /// `INSERT IGNORE`, `ON CONFLICT DO NOTHING`: keeps the old row.
    Ignore,
    /// `REPLACE`: the new row takes its place.
    Replace,
    /// `ON DUPLICATE KEY UPDATE`, `ON CONFLICT DO UPDATE`: changes the old row. Expressions see the old row's columns,
    /// then the new one's.
    Update {
        /// `(column position, new value)`.
        assignments: Vec<(usize, Expr)>,
        /// Changes the old row only when it is true.
        filter: Option<Expr>,
    },
}

/// A statement that writes rows of one table.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// `INSERT`: `source` yields the table's columns in table order, already cast, with defaults filled in.
    Insert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
    },
    /// An insert that says what happens to a row whose key is taken. Rows are as those of `Insert`, written one after
    /// the other: a later row meets what an earlier one wrote.
    Upsert {
        /// Target.
        table: Arc<TableSchema>,
        /// Rows to insert.
        source: Plan,
        /// Unique keys that count: indexes, and `None` for the primary key. Any other key that is taken is an error.
        keys: Vec<Option<IndexId>>,
        /// What to do when one of them is taken.
        on_duplicate: OnDuplicateKey,
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
        /// Its rows that may change: scans it (all columns in table order) under conditions on its columns alone.
        target: Plan,
        /// Id of the `Given` in `matches`: the rows of `target`, each followed by its number, from zero.
        rows: u32,
        /// A row's number, new values of `columns`, then what `RETURNING` sees beside the row. A row that matches
        /// several times is changed once, by its first match.
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
        /// Rows to lock: scans the table (all columns in table order) under the query's `WHERE`.
        input: Plan,
        /// The query itself, over the same rows.
        output: Plan,
    },
    /// Writes rows.
    Write(Write),
    /// Writes rows and returns expressions over each row as it was written, or deleted, and what `Change` has beside
    /// it.
    Returning {
        /// What writes.
        write: Write,
        /// Over the row.
        exprs: Vec<Expr>,
        /// Output columns.
        fields: Vec<Field>,
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
    /// `EXPLAIN`: returns the statement's plan and does not run it.
    Explain(Box<Statement>),
    /// `PROFILE`, `EXPLAIN ANALYZE`: runs the statement and returns what each part of its plan did instead of its rows.
    Profile(Box<RowStatement>),
}

/// What a statement does to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads them.
    Reads,
    /// Writes them, or moves them in order to lock them.
    Writes,
    /// Writes them and changes the catalog, so it takes a transaction of its own.
    WritesAlone,
}

impl Access {
    /// Whether it may write rows, or move them in order to lock them.
    pub fn writes(self) -> bool {
        self != Access::Reads
    }
}

/// Columns of a statement's result.
#[derive(Clone, Copy, Debug)]
pub enum Output<'a> {
    /// Returns no rows.
    Nothing,
    /// Those of a plan.
    Plan(&'a Plan),
    /// Those listed.
    Fields(&'a [Field]),
    /// One line of text a row.
    Explanation,
    /// A plan's lines, each with what was measured.
    Profile,
}

impl Output<'_> {
    /// The columns.
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

/// What heads the plans of a statement in its `EXPLAIN`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Title<'a> {
    /// Nothing: the plan is all there is.
    Untitled,
    /// An action and the name of its target.
    Action(&'static str, &'a str),
    /// An insert that says what happens to a row whose key is taken.
    Upsert(&'a TableSchema, &'a OnDuplicateKey),
    /// Assignments over the rows of a plan.
    Update(&'a TableSchema, &'a Plan, &'a [(usize, Expr)]),
    /// A change of matching rows; without columns they are deleted.
    Matches(&'a TableSchema, Option<&'a [usize]>),
}

/// What the engine needs to know of a row statement besides how to run it. Borrows: describing a statement allocates
/// nothing.
#[derive(Clone, Copy, Debug)]
pub struct RowDescription<'a> {
    /// As messages call it: `INSERT`.
    pub name: &'static str,
    /// What it does to rows.
    pub access: Access,
    /// Columns of its result.
    pub output: Output<'a>,
    /// What heads its plans in an `EXPLAIN`.
    pub(crate) title: Title<'a>,
    /// Its plans in the order an `EXPLAIN` shows them.
    pub(crate) plans: [Option<&'a Plan>; 2],
}

/// What a statement needs of a plan's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanRole {
    /// The columns that are used.
    Result,
    /// Every column of the table: its rows are rewritten or locked.
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

    /// The plans it runs, each with the role it plays.
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
