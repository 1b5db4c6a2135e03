//! A sorted run: segments of a partition whose ranges of the order key are disjoint. The order key
//! is the sort key, if there is one that the primary key does not begin with, then the primary key
//! or hidden row number.
//!
//! A run is immutable. The segments that may have a key are found by binary search over bounds that
//! are in memory. Source: O'Neil et al., *The Log-Structured Merge-Tree*, 1996; Prout et al.,
//! *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD 2022, section 2.1.2.

use crate::index::directory::Directory;
use crate::options::{MERGE_FROM, StoreOptions};
use crate::record::{KeySet, MAX_LEVEL, RunPlace};
use crate::segments::state::{FOREVER, SegmentState};
use crate::table::segment_count::SegmentCount;
use crate::table::statistics::RunSummary;
use crate::visits;
use nacre_segment::{OrderBounds, Segment};
use nacre_types::hash::Map;
use nacre_types::{Column, Result, Timestamp, invariant, limits};
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Segments with disjoint ranges, ascending.
pub(crate) struct Run {
    place: RunPlace,
    states: Vec<Arc<SegmentState>>,
    /// Ids and positions in `states`, by id.
    by_id: Vec<(u64, u32)>,
    /// Whether any segment has a key filter.
    is_filtered: bool,
    /// Rows of all its segments, deleted ones included.
    rows: u64,
    /// Whether its segments are dropped, or are about to be.
    is_dropped: bool,
    /// When its segments came and went, once a reader has asked.
    ages: OnceLock<Ages>,
    /// Statistics of columns that a reader has asked for, by column id.
    summaries: RwLock<Map<u32, Arc<RunSummary>>>,
    /// Directories of keys that have another order, with the version of the hash tables that they
    /// were made for.
    directories: RwLock<Vec<(KeySet, u64, Arc<Directory>)>>,
}

/// The commits that added and dropped segments, each ascending, with the blocks of the segments up to
/// that commit. They tell how many segments a snapshot sees without a visit to each.
struct Ages {
    created: Vec<(Timestamp, usize)>,
    dropped: Vec<(Timestamp, usize)>,
}

impl Ages {
    fn of(run: &Run) -> Ages {
        let up_to = |mut commits: Vec<(Timestamp, usize)>| {
            commits.sort_unstable();
            let mut blocks = 0;
            commits.iter_mut().for_each(|(_, of_one)| {
                blocks += *of_one;
                *of_one = blocks;
            });
            debug_assert!(
                commits.is_sorted_by_key(|(_, blocks)| *blocks),
                "blocks are taken out of a sum"
            );
            commits
        };
        let blocks = |state: &SegmentState| state.segment.blocks();
        let states = || run.states.iter().inspect(|_| visits::add());
        let gone = states().filter(|state| run.is_dropped && state.dropped_at() < FOREVER);
        debug_assert!(
            gone.clone().all(|state| state.created() <= state.dropped_at()),
            "a segment of run {} went before it came",
            run.place.number
        );
        Ages {
            created: up_to(states().map(|state| (state.created(), blocks(state))).collect()),
            dropped: up_to(gone.map(|state| (state.dropped_at(), blocks(state))).collect()),
        }
    }

    fn count_at(&self, at: Timestamp) -> SegmentCount {
        let up_to = |commits: &[(Timestamp, usize)]| {
            let segments = commits.partition_point(|(commit, _)| *commit <= at);
            let blocks = segments.checked_sub(1).map_or(0, |last| commits[last].1);
            SegmentCount { segments, blocks }
        };
        let (come, gone) = (up_to(&self.created), up_to(&self.dropped));
        debug_assert!(
            gone.segments <= come.segments && gone.blocks <= come.blocks,
            "{gone:?} of {come:?} are gone at {at}"
        );
        SegmentCount { segments: come.segments - gone.segments, blocks: come.blocks - gone.blocks }
    }
}

/// A run as reports show it.
pub struct RunSegments {
    /// Its number.
    pub number: u64,
    /// Its level.
    pub level: u8,
    /// The segments that no commit has dropped, ascending.
    pub segments: Vec<Arc<SegmentState>>,
}

impl Run {
    /// Creates a run of segments in any order.
    pub fn new(place: RunPlace, mut states: Vec<Arc<SegmentState>>) -> Run {
        let number = place.number;
        invariant!(place.level <= MAX_LEVEL, "run {number} has level {}", place.level);
        sort(&mut states);
        let overlap = overlap(&states);
        invariant!(overlap.is_none(), "segments {overlap:?} of run {number} overlap");
        let mut by_id: Vec<(u64, u32)> = states.iter().map(|s| s.id()).zip(0..).collect();
        by_id.sort_unstable();
        invariant!(
            by_id.windows(2).all(|pair| pair[0].0 != pair[1].0),
            "run {number} has a segment twice"
        );
        let is_filtered = states.iter().any(|state| state.has_key_filter());
        let rows = states.iter().map(|state| state.segment.rows() as u64).sum();
        Run {
            place,
            states,
            by_id,
            is_filtered,
            rows,
            is_dropped: false,
            ages: OnceLock::new(),
            summaries: RwLock::default(),
            directories: RwLock::default(),
        }
    }

    /// A run of segments that are dropped, or are about to be.
    pub fn of_dropped(place: RunPlace, states: Vec<Arc<SegmentState>>) -> Run {
        debug_assert!(!states.is_empty(), "a run of no dropped segments");
        Run { is_dropped: true, ..Run::new(place, states) }
    }

    /// The run with other segments.
    pub fn with_states(&self, states: Vec<Arc<SegmentState>>) -> Run {
        Run { is_dropped: self.is_dropped, ..Run::new(self.place, states) }
    }

    /// Rows of all its segments, deleted ones included.
    pub fn rows(&self) -> u64 {
        debug_assert!(
            self.rows <= (self.states.len() * limits::MAX_SEGMENT_ROWS) as u64,
            "{} rows of {} segments",
            self.rows,
            self.states.len()
        );
        self.rows
    }

    /// How many segments and blocks a snapshot sees.
    pub fn count_at(&self, at: Timestamp) -> SegmentCount {
        visits::add();
        if let Some(ages) = self.ages.get() {
            return ages.count_at(at);
        }
        let ages = Ages::of(self);
        let is_known = !self.is_dropped || ages.dropped.len() == self.states.len();
        let count = ages.count_at(at);
        debug_assert!(
            count.segments == self.states.iter().filter(|state| state.exists_at(at)).count(),
            "{} of {} segments are seen at {at}",
            count.segments,
            self.states.len()
        );
        if is_known {
            // Another thread may have been first.
            self.ages.get_or_init(|| ages);
        }
        count
    }

    /// Its number and level.
    pub fn place(&self) -> RunPlace {
        self.place
    }

    /// Its segments, ascending.
    pub fn states(&self) -> &[Arc<SegmentState>] {
        &self.states
    }

    /// Statistics of a column, gathered once. Fails only if bytes are absent.
    pub fn summary(&self, column: &Column) -> Result<Arc<RunSummary>> {
        visits::add();
        let known = self.summaries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&column.id) {
            return Ok(known.clone());
        }
        drop(known);
        debug_assert!(!self.is_dropped, "statistics of dropped segments are asked for");
        let made = Arc::new(RunSummary::of(&self.states, column)?);
        let mut known = self.summaries.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(column.id, made.clone());
        Ok(made)
    }

    /// Whether any segment has a key filter.
    pub fn is_filtered(&self) -> bool {
        self.is_filtered
    }

    /// Whether a transaction is about to delete rows of it.
    pub fn has_claims(&self) -> bool {
        self.states.iter().any(|state| state.claims().is_any())
    }

    /// Bytes of its lists, of the handles and bounds of its segments, and of the directories made so
    /// far.
    pub fn memory_bytes(&self) -> usize {
        let listed_state = |state: &Arc<SegmentState>| {
            let bounds = state.bounds();
            size_of::<SegmentState>()
                + state.handle_bytes()
                + bounds.first.len()
                + bounds.last.len()
        };
        let listed = size_of::<Arc<SegmentState>>() + size_of::<(u64, u32)>();
        let aged = |ages: &Ages| ages.created.len() + ages.dropped.len();
        let aged = self.ages.get().map_or(0, aged) * size_of::<(Timestamp, usize)>();
        let summaries = self.summaries.read().unwrap_or_else(PoisonError::into_inner).len();
        let summaries = summaries * size_of::<(u32, RunSummary)>();
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        self.states.iter().map(listed_state).sum::<usize>()
            + self.states.len() * listed
            + aged
            + summaries
            + known.iter().map(|(_, _, directory)| directory.memory_bytes()).sum::<usize>()
    }

    /// Its segments that no commit has dropped.
    pub fn current(&self) -> RunSegments {
        let current = self.states.iter().filter(|state| state.is_current());
        let RunPlace { number, level } = self.place;
        RunSegments { number, level, segments: current.cloned().collect() }
    }

    /// The position of a segment.
    pub fn position(&self, id: u64) -> Option<usize> {
        let found = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let at = self.by_id[found].1 as usize;
        debug_assert!(self.states[at].id() == id, "segment {id} is not where its run has it");
        Some(at)
    }

    /// Positions of the segments that may have order keys from `from` on and below `to`, which is
    /// unbounded if `None`. For a single key, almost always one at most.
    pub fn overlapping(&self, from: &[u8], to: Option<&[u8]>) -> Range<usize> {
        debug_assert!(to.is_none_or(|to| from <= to), "a range of keys ends before it begins");
        let is_below = |bound: &[u8], key: &[u8]| {
            visits::add();
            bound < key
        };
        let start = self.states.partition_point(|state| is_below(&state.bounds().last, from));
        let end = to.map_or(self.states.len(), |to| {
            self.states.partition_point(|state| is_below(&state.bounds().first, to))
        });
        start..end.max(start)
    }

    /// Positions of the segments that may have an order key.
    pub fn with_key(&self, key: &[u8]) -> Range<usize> {
        let start = self.states.partition_point(|state| state.bounds().last.as_slice() < key);
        let end = self.states.partition_point(|state| state.bounds().first.as_slice() <= key);
        start..end.max(start)
    }

    /// Whether all its rows come before those of a file, as far as their bounds tell.
    pub fn ends_before(&self, file: &Segment) -> bool {
        let last = self.states.last().map(|state| state.bounds());
        last.is_none_or(|last| file.order_bounds().is_some_and(|next| last.may_precede(next)))
    }

    /// Whether a segment could be added without overlapping another.
    pub fn has_room(&self, state: &SegmentState) -> bool {
        debug_assert!(
            self.position(state.id()).is_none(),
            "segment {} is added to a run that has it",
            state.id()
        );
        let bounds = state.bounds();
        let at = self.states.partition_point(|other| other.bounds().first < bounds.first);
        let (before, after) = self.states.split_at(at);
        before.last().is_none_or(|before| before.bounds().may_precede(bounds))
            && after.first().is_none_or(|after| bounds.may_precede(after.bounds()))
    }

    /// Whether a segment's bounds are apart from those of its neighbours, so that a segment with
    /// some of its rows has the same place. Long keys that begin alike have the same bounds; then
    /// segments are in the order in which they were written.
    pub fn is_apart(&self, at: usize) -> bool {
        debug_assert!(
            at < self.states.len(),
            "position {at} in a run of {} segments",
            self.states.len()
        );
        let is_before = |a: usize, b: usize| {
            let states = self.states.get(a).zip(self.states.get(b));
            states.is_none_or(|(a, b)| a.bounds().last < b.bounds().first)
        };
        at.checked_sub(1).is_none_or(|before| is_before(before, at)) && is_before(at, at + 1)
    }

    /// The directory of keys with another order than the run's, for a version of the hash tables.
    pub fn directory(
        &self,
        keys: KeySet,
        version: u64,
        make: impl FnOnce(&[Arc<SegmentState>]) -> Directory,
    ) -> Arc<Directory> {
        let known = self.directories.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(other, at, _): &&(KeySet, u64, _)| (*other, *at) == (keys, version);
        if let Some((_, _, directory)) = known.iter().find(is_it) {
            return directory.clone();
        }
        drop(known);
        let made = Arc::new(make(&self.states));
        let mut known = self.directories.write().unwrap_or_else(PoisonError::into_inner);
        // An older list may still ask with an older version, and makes its directory anew.
        known.retain(|(other, _, _)| *other != keys);
        known.push((keys, version, made.clone()));
        made
    }
}

fn sort(states: &mut [Arc<SegmentState>]) {
    fn ends(state: &SegmentState) -> (&[u8], &[u8], u64) {
        (&state.bounds().first, &state.bounds().last, state.id())
    }
    states.sort_by(|a, b| ends(a).cmp(&ends(b)));
}

/// The ids of two neighbouring segments that certainly overlap. The segments ascend.
fn overlap(states: &[Arc<SegmentState>]) -> Option<(u64, u64)> {
    let pair = states.windows(2).find(|pair| !pair[0].bounds().may_precede(pair[1].bounds()))?;
    Some((pair[0].id(), pair[1].id()))
}

/// The ids of two segments that cannot be in one run.
pub(crate) fn find_overlap(states: &[Arc<SegmentState>]) -> Option<(u64, u64)> {
    let mut sorted = states.to_vec();
    sort(&mut sorted);
    overlap(&sorted)
}

/// The level of a run with this many rows that take this many bytes uncompressed, if it was not
/// merged: a run [`MERGE_FROM`] times as large is one level higher. Long rows count as several.
pub(crate) fn level_of(rows: u64, raw_bytes: u64, options: &StoreOptions) -> u8 {
    let most_bytes = options.segment_bytes.max(1) as u128;
    let by_bytes = u128::from(raw_bytes) * options.segment_rows as u128 / most_bytes;
    // A size beyond `u64` counts as the largest.
    let size = rows.max(u64::try_from(by_bytes).unwrap_or(u64::MAX));
    let level = (size / limits::BLOCK_ROWS as u64).max(1).ilog(MERGE_FROM as u64);
    debug_assert!(level <= u32::from(MAX_LEVEL), "a run of {size} rows has level {level}");
    level as u8
}

/// The run of new files that were written one after the other, in order.
pub(crate) fn one_run<'a>(
    files: impl Iterator<Item = &'a Segment> + Clone,
    options: &StoreOptions,
) -> RunPlace {
    let rows = files.clone().map(|file| file.rows() as u64).sum();
    let bytes = files.clone().map(Segment::raw_bytes).fold(0, u64::saturating_add);
    let number = files.map(Segment::id).min();
    invariant!(number.is_some(), "a run of no files");
    RunPlace { number: number.unwrap_or(0), level: level_of(rows, bytes, options) }
}

/// The place of a new file at the end of a run, or in a new run.
pub(crate) fn place_at_end(run: Option<&Run>, file: &Segment, options: &StoreOptions) -> RunPlace {
    debug_assert!(
        run.is_none_or(|run| run.ends_before(file)),
        "file {} begins before the run that it is added to ends",
        file.id()
    );
    let before = run.into_iter().flat_map(|run| &run.states).map(|state| &*state.segment);
    let place = one_run(before.chain([file]), options);
    match run {
        Some(run) => RunPlace { level: place.level.max(run.place.level), ..run.place },
        None => place,
    }
}

/// Divides new files into as few runs as possible, and returns the run of each.
pub(crate) fn new_runs(files: &[&Segment], options: &StoreOptions) -> Vec<RunPlace> {
    let bounds_of = |at: &usize| files[*at].order_bounds().map(|bounds| &**bounds);
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|at| bounds_of(at).map(|bounds| &bounds.first));
    let mut runs: Vec<(Option<&OrderBounds>, Vec<usize>)> = Vec::new();
    for at in order {
        let bounds = bounds_of(&at);
        let is_before = |last: Option<&OrderBounds>| {
            last.zip(bounds).is_some_and(|(last, bounds)| last.last < bounds.first)
        };
        match runs.iter_mut().find(|(last, _)| is_before(*last)) {
            Some((last, members)) => {
                *last = bounds;
                members.push(at);
            }
            None => runs.push((bounds, vec![at])),
        }
    }
    let mut places = vec![RunPlace { number: 0, level: 0 }; files.len()];
    for (_, members) in runs {
        let place = one_run(members.iter().map(|at| files[*at]), options);
        members.into_iter().for_each(|at| places[at] = place);
    }
    debug_assert!(places.iter().all(|place| place.number > 0), "a new file is in no run");
    places
}
