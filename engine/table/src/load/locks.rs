//! Row locks of a load on the rows it replaces, held from the last check until the rows are
//! replaced: a transaction that locked such a row in between would overwrite the load's change.

use crate::load::duplicates::ReplacedNode;
use crate::load::loaded::held_by_another;
use crate::table::version::Table;
use nacre_rowstore::{Node, Owner};
use nacre_types::{Result, invariant};
use std::sync::Arc;

/// Locks released on drop.
pub(super) struct HeldLocks {
    owner: Arc<Owner>,
    nodes: Vec<Arc<Node>>,
}

impl HeldLocks {
    /// Locks all nodes, or fails with `conflict` if another transaction holds one of them.
    pub fn lock(nodes: &[ReplacedNode], owner: Arc<Owner>, table: &Table) -> Result<HeldLocks> {
        let mut held = HeldLocks { owner, nodes: Vec::with_capacity(nodes.len()) };
        for replaced in nodes {
            match replaced.node.lock(&held.owner) {
                Ok(fresh) => invariant!(fresh, "a load replaces a row twice"),
                Err(_) => return Err(held_by_another(table)),
            }
            held.nodes.push(replaced.node.clone());
        }
        debug_assert!(
            held.nodes.iter().all(|node| node.is_locked_by(&held.owner)),
            "a replaced row is not locked"
        );
        Ok(held)
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        debug_assert!(
            self.nodes.iter().all(|node| node.is_locked_by(&self.owner)),
            "a replaced row lost its lock"
        );
        self.nodes.iter().for_each(|node| node.unlock());
        self.owner.end();
    }
}
