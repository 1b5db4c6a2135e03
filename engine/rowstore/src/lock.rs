//! Owners of row locks, and waiting for one to end.
//!
//! A lock is held until its owner ends, so waiting for a row is waiting for a transaction. Each
//! owner waits for at most one other; a cycle among them is a deadlock, found when the last
//! edge is added.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A transaction as the holder of row locks.
pub struct Owner {
    id: u64,
    ended: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    waits_for: Mutex<Option<Arc<Owner>>>,
}

impl Owner {
    /// A new owner; `id` is for messages and must be unique among the living.
    pub fn new(id: u64) -> Arc<Owner> {
        Arc::new(Owner {
            id,
            ended: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
            waits_for: Mutex::new(None),
        })
    }

    /// The number given at creation.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Marks the end and wakes all who wait. Locks must have been released before.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.wakers.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether [`Owner::end`] was called.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Starts to wait for `holder`. `None` when that would close a cycle: a deadlock.
    pub fn wait_for(self: &Arc<Self>, holder: &Arc<Owner>) -> Option<Waiting> {
        *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder.clone());
        let waiting = Waiting { waiter: self.clone(), holder: holder.clone() };
        let mut at = holder.clone();
        loop {
            if Arc::ptr_eq(&at, self) {
                return None;
            }
            let next = at.waits_for.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match next {
                Some(next) if !next.has_ended() => at = next,
                _ => return Some(waiting),
            }
        }
    }
}

/// Completes when the holder has ended. Dropping it stops waiting.
pub struct Waiting {
    waiter: Arc<Owner>,
    holder: Arc<Owner>,
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.holder.has_ended() {
            return Poll::Ready(());
        }
        self.holder.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(context.waker().clone());
        // The holder may have ended between the check and the registration.
        if self.holder.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        *self.waiter.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
