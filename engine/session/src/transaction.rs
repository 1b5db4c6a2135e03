//! The explicit transaction of a connection, and its savepoints.

use crate::aside::Aside;
use crate::catalog::StoreCatalog;
use crate::engine::Engine;
use crate::references;
use crate::settings::Settings;
use nacre_table::{Savepoint, TemporaryTables, Transaction};
use nacre_types::{Error, Result, TableId};
use std::sync::Arc;

/// The explicit transaction, if one is open.
#[derive(Default)]
pub(crate) struct OpenTransaction {
    transaction: Option<Transaction>,
    /// Savepoints by name, oldest first. Of equal names, the newest counts.
    savepoints: Vec<(String, Savepoint)>,
    /// Rows that the connection wrote since it last asked for room, in a transaction or not.
    unpaid_rows: u64,
    /// Tables that its statements wrote, each once.
    written: Vec<TableId>,
    /// The temporary tables of the connection.
    temporary: Arc<TemporaryTables>,
}

fn outside(what: &str) -> Error {
    Error::unsupported(format!("{what} outside a transaction"))
        .with_sqlstate("25P01")
        .with_hint("BEGIN first")
}

impl OpenTransaction {
    pub fn is_open(&self) -> bool {
        self.transaction.is_some()
    }

    pub fn get(&self) -> Option<&Transaction> {
        self.transaction.as_ref()
    }

    pub fn get_mut(&mut self) -> Option<&mut Transaction> {
        self.transaction.as_mut()
    }

    /// Takes the transaction for the duration of a statement.
    pub fn take(&mut self) -> Option<Transaction> {
        self.transaction.take()
    }

    /// Returns a transaction taken with [`OpenTransaction::take`].
    pub fn put_back(&mut self, mut transaction: Transaction) {
        debug_assert!(self.transaction.is_none(), "a statement ran in two transactions");
        transaction.count_writes();
        self.transaction = Some(transaction);
    }

    /// Counts rows that the connection has written.
    pub fn wrote(&mut self, rows: u64) {
        self.unpaid_rows = self.unpaid_rows.saturating_add(rows);
    }

    /// Notes a table that a statement of the open transaction wrote.
    pub fn wrote_table(&mut self, table: TableId) {
        debug_assert!(self.is_open(), "a transaction that has ended writes");
        if !self.written.contains(&table) {
            self.written.push(table);
        }
    }

    /// The rows counted since the last call.
    pub fn take_unpaid_rows(&mut self) -> u64 {
        std::mem::take(&mut self.unpaid_rows)
    }

    /// The catalog to bind statements against: that of the open transaction, otherwise that of the
    /// next one.
    pub fn catalog<'a>(&'a self, engine: &'a Engine) -> StoreCatalog<'a> {
        let uploads = engine.uploads().map(|uploads| &**uploads);
        StoreCatalog::new(engine.store(), uploads, self.transaction.as_ref(), &self.temporary)
    }

    /// Begins a transaction that sees the connection's temporary tables, and is none that is open.
    pub fn new_transaction(&self, engine: &Engine) -> Result<Transaction> {
        Ok(engine.store().begin()?.with_temporary(&self.temporary))
    }

    /// Whether the connection has temporary tables.
    pub fn has_temporary(&self) -> bool {
        !self.temporary.is_empty()
    }

    pub fn begin(&mut self, engine: &Engine) -> Result<()> {
        if self.is_open() {
            return Err(Error::unsupported("BEGIN inside a transaction").with_sqlstate("25001"));
        }
        self.transaction = Some(self.new_transaction(engine)?);
        Ok(())
    }

    /// Commits the open transaction, if any.
    ///
    /// Errors: `constraint` for a deferred foreign key; those of the commit. Then it is undone.
    pub async fn commit(&mut self, engine: &Engine, settings: &Settings) -> Result<()> {
        self.savepoints.clear();
        if let Some(mut transaction) = self.transaction.take() {
            let written = std::mem::take(&mut self.written);
            engine.prepare_files().await?;
            if transaction.touches_references(Savepoint::default()) {
                let aside = Aside::new(engine, settings);
                let cancelled = || settings.is_cancelled();
                let execution = aside.execution(engine, settings, &cancelled);
                references::check_deferred(&mut transaction, &execution).await?;
            }
            engine.fetching(|| transaction.verify_changed()).await?;
            let changes_catalog = transaction.changes_catalog();
            let changes = changes_catalog || !written.is_empty();
            let committed = transaction.commit();
            if changes_catalog {
                engine.catalog_changed();
            }
            committed?;
            written.into_iter().for_each(|table| engine.changes().add(table));
            engine.housekeeping();
            if changes_catalog {
                engine.start_maintenance();
            }
            if changes {
                engine.acknowledge().await?;
            }
        }
        Ok(())
    }

    /// Rolls back the open transaction, if any.
    pub fn rollback(&mut self) {
        self.savepoints.clear();
        self.written.clear();
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback();
        }
    }

    pub fn savepoint(&mut self, name: &str) -> Result<()> {
        let transaction = self.transaction.as_ref().ok_or_else(|| outside("SAVEPOINT"))?;
        self.savepoints.push((name.to_string(), transaction.savepoint()));
        Ok(())
    }

    /// Undoes all changes since the savepoint and removes later savepoints.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let transaction =
            self.transaction.as_mut().ok_or_else(|| outside("ROLLBACK TO SAVEPOINT"))?;
        let at = newest_savepoint(&self.savepoints, name)?;
        self.savepoints.truncate(at + 1);
        transaction.rollback_to(self.savepoints[at].1);
        Ok(())
    }

    /// Removes the savepoint and later ones, keeping all changes.
    pub fn release(&mut self, name: &str) -> Result<()> {
        if !self.is_open() {
            return Err(outside("RELEASE SAVEPOINT"));
        }
        let at = newest_savepoint(&self.savepoints, name)?;
        self.savepoints.truncate(at);
        Ok(())
    }
}

fn newest_savepoint(savepoints: &[(String, Savepoint)], name: &str) -> Result<usize> {
    let found = savepoints.iter().rposition(|(known, _)| known.eq_ignore_ascii_case(name));
    found.ok_or_else(|| Error::not_found(format!("no savepoint `{name}`")).with_sqlstate("3B001"))
}
