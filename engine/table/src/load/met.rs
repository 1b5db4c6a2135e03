//! The rows in the table's segments whose keys a load has.
//!
//! The keys of each segment are compared with those of the load once, without a lock. Afterwards
//! only segments added since are compared: by flushes, merges and other loads. A row that leaves its
//! segment is found by comparing delete bitmaps; it is gone, or in memory and locked on its way
//! there ([`Watch`](crate::load::watch::Watch)).

use crate::index::definition::Index;
use crate::index::lookup::{block_keys, rows_of_candidate};
use crate::index::range::KeyRange;
use crate::layout::sorted_keys::SortedKeys;
use crate::load::common_keys::{each_common, is_few, overlap};
use crate::load::loaded::{Load, Loaded, OnDuplicate};
use crate::load::staged::{LoadedRow, Staged, part_of};
use crate::record::KeySet;
use crate::segments::state::SegmentState;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use nacre_types::hash::{Map, Set, hash_bytes};
use nacre_types::{Error, Result, Value, invariant, limits};
use roaring::RoaringBitmap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows in the table's segments whose keys a load has.
pub(super) struct Met {
    sets: Vec<MetSet>,
    /// The segments that were compared.
    compared: Set<u64>,
    /// Comparisons that need not be repeated although others met absent bytes: of a set of keys, a file
    /// and a partition, with the segments of a list.
    done: Map<(usize, usize, u32), Arc<SegmentList>>,
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
}

/// Rows of one segment that are replaced.
pub(super) struct ReplacedRows {
    pub partition: u32,
    pub state: Arc<SegmentState>,
    pub rows: RoaringBitmap,
}

/// Keys to compare: those of one file with those of some segments of one partition.
#[derive(Clone, Copy)]
struct Comparison<'a> {
    load: Load<'a>,
    set: usize,
    keys: KeySet,
    file: usize,
    partition: u32,
    list: &'a Arc<SegmentList>,
    compared: &'a Set<u64>,
    /// A list with whose segments they were compared before.
    done: Option<&'a Arc<SegmentList>>,
}

/// The outcome of a comparison.
#[derive(Default)]
struct Common {
    /// By place in the list of segments.
    olds: Map<usize, RoaringBitmap>,
    news: RoaringBitmap,
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
        Met { sets, compared: Set::default(), done: Map::default() }
    }

    /// Whether segments were added or dropped since the last [`Met::catch_up`].
    pub fn is_behind(&self, staged: &Staged, lists: &[Arc<SegmentList>]) -> bool {
        let is_new = |state: &Arc<SegmentState>| {
            state.is_current() && !staged.is_own(state) && !self.compared.contains(&state.id())
        };
        let is_dropped = |set: &MetSet| set.olds.values().any(|old| !old.state.is_current());
        !self.sets.is_empty()
            && (lists.iter().any(|list| list.iter().any(is_new))
                || self.sets.iter().any(is_dropped))
    }

    /// Follows what has changed in the segments of the table: compares new ones, and forgets rows
    /// that are gone. Can be called again after a read of absent bytes.
    pub fn catch_up(
        &mut self,
        load: Load<'_>,
        staged: &Staged,
        lists: &[Arc<SegmentList>],
    ) -> Result<()> {
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
        if load.on_duplicate == OnDuplicate::Skip {
            self.sets.iter_mut().try_for_each(|set| set.release(load, staged))?;
        } else {
            self.sets.iter_mut().for_each(|set| set.olds.retain(|_, old| old.state.is_current()));
        }
        self.compare(load, staged, lists)?;
        let listed = lists.iter().flat_map(|list| list.iter());
        self.compared = listed.filter(|state| state.is_current()).map(|state| state.id()).collect();
        debug_assert!(
            !self.is_behind(staged, lists) || self.has_dropped(),
            "a segment is left out"
        );
        Ok(())
    }

    /// Whether a segment was dropped since it was compared.
    fn has_dropped(&self) -> bool {
        self.sets.iter().any(|set| set.olds.values().any(|old| !old.state.is_current()))
    }

    fn compare(
        &mut self,
        load: Load<'_>,
        staged: &Staged,
        lists: &[Arc<SegmentList>],
    ) -> Result<()> {
        let mut compared = self.compared.clone();
        compared.extend(load.files.iter().map(|file| file.segment.id()));
        let (mut work, before) = (Vec::new(), self.done.clone());
        for (set, MetSet { keys, .. }) in self.sets.iter().enumerate() {
            for (file, Loaded { partition, .. }) in load.files.iter().enumerate() {
                for (at, list) in (0u32..).zip(lists) {
                    let is_apart = *keys == KeySet::Primary && at != *partition;
                    let (keys, partition, compared) = (*keys, at, &compared);
                    let done = before.get(&(set, file, at));
                    let one = Comparison { load, set, keys, file, partition, list, compared, done };
                    if !is_apart && one.is_due() {
                        work.push(one);
                    }
                }
            }
        }
        let done: Vec<Mutex<Option<Result<Common>>>> =
            work.iter().map(|_| Mutex::default()).collect();
        let has_missed = AtomicBool::new(false);
        load.loader.transactions().environment().run(work.len(), &|at| {
            if has_missed.load(Ordering::Relaxed) {
                return;
            }
            let common = work[at].run(staged);
            if common.as_ref().is_err_and(|error| error.missing().is_some()) {
                has_missed.store(true, Ordering::Relaxed);
            }
            *done[at].lock().unwrap_or_else(PoisonError::into_inner) = Some(common);
        });
        let mut missed = None;
        for (one, done) in work.iter().zip(done) {
            let common = done.into_inner().unwrap_or_else(PoisonError::into_inner);
            let Common { olds, news } = match common {
                Some(Ok(common)) => common,
                Some(Err(error)) if error.missing().is_some() => {
                    missed.get_or_insert(error);
                    continue;
                }
                Some(Err(error)) => return Err(error),
                None => {
                    let has_missed = has_missed.load(Ordering::Relaxed);
                    invariant!(has_missed, "file {} of a load was not compared", one.file);
                    continue;
                }
            };
            self.done.insert((one.set, one.file, one.partition), one.list.clone());
            debug_assert!(
                news.is_empty() || load.on_duplicate == OnDuplicate::Skip,
                "rows of file {} are skipped by a load that skips none",
                one.file
            );
            let set = &mut self.sets[one.set];
            set.news[one.file] |= news;
            for (place, rows) in olds {
                let (partition, state) = (one.partition, one.list[place].clone());
                let gone = RoaringBitmap::new();
                let empty = || OldRows { partition, state, rows: RoaringBitmap::new(), gone };
                set.olds.entry(one.list[place].id()).or_insert_with(empty).rows |= rows;
            }
        }
        if let Some(error) = missed {
            return Err(error);
        }
        self.done.clear();
        Ok(())
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
                let news = &mut self.news[file];
                each_shared(load, self.keys, file, &old.state, &mut |old_row, new_row, _| {
                    // The key of a row that had gone before may be that of another row by now.
                    if old.rows.contains(old_row) && !old.gone.contains(old_row) {
                        news.remove(new_row);
                    }
                    Ok(())
                })?;
            }
        }
        // Forgotten only now: after an error they are released again.
        self.olds.retain(|_, old| old.state.is_current());
        for old in self.olds.values_mut() {
            let gone = &(&old.rows & &*old.state.all_deleted()) - &old.gone;
            for row in &gone {
                for LoadedRow { file, row } in
                    same_key(load.table, staged, self.keys, old.partition, &old.state, row)?
                {
                    self.news[file].remove(row);
                }
            }
            old.gone |= gone;
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

impl Comparison<'_> {
    /// Whether a segment was not compared before.
    fn is_new(&self, state: &SegmentState) -> bool {
        !self.compared.contains(&state.id())
            && self.done.is_none_or(|done| done.segment(state.id()).is_none())
    }

    /// Whether any segment was not.
    fn is_due(&self) -> bool {
        !self.done.is_some_and(|done| Arc::ptr_eq(done, self.list))
            && self.list.iter().any(|state| self.is_new(state))
    }

    fn run(&self, staged: &Staged) -> Result<Common> {
        let mut common = Common::default();
        let (load, segment) = (self.load, &self.load.files[self.file].segment);
        let mut large = vec![false; self.list.len()];
        for (place, state) in self.list.iter().enumerate() {
            if !state.is_current() || !self.is_new(state) {
                continue;
            }
            debug_assert!(!staged.is_own(state), "a load is compared with itself");
            if is_few_of(load, self.keys, self.file, state)? {
                large[place] = true;
                continue;
            }
            each_shared(load, self.keys, self.file, state, &mut |old_row, new_row, key| {
                self.meet(&mut common, (place, old_row), new_row, key)
            })?;
        }
        if !large.contains(&true) {
            return Ok(common);
        }
        match self.keys {
            KeySet::Primary => {
                let layout = load.table.layout();
                let new = layout.sorted_keys(segment)?;
                for new_at in 0..new.len() {
                    let key = new.at(new_at)?;
                    let encoded = layout.encode_key(&key)?;
                    for found in self.list.of_key(layout, &encoded)?.newest_first() {
                        let state = &self.list[found.place];
                        if large[found.place]
                            && let Some(old_row) = found.find(layout, state, &key)?
                        {
                            let new_row = new.row(new_at)?;
                            let key = &|| Ok(key.clone());
                            self.meet(&mut common, (found.place, old_row), new_row, key)?;
                        }
                    }
                }
            }
            KeySet::Index(id) => self.look_up(load.table.index(id)?, &large, &mut common)?,
        }
        Ok(common)
    }

    /// Looks up each value of the file in large segments.
    fn look_up(&self, index: &Index, large: &[bool], common: &mut Common) -> Result<()> {
        debug_assert!(
            large.len() == self.list.len() && large.contains(&true),
            "values are looked up in no segment of {}",
            self.list.len()
        );
        let (table, directory) = (self.load.table, self.list.of_index(index));
        let part = part_of(index, &self.load.files[self.file].unlisted_state())?;
        let new = part.sorted_keys();
        for new_at in 0..new.len() {
            let values = new.at(new_at)?;
            if values.iter().any(Value::is_null) {
                continue;
            }
            let encoded = index.encode(&values)?;
            let (range, hash) = (KeyRange::equal(values.clone()), Some(hash_bytes(&encoded)));
            let candidates = directory.candidates(&encoded)?;
            for candidate in candidates.newest_first().filter(|found| large[found.place]) {
                let (layout, state) = (table.layout(), &self.list[candidate.place]);
                for old_row in rows_of_candidate(layout, index, state, &range, hash, candidate)? {
                    let (new_row, key) = (part.row(new_at)?, &|| Ok(values.clone()));
                    self.meet(common, (candidate.place, old_row), new_row, key)?;
                }
            }
        }
        Ok(())
    }

    /// Notes that a row of a segment has the key of a row of the load.
    fn meet(
        &self,
        common: &mut Common,
        (place, old_row): (usize, u32),
        new_row: u32,
        key: &dyn Fn() -> Result<Vec<Value>>,
    ) -> Result<()> {
        if self.list[place].is_deleted(old_row) {
            return Ok(());
        }
        if let Some(leaving) = self.load.leaving
            && leaving(&self.list[place], old_row)?
        {
            return Ok(());
        }
        match self.load.on_duplicate {
            OnDuplicate::Error => return Err(duplicate(self.load.table, self.keys, &key()?)?),
            OnDuplicate::Skip => drop(common.news.insert(new_row)),
            OnDuplicate::Replace => {}
        }
        common.olds.entry(place).or_default().insert(old_row);
        Ok(())
    }
}

/// The error for a key that a row of the table has.
pub(super) fn duplicate(table: &Table, keys: KeySet, key: &[Value]) -> Result<Error> {
    Ok(match keys {
        KeySet::Primary => table.layout().duplicate(key),
        KeySet::Index(id) => {
            let index = table.index(id)?;
            index.duplicate(&table.schema().name, &index.encode(key)?)
        }
    })
}

/// Whether each key of a file is looked up in a segment, because that has far more keys where they
/// overlap.
fn is_few_of(load: Load<'_>, keys: KeySet, file: usize, state: &SegmentState) -> Result<bool> {
    let is_few = |old: &SortedKeys<'_>, new: &SortedKeys<'_>| {
        Ok(is_few(new, new.len(), old.len()) && overlap(old, new)?.is_some())
    };
    let segment = &load.files[file].segment;
    match keys {
        KeySet::Primary => {
            let layout = load.table.layout();
            is_few(&layout.sorted_keys(&state.segment)?, &layout.sorted_keys(segment)?)
        }
        KeySet::Index(id) => match state.part(id) {
            Some(old) => {
                let new = part_of(load.table.index(id)?, &load.files[file].unlisted_state())?;
                is_few(&old.sorted_keys(), &new.sorted_keys())
            }
            None => Ok(false),
        },
    }
}

/// Receives the row of a segment, a row of the load with the same key, and the key.
type Shared<'a> = dyn FnMut(u32, u32, &dyn Fn() -> Result<Vec<Value>>) -> Result<()> + 'a;

/// Calls `found` for every key without nulls that both a segment, deleted rows included, and a file
/// of the load have.
fn each_shared(
    load: Load<'_>,
    keys: KeySet,
    file: usize,
    state: &SegmentState,
    found: &mut Shared<'_>,
) -> Result<()> {
    let segment = &load.files[file].segment;
    let KeySet::Index(id) = keys else {
        let layout = load.table.layout();
        let (old, new) = (layout.sorted_keys(&state.segment)?, layout.sorted_keys(segment)?);
        return each_common(&old, &new, &mut |old_at, new_at| {
            found(old.row(old_at)?, new.row(new_at)?, &|| new.at(new_at))
        });
    };
    let index = load.table.index(id)?;
    let part = part_of(index, &load.files[file].unlisted_state())?;
    let new = part.sorted_keys();
    let Some(old_part) = state.part(id) else {
        return each_unindexed(load.table, index, state, &new, &mut |old_row, new_at| {
            found(old_row, part.row(new_at)?, &|| new.at(new_at))
        });
    };
    let old = old_part.sorted_keys();
    each_common(&old, &new, &mut |old_at, new_at| {
        let old_row = old_part.row(old_at)?;
        // In the file, a key may have several rows, which are neighbours.
        match !load.files[file].numbers.is_empty() {
            false => found(old_row, part.row(new_at)?, &|| new.at(new_at)),
            true => new
                .equal(&new.at(new_at)?)?
                .try_for_each(|at| found(old_row, part.row(at)?, &|| new.at(at))),
        }
    })
}

/// Calls `found` with the rows of a segment without a part of the index, and the positions of their
/// keys among those of a file.
fn each_unindexed(
    table: &Table,
    index: &Index,
    old: &SegmentState,
    new: &SortedKeys<'_>,
    found: &mut dyn FnMut(u32, usize) -> Result<()>,
) -> Result<()> {
    debug_assert!(old.part(index.id()).is_none(), "segment {} has a part", old.id());
    for start in (0..old.segment.rows()).step_by(limits::BLOCK_ROWS) {
        let keys = block_keys(table.layout(), index, old, start)?;
        for (key, row) in keys.iter().zip(start as u32..) {
            if !index.may_repeat(key) {
                let values = nacre_types::key::decode(key, index.types())?;
                new.equal(&values)?.try_for_each(|at| found(row, at))?;
            }
        }
    }
    Ok(())
}
