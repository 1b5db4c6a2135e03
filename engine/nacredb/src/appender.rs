//! Bulk loading through the public face.

use crate::database::Database;
use crate::session::Session;
use nacre_column::Batch;
use nacre_table::{BulkLoad, OnDuplicate};
use nacre_types::{Error, Result, TableSchema};
use std::sync::Arc;

/// A bulk load: rows go straight into sorted segments and become visible together at [`Appender::finish`].
/// Dropping it instead leaves the table as it was.
pub struct Appender {
    db: Database,
    load: BulkLoad,
}

impl Session {
    /// Starts a bulk load into a table. It is a transaction of its own.
    pub async fn appender(&mut self, table: &str, on_duplicate: OnDuplicate) -> Result<Appender> {
        if self.in_transaction() {
            return Err(Error::unsupported("bulk load inside a transaction"));
        }
        self.database().0.prepare_files().await?;
        let store = self.database().0.store();
        let target = store
            .table(table)
            .ok_or_else(|| Error::not_found(format!("table {table}")).with_sqlstate("42P01"))?;
        Ok(Appender { db: self.database().clone(), load: store.bulk_load(&target, on_duplicate) })
    }
}

impl Appender {
    /// The table's schema.
    pub fn schema(&self) -> &Arc<TableSchema> {
        self.load.table().schema()
    }

    /// Adds rows: one vector a column, in table order, each of the column's type.
    pub fn append(&mut self, batch: &Batch) -> Result<()> {
        self.load.append(batch)
    }

    /// Makes all rows visible, durably, or none. Answers how many rows the table gained or replaced.
    pub async fn finish(self) -> Result<u64> {
        self.db.0.prepare_files().await?;
        let rows = self.load.finish()?;
        self.db.0.housekeeping();
        Ok(rows)
    }
}
