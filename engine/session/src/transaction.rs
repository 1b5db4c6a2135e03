//! The transaction that a connection has open beyond a statement, and its savepoints.

use crate::engine::Engine;
use nacre_table::{Savepoint, Transaction};
use nacre_types::{Error, Result, Timestamp};

/// The open transaction, if there is one.
#[derive(Default)]
pub(crate) struct OpenTransaction {
    transaction: Option<Transaction>,
    /// Named points of it, oldest first. A name may occur more than once: the newest counts.
    savepoints: Vec<(String, Savepoint)>,
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

    /// Takes the transaction for the length of a statement.
    pub fn take(&mut self) -> Option<Transaction> {
        self.transaction.take()
    }

    /// Gives back what [`OpenTransaction::take`] took.
    pub fn put_back(&mut self, transaction: Transaction) {
        debug_assert!(self.transaction.is_none(), "a statement ran in two transactions");
        self.transaction = Some(transaction);
    }

    /// The state of the catalog that statements are bound under: as the open transaction sees it, or else as the next
    /// one will.
    pub fn sees(&self, engine: &Engine) -> Timestamp {
        self.transaction.as_ref().map_or_else(|| engine.store().visible(), Transaction::snapshot)
    }

    pub fn begin(&mut self, engine: &Engine) -> Result<()> {
        if self.is_open() {
            return Err(Error::unsupported("BEGIN inside a transaction").with_sqlstate("25001"));
        }
        self.transaction = Some(engine.store().begin()?);
        Ok(())
    }

    /// Commits; without an open transaction it does nothing.
    pub async fn commit(&mut self, engine: &Engine) -> Result<()> {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            engine.prepare_files().await?;
            transaction.commit()?;
            engine.housekeeping();
        }
        Ok(())
    }

    /// Rolls back; without an open transaction it does nothing.
    pub fn rollback(&mut self) {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback();
        }
    }

    pub fn savepoint(&mut self, name: &str) -> Result<()> {
        let transaction = self.transaction.as_ref().ok_or_else(|| outside("SAVEPOINT"))?;
        self.savepoints.push((name.to_string(), transaction.savepoint()));
        Ok(())
    }

    /// Undoes what came after the savepoint. It stays; later ones are gone.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let transaction =
            self.transaction.as_mut().ok_or_else(|| outside("ROLLBACK TO SAVEPOINT"))?;
        let at = newest_savepoint(&self.savepoints, name)?;
        self.savepoints.truncate(at + 1);
        transaction.rollback_to(self.savepoints[at].1);
        Ok(())
    }

    /// Forgets the savepoint and those after it; the changes stay.
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
