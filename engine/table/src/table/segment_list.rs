//! The segments of a partition after one change, by sorted run, with lookup structures over all of
//! them.
//!
//! A list is immutable once it is published: its holder sees the same segments throughout. A change
//! copies the list of runs, whose number is logarithmic, and the runs that it changes; directories
//! of the other runs stay. A list does not say which of its segments a snapshot sees. Segments that
//! a merge has dropped are kept apart from the runs until no snapshot needs them, because they may
//! overlap what replaced them.

use crate::index::candidates::{Candidates, NOWHERE};
use crate::index::definition::Index;
use crate::index::directory::Directory;
use crate::index::hash::table::HashTable;
use crate::index::range::{KeyRange, successor};
use crate::layout::table_layout::TableLayout;
use crate::record::{KeySet, RunPlace};
use crate::segments::state::{DeletedRows, SegmentState};
use crate::table::run::Run;
use crate::table::segment_count::SegmentCount;
use crate::visits;
use nacre_host::fetched::Misses;
use nacre_types::hash::{Map, Set, hash_bytes};
use nacre_types::sorted::SortedMap;
use nacre_types::{Error, Result, Timestamp, Value, invariant};
use std::ops::{Index as At, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most segments of a partition, those included that only snapshots see.
pub(crate) const MAX_SEGMENTS: usize = if cfg!(test) { 3_000 } else { NOWHERE as usize - 1 };

/// Segments by run. A segment's *place* is its position in the sequence of all runs.
#[derive(Clone, Default)]
pub struct SegmentList {
    /// Runs of dropped segments, then those of the table, oldest first.
    runs: Vec<Arc<Run>>,
    /// How many runs of dropped segments there are.
    dropped: usize,
    /// For each run, the place of its first segment.
    starts: Vec<usize>,
    tables: Arc<HashTables>,
    /// Deleted rows of the segments of the table. All lists of a partition share it.
    deleted: DeletedRows,
}

/// Hash tables of all key sets. They may cover segments that are not in the list.
#[derive(Default)]
struct HashTables {
    all: Vec<Arc<HashTable>>,
    /// Counts changes.
    version: u64,
    /// Segments that some table covers.
    covered: Map<KeySet, Set<u64>>,
}

/// Finds the segments of a list that may have keys of an index.
pub(crate) struct IndexDirectory<'a> {
    list: &'a SegmentList,
    keys: KeySet,
    /// The place of the first segment, and the directory, of each run.
    runs: Vec<(usize, Arc<Directory>)>,
}

/// Makes the directory of segments, given those that hash tables cover.
type MakeDirectory<'a> = dyn Fn(&[Arc<SegmentState>], Option<&Set<u64>>) -> Directory + 'a;

impl At<usize> for SegmentList {
    type Output = Arc<SegmentState>;

    fn index(&self, place: usize) -> &Arc<SegmentState> {
        debug_assert!(place < self.len(), "place {place} in a list of {} segments", self.len());
        let run = self.starts.partition_point(|start| *start <= place) - 1;
        &self.runs[run].states()[place - self.starts[run]]
    }
}

impl SegmentList {
    /// All segments, by place.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<SegmentState>> + Clone {
        self.runs.iter().flat_map(|run| run.states()).inspect(|_| visits::add())
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        let last = self.starts.last().zip(self.runs.last());
        last.map_or(0, |(start, run)| start + run.states().len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Fails with a `limit` if no more than `MAX_SEGMENTS` segments could be listed after these many
    /// others are added.
    pub(crate) fn check_room(&self, added: usize) -> Result<()> {
        debug_assert!(self.len() <= MAX_SEGMENTS, "a list of {} segments", self.len());
        if added <= MAX_SEGMENTS - self.len() {
            return Ok(());
        }
        Err(Error::limit(format!("more than {MAX_SEGMENTS} segments of a partition"))
            .with_hint("merge them with OPTIMIZE TABLE … FULL, and end old transactions"))
    }

    /// How many segments and blocks a snapshot sees. Visits runs, not segments.
    pub(crate) fn count_at(&self, at: Timestamp) -> SegmentCount {
        let mut count = SegmentCount::default();
        self.runs.iter().for_each(|run| count += run.count_at(at));
        debug_assert!(
            count.segments <= self.len(),
            "a snapshot sees {} of {} segments",
            count.segments,
            self.len()
        );
        count
    }

    /// The rows of its segments that no commit has deleted. Visits runs, not segments.
    pub(crate) fn live_rows(&self) -> u64 {
        let rows: u64 = self.runs().iter().map(|run| run.rows()).sum();
        // More rows may have been deleted since the list was made.
        rows.saturating_sub(self.deleted.load(Ordering::Relaxed))
    }

    /// The runs of the table, oldest first.
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        debug_assert!(
            self.dropped <= self.runs.len(),
            "{} of {} runs have dropped segments",
            self.dropped,
            self.runs.len()
        );
        &self.runs[self.dropped..]
    }

    /// Bytes of what finds segments in it: lists, bounds and directories.
    pub(crate) fn directory_bytes(&self) -> usize {
        self.runs.iter().map(|run| run.memory_bytes()).sum()
    }

    /// The run with a number.
    pub(crate) fn run(&self, number: u64) -> Option<&Arc<Run>> {
        let runs = self.runs();
        let found = runs.binary_search_by_key(&number, |run| run.place().number).ok()?;
        Some(&runs[found])
    }

    /// The place of a segment.
    fn place(&self, id: u64) -> Option<usize> {
        let mut places = self.starts.iter().zip(&self.runs);
        places.find_map(|(start, run)| Some(start + run.position(id)?))
    }

    /// A segment by its id.
    pub(crate) fn segment(&self, id: u64) -> Option<&Arc<SegmentState>> {
        let found = self.place(id).map(|place| &self[place]);
        debug_assert!(
            found.is_none_or(|state| state.id() == id),
            "another segment is in the place of segment {id}"
        );
        found
    }

    /// The places of the segments of the table that another list of the partition does not have. Visits
    /// the runs that it has not either.
    pub(crate) fn places_beside(&self, other: &SegmentList) -> Vec<usize> {
        debug_assert!(
            self.starts.len() == self.runs.len(),
            "a run whose segments have no places is compared"
        );
        let is_same = |run: &Arc<Run>| other.runs.iter().any(|known| Arc::ptr_eq(known, run));
        let runs = self.starts.iter().zip(&self.runs).skip(self.dropped);
        let changed = runs.filter(|(_, run)| !is_same(run));
        let places = changed.flat_map(|(start, run)| *start..start + run.states().len());
        places.filter(|at| other.place(self[*at].id()).is_none()).collect()
    }

    /// Adds a segment as a run of its own.
    #[cfg(test)]
    pub(crate) fn push(&mut self, state: Arc<SegmentState>) {
        self.add(RunPlace { number: state.id(), level: 0 }, vec![state]);
    }

    /// Adds segments to a run, which is created if it does not exist. Its level is raised if it is
    /// below this one. Only under the commit lock, like every change.
    pub(crate) fn add(&mut self, place: RunPlace, states: Vec<Arc<SegmentState>>) {
        self.add_all([(place, states)]);
    }

    /// Adds segments to several runs, each of which may be named several times: a run is made anew
    /// once.
    pub(crate) fn add_all(
        &mut self,
        segments: impl IntoIterator<Item = (RunPlace, Vec<Arc<SegmentState>>)>,
    ) {
        let mut runs: SortedMap<u64, (RunPlace, Vec<Arc<SegmentState>>)> = SortedMap::new();
        for (place, states) in segments {
            let (known, all) = runs.or_insert_with(place.number, || (place, Vec::new()));
            debug_assert!(known.number == place.number, "a segment of another run is added");
            known.level = known.level.max(place.level);
            all.extend(states);
        }
        runs.into_values().for_each(|(place, states)| self.add_to_run(place, states));
        self.number();
    }

    /// A list that has other segments beside these, which are not the table's and counted apart.
    pub(crate) fn beside(
        &self,
        others: impl IntoIterator<Item = (RunPlace, Vec<Arc<SegmentState>>)>,
    ) -> SegmentList {
        let deleted = self.deleted.load(Ordering::Relaxed);
        let mut combined = SegmentList { deleted: Arc::new(deleted.into()), ..self.clone() };
        combined.add_all(others);
        debug_assert!(combined.len() >= self.len(), "a segment is not beside others");
        combined
    }

    fn add_to_run(&mut self, place: RunPlace, states: Vec<Arc<SegmentState>>) {
        let is_new = |state: &Arc<SegmentState>| {
            self.runs.iter().all(|run| run.position(state.id()).is_none())
        };
        invariant!(
            states.iter().all(is_new),
            "a segment added to run {} is listed already",
            place.number
        );
        states.iter().for_each(|state| state.count_deleted(&self.deleted));
        let at = self.runs[self.dropped..].partition_point(|run| run.place().number < place.number);
        let at = self.dropped + at;
        match self.runs.get(at).filter(|run| run.place().number == place.number) {
            Some(run) => {
                let level = run.place().level.max(place.level);
                let all = run.states().iter().cloned().chain(states).collect();
                self.runs[at] = Arc::new(Run::new(RunPlace { level, ..place }, all));
            }
            None if states.is_empty() => {}
            None => self.runs.insert(at, Arc::new(Run::new(place, states))),
        }
    }

    /// Takes segments that a commit drops out of their runs.
    pub(crate) fn drop_segments(&mut self, ids: &Set<u64>) {
        for state in self.take(ids) {
            let free = self.runs[..self.dropped].iter().position(|run| run.has_room(&state));
            let number = state.id();
            state.forget_deleted();
            match free {
                Some(at) => {
                    let all = self.runs[at].states().iter().cloned().chain([state]).collect();
                    self.runs[at] = Arc::new(self.runs[at].with_states(all));
                }
                None => {
                    let run = Run::of_dropped(RunPlace { number, level: 0 }, vec![state]);
                    self.runs.insert(self.dropped, Arc::new(run));
                    self.dropped += 1;
                }
            }
        }
        self.number();
        debug_assert!(
            self.runs().iter().all(|run| ids.iter().all(|id| run.position(*id).is_none())),
            "a dropped segment is in a run of the table"
        );
    }

    /// Moves segments to another run, without a change of the table's contents.
    pub(crate) fn adopt(&mut self, place: RunPlace, ids: &Set<u64>) {
        let adopted = self.take(ids);
        invariant!(adopted.len() == ids.len(), "a segment that is not listed changes its run");
        self.number();
        self.add(place, adopted);
    }

    /// Removes segments.
    pub(crate) fn remove(&mut self, ids: &Set<u64>) {
        let dropped: Set<u64> = self.runs[..self.dropped]
            .iter()
            .flat_map(|run| run.states().iter().map(|state| state.id()))
            .filter(|id| ids.contains(id))
            .collect();
        let removed = self.take(ids);
        debug_assert!(
            dropped.iter().all(|id| removed.iter().any(|state| state.id() == *id)),
            "a dropped segment stays"
        );
        let listed = removed.iter().filter(|state| !dropped.contains(&state.id()));
        listed.for_each(|state| state.forget_deleted());
        self.number();
    }

    /// Takes segments out of the runs that have them. Runs are not numbered afterwards.
    fn take(&mut self, ids: &Set<u64>) -> Vec<Arc<SegmentState>> {
        let mut taken = Vec::new();
        for run in &mut self.runs {
            if ids.iter().any(|id| run.position(*id).is_some()) {
                let is_gone = |state: &Arc<SegmentState>| ids.contains(&state.id());
                let (gone, kept) = run.states().iter().cloned().partition(is_gone);
                *run = Arc::new(run.with_states(kept));
                let gone: Vec<Arc<SegmentState>> = gone;
                taken.extend(gone);
            }
        }
        let is_empty = |run: &Arc<Run>| run.states().is_empty();
        self.dropped -= self.runs[..self.dropped].iter().filter(|run| is_empty(run)).count();
        self.runs.retain(|run| !is_empty(run));
        debug_assert!(
            taken.len() <= ids.len(),
            "{} segments are taken for {} numbers",
            taken.len(),
            ids.len()
        );
        debug_assert!(
            self.runs.iter().all(|run| ids.iter().all(|id| run.position(*id).is_none())),
            "a run keeps a segment that was taken out of it"
        );
        taken
    }

    /// Forgets what directories know of a segment, which got an index part.
    pub(crate) fn forget_directories(&mut self, id: u64) {
        for run in self.runs.iter_mut().filter(|run| run.position(id).is_some()) {
            *run = Arc::new(run.with_states(run.states().to_vec()));
        }
    }

    /// Replaces the hash tables.
    pub(crate) fn set_tables(&mut self, all: Vec<Arc<HashTable>>) {
        let mut covered: Map<KeySet, Set<u64>> = Map::default();
        for table in &all {
            covered.entry(table.keys()).or_default().extend(table.segments());
        }
        let version = self.tables.version + 1;
        self.tables = Arc::new(HashTables { all, version, covered });
    }

    /// Determines the places of all segments.
    fn number(&mut self) {
        let mut next = 0;
        self.starts.clear();
        for run in &self.runs {
            self.starts.push(next);
            next += run.states().len();
        }
        invariant!(next <= MAX_SEGMENTS, "a partition has {next} segments");
        debug_assert!(
            self.runs.iter().all(|run| !run.states().is_empty()),
            "a run without segments is listed"
        );
        debug_assert!(
            self.runs().is_sorted_by(|a, b| a.place().number < b.place().number),
            "runs are out of order"
        );
        debug_assert!(
            self.iter().map(|state| state.id()).collect::<Set<u64>>().len() == next,
            "a segment is listed twice"
        );
    }

    /// The hash tables of the primary key and of indexes.
    pub(crate) fn tables(&self) -> &[Arc<HashTable>] {
        &self.tables.all
    }

    /// The hash tables of one key set.
    pub(crate) fn tables_of(&self, keys: KeySet) -> impl Iterator<Item = &Arc<HashTable>> {
        self.tables().iter().filter(move |table| table.keys() == keys)
    }

    /// The segments that may hold the row of an encoded key: in a table ordered by its key, about
    /// one of each run.
    pub(crate) fn of_key(&self, layout: &TableLayout, key: &[u8]) -> Result<Candidates> {
        let mut found = match layout.sort_columns() {
            Some(_) => self.of_primary_key(layout).candidates(key)?,
            None => self.in_order(key)?,
        };
        debug_assert!(
            found.newest_first().all(|candidate| candidate.place < self.len()),
            "a key may be in a segment that is not listed"
        );
        if self.runs.iter().any(|run| run.is_filtered()) {
            found = found.with_hash(hash_bytes(key));
        }
        Ok(found)
    }

    /// The segments that may hold the row of a key by which the runs are ordered.
    fn in_order(&self, key: &[u8]) -> Result<Candidates> {
        debug_assert!(
            self.starts.len() == self.runs.len(),
            "a run whose segments have no places is searched"
        );
        let mut found = Candidates::default();
        let covered = self.tables.covered.get(&KeySet::Primary);
        for (start, run) in self.starts.iter().zip(&self.runs) {
            for at in run.with_key(key) {
                if covered.is_none_or(|covered| !covered.contains(&run.states()[at].id())) {
                    found.push((start + at) as u32, NOWHERE);
                }
            }
        }
        if covered.is_some() {
            self.in_tables(KeySet::Primary, key, &mut |place, position| {
                found.push(place as u32, position)
            })?;
        }
        found.sort();
        Ok(found)
    }

    /// Visits the places, and positions in them, that hash tables have for a key.
    fn in_tables(&self, keys: KeySet, key: &[u8], found: &mut dyn FnMut(usize, u32)) -> Result<()> {
        let hash = hash_bytes(key);
        Misses::each(self.tables_of(keys), |table| {
            table.find(hash, |segment, position| {
                let id = table.segments().get(segment);
                if let Some(place) = id.and_then(|id| self.place(*id)) {
                    found(place, position);
                }
            })
        })
    }

    /// The places of the segments that may have rows whose key begins with these values, ascending.
    /// `encoded` is their encoding.
    pub(crate) fn with_key_prefix(
        &self,
        layout: &TableLayout,
        prefix: &[Value],
        encoded: &[u8],
    ) -> Result<Vec<usize>> {
        if layout.sort_columns().is_some() {
            let range = KeyRange::equal(prefix.to_vec());
            return self.of_primary_key(layout).overlapping(&range);
        }
        let end = successor(encoded.to_vec());
        Ok(self.in_order_range(encoded, end.as_deref()).flatten().collect())
    }

    /// The places of the segments that may have rows in a range of the order of their runs, in
    /// ascending ranges. `to` is exclusive.
    pub(crate) fn in_order_range(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> impl Iterator<Item = Range<usize>> {
        debug_assert!(
            self.starts.len() == self.runs.len(),
            "a run whose segments have no places is searched for a range"
        );
        let runs = self.starts.iter().zip(&self.runs);
        runs.map(move |(start, run)| {
            let found = run.overlapping(from, to);
            debug_assert!(found.end <= run.states().len(), "{found:?} of one run");
            start + found.start..start + found.end
        })
    }

    /// The directory of the primary key of a table with another order.
    fn of_primary_key(&self, layout: &TableLayout) -> IndexDirectory<'_> {
        self.directory(KeySet::Primary, &|states, covered| {
            Directory::of_primary_key(layout, states, covered)
        })
    }

    /// The directory for the keys of an index.
    pub(crate) fn of_index(&self, index: &Index) -> IndexDirectory<'_> {
        self.directory(KeySet::Index(index.id()), &|states, covered| {
            Directory::of_index(index, states, covered)
        })
    }

    fn directory(&self, keys: KeySet, make: &MakeDirectory) -> IndexDirectory<'_> {
        debug_assert!(
            self.starts.len() == self.runs.len(),
            "a directory is made of a run whose segments have no places"
        );
        let HashTables { version, covered, .. } = &*self.tables;
        let covered = covered.get(&keys);
        let of_run = |run: &Arc<Run>| run.directory(keys, *version, |states| make(states, covered));
        let runs = self.starts.iter().zip(&self.runs).map(|(start, run)| (*start, of_run(run)));
        IndexDirectory { list: self, keys, runs: runs.collect() }
    }
}

impl IndexDirectory<'_> {
    /// The segments that may hold an encoded whole key without nulls.
    pub fn candidates(&self, key: &[u8]) -> Result<Candidates> {
        let mut found = Candidates::default();
        for (start, directory) in &self.runs {
            directory.stab(key, &mut |at| found.push((start + at) as u32, NOWHERE));
        }
        self.list.in_tables(self.keys, key, &mut |place, position| {
            let run = self.runs.partition_point(|(start, _)| *start <= place) - 1;
            let (start, directory) = &self.runs[run];
            if directory.is_in_tables(place - start) {
                found.push(place as u32, position);
            }
        })?;
        found.sort();
        debug_assert!(
            found.newest_first().all(|candidate| candidate.place < self.list.len()),
            "an index key may be in a segment that is not listed"
        );
        Ok(found)
    }

    /// The places of the segments of which it knows no range, as of those without an index part.
    pub fn without_range(&self) -> Vec<usize> {
        let mut places = Vec::new();
        for (start, directory) in &self.runs {
            places.extend(directory.without_range().map(|at| start + at));
        }
        debug_assert!(
            places.iter().all(|place| *place < self.list.len()),
            "a segment without a range is not listed"
        );
        places
    }

    /// The places of the segments that may hold keys of a range, ascending.
    pub fn overlapping(&self, range: &KeyRange) -> Result<Vec<usize>> {
        let mut found = Vec::new();
        for (start, directory) in &self.runs {
            directory.overlapping(range, &mut |at| found.push(start + at))?;
        }
        found.sort_unstable();
        debug_assert!(
            found.windows(2).all(|pair| pair[0] < pair[1]),
            "a segment overlaps a range twice"
        );
        Ok(found)
    }
}
