//! Chooses how to run a bound statement.

use crate::aside::Aside;
use crate::binding::Invocation;
use crate::boxed::Boxed;
use crate::catalog_change;
use crate::catalog_in_transaction;
use crate::control;
use crate::engine::Engine;
use crate::references;
use crate::result::StatementResult;
use crate::retry::Conflicts;
use crate::settings::Settings;
use crate::transaction::OpenTransaction;
use crate::transactional;
use nacre_sql::{CatalogStatement, Statement};
use nacre_table::Transaction;
use nacre_types::invariant::broken;
use nacre_types::{Error, Result};

/// Whether a statement creates a temporary table.
fn creates_temporary(statement: &CatalogStatement) -> bool {
    matches!(statement, CatalogStatement::CreateTable { schema, .. } if schema.is_temporary())
}

/// Changes the catalog in a transaction that does nothing else.
async fn in_own_transaction(
    statement: &CatalogStatement,
    engine: &Engine,
    transaction: &mut OpenTransaction,
    settings: &Settings,
) -> Result<StatementResult> {
    transaction.begin(engine)?;
    let ran = match transaction.get_mut() {
        Some(own) => in_transaction(statement, engine, own, settings).await,
        None => broken(format_args!("a transaction has begun and is not open")),
    };
    match ran {
        Ok(result) => transaction.commit(engine, settings).await.map(|()| result),
        Err(error) => {
            transaction.rollback();
            Err(error)
        }
    }
}

/// Changes the catalog in an open transaction, and checks the rows of a table for new foreign keys.
fn in_transaction<'a>(
    statement: &'a CatalogStatement,
    engine: &'a Engine,
    open: &'a mut Transaction,
    settings: &'a Settings,
) -> Boxed<'a, StatementResult> {
    Box::pin(run_in_transaction(statement, engine, open, settings))
}

async fn run_in_transaction(
    statement: &CatalogStatement,
    engine: &Engine,
    open: &mut Transaction,
    settings: &Settings,
) -> Result<StatementResult> {
    let savepoint = open.savepoint();
    let result = catalog_in_transaction::run(statement, engine, open)?;
    if let CatalogStatement::AlterTable { table, changed } = statement
        && changed.foreign_keys != table.foreign_keys
    {
        let (aside, cancelled) = (Aside::new(engine, settings), || settings.is_cancelled());
        let execution = aside.execution(engine, settings, &cancelled);
        let verified = references::verify(open, table, &execution).await;
        if verified.is_err() {
            open.rollback_to(savepoint);
        }
        verified?;
    }
    Ok(result)
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
            let store = engine.store();
            let is_referring = references::is_concerned(statement, |name| store.table(name));
            match (statement, transaction.get_mut()) {
                (CatalogStatement::Optimize { table, .. }, _) if table.is_temporary() => {
                    Err(Error::unsupported("OPTIMIZE of a TEMPORARY table"))
                }
                (_, Some(open)) => in_transaction(statement, engine, open, settings).await,
                (CatalogStatement::Optimize { .. }, None) => {
                    catalog_change::run(statement, engine, settings.cancel_flag()).await
                }
                (_, None) if may_be_temporary || is_referring => {
                    let mut conflicts = Conflicts::default();
                    loop {
                        engine.prepare_files().await?;
                        match in_own_transaction(statement, engine, transaction, settings).await {
                            Err(error) if is_referring && conflicts.should_retry(&error) => {
                                store.catch_up()?;
                            }
                            done => return done,
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
