//! The end of a bulk load: steps between which other work runs, and waits for row locks.

use crate::boxed::Boxed;
use crate::engine::Engine;
use crate::lock_wait::LockWaits;
use crate::settings::Settings;
use crate::time_slices::TimeSlices;
use nacre_table::{BulkLoad, Fetched, LoadStep};
use nacre_types::{Error, ErrorKind, Result, invariant};
use std::task::Poll;

/// Deadlocks after which a load gives up.
const DEADLOCKS: u32 = 8;

/// Publishes all rows of a load, or none. Returns how many rows the table gained or replaced.
///
/// Errors: those of the load; `lock_timeout` if a row that has a key of the load stays locked;
/// `deadlock`.
pub fn finish_load(engine: &Engine, load: BulkLoad) -> Boxed<'_, u64> {
    Box::pin(finish(engine, load))
}

async fn finish(engine: &Engine, mut load: BulkLoad) -> Result<u64> {
    let settings = Settings::new(engine);
    let slices = TimeSlices::new(engine.store().environment());
    let (mut deadlocks, mut fetched) = (0, Fetched::default());
    loop {
        let blocker = match load.step() {
            Ok(LoadStep::Done(rows)) => {
                engine.changes().add(load.table().schema().id);
                return Ok(rows);
            }
            Ok(LoadStep::More) => {
                let environment = engine.store().environment();
                match slices.has_ended(environment) {
                    true => slices.give_way(environment, &|| settings.is_cancelled()).await?,
                    false => yield_now().await,
                }
                continue;
            }
            Ok(LoadStep::Blocked(blocker)) => blocker,
            Err(error) if error.missing().is_some() && load.can_continue() => {
                engine.fetch(&mut fetched, error).await?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let owner = load.owner().cloned();
        invariant!(owner.is_some(), "a load waits for a lock before it takes any");
        let waiter = owner.unwrap_or_else(|| engine.store().new_owner());
        let table = &load.table().schema().name;
        let message = format!("a row of table {table} is locked by another transaction");
        let error = Error::new(ErrorKind::LockTimeout, message);
        let waits = LockWaits::new(engine);
        match waits.wait_holding(waiter, &blocker, error.clone(), engine, &settings).await {
            // A load is too expensive to fail: the other transaction goes first.
            Err(deadlock) if deadlock.kind() == ErrorKind::Deadlock && deadlocks < DEADLOCKS => {
                deadlocks += 1;
                load.let_go();
                let waiter = engine.store().new_owner();
                LockWaits::new(engine).wait(waiter, &blocker, error, engine, &settings).await?;
            }
            waited => waited?,
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
