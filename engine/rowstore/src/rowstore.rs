//! The rowstore: finds, creates, scans and unlinks nodes.
//!
//! Memory is accounted for exactly once: by the thread whose insertion or removal took effect.

use crate::encoded::Key;
use crate::list::List;
use crate::node::Node;
use crate::reclaim::pin;
use nacre_types::Timestamp;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of a partition that are in memory: not in a segment yet, or changed since.
#[derive(Default)]
pub struct Rowstore {
    nodes: List<Arc<Node>>,
    /// Memory of everything reachable from here, in bytes. Nodes account for their own records.
    bytes: Arc<AtomicUsize>,
}

impl Rowstore {
    /// Creates an empty rowstore.
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

    /// Memory of nodes, keys, versions and rows, in bytes; exact except for the height of each node
    /// in the skiplist. Excludes removed nodes and versions, although a reader may keep them alive
    /// for a moment.
    pub fn bytes(&self) -> usize {
        let bytes = self.bytes.load(Ordering::Relaxed);
        debug_assert!(bytes <= isize::MAX as usize, "rows of less than 0 bytes");
        bytes
    }

    /// The node of a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<Node>> {
        let node = self.nodes.get(key);
        debug_assert!(
            node.as_ref().is_none_or(|node| **node.key() == *key),
            "a node of another key"
        );
        node
    }

    /// The node of a key, created if missing. It was alive at the time of the call.
    pub fn get_or_insert(&self, key: &[u8]) -> Arc<Node> {
        loop {
            let node = self.insert(key.into());
            if !node.is_dead() {
                return node;
            }
            // The thread that killed it has not unlinked it yet; unlink it here instead of waiting.
            self.unlink(&node);
        }
    }

    /// Finds or creates the node of a key with one search.
    fn insert(&self, key: Key) -> Arc<Node> {
        let mut made_bytes = 0;
        let make = || {
            let node = Arc::new(Node::new(key.clone(), self.bytes.clone()));
            // Added before another thread can find the node and remove it: the sum never wraps.
            made_bytes = node.own_bytes();
            self.bytes.fetch_add(made_bytes, Ordering::Relaxed);
            node
        };
        let (node, is_new) = self.nodes.get_or_insert_with(&key, make);
        debug_assert!(!is_new || made_bytes > 0, "a new node that this call did not make");
        if !is_new && made_bytes > 0 {
            self.release(made_bytes);
        }
        node
    }

    /// Subtracts bytes that were added before.
    fn release(&self, bytes: usize) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} of {before} bytes are released");
    }

    /// Removes a dead node; does nothing if another thread already has.
    fn unlink(&self, node: &Node) {
        debug_assert!(node.is_dead(), "a node is unlinked that can be locked");
        if self.nodes.remove_if(node.key(), |other| std::ptr::eq(Arc::as_ptr(other), node)) {
            self.release(node.own_bytes());
        }
        debug_assert!(
            self.get(node.key()).is_none_or(|other| !std::ptr::eq(Arc::as_ptr(&other), node)),
            "an unlinked node is still found"
        );
    }

    /// Appends up to `limit` nodes with keys after `after` (from the start if `None`) to `out`, in
    /// key order. Callers scan in such batches, so nothing stays pinned while they work.
    pub fn range_after(&self, after: Option<&[u8]>, limit: usize, out: &mut Vec<Arc<Node>>) {
        let before = out.len();
        self.visit_after(after, limit, |node| {
            out.push(node.clone());
            true
        });
        let found = &out[before..];
        debug_assert!(
            found.len() <= limit && found.is_sorted_by(|a, b| a.key() < b.key()),
            "{} nodes of {limit} at most do not ascend",
            found.len()
        );
    }

    /// Visits up to `limit` nodes with keys after `after`, in key order, until `visit` returns
    /// `false`. Returns the last key if there may be more.
    ///
    /// Uses no reference counts, on which concurrent scanners of the same rows would contend. The
    /// epoch stays pinned meanwhile, so `visit` must be short.
    pub fn visit_after(
        &self,
        after: Option<&[u8]>,
        limit: usize,
        mut visit: impl FnMut(&Arc<Node>) -> bool,
    ) -> Option<Key> {
        debug_assert!(limit > 0, "a visit of no nodes cannot say whether there are more");
        // The list pins its own nodes; the records behind them need this crate's pin, which a
        // model checker can see.
        let _pin = pin();
        let from = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Unbounded,
        };
        self.nodes.visit(from, Bound::Unbounded, limit, |key, node| {
            debug_assert!(Key::ptr_eq(key, node.key()), "a node is listed under another key");
            visit(node)
        })
    }

    /// Frees versions that no snapshot at or after `oldest` can see, and unlinks the node if it is
    /// then empty and not locked. With `oldest` 0, that is a node without any version.
    pub fn collect(&self, node: &Node, oldest: Timestamp) {
        if node.collect(oldest) {
            self.unlink(node);
        }
    }
}
