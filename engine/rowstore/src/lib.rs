//! The in-memory row table: a skiplist of nodes, each with a chain of versions and a row lock.
//!
//! Seed: SIGMOD 2022 paper, 2.1.1 and 4.2. A node is a key; its versions are newest first, each
//! with the commit timestamp from which it holds. At most one transaction may have a pending
//! change on a node; holding it is holding the row lock. Readers look at versions by timestamp and
//! never wait for a lock.
//!
//! Invariants: commit timestamps of a chain fall strictly towards its end. A pending change exists
//! only while the node is locked. A node is unlinked only under its own lock and is then `dead`:
//! nobody may lock it afterwards.
//!
//! Absent on purpose: this crate knows no segments, no log, and does not decide what commits.

mod lock;
mod node;

pub use lock::{Owner, Waiting};
pub use node::{Change, LockError, Node, Version, Visible};

use crossbeam_skiplist::SkipMap;
use nacre_types::Timestamp;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An encoded key ([`nacre_types::key`]).
pub type Key = Arc<[u8]>;
/// An encoded row ([`nacre_types::row`]).
pub type Row = Arc<[u8]>;

/// What a node costs beyond its key and rows, for the flush threshold.
const NODE_OVERHEAD_BYTES: usize = 160;

/// All rows of a table that are not, or not only, in segments.
#[derive(Default)]
pub struct Rowstore {
    nodes: SkipMap<Key, Arc<Node>>,
    bytes: AtomicUsize,
}

impl Rowstore {
    /// An empty rowstore.
    pub fn new() -> Rowstore {
        Rowstore::default()
    }

    /// Number of nodes, including those that only hold old versions or tombstones.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Estimated memory of keys, rows and nodes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Accounts for a row that was added to a node.
    pub fn account_row(&self, row_bytes: usize) {
        self.bytes.fetch_add(row_bytes, Ordering::Relaxed);
    }

    /// Accounts for a row that was taken back or replaced before it was committed.
    pub fn release_row(&self, row_bytes: usize) {
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |b| Some(b.saturating_sub(row_bytes))).ok();
    }

    /// The node of a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Node>> {
        self.nodes.get(key).map(|entry| entry.value().clone())
    }

    /// The node of a key, made if there is none.
    pub fn get_or_insert(&self, key: &[u8]) -> Arc<Node> {
        if let Some(node) = self.get(key) {
            return node;
        }
        let key: Key = key.into();
        self.bytes.fetch_add(NODE_OVERHEAD_BYTES + key.len(), Ordering::Relaxed);
        let entry = self.nodes.get_or_insert_with(key.clone(), || Arc::new(Node::new(key)));
        entry.value().clone()
    }

    /// Up to `limit` nodes with keys after `after` (from the start when `None`), in key order.
    /// Scanning in such runs keeps no position pinned while the caller works.
    pub fn range_after(&self, after: Option<&[u8]>, limit: usize, out: &mut Vec<Arc<Node>>) {
        let from = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        let range = self.nodes.range::<[u8], _>((from, Bound::Unbounded));
        out.extend(range.take(limit).map(|entry| entry.value().clone()));
    }

    /// Frees versions that no snapshot at or after `oldest` can see, and unlinks the node when nothing
    /// is left of it.
    pub fn collect(&self, node: &Node, oldest: Timestamp) {
        let (freed, dead) = node.collect(oldest);
        let mut bytes = freed;
        if dead {
            // A new node of the same key may already have taken the place only after this removal,
            // because `get_or_insert` finds the dead one until then and callers retry.
            if let Some(entry) = self.nodes.get(node.key())
                && std::ptr::eq(Arc::as_ptr(entry.value()), node)
                && entry.remove()
            {
                bytes += NODE_OVERHEAD_BYTES + node.key().len();
            }
        }
        self.release_row(bytes);
    }
}

#[cfg(test)]
mod tests;
