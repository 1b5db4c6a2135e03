//! A wait with a time limit.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits until `work` or `timer` completes. Returns `true` if `work` completed.
pub(crate) async fn completes_before(
    work: impl Future<Output = ()>,
    mut timer: Pin<Box<dyn Future<Output = ()> + '_>>,
) -> bool {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        if work.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        timer.as_mut().poll(context).map(|()| false)
    })
    .await
}
