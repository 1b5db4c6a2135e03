//! One key: its lock, its pending change, its versions.
//!
//! Readers never wait. A thread that changes the versions holds the row lock or, for a few
//! instructions, the latch. The pending change belongs to the lock's holder. It is already a
//! record, so that a commit only stamps and links it.

use crate::chain::{Detached, Link, Record, SHARED_HEADER_BYTES};
use crate::encoded::{Key, Row};
use crate::holder::{Holder, Latch};
use crate::lock::{Blocker, LockError, Owner};
use crate::reclaim::{Pin, pin};
use crate::sync::MODELLED;
use crate::version::{Change, Version, Visible};
use nacre_types::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A node of the skiplist.
pub struct Node {
    key: Key,
    holder: Holder,
    pending: Link,
    versions: Link,
    /// Memory of the whole rowstore, in bytes.
    pub(crate) bytes: Arc<AtomicUsize>,
}

/// The version of a row that was moved into a segment, before its commit. Allocating it ahead keeps
/// that out of the commit, which marks many rows.
pub struct FlushMark(Detached);

impl Default for FlushMark {
    fn default() -> FlushMark {
        FlushMark(Detached::new(0, 0, Change::Flushed))
    }
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

    /// Memory of the node itself, in bytes: its key, and its skiplist entry with two links, the
    /// average.
    pub(crate) fn own_bytes(&self) -> usize {
        const PLACE_BYTES: usize = size_of::<(usize, Key, Arc<Node>, [usize; 2])>();
        2 * SHARED_HEADER_BYTES + size_of::<Node>() + PLACE_BYTES + self.key.len()
    }

    /// What `reader` sees at `at`: its own pending change, else the newest version committed at or
    /// before `at`.
    #[inline]
    pub fn visible(&self, at: Timestamp, reader: Option<&Arc<Owner>>) -> Visible {
        let pin = pin();
        let own = match reader {
            Some(reader) if self.holder.is(reader) => self.pending.get(&pin),
            _ => None,
        };
        debug_assert!(
            MODELLED || own.is_none_or(|own| !matches!(own.change(), Change::Flushed)),
            "a transaction moves a row into a segment"
        );
        match own.or_else(|| self.versions.at(&pin, at)).map(Record::change) {
            Some(Change::Put(row)) => Visible::Row(row.clone()),
            Some(Change::Delete) => Visible::Deleted,
            Some(Change::Flushed) | None => Visible::Elsewhere,
        }
    }

    /// Takes the row lock. Returns `false` if this owner held it already.
    ///
    /// # Errors
    /// `Held` if another owner holds the lock, `Dead` if the node was unlinked.
    pub fn lock(&self, owner: &Arc<Owner>) -> Result<bool, LockError> {
        let is_new = self.holder.lock(owner)?;
        debug_assert!(MODELLED || self.is_locked_by(owner), "a row lock went to another owner");
        debug_assert!(
            MODELLED || !is_new || self.pending.is_empty(),
            "a row that was free has a pending change"
        );
        Ok(is_new)
    }

    /// Releases the lock. A pending change must have been committed or removed before.
    pub fn unlock(&self) {
        debug_assert!(MODELLED || self.is_locked(), "a row is unlocked that is free");
        debug_assert!(self.pending.is_empty(), "a row is unlocked with a pending change");
        self.replace_pending(None);
        self.holder.unlock();
    }

    /// The holder of the lock, for waiting.
    pub fn blocker(&self) -> Option<Blocker> {
        self.holder.blocker()
    }

    /// Whether this owner holds the lock.
    pub fn is_locked_by(&self, owner: &Arc<Owner>) -> bool {
        self.holder.is(owner)
    }

    /// Whether the lock is held. An owner that locks the node after this returned `false` sees
    /// everything this thread did before the call.
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

    /// The newest version committed at or before `at`.
    pub fn version_at(&self, at: Timestamp) -> Option<Version> {
        self.versions.at(&pin(), at).map(Version::of)
    }

    /// Replaces the pending change of the lock's holder and returns the previous one.
    pub fn set_pending(&self, change: Option<Change>) -> Option<Change> {
        debug_assert!(self.is_locked(), "a pending change needs the row lock");
        debug_assert!(
            !matches!(change, Some(Change::Flushed)),
            "a transaction moves a row into a segment"
        );
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
        self.release(before.bytes());
        Some(before.change().clone())
    }

    fn account(&self, record: &Record) {
        self.bytes.fetch_add(record.bytes(), Ordering::Relaxed);
    }

    /// Subtracts bytes that [`Node::account`] added.
    fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} bytes are released");
    }

    /// Prevents locking until the latch is dropped; `None` if the row is locked or dead.
    fn latch(&self) -> Option<Latch<'_>> {
        let latch = self.holder.latch()?;
        debug_assert!(
            MODELLED || self.pending.is_empty(),
            "a row that is free has a pending change"
        );
        Some(latch)
    }

    /// The pending change.
    pub fn pending(&self) -> Option<Change> {
        self.pending.get(&pin()).map(|record| record.change().clone())
    }

    /// Turns the pending change into a version. The lock stays held until [`Node::unlock`], so that
    /// no transaction builds on a commit that is not durable yet.
    pub fn commit_pending(&self, commit: Timestamp) {
        debug_assert!(commit > 0, "a commit has a timestamp");
        debug_assert!(self.is_locked(), "only the holder of the row lock commits its change");
        if let Some(record) = self.pending.take() {
            record.stamp(commit);
            self.push(record);
        }
    }

    /// Adds a version directly, for recovery and bulk replacement.
    pub fn push_version(&self, version: Version) {
        self.push_new(version.commit, version.content, version.change);
    }

    /// Adds the copy of a row that was moved here from a segment. Its content is as old as the last
    /// version here or, if a bulk load has replaced the row since, as the segment, whose content is
    /// at most `newest`.
    pub fn push_moved_in(&self, commit: Timestamp, newest: Timestamp, row: Row) {
        let pin = pin();
        let last = self.versions.get(&pin);
        debug_assert!(
            last.is_none_or(|last| !matches!(last.change(), Change::Put(_))),
            "a row is moved in that is here already"
        );
        let content = last.map_or(0, Record::content).max(newest);
        self.push_new(commit, content, Change::Put(row));
    }

    fn push_new(&self, commit: Timestamp, content: Timestamp, change: Change) {
        debug_assert!(content <= commit, "content of {content} in a version of {commit}");
        // If the lock is free, prevents an owner from taking it and a collector from killing the
        // node while the version is linked.
        let _latch = self.latch();
        self.attach(commit, content, change);
    }

    fn attach(&self, commit: Timestamp, content: Timestamp, change: Change) {
        let record = Detached::new(commit, content, change);
        self.account(&record);
        self.push(record);
    }

    fn push(&self, record: Detached) {
        // Not under a model checker: pinning has a fence that the release build lacks here.
        #[cfg(not(any(feature = "loom", feature = "shuttle")))]
        debug_assert!(
            self.versions.get(&pin()).is_none_or(|newest| newest.commit() < record.commit()),
            "commit timestamps must increase along a chain"
        );
        debug_assert!(MODELLED || !self.is_dead(), "a version of an unlinked node is lost");
        let commit = record.commit();
        self.versions.push(record);
        debug_assert!(
            MODELLED || self.versions.get(&pin()).is_some_and(|newest| newest.commit() == commit),
            "another version was linked beside that of {commit}"
        );
    }

    /// Whether `wanted` holds for the row of the pending change or of any version. The result is
    /// stable only for the holder of the lock and inside [`Node::while_free`].
    pub fn any_row(&self, mut wanted: impl FnMut(&Row) -> bool) -> bool {
        let pin = pin();
        let mut is_wanted =
            |record: &Record| matches!(record.change(), Change::Put(row) if wanted(row));
        self.pending.get(&pin).is_some_and(&mut is_wanted) || self.versions.any(&pin, is_wanted)
    }

    /// Runs a short action while the row cannot be locked. Returns `false`, without running it, if
    /// the row is locked or dead.
    pub fn while_free(&self, act: impl FnOnce()) -> bool {
        let Some(_latch) = self.latch() else { return false };
        act();
        true
    }

    /// Marks the row as moved into a segment at `commit`, if the node is unlocked and its newest
    /// version is still the one committed at `expected`. Returns whether it did.
    pub fn flush(&self, commit: Timestamp, expected: Timestamp) -> bool {
        self.flush_with(FlushMark::default(), commit, expected)
    }

    /// Like [`Node::flush`], with a mark that was allocated before.
    pub fn flush_with(&self, mark: FlushMark, commit: Timestamp, expected: Timestamp) -> bool {
        debug_assert!(expected < commit, "version {expected} is flushed at {commit}");
        let Some(_latch) = self.latch() else { return false };
        let content = match self.versions.get(&pin()) {
            Some(newest) if newest.commit() == expected => {
                debug_assert!(matches!(newest.change(), Change::Put(_)), "no row to move");
                newest.content()
            }
            _ => return false,
        };
        let FlushMark(record) = mark;
        record.date(commit, content);
        self.account(&record);
        self.push(record);
        true
    }

    /// Whether the version before the newest is too new to be freed for `oldest`, which keeps the
    /// older versions too.
    pub fn keeps_older(&self, oldest: Timestamp) -> bool {
        self.versions.second(&pin()).is_some_and(|version| version.commit() > oldest)
    }

    /// Frees versions that no snapshot at or after `oldest` can see, except the newest.
    pub fn free_versions(&self, oldest: Timestamp) {
        let freed = self.versions.cut(&pin(), oldest);
        if freed > 0 {
            self.release(freed);
        }
    }

    /// Frees versions that no snapshot at or after `oldest` can see. Returns whether this call
    /// found nothing left and made the node dead; the caller must then unlink it.
    pub(crate) fn collect(&self, oldest: Timestamp) -> bool {
        let pin = pin();
        let mut freed = self.versions.cut(&pin, oldest);
        let mut died = false;
        if self.is_gone(&pin, oldest)
            && let Some(latch) = self.latch()
        {
            // The node may have been locked and changed since the first check; under the latch it
            // cannot be.
            died = self.is_gone(&pin, oldest);
            if died {
                freed += self.versions.clear(&pin);
                latch.kill();
            }
        }
        if freed > 0 {
            self.release(freed);
        }
        died
    }

    /// Whether no snapshot at or after `oldest` finds a row here.
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
        self.release(left);
    }
}
