//! Bytes that are fetched, and the guards that keep them.

use nacre_types::Result;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Keeps fetched ranges resident until it is dropped.
pub struct Resident {
    _guard: Box<dyn Any + Send>,
}

/// What a store does about ranges that will be read.
pub enum Ahead {
    /// All are there, or on their way.
    Nothing,
    /// It has no room for them now.
    NoRoom,
    /// It has begun to fetch them, which it gives up when the guard is dropped.
    Fetching(Resident),
}

/// A fetch that may have to wait.
pub type Fetch<'a> = Pin<Box<dyn Future<Output = Result<Resident>> + Send + 'a>>;

impl Resident {
    /// A guard that drops `guard` with itself.
    pub fn new(guard: impl Any + Send) -> Resident {
        Resident { _guard: Box::new(guard) }
    }
}

/// The outcome of a fetch that need not wait; `None` for any other, which is given up.
pub(crate) fn without_waiting(mut fetch: Fetch<'_>) -> Option<Result<Resident>> {
    match fetch.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}
