//! The end of a bulk load: steps between which other work runs, and waits for row locks.

use crate::aside::Aside;
use crate::boxed::Boxed;
use crate::engine::Engine;
use crate::execution::LoadEnd;
use crate::lock_wait::LockWaits;
use crate::references::{self, When};
use crate::settings::Settings;
use crate::slots::Slot;
use crate::statement::repeated;
use crate::time_slices::TimeSlices;
use nacre_table::{Blocker, BulkLoad, Fetched, LoadStep, Savepoint, Transaction};
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;

/// Deadlocks after which a load gives up.
const DEADLOCKS: u32 = 8;

/// Publishes all rows of a load, or none. Returns how many rows the table gained or replaced.
///
/// Errors: those of the load; `lock_timeout` if a row that has a key of the load stays locked;
/// `deadlock`; `cancelled` if `cancel` is set before the rows are published.
pub fn finish_load(engine: &Engine, load: BulkLoad, cancel: Arc<AtomicBool>) -> Boxed<'_, u64> {
    Box::pin(async move {
        let table = load.table().schema().id;
        let settings = Settings::cancelled_by(cancel, engine);
        if load.table().schema().has_references() {
            let rows = finish_referring(engine, Box::new(load), &settings).await?;
            engine.changes().add(table);
            return Ok(rows);
        }
        let slices = TimeSlices::new(engine.store().environment());
        let means = LoadMeans { engine, settings: &settings, slices: &slices, slot: None };
        let rows = means.finish(Box::new(load)).await?;
        engine.changes().add(table);
        Ok(rows)
    })
}

/// Like [`finish_load`], for a table with foreign keys: as a transaction, which checks them.
fn finish_referring<'a>(
    engine: &'a Engine,
    load: Box<BulkLoad>,
    settings: &'a Settings,
) -> Boxed<'a, u64> {
    Box::pin(async move {
        let (aside, cancelled) = (Aside::new(engine, settings), || settings.is_cancelled());
        let execution = aside.execution(engine, settings, &cancelled);
        let mut transaction = engine.store().begin()?;
        // Fails if the table is another one by now.
        transaction.table_of(load.table().schema())?;
        let mut load = load;
        execution.steps(|| load.complete()).await?;
        let mut update = load.into_update()?;
        let start = Savepoint::default();
        loop {
            let reserve = |transaction: &mut Transaction| transaction.reserve_keys(&mut update);
            let reserved = repeated(&mut transaction, &execution, reserve).await;
            let Err(error) = reserved else { break };
            wait_for(&mut transaction, start, error, (engine, settings)).await?;
        }
        let rows = transaction.add_updated(update);
        let added = transaction.savepoint();
        loop {
            let checked =
                references::enforce(&mut transaction, start, When::Both, &execution).await;
            let Err(error) = checked else { break };
            wait_for(&mut transaction, added, error, (engine, settings)).await?;
        }
        transaction.commit()?;
        Ok(rows)
    })
}

/// Undoes what a transaction has done since a savepoint, and waits for the lock that it has met.
///
/// Errors: `error`, if it was none, and those of the wait.
async fn wait_for(
    transaction: &mut Transaction,
    savepoint: Savepoint,
    error: Error,
    (engine, settings): (&Engine, &Settings),
) -> Result<()> {
    transaction.rollback_to(savepoint);
    let Some(blocker) = transaction.take_blocker() else { return Err(error) };
    let waiter = transaction.owner().clone();
    LockWaits::new(engine, settings).wait_holding(waiter, &blocker, error, engine, settings).await
}

/// Writes the rows of a load that fill segments, giving way in between. A load that is given many rows does
/// so before it is given more.
///
/// Errors: those of the load; `io` and `limit` if files cannot be opened.
pub fn write_load<'a>(engine: &'a Engine, load: &'a mut BulkLoad) -> Boxed<'a, ()> {
    Box::pin(async move {
        let (environment, mut fetched) = (engine.store().environment(), Fetched::default());
        let slices = TimeSlices::new(environment);
        engine.prepare_files().await?;
        loop {
            match load.write(false) {
                Ok(true) if slices.has_ended(environment) => {
                    slices.give_way(environment, &|| false).await?;
                }
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.missing().is_some() => {
                    engine.fetch(&mut fetched, error, &|| false).await?;
                }
                Err(error) => return Err(error),
            }
        }
    })
}

/// What the end of a load needs.
pub(crate) struct LoadMeans<'a, 's> {
    pub engine: &'s Engine,
    pub settings: &'a Settings,
    pub slices: &'a TimeSlices,
    /// The slot of the load's statement; `None` for a load that is none.
    pub slot: Option<&'a Cell<Option<Slot<'s>>>>,
}

impl LoadEnd for LoadMeans<'_, '_> {
    fn finish(&self, load: Box<BulkLoad>) -> Boxed<'_, u64> {
        Box::pin(self.finish_steps(load))
    }
}

impl LoadMeans<'_, '_> {
    async fn finish_steps(&self, mut load: Box<BulkLoad>) -> Result<u64> {
        let LoadMeans { engine, settings, slices, slot } = self;
        let environment = engine.store().environment();
        let (mut deadlocks, mut fetched) = (0, Fetched::default());
        loop {
            if settings.is_cancelled() {
                return Err(Error::cancelled());
            }
            match load.step() {
                Ok(LoadStep::Done(rows)) => return Ok(rows),
                Ok(LoadStep::More) if slices.has_ended(environment) => {
                    slices.give_way(environment, &|| settings.is_cancelled()).await?;
                }
                Ok(LoadStep::More) if slot.is_none() => yield_now().await,
                Ok(LoadStep::More) => {}
                Ok(LoadStep::Blocked(blocker)) => {
                    let was_held = slot.and_then(Cell::take).is_some();
                    self.wait(&mut load, &blocker, &mut deadlocks).await?;
                    if let Some(slot) = slot.filter(|_| was_held) {
                        slot.set(Some(engine.slot_again(settings.cancel_flag()).await?));
                    }
                }
                Err(error) if error.missing().is_some() => {
                    engine.fetch(&mut fetched, error, &|| settings.is_cancelled()).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a row lock that the load has met.
    async fn wait(
        &self,
        load: &mut BulkLoad,
        blocker: &Blocker,
        deadlocks: &mut u32,
    ) -> Result<()> {
        let LoadMeans { engine, settings, .. } = self;
        let owner = load.owner().cloned();
        invariant!(owner.is_some(), "a load waits for a lock before it takes any");
        let waiter = owner.unwrap_or_else(|| engine.store().new_owner());
        let table = &load.table().schema().name;
        let message = format!("a row of table {table} is locked by another transaction");
        let error = Error::new(ErrorKind::LockTimeout, message);
        let waits = LockWaits::new(engine, settings);
        match waits.wait_holding(waiter, blocker, error.clone(), engine, settings).await {
            // A load is too expensive to fail: the other transaction goes first.
            Err(deadlock) if deadlock.kind() == ErrorKind::Deadlock && *deadlocks < DEADLOCKS => {
                *deadlocks += 1;
                load.let_go();
                let waiter = engine.store().new_owner();
                LockWaits::new(engine, settings)
                    .wait(waiter, blocker, error, engine, settings)
                    .await
            }
            waited => waited,
        }
    }
}

/// Lets other futures of this thread run.
async fn yield_now() {
    let mut is_over = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
