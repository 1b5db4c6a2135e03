//! Waits for row locks.

use crate::boxed::Boxed;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::timed::completes_before;
use nacre_table::{Blocker, Owner};
use nacre_types::{Error, ErrorKind, Result};
use std::sync::Arc;

/// How often a lock waiter checks for cancellation, in nanoseconds. Setting the flag wakes no
/// waiter.
const CANCEL_NS: u64 = 20_000_000;

/// The lock waits of one statement, up to a common deadline.
///
/// A statement about to block releases its locks without notifying waiters: two waiters would wake
/// each other forever. On drop, notifies the waiters for those locks.
pub(crate) struct LockWaits {
    deadline_ns: u64,
    unnotified: Option<Arc<Owner>>,
}

impl LockWaits {
    /// Starts the deadline.
    pub fn new(engine: &Engine, settings: &Settings) -> LockWaits {
        let timeout_ns = settings.lock_timeout_ms().saturating_mul(1_000_000);
        LockWaits { deadline_ns: engine.now_ns().saturating_add(timeout_ns), unnotified: None }
    }

    /// Waits until the blocker may have released its lock. The waiter has released its own.
    ///
    /// Errors: `deadlock` if waiting would close a cycle, `cancelled`, and at the deadline `error`,
    /// the statement's original error.
    pub fn wait<'a>(
        &'a mut self,
        waiter: Arc<Owner>,
        blocker: &'a Blocker,
        error: Error,
        engine: &'a Engine,
        settings: &'a Settings,
    ) -> Boxed<'a, ()> {
        self.unnotified = Some(waiter.clone());
        Box::pin(self.wait_holding(waiter, blocker, error, engine, settings))
    }

    /// Does not wait. The waiter has released its locks.
    pub fn leave(&mut self, waiter: Arc<Owner>) {
        self.unnotified = Some(waiter);
    }

    /// Like [`LockWaits::wait`], for a waiter that keeps its locks: there is nothing to notify of.
    pub async fn wait_holding(
        &self,
        waiter: Arc<Owner>,
        blocker: &Blocker,
        error: Error,
        engine: &Engine,
        settings: &Settings,
    ) -> Result<()> {
        let Some(mut waiting) = waiter.wait_for(blocker) else {
            let message = "two transactions wait for each other's rows";
            return Err(Error::new(ErrorKind::Deadlock, message)
                .with_hint("roll back and retry the transaction"));
        };
        loop {
            let next_ns = engine.now_ns().saturating_add(CANCEL_NS).min(self.deadline_ns);
            if completes_before(&mut waiting, engine.host().clock.sleep_until(next_ns)).await {
                return Ok(());
            }
            if settings.is_cancelled() {
                return Err(Error::cancelled());
            }
            if next_ns == self.deadline_ns {
                return Err(error.with_hint("the lock was not released in time; retry"));
            }
        }
    }
}

impl Drop for LockWaits {
    fn drop(&mut self) {
        if let Some(owner) = &self.unnotified {
            owner.gave_back();
        }
    }
}
