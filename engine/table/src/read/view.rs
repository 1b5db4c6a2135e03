//! A table as one snapshot sees it: rows in memory, and segments with their deleted rows.

use crate::commit::snapshots::SnapshotGuard;
use crate::index::range::KeyRange;
use crate::layout::rows;
use crate::read::point::Found;
use crate::read::segment_view::{SegmentPlace, SegmentView, SegmentWalk};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::segment_count::SegmentCount;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::{Key, Node, Owner, Row, Visible};
use nacre_types::hash::Map;
use nacre_types::plant::{self, Bug};
use nacre_types::{IndexId, Result, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::ops::Range;
use std::sync::Arc;

/// Rows by segment that a transaction has replaced or deleted, if there are any.
pub(crate) type HiddenBySegment = Option<Arc<Map<u64, Arc<RoaringBitmap>>>>;

/// The location of a row in a view, as updates and deletes need it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

/// A table at a snapshot, with the changes of one transaction on top. Keeps the snapshot alive.
#[derive(Clone)]
pub struct TableView {
    /// The number and segment list of each partition in the view, by number.
    lists: Vec<(u32, Arc<SegmentList>)>,
    /// Partitions whose rowstores are in the view.
    partitions: Range<usize>,
    table: Arc<Table>,
    owner: Arc<Owner>,
    guard: Arc<SnapshotGuard>,
    /// Rows of segments that the transaction had replaced or deleted when the view was made.
    hidden: HiddenBySegment,
}

impl TableView {
    pub(crate) fn new(
        table: &Arc<Table>,
        owner: &Arc<Owner>,
        guard: &Arc<SnapshotGuard>,
        hidden: HiddenBySegment,
        segments_of: impl Fn(&Partition) -> Arc<SegmentList>,
    ) -> TableView {
        let list = |partition: &Partition| (partition.number(), segments_of(partition));
        debug_assert!(
            hidden.as_ref().is_none_or(|hidden| !hidden.is_empty()),
            "a transaction hides rows of no segment"
        );
        TableView {
            lists: table.partitions().iter().map(list).collect(),
            partitions: 0..table.partitions().len(),
            table: table.clone(),
            owner: owner.clone(),
            guard: guard.clone(),
            hidden,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The timestamp of its snapshot.
    pub(crate) fn at(&self) -> Timestamp {
        self.guard.at()
    }

    /// The partitions in the view.
    pub(crate) fn seen_partitions(&self) -> &[Partition] {
        &self.table.partitions()[self.partitions.clone()]
    }

    /// The number and segment list of each partition in the view.
    pub(crate) fn lists(&self) -> &[(u32, Arc<SegmentList>)] {
        &self.lists
    }

    /// How many segments and blocks the view has. Visits runs, not segments.
    pub fn count(&self) -> SegmentCount {
        let mut count = SegmentCount::default();
        self.lists.iter().for_each(|(_, list)| count += list.count_at(self.guard.at()));
        debug_assert!(
            count.segments <= self.lists.iter().map(|(_, list)| list.len()).sum(),
            "a view has {} segments, more than are listed",
            count.segments
        );
        count
    }

    /// All segments, by partition and run, oldest run first.
    pub fn segments(&self) -> impl Iterator<Item = SegmentView> {
        let mut walk = self.walk();
        std::iter::from_fn(move || self.next_segment(&mut walk))
    }

    /// A walk over all segments.
    pub fn walk(&self) -> SegmentWalk {
        let mut walk = SegmentWalk::default();
        self.lists.iter().for_each(|(number, list)| walk.push(*number, 0..list.len()));
        walk
    }

    /// A walk over the segments that may have rows whose [`TableView::order_columns`] are in a range.
    /// They are found by binary search in each run.
    pub fn walk_range(&self, range: &KeyRange) -> Result<SegmentWalk> {
        let mut walk = SegmentWalk::default();
        self.each_in_range(range, &mut |number, places| walk.push(number, places))?;
        Ok(walk)
    }

    /// Like [`TableView::walk_range`], with a walk for each sorted run. Its segments do not overlap in
    /// the order of their rows, and ascend.
    pub fn walks_by_run(&self, range: &KeyRange) -> Result<Vec<SegmentWalk>> {
        let mut walks = Vec::new();
        self.each_in_range(range, &mut |number, places| {
            let mut walk = SegmentWalk::default();
            walk.push(number, places);
            walks.push(walk);
        })?;
        Ok(walks)
    }

    /// Visits the places of the segments of each run that may have rows in a range, if there are any.
    fn each_in_range(
        &self,
        range: &KeyRange,
        visit: &mut dyn FnMut(u32, Range<usize>),
    ) -> Result<()> {
        let layout = self.table.layout();
        let (from, to) = range.encode_with(&|values| layout.encode_order_prefix(values))?;
        if to.as_ref().is_some_and(|to| *to < from) {
            return Ok(());
        }
        debug_assert!(
            self.lists.is_sorted_by(|(a, _), (b, _)| a < b),
            "the partitions of a view are out of order"
        );
        for (number, list) in &self.lists {
            let found = list.in_order_range(&from, to.as_deref());
            found.filter(|places| !places.is_empty()).for_each(|places| visit(*number, places));
        }
        Ok(())
    }

    /// The next segment of a walk that the view sees.
    pub fn next_segment(&self, walk: &mut SegmentWalk) -> Option<SegmentView> {
        self.first_seen(|| walk.next())
    }

    /// The last segment of a walk that the view sees.
    pub fn last_segment(&self, walk: &mut SegmentWalk) -> Option<SegmentView> {
        self.first_seen(|| walk.next_back())
    }

    fn first_seen(&self, mut next: impl FnMut() -> Option<SegmentPlace>) -> Option<SegmentView> {
        loop {
            let place = next()?;
            if self.state(place).exists_at(self.guard.at()) {
                return Some(self.segment(place));
            }
        }
    }

    /// How many segments of a walk, and blocks of them, the view sees. Visits each of them.
    pub fn count_of(&self, walk: &SegmentWalk) -> SegmentCount {
        let (mut walk, mut count) = (walk.clone(), SegmentCount::default());
        while let Some(place) = walk.next() {
            let state = self.state(place);
            if state.exists_at(self.guard.at()) {
                count += SegmentCount { segments: 1, blocks: state.segment.blocks() };
            }
        }
        debug_assert!(
            count.segments <= self.count().segments,
            "a walk over {} segments, more than the view has",
            count.segments
        );
        count
    }

    /// Positions in the table of the columns by which the rows of a segment are ordered, without the
    /// hidden row number.
    pub fn order_columns(&self) -> Vec<usize> {
        let layout = self.table.layout();
        let sort = layout.sort_columns().unwrap_or(&[]);
        let columns = sort.iter().chain(layout.key_columns().unwrap_or(&[]));
        debug_assert!(
            columns.clone().all(|at| *at < layout.schema().columns.len()),
            "table {} is ordered by a column that it does not have",
            layout.schema().name
        );
        columns.copied().collect()
    }

    /// A segment that the view sees.
    pub fn segment(&self, place: SegmentPlace) -> SegmentView {
        let state = self.state(place);
        debug_assert!(state.exists_at(self.guard.at()), "segment {} is not in a view", state.id());
        let deleted = match (state.deleted_at(self.guard.at()), self.hidden_of(state)) {
            (Some(deleted), Some(own)) => Some(Arc::new(&*deleted | &**own)),
            (deleted, own) => deleted.or_else(|| own.cloned()),
        };
        debug_assert!(
            deleted
                .as_ref()
                .and_then(|deleted| deleted.max())
                .is_none_or(|row| { (row as usize) < state.segment.rows() }),
            "a row that segment {} does not have is hidden",
            state.id()
        );
        SegmentView {
            partition: place.partition,
            segment: state.segment.clone(),
            deleted,
            columns: self.table.layout().segment_mapping(&state.segment),
        }
    }

    /// The segment at a place.
    pub(super) fn state(&self, place: SegmentPlace) -> &Arc<SegmentState> {
        let list = self.lists.binary_search_by_key(&place.partition, |(number, _)| *number);
        invariant!(list.is_ok(), "partition {} is not in a view", place.partition);
        let list = &self.lists[list.unwrap_or_default()].1;
        debug_assert!((place.place as usize) < list.len(), "{place:?} of {}", list.len());
        &list[place.place as usize]
    }

    /// Rows of a segment that are deleted, and those that the transaction hides.
    pub(super) fn unseen_rows(&self, place: SegmentPlace) -> [Option<Arc<RoaringBitmap>>; 2] {
        let state = self.state(place);
        debug_assert!(state.exists_at(self.guard.at()), "segment {} is not in a view", state.id());
        [state.deleted_at(self.guard.at()), self.hidden_of(state).cloned()]
    }

    fn hidden_of(&self, state: &SegmentState) -> Option<&Arc<RoaringBitmap>> {
        self.hidden.as_ref()?.get(&state.id())
    }

    /// The segment at a place of a partition's list; `None` if the view does not see it.
    pub(super) fn seen(&self, partition: u32, place: usize) -> Option<SegmentPlace> {
        debug_assert!(place < u32::MAX as usize, "segment {place} of partition {partition}");
        let place = SegmentPlace { partition, place: place as u32 };
        self.state(place).exists_at(self.guard.at()).then_some(place)
    }

    /// Number of rows in segments without a part of an index, which every probe of the index scans.
    /// `conflict` if this version of the table does not have the index.
    pub fn unindexed_rows(&self, index: IndexId) -> Result<u64> {
        let index = self.table.index(index)?;
        let mut rows = 0;
        for (number, list) in &self.lists {
            let places = list.of_index(index).without_range();
            let seen = places.into_iter().filter_map(|place| self.seen(*number, place));
            let without = seen.map(|place| self.state(place));
            let without = without.filter(|state| state.part(index.id()).is_none());
            rows += without.map(|state| state.segment.rows() as u64).sum::<u64>();
        }
        Ok(rows)
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
        self.lists.retain(|(partition, _)| *partition == number);
        debug_assert!(self.lists.len() == 1, "a view of {} partitions", self.lists.len());
        self.partitions = number as usize..number as usize + 1;
    }

    /// For each non-empty rowstore, a view of that rowstore only.
    pub fn memories(&self) -> Vec<TableView> {
        let filled = |number: &usize| {
            self.table.partitions().get(*number).is_some_and(|p| !p.rowstore().is_empty())
        };
        let view = |number| TableView {
            lists: Vec::new(),
            partitions: number..number + 1,
            ..self.clone()
        };
        self.partitions.clone().filter(filled).map(view).collect()
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
