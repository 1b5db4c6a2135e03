//! Chooses how to run a bound statement.

use crate::binding::Binding;
use crate::catalog_change;
use crate::control;
use crate::engine::Engine;
use crate::result::StatementResult;
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use crate::transactional;
use nacre_sql::Statement;
use nacre_types::{Result, Value};

/// Runs a bound statement: control statements by `control`, catalog changes by `catalog_change`, a
/// point read outside a transaction immediately, and everything else in a transaction.
pub(crate) async fn run(
    binding: &Binding,
    parameters: &[Value],
    engine: &Engine,
    transaction: &mut OpenTransaction,
    settings: &mut Settings,
) -> Result<StatementResult> {
    let parameters = binding.cast(parameters)?;
    settings.begin_statement();
    match binding.statement() {
        Statement::Control(statement) => {
            control::run(statement, engine, transaction, settings).await
        }
        Statement::Catalog(statement) => {
            catalog_change::run(statement, engine, transaction.is_open()).await
        }
        Statement::Rows(statement) => {
            if let (false, Some(point)) = (transaction.is_open(), binding.point())
                && let Some(result) =
                    point.read_newest(engine.store(), &parameters)?.result(statement)
            {
                return Ok(result);
            }
            let work = transactional::Work { statement, point: binding.point() };
            transactional::run(work, &parameters, engine, transaction, settings).await
        }
    }
}
