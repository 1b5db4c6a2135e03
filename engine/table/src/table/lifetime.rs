//! Between which commits a version of a table is the newest one.

use crate::segments::state::FOREVER;
use nacre_types::{Timestamp, invariant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The commits that begin and end a version.
pub(super) struct Lifetime {
    /// The commit that created the version; 0 if it predates the opening of the database. Of a version
    /// that a transaction has not committed, that of the version which it was made from.
    since: AtomicU64,
    /// The commit that created the table; 0 as above.
    created: AtomicU64,
    /// The commit that replaced the version or dropped the table.
    until: AtomicU64,
    is_dropped: AtomicBool,
    /// Whether the version that replaced it takes rows that are written to this one.
    keeps_writers: AtomicBool,
}

impl Lifetime {
    /// That of a version which nothing has replaced.
    pub fn new(since: Timestamp, created: Timestamp) -> Lifetime {
        Lifetime {
            since: AtomicU64::new(since),
            created: AtomicU64::new(created),
            until: AtomicU64::new(FOREVER),
            is_dropped: AtomicBool::new(false),
            keeps_writers: AtomicBool::new(false),
        }
    }

    pub fn since(&self) -> Timestamp {
        self.since.load(Ordering::Acquire)
    }

    /// Sets the commit that creates the version, which a transaction has made before.
    pub fn begin_at(&self, commit: Timestamp) {
        debug_assert!(self.since() < commit, "commit {commit} creates a version that is there");
        self.since.store(commit, Ordering::Release);
    }

    pub fn created(&self) -> Timestamp {
        self.created.load(Ordering::Acquire)
    }

    /// Sets the commit that creates the table.
    pub fn created_by(&self, commit: Timestamp) {
        self.created.store(commit, Ordering::Release);
    }

    pub fn until(&self) -> Timestamp {
        self.until.load(Ordering::Acquire)
    }

    /// Ends it. `keeps_writers` if the version that replaces it takes rows written to this one.
    pub fn end_at(&self, commit: Timestamp, keeps_writers: bool) {
        invariant!(
            self.until() == FOREVER && self.since() < commit,
            "a version since commit {} ends at {commit}, or ended before",
            self.since()
        );
        // Set first: a writer that finds the end finds it.
        self.keeps_writers.store(keeps_writers, Ordering::Release);
        self.until.store(commit, Ordering::Release);
    }

    /// Whether rows can be written to the version.
    pub fn takes_writes(&self) -> bool {
        self.until() == FOREVER || self.keeps_writers.load(Ordering::Acquire) && !self.is_dropped()
    }

    /// Lets no more rows be written to it: a later version does not take them.
    pub fn refuse_writes(&self) {
        self.keeps_writers.store(false, Ordering::Release);
    }

    /// Notes that the table was dropped, of which this is some version.
    pub fn drop_table(&self) {
        self.is_dropped.store(true, Ordering::Release);
    }

    pub fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }
}
