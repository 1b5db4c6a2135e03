//! Statements that change the catalog or maintain a table. They run outside any transaction.

use nacre_types::{Column, IndexSchema, TableSchema, ViewSchema};
use std::sync::Arc;

/// A bound statement that changes the catalog or maintains a table.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogStatement {
    /// `CREATE TABLE`. The schema's id is zero; the catalog assigns it.
    CreateTable {
        /// New table.
        schema: TableSchema,
        /// `IF NOT EXISTS`.
        if_not_exists: bool,
        /// `OR REPLACE`: drops a table with its name.
        replace: bool,
    },
    /// `DROP TABLE`.
    DropTable {
        /// Names as written.
        names: Vec<String>,
        /// `IF EXISTS`.
        if_exists: bool,
        /// `CASCADE`: also drops foreign keys of other tables that refer to them.
        cascade: bool,
    },
    /// `ALTER TABLE`.
    AlterTable {
        /// The table as of binding.
        table: Arc<TableSchema>,
        /// The new schema. Columns keep their ids; the storage increments the version.
        changed: TableSchema,
    },
    /// `TRUNCATE TABLE`.
    Truncate {
        /// Tables to empty.
        tables: Vec<Arc<TableSchema>>,
    },
    /// `OPTIMIZE TABLE t [FLUSH | FULL]`: moves the rows of the rowstore to a segment.
    Optimize {
        /// Table.
        table: Arc<TableSchema>,
        /// `FULL`: also merges all segments into one sorted run.
        full: bool,
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
    /// `CREATE INDEX`.
    CreateIndex {
        /// The table as of binding.
        table: Arc<TableSchema>,
        /// New index. Its id is zero; the storage assigns it.
        index: IndexSchema,
        /// The table with the index, if that computes a column.
        changed: Option<TableSchema>,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// Tables as of binding, each with the name of an index to drop.
        indexes: Vec<(Arc<TableSchema>, String)>,
    },
}

/// When a statement resolves the names in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameResolution {
    /// At binding; the statement is bound again if the catalog changes before it runs.
    WhenBound,
    /// At execution.
    WhenRun,
}

/// Properties of a catalog statement that the engine needs apart from running it.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogDescription {
    /// Name in error messages, such as `CREATE TABLE`.
    pub name: &'static str,
    /// When the names in it are resolved.
    pub names: NameResolution,
    /// Lines of its `EXPLAIN`.
    pub lines: Vec<String>,
}

impl CatalogStatement {
    /// Describes the statement.
    pub fn describe(&self) -> CatalogDescription {
        use NameResolution::{WhenBound, WhenRun};
        let (name, names, lines) = match self {
            CatalogStatement::CreateTable { schema, .. } => {
                ("CREATE TABLE", WhenBound, table_lines(schema))
            }
            CatalogStatement::DropTable { names, .. } => {
                ("DROP TABLE", WhenRun, vec![format!("DropTable {}", names.join(", "))])
            }
            CatalogStatement::AlterTable { table, .. } => {
                ("ALTER TABLE", WhenBound, vec![format!("AlterTable {}", table.name)])
            }
            CatalogStatement::Truncate { tables } => {
                let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
                ("TRUNCATE", WhenBound, vec![format!("Truncate {}", names.join(", "))])
            }
            CatalogStatement::Optimize { table, full } => {
                let full = if *full { " full" } else { "" };
                ("OPTIMIZE TABLE", WhenBound, vec![format!("Optimize {}{full}", table.name)])
            }
            CatalogStatement::CreateView { view, .. } => {
                ("CREATE VIEW", WhenBound, vec![format!("CreateView {}", view.name)])
            }
            CatalogStatement::DropView { names, .. } => {
                ("DROP VIEW", WhenRun, vec![format!("DropView {}", names.join(", "))])
            }
            CatalogStatement::CreateIndex { table, index, changed } => {
                let unique = if index.unique { "Unique" } else { "" };
                let columns = index_columns(changed.as_ref().unwrap_or(table), index);
                let name = &index.name;
                let line = format!("Create{unique}Index {name} on {} [{columns}]", table.name);
                ("CREATE INDEX", WhenBound, vec![line])
            }
            CatalogStatement::DropIndex { indexes } => {
                let named =
                    indexes.iter().map(|(table, index)| format!("{index} on {}", table.name));
                let line = format!("DropIndex {}", named.collect::<Vec<_>>().join(", "));
                ("DROP INDEX", WhenBound, vec![line])
            }
        };
        CatalogDescription { name, names, lines }
    }
}

/// Renders a new table: a line with its columns, and one for each key and index.
fn table_lines(schema: &TableSchema) -> Vec<String> {
    let column = |c: &Column| {
        format!("{} {}{}", c.name, c.data_type, if c.nullable { "" } else { " NOT NULL" })
    };
    let columns: Vec<String> = schema.columns.iter().map(column).collect();
    let mut lines = vec![format!("CreateTable {} [{}]", schema.name, columns.join(", "))];
    if let Some(key) = &schema.primary_key {
        let names: Vec<&str> = key.columns.iter().map(|at| &*schema.columns[*at].name).collect();
        lines.push(format!("  PrimaryKey [{}]", names.join(", ")));
    }
    for index in schema.declared_indexes() {
        let unique = if index.unique { "Unique" } else { "" };
        let (name, columns) = (&index.name, index_columns(schema, index));
        lines.push(format!("  {unique}Index {name} [{columns}]"));
    }
    lines
}

fn index_columns(table: &TableSchema, index: &IndexSchema) -> String {
    let positions = index.columns.iter().filter_map(|id| table.key_position(*id));
    let names: Vec<&str> = positions.map(|at| &*table.key_column(at).name).collect();
    names.join(", ")
}
