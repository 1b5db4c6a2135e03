//! Statements that begin or end transactions or set options.

use crate::engine::Engine;
use crate::prepared::PreparedStatement;
use crate::result::{ResultKind, StatementResult};
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use nacre_sql::ControlStatement;
use nacre_types::{Error, Result};

/// Runs the statement.
pub(crate) async fn run(
    statement: &ControlStatement,
    engine: &Engine,
    transaction: &mut OpenTransaction,
    settings: &mut Settings,
) -> Result<StatementResult> {
    match statement {
        ControlStatement::Begin => transaction.begin(engine)?,
        ControlStatement::Commit => transaction.commit(engine, settings).await?,
        ControlStatement::Rollback => transaction.rollback(),
        ControlStatement::Savepoint(name) => transaction.savepoint(name)?,
        ControlStatement::RollbackTo(name) => transaction.rollback_to(name)?,
        ControlStatement::Release(name) => transaction.release(name)?,
        ControlStatement::Set(option) => settings.set(engine, *option),
        ControlStatement::Prepare { name, sql } => {
            let prepared = PreparedStatement::new(sql, engine, transaction.catalog(engine))?;
            if !prepared.is_of_rows() {
                let what = "PREPARE of a statement that neither reads nor writes rows";
                return Err(Error::unsupported(format!("{what} is not supported")));
            }
            settings.named().add(name, prepared)?;
        }
        ControlStatement::Execute { .. } => {
            return Err(Error::unsupported("EXECUTE in a prepared statement is not supported"));
        }
        ControlStatement::Deallocate(name) => settings.named().remove(name.as_deref())?,
        ControlStatement::WaitFor { .. } if transaction.get_mut().is_some() => {
            return Err(Error::unsupported("WAIT FOR POSITION in a transaction is not supported")
                .with_hint("what a transaction sees does not change: wait before it begins"));
        }
        ControlStatement::WaitFor { position, timeout } => {
            let settings = &*settings;
            let is_cancelled = || settings.is_cancelled();
            Box::pin(engine.wait_for(*position, *timeout, &is_cancelled)).await?;
        }
        ControlStatement::Nothing => {}
    }
    Ok(StatementResult::new(ResultKind::Control))
}
