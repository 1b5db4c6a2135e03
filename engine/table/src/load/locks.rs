//! Row locks of a load.

use crate::table::version::Table;
use nacre_rowstore::{Node, Owner};
use nacre_types::{Error, Result};
use std::sync::Arc;

/// Row locks on what a load replaces, from the last look at it until it is replaced: a transaction that locked such a
/// row in between would write its change over the load's.
pub(super) struct Held {
    owner: Arc<Owner>,
    nodes: Vec<Arc<Node>>,
}

impl Held {
    pub fn lock(nodes: &[(u32, Arc<Node>)], owner: Arc<Owner>, table: &Table) -> Result<Held> {
        let mut held = Held { owner, nodes: Vec::with_capacity(nodes.len()) };
        for (_, node) in nodes {
            if node.lock(&held.owner).is_err() {
                return Err(held_by_another(table));
            }
            held.nodes.push(node.clone());
        }
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.nodes.iter().for_each(|node| node.unlock());
        self.owner.end();
    }
}

pub(super) fn held_by_another(table: &Table) -> Error {
    Error::conflict(format!(
        "a key of the load is locked by another transaction in table {}",
        table.schema().name
    ))
}
