//! Several futures on one task.

use nacre_host::Result;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Requests that a fetch makes at a time. A browser has six connections to a server.
pub(crate) const AT_ONCE: usize = if cfg!(target_arch = "wasm32") { 6 } else { 8 };

/// Runs futures, at most this many at a time, and begins them in their order. Returns what they return, in the
/// order in which they end.
///
/// # Errors
/// The first error; the others are dropped.
pub(crate) async fn at_once<F, T>(futures: impl Iterator<Item = F>, most: usize) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>>,
{
    debug_assert!(most > 0, "no future may run");
    let mut waiting = futures.fuse();
    let mut running: Vec<Pin<Box<F>>> = Vec::new();
    let mut done = Vec::new();
    poll_fn(|context| {
        loop {
            let free = most.saturating_sub(running.len());
            running.extend(waiting.by_ref().take(free).map(Box::pin));
            if running.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let before = running.len();
            let mut at = 0;
            while let Some(future) = running.get_mut(at) {
                match future.as_mut().poll(context) {
                    Poll::Ready(Ok(value)) => {
                        done.push(value);
                        drop(running.remove(at));
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => at += 1,
                }
            }
            if running.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await?;
    Ok(done)
}
