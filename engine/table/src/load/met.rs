//! The rows in the table's segments whose keys a load has.
//!
//! The keys of each segment are compared with those of the load once, without a lock. Afterwards
//! only segments added since are compared: by flushes, merges and other loads. They are found in the
//! runs that have changed since, of which there are few. A row that leaves its
//! segment is found by comparing delete bitmaps; it is gone, or in memory and locked on its way
//! there ([`Watch`](crate::load::watch::Watch)).

use crate::load::comparison::{Common, Comparison, SharedKeys};
use crate::load::loaded::{Load, OnDuplicate};
use crate::load::staged::{LoadedRow, Staged};
use crate::record::KeySet;
use crate::segments::state::SegmentState;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::hash::Map;
use nacre_types::{Error, Result, Value, invariant};
use roaring::RoaringBitmap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Keys of one comparison that a thread looks at before the load can be cancelled.
const KEYS_OF_A_THREAD: usize = 1 << 18;

/// The rows in the table's segments whose keys a load has.
pub(super) struct Met {
    sets: Vec<MetSet>,
    /// By partition: the list with whose segments the keys were compared.
    compared: Vec<Arc<SegmentList>>,
    /// Comparisons with the segments of the lists that are being caught up with.
    begun: Option<Vec<Begun>>,
}

/// The rows that share the primary key, or the key of one index.
struct MetSet {
    keys: KeySet,
    /// By segment.
    olds: Map<u64, OldRows>,
    /// By file of the load: rows whose key a segment of the table has, if the load skips them.
    news: Vec<RoaringBitmap>,
}

/// Rows of one segment whose keys the load has.
struct OldRows {
    partition: u32,
    state: Arc<SegmentState>,
    rows: RoaringBitmap,
    /// Those that are known to have been deleted or moved since.
    gone: RoaringBitmap,
    /// How many rows of the segment were deleted when these were found.
    deleted: u64,
}

/// Rows of one segment that are replaced.
pub(super) struct ReplacedRows {
    pub partition: u32,
    pub state: Arc<SegmentState>,
    pub rows: RoaringBitmap,
}

/// Comparisons that have begun: of a set of keys, a file and a partition.
struct Begun {
    set: usize,
    file: usize,
    partition: u32,
    comparison: Mutex<Comparison>,
    is_done: AtomicBool,
}

impl Met {
    /// No segment has been compared.
    pub fn new(table: &Table, files: usize) -> Met {
        debug_assert!(files > 0, "a load without files meets keys");
        let primary = table.key_columns().map(|_| KeySet::Primary);
        let unique = table.unique_indexes().map(|index| KeySet::Index(index.id()));
        let set = |keys| {
            let news = vec![RoaringBitmap::new(); files];
            MetSet { keys, olds: Map::default(), news }
        };
        let sets = primary.into_iter().chain(unique).map(set).collect();
        let compared = table.partitions().iter().map(|_| Arc::default()).collect();
        Met { sets, compared, begun: None }
    }

    /// By partition: places of the segments that were not compared. Visits only runs that have
    /// changed since others were.
    fn new_places(&self, staged: &Staged, lists: &[Arc<SegmentList>]) -> Vec<Vec<usize>> {
        debug_assert!(lists.len() == self.compared.len(), "lists of {} partitions", lists.len());
        let is_new = |(list, at): (&SegmentList, &usize)| {
            list[*at].is_current() && !staged.is_own(&list[*at])
        };
        let of_one = |(list, known): (&Arc<SegmentList>, &Arc<SegmentList>)| {
            let mut places = list.places_beside(known);
            places.retain(|at| is_new((list, at)));
            places
        };
        lists.iter().zip(&self.compared).map(of_one).collect()
    }

    /// Whether segments were added or dropped since the last [`Met::catch_up`].
    pub fn is_behind(&self, staged: &Staged, lists: &[Arc<SegmentList>]) -> bool {
        let has_new = || self.new_places(staged, lists).iter().any(|places| !places.is_empty());
        !self.sets.is_empty() && (self.has_dropped() || has_new())
    }

    /// How many rows were deleted of the segments that have keys of the load since these were looked at.
    pub fn deleted_since(&self) -> u64 {
        let olds = self.sets.iter().flat_map(|set| set.olds.values());
        let since = |old: &OldRows| {
            let deleted = old.state.deleted_rows();
            debug_assert!(
                deleted >= old.deleted,
                "{deleted} of {} deletions are left",
                old.deleted
            );
            deleted.saturating_sub(old.deleted)
        };
        olds.map(since).sum()
    }

    /// Follows what has changed in the segments of the table: compares new ones, and forgets rows that are
    /// gone. A host with one thread looks at about `some` keys, each of several threads at more. Returns whether
    /// there are more; then, and after a read of absent bytes, it must be called again with the same lists.
    pub fn catch_up(
        &mut self,
        load: Load<'_>,
        staged: &Staged,
        lists: &[Arc<SegmentList>],
        some: usize,
    ) -> Result<bool> {
        debug_assert!(
            lists.len() == load.table.partitions().len(),
            "segments of {} partitions are followed",
            lists.len()
        );
        debug_assert!(
            self.sets.iter().all(|set| set.news.len() == load.files.len()),
            "a load has {} files, and had others before",
            load.files.len()
        );
        if self.begun.is_none() {
            if load.on_duplicate == OnDuplicate::Skip {
                self.sets.iter_mut().try_for_each(|set| set.release(load, staged))?;
            } else {
                self.sets
                    .iter_mut()
                    .for_each(|set| set.olds.retain(|_, old| old.state.is_current()));
            }
            self.begun = Some(self.comparisons(load, staged, lists));
        }
        if self.compare(load, staged, some)? {
            return Ok(true);
        }
        self.begun.take().into_iter().flatten().for_each(|begun| self.add(begun));
        self.compared = lists.to_vec();
        debug_assert!(
            !self.is_behind(staged, lists) || self.has_dropped(),
            "a segment is left out"
        );
        Ok(false)
    }

    /// Whether a segment was dropped since it was compared.
    fn has_dropped(&self) -> bool {
        self.sets.iter().any(|set| set.olds.values().any(|old| !old.state.is_current()))
    }

    /// What is to be compared with the segments of these lists.
    fn comparisons(
        &self,
        load: Load<'_>,
        staged: &Staged,
        lists: &[Arc<SegmentList>],
    ) -> Vec<Begun> {
        debug_assert!(self.begun.is_none(), "comparisons begin before the last ones end");
        let new = self.new_places(staged, lists);
        let mut begun = Vec::new();
        if new.iter().all(Vec::is_empty) {
            return begun;
        }
        for (set, MetSet { keys, .. }) in self.sets.iter().enumerate() {
            for (file, loaded) in load.files.iter().enumerate() {
                for ((partition, list), places) in (0u32..).zip(lists).zip(&new) {
                    let is_apart = *keys == KeySet::Primary && partition != loaded.partition;
                    if is_apart || places.is_empty() {
                        continue;
                    }
                    let comparison = Comparison::new(*keys, file, list, places.clone());
                    let (comparison, is_done) = (Mutex::new(comparison), AtomicBool::new(false));
                    begun.push(Begun { set, file, partition, comparison, is_done });
                }
            }
        }
        begun
    }

    /// Goes on with what has begun. Returns whether there is more.
    fn compare(&self, load: Load<'_>, staged: &Staged, some: usize) -> Result<bool> {
        let begun = self.begun.as_deref().unwrap_or_default();
        let environment = load.loader.transactions().environment();
        if environment.width() == 1 {
            let mut left = some;
            for one in begun {
                while !one.is_done() {
                    if left == 0 {
                        return Ok(true);
                    }
                    left -= one.step(load, staged, left)?;
                }
            }
            return Ok(false);
        }
        let has_failed = AtomicBool::new(false);
        let failed: Vec<Mutex<Option<Error>>> = begun.iter().map(|_| Mutex::default()).collect();
        let most = some.max(KEYS_OF_A_THREAD);
        environment.run(begun.len(), &|at| {
            let mut left = most;
            while left > 0 && !begun[at].is_done() && !has_failed.load(Ordering::Relaxed) {
                match begun[at].step(load, staged, left) {
                    Ok(looked_at) => left -= looked_at,
                    Err(error) => {
                        has_failed.store(true, Ordering::Relaxed);
                        *failed[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                }
            }
        });
        let errors = failed
            .into_iter()
            .filter_map(|failed| failed.into_inner().unwrap_or_else(PoisonError::into_inner));
        // Absent bytes are fetched only if nothing else is wrong.
        match errors.min_by_key(|error| error.missing().is_some()) {
            Some(error) => Err(error),
            None => Ok(begun.iter().any(|one| !one.is_done())),
        }
    }

    /// Adds what a comparison has found.
    fn add(&mut self, begun: Begun) {
        invariant!(begun.is_done(), "file {} of a load was not compared", begun.file);
        let Begun { set, file, partition, comparison, .. } = begun;
        let comparison = comparison.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (list, Common { olds, news }) = comparison.finish();
        let set = &mut self.sets[set];
        set.news[file] |= news;
        for (place, rows) in olds {
            let state = list[place].clone();
            let (old, gone) = (RoaringBitmap::new(), RoaringBitmap::new());
            let empty = || OldRows { partition, state, rows: old, gone, deleted: 0 };
            set.olds.entry(list[place].id()).or_insert_with(empty).rows |= rows;
        }
    }

    /// The rows of a file whose keys a segment of the table has now, as of the last
    /// [`Met::catch_up`].
    pub fn skipped(&self, file: usize) -> RoaringBitmap {
        self.sets.iter().fold(RoaringBitmap::new(), |sum, set| sum | &set.news[file])
    }

    /// The rows of segments whose keys the load has, without those that are gone.
    pub fn replaced(&self) -> Vec<ReplacedRows> {
        let mut all: Map<u64, ReplacedRows> = Map::default();
        for (id, old) in self.sets.iter().flat_map(|set| &set.olds) {
            let rows = &old.rows - &*old.state.all_deleted();
            let (partition, state) = (old.partition, old.state.clone());
            let empty = || ReplacedRows { partition, state, rows: RoaringBitmap::new() };
            all.entry(*id).or_insert_with(empty).rows |= rows;
        }
        let mut all: Vec<ReplacedRows> =
            all.into_values().filter(|replaced| !replaced.rows.is_empty()).collect();
        all.sort_unstable_by_key(|replaced| replaced.state.id());
        debug_assert!(
            all.is_sorted_by(|a, b| a.state.id() < b.state.id()),
            "rows of one segment are replaced twice"
        );
        all
    }
}

impl Begun {
    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Looks at about `some` keys. Returns how many of them it has used up.
    fn step(&self, load: Load<'_>, staged: &Staged, some: usize) -> Result<usize> {
        debug_assert!(!self.is_done(), "a comparison goes on after its end");
        let mut comparison = self.comparison.lock().unwrap_or_else(PoisonError::into_inner);
        match comparison.step(load, staged, some)? {
            Some(looked_at) => Ok(looked_at.min(some)),
            None => {
                self.is_done.store(true, Ordering::Release);
                Ok(0)
            }
        }
    }
}

impl MetSet {
    /// No longer skips rows of the load whose keys have left the segments they were in.
    fn release(&mut self, load: Load<'_>, staged: &Staged) -> Result<()> {
        let dropped = self.olds.values().filter(|old| !old.state.is_current());
        for old in dropped {
            for file in 0..load.files.len() {
                let partition = old.partition;
                if self.keys == KeySet::Primary && load.files[file].partition != partition {
                    continue;
                }
                let (keys, news) = (self.keys, &mut self.news[file]);
                let mut shared = SharedKeys::new(load, keys, file, &old.state)?;
                let mut found = |old_row, new_row, _: &dyn Fn() -> Result<Vec<Value>>| {
                    // The key of a row that had gone before may be that of another row by now.
                    if old.rows.contains(old_row) && !old.gone.contains(old_row) {
                        news.remove(new_row);
                    }
                    Ok(())
                };
                while shared.step((load, keys, file), &old.state, usize::MAX, &mut found)? {}
            }
        }
        // Forgotten only now: after an error they are released again.
        self.olds.retain(|_, old| old.state.is_current());
        for old in self.olds.values_mut() {
            // Counted first: what is deleted from here on is found next time.
            let deleted = old.state.deleted_rows();
            if old.deleted == deleted {
                continue;
            }
            let gone = &(&old.rows & &*old.state.all_deleted()) - &old.gone;
            for row in &gone {
                for LoadedRow { file, row } in
                    same_key(load.table, staged, self.keys, old.partition, &old.state, row)?
                {
                    self.news[file].remove(row);
                }
            }
            old.gone |= gone;
            old.deleted = deleted;
            debug_assert!(old.gone.is_subset(&old.rows), "a row without a key of the load is gone");
        }
        Ok(())
    }
}

/// The rows of the load with the key of a segment's row.
fn same_key(
    table: &Table,
    staged: &Staged,
    keys: KeySet,
    partition: u32,
    state: &SegmentState,
    row: u32,
) -> Result<Vec<LoadedRow>> {
    let layout = table.layout();
    match keys {
        KeySet::Primary => {
            let key = layout.encode_key(&layout.key_of_segment_row(&state.segment, row)?)?;
            staged.with_key(table, partition, &key)
        }
        KeySet::Index(id) => {
            let index = table.index(id)?;
            let values = layout.segment_key(&state.segment, row, index.columns())?;
            staged.with_value(table, index, &index.encode(&values)?)
        }
    }
}
