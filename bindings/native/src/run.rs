//! Runs one future on the calling thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

/// Maximum time for which a thread stays parked without polling its future.
const POLL_EVERY: Duration = Duration::from_millis(10);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls the future until it completes and parks the thread in between. The future need not be
/// `Send`. A lost wake-up delays the result by some milliseconds: a parked thread polls
/// periodically.
///
/// ```
/// assert_eq!(nacre_native::block_on(async { 6 * 7 }), 42);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    // Most futures of the engine complete at the first poll.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        // Without threads nothing unparks this one.
        if cfg!(target_os = "wasi") {
            thread::sleep(Duration::from_millis(1));
        } else {
            thread::park_timeout(POLL_EVERY);
        }
    }
}
