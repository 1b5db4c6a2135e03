//! The rows of a table that differ between two views of it, found without reading the rest.
//!
//! A commit leaves a trace wherever it changes a row: a version of a node in memory, a bit in a
//! segment's bitmap of deleted rows, or a segment of a load. Flushes and merges leave traces too. So
//! the traces since the older view name the keys that may have changed, and the rows that both
//! views have under a key decide. The older view keeps the traces: nothing that it needs is
//! collected while it lives.

use crate::layout::table_layout::TableLayout;
use crate::read::view::TableView;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use nacre_rowstore::Row;
use nacre_segment::Segment;
use nacre_types::{Error, Result, Timestamp, Value, limits};
use std::sync::Arc;

/// Nodes of a rowstore visited at a time.
const NODES: usize = 1_024;

/// A key, after its encoding.
type Encoded = (Vec<u8>, Vec<Value>);

impl TableView {
    /// Keys of all rows that differ from those of an older view of the same table, which has a
    /// primary key, and keys of some rows that do not.
    ///
    /// # Errors
    /// `conflict` if the table was truncated or its columns were changed; `limit` if there are more
    /// than [`limits::MAX_CHANGED_KEYS`]; those of reading segments.
    pub fn keys_changed_since(&self, older: &TableView) -> Result<Vec<Vec<Value>>> {
        debug_assert!(older.at() <= self.at(), "a view of {} is older", self.at());
        self.check_comparable(older)?;
        let mut found = Found { layout: self.table().layout(), keys: Vec::new() };
        self.seen_partitions().iter().try_for_each(|each| found.add_nodes(each, older.at()))?;
        // Also of segments that came since, and may be gone: a row can be flushed and then deleted.
        let since = self.listed().filter(|state| state.created() > older.at());
        for state in older.states().chain(since) {
            found.add_deleted(state, older)?;
        }
        for state in self.states().filter(|state| state.content() > older.at()) {
            found.add_all(state, self)?;
        }
        // Sorted rather than put into a tree, whose code is larger.
        found.keys.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        found.keys.dedup_by(|(a, _), (b, _)| a == b);
        Ok(found.keys.into_iter().map(|(_, key)| key).collect())
    }

    fn check_comparable(&self, older: &TableView) -> Result<()> {
        let (old, new) = (older.table(), self.table());
        let mut pairs = old.partitions().iter().zip(new.partitions());
        let is_same = |(a, b): (&Partition, &Partition)| std::ptr::eq(a.rowstore(), b.rowstore());
        match old.schema().columns == new.schema().columns && pairs.all(is_same) {
            true => Ok(()),
            false => Err(Error::conflict(format!(
                "table {} was truncated, or its columns were changed: read it again",
                new.schema().name
            ))),
        }
    }

    /// All segments that some snapshot sees, as of this view.
    fn listed(&self) -> impl Iterator<Item = &Arc<SegmentState>> {
        self.lists().iter().flat_map(|(_, list)| (0..list.len()).map(|at| &list[at]))
    }

    /// The segments that the view sees.
    fn states(&self) -> impl Iterator<Item = &Arc<SegmentState>> {
        self.listed().filter(|state| state.exists_at(self.at()))
    }
}

struct Found<'a> {
    layout: &'a TableLayout,
    keys: Vec<Encoded>,
}

impl Found<'_> {
    /// Adds the keys of rows in memory that commits after a timestamp have changed.
    fn add_nodes(&mut self, partition: &Partition, since: Timestamp) -> Result<()> {
        let (mut after, mut nodes) = (None, Vec::new());
        loop {
            partition.rowstore().range_after(after.as_deref(), NODES, &mut nodes);
            let Some(last) = nodes.last() else { return Ok(()) };
            after = Some(last.key().clone());
            for node in nodes.drain(..) {
                let mut row = None;
                if node.newest().is_some_and(|newest| newest.content > since) {
                    node.any_row(|any| row.replace(any.clone()).is_none());
                }
                // Without one, the row was in a segment, where its deletion has left a bit.
                row.map_or(Ok(()), |row| self.add_row(row))?;
            }
        }
    }

    /// Adds the key of a row in memory.
    fn add_row(&mut self, row: Row) -> Result<()> {
        let row = self.layout.upgrade(row)?;
        let columns = self.layout.key_columns().unwrap_or_default();
        self.add(columns.iter().map(|at| self.layout.rows().value(&row, *at)).collect())
    }

    /// Adds the keys of rows that were deleted or moved to memory since.
    fn add_deleted(&mut self, state: &SegmentState, since: &TableView) -> Result<()> {
        let (all, before) = (state.all_deleted(), state.deleted_at(since.at()));
        for row in all.iter().filter(|row| before.as_ref().is_none_or(|seen| !seen.contains(*row)))
        {
            self.add_segment_row(&state.segment, row)?;
        }
        Ok(())
    }

    /// Adds the keys of all rows that a view sees in a segment.
    fn add_all(&mut self, state: &SegmentState, view: &TableView) -> Result<()> {
        let deleted = state.deleted_at(view.at());
        for row in 0..state.segment.rows() as u32 {
            if deleted.as_ref().is_none_or(|deleted| !deleted.contains(row)) {
                self.add_segment_row(&state.segment, row)?;
            }
        }
        Ok(())
    }

    fn add_segment_row(&mut self, segment: &Segment, row: u32) -> Result<()> {
        self.add(self.layout.key_of_segment_row(segment, row)?)
    }

    fn add(&mut self, key: Vec<Value>) -> Result<()> {
        self.keys.push((self.layout.encode_key(&key)?, key));
        match self.keys.len() > limits::MAX_CHANGED_KEYS {
            true => Err(Error::limit(format!(
                "more than {} rows have changed: read the table again",
                limits::MAX_CHANGED_KEYS
            ))),
            false => Ok(()),
        }
    }
}
