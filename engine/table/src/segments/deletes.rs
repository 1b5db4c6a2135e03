//! The delete bitmap of one segment in several versions: its deleted rows as of each timestamp.
//! Source: Apache Doris, the multi-version delete bitmap of merge-on-write tables.

use nacre_types::Timestamp;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Deleted rows by commit timestamp.
#[derive(Default)]
pub(super) struct Deletes {
    /// Newest last; only deltas that some snapshot may need to distinguish.
    deltas: Vec<(Timestamp, RoaringBitmap)>,
    /// Union of `base` and every delta.
    all: Arc<RoaringBitmap>,
    /// Deletes that every snapshot sees.
    base: Arc<RoaringBitmap>,
}

/// The bitmap that a snapshot sees.
pub(super) enum Seen<'a> {
    /// A bitmap that is already merged.
    Ready(&'a Arc<RoaringBitmap>),
    /// The union of `base` and the deltas up to this commit, which is final.
    UpTo(Timestamp),
}

impl Deletes {
    /// Rows that are deleted from the segment's beginning.
    pub fn new(deleted: Arc<RoaringBitmap>) -> Deletes {
        Deletes { deltas: Vec::new(), base: deleted.clone(), all: deleted }
    }

    /// Rows that any commit has deleted.
    pub fn all(&self) -> &Arc<RoaringBitmap> {
        &self.all
    }

    /// Deletes that every snapshot sees.
    pub fn base(&self) -> &Arc<RoaringBitmap> {
        &self.base
    }

    /// The rows deleted as seen at `at`.
    pub fn seen_at(&self, at: Timestamp) -> Seen<'_> {
        debug_assert!(
            self.deltas.is_sorted_by_key(|(commit, _)| *commit),
            "deltas of a delete bitmap are out of order"
        );
        let seen = self.deltas.partition_point(|(commit, _)| *commit <= at);
        if seen == self.deltas.len() {
            Seen::Ready(&self.all)
        } else if seen == 0 {
            Seen::Ready(&self.base)
        } else {
            Seen::UpTo(self.deltas[seen - 1].0)
        }
    }

    /// The union of `base` and the deltas up to a commit.
    pub fn merged(&self, upto: Timestamp) -> RoaringBitmap {
        debug_assert!(
            self.deltas.iter().any(|(commit, _)| *commit == upto),
            "commit {upto} has no delta"
        );
        let mut merged = (*self.base).clone();
        let seen = self.deltas.iter().take_while(|(commit, _)| *commit <= upto);
        seen.for_each(|(_, delta)| merged |= delta);
        debug_assert!(merged.is_subset(&self.all), "a merged bitmap has rows that are not deleted");
        merged
    }

    /// Whether a row is deleted as seen at `at`.
    pub fn contains_at(&self, row: u32, at: Timestamp) -> bool {
        let is_deleted = self.all.contains(row)
            && (self.base.contains(row)
                || self.deltas.iter().any(|(commit, delta)| *commit <= at && delta.contains(row)));
        debug_assert!(
            match self.seen_at(at) {
                Seen::Ready(seen) => seen.contains(row) == is_deleted,
                Seen::UpTo(_) => true,
            },
            "a bitmap as of {at} differs in row {row}"
        );
        is_deleted
    }

    /// Whether `all` is the union of `base` and every delta.
    fn is_whole(&self) -> bool {
        let mut union = (*self.base).clone();
        self.deltas.iter().for_each(|(_, delta)| union |= delta);
        union == *self.all
    }

    /// Adds the deletes of a commit.
    pub fn add(&mut self, commit: Timestamp, rows: RoaringBitmap) {
        debug_assert!(
            self.deltas.last().is_none_or(|(last, _)| *last <= commit),
            "deletes of commit {commit} come after those of a later one"
        );
        debug_assert!(!rows.is_subset(&self.all), "commit {commit} deletes no row");
        *Arc::make_mut(&mut self.all) |= &rows;
        self.deltas.push((commit, rows));
        debug_assert!(self.is_whole(), "deletes of commit {commit} are in no delta");
    }

    /// Folds deltas into the base that every snapshot from `oldest` on sees.
    pub fn fold(&mut self, oldest: Timestamp) {
        let old = self.deltas.partition_point(|(commit, _)| *commit <= oldest);
        if old == 0 {
            return;
        }
        if old == self.deltas.len() {
            self.deltas.clear();
            self.base = self.all.clone();
            return;
        }
        let base = Arc::make_mut(&mut self.base);
        self.deltas.drain(..old).for_each(|(_, delta)| *base |= delta);
        debug_assert!(self.is_whole(), "folding up to {oldest} changes which rows are deleted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_changes_no_answer() {
        let mut deletes = Deletes::default();
        for commit in 1..=6u64 {
            deletes.add(commit, RoaringBitmap::from_iter([commit as u32 * 10]));
        }
        deletes.fold(3);
        assert_eq!(deletes.base.iter().collect::<Vec<_>>(), [10, 20, 30]);
        assert_eq!(deletes.deltas.len(), 3);
        deletes.fold(9);
        assert_eq!(deletes.base.len(), 6);
        assert!(deletes.deltas.is_empty());
    }
}
