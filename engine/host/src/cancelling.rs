//! Waits that a flag ends.

use crate::{Clock, Error, Result};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// How often a wait looks for cancellation, in nanoseconds.
const LOOK_NS: u64 = 20_000_000;

/// Waits for work, and looks for cancellation meanwhile: nothing tells when a flag is set. Work that is cancelled is
/// dropped.
///
/// # Errors
/// Those of the work; `cancelled`.
pub async fn cancelling<T>(
    clock: &dyn Clock,
    mut work: Pin<Box<dyn Future<Output = Result<T>> + Send + '_>>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<T> {
    // Work that need not wait makes no timer.
    let mut pause = None;
    loop {
        let done = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => {
                let look = || clock.sleep_until(clock.monotonic_ns().saturating_add(LOOK_NS));
                pause.get_or_insert_with(look).as_mut().poll(context).map(|()| None)
            }
        });
        match done.await {
            Some(done) => return done,
            None if is_cancelled() => return Err(Error::cancelled()),
            None => pause = None,
        }
    }
}
