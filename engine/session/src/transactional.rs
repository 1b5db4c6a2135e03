//! Runs a statement in a transaction: the open one, or its own, committed at its end.
//!
//! Outside an explicit transaction, a statement is retried if it meets a conflict or runs out of
//! files. In an explicit transaction, a failed statement is undone, and the transaction stays open.
//! A statement that meets a row lock is undone, waits, and is retried.

use crate::admission::admit_write;
use crate::boxed::Boxed;
use crate::changes;
use crate::engine::Engine;
use crate::execution::{Execution, ExecutionParts, InsertPath, LoadEnd};
use crate::load_end::LoadMeans;
use crate::lock_wait::LockWaits;
use crate::point::Point;
use crate::progress::Reporting;
use crate::references::{self, When};
use crate::result::{StatementResult, StatementStatistics};
use crate::retry::{Conflicts, Shortages};
use crate::settings::Settings;
use crate::slots::Slot;
use crate::statement;
use crate::time_slices::TimeSlices;
use crate::transaction::OpenTransaction;
use nacre_operator::{Memory, Statistics};
use nacre_sql::{Access, IfLocked, RowStatement};
use nacre_table::{Blocker, Owner, Savepoint, Transaction};
use nacre_types::{Error, ErrorKind, Reason, Result, TableId, Timestamp, Value};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// A statement to run, with a point plan if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub statement: &'a RowStatement,
    pub point: Option<&'a Point>,
    pub parameters: &'a [Value],
}

/// The outcome of one attempt.
enum Attempt {
    Done {
        result: StatementResult,
        /// Tables whose rows have followed the keys of others.
        followed: Vec<TableId>,
    },
    /// Undone.
    Failed(Error),
    /// Undone. Another owner holds a lock, as `error` reports.
    Blocked { blocker: Blocker, waiter: Arc<Owner>, error: Error },
}

/// Runs a statement in the open transaction, or in its own.
///
/// Errors: those of the statement; `conflict`, `deadlock` and `lock_timeout` if retrying does not
/// help.
pub(crate) fn run<'a>(
    work: Work<'a>,
    engine: &'a Engine,
    open: &'a mut OpenTransaction,
    settings: &'a Settings,
) -> Boxed<'a, StatementResult> {
    Box::pin(run_work(work, engine, open, settings))
}

async fn run_work(
    work: Work<'_>,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<StatementResult> {
    let is_committed = !open.is_open();
    let result = retried(work, engine, open, settings).await;
    let access = work.statement.describe().access;
    if access == Access::WritesAlone && is_committed {
        engine.catalog_changed();
    }
    if access.writes() && is_committed && result.is_ok() {
        engine.acknowledge().await?;
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
    let mut waits = LockWaits::new(engine, settings);
    let (mut conflicts, mut shortages) = (Conflicts::default(), Shortages::default());
    let mut one_by_one = false;
    loop {
        let insert_path = match (open.is_open(), conflicts.met()) {
            _ if one_by_one => InsertPath::OneByOne,
            (true, _) => InsertPath::Open,
            (false, true) => InsertPath::Rowstore,
            (false, false) => InsertPath::Direct,
        };
        let attempted = match work.point {
            Some(point) => {
                check_catalog(bound_to, engine, open.is_open())?;
                attempt_point(point, work, insert_path, engine, open, settings).await?
            }
            None => None,
        };
        let attempted = match attempted {
            Some(attempted) => attempted,
            None => {
                let slot = match work.point {
                    Some(_) => None,
                    None => Some(engine.slot(settings.cancel_flag()).await?),
                };
                check_catalog(bound_to, engine, open.is_open())?;
                let slices = TimeSlices::new(engine.store().environment());
                let means = Means::new(work, engine, settings, &slices);
                attempt(means, insert_path, slot, open).await?
            }
        };
        match attempted {
            Attempt::Done { result, followed } => {
                open.wrote(result.rows_affected);
                let written = changes::written(work.statement);
                for table in written.into_iter().chain(followed) {
                    match open.is_open() {
                        true => open.wrote_table(table),
                        false => engine.changes().add(table),
                    }
                }
                if !open.is_open() && writes {
                    engine.housekeeping();
                }
                return Ok(result);
            }
            Attempt::Blocked { waiter, error, .. } if !may_wait(work.statement) => {
                waits.leave(waiter);
                return Err(error);
            }
            Attempt::Blocked { blocker, waiter, error } => {
                waits.wait(waiter, &blocker, error, engine, settings).await?;
            }
            Attempt::Failed(error) if error.reason() == Some(Reason::SharedKeys) && !one_by_one => {
                one_by_one = true;
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

/// Whether a statement waits for rows that others have locked.
fn may_wait(statement: &RowStatement) -> bool {
    match statement {
        RowStatement::Lock { if_locked, .. } => *if_locked != IfLocked::Fail,
        RowStatement::Profile(inner) => may_wait(inner),
        _ => true,
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
    let slices = TimeSlices::unbroken();
    let means = Means::new(work, engine, settings, &slices);
    let reading = attempt(means, InsertPath::Rowstore, None, open);
    // It neither gives way nor awaits what it misses.
    let polled = pin!(reading).poll(&mut std::task::Context::from_waker(Waker::noop()));
    let Poll::Ready(attempted) = polled else {
        return Err(Error::new(ErrorKind::Unavailable, "the read must wait"));
    };
    match attempted? {
        Attempt::Done { result, .. } => Ok(result),
        Attempt::Failed(error) | Attempt::Blocked { error, .. } => Err(error),
    }
}

/// An attempt's transaction.
struct Begun {
    transaction: Transaction,
    savepoint: Savepoint,
    /// Whether it is the statement's own.
    autocommit: bool,
    /// Tables whose rows have followed the keys of others.
    followed: Vec<TableId>,
}

impl Begun {
    fn new(engine: &Engine, open: &mut OpenTransaction) -> Result<Begun> {
        let explicit = open.take();
        let autocommit = explicit.is_none();
        let transaction = match explicit {
            Some(transaction) => transaction,
            None => open.new_transaction(engine)?,
        };
        let savepoint = transaction.savepoint();
        Ok(Begun { transaction, savepoint, autocommit, followed: Vec::new() })
    }

    /// Whether what was written takes a look at foreign keys.
    fn touches_references(&self) -> bool {
        self.transaction.touches_references(self.savepoint)
    }

    /// Lets rows follow the keys that were written, and checks them.
    async fn enforce_references(&mut self, execution: &Execution<'_>) -> Result<()> {
        let when = if self.autocommit { When::Both } else { When::Statement };
        let followed =
            references::enforce(&mut self.transaction, self.savepoint, when, execution).await?;
        self.followed = followed;
        Ok(())
    }

    /// Ends an attempt that did nothing.
    fn put_back(self, open: &mut OpenTransaction) {
        if !self.autocommit {
            open.put_back(self.transaction);
        }
    }

    /// Commits what was executed, or undoes it. An explicit transaction stays open.
    fn end(
        self,
        executed: Result<StatementResult>,
        engine: &Engine,
        open: &mut OpenTransaction,
    ) -> Attempt {
        let Begun { mut transaction, savepoint, autocommit, followed } = self;
        match executed {
            Ok(result) if autocommit => {
                let done = |()| Attempt::Done { result, followed };
                transaction.commit().map_or_else(Attempt::Failed, done)
            }
            Ok(result) => {
                open.put_back(transaction);
                Attempt::Done { result, followed }
            }
            Err(error) => {
                // Roll back before taking the blocker: a transaction that is about to wait notifies
                // no waiters.
                transaction.rollback_to(savepoint);
                let blocker = transaction.take_blocker();
                // The waiter holds no locks of this statement. An explicit transaction keeps its
                // earlier locks and waits under its own identity, so that deadlocks through those
                // locks are detected.
                let waiter = if autocommit {
                    drop(transaction);
                    engine.store().new_owner()
                } else {
                    let owner = transaction.owner().clone();
                    open.put_back(transaction);
                    owner
                };
                match blocker {
                    Some(blocker) => Attempt::Blocked { blocker, waiter, error },
                    None => Attempt::Failed(error),
                }
            }
        }
    }
}

/// What an attempt's execution refers to.
struct Means<'a> {
    work: Work<'a>,
    engine: &'a Engine,
    settings: &'a Settings,
    slices: &'a TimeSlices,
    statistics: Statistics,
    memory: Memory,
}

impl<'a> Means<'a> {
    fn new(
        work: Work<'a>,
        engine: &'a Engine,
        settings: &'a Settings,
        slices: &'a TimeSlices,
    ) -> Means<'a> {
        Means {
            work,
            engine,
            settings,
            slices,
            statistics: Statistics::default(),
            memory: settings.memory(),
        }
    }

    fn execution<'b>(
        &'b self,
        insert_path: InsertPath,
        cancelled: &'b (dyn Fn() -> bool + Sync),
        load_end: Option<&'b dyn LoadEnd>,
    ) -> Execution<'b> {
        let parts = ExecutionParts {
            store: self.engine.store(),
            parameters: self.work.parameters,
            statistics: &self.statistics,
            memory: &self.memory,
            now_us: self.engine.host().clock.wall_us(),
            cancelled,
            slices: self.slices,
            reporting: Some(Reporting {
                progress: self.settings.progress(),
                statistics: &self.statistics,
                statement: self.work.statement,
                store: self.engine.store(),
            }),
            uploads: self.engine.uploads().map(|uploads| &**uploads),
            threads: self.settings.threads(),
            scan_strategy: self.settings.scan_strategy(),
            load_end,
        };
        Execution::new(parts, insert_path)
    }
}

/// Runs a statement once by its point plan, undoing it if it fails; `None` if that does not apply.
/// An explicit transaction stays open.
async fn attempt_point(
    point: &Point,
    work: Work<'_>,
    insert_path: InsertPath,
    engine: &Engine,
    open: &mut OpenTransaction,
    settings: &Settings,
) -> Result<Option<Attempt>> {
    let mut begun = Begun::new(engine, open)?;
    let slices = TimeSlices::unbroken();
    let means = Means::new(work, engine, settings, &slices);
    let cancelled = || settings.is_cancelled();
    let execution = means.execution(insert_path, &cancelled, None);
    let executed = match point.run(&mut begun.transaction, &execution) {
        Ok(outcome) => match outcome.result(work.statement) {
            Some(result) => Ok(result),
            None => {
                begun.put_back(open);
                return Ok(None);
            }
        },
        Err(error) => Err(error),
    };
    let executed = match executed {
        Ok(result) if begun.touches_references() => {
            points_enforced(&mut begun, work, engine, settings).await.map(|()| result)
        }
        executed => executed,
    };
    Ok(Some(begun.end(executed, engine, open)))
}

/// Looks at foreign keys after a point statement. Boxed: most of them need not.
#[cold]
#[inline(never)]
fn points_enforced<'a>(
    begun: &'a mut Begun,
    work: Work<'a>,
    engine: &'a Engine,
    settings: &'a Settings,
) -> Boxed<'a, ()> {
    Box::pin(async move {
        let slices = TimeSlices::new(engine.store().environment());
        let means = Means::new(work, engine, settings, &slices);
        let cancelled = || settings.is_cancelled();
        let execution = means.execution(InsertPath::Rowstore, &cancelled, None);
        begun.enforce_references(&execution).await
    })
}

/// Runs a statement once by its plans, undoing it if it fails. An explicit transaction stays open.
/// The slot is returned before a commit waits for its sync.
fn attempt<'a>(
    means: Means<'a>,
    insert_path: InsertPath,
    slot: Option<Slot<'a>>,
    open: &'a mut OpenTransaction,
) -> Boxed<'a, Attempt> {
    Box::pin(attempt_plans(means, insert_path, slot, open))
}

async fn attempt_plans<'a>(
    means: Means<'a>,
    insert_path: InsertPath,
    slot: Option<Slot<'a>>,
    open: &mut OpenTransaction,
) -> Result<Attempt> {
    let mut begun = Begun::new(means.engine, open)?;
    let settings = means.settings;
    let cancelled = || settings.is_cancelled();
    let slot = Cell::new(slot);
    let Means { engine, slices, .. } = means;
    let load_end = LoadMeans { engine, settings, slices, slot: Some(&slot) };
    let execution = means.execution(insert_path, &cancelled, Some(&load_end));
    let mut executed =
        statement::run(&mut begun.transaction, means.work.statement, &execution).await;
    if executed.is_ok() && begun.touches_references() {
        executed = begun.enforce_references(&execution).await.and(executed);
    }
    drop(slot.take());
    let executed = executed.map(|result| StatementResult {
        statistics: StatementStatistics::of(&means.statistics),
        ..result
    });
    Ok(begun.end(executed, means.engine, open))
}
