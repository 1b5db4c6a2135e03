//! The changes of a table: which rows have been inserted, updated and deleted since the last call, from
//! commits of all connections.
//!
//! A feed keeps the snapshot of its last call, as a transaction that only reads does, and compares it
//! with the newest one ([`nacre_table::TableView::keys_changed_since`]).

use crate::catalog_change::no_table;
use crate::engine::Engine;
use crate::result::{ResultKind, StatementResult};
use nacre_column::Batch;
use nacre_sql::Field;
use nacre_table::{Table, TableView, Transaction};
use nacre_types::{DataType, Error, Result, TableId, Value};
use std::sync::Arc;

/// A table at a snapshot.
struct Seen {
    transaction: Transaction,
    view: TableView,
}

impl Seen {
    fn of(transaction: Transaction, table: &Arc<Table>) -> Seen {
        let view = transaction.view(table);
        Seen { transaction, view }
    }

    fn table(&self) -> &Arc<Table> {
        self.view.table()
    }

    fn row(&self, key: &[Value], columns: &[usize]) -> Result<Option<Vec<Value>>> {
        self.transaction.get(self.table(), key, columns)
    }
}

/// The changes of one table.
pub struct TableChanges {
    engine: Arc<Engine>,
    seen: Seen,
}

impl TableChanges {
    /// Begins with the changes after what is committed now.
    ///
    /// # Errors
    /// `not_found`; `unsupported` for a table without a primary key.
    pub fn begin(engine: &Arc<Engine>, table: &str) -> Result<TableChanges> {
        let transaction = engine.store().begin()?;
        let table = transaction.table(table).ok_or_else(|| no_table(table))?;
        if table.key_columns().is_none() {
            let name = &table.schema().name;
            return Err(Error::unsupported(format!(
                "changes of table {name}, which has no primary key"
            )));
        }
        Ok(TableChanges { engine: engine.clone(), seen: Seen::of(transaction, &table) })
    }

    /// The table.
    pub fn table(&self) -> TableId {
        self.seen.table().schema().id
    }

    /// The rows that differ from those of the last call, by key. The first column says what happened:
    /// `insert`, `update` or `delete`; the others are those of the table, of a deleted row the old
    /// ones. After an error the feed is where it was.
    ///
    /// # Errors
    /// `not_found` if the table was dropped, `conflict` if its columns were changed or it was
    /// truncated, `limit` if too much has changed: read the table, and begin anew.
    pub async fn next(&mut self) -> Result<StatementResult> {
        let newest = self.newest()?;
        let rows = self.engine.fetching(|| self.compared(&newest)).await?;
        let result = result(newest.table(), &rows);
        self.seen = newest;
        Ok(result)
    }

    /// The table as it is committed now.
    fn newest(&self) -> Result<Seen> {
        let old = self.seen.table();
        let name = &old.schema().name;
        let transaction = self.engine.store().begin()?;
        let table = transaction.table_by_id(old.schema().id).ok_or_else(|| {
            Error::not_found(format!("table {name} was dropped")).with_sqlstate("42P01")
        })?;
        Ok(Seen::of(transaction, &table))
    }

    fn compared(&self, newest: &Seen) -> Result<Vec<Vec<Value>>> {
        let columns: Vec<usize> = (0..newest.table().schema().columns.len()).collect();
        let mut rows = Vec::new();
        for key in &newest.view.keys_changed_since(&self.seen.view)? {
            let row = |what: &str, row: Vec<Value>| [vec![Value::Text(what.into())], row].concat();
            match (self.seen.row(key, &columns)?, newest.row(key, &columns)?) {
                (None, Some(new)) => rows.push(row("insert", new)),
                (Some(old), None) => rows.push(row("delete", old)),
                (Some(old), Some(new)) if old != new => rows.push(row("update", new)),
                _ => {}
            }
        }
        Ok(rows)
    }
}

fn result(table: &Table, rows: &[Vec<Value>]) -> StatementResult {
    let what = Field {
        name: "change".into(),
        data_type: DataType::Text { max_chars: None },
        nullable: false,
    };
    let field = |column: &nacre_types::Column| Field {
        name: column.name.clone(),
        data_type: column.data_type,
        nullable: column.nullable,
    };
    let mut result = StatementResult::new(ResultKind::Query);
    result.columns = [what].into_iter().chain(table.schema().columns.iter().map(field)).collect();
    let types: Vec<DataType> = result.columns.iter().map(|field| field.data_type).collect();
    result.batches = vec![Batch::from_rows(&types, rows)];
    result
}
