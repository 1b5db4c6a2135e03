//! Owners of row locks, and waiting for one to end.
//!
//! A lock is held until its owner ends, so waiting for a row is waiting for a transaction. Each
//! owner waits for at most one other; a cycle among them is a deadlock, found when the last
//! edge is added.

use crate::sync::{AtomicBool, Mutex, Ordering, Published};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// Why a node could not be locked.
pub enum LockError {
    /// Another transaction holds it.
    Held(Arc<Owner>),
    /// The node was unlinked; look the key up again.
    Dead,
}

/// A transaction as the holder of row locks.
pub struct Owner {
    id: Published<u64>,
    ended: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    waits_for: Mutex<Option<Arc<Owner>>>,
}

impl Owner {
    /// A new owner; `id` is for messages and must be unique among the living.
    pub fn new(id: u64) -> Arc<Owner> {
        let owner = Arc::new(Owner {
            id: Published::new(id),
            ended: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
            waits_for: Mutex::new(None),
        });
        // Keeps the memory of an owner that was freed too early readable, so that it is noticed.
        #[cfg(any(feature = "loom", feature = "shuttle"))]
        std::mem::forget(Arc::downgrade(&owner));
        owner
    }

    /// The number given at creation.
    pub fn id(&self) -> u64 {
        *self.id.get()
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

    /// Starts to wait for `holder`. `None` when that would close a cycle: a deadlock. When two waits close one
    /// together, at least one of them is told.
    pub fn wait_for(self: &Arc<Self>, holder: &Arc<Owner>) -> Option<Waiting> {
        // First the edge, then the look around: of the edges of a cycle the last one is sure to see all others.
        *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder.clone());
        let waiting = Waiting { waiter: self.clone(), holder: holder.clone() };
        let mut at = holder.clone();
        // A cycle of others, who are just finding out, must not keep this one going round (R. Brent 1980).
        let (mut mark, mut steps, mut limit) = (holder.clone(), 0u32, 2u32);
        loop {
            if Arc::ptr_eq(&at, self) {
                return None;
            }
            let next = at.waits_for.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match next {
                Some(next) if !next.has_ended() && !Arc::ptr_eq(&next, &mark) => at = next,
                _ => return Some(waiting),
            }
            steps += 1;
            if steps == limit {
                (mark, steps, limit) = (at.clone(), 0, limit.saturating_mul(2));
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
        {
            let mut wakers = self.holder.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            // Who looks again and again, for a timeout, leaves one waker.
            if !wakers.iter().any(|known| known.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
        }
        // The holder may have ended between the check and the registration.
        if self.holder.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waits_for = self.waiter.waits_for.lock().unwrap_or_else(PoisonError::into_inner);
        if waits_for.as_ref().is_some_and(|other| Arc::ptr_eq(other, &self.holder)) {
            *waits_for = None;
        }
    }
}
