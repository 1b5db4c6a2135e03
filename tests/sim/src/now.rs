//! Runs futures outside sessions, where nothing waits.

use std::future::Future;
use std::task::{Context, Poll, Waker};

/// Runs a future that must not wait.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("waited where there is nothing to wait for"),
    }
}
