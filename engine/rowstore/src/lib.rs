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

#![deny(unsafe_code)]

mod chain;
mod entries;
mod holder;
mod list;
mod lock;
mod node;
mod reclaim;
mod sync;

pub use entries::{Entries, Entry};
pub use lock::{Blocker, LockError, Owner, Waiting};
pub use node::{Change, Node, Version, Visible};

use crate::list::List;
use crate::reclaim::pin;
use nacre_types::Timestamp;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An encoded key ([`nacre_types::key`]).
pub type Key = Arc<[u8]>;
/// An encoded row ([`nacre_types::row`]).
pub type Row = Arc<[u8]>;

/// All rows of a table that are not, or not only, in segments.
#[derive(Default)]
pub struct Rowstore {
    nodes: List<Arc<Node>>,
    /// Of everything reachable from here. Nodes count their own records.
    bytes: Arc<AtomicUsize>,
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
        self.len() == 0
    }

    /// Memory of nodes, keys, versions and rows, exact but for the height of each node in the skiplist. What was taken
    /// out does not count, though a reader may keep it for a moment.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The node of a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Node>> {
        self.nodes.get(key)
    }

    /// The node of a key, made if there is none. It was alive a moment ago.
    pub fn get_or_insert(&self, key: &[u8]) -> Arc<Node> {
        loop {
            let node = self.insert(key.into());
            if !node.is_dead() {
                return node;
            }
            // Whoever killed it has not come to unlinking it yet; nobody has to wait for that.
            self.unlink(&node);
        }
    }

    /// In one search, whether there is one or not.
    fn insert(&self, key: Key) -> Arc<Node> {
        let make = || Arc::new(Node::new(key.clone(), self.bytes.clone()));
        let (node, is_new) = self.nodes.get_or_insert_with(&key, make);
        if is_new {
            self.bytes.fetch_add(node.own_bytes(), Ordering::Relaxed);
        }
        node
    }

    /// Takes a dead node out, once.
    fn unlink(&self, node: &Node) {
        if self.nodes.remove_if(node.key(), |other| std::ptr::eq(Arc::as_ptr(other), node)) {
            self.bytes.fetch_sub(node.own_bytes(), Ordering::Relaxed);
        }
    }

    /// Up to `limit` nodes with keys after `after` (from the start when `None`), in key order.
    /// Scanning in such runs keeps no position pinned while the caller works.
    pub fn range_after(&self, after: Option<&[u8]>, limit: usize, out: &mut Vec<Arc<Node>>) {
        self.visit_after(after, limit, |node| {
            out.push(node.clone());
            true
        });
    }

    /// The same without counting references, which several scanners of the same rows would take from each other:
    /// what the caller does with a node must be short. Ends when `visit` answers `false`. Answers the last key when there
    /// may be more.
    pub fn visit_after(
        &self,
        after: Option<&[u8]>,
        limit: usize,
        mut visit: impl FnMut(&Arc<Node>) -> bool,
    ) -> Option<Key> {
        // The list pins for its own nodes; what those point to is this crate's, which a model checker must see.
        let _pin = pin();
        let from = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        self.nodes.visit(from, Bound::Unbounded, limit, |_, node| visit(node))
    }

    /// Frees versions that no snapshot at or after `oldest` can see, and unlinks the node when nothing is left of it
    /// and it is not locked. With `oldest` 0 that is a node which has no version at all.
    pub fn collect(&self, node: &Node, oldest: Timestamp) {
        if node.collect(oldest) {
            self.unlink(node);
        }
    }
}

#[cfg(test)]
#[cfg(feature = "loom")]
mod models;
#[cfg(test)]
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod tests;
