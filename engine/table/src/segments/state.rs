//! A segment as a member of a table: the timestamps between which it belongs to the table, its
//! deleted rows as of each timestamp, and its index parts. The file itself never changes.

use crate::layout::columns::KEY_FILTER_COLUMN;
use crate::record::NewPart;
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::claims::Claims;
use crate::segments::deletes::{Deletes, Seen};
use crate::segments::distinct::{DistinctValues, Estimate};
use crate::segments::part::{Part, parts_of};
use crate::segments::sync::{AtomicBool, AtomicU64, RwLock};
use crate::visits;
use nacre_segment::{ColumnMeta, OrderBounds, Segment};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{IndexId, Result, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The timestamp of something that has not ended.
pub(crate) const FOREVER: Timestamp = Timestamp::MAX;

/// How many rows of the segments of a partition are deleted.
pub(crate) type DeletedRows = Arc<std::sync::atomic::AtomicU64>;

/// A segment and its metadata.
pub struct SegmentState {
    /// The file.
    pub segment: Arc<Segment>,
    /// Bounds of its rows as [`TableLayout::encode_order`] orders them.
    ///
    /// [`TableLayout::encode_order`]: crate::layout::table_layout::TableLayout::encode_order
    bounds: Arc<OrderBounds>,
    created: AtomicU64,
    dropped: AtomicU64,
    /// No row's content is newer than this, except for rows with a rowstore node that records it.
    content: Timestamp,
    deletes: RwLock<Deletes>,
    /// Whether any commit has deleted a row; set before that commit is visible. Most segments of
    /// most tables have none.
    has_deletes: AtomicBool,
    /// The cache for bitmaps of old snapshots.
    merged: Option<Arc<BitmapCache>>,
    claims: Claims,
    /// Where its deleted rows are counted, while it is listed.
    tally: Mutex<Option<DeletedRows>>,
    /// Its index parts, in its own file or in separate files.
    parts: RwLock<Vec<Arc<Part>>>,
    /// Position of the filter of its keys.
    key_filter: Option<usize>,
    distinct: DistinctValues,
}

impl SegmentState {
    /// A segment that exists from `created` on, with rows that are deleted from its beginning.
    pub fn new(segment: Arc<Segment>, created: Timestamp, deleted: RoaringBitmap) -> SegmentState {
        check_rows(&segment, &deleted);
        let all = Arc::new(deleted);
        SegmentState {
            parts: RwLock::new(parts_of(&segment)),
            key_filter: segment.column_index(KEY_FILTER_COLUMN),
            bounds: segment.order_bounds().cloned().unwrap_or_else(|| Arc::new(unbounded())),
            segment,
            created: AtomicU64::new(created),
            dropped: AtomicU64::new(FOREVER),
            content: 0,
            has_deletes: AtomicBool::new(!all.is_empty()),
            deletes: RwLock::new(Deletes::new(all)),
            merged: None,
            claims: Claims::default(),
            tally: Mutex::default(),
            distinct: DistinctValues::default(),
        }
    }

    /// Sets the commit that last added or changed rows without a rowstore node to record it, as a
    /// bulk load does.
    pub fn with_content(self, content: Timestamp) -> SegmentState {
        invariant!(
            content <= self.created(),
            "content of commit {content} in a segment of commit {}",
            self.created()
        );
        SegmentState { content, ..self }
    }

    /// Sets the bounds of a segment whose footer has none.
    pub(crate) fn with_bounds(self, bounds: Arc<OrderBounds>) -> SegmentState {
        debug_assert!(
            self.segment.order_bounds().is_none_or(|own| *own == bounds),
            "segment {} gets other bounds than its own",
            self.id()
        );
        SegmentState { bounds, ..self }
    }

    /// Bounds of its rows in the order in which they are stored.
    pub(crate) fn bounds(&self) -> &OrderBounds {
        &self.bounds
    }

    /// Caches bitmaps of old snapshots in `merged`.
    pub(crate) fn with_bitmaps(self, merged: &Arc<BitmapCache>) -> SegmentState {
        SegmentState { merged: Some(merged.clone()), ..self }
    }

    /// The rows that transactions are about to delete together.
    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The number of its file.
    pub(crate) fn id(&self) -> u64 {
        self.segment.id()
    }

    /// Its part of an index; `None` if it is not built yet.
    pub(crate) fn part(&self, index: IndexId) -> Option<Arc<Part>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        parts.iter().find(|part| part.index() == index).cloned()
    }

    /// Whether it has a filter of its keys.
    pub(crate) fn has_key_filter(&self) -> bool {
        self.key_filter.is_some()
    }

    /// Whether the segment may hold a key with this hash, according to its key filter.
    pub(crate) fn may_have(&self, hash: Option<u64>) -> Result<bool> {
        match (self.key_filter, hash) {
            (Some(filter), Some(hash)) => self.segment.may_have(filter, hash),
            _ => Ok(true),
        }
    }

    /// An estimate of how many distinct values a column has.
    pub(crate) fn distinct(&self, column: usize, meta: &ColumnMeta) -> Result<Estimate> {
        self.distinct.of(&self.segment, column, meta)
    }

    /// Adds the index parts of a separate file.
    pub(crate) fn add_parts(&self, file: &Arc<Segment>) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).extend(parts_of(file));
    }

    /// Forgets the parts of other indexes. Recovery has not checked those, and an index created later
    /// may get the id of one.
    pub(crate) fn keep_parts(&self, is_kept: impl Fn(IndexId) -> bool) {
        let mut parts = self.parts.write().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| is_kept(part.index()));
    }

    /// Removes the index parts of these files, which are about to be deleted. No reader sees a
    /// version of the table with their index any more.
    pub(crate) fn forget_parts(&self, files: &Set<u64>) {
        let is_gone = |part: &Arc<Part>| files.contains(&part.file().id());
        if self.parts.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_gone) {
            self.parts
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|part| !is_gone(part));
        }
    }

    /// Bytes of what is known of its file and of the separate files of its parts without their
    /// footers.
    pub(crate) fn handle_bytes(&self) -> usize {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let others = parts.iter().filter(|part| part.file().id() != self.id());
        self.segment.handle_bytes() + others.map(|part| part.file().handle_bytes()).sum::<usize>()
    }

    /// Bytes of its delete bitmaps.
    pub(crate) fn bitmap_bytes(&self) -> usize {
        match self.has_deletes.load(Ordering::Relaxed) {
            true => self.deletes.read().unwrap_or_else(PoisonError::into_inner).memory_bytes(),
            false => 0,
        }
    }

    /// Its index parts in separate files, as the log names them, with the files.
    pub(crate) fn new_parts(&self) -> Vec<(NewPart, Arc<Segment>)> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let own = self.id();
        let new = |part: &Arc<Part>| {
            let file = part.file().clone();
            (NewPart { segment: own, index: part.index(), file: file.id() }, file)
        };
        parts.iter().filter(|part| part.file().id() != own).map(new).collect()
    }

    /// The files of its separate index parts, for some indexes.
    pub(crate) fn part_files(&self, wanted: impl Fn(IndexId) -> bool) -> Vec<Arc<Segment>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |part: &&Arc<Part>| part.file().id() != self.id() && wanted(part.index());
        parts.iter().filter(is_wanted).map(|part| part.file().clone()).collect()
    }

    /// See [`SegmentState::with_content`].
    pub(crate) fn content(&self) -> Timestamp {
        self.content
    }

    /// Whether the segment is part of the table at `at`.
    pub fn exists_at(&self, at: Timestamp) -> bool {
        visits::add();
        self.created.load(Ordering::Acquire) <= at && at < self.dropped.load(Ordering::Acquire)
    }

    /// Whether no commit has dropped it.
    pub fn is_current(&self) -> bool {
        visits::add();
        self.dropped.load(Ordering::Acquire) == FOREVER
    }

    /// The commit that added it to the table.
    pub(crate) fn created(&self) -> Timestamp {
        self.created.load(Ordering::Acquire)
    }

    /// The commit that dropped it.
    pub(crate) fn dropped_at(&self) -> Timestamp {
        self.dropped.load(Ordering::Acquire)
    }

    /// Ends its membership in the table. Only under the commit lock.
    pub(crate) fn drop_at(&self, at: Timestamp) {
        invariant!(
            self.is_current() && at >= self.created(),
            "segment {} of {}..{} is dropped at {at}",
            self.id(),
            self.created(),
            self.dropped_at()
        );
        self.dropped.store(at, Ordering::Release);
    }

    /// Rows deleted as seen at `at`; `None` if there are none.
    pub fn deleted_at(&self, at: Timestamp) -> Option<Arc<RoaringBitmap>> {
        let deletes = self.deletes.read().unwrap_or_else(PoisonError::into_inner);
        let seen = match deletes.seen_at(at) {
            _ if plant::is(Bug::StaleBitmap) => deletes.base().clone(),
            Seen::Ready(bitmap) => bitmap.clone(),
            Seen::UpTo(newest) => {
                let merge = || deletes.merged(newest);
                match &self.merged {
                    Some(cache) => {
                        let cached = cache.get((self.id(), newest), merge);
                        debug_assert!(
                            *cached == deletes.merged(newest),
                            "deletes of segment {} up to {newest} changed",
                            self.id()
                        );
                        cached
                    }
                    None => Arc::new(merge()),
                }
            }
        };
        debug_assert!(
            seen.is_subset(deletes.all()),
            "a row of segment {} is deleted as of {at}, and not deleted",
            self.id()
        );
        (!seen.is_empty()).then_some(seen)
    }

    /// Whether a row is deleted as seen at `at`.
    pub fn is_deleted_at(&self, row: u32, at: Timestamp) -> bool {
        debug_assert!((row as usize) < self.segment.rows(), "row {row} of {}", self.segment.rows());
        if !self.has_deletes.load(Ordering::Acquire) {
            return false;
        }
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).contains_at(row, at)
    }

    /// Whether any commit has deleted the row.
    pub fn is_deleted(&self, row: u32) -> bool {
        debug_assert!((row as usize) < self.segment.rows(), "row {row} of {}", self.segment.rows());
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).all().contains(row)
    }

    /// Rows that any commit has deleted.
    pub(crate) fn all_deleted(&self) -> Arc<RoaringBitmap> {
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).all().clone()
    }

    /// Number of rows that any commit has deleted.
    pub fn deleted_rows(&self) -> u64 {
        visits::add();
        let deleted = self.deletes.read().unwrap_or_else(PoisonError::into_inner).all().len();
        debug_assert!(
            deleted <= self.segment.rows() as u64,
            "{deleted} deleted rows of {}",
            self.segment.rows()
        );
        deleted
    }

    fn tally(&self) -> MutexGuard<'_, Option<DeletedRows>> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts its deleted rows in `tally` from now on, unless they are counted. Only under the commit
    /// lock.
    pub(crate) fn count_deleted(&self, tally: &DeletedRows) {
        let mut own = self.tally();
        if own.is_none() {
            tally.fetch_add(self.deleted_rows(), Ordering::Relaxed);
            *own = Some(tally.clone());
        }
    }

    /// Counts its deleted rows no more, because it leaves the table or the list. Only under the commit
    /// lock.
    pub(crate) fn forget_deleted(&self) {
        if let Some(tally) = self.tally().take() {
            let before = tally.fetch_sub(self.deleted_rows(), Ordering::Relaxed);
            debug_assert!(
                before >= self.deleted_rows(),
                "{before} deleted rows, and more in segment {}",
                self.id()
            );
        }
    }

    /// Whether more than half of its rows are deleted, so that rewriting it frees more than it
    /// costs.
    pub(crate) fn is_mostly_deleted(&self) -> bool {
        self.deleted_rows() * 2 > self.segment.rows() as u64
    }

    /// Adds deletes of a commit. Only under the commit lock. Deltas that every snapshot from
    /// `oldest` on sees are folded into the base.
    pub(crate) fn delete(&self, commit: Timestamp, rows: RoaringBitmap, oldest: Timestamp) {
        check_rows(&self.segment, &rows);
        invariant!(
            self.is_current(),
            "rows of segment {} are deleted, which is dropped",
            self.id()
        );
        debug_assert!(
            commit >= self.created(),
            "commit {commit} deletes rows of segment {} of commit {}",
            self.id(),
            self.created()
        );
        debug_assert!(
            oldest < commit || commit == self.created(),
            "deletes of commit {commit} are folded for snapshot {oldest} before it"
        );
        let mut deletes = self.deletes.write().unwrap_or_else(PoisonError::into_inner);
        let before = deletes.all().len();
        deletes.add(commit, rows);
        if let Some(tally) = &*self.tally() {
            tally.fetch_add(deletes.all().len() - before, Ordering::Relaxed);
        }
        self.has_deletes.store(true, Ordering::Release);
        deletes.fold(oldest);
    }

    /// Whether some snapshot may distinguish its deletes.
    pub(crate) fn has_deltas(&self) -> bool {
        self.has_deletes.load(Ordering::Acquire)
            && self.deletes.read().unwrap_or_else(PoisonError::into_inner).has_deltas()
    }

    /// Folds deltas that no snapshot distinguishes any more. Returns whether some are left.
    pub(crate) fn fold(&self, oldest: Timestamp) -> bool {
        if !self.has_deletes.load(Ordering::Acquire) {
            return false;
        }
        let mut deletes = self.deletes.write().unwrap_or_else(PoisonError::into_inner);
        deletes.fold(oldest);
        deletes.has_deltas()
    }
}

/// Bounds of any rows: the first byte of an encoded key is 0 or 1.
fn unbounded() -> OrderBounds {
    OrderBounds { first: Vec::new(), last: vec![2] }
}

/// Checks that deleted rows exist. Recovery checks stored bitmaps.
fn check_rows(segment: &Segment, deleted: &RoaringBitmap) {
    invariant!(
        deleted.max().is_none_or(|row| (row as usize) < segment.rows()),
        "row {:?} is deleted of segment {}, which has {}",
        deleted.max(),
        segment.id(),
        segment.rows()
    );
}
