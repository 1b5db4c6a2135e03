//! Keys and unique values of rows that a transaction has written to files, and that no other
//! transaction may assign until it ends: locks of many keys at once.
//!
//! A transaction that assigns a key first takes the lock of its node, or of the value, and then
//! looks here. A transaction that reserves keys first does so, and then looks at the locks of
//! others. So one of the two finds the other. A transaction that reserves keys of a table does so
//! alone; a bulk load of the table waits for it.

use crate::index::definition::Index;
use nacre_rowstore::{Blocker, Owner};
use nacre_types::{Result, invariant};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys that a transaction reserves.
pub(crate) trait ReservedKeys: Send + Sync {
    /// Whether a row of a partition has an encoded primary key.
    fn has_key(&self, partition: u32, key: &[u8]) -> Result<bool>;

    /// Whether a row has an encoded unique value of an index.
    fn has_value(&self, index: &Index, key: &[u8]) -> Result<bool>;
}

/// The keys that one transaction reserves.
struct Reserved {
    owner: Arc<Owner>,
    keys: Arc<dyn ReservedKeys>,
}

/// The reservations in a table, in any version of it.
#[derive(Default)]
pub(crate) struct Reservations {
    is_any: AtomicBool,
    /// All of one owner.
    all: Mutex<Vec<Reserved>>,
}

/// Keys that are reserved until this is dropped. The owner then wakes its waiters, as after the
/// release of a lock.
pub(crate) struct Reservation {
    reservations: Arc<Reservations>,
    keys: Arc<dyn ReservedKeys>,
}

impl Reservations {
    fn guard(&self) -> MutexGuard<'_, Vec<Reserved>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves keys, unless another owner has reserved some; returns that owner. The caller then
    /// looks at the locks of others.
    pub fn reserve(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        keys: Arc<dyn ReservedKeys>,
    ) -> std::result::Result<Reservation, Blocker> {
        let mut all = self.guard();
        if let Some(blocker) = other(&all, owner) {
            return Err(blocker);
        }
        debug_assert!(
            all.is_empty() != self.is_any.load(Ordering::SeqCst),
            "{} owners reserve keys of a table",
            all.len()
        );
        all.push(Reserved { owner: owner.clone(), keys: keys.clone() });
        self.is_any.store(true, Ordering::SeqCst);
        drop(all);
        // Either this finds the lock of another, or its holder finds the reservation.
        fence(Ordering::SeqCst);
        Ok(Reservation { reservations: self.clone(), keys })
    }

    /// Whether there are any. Asked after a lock was taken.
    fn is_any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_any.load(Ordering::SeqCst)
    }

    /// The owner that has reserved keys, if it is another one.
    pub fn blocker(&self, owner: &Arc<Owner>) -> Option<Blocker> {
        if !self.is_any() {
            return None;
        }
        other(&self.guard(), owner)
    }

    /// The owner that has reserved what a condition finds among the keys, if it is another one.
    pub fn blocker_of(
        &self,
        owner: &Arc<Owner>,
        has: impl Fn(&dyn ReservedKeys) -> Result<bool>,
    ) -> Result<Option<Blocker>> {
        if !self.is_any() {
            return Ok(None);
        }
        let all = self.guard();
        let Some(blocker) = other(&all, owner) else { return Ok(None) };
        debug_assert!(
            !Arc::ptr_eq(blocker.owner(), owner),
            "a transaction is to wait for keys that it has reserved"
        );
        let keys: Vec<Arc<dyn ReservedKeys>> = all.iter().map(|one| one.keys.clone()).collect();
        // Keys are read without the lock. A blocker made before they were given back is over then.
        drop(all);
        for keys in keys {
            if has(&*keys)? {
                return Ok(Some(blocker));
            }
        }
        Ok(None)
    }
}

/// The owner of reservations, if it is not `owner`.
fn other(all: &[Reserved], owner: &Arc<Owner>) -> Option<Blocker> {
    debug_assert!(
        all.windows(2).all(|pair| Arc::ptr_eq(&pair[0].owner, &pair[1].owner)),
        "two owners reserve keys of one table"
    );
    let first = all.first().filter(|first| !Arc::ptr_eq(&first.owner, owner));
    first.map(|first| Blocker::new(first.owner.clone()))
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut all = self.reservations.guard();
        let before = all.len();
        all.retain(|one| !Arc::ptr_eq(&one.keys, &self.keys));
        invariant!(all.len() + 1 == before, "keys are given back that are not reserved");
        self.reservations.is_any.store(!all.is_empty(), Ordering::SeqCst);
    }
}
