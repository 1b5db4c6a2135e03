//! Which tables were changed last, for callers that run a query again when its answer may differ.
//!
//! Counts statements that have committed, not rows: a change is reported too often rather than not
//! at all, as when a savepoint has undone it.

use nacre_sql::{Plan, RowStatement, Statement, WriteStatement, explain_row_nodes};
use nacre_types::hash::Map;
use nacre_types::{Error, Result, TableId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The newest changes of tables.
#[derive(Default)]
pub struct Changes {
    /// Whether anything has asked: until then nothing is counted.
    is_watched: AtomicBool,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    last: u64,
    /// The newest change of the catalog.
    catalog: u64,
    tables: Map<TableId, u64>,
}

impl Changes {
    /// The number of the newest change of any of these tables, or of the catalog. Numbers grow.
    pub fn newest(&self, tables: &[TableId]) -> u64 {
        self.is_watched.store(true, Ordering::Relaxed);
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tables = tables.iter().filter_map(|table| counts.tables.get(table));
        of_tables.copied().fold(counts.catalog, u64::max)
    }

    /// Counts a commit that changed a table.
    pub(crate) fn add(&self, table: TableId) {
        self.count(|counts| _ = counts.tables.insert(table, counts.last));
    }

    /// Counts a change of the catalog.
    pub(crate) fn add_catalog(&self) {
        self.count(|counts| counts.catalog = counts.last);
    }

    fn count(&self, note: impl FnOnce(&mut Counts)) {
        if self.is_watched.load(Ordering::Relaxed) {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.last += 1;
            note(&mut counts);
        }
    }
}

/// The table that a statement writes.
pub(crate) fn written(statement: &RowStatement) -> Option<TableId> {
    let write = match statement {
        RowStatement::Write(write) | RowStatement::Returning { write, .. } => write,
        RowStatement::Profile(inner) => return written(inner),
        _ => return None,
    };
    let (WriteStatement::Insert { table, .. }
    | WriteStatement::Upsert { table, .. }
    | WriteStatement::Update { table, .. }
    | WriteStatement::Delete { table, .. }
    | WriteStatement::Change { table, .. }
    | WriteStatement::Merge { table, .. }) = write;
    Some(table.id)
}

/// The tables that a query reads, each once; `unsupported` for any other statement.
pub(crate) fn read(statement: &Statement) -> Result<Vec<TableId>> {
    let mut tables = Vec::new();
    let statement = match statement {
        Statement::Rows(statement) if !statement.describe().access.writes() => statement,
        _ => return Err(Error::unsupported("watching a statement that is not a query")),
    };
    for (_, node) in explain_row_nodes(statement) {
        if let Some(Plan::Scan { table, .. }) = node
            && !tables.contains(&table.id)
        {
            tables.push(table.id);
        }
    }
    Ok(tables)
}
