//! What all versions of a table have in common, until it is emptied.

use crate::table::journal::Journals;
use crate::table::reservations::Reservations;
use nacre_types::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What all versions of a table have in common.
#[derive(Default)]
pub(super) struct Common {
    changed: AtomicU64,
    cleared: AtomicU64,
    /// The journals of loads that are being published.
    pub journals: Arc<Journals>,
    /// Keys that transactions have reserved.
    pub reservations: Arc<Reservations>,
}

impl Common {
    /// Timestamp of the last commit that changed the table.
    pub fn changed(&self) -> Timestamp {
        self.changed.load(Ordering::Acquire)
    }

    /// Records a commit that changes the table.
    pub fn set_changed(&self, at: Timestamp) {
        let before = self.changed.fetch_max(at, Ordering::AcqRel);
        debug_assert!(before <= at, "commit {at} changes a table after commit {before} has");
    }

    /// Timestamp of the last commit that deleted rows of segments without a node for their keys.
    pub fn cleared(&self) -> Timestamp {
        self.cleared.load(Ordering::Acquire)
    }

    /// Records such a commit.
    pub fn set_cleared(&self, at: Timestamp) {
        let before = self.cleared.fetch_max(at, Ordering::AcqRel);
        debug_assert!(before < at, "commit {at} deletes rows after commit {before} has");
    }
}
