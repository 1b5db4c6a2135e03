//! Owners of row locks, and waiting for one to end or to give locks back.
//!
//! A lock is held until its owner ends or goes back to a savepoint, so waiting for a row is waiting for a transaction.
//! Each owner waits for at most one other; a cycle among them is a deadlock, found when the last edge is added.

use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Published};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// Why a node could not be locked.
pub enum LockError {
    /// Another transaction holds it.
    Held(Blocker),
    /// The node was unlinked; look the key up again.
    Dead,
}

/// A transaction that holds a lock, as somebody met it.
#[derive(Clone)]
pub struct Blocker {
    owner: Arc<Owner>,
    /// How often it had given locks back by then.
    releases: u64,
}

impl Blocker {
    /// Before the lock is looked at again: if it is held still, whoever gives it back counts after this.
    pub(crate) fn new(owner: Arc<Owner>) -> Blocker {
        Blocker { releases: owner.releases.load(Ordering::Acquire), owner }
    }

    /// Who holds the lock.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether it may have given the lock back.
    fn is_over(&self) -> bool {
        self.owner.has_ended() || self.owner.releases.load(Ordering::Acquire) != self.releases
    }
}

/// A transaction as the holder of row locks.
pub struct Owner {
    id: Published<u64>,
    ended: AtomicBool,
    releases: AtomicU64,
    wakers: Mutex<Vec<Waker>>,
    waits_for: Mutex<Option<Blocker>>,
}

impl Owner {
    /// A new owner; `id` is for messages and must be unique among the living.
    pub fn new(id: u64) -> Arc<Owner> {
        let owner = Arc::new(Owner {
            id: Published::new(id),
            ended: AtomicBool::new(false),
            releases: AtomicU64::new(0),
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
        self.wake();
    }

    /// Wakes all who wait, because some locks are free though this owner goes on. Not before it waits itself: whoever it wakes
    /// may take that for the end of a deadlock, and wake it in turn.
    pub fn gave_back(&self) {
        self.releases.fetch_add(1, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        let wakers =
            std::mem::take(&mut *self.wakers.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether [`Owner::end`] was called.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Starts to wait for who holds a lock. `None` when that would close a cycle: a deadlock. When two waits close one
    /// together, at least one of them is told.
    pub fn wait_for(self: &Arc<Self>, blocker: &Blocker) -> Option<Waiting> {
        // First the edge, then the look around: of the edges of a cycle the last one is sure to see all others.
        *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocker.clone());
        let waiting = Waiting { waiter: self.clone(), blocker: blocker.clone() };
        if blocker.is_over() {
            return Some(waiting);
        }
        let mut at = blocker.owner.clone();
        // A cycle of others, who are just finding out, must not keep this one going round (R. Brent 1980).
        let (mut mark, mut steps, mut limit) = (at.clone(), 0u32, 2u32);
        loop {
            if Arc::ptr_eq(&at, self) {
                return None;
            }
            let next = at.waits_for.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match next {
                Some(next) if !next.is_over() && !Arc::ptr_eq(&next.owner, &mark) => {
                    at = next.owner
                }
                _ => return Some(waiting),
            }
            steps += 1;
            if steps == limit {
                (mark, steps, limit) = (at.clone(), 0, limit.saturating_mul(2));
            }
        }
    }
}

/// Completes when the holder has ended or given locks back. Dropping it stops waiting.
pub struct Waiting {
    waiter: Arc<Owner>,
    blocker: Blocker,
}

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.blocker.is_over() {
            return Poll::Ready(());
        }
        {
            let mut wakers =
                self.blocker.owner.wakers.lock().unwrap_or_else(PoisonError::into_inner);
            // Who looks again and again, for a timeout, leaves one waker.
            if !wakers.iter().any(|known| known.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
        }
        // It may be over between the check and the registration.
        if self.blocker.is_over() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waits_for = self.waiter.waits_for.lock().unwrap_or_else(PoisonError::into_inner);
        if waits_for.as_ref().is_some_and(|other| Arc::ptr_eq(&other.owner, &self.blocker.owner)) {
            *waits_for = None;
        }
    }
}
