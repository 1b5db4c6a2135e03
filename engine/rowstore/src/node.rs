//! One key: its lock, its pending change, its versions.

use crate::{Key, Owner, Row};
use nacre_types::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Why a node could not be locked.
pub enum LockError {
    /// Another transaction holds it.
    Held(Arc<Owner>),
    /// The node was unlinked; look the key up again.
    Dead,
}

#[derive(Default)]
struct State {
    owner: Option<Arc<Owner>>,
    pending: Option<Change>,
    /// Newest first.
    versions: Vec<Version>,
    dead: bool,
}

/// A node of the skiplist.
pub struct Node {
    key: Key,
    state: Mutex<State>,
}

impl Node {
    pub(crate) fn new(key: Key) -> Node {
        Node { key, state: Mutex::new(State::default()) }
    }

    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `reader` sees at `at`: its own pending change first, then the newest version not after `at`.
    pub fn visible(&self, at: Timestamp, reader: Option<&Arc<Owner>>) -> Visible {
        let state = self.state();
        let own = match (reader, &state.owner) {
            (Some(reader), Some(owner)) if Arc::ptr_eq(reader, owner) => state.pending.as_ref(),
            _ => None,
        };
        let change = own.or_else(|| state.versions.iter().find(|v| v.commit <= at).map(|v| &v.change));
        match change {
            Some(Change::Put(row)) => Visible::Row(row.clone()),
            Some(Change::Delete) => Visible::Deleted,
            Some(Change::Flushed) | None => Visible::Elsewhere,
        }
    }

    /// Takes the row lock; again is fine for its owner (then `false`: it was held already).
    pub fn lock(&self, owner: &Arc<Owner>) -> Result<bool, LockError> {
        let mut state = self.state();
        if state.dead {
            return Err(LockError::Dead);
        }
        match &state.owner {
            None => {
                state.owner = Some(owner.clone());
                Ok(true)
            }
            Some(holder) if Arc::ptr_eq(holder, owner) => Ok(false),
            Some(holder) => Err(LockError::Held(holder.clone())),
        }
    }

    /// Gives the lock back. A pending change must have been committed or taken back.
    pub fn unlock(&self) {
        let mut state = self.state();
        debug_assert!(state.pending.is_none());
        state.pending = None;
        state.owner = None;
    }

    /// Who holds the lock.
    pub fn owner(&self) -> Option<Arc<Owner>> {
        self.state().owner.clone()
    }

    /// The newest committed version.
    pub fn newest(&self) -> Option<Version> {
        self.state().versions.first().cloned()
    }

    /// The newest version not after `at`.
    pub fn version_at(&self, at: Timestamp) -> Option<Version> {
        self.state().versions.iter().find(|v| v.commit <= at).cloned()
    }

    /// Replaces the pending change of the lock's owner and returns the one before.
    pub fn set_pending(&self, change: Option<Change>) -> Option<Change> {
        let mut state = self.state();
        debug_assert!(state.owner.is_some());
        std::mem::replace(&mut state.pending, change)
    }

    /// The pending change.
    pub fn pending(&self) -> Option<Change> {
        self.state().pending.clone()
    }

    /// Turns the pending change into a version. The lock stays until [`Node::unlock`], so that others
    /// cannot build on a commit that is not durable yet.
    pub fn commit_pending(&self, commit: Timestamp) {
        let mut state = self.state();
        if let Some(change) = state.pending.take() {
            push(&mut state, Version { commit, content: commit, change });
        }
    }

    /// Adds a version directly: recovery, bulk replacement.
    pub fn push_version(&self, version: Version) {
        push(&mut self.state(), version);
    }

    /// Adds the copy of a row that was moved here from a segment. Its content is as old as the row.
    pub fn push_moved_in(&self, commit: Timestamp, row: Row) {
        let mut state = self.state();
        let content = state.versions.first().map_or(0, |v| v.content);
        push(&mut state, Version { commit, content, change: Change::Put(row) });
    }

    /// Marks the row as moved into a segment at `commit`, if the node is unlocked and its newest version is
    /// still the one from `expected`. Answers whether it was.
    pub fn flush(&self, commit: Timestamp, expected: Timestamp) -> bool {
        let mut state = self.state();
        let content = match state.versions.first() {
            Some(v) if v.commit == expected && state.owner.is_none() => v.content,
            _ => return false,
        };
        push(&mut state, Version { commit, content, change: Change::Flushed });
        true
    }

    /// Bytes freed, and whether the node is now dead and must be unlinked.
    pub(crate) fn collect(&self, oldest: Timestamp) -> (usize, bool) {
        let mut state = self.state();
        if state.dead {
            return (0, false);
        }
        let keep = state.versions.iter().position(|v| v.commit <= oldest).map_or(state.versions.len(), |at| at + 1);
        let mut freed = 0;
        for version in state.versions.drain(keep..) {
            if let Change::Put(row) = &version.change {
                freed += row.len();
            }
        }
        let gone = match state.versions.as_slice() {
            [] => true,
            [only] => only.commit <= oldest && !matches!(only.change, Change::Put(_)),
            _ => false,
        };
        if gone && state.owner.is_none() {
            state.dead = true;
            state.versions.clear();
        }
        (freed, state.dead)
    }
}

fn push(state: &mut State, version: Version) {
    debug_assert!(state.versions.first().is_none_or(|newest| newest.commit < version.commit));
    state.versions.insert(0, version);
}
