//! All indexes of one version of a table, and their entries for rows in memory: added before a row
//! becomes visible, removed once no reader needs them.

use crate::index::definition::Index;
use crate::layout::table_layout::TableLayout;
use nacre_rowstore::{Change, Entries, Entry, Node, Row, Rowstore};
use nacre_types::{IndexId, Result, TableSchema, Timestamp};
use std::ops::Bound;
use std::sync::Arc;

/// The indexes of one version of a table.
pub(crate) struct Indexes(Vec<Index>);

impl Indexes {
    /// Creates the indexes of a table with this many partitions. `old` are those of a version that
    /// shares the partitions.
    pub fn new(schema: &TableSchema, partitions: usize, old: Option<&Indexes>) -> Indexes {
        let all = Index::all(schema, partitions, old.map_or(&[], |old| &old.0));
        debug_assert!(
            (1..all.len()).all(|at| !all[..at].iter().any(|index| index.id() == all[at].id())),
            "two indexes of table {} have the same id",
            schema.name
        );
        Indexes(all)
    }

    /// All of them.
    pub fn all(&self) -> &[Index] {
        &self.0
    }

    /// The index with an id.
    pub fn get(&self, id: IndexId) -> Option<&Index> {
        self.0.iter().find(|index| index.id() == id)
    }

    /// Bytes of the entries for a partition's rowstore.
    pub fn entry_bytes(&self, partition: u32) -> usize {
        self.0.iter().map(|index| index.entries(partition)).map(Entries::bytes).sum()
    }

    /// Bytes of the unique values that open transactions have claimed.
    pub fn claim_bytes(&self) -> usize {
        self.0.iter().map(|index| index.claims().bytes()).sum()
    }

    /// Adds the entries of a row about to be written. The caller holds the row's lock.
    pub fn enter(
        &self,
        layout: &TableLayout,
        partition: u32,
        row_key: &[u8],
        row: &Row,
    ) -> Result<()> {
        for index in &self.0 {
            let key = index.key_of(layout, row)?;
            index.entries(partition).insert(&key, row_key)?;
            debug_assert!(
                has_entry(index, partition, &key, row_key),
                "an entry of index {} is missing after it was put in",
                index.name()
            );
        }
        Ok(())
    }

    /// Removes the entries of a row whose write was undone, unless another version of the row needs
    /// them. The caller holds the row's lock.
    pub fn leave(&self, layout: &TableLayout, partition: u32, node: &Node, row: &Row) {
        for index in &self.0 {
            let key = layout.upgrade(row.clone()).and_then(|row| index.key_of(layout, &row));
            let Ok(key) = key else { continue };
            if !is_needed(index, layout, node, &key) {
                index.entries(partition).remove(&key, node.key());
                debug_assert!(
                    !has_entry(index, partition, &key, node.key()),
                    "an entry of index {} is there after it was taken out",
                    index.name()
                );
            }
        }
    }

    /// Restores the entries after a pending change was undone to the one before it. The caller
    /// holds the row's lock.
    pub fn take_back(
        &self,
        layout: &TableLayout,
        partition: u32,
        node: &Node,
        before: Option<&Change>,
        undone: Option<&Change>,
    ) {
        debug_assert!(node.is_locked(), "a change is undone without the lock of its row");
        if let Some(Change::Put(row)) = before {
            // Undoing a later change may have removed an entry that both changes needed. Adding it
            // cannot fail, since it was added before. The transaction may have altered the table
            // between the two.
            let row = layout.upgrade(row.clone());
            let entered = row.and_then(|row| self.enter(layout, partition, node.key(), &row));
            debug_assert!(entered.is_ok(), "an entry cannot be put back: {entered:?}");
        }
        if let Some(Change::Put(row)) = undone {
            self.leave(layout, partition, node, row);
        }
    }

    /// Frees row versions that no snapshot from `oldest` on sees, and entries that only they
    /// needed. If a snapshot still needs an old version, the entries are left to the next flush, so
    /// that a row with many versions is not searched repeatedly.
    pub fn collect_row(
        &self,
        layout: &TableLayout,
        partition: u32,
        rowstore: &Rowstore,
        node: &Arc<Node>,
        oldest: Timestamp,
    ) {
        if node.keeps_older(oldest) {
            return;
        }
        if self.0.is_empty() {
            return rowstore.collect(node, oldest);
        }
        let mut old: Vec<Row> = Vec::new();
        node.any_row(|row| {
            old.push(row.clone());
            false
        });
        // Free versions first: the remaining ones decide which entries are needed.
        let gone = matches!(
            node.newest().map(|v| v.change),
            None | Some(Change::Delete | Change::Flushed)
        );
        if old.len() > 1 || gone {
            node.free_versions(oldest);
            node.while_free(|| old.iter().for_each(|row| self.leave(layout, partition, node, row)));
        }
        rowstore.collect(node, oldest);
    }

    /// Removes entries of a partition's rows that no reader needs, among the next `limit` ones.
    /// Returns whether there may be more.
    pub fn sweep(
        &self,
        layout: &TableLayout,
        partition: u32,
        rowstore: &Rowstore,
        sweep: &mut Sweep,
        limit: usize,
    ) -> bool {
        let Some(index) = self.0.get(sweep.index) else { return false };
        let from = match &sweep.after {
            Some(entry) => Bound::Excluded(entry.bytes()),
            None => Bound::Included(&[][..]),
        };
        let mut run: Vec<Entry> = Vec::new();
        index.entries(partition).range(from, None, limit, &mut run);
        for entry in &run {
            sweep_entry(index, layout, partition, rowstore, entry);
        }
        *sweep = match run.len() < limit {
            true => Sweep { index: sweep.index + 1, after: None },
            false => Sweep { index: sweep.index, after: run.pop() },
        };
        sweep.index < self.0.len()
    }
}

/// How far the entries of a partition were swept.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Position of the index being swept.
    index: usize,
    /// The last entry of it that was visited.
    after: Option<Entry>,
}

/// Removes an entry unless a reader needs it.
fn sweep_entry(
    index: &Index,
    layout: &TableLayout,
    partition: u32,
    rowstore: &Rowstore,
    entry: &Entry,
) {
    let key = entry.index_key();
    let needed = |node: &Node| is_needed(index, layout, node, key);
    // Check without the lock first: most entries are needed.
    if rowstore.get(entry.row_key()).is_some_and(|node| needed(&node)) {
        return;
    }
    // Create the node if it is missing, so that no writer can lock the row meanwhile.
    let node = rowstore.get_or_insert(entry.row_key());
    node.while_free(|| {
        if !needed(&node) {
            index.entries(partition).remove(key, entry.row_key());
            debug_assert!(
                !has_entry(index, partition, key, entry.row_key()),
                "an entry of index {} is there after it was swept",
                index.name()
            );
        }
    });
    rowstore.collect(&node, 0);
}

/// Whether a row in memory has an entry.
fn has_entry(index: &Index, partition: u32, key: &[u8], row_key: &[u8]) -> bool {
    let (place, mut found) = ([key, row_key].concat(), Vec::new());
    index.entries(partition).range(Bound::Included(&place), None, 1, &mut found);
    found.first().is_some_and(|entry| entry.bytes() == place)
}

/// Whether some version of a row has an index key. A row written by a newer version of the table
/// cannot be read here and counts as having the key.
fn is_needed(index: &Index, layout: &TableLayout, node: &Node, key: &[u8]) -> bool {
    node.any_row(|row| index.is_key_of(layout, row, key).unwrap_or(true))
}
