//! A partition of a table: a rowstore and the segments that are made from it.
//!
//! Every row of a table is in exactly one of its partitions. Partitions know nothing of each other, so
//! that threads which write to different ones meet in the log only. Schema, keys and what a commit changed
//! are the table's affair.

use crate::index::hash::table::HashTable;
use crate::segments::state::SegmentState;
use crate::segments::sync::RwLock;
use crate::table::segment_list::SegmentList;
use nacre_rowstore::{Key, Node, Rowstore};
use nacre_types::{Result, Timestamp, limits};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// One partition of a table.
pub struct Partition {
    number: u32,
    pub(crate) rowstore: Rowstore,
    segments: RwLock<Arc<SegmentList>>,
    /// Hidden row numbers of a partition are its own modulo the number of partitions, so that a number says
    /// where its row is. This counts them.
    next_row_number: AtomicU64,
    partitions: u64,
    /// What the last flush had to leave in the rowstore, because of locks or old snapshots.
    left_by_flush: AtomicUsize,
    /// The oldest snapshot when the rowstore was last collected.
    collected_at: AtomicU64,
    /// The segments changed since somebody last looked whether to merge them.
    may_merge: AtomicBool,
    /// There may be segments without a part of some index.
    may_index: AtomicBool,
    /// There may be hash tables to be made.
    may_hash: AtomicBool,
}

impl Partition {
    pub(crate) fn new(number: u32, partitions: u32) -> Partition {
        Partition {
            number,
            rowstore: Rowstore::new(),
            segments: RwLock::new(Arc::default()),
            next_row_number: AtomicU64::new(1),
            partitions: partitions as u64,
            left_by_flush: AtomicUsize::new(0),
            collected_at: AtomicU64::new(0),
            may_merge: AtomicBool::new(true),
            may_index: AtomicBool::new(true),
            may_hash: AtomicBool::new(true),
        }
    }

    /// Its place among the table's partitions, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Number of rows, about: deleted versions in memory are counted.
    pub fn row_count_estimate(&self) -> u64 {
        let segments: u64 = self
            .segments()
            .iter()
            .filter(|s| s.is_current())
            .map(|s| (s.segment.rows() as u64).saturating_sub(s.deleted_rows()))
            .sum();
        segments + self.rowstore.len() as u64
    }

    /// Number of nodes and bytes of the rowstore.
    pub fn rowstore_size(&self) -> (usize, usize) {
        (self.rowstore.len(), self.rowstore.bytes())
    }

    /// Visits the nodes of the rowstore in the order of their keys, a run at a time: nothing is held up meanwhile.
    pub(crate) fn each_node(&self, mut visit: impl FnMut(&Arc<Node>)) {
        let visited = self.try_each_node(|node| {
            visit(node);
            Ok(())
        });
        debug_assert!(visited.is_ok());
    }

    /// The same until a visit fails.
    pub(crate) fn try_each_node(
        &self,
        mut visit: impl FnMut(&Arc<Node>) -> Result<()>,
    ) -> Result<()> {
        let mut after: Option<Key> = None;
        let mut nodes = Vec::new();
        loop {
            nodes.clear();
            self.rowstore.range_after(after.as_deref(), limits::BLOCK_ROWS, &mut nodes);
            let Some(last) = nodes.last() else { return Ok(()) };
            after = Some(last.key().clone());
            nodes.iter().try_for_each(&mut visit)?;
        }
    }

    /// All segments that some snapshot may see.
    pub fn segments(&self) -> Arc<SegmentList> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the list of segments. Only under the commit lock, or while the table is being recovered.
    pub(crate) fn update_segments(&self, change: impl FnOnce(&mut Vec<Arc<SegmentState>>)) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        let mut states = segments.to_vec();
        change(&mut states);
        *segments = Arc::new(SegmentList::new(states, segments.tables().to_vec()));
        self.consider_merging();
        self.consider_indexing();
        self.consider_hashing();
    }

    /// The same of the list of hash tables.
    pub(crate) fn update_tables(&self, change: impl FnOnce(&mut Vec<Arc<HashTable>>)) {
        let mut segments = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        let mut tables = segments.tables().to_vec();
        change(&mut tables);
        *segments = Arc::new(SegmentList::new(segments.to_vec(), tables));
        self.consider_hashing();
    }

    pub(crate) fn consider_merging(&self) {
        self.may_merge.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_merge(&self) -> &AtomicBool {
        &self.may_merge
    }

    pub(crate) fn consider_indexing(&self) {
        self.may_index.store(true, Ordering::Relaxed);
    }

    pub(crate) fn consider_hashing(&self) {
        self.may_hash.store(true, Ordering::Relaxed);
    }

    pub(crate) fn may_hash(&self) -> &AtomicBool {
        &self.may_hash
    }

    pub(crate) fn may_index(&self) -> &AtomicBool {
        &self.may_index
    }

    pub(crate) fn segment(&self, id: u64) -> Option<Arc<SegmentState>> {
        self.segments().iter().find(|s| s.segment.id() == id).cloned()
    }

    /// Whether the rowstore, whose rows have index entries of some bytes, is over the limit, and since a flush that could
    /// not empty it has at least doubled, or whoever kept it from being emptied has ended.
    pub(crate) fn wants_flush(
        &self,
        limit: usize,
        entries: usize,
        oldest: impl Fn() -> Timestamp,
    ) -> bool {
        let bytes = self.rowstore.bytes() + entries;
        let left = self.left_by_flush.load(Ordering::Relaxed);
        if bytes < left {
            // What was rolled back does not come again.
            self.left_by_flush.fetch_min(bytes, Ordering::Relaxed);
        }
        bytes > limit && (bytes / 2 > left || oldest() > self.collected_at.load(Ordering::Relaxed))
    }

    /// Bytes that the rowstore, whose rows have index entries of some bytes, has more than a flush left it.
    pub(crate) fn unflushed(&self, entries: usize) -> usize {
        (self.rowstore.bytes() + entries).saturating_sub(self.left_by_flush.load(Ordering::Relaxed))
    }

    /// The rowstore was collected for this oldest snapshot.
    pub(crate) fn collected(&self, entries: usize, oldest: Timestamp) {
        self.left_by_flush.store(self.rowstore.bytes() + entries, Ordering::Relaxed);
        self.collected_at.fetch_max(oldest, Ordering::Relaxed);
    }

    /// Reserves `count` hidden row numbers: ascending, with the distance of the number of partitions.
    pub(crate) fn reserve_row_numbers(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        let first = self.next_row_number.fetch_add(count, Ordering::Relaxed);
        let (partitions, own) = (self.partitions, self.number as u64);
        (first..first + count).map(move |n| n * partitions + own)
    }

    /// How many hidden row numbers were given out, and one more.
    pub(crate) fn next_row_number(&self) -> u64 {
        self.next_row_number.load(Ordering::Relaxed)
    }

    /// Numbers up to this count are in use.
    pub(crate) fn saw_row_numbers(&self, count: u64) {
        self.next_row_number.fetch_max(count.saturating_add(1), Ordering::Relaxed);
    }

    /// A row of this number exists.
    pub(crate) fn saw_row_number(&self, number: u64) {
        self.saw_row_numbers(number / self.partitions);
    }
}
