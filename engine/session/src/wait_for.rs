//! Waits until a database shows a position of the log.

use crate::engine::Engine;
use core::time::Duration;
use nacre_host::cancelling;
use nacre_types::{Error, ErrorKind, Result};

/// The first pause between two looks, in nanoseconds.
const FIRST_LOOK_NS: u64 = 20_000_000;
/// The longest one.
const LONGEST_LOOK_NS: u64 = 500_000_000;
/// How often a pause looks for cancellation.
const CANCEL_NS: u64 = 20_000_000;

impl Engine {
    /// Waits until what this database shows has reached a position of the log: refreshes a database that is only
    /// read, at intervals.
    ///
    /// Errors: `unavailable` if that takes longer than the timeout; those of [`Engine::refresh_async`], but while
    /// the blob store is away it goes on; `cancelled`.
    pub async fn wait_for(
        &self,
        position: u64,
        timeout: Duration,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = self.now_ns().saturating_add(timeout_ns);
        let mut pause_ns = FIRST_LOOK_NS;
        loop {
            let is_last = self.now_ns() >= until_ns;
            let away = match self.refresh_until(until_ns, is_cancelled).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => Some(error),
                refreshed => refreshed.map(|()| None)?,
            };
            let reached = self.store().log_position();
            if reached >= position {
                return Ok(());
            }
            if is_last {
                let message = format!("position {position} is not reached yet, {reached} is");
                let late = || Error::new(ErrorKind::Unavailable, message);
                return Err(away.unwrap_or_else(late));
            }
            let next_ns = self.now_ns().saturating_add(pause_ns).min(until_ns);
            while self.now_ns() < next_ns {
                if is_cancelled() {
                    return Err(Error::cancelled());
                }
                let look_ns = self.now_ns().saturating_add(CANCEL_NS).min(next_ns);
                self.host().clock.sleep_until(look_ns).await;
            }
            pause_ns = (2 * pause_ns).min(LONGEST_LOOK_NS);
        }
    }

    /// Refreshes. Gives up at a time, though not within the longest pause, and when cancelled.
    async fn refresh_until(
        &self,
        until_ns: u64,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        let until_ns = until_ns.max(self.now_ns().saturating_add(LONGEST_LOOK_NS));
        let is_late = || self.now_ns() >= until_ns;
        let refresh = Box::pin(async { self.refresh_async().await.map(drop) });
        let gives_up = || is_cancelled() || is_late();
        match cancelling(&*self.host().clock, refresh, &gives_up).await {
            Err(error) if error.kind() == ErrorKind::Cancelled && !is_cancelled() => {
                Err(Error::new(ErrorKind::Unavailable, "the blobs do not answer"))
            }
            refreshed => refreshed,
        }
    }
}
