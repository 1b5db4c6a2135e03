//! What the engine needs to know of a statement that reads or writes rows, besides how to run it.

use super::bound::{IfLocked, LockedRows, OnDuplicateKey, RowStatement, WriteStatement};
use crate::expr::Expr;
use crate::plan::{Field, Plan};
use nacre_types::{DataType, TableSchema};

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
                field("filters", DataType::TEXT, true),
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

impl WriteStatement {
    fn describe(&self) -> RowDescription<'_> {
        let (name, title, plans) = match self {
            WriteStatement::Insert { table, source } => {
                ("INSERT", Title::Action("Insert", &table.name), [Some(source), None])
            }
            WriteStatement::Upsert { table, source, on_duplicate, .. } => {
                ("INSERT", Title::Upsert(table, on_duplicate), [Some(source), None])
            }
            WriteStatement::Update { table, input, assignments } => {
                ("UPDATE", Title::Update(table, input, assignments), [Some(input), None])
            }
            WriteStatement::Delete { table, input } => {
                ("DELETE", Title::Action("Delete", &table.name), [Some(input), None])
            }
            WriteStatement::Change { table, target, matches, columns, .. } => {
                let name = if columns.is_some() { "UPDATE" } else { "DELETE" };
                let title = Title::Matches(table, columns.as_deref());
                (name, title, [Some(target), Some(matches)])
            }
            WriteStatement::Merge { table, target, matches, .. } => {
                ("MERGE", Title::Action("Merge", &table.name), [Some(target), Some(matches)])
            }
        };
        RowDescription { name, access: Access::Writes, output: Output::Nothing, title, plans }
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
            RowStatement::Lock { table, input, rows, if_locked } => {
                let (output, title, plan) = match rows {
                    LockedRows::All(plan) => {
                        (Output::Plan(plan), Title::Action("Lock", &table.name), plan)
                    }
                    LockedRows::First { plan, fields, .. } => {
                        let skips = *if_locked == IfLocked::Skip;
                        let action = if skips { "LockFirstFree" } else { "LockFirst" };
                        (Output::Fields(fields), Title::Action(action, &table.name), plan)
                    }
                };
                RowDescription {
                    name: "SELECT FOR UPDATE",
                    access: Access::Writes,
                    output,
                    title,
                    plans: [Some(input), Some(plan)],
                }
            }
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
}
