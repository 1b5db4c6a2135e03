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
use nacre_sql::{CatalogStatement, Statement};
use nacre_types::invariant::broken;
use nacre_types::{Error, Result};

/// Whether a statement creates a temporary table.
fn creates_temporary(statement: &CatalogStatement) -> bool {
    matches!(statement, CatalogStatement::CreateTable { schema, .. } if schema.is_temporary())
}

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
        Statement::Catalog(statement) => {
            let may_be_temporary = transaction.has_temporary() || creates_temporary(statement);
            match (statement, transaction.get_mut()) {
                (CatalogStatement::Optimize { table, .. }, _) if table.is_temporary() => {
                    Err(Error::unsupported("OPTIMIZE of a TEMPORARY table"))
                }
                (_, Some(open)) => catalog_in_transaction::run(statement, engine, open),
                (CatalogStatement::Optimize { .. }, None) => {
                    catalog_change::run(statement, engine, settings.cancel_flag()).await
                }
                (_, None) if may_be_temporary => {
                    transaction.begin(engine)?;
                    let ran = match transaction.get_mut() {
                        Some(own) => catalog_in_transaction::run(statement, engine, own),
                        None => broken(format_args!("a transaction has begun and is not open")),
                    };
                    match ran {
                        Ok(result) => transaction.commit(engine).await.map(|()| result),
                        Err(error) => {
                            transaction.rollback();
                            Err(error)
                        }
                    }
                }
                (_, None) => {
                    let result =
                        catalog_change::run(statement, engine, settings.cancel_flag()).await?;
                    engine.acknowledge().await?;
                    Ok(result)
                }
            }
        }
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
