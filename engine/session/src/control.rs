//! Statements that begin or end transactions or set options.

use crate::engine::Engine;
use crate::result::{ResultKind, StatementResult};
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use nacre_sql::ControlStatement;
use nacre_types::Result;

/// Runs the statement.
pub(crate) async fn run(
    statement: &ControlStatement,
    engine: &Engine,
    transaction: &mut OpenTransaction,
    settings: &mut Settings,
) -> Result<StatementResult> {
    match statement {
        ControlStatement::Begin => transaction.begin(engine)?,
        ControlStatement::Commit => transaction.commit(engine).await?,
        ControlStatement::Rollback => transaction.rollback(),
        ControlStatement::Savepoint(name) => transaction.savepoint(name)?,
        ControlStatement::RollbackTo(name) => transaction.rollback_to(name)?,
        ControlStatement::Release(name) => transaction.release(name)?,
        ControlStatement::Set(option) => settings.set(engine, *option),
        ControlStatement::Nothing => {}
    }
    Ok(StatementResult::new(ResultKind::Control))
}
