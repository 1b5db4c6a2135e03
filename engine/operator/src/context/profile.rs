//! `PROFILE`: for each node of a plan, the rows it produced, the time spent in it and below it, and
//! what it read.
//!
//! A node is identified by its address, since plans stay in place while they run. Threads work on
//! copies of a plan; a registered copy counts for the original node, and the times of all threads
//! add up.

use super::statistics::{Counter, Statistics};
use nacre_sql::plan::Plan;
use nacre_types::hash::Map;
use std::sync::{PoisonError, RwLock};

/// The measurements of one run of a statement.
#[derive(Debug)]
pub struct Profile {
    nodes: Vec<Measured>,
    /// Node numbers by the addresses of nodes and their copies.
    numbers: RwLock<Map<usize, usize>>,
}

/// The measurements of one node.
#[derive(Debug, Default)]
pub struct Measured {
    /// Rows it produced.
    pub rows: Counter,
    /// Nanoseconds spent producing them, summed over all threads.
    pub time_ns: Counter,
    /// Number of times a parent pulled from it; 0 if none did.
    pub calls: Counter,
    /// What the node itself read.
    pub statistics: Statistics,
}

impl Profile {
    /// A profile of these nodes, with nothing measured yet.
    pub fn of<'p>(nodes: impl Iterator<Item = &'p Plan>) -> Profile {
        let mut numbers = Map::default();
        let mut measured = Vec::new();
        for plan in nodes {
            numbers.insert(address(plan), measured.len());
            measured.push(Measured::default());
        }
        Profile { nodes: measured, numbers: RwLock::new(numbers) }
    }

    /// All nodes, in the order in which [`Profile::of`] received them.
    pub fn nodes(&self) -> &[Measured] {
        &self.nodes
    }

    /// The node with this number.
    pub fn node(&self, number: usize) -> Option<&Measured> {
        self.nodes.get(number)
    }

    /// The number of a node or of a copy of it; `None` for a plan that is not measured.
    pub fn number(&self, plan: &Plan) -> Option<usize> {
        self.numbers.read().unwrap_or_else(PoisonError::into_inner).get(&address(plan)).copied()
    }

    /// Registers a copy of a plan, so that its nodes count for those of the original.
    pub fn register_copy(&self, plan: &Plan, copy: &Plan) {
        // Shared inputs are not copied, and as a tree they may be far larger than as a graph.
        if std::ptr::eq(plan, copy) {
            return;
        }
        if let Some(number) = self.number(plan) {
            self.numbers
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(address(copy), number);
        }
        let (mut inputs, mut copies) = (Vec::new(), Vec::new());
        plan.for_each_input(&mut |input| inputs.push(input));
        copy.for_each_input(&mut |input| copies.push(input));
        debug_assert_eq!(inputs.len(), copies.len(), "a copy of a node has the node's inputs");
        inputs.iter().zip(copies).for_each(|(input, copy)| self.register_copy(input, copy));
    }
}

/// A plan's identity while it stays in place.
fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}
