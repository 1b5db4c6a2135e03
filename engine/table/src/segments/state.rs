//! A segment as a member of a table: since when, until when, and which of its rows are deleted as of
//! when (seed: Doris' multi-version delete bitmap).

use crate::catalog::statistics::Distinct;
use crate::layout::key_filter::KEY_FILTER_COLUMN;
use crate::record::NewPart;
use crate::segments::bitmap_cache::BitmapCache;
use crate::segments::part::{Part, parts_of};
use crate::segments::sync::{AtomicBool, AtomicU64, RwLock};
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{IndexId, Result, Timestamp};
use roaring::RoaringBitmap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Not dropped.
pub(crate) const FOREVER: Timestamp = Timestamp::MAX;

/// A segment and its metadata. The file is immutable; this is what changes.
pub struct SegmentState {
    /// The file.
    pub segment: Arc<Segment>,
    created: AtomicU64,
    dropped: AtomicU64,
    /// No row's content is newer than this, but for rows whose rowstore node says so itself.
    content: Timestamp,
    deletes: RwLock<Deletes>,
    /// Whether any commit has deleted a row; set before that commit is visible. Most segments of most tables have none.
    has_deletes: AtomicBool,
    /// Where bitmaps between the deltas are kept.
    merged: Option<Arc<BitmapCache>>,
    /// What indexes have of it, in its own file or in files of their own.
    parts: RwLock<Vec<Arc<Part>>>,
    /// Position of the filter of its rows' keys.
    key_filter: Option<usize>,
    pub(crate) distinct: Distinct,
}

/// Deleted rows by commit timestamp.
#[derive(Default)]
struct Deletes {
    /// Newest last; only those some snapshot may have to tell apart.
    deltas: Vec<(Timestamp, RoaringBitmap)>,
    /// Union of `base` and every delta.
    all: Arc<RoaringBitmap>,
    /// Deletes that every snapshot sees.
    base: Arc<RoaringBitmap>,
}

impl SegmentState {
    /// A segment that exists from `created` on, with rows deleted from its beginning.
    pub fn new(segment: Arc<Segment>, created: Timestamp, deleted: RoaringBitmap) -> SegmentState {
        let all = Arc::new(deleted);
        SegmentState {
            parts: RwLock::new(parts_of(&segment)),
            key_filter: segment.column_index(KEY_FILTER_COLUMN),
            segment,
            created: AtomicU64::new(created),
            dropped: AtomicU64::new(FOREVER),
            content: 0,
            has_deletes: AtomicBool::new(!all.is_empty()),
            deletes: RwLock::new(Deletes { deltas: Vec::new(), base: all.clone(), all }),
            merged: None,
            distinct: Distinct::default(),
        }
    }

    /// The same with rows that came or changed at `content` without a rowstore node to tell: a bulk load's.
    pub fn with_content(self, content: Timestamp) -> SegmentState {
        SegmentState { content, ..self }
    }

    /// The same with a cache for bitmaps of old snapshots.
    pub(crate) fn with_bitmaps(self, merged: &Arc<BitmapCache>) -> SegmentState {
        SegmentState { merged: Some(merged.clone()), ..self }
    }

    /// What an index has of it; `None` when that is not built yet.
    pub(crate) fn part(&self, index: IndexId) -> Option<Arc<Part>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        parts.iter().find(|part| part.index == index).cloned()
    }

    /// The column that is a filter of its rows' keys, if it has one.
    pub(crate) fn key_filter(&self) -> Option<usize> {
        self.key_filter
    }

    /// Whether its filter leaves it open that a key of a hash is there.
    pub(crate) fn may_have(&self, hash: Option<u64>) -> Result<bool> {
        match (self.key_filter, hash) {
            (Some(filter), Some(hash)) => self.segment.may_have(filter, hash),
            _ => Ok(true),
        }
    }

    /// Adds the parts that are in a file of their own.
    pub(crate) fn add_parts(&self, file: &Arc<Segment>) {
        self.parts.write().unwrap_or_else(PoisonError::into_inner).extend(parts_of(file));
    }

    /// Takes out the parts in these files, which are removed. Nobody sees a table that has their index any more.
    pub(crate) fn forget_parts(&self, files: &Set<u64>) {
        let is_gone = |part: &Arc<Part>| files.contains(&part.file.id());
        if self.parts.read().unwrap_or_else(PoisonError::into_inner).iter().any(is_gone) {
            self.parts
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .retain(|part| !is_gone(part));
        }
    }

    /// Its parts in files of their own.
    pub(crate) fn new_parts(&self) -> Vec<NewPart> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let own = self.segment.id();
        let new =
            |part: &Arc<Part>| NewPart { segment: own, index: part.index, file: part.file.id() };
        parts.iter().filter(|part| part.file.id() != own).map(new).collect()
    }

    /// The files of [`SegmentState::new_parts`], of some indexes.
    pub(crate) fn part_files(&self, wanted: impl Fn(IndexId) -> bool) -> Vec<Arc<Segment>> {
        let parts = self.parts.read().unwrap_or_else(PoisonError::into_inner);
        let is_wanted =
            |part: &&Arc<Part>| part.file.id() != self.segment.id() && wanted(part.index);
        parts.iter().filter(is_wanted).map(|part| part.file.clone()).collect()
    }

    /// See [`SegmentState::with_content`].
    pub(crate) fn content(&self) -> Timestamp {
        self.content
    }

    /// Whether the segment is part of the table at `at`.
    pub fn exists_at(&self, at: Timestamp) -> bool {
        self.created.load(Ordering::Acquire) <= at && at < self.dropped.load(Ordering::Acquire)
    }

    /// Whether no committed change has dropped it.
    pub fn is_current(&self) -> bool {
        self.dropped.load(Ordering::Acquire) == FOREVER
    }

    /// Since when it is part of the table.
    pub(crate) fn created(&self) -> Timestamp {
        self.created.load(Ordering::Acquire)
    }

    pub(crate) fn dropped_at(&self) -> Timestamp {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn drop_at(&self, at: Timestamp) {
        self.dropped.store(at, Ordering::Release);
    }

    /// Rows deleted as seen at `at`; `None` when there are none.
    pub fn deleted_at(&self, at: Timestamp) -> Option<Arc<RoaringBitmap>> {
        let deletes = self.deletes.read().unwrap_or_else(PoisonError::into_inner);
        let seen = deletes.deltas.partition_point(|(commit, _)| *commit <= at);
        let merged = if seen == deletes.deltas.len() && !plant::is(Bug::StaleBitmap) {
            deletes.all.clone()
        } else if seen == 0 || plant::is(Bug::StaleBitmap) {
            deletes.base.clone()
        } else {
            let merge = || {
                let mut merged = (*deletes.base).clone();
                deletes.deltas[..seen].iter().for_each(|(_, delta)| merged |= delta);
                merged
            };
            // Up to this delta nothing is ever added, so the bitmap stays right.
            let newest = deletes.deltas[seen - 1].0;
            match &self.merged {
                Some(cache) => cache.get((self.segment.id(), newest), merge),
                None => Arc::new(merge()),
            }
        };
        (!merged.is_empty()).then_some(merged)
    }

    /// Whether a row is deleted as seen at `at`.
    pub fn is_deleted_at(&self, row: u32, at: Timestamp) -> bool {
        if !self.has_deletes.load(Ordering::Acquire) {
            return false;
        }
        let deletes = self.deletes.read().unwrap_or_else(PoisonError::into_inner);
        deletes.all.contains(row)
            && (deletes.base.contains(row)
                || deletes
                    .deltas
                    .iter()
                    .any(|(commit, delta)| *commit <= at && delta.contains(row)))
    }

    /// Whether any commit has deleted the row.
    pub fn is_deleted(&self, row: u32) -> bool {
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).all.contains(row)
    }

    /// Rows that any commit has deleted.
    pub(crate) fn all_deleted(&self) -> Arc<RoaringBitmap> {
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Number of rows that any commit has deleted.
    pub fn deleted_rows(&self) -> u64 {
        self.deletes.read().unwrap_or_else(PoisonError::into_inner).all.len()
    }

    /// Whether more than half of its rows are deleted, so that rewriting it frees more than it costs.
    pub(crate) fn is_mostly_deleted(&self) -> bool {
        self.deleted_rows() * 2 > self.segment.rows() as u64
    }

    /// Adds deletes of a commit. Deltas that every snapshot from `oldest` on sees are folded into the base.
    pub(crate) fn delete(&self, commit: Timestamp, rows: RoaringBitmap, oldest: Timestamp) {
        let mut deletes = self.deletes.write().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(deletes.deltas.last().is_none_or(|(last, _)| *last <= commit));
        *Arc::make_mut(&mut deletes.all) |= &rows;
        deletes.deltas.push((commit, rows));
        self.has_deletes.store(true, Ordering::Release);
        fold(&mut deletes, oldest);
    }

    /// Folds deltas no snapshot tells apart any more.
    pub(crate) fn fold(&self, oldest: Timestamp) {
        fold(&mut self.deletes.write().unwrap_or_else(PoisonError::into_inner), oldest);
    }
}

fn fold(deletes: &mut Deletes, oldest: Timestamp) {
    let old = deletes.deltas.partition_point(|(commit, _)| *commit <= oldest);
    if old == 0 {
        return;
    }
    if old == deletes.deltas.len() {
        deletes.deltas.clear();
        deletes.base = deletes.all.clone();
        return;
    }
    let folded: Vec<_> = deletes.deltas.drain(..old).collect();
    let base = Arc::make_mut(&mut deletes.base);
    folded.iter().for_each(|(_, delta)| *base |= delta);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_changes_no_answer() {
        let mut deletes = Deletes::default();
        for commit in 1..=6u64 {
            let rows = RoaringBitmap::from_iter([commit as u32 * 10]);
            *Arc::make_mut(&mut deletes.all) |= &rows;
            deletes.deltas.push((commit, rows));
        }
        fold(&mut deletes, 3);
        assert_eq!(deletes.base.iter().collect::<Vec<_>>(), [10, 20, 30]);
        assert_eq!(deletes.deltas.len(), 3);
        fold(&mut deletes, 9);
        assert_eq!(deletes.base.len(), 6);
        assert!(deletes.deltas.is_empty());
    }
}
