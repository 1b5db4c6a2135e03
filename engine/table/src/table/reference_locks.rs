//! Locks of keys that rows of other tables refer to.
//!
//! A transaction that writes a row with a foreign key locks the key, together with all others that do so, before it
//! looks for the row that has it. One that deletes or changes a key locks it alone, before it looks for rows that
//! refer to it. Both locks last until the transaction is durable or undone: of two transactions, the second finds
//! what the first one has done.
//!
//! A key is a row of bytes that names the columns and their values. Transactions with very many keys lock all of a
//! table at once.

use nacre_rowstore::{Blocker, Owner};
use nacre_types::hash::Map;
use nacre_types::invariant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys to lock.
pub(crate) enum LockedKeys {
    Some(Vec<Vec<u8>>),
    All,
}

/// Owners that hold one lock, some of them several times.
#[derive(Default)]
struct Holders {
    shared: Vec<Arc<Owner>>,
    /// All the same.
    alone: Vec<Arc<Owner>>,
}

impl Holders {
    /// An owner other than this one that keeps it from taking the lock.
    fn other(&self, owner: &Arc<Owner>, is_alone: bool) -> Option<&Arc<Owner>> {
        let shared = self.shared.iter().filter(|_| is_alone);
        self.alone.iter().chain(shared).find(|other| !Arc::ptr_eq(other, owner))
    }

    fn of(&mut self, is_alone: bool) -> &mut Vec<Arc<Owner>> {
        if is_alone { &mut self.alone } else { &mut self.shared }
    }

    fn remove(&mut self, owner: &Arc<Owner>, is_alone: bool) {
        debug_assert!(!self.is_free(), "a lock without holders is given back");
        let held = self.of(is_alone);
        let at = held.iter().position(|other| Arc::ptr_eq(other, owner));
        invariant!(at.is_some(), "a key is given back that is not locked");
        at.map(|at| held.swap_remove(at));
    }

    fn is_free(&self) -> bool {
        self.shared.is_empty() && self.alone.is_empty()
    }
}

#[derive(Default)]
struct Locks {
    keys: Map<Vec<u8>, Holders>,
    all: Holders,
}

/// The locks of one table's keys, in all its versions.
#[derive(Default)]
pub(crate) struct ReferenceLocks(Mutex<Locks>);

/// Locked keys, given back when this is dropped.
pub(crate) struct HeldReferences {
    locks: Arc<ReferenceLocks>,
    owner: Arc<Owner>,
    keys: LockedKeys,
    is_alone: bool,
}

impl ReferenceLocks {
    fn guard(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks keys, all or none: alone, or together with others that do not lock them alone.
    pub fn lock(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        keys: LockedKeys,
        is_alone: bool,
    ) -> Result<HeldReferences, Blocker> {
        let mut locks = self.guard();
        let all = locks.all.other(owner, is_alone);
        let one = || match &keys {
            LockedKeys::All => {
                locks.keys.values().find_map(|holders| holders.other(owner, is_alone))
            }
            LockedKeys::Some(keys) => {
                let mut held = keys.iter().filter_map(|key| locks.keys.get(key));
                held.find_map(|holders| holders.other(owner, is_alone))
            }
        };
        if let Some(other) = all.or_else(one) {
            // It cannot give the lock back meanwhile.
            return Err(Blocker::new(other.clone()));
        }
        debug_assert!(
            locks.keys.values().all(|holders| !holders.is_free()),
            "a lock without holders is kept"
        );
        debug_assert!(
            !is_alone || locks.all.other(owner, true).is_none(),
            "all keys are locked by another, and some alone"
        );
        match &keys {
            LockedKeys::All => locks.all.of(is_alone).push(owner.clone()),
            LockedKeys::Some(keys) => {
                for key in keys {
                    let holders = locks.keys.entry(key.clone()).or_default();
                    debug_assert!(
                        holders.other(owner, is_alone).is_none(),
                        "a key is locked that another has locked"
                    );
                    holders.of(is_alone).push(owner.clone());
                }
            }
        }
        Ok(HeldReferences { locks: self.clone(), owner: owner.clone(), keys, is_alone })
    }
}

impl Drop for HeldReferences {
    fn drop(&mut self) {
        let mut locks = self.locks.guard();
        match &self.keys {
            LockedKeys::All => locks.all.remove(&self.owner, self.is_alone),
            LockedKeys::Some(keys) => {
                for key in keys {
                    let Some(holders) = locks.keys.get_mut(key) else {
                        invariant!(false, "a key is given back that nothing locks");
                        continue;
                    };
                    holders.remove(&self.owner, self.is_alone);
                    if holders.is_free() {
                        locks.keys.remove(key);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(keys: &[&str]) -> LockedKeys {
        LockedKeys::Some(keys.iter().map(|key| key.as_bytes().to_vec()).collect())
    }

    #[test]
    fn keys_are_locked_together_or_alone() {
        let locks = Arc::new(ReferenceLocks::default());
        let (a, b) = (Owner::new(1), Owner::new(2));
        let shared = locks.lock(&a, some(&["x", "y"]), false).ok().unwrap();
        let other = locks.lock(&b, some(&["y", "z"]), false).ok().unwrap();
        let blocked = |owner: &Arc<Owner>, keys, is_alone| {
            locks.lock(owner, keys, is_alone).err().map(|blocker| blocker.owner().id())
        };
        assert_eq!(blocked(&a, some(&["y"]), true), Some(2));
        assert_eq!(blocked(&a, some(&["w", "z"]), true), Some(2));
        assert_eq!(blocked(&b, LockedKeys::All, true), Some(1));
        assert!(locks.guard().keys.len() == 3, "a lock that is refused leaves nothing");
        let alone = locks.lock(&a, some(&["x"]), true).ok().unwrap();
        assert_eq!(blocked(&b, some(&["x"]), false), Some(1));
        assert_eq!(blocked(&b, LockedKeys::All, false), Some(1));
        drop((alone, shared));
        let all = locks.lock(&b, LockedKeys::All, false).ok().unwrap();
        assert_eq!(blocked(&a, some(&["new"]), true), Some(2));
        assert_eq!(blocked(&a, some(&["new"]), false), None);
        drop((all, other));
        assert!(locks.guard().keys.is_empty() && locks.guard().all.is_free());
    }
}
