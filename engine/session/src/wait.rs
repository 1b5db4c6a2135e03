//! Waiting for one of two things.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Waits until `work` or `deadline` completes; `true` when the work did.
pub(crate) async fn before(
    work: impl Future<Output = ()>,
    mut deadline: Pin<Box<dyn Future<Output = ()> + '_>>,
) -> bool {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        if work.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        deadline.as_mut().poll(context).map(|()| false)
    })
    .await
}
