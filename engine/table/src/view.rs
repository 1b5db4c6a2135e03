//! What one snapshot sees of a table: rowstore rows and segments with their deleted rows.

use crate::rows;
use crate::segments::SegmentState;
use crate::store::SnapshotGuard;
use crate::table::Table;
use nacre_column::Batch;
use nacre_rowstore::{Key, Node, Owner, Row, Visible};
use nacre_segment::Segment;
use nacre_types::Result;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Where a row was seen by a view; what updates and deletes are told to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocator {
    /// In the rowstore, under this encoded key.
    Memory(Key),
    /// A row of a segment.
    Segment {
        /// Segment id.
        segment: u64,
        /// Row number inside it.
        row: u32,
    },
}

/// A segment as a view sees it.
#[derive(Clone)]
pub struct SegmentView {
    /// The file.
    pub segment: Arc<Segment>,
    /// Rows that do not exist for this view; `None` when all do.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Table column position to segment column position; `None` for a column younger than the segment,
    /// whose rows have the column's default.
    pub columns: Vec<Option<usize>>,
}

/// A table at a snapshot, with the changes of one transaction on top. Keeps the snapshot alive.
pub struct TableView {
    /// Segments, oldest first.
    pub segments: Vec<SegmentView>,
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
}

impl TableView {
    pub(crate) fn new(
        table: &Arc<Table>,
        owner: &Arc<Owner>,
        guard: &Arc<SnapshotGuard>,
        hidden: impl Fn(u64) -> Option<RoaringBitmap>,
    ) -> TableView {
        let at = guard.at();
        let segments = table
            .segments()
            .iter()
            .filter(|s| s.exists_at(at))
            .map(|state: &Arc<SegmentState>| {
                let mut deleted = state.deleted_at(at);
                if let Some(own) = hidden(state.segment.id()) {
                    let mut merged = deleted.map_or_else(RoaringBitmap::new, |d| (*d).clone());
                    merged |= own;
                    deleted = Some(Arc::new(merged));
                }
                SegmentView { segment: state.segment.clone(), deleted, columns: table.segment_mapping(state) }
            })
            .collect();
        TableView { segments, table: table.clone(), owner: owner.clone(), guard: guard.clone() }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Scans the rowstore in key order. Locators are filled in when asked for.
    pub fn memory(&self, projection: &[usize], locators: bool) -> MemoryScan {
        MemoryScan {
            table: self.table.clone(),
            owner: self.owner.clone(),
            guard: self.guard.clone(),
            projection: projection.to_vec(),
            locators,
            after: None,
            done: false,
        }
    }
}

/// A scan of the rowstore in runs of rows.
pub struct MemoryScan {
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
    projection: Vec<usize>,
    locators: bool,
    after: Option<Key>,
    done: bool,
}

impl MemoryScan {
    /// The next rows, at most `max_rows`; `None` at the end. A run may be shorter, but is never empty.
    pub fn next(&mut self, max_rows: usize) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        let mut found: Vec<Row> = Vec::new();
        let mut locators = Vec::new();
        while !self.done && found.len() < max_rows {
            nodes.clear();
            let wanted = max_rows - found.len();
            self.table.rowstore.range_after(self.after.as_deref(), wanted, &mut nodes);
            self.done = nodes.len() < wanted;
            for node in &nodes {
                if let Visible::Row(row) = node.visible(self.guard.at(), Some(&self.owner)) {
                    found.push(row);
                    if self.locators {
                        locators.push(RowLocator::Memory(node.key().clone()));
                    }
                }
            }
            if let Some(last) = nodes.last() {
                self.after = Some(last.key().clone());
            }
        }
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some((rows::to_batch(self.table.layout(), &found, &self.projection), locators)))
    }
}
