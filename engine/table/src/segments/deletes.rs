//! The delete bitmap of one segment in several versions: its deleted rows as of each timestamp.
//! Source: Apache Doris, the multi-version delete bitmap of merge-on-write tables.
//!
//! A snapshot that stays open keeps every later delta. So that it need not look at each of them,
//! unions of eight, 64, … neighbouring deltas stand beside them, each row at most once a level.

use nacre_types::Timestamp;
use roaring::RoaringBitmap;
use std::collections::VecDeque;
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
    /// Number of deltas that were folded.
    folded: usize,
    /// Unions of whole groups of deltas, by level: at level `n`, of [`GROUP`] to the power of
    /// `n` + 1 each. Deltas are counted from the first one ever added.
    levels: Vec<VecDeque<RoaringBitmap>>,
}

/// Neighbours that have a union.
const GROUP: usize = 8;

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
        Deletes { base: deleted.clone(), all: deleted, ..Deletes::default() }
    }

    /// Rows that any commit has deleted.
    pub fn all(&self) -> &Arc<RoaringBitmap> {
        &self.all
    }

    /// Bytes of its bitmaps, about.
    pub fn memory_bytes(&self) -> usize {
        let deltas: usize = self.deltas.iter().map(|(_, delta)| delta.serialized_size()).sum();
        let own_base = match Arc::ptr_eq(&self.all, &self.base) {
            true => 0,
            false => self.base.serialized_size(),
        };
        deltas + own_base + self.all.serialized_size()
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
        self.any_seen(upto, |seen| {
            merged |= seen;
            false
        });
        debug_assert!(merged.is_subset(&self.all), "a merged bitmap has rows that are not deleted");
        merged
    }

    /// Whether a row is deleted as seen at `at`.
    pub fn contains_at(&self, row: u32, at: Timestamp) -> bool {
        let is_deleted = self.all.contains(row)
            && (self.base.contains(row) || self.any_seen(at, |seen| seen.contains(row)));
        debug_assert!(
            match self.seen_at(at) {
                Seen::Ready(seen) => seen.contains(row) == is_deleted,
                Seen::UpTo(_) => true,
            },
            "a bitmap as of {at} differs in row {row}"
        );
        is_deleted
    }

    /// Whether a test holds for one of the bitmaps that together are the deltas up to `at`: a
    /// number of them that is logarithmic in the number of deltas.
    fn any_seen(&self, at: Timestamp, mut test: impl FnMut(&RoaringBitmap) -> bool) -> bool {
        let seen = self.deltas.partition_point(|(commit, _)| *commit <= at);
        let (mut next, end) = (self.folded, self.folded + seen);
        while next < end {
            let (bitmap, count) = self.largest_group(next, end);
            if test(bitmap) {
                return true;
            }
            next += count;
        }
        debug_assert!(next == end, "{next} deltas are seen of {end}");
        false
    }

    /// The union of the most deltas from number `next` on that ends before `end`, and how many they
    /// are.
    fn largest_group(&self, next: usize, end: usize) -> (&RoaringBitmap, usize) {
        debug_assert!(self.folded <= next && next < end, "delta {next} of {end} is gone");
        let mut found = (&self.deltas[next - self.folded].1, 1);
        let mut size = 1;
        for level in &self.levels {
            size *= GROUP;
            if !next.is_multiple_of(size) || next + size > end {
                break;
            }
            // Groups whose first delta was folded are gone.
            let first = self.folded.div_ceil(size);
            match level.get(next / size - first) {
                Some(group) => found = (group, size),
                None => break,
            }
        }
        found
    }

    /// Adds the unions of groups that end with the newest delta.
    fn complete_groups(&mut self) {
        let added = self.folded + self.deltas.len();
        let (mut size, mut at) = (GROUP, 0);
        while added.is_multiple_of(size) && self.folded <= added - size {
            let mut group = RoaringBitmap::new();
            let part = size / GROUP;
            for start in (added - size..added).step_by(part) {
                group |= self.largest_group(start, start + part).0;
            }
            if at == self.levels.len() {
                self.levels.push(VecDeque::new());
            }
            self.levels[at].push_back(group);
            (size, at) = (size * GROUP, at + 1);
        }
        debug_assert!(self.levels.len() < usize::BITS as usize, "too many levels of deltas");
    }

    /// Forgets the oldest deltas.
    fn forget(&mut self, count: usize) {
        debug_assert!(count <= self.deltas.len(), "{count} of {} deltas", self.deltas.len());
        let before = self.folded;
        self.deltas.drain(..count);
        self.folded += count;
        if self.deltas.is_empty() {
            (self.folded, self.levels) = (0, Vec::new());
            return;
        }
        let mut size = 1;
        for level in &mut self.levels {
            size *= GROUP;
            let gone = self.folded.div_ceil(size) - before.div_ceil(size);
            level.drain(..gone.min(level.len()));
        }
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
        self.complete_groups();
        debug_assert!(self.is_whole(), "deletes of commit {commit} are in no delta");
    }

    /// Whether some snapshot may see fewer deletes than another.
    pub fn has_deltas(&self) -> bool {
        !self.deltas.is_empty()
    }

    /// Folds deltas into the base that every snapshot from `oldest` on sees.
    pub fn fold(&mut self, oldest: Timestamp) {
        let old = self.deltas.partition_point(|(commit, _)| *commit <= oldest);
        if old == 0 {
            return;
        }
        if old == self.deltas.len() {
            self.forget(old);
            self.base = self.all.clone();
            return;
        }
        let base = Arc::make_mut(&mut self.base);
        self.deltas[..old].iter().for_each(|(_, delta)| *base |= delta);
        self.forget(old);
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

    /// With folds in between, every snapshot sees exactly the deletes up to it, and looks at few
    /// bitmaps for it.
    #[test]
    fn an_old_snapshot_looks_at_few_bitmaps() {
        let mut deletes = Deletes::default();
        let mut folded = 0;
        for commit in 1..=1_500u64 {
            deletes.add(commit, RoaringBitmap::from_iter([commit as u32]));
            if commit == 37 || commit == 64 || commit % 701 == 0 {
                folded = commit - commit % 13;
                deletes.fold(folded);
            }
            if commit % 97 == 0 || commit <= 80 || commit == 1_500 {
                for at in (folded..=commit).step_by(if commit < 80 { 1 } else { 11 }) {
                    let mut looks = 0;
                    deletes.any_seen(at, |_| {
                        looks += 1;
                        false
                    });
                    assert!(looks <= 48, "{looks} looks as of {at} after {commit}");
                    let is_seen = |row: u64| deletes.contains_at(row as u32, at);
                    assert!((1..=commit).all(|row| is_seen(row) == (row <= at)), "{at}/{commit}");
                    if at > folded {
                        assert_eq!(deletes.merged(at).len(), at);
                    }
                }
            }
        }
        assert!(deletes.deltas.len() > 90, "many deltas are left");
        deletes.fold(1_500);
        deletes.add(1_501, RoaringBitmap::from_iter([2_000]));
        assert!(!deletes.contains_at(2_000, 1_500) && deletes.contains_at(2_000, 1_501));
    }
}
