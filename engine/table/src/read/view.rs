//! What one snapshot sees of a table: rowstore rows and segments with their deleted rows.

use crate::layout::rows;
use crate::segments::state::SegmentState;
use crate::store::SnapshotGuard;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Key, Node, Owner, Row, Visible};
use nacre_segment::Segment;
use nacre_types::Result;
use nacre_types::plant::{self, Bug};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// Where a row was seen by a view; what updates and deletes are told to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowLocator {
    /// In the rowstore of a partition.
    Memory {
        /// Number of the partition.
        partition: u32,
        /// The encoded key.
        key: Key,
    },
    /// A row of a segment.
    Segment {
        /// Number of the partition.
        partition: u32,
        /// Segment id.
        segment: u64,
        /// Row number inside it.
        row: u32,
    },
}

/// A segment as a view sees it.
#[derive(Clone)]
pub struct SegmentView {
    /// Number of the partition it belongs to.
    pub partition: u32,
    /// The file.
    pub segment: Arc<Segment>,
    /// Rows that do not exist for this view; `None` when all do.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Table column position to segment column position; `None` for a column younger than the segment,
    /// whose rows have the column's default.
    pub columns: Vec<Option<usize>>,
    pub(crate) state: Arc<SegmentState>,
    /// In its partition's list.
    pub(crate) place: usize,
}

/// A table at a snapshot, with the changes of one transaction on top. Keeps the snapshot alive.
pub struct TableView {
    /// Segments by partition, oldest first.
    pub segments: Vec<SegmentView>,
    /// Of each partition that is seen, the list that they are from.
    pub(crate) lists: Vec<(u32, Arc<SegmentList>)>,
    /// Partitions whose rowstores are seen.
    partitions: Range<usize>,
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
        let view_of = |partition: u32, place: usize, state: &Arc<SegmentState>| {
            let mut deleted = state.deleted_at(at);
            if let Some(own) = hidden(state.segment.id()) {
                let mut merged = deleted.map_or_else(RoaringBitmap::new, |d| (*d).clone());
                merged |= own;
                deleted = Some(Arc::new(merged));
            }
            let columns = table.segment_mapping(state);
            SegmentView {
                partition,
                segment: state.segment.clone(),
                deleted,
                columns,
                state: state.clone(),
                place,
            }
        };
        let (mut segments, mut lists) = (Vec::new(), Vec::new());
        for partition in table.partitions() {
            let list = partition.segments();
            let number = partition.number();
            let seen = list.iter().enumerate().filter(|(_, state)| state.exists_at(at));
            segments.extend(seen.map(|(place, state)| view_of(number, place, state)));
            lists.push((number, list));
        }
        let partitions = 0..table.partitions().len();
        TableView {
            segments,
            lists,
            partitions,
            table: table.clone(),
            owner: owner.clone(),
            guard: guard.clone(),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The partitions it shows.
    pub(crate) fn seen_partitions(&self) -> &[Partition] {
        self.table.partitions().get(self.partitions.clone()).unwrap_or_default()
    }

    /// What it shows of a row in memory.
    pub(crate) fn visible(&self, node: &Node) -> Visible {
        node.visible(self.guard.at(), Some(&self.owner))
    }

    /// Leaves only one partition to be seen.
    pub fn only_partition(&mut self, number: u32) {
        self.segments.retain(|s| s.partition == number);
        self.lists.retain(|(partition, _)| *partition == number);
        self.partitions = number as usize..number as usize + 1;
    }

    /// The same view again.
    pub fn share(&self) -> TableView {
        let (segments, lists) = (self.segments.clone(), self.lists.clone());
        TableView { segments, lists, partitions: self.partitions.clone(), ..self.empty() }
    }

    /// For each rowstore that has rows a view of nothing else.
    pub fn memories(&self) -> Vec<TableView> {
        let filled = |number: &usize| {
            self.table.partitions().get(*number).is_some_and(|p| !p.rowstore.is_empty())
        };
        let view = |number| TableView { partitions: number..number + 1, ..self.empty() };
        self.partitions.clone().filter(filled).map(view).collect()
    }

    fn empty(&self) -> TableView {
        TableView {
            segments: Vec::new(),
            lists: Vec::new(),
            partitions: 0..0,
            table: self.table.clone(),
            owner: self.owner.clone(),
            guard: self.guard.clone(),
        }
    }

    /// Scans the rowstores, each in key order. Locators are filled in when asked for.
    pub fn memory(&self, projection: &[usize], locators: bool) -> MemoryScan {
        MemoryScan {
            table: self.table.clone(),
            owner: self.owner.clone(),
            guard: self.guard.clone(),
            projection: projection.to_vec(),
            locators,
            partitions: self.partitions.clone(),
            after: None,
        }
    }
}

/// A run of rows in memory ends after so many bytes.
pub(crate) const RUN_BYTES: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };

/// A scan of rowstores in runs of rows.
pub struct MemoryScan {
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
    projection: Vec<usize>,
    locators: bool,
    /// The one being scanned and those after it.
    partitions: Range<usize>,
    after: Option<Key>,
}

impl MemoryScan {
    /// The next rows, at most `max_rows` and about [`RUN_BYTES`]; `None` at the end. A run may be shorter, but is never
    /// empty.
    pub fn next(&mut self, max_rows: usize) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let mut found: Vec<Row> = Vec::new();
        let mut locators = Vec::new();
        let at = self.guard.at() + u64::from(plant::is(Bug::DirtyRead));
        let mut bytes = 0;
        while found.len() < max_rows
            && bytes < RUN_BYTES
            && let Some(partition) =
                self.table.partitions().get(self.partitions.clone()).and_then(<[_]>::first)
        {
            let mut failed = None;
            let last = partition.rowstore.visit_after(
                self.after.as_deref(),
                max_rows - found.len(),
                |node| {
                    if let Visible::Row(row) = node.visible(at, Some(&self.owner)) {
                        match self.table.upgrade(row) {
                            Ok(row) => {
                                bytes += row.len();
                                found.push(row);
                            }
                            Err(error) => failed = Some(error),
                        }
                        if self.locators {
                            locators.push(RowLocator::Memory {
                                partition: partition.number(),
                                key: node.key().clone(),
                            });
                        }
                    }
                    bytes < RUN_BYTES
                },
            );
            failed.map_or(Ok(()), Err)?;
            if last.is_none() {
                self.partitions.start += 1;
            }
            self.after = last;
        }
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some((rows::to_batch(self.table.layout(), &found, &self.projection)?, locators)))
    }
}
