//! Owners of row locks, and waiting for an owner to end or to release locks.
//!
//! A lock is held until its owner ends or rolls back to a savepoint, so waiting for a row is
//! waiting for a transaction. Each owner waits for at most one other. A cycle of waits is a
//! deadlock, detected when its last edge is added.

use crate::sync::{AtomicBool, AtomicU64, MODELLED, Mutex, Ordering, Published};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// Why a node could not be locked.
pub enum LockError {
    /// Another transaction holds it.
    Held(Blocker),
    /// The node was unlinked: look up the key again.
    Dead,
}

/// A transaction that held a lock when another one requested it.
#[derive(Clone)]
pub struct Blocker {
    owner: Arc<Owner>,
    /// Its release count at that moment.
    releases: u64,
}

impl Blocker {
    /// Captures the release count. The caller then checks the lock again, or keeps it from being
    /// released meanwhile: if it is still held, its release is counted after this.
    pub fn new(owner: Arc<Owner>) -> Blocker {
        Blocker { releases: owner.releases.load(Ordering::Acquire), owner }
    }

    /// The holder of the lock.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether the holder may have released the lock.
    fn is_over(&self) -> bool {
        if self.owner.has_ended() {
            return true;
        }
        let (before, now) = (self.releases, self.owner.releases.load(Ordering::Acquire));
        debug_assert!(before <= now, "{before} releases of locks became {now}");
        before != now
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
    /// Creates an owner. `id` is for messages and must be unique among live owners.
    pub fn new(id: u64) -> Arc<Owner> {
        let owner = Arc::new(Owner {
            id: Published::new(id),
            ended: AtomicBool::new(false),
            releases: AtomicU64::new(0),
            wakers: Mutex::new(Vec::new()),
            waits_for: Mutex::new(None),
        });
        // Keeps the memory of a prematurely freed owner readable, so that a model detects the use.
        #[cfg(any(feature = "loom", feature = "shuttle"))]
        std::mem::forget(Arc::downgrade(&owner));
        owner
    }

    /// The number given at creation.
    pub fn id(&self) -> u64 {
        *self.id.get()
    }

    /// Marks the end and wakes all waiters. Release its locks first.
    pub fn end(&self) {
        debug_assert!(MODELLED || !self.has_ended(), "an owner of locks ends twice");
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes all waiters because this owner released some locks without ending. Do not call it if
    /// this owner is about to block: two waiters would wake each other forever.
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

    /// Starts to wait for the holder of a lock. Returns `None` if that would close a cycle: a
    /// deadlock. If two waits close a cycle at the same time, at least one of them gets `None`.
    pub fn wait_for(self: &Arc<Self>, blocker: &Blocker) -> Option<Waiting> {
        debug_assert!(MODELLED || !self.has_ended(), "an owner waits after its end");
        debug_assert!(!Arc::ptr_eq(self, &blocker.owner), "an owner waits for itself");
        // The edge is set before the search, so that the last edge of a cycle sees all others.
        *self.waits_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(blocker.clone());
        let waiting = Waiting { waiter: self.clone(), blocker: blocker.clone() };
        if blocker.is_over() {
            return Some(waiting);
        }
        let mut at = blocker.owner.clone();
        // A cycle among other owners, which they detect themselves, must not trap this search:
        // Brent's algorithm (R. P. Brent, *An improved Monte Carlo factorization algorithm*, 1980)
        // finds cycles.
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

/// Completes when the holder has ended or released locks. Dropping it stops waiting.
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
            // A waiter that is polled repeatedly, for a timeout, registers one waker.
            if !wakers.iter().any(|known| known.will_wake(context.waker())) {
                wakers.push(context.waker().clone());
            }
        }
        // The wait may have ended between the check and the registration.
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
