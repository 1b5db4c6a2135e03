//! Runs a statement in a transaction: the open one, or its own, committed at its end.
//!
//! Outside an explicit transaction, a statement is retried if it meets a conflict or runs out of
//! files. In an explicit transaction, a failed statement is undone, and the transaction stays open.
//! A statement that meets a row lock is undone, waits, and is retried.

use crate::admission::admit_write;
use crate::engine::Engine;
use crate::execution::{Execution, ExecutionParts, InsertPath};
use crate::lock_wait::LockWaits;
use crate::point::Point;
use crate::result::{StatementResult, StatementStatistics};
use crate::retry::{Conflicts, Shortages};
use crate::settings::Settings;
use crate::slots::Slot;
use crate::statement;
use crate::transaction::OpenTransaction;
use nacre_exec::Statistics;
use nacre_sql::{Access, RowStatement};
use nacre_table::{Blocker, Owner, Transaction};
use nacre_types::{Error, Result, Timestamp, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A statement to run, with a point plan if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub statement: &'a RowStatement,
    pub point: Option<&'a Point>,
    pub parameters: &'a [Value],
}

/// The outcome of one attempt.
enum Attempt {
    Done(StatementResult),
    /// Undone.
    Failed(Error),
    /// Undone. Another owner holds a lock, as `error` reports.
    Blocked {
        blocker: Blocker,
        waiter: Arc<Owner>,
        error: Error,
    },
}

/// Runs a statement in the open transaction, or in its own.
///
/// Errors: those of the statement; `conflict`, `deadlock` and `lock_timeout` if retrying does not
/// help.
pub(crate) async fn run(
    work: Work<'_>,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<StatementResult> {
    let described = work.statement.describe();
    if described.access == Access::WritesAlone && open.is_open() {
        let name = described.name;
        return Err(Error::unsupported(format!("{name} inside a transaction")));
    }
    let result = retried(work, engine, open, settings).await;
    if described.access == Access::WritesAlone {
        engine.catalog_changed();
    }
    result
}

/// Runs a statement until it succeeds or retrying does not help.
async fn retried(
    work: Work<'_>,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<StatementResult> {
    let access = work.statement.describe().access;
    let writes = access.writes();
    let bound_to = engine.store().last_ddl();
    if writes {
        engine.store().check_writable()?;
        admit_write(access, engine, open, settings).await?;
        engine.prepare_files().await?;
    }
    let mut waits = LockWaits::new(engine);
    let (mut conflicts, mut shortages) = (Conflicts::default(), Shortages::default());
    loop {
        let insert_path = match open.is_open() || conflicts.met() {
            true => InsertPath::Rowstore,
            false => InsertPath::Direct,
        };
        let slot = match work.point {
            Some(_) => None,
            None => Some(engine.slot(settings.cancel_flag()).await?),
        };
        check_catalog(bound_to, engine, open.is_open())?;
        match attempt(work, insert_path, slot, engine, open, settings)? {
            Attempt::Done(result) => {
                open.wrote(result.rows_affected);
                if !open.is_open() && writes {
                    engine.housekeeping();
                }
                return Ok(result);
            }
            Attempt::Blocked { blocker, waiter, error } => {
                waits.wait(waiter, &blocker, error, engine, settings).await?;
            }
            Attempt::Failed(error) if open.is_open() => return Err(error),
            Attempt::Failed(error) if conflicts.should_retry(&error) => {
                // The conflicting commit may not be visible yet; without it, a retry would meet the
                // same conflict.
                if writes {
                    engine.store().catch_up()?;
                }
            }
            Attempt::Failed(error) if writes && shortages.should_retry(&error, engine) => {
                engine.prepare_files().await?;
            }
            Attempt::Failed(error) => return Err(error),
        }
    }
}

/// Fails with a `conflict` if the catalog has changed while a statement waited outside a
/// transaction, so that it is bound again: it may read views that are others by now.
pub(crate) fn check_catalog(
    bound_to: Timestamp,
    engine: &Engine,
    in_transaction: bool,
) -> Result<()> {
    if in_transaction || engine.store().last_ddl() <= bound_to {
        return Ok(());
    }
    Err(Error::conflict("the catalog was changed while the statement waited")
        .with_hint("retry the statement"))
}

/// Runs a read-only statement once. Readers never wait.
pub(crate) fn read(
    work: Work<'_>,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<StatementResult> {
    match attempt(work, InsertPath::Rowstore, None, engine, open, settings)? {
        Attempt::Done(result) => Ok(result),
        Attempt::Failed(error) | Attempt::Blocked { error, .. } => Err(error),
    }
}

/// Runs a statement once, undoing it if it fails. An explicit transaction stays open. The slot is
/// returned before a commit waits for its sync.
fn attempt(
    work: Work<'_>,
    insert_path: InsertPath,
    slot: Option<Slot<'_>>,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<Attempt> {
    let explicit = open.take();
    let autocommit = explicit.is_none();
    let mut transaction = match explicit {
        Some(transaction) => transaction,
        None => engine.store().begin()?,
    };
    let savepoint = transaction.savepoint();
    let executed = execute(work, insert_path, &mut transaction, engine, settings);
    drop(slot);
    match executed {
        Ok(result) if autocommit => {
            Ok(transaction.commit().map_or_else(Attempt::Failed, |()| Attempt::Done(result)))
        }
        Ok(result) => {
            open.put_back(transaction);
            Ok(Attempt::Done(result))
        }
        Err(error) => {
            // Roll back before taking the blocker: a transaction that is about to wait notifies no
            // waiters.
            transaction.rollback_to(savepoint);
            let blocker = transaction.take_blocker();
            // The waiter holds no locks of this statement. An explicit transaction keeps its
            // earlier locks and waits under its own identity, so that deadlocks through those locks
            // are detected.
            let waiter = if autocommit {
                drop(transaction);
                engine.store().new_owner()
            } else {
                let owner = transaction.owner().clone();
                open.put_back(transaction);
                owner
            };
            Ok(match blocker {
                Some(blocker) => Attempt::Blocked { blocker, waiter, error },
                None => Attempt::Failed(error),
            })
        }
    }
}

/// Runs a statement in a transaction: by its point plan if it applies, otherwise by its plans.
fn execute(
    work: Work<'_>,
    insert_path: InsertPath,
    transaction: &mut Transaction,
    engine: &Engine,
    settings: &Settings,
) -> Result<StatementResult> {
    let statistics = Statistics::default();
    let cancelled = {
        let cancel = settings.cancel_flag().clone();
        move || cancel.load(Ordering::Relaxed)
    };
    let parts = ExecutionParts {
        store: engine.store(),
        parameters: work.parameters,
        statistics: &statistics,
        memory: &settings.memory(),
        now_us: engine.host().clock.wall_us(),
        cancelled: &cancelled,
        threads: settings.threads(),
        scan_strategy: settings.scan_strategy(),
    };
    let execution = Execution::new(parts, insert_path);
    if let Some(point) = work.point
        && let Some(result) = point.run(transaction, &execution)?.result(work.statement)
    {
        return Ok(result);
    }
    let mut result = statement::run(transaction, work.statement, &execution)?;
    result.statistics = StatementStatistics::of(&statistics);
    Ok(result)
}
