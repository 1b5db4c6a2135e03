//! Tracks which timestamps readers see: the newest visible commit, and the snapshots in use, whose
//! row versions must not be collected.

use nacre_types::sorted::SortedMap;
use nacre_types::{Timestamp, invariant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The registry of snapshots.
pub(crate) struct Snapshots {
    /// The newest commit that new snapshots see.
    visible: AtomicU64,
    /// Number of users of each snapshot.
    users: Mutex<SortedMap<Timestamp, usize>>,
    /// The greatest timestamp that `oldest` has returned: what only older readers saw may be gone.
    collected: AtomicU64,
}

impl Snapshots {
    /// Creates a registry without snapshots; new ones see commits up to `visible`.
    pub fn new(visible: Timestamp) -> Arc<Snapshots> {
        Arc::new(Snapshots {
            visible: AtomicU64::new(visible),
            users: Mutex::default(),
            collected: AtomicU64::new(0),
        })
    }

    fn users(&self) -> MutexGuard<'_, SortedMap<Timestamp, usize>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest commit that new snapshots see.
    pub fn visible(&self) -> Timestamp {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes a commit and all before it visible to new snapshots.
    pub fn make_visible(&self, commit: Timestamp) {
        self.visible.fetch_max(commit, Ordering::AcqRel);
    }

    /// The oldest timestamp that a reader may read at.
    pub fn oldest(&self) -> Timestamp {
        let users = self.users();
        // If no snapshot is in use, the next one will be at the newest visible commit.
        let oldest = users.keys().next().copied().unwrap_or_else(|| self.visible());
        debug_assert!(oldest <= self.visible(), "snapshot {oldest} is newer than what is visible");
        debug_assert!(users.values().all(|count| *count > 0), "a snapshot without users is kept");
        let before = self.collected.fetch_max(oldest, Ordering::Relaxed);
        debug_assert!(before <= oldest, "the oldest snapshot goes back from {before} to {oldest}");
        oldest
    }

    /// Takes a snapshot of the newest visible commit.
    pub fn take(self: &Arc<Self>) -> Arc<SnapshotGuard> {
        let mut users = self.users();
        // Read under the lock, so that `oldest` cannot pass it in between.
        let at = self.visible();
        debug_assert!(
            users.last().is_none_or(|(newest, _)| *newest <= at),
            "a new snapshot of {at} is older than one in use"
        );
        debug_assert!(
            self.collected.load(Ordering::Relaxed) <= at,
            "versions that a new snapshot of {at} sees may be gone"
        );
        *users.or_insert_with(at, || 0) += 1;
        Arc::new(SnapshotGuard { snapshots: self.clone(), at })
    }
}

/// A snapshot in use: its versions are not collected while the guard lives.
pub(crate) struct SnapshotGuard {
    snapshots: Arc<Snapshots>,
    at: Timestamp,
}

impl SnapshotGuard {
    /// Its timestamp.
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        let mut users = self.snapshots.users();
        let count = users.get_mut(&self.at);
        invariant!(
            count.as_ref().is_some_and(|count| **count > 0),
            "snapshot {} is released more often than it was taken",
            self.at
        );
        if let Some(count) = count {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.at);
            }
        }
    }
}
