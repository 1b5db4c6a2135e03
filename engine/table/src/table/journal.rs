//! Locks taken in a table while loads are published into it.
//!
//! A transaction changes a row, or assigns a unique value, only under the lock of its node. So a
//! load that looks at all rows in memory once needs to look again only at those that were locked
//! since. Locks are noted only while a journal is open; otherwise a lock costs one look at a
//! counter.

use crate::segments::sync::{AtomicUsize, Mutex, MutexGuard, fence};
use nacre_rowstore::Node;
use nacre_types::{IndexId, invariant};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The node of a lock that was taken.
#[derive(Clone)]
pub(crate) enum TakenLock {
    /// A row of a partition.
    Row { partition: u32, node: Arc<Node> },
    /// A value of a unique index.
    Value { index: IndexId, node: Arc<Node> },
}

/// The open journals of a table, in any version.
#[derive(Default)]
pub(crate) struct Journals {
    /// Number of open journals.
    open: AtomicUsize,
    journals: Mutex<Vec<Arc<Mutex<Locks>>>>,
}

/// What a journal holds.
#[derive(Default)]
struct Locks {
    taken: Vec<TakenLock>,
    most: usize,
    /// Whether there were more than `most`.
    is_lost: bool,
}

/// A journal of all locks taken since it was opened, until it is dropped.
pub(crate) struct Journal {
    journals: Arc<Journals>,
    locks: Arc<Mutex<Locks>>,
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journals {
    /// Opens a journal that holds up to `most` locks. A lock that is not in it is already held when
    /// this returns.
    pub fn open(self: &Arc<Self>, most: usize) -> Journal {
        invariant!(most > 0, "a journal of no locks");
        let locks = Arc::new(Mutex::new(Locks { most, ..Locks::default() }));
        guard(&self.journals).push(locks.clone());
        self.open.fetch_add(1, Ordering::SeqCst);
        // Either the holder of a lock sees the journal, or the opener of the journal sees the lock.
        fence(Ordering::SeqCst);
        Journal { journals: self.clone(), locks }
    }

    /// Notes a lock just taken. What depends on the lock must be looked up afterwards.
    pub fn note(&self, lock: impl Fn() -> TakenLock) {
        fence(Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        for locks in guard(&self.journals).iter() {
            guard(locks).note(&lock);
        }
    }
}

impl Locks {
    fn note(&mut self, lock: &dyn Fn() -> TakenLock) {
        if self.taken.len() == self.most {
            self.is_lost = true;
            self.taken = Vec::new();
        }
        if !self.is_lost {
            self.taken.push(lock());
        }
        debug_assert!(self.taken.len() <= self.most, "a journal of {} locks", self.taken.len());
        debug_assert!(
            !self.is_lost || self.taken.is_empty(),
            "a journal that has lost locks keeps {}",
            self.taken.len()
        );
    }
}

impl Journal {
    /// Number of locks noted and not taken out; `None` if there were too many.
    pub fn len(&self) -> Option<usize> {
        let locks = guard(&self.locks);
        (!locks.is_lost).then_some(locks.taken.len())
    }

    /// Takes out the locks noted so far; `None` if there were too many, so that all rows in memory
    /// must be looked at again.
    pub fn take(&self) -> Option<Vec<TakenLock>> {
        let mut locks = guard(&self.locks);
        let taken = std::mem::take(&mut locks.taken);
        debug_assert!(
            taken.len() <= locks.most,
            "{} locks are taken out of a journal of {}",
            taken.len(),
            locks.most
        );
        (!std::mem::take(&mut locks.is_lost)).then_some(taken)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let mut journals = guard(&self.journals.journals);
        let before = journals.len();
        journals.retain(|locks| !Arc::ptr_eq(locks, &self.locks));
        invariant!(journals.len() + 1 == before, "a journal is closed that is not open");
        let open = self.journals.open.fetch_sub(1, Ordering::SeqCst);
        invariant!(open > 0, "a journal is closed that was not counted as open");
    }
}
