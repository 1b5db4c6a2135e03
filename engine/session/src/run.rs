//! Chooses how to run a bound statement.

use crate::binding::Invocation;
use crate::catalog_change;
use crate::catalog_in_transaction;
use crate::control;
use crate::engine::Engine;
use crate::result::StatementResult;
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use crate::transactional;
use nacre_sql::Statement;
use nacre_types::Result;

/// Runs a bound statement: control statements by `control`, catalog changes by `catalog_change` or,
/// in an open transaction, by `catalog_in_transaction`, a point read outside a transaction
/// immediately, and everything else in a transaction.
pub(crate) async fn run(
    invocation: Invocation<'_>,
    engine: &Engine,
    transaction: &mut OpenTransaction,
    settings: &mut Settings,
) -> Result<StatementResult> {
    let Invocation { statement, point, parameters } = invocation;
    match statement {
        Statement::Control(statement) => {
            control::run(statement, engine, transaction, settings).await
        }
        Statement::Catalog(statement) => match transaction.get_mut() {
            Some(transaction) => catalog_in_transaction::run(statement, engine, transaction),
            None => catalog_change::run(statement, engine).await,
        },
        Statement::Rows(statement) => {
            if let (false, Some(point)) = (transaction.is_open(), point)
                && let Some(result) =
                    point.read_newest(engine.store(), &parameters)?.result(statement)
            {
                return Ok(result);
            }
            let work = transactional::Work { statement, point, parameters: &parameters };
            transactional::run(work, engine, transaction, settings).await
        }
    }
}
