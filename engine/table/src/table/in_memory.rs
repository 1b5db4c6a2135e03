//! What a version of a table does with the rows of its partitions in memory as a whole: counting them,
//! and adding them to indexes.

use crate::table::agenda::{Agenda, Work};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Node, Row};
use nacre_types::Result;
use std::sync::Arc;

impl Table {
    /// Notes the work of its partitions on the agenda of a store from now on.
    pub(crate) fn enlist(&self, agenda: &Arc<Agenda>) {
        debug_assert!(!self.partitions().is_empty(), "a table without partitions is enlisted");
        for partition in self.partitions() {
            partition.enlist(agenda, self.place(partition), || self.entry_bytes(partition));
        }
    }

    /// Notes which of its partitions have rows, from when it is in the catalog.
    pub(crate) fn take_places(&self) {
        self.partitions().iter().for_each(Partition::take_place);
    }

    /// Counts the rowstores of its partitions no more.
    pub(crate) fn leave_agenda(&self) {
        debug_assert!(!self.partitions().is_empty(), "a table without partitions leaves");
        self.partitions().iter().for_each(Partition::leave_agenda);
    }

    /// Counts the rowstore of a partition after a change.
    pub(crate) fn recount(&self, partition: &Partition) {
        partition.recount(|| self.entry_bytes(partition));
    }

    /// Counts the rowstores of all its partitions.
    pub(crate) fn recount_all(&self) {
        self.partitions().iter().for_each(|partition| self.recount(partition));
    }

    /// Adds the index entries of all rows in memory, when the database is opened or an index is
    /// created.
    pub(crate) fn enter_all(&self) -> Result<()> {
        self.enter_rows(&|node| node.newest().and_then(|version| version.change.into_row()))
    }

    /// Adds the index entries of rows in memory.
    pub(crate) fn enter_rows(&self, row: &dyn Fn(&Node) -> Option<Row>) -> Result<()> {
        if self.indexes().is_empty() {
            return Ok(());
        }
        self.partitions().iter().try_for_each(|partition| {
            partition.try_each_node(|node| match row(node) {
                Some(row) => {
                    self.enter(partition.number(), node.key(), &self.layout().upgrade(row)?)
                }
                None => Ok(()),
            })
        })
    }

    /// Tells the scheduler to look for a kind of work in every partition.
    pub(crate) fn consider(&self, work: Work) {
        self.partitions().iter().for_each(|partition| partition.consider(work));
    }
}
