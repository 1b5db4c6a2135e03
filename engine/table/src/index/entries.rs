//! The entries of rows in memory: put in before a row can be seen, taken out when nobody needs them any more.

use crate::index::definition::Index;
use crate::read::probe::KeyRange;
use crate::read::view::{RowLocator, TableView};
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Change, Entry, Node, Row, Visible};
use nacre_types::{Result, Timestamp, limits};
use std::ops::Bound;
use std::sync::Arc;

impl TableView {
    /// Rows in memory that this view sees and whose keys are in a range, in index key order.
    pub(crate) fn probe_memory(
        &self,
        index: &Index,
        range: &KeyRange,
    ) -> Result<Vec<(Vec<u8>, RowLocator, Row)>> {
        let (from, to) = range.encode(index)?;
        let mut found = Vec::new();
        for partition in self.seen_partitions() {
            each_entry(index, partition, &from, to.as_deref(), |entry| {
                let Some(node) = partition.rowstore.get(entry.row_key()) else { return Ok(()) };
                let Visible::Row(row) = self.visible(&node) else { return Ok(()) };
                let row = self.table().upgrade(row)?;
                if index.key_of(self.table(), &row)? == entry.index_key() {
                    let locator = RowLocator::Memory {
                        partition: partition.number(),
                        key: node.key().clone(),
                    };
                    found.push((entry.index_key().to_vec(), locator, row));
                }
                Ok(())
            })?;
        }
        if self.table().partitions().len() > 1 {
            found.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Ok(found)
    }
}

/// Visits the entries of a partition's rows between two keys, in order.
pub(crate) fn each_entry(
    index: &Index,
    partition: &Partition,
    from: &[u8],
    to: Option<&[u8]>,
    mut visit: impl FnMut(&Entry) -> Result<()>,
) -> Result<()> {
    let Some(entries) = index.memory.entries.get(partition.number() as usize) else {
        return Ok(());
    };
    if entries.is_empty() {
        return Ok(());
    }
    let mut run: Vec<Entry> = Vec::new();
    let mut after: Option<Entry> = None;
    // Most keys have few rows: begin with a short run.
    let mut limit = 16;
    loop {
        run.clear();
        let start =
            after.as_ref().map_or(Bound::Included(from), |entry| Bound::Excluded(entry.bytes()));
        entries.range(start, to, limit, &mut run);
        run.iter().try_for_each(&mut visit)?;
        if run.len() < limit {
            return Ok(());
        }
        after = run.pop();
        limit = limits::BLOCK_ROWS;
    }
}

impl Table {
    /// Puts in the entries of a row that is about to be written. Its lock is held by who writes it.
    pub(crate) fn enter(&self, partition: u32, row_key: &[u8], row: &Row) -> Result<()> {
        for index in self.indexes() {
            if let Some(entries) = index.memory.entries.get(partition as usize) {
                entries.insert(&index.key_of(self, row)?, row_key)?;
            }
        }
        Ok(())
    }

    /// Takes out the entries of a row that was taken back, as far as no other version of it needs them. Its lock is
    /// held by who does so.
    pub(crate) fn leave(&self, partition: u32, node: &Node, row: &Row) {
        for index in self.indexes() {
            let Some(entries) = index.memory.entries.get(partition as usize) else { continue };
            let Ok(key) = self.upgrade(row.clone()).and_then(|row| index.key_of(self, &row)) else {
                continue;
            };
            // A row that a newer version of the table wrote cannot be read here: it may need the entry.
            if !node.any_row(|row| index.has_key(self, row, &key).unwrap_or(true)) {
                entries.remove(&key, node.key());
            }
        }
    }

    /// A pending change has been taken back to the one before. The lock is held by who did so.
    pub(crate) fn take_back(
        &self,
        partition: u32,
        node: &Node,
        before: Option<&Change>,
        undone: Option<&Change>,
    ) {
        if let Some(Change::Put(row)) = before {
            // What came between may have gone with an entry that both needed. It was put in once, so it can be again.
            let _ = self.enter(partition, node.key(), row);
        }
        if let Some(Change::Put(row)) = undone {
            self.leave(partition, node, row);
        }
    }

    /// Frees what no snapshot from `oldest` on sees of a row, and the entries that only that needed. Of a row whose
    /// versions a snapshot keeps that is left to the next flush: it would be looked for among ever more of them.
    pub(crate) fn collect_row(&self, partition: &Partition, node: &Arc<Node>, oldest: Timestamp) {
        if node.keeps_older(oldest) {
            return;
        }
        if self.indexes().is_empty() {
            return partition.rowstore.collect(node, oldest);
        }
        let mut old: Vec<Row> = Vec::new();
        node.any_row(|row| {
            old.push(row.clone());
            false
        });
        // Freed first: what is left decides.
        let gone = matches!(
            node.newest().map(|v| v.change),
            None | Some(Change::Delete | Change::Flushed)
        );
        if old.len() > 1 || gone {
            node.free_versions(oldest);
            node.while_free(|| {
                old.iter().for_each(|row| self.leave(partition.number(), node, row))
            });
        }
        partition.rowstore.collect(node, oldest);
    }

    /// Takes out all entries of a partition's rows that nobody needs.
    pub(crate) fn sweep(&self, partition: &Partition) -> Result<()> {
        for index in self.indexes() {
            let Some(entries) = index.memory.entries.get(partition.number() as usize) else {
                continue;
            };
            each_entry(index, partition, &[], None, |entry| {
                let key = entry.index_key();
                // A row that a newer version of the table wrote cannot be read here: it may need the entry.
                let is_needed =
                    |node: &Node| node.any_row(|row| index.has_key(self, row, key).unwrap_or(true));
                // A glance first: most are needed, or all are gone.
                if partition.rowstore.get(entry.row_key()).is_some_and(|node| is_needed(&node)) {
                    return Ok(());
                }
                // The node is made if there is none, so that nobody can lock the row meanwhile.
                let node = partition.rowstore.get_or_insert(entry.row_key());
                node.while_free(|| {
                    if !is_needed(&node) {
                        entries.remove(key, entry.row_key());
                    }
                });
                partition.rowstore.collect(&node, 0);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Puts in the entries of all rows that are in memory: when the database is opened, and when an index is made.
    pub(crate) fn enter_all(&self) -> Result<()> {
        if self.indexes().is_empty() {
            return Ok(());
        }
        for partition in self.partitions() {
            let mut outcome = Ok(());
            partition.each_node(|node| {
                if let Some(Change::Put(row)) = node.newest().map(|v| v.change)
                    && outcome.is_ok()
                {
                    outcome = self
                        .upgrade(row)
                        .and_then(|row| self.enter(partition.number(), node.key(), &row));
                }
            });
            outcome?;
        }
        Ok(())
    }
}
