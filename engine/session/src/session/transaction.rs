//! Transactions that last longer than a statement, and their savepoints.

use super::Connection;
use crate::result::{ResultKind, StatementResult};
use nacre_table::Savepoint;
use nacre_types::{Error, Result};

fn outside(what: &str) -> Error {
    Error::unsupported(format!("{what} outside a transaction"))
        .with_sqlstate("25P01")
        .with_hint("BEGIN first")
}

fn newest_savepoint(savepoints: &[(String, Savepoint)], name: &str) -> Result<usize> {
    let found = savepoints.iter().rposition(|(known, _)| known.eq_ignore_ascii_case(name));
    found.ok_or_else(|| Error::not_found(format!("no savepoint `{name}`")).with_sqlstate("3B001"))
}

impl Connection {
    pub(super) fn begin(&mut self) -> Result<StatementResult> {
        if self.transaction.is_some() {
            return Err(Error::unsupported("BEGIN inside a transaction").with_sqlstate("25001"));
        }
        self.transaction = Some(self.engine.store.begin()?);
        Ok(StatementResult::new(ResultKind::Control))
    }

    pub(super) async fn commit(&mut self) -> Result<StatementResult> {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            self.engine.host.store.prepare().await?;
            transaction.commit()?;
            self.engine.housekeeping();
        }
        Ok(StatementResult::new(ResultKind::Control))
    }

    pub(super) fn rollback(&mut self) -> Result<StatementResult> {
        self.savepoints.clear();
        if let Some(transaction) = self.transaction.take() {
            transaction.rollback();
        }
        Ok(StatementResult::new(ResultKind::Control))
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<StatementResult> {
        let transaction = self.transaction.as_ref().ok_or_else(|| outside("SAVEPOINT"))?;
        self.savepoints.push((name.to_string(), transaction.savepoint()));
        Ok(StatementResult::new(ResultKind::Control))
    }

    /// The savepoint itself stays, those after it are gone.
    pub(super) fn rollback_to(&mut self, name: &str) -> Result<StatementResult> {
        let transaction =
            self.transaction.as_mut().ok_or_else(|| outside("ROLLBACK TO SAVEPOINT"))?;
        let at = newest_savepoint(&self.savepoints, name)?;
        self.savepoints.truncate(at + 1);
        transaction.rollback_to(self.savepoints[at].1);
        Ok(StatementResult::new(ResultKind::Control))
    }

    /// The savepoint and those after it are gone; the changes stay.
    pub(super) fn release(&mut self, name: &str) -> Result<StatementResult> {
        if self.transaction.is_none() {
            return Err(outside("RELEASE SAVEPOINT"));
        }
        let at = newest_savepoint(&self.savepoints, name)?;
        self.savepoints.truncate(at);
        Ok(StatementResult::new(ResultKind::Control))
    }
}
