//! A table as one snapshot sees it: rows in memory, and segments with their deleted rows.

use crate::commit::snapshots::SnapshotGuard;
use crate::layout::rows;
use crate::read::point::Found;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Key, Node, Owner, Row, Visible};
use nacre_segment::Segment;
use nacre_types::plant::{self, Bug};
use nacre_types::{IndexId, Result};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// The location of a row in a view, as updates and deletes need it.
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

impl RowLocator {
    /// The location of a row found in a partition.
    pub(crate) fn of(partition: &Partition, found: &Found) -> RowLocator {
        let partition = partition.number();
        match found {
            Found::Memory(node, _) => RowLocator::Memory { partition, key: node.key().clone() },
            Found::Segment(state, row) => {
                RowLocator::Segment { partition, segment: state.id(), row: *row }
            }
        }
    }
}

/// A segment as a view sees it.
#[derive(Clone)]
pub struct SegmentView {
    /// Number of the partition it belongs to.
    pub partition: u32,
    /// The file.
    pub segment: Arc<Segment>,
    /// Rows deleted in this view; `None` if none are.
    pub deleted: Option<Arc<RoaringBitmap>>,
    /// Maps table column positions to segment column positions; `None` for a column younger than
    /// the segment, whose rows have the column's default.
    pub columns: Vec<Option<usize>>,
    state: Arc<SegmentState>,
    /// Index in the partition's segment list.
    place: usize,
}

impl SegmentView {
    /// The segment's metadata.
    pub(crate) fn state(&self) -> &Arc<SegmentState> {
        &self.state
    }
}

/// A table at a snapshot, with the changes of one transaction on top. Keeps the snapshot alive.
pub struct TableView {
    /// Segments by partition, oldest first.
    pub segments: Vec<SegmentView>,
    /// The segment list of each partition in the view.
    lists: Vec<(u32, Arc<SegmentList>)>,
    /// Partitions whose rowstores are in the view.
    partitions: Range<usize>,
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
}

impl TableView {
    pub(crate) fn new<'h>(
        table: &Arc<Table>,
        owner: &Arc<Owner>,
        guard: &Arc<SnapshotGuard>,
        hidden: impl Fn(u64) -> Option<&'h RoaringBitmap>,
    ) -> TableView {
        let at = guard.at();
        let view_of = |partition: u32, place: usize, state: &Arc<SegmentState>| {
            let mut deleted = state.deleted_at(at);
            if let Some(own) = hidden(state.id()) {
                let mut merged = own.clone();
                if let Some(deleted) = &deleted {
                    merged |= &**deleted;
                }
                deleted = Some(Arc::new(merged));
            }
            debug_assert!(
                deleted
                    .as_ref()
                    .and_then(|deleted| deleted.max())
                    .is_none_or(|row| { (row as usize) < state.segment.rows() }),
                "a row that segment {} does not have is hidden",
                state.id()
            );
            let columns = table.layout().segment_mapping(&state.segment);
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
        debug_assert!(
            segments.is_sorted_by_key(|view: &SegmentView| (view.partition, view.place)),
            "the segments of a view are out of order"
        );
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

    /// The partitions in the view.
    pub(crate) fn seen_partitions(&self) -> &[Partition] {
        &self.table.partitions()[self.partitions.clone()]
    }

    /// The number and segment list of each partition in the view.
    pub(crate) fn lists(&self) -> &[(u32, Arc<SegmentList>)] {
        &self.lists
    }

    /// The index in `segments` of a segment, given its place in a partition's list; `None` if it is
    /// not in the view.
    pub(crate) fn position_of(&self, partition: u32, place: usize) -> Option<usize> {
        debug_assert!(
            self.lists.iter().any(|(number, list)| *number == partition && place < list.len()),
            "segment {place} of partition {partition} is not listed"
        );
        self.segments
            .binary_search_by_key(&(partition, place), |view| (view.partition, view.place))
            .ok()
    }

    /// Number of rows in segments without a part of an index, which every probe of the index scans.
    pub fn unindexed_rows(&self, index: IndexId) -> u64 {
        let unindexed = self.segments.iter().filter(|view| view.state.part(index).is_none());
        unindexed.map(|view| view.segment.rows() as u64).sum()
    }

    /// The version of a row in memory that the view sees.
    pub(crate) fn visible(&self, node: &Node) -> Visible {
        node.visible(self.guard.at(), Some(&self.owner))
    }

    /// Restricts the view to one partition.
    pub fn only_partition(&mut self, number: u32) {
        debug_assert!(
            (number as usize) < self.table.partitions().len(),
            "partition {number} of {}",
            self.table.partitions().len()
        );
        self.segments.retain(|s| s.partition == number);
        self.lists.retain(|(partition, _)| *partition == number);
        debug_assert!(self.lists.len() == 1, "a view of {} partitions", self.lists.len());
        self.partitions = number as usize..number as usize + 1;
    }

    /// A second, identical view.
    pub fn share(&self) -> TableView {
        let (segments, lists) = (self.segments.clone(), self.lists.clone());
        TableView { segments, lists, partitions: self.partitions.clone(), ..self.empty() }
    }

    /// For each non-empty rowstore, a view of that rowstore only.
    pub fn memories(&self) -> Vec<TableView> {
        let filled = |number: &usize| {
            self.table.partitions().get(*number).is_some_and(|p| !p.rowstore().is_empty())
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

    /// Scans the rowstores, each in key order, optionally with the rows' locators.
    pub fn memory(&self, projection: &[usize], locators: bool) -> MemoryScan {
        debug_assert!(
            projection.iter().all(|at| *at < self.table.schema().columns.len()),
            "columns {projection:?} of table {}",
            self.table.schema().name
        );
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

/// Approximate limit on a run of rows in memory, in bytes.
pub(crate) const RUN_BYTES: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };

/// A scan of rowstores, returning rows in runs.
pub struct MemoryScan {
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
    projection: Vec<usize>,
    locators: bool,
    /// The partition being scanned and those after it.
    partitions: Range<usize>,
    after: Option<Key>,
}

impl MemoryScan {
    /// The next rows, at most `max_rows` and about [`RUN_BYTES`]; `None` at the end. A run is never
    /// empty.
    pub fn next(&mut self, max_rows: usize) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        debug_assert!(max_rows > 0, "a run of no rows");
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
            let last = partition.rowstore().visit_after(
                self.after.as_deref(),
                max_rows - found.len(),
                |node| {
                    if let Visible::Row(row) = node.visible(at, Some(&self.owner)) {
                        match self.table.layout().upgrade(row) {
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
            debug_assert!(
                last.is_none() || last.as_deref() > self.after.as_deref(),
                "a scan of partition {} goes back",
                partition.number()
            );
            if last.is_none() {
                self.partitions.start += 1;
            }
            self.after = last;
        }
        debug_assert!(
            found.len() <= max_rows && (!self.locators || locators.len() == found.len()),
            "{} rows of at most {max_rows}, and {} locators",
            found.len(),
            locators.len()
        );
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some((rows::to_batch(self.table.layout().rows(), &found, &self.projection)?, locators)))
    }
}
