//! One key: its lock, its pending change, its versions.
//!
//! Readers wait for nobody. Who changes the versions either holds the row lock or, for a few instructions, latches it.
//! The pending change belongs to the holder; it is a record already, so that a commit only has to stamp and link it.

use crate::chain::{Detached, Link, Record, SHARED_HEADER_BYTES};
use crate::holder::Holder;
use crate::lock::{Blocker, LockError};
use crate::reclaim::{Pin, pin};
use crate::{Key, Owner, Row};
use nacre_types::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a version says about the key from its timestamp on.
#[derive(Clone, Debug)]
pub enum Change {
    /// The row is this.
    Put(Row),
    /// There is no row.
    Delete,
    /// The row is not here any more but in a segment.
    Flushed,
}

/// A committed change.
#[derive(Clone, Debug)]
pub struct Version {
    /// From when on it holds.
    pub commit: Timestamp,
    /// When the row's content last changed. Differs from `commit` for versions that only moved the row
    /// between rowstore and segments: those must not conflict with anybody.
    pub content: Timestamp,
    /// The change.
    pub change: Change,
}

/// What a reader sees at a node.
#[derive(Clone, Debug)]
pub enum Visible {
    /// This row.
    Row(Row),
    /// Nothing, and nothing in a segment either.
    Deleted,
    /// Nothing here; the row, if there is one, is in a segment.
    Elsewhere,
}

/// A node of the skiplist.
pub struct Node {
    key: Key,
    holder: Holder,
    pending: Link,
    versions: Link,
    /// Of the whole rowstore.
    pub(crate) bytes: Arc<AtomicUsize>,
}

impl Node {
    pub(crate) fn new(key: Key, bytes: Arc<AtomicUsize>) -> Node {
        Node {
            key,
            holder: Holder::default(),
            pending: Link::default(),
            versions: Link::default(),
            bytes,
        }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What the node itself takes: its key, and the place in the skiplist with two links, which is the average.
    pub(crate) fn own_bytes(&self) -> usize {
        const PLACE_BYTES: usize = size_of::<(usize, Key, Arc<Node>, [usize; 2])>();
        2 * SHARED_HEADER_BYTES + size_of::<Node>() + PLACE_BYTES + self.key.len()
    }

    /// What `reader` sees at `at`: its own pending change first, then the newest version not after `at`.
    #[inline]
    pub fn visible(&self, at: Timestamp, reader: Option<&Arc<Owner>>) -> Visible {
        let pin = pin();
        let own = match reader {
            Some(reader) if self.holder.is(reader) => self.pending.get(&pin),
            _ => None,
        };
        match own.or_else(|| self.versions.at(&pin, at)).map(Record::change) {
            Some(Change::Put(row)) => Visible::Row(row.clone()),
            Some(Change::Delete) => Visible::Deleted,
            Some(Change::Flushed) | None => Visible::Elsewhere,
        }
    }

    /// Takes the row lock; again is fine for its owner (then `false`: it was held already).
    pub fn lock(&self, owner: &Arc<Owner>) -> Result<bool, LockError> {
        self.holder.lock(owner)
    }

    /// Gives the lock back. A pending change must have been committed or taken back.
    pub fn unlock(&self) {
        debug_assert!(self.pending.is_empty());
        self.replace_pending(None);
        self.holder.unlock();
    }

    /// Who holds the lock, to wait until it is given back.
    pub fn blocker(&self) -> Option<Blocker> {
        self.holder.blocker()
    }

    /// Whether this owner holds the lock.
    pub fn is_locked_by(&self, owner: &Arc<Owner>) -> bool {
        self.holder.is(owner)
    }

    /// Whether anybody holds the lock. Whoever locks the node after this answered `false` also finds what was done
    /// before the question.
    pub fn is_locked(&self) -> bool {
        self.holder.is_held()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.holder.is_dead()
    }

    /// The newest committed version.
    pub fn newest(&self) -> Option<Version> {
        self.versions.get(&pin()).map(Version::of)
    }

    /// The newest version not after `at`.
    pub fn version_at(&self, at: Timestamp) -> Option<Version> {
        self.versions.at(&pin(), at).map(Version::of)
    }

    /// Replaces the pending change of the lock's owner and returns the one before.
    pub fn set_pending(&self, change: Option<Change>) -> Option<Change> {
        debug_assert!(self.is_locked());
        self.replace_pending(change.map(|change| Detached::new(0, 0, change)))
    }

    fn replace_pending(&self, record: Option<Detached>) -> Option<Change> {
        let before = match record {
            Some(record) => {
                self.account(&record);
                self.pending.replace(Some(record))
            }
            None => self.pending.take(),
        }?;
        self.bytes.fetch_sub(before.bytes(), Ordering::Relaxed);
        Some(before.change().clone())
    }

    fn account(&self, record: &Record) {
        self.bytes.fetch_add(record.bytes(), Ordering::Relaxed);
    }

    /// The pending change.
    pub fn pending(&self) -> Option<Change> {
        self.pending.get(&pin()).map(|record| record.change().clone())
    }

    /// Turns the pending change into a version. The lock stays until [`Node::unlock`], so that others
    /// cannot build on a commit that is not durable yet.
    pub fn commit_pending(&self, commit: Timestamp) {
        if let Some(record) = self.pending.take() {
            record.stamp(commit);
            self.push(record);
        }
    }

    /// Adds a version directly: recovery, bulk replacement.
    pub fn push_version(&self, version: Version) {
        self.push_new(version.commit, version.content, version.change);
    }

    /// Adds the copy of a row that was moved here from a segment. Its content is as old as the row: as old as what
    /// was here last, or, when a bulk load has replaced it since, as the segment, whose content is at most `newest`.
    pub fn push_moved_in(&self, commit: Timestamp, newest: Timestamp, row: Row) {
        let content = self.versions.get(&pin()).map_or(0, Record::content).max(newest);
        self.push_new(commit, content, Change::Put(row));
    }

    fn push_new(&self, commit: Timestamp, content: Timestamp, change: Change) {
        // Where nobody holds the lock, nobody may take it, or find the node dead, between two versions.
        let _latch = self.holder.latch();
        self.attach(commit, content, change);
    }

    fn attach(&self, commit: Timestamp, content: Timestamp, change: Change) {
        let record = Detached::new(commit, content, change);
        self.account(&record);
        self.push(record);
    }

    fn push(&self, record: Detached) {
        // Not under a model checker: pinning has a fence that the release build would not have here.
        #[cfg(not(any(feature = "loom", feature = "shuttle")))]
        debug_assert!(
            self.versions.get(&pin()).is_none_or(|newest| newest.commit() < record.commit())
        );
        self.versions.push(record);
    }

    /// Whether the pending change or any version is a row for which `wanted` says so. Only who holds the lock, or is
    /// called by [`Node::while_free`], gets an answer that still holds when he acts on it.
    pub fn any_row(&self, mut wanted: impl FnMut(&Row) -> bool) -> bool {
        let pin = pin();
        let mut is_wanted =
            |record: &Record| matches!(record.change(), Change::Put(row) if wanted(row));
        self.pending.get(&pin).is_some_and(&mut is_wanted) || self.versions.any(&pin, is_wanted)
    }

    /// Does something short while nobody can lock the row; answers `false`, and does nothing, when somebody has.
    pub fn while_free(&self, act: impl FnOnce()) -> bool {
        let Some(_latch) = self.holder.latch() else { return false };
        act();
        true
    }

    /// Marks the row as moved into a segment at `commit`, if the node is unlocked and its newest version is
    /// still the one from `expected`. Answers whether it was.
    pub fn flush(&self, commit: Timestamp, expected: Timestamp) -> bool {
        let Some(_latch) = self.holder.latch() else { return false };
        let content = match self.versions.get(&pin()) {
            Some(newest) if newest.commit() == expected => newest.content(),
            _ => return false,
        };
        self.attach(commit, content, Change::Flushed);
        true
    }

    /// Whether the version before the newest is too new to be freed for `oldest`, so that with it older ones are kept.
    pub fn keeps_older(&self, oldest: Timestamp) -> bool {
        self.versions.second(&pin()).is_some_and(|version| version.commit() > oldest)
    }

    /// Frees versions that no snapshot at or after `oldest` can see, but not the newest.
    pub fn free_versions(&self, oldest: Timestamp) {
        let freed = self.versions.cut(&pin(), oldest);
        if freed > 0 {
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
    }

    /// Frees versions that no snapshot at or after `oldest` can see. Answers whether this call found nothing left
    /// and made the node dead: it must be unlinked.
    pub(crate) fn collect(&self, oldest: Timestamp) -> bool {
        let pin = pin();
        let mut freed = self.versions.cut(&pin, oldest);
        let mut died = false;
        if self.is_gone(&pin, oldest)
            && let Some(latch) = self.holder.latch()
        {
            // Somebody may have come and gone since; under the latch nobody can.
            died = self.is_gone(&pin, oldest);
            if died {
                freed += self.versions.clear(&pin);
                latch.kill();
            }
        }
        if freed > 0 {
            self.bytes.fetch_sub(freed, Ordering::Relaxed);
        }
        died
    }

    /// Whether no snapshot from `oldest` on finds a row here.
    fn is_gone(&self, pin: &Pin, oldest: Timestamp) -> bool {
        self.versions.get(pin).is_none_or(|newest| {
            newest.commit() <= oldest
                && !matches!(newest.change(), Change::Put(_))
                && self.versions.is_alone(pin)
        })
    }
}

impl Version {
    fn of(record: &Record) -> Version {
        Version {
            commit: record.commit(),
            content: record.content(),
            change: record.change().clone(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let pin = pin();
        let left = self.versions.clear(&pin) + self.pending.clear(&pin);
        self.bytes.fetch_sub(left, Ordering::Relaxed);
    }
}
