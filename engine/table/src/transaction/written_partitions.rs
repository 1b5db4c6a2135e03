//! The partitions that a transaction has written to.

use crate::table::version::Table;
use nacre_types::hash::Set;
use std::sync::Arc;

/// The partitions of some writes.
pub(super) struct Partitions(Vec<(Arc<Table>, u32)>);

impl Partitions {
    /// Those of writes, each given by its table and its partition.
    pub fn of<'a>(writes: impl Iterator<Item = (&'a Arc<Table>, u32)>) -> Partitions {
        let mut all: Vec<(Arc<Table>, u32)> = Vec::new();
        let mut known = Set::default();
        for (table, partition) in writes {
            if known.insert((table.id(), partition)) {
                all.push((table.clone(), partition));
            }
        }
        let is_there =
            |(table, number): &(Arc<Table>, u32)| (*number as usize) < table.partitions().len();
        debug_assert!(all.iter().all(is_there), "a partition is written that is not there");
        debug_assert!(all.len() == known.len(), "a partition is counted twice");
        Partitions(all)
    }

    /// Records that locks of their rows were given back without a commit.
    pub fn note_released(&self) {
        self.0.iter().for_each(|(table, number)| table.partition(*number).note_released());
    }

    /// Counts their rowstores after a change.
    pub fn recount(&self) {
        self.0.iter().for_each(|(table, number)| table.recount(table.partition(*number)));
    }
}
