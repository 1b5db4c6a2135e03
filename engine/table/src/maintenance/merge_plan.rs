//! Chooses what to merge next.
//!
//! Once [`StoreOptions::merge_from`] runs of a partition have one level, they are merged into a run of the next level.
//! So a logarithmic number of runs remains, and each row is rewritten a logarithmic number of times.
//! A merge goes on slice by slice, each of them a commit: between slices, a merge of a lower level
//! may come first, or the database may be closed. What is left of the runs is then merged as any
//! others are, and appended to the run that the earlier slices wrote if it still fits there.

use crate::options::{MERGE_FROM, StoreOptions};
use crate::record::{MAX_LEVEL, Place};
use crate::segments::state::SegmentState;
use crate::table::run::Run;
use crate::table::segment_list::SegmentList;
use nacre_segment::SegmentBuilder;
use nacre_types::hash::{Map, Set};
use nacre_types::invariant;
use std::sync::Arc;

/// Most runs merged at once, since a block of every column of each is in memory.
const MAX_FAN_IN: usize = 16;
const _: () = assert!(1 < MERGE_FROM && MERGE_FROM <= MAX_FAN_IN);

/// What one slice of a merge reads, and where its rows go.
pub(crate) struct Slice {
    /// Runs to read, from their first row that is not deleted.
    pub sources: Vec<Arc<Run>>,
    /// Only this segment of the one source is rewritten, into the same run.
    pub rewritten: Option<u64>,
    /// The run that takes the rows; a new one if `None`.
    pub output: Option<u64>,
    /// Runs that may take the rows instead of a new one, if they end before the first row.
    pub extendable: Vec<Arc<Run>>,
    /// The level of the output, unless it becomes so large that it is higher.
    pub level: u8,
    /// Whether the result must be compact.
    pub is_full: bool,
}

/// A merge of several runs into one.
struct Goal {
    sources: Vec<u64>,
    /// Runs to merge with the result.
    waiting: Vec<u64>,
    output: Option<u64>,
    level: u8,
    /// Whether all runs of the partition are merged into one.
    is_full: bool,
}

/// The merges that go on, by partition. They are not stored.
#[derive(Default)]
pub(crate) struct Goals(Map<Place, Vec<Goal>>);

impl Goals {
    /// The next slice in a partition; `None` if nothing is worth merging. `runs` are those of the
    /// list that can be merged.
    pub fn next(
        &mut self,
        place: Place,
        list: &SegmentList,
        runs: &[Arc<Run>],
        options: &StoreOptions,
    ) -> Option<Slice> {
        let goals = self.0.entry(place).or_default();
        goals.retain_mut(|goal| goal.is_left(list));
        if let Some((run, dead)) = mostly_deleted(goals, runs) {
            return Some(Slice::rewrite(run, dead));
        }
        // Those whose rows a transaction has claimed wait for it, which may take long. Others do not.
        let is_ready = |goal: &&Goal| goal.is_unclaimed(list);
        let free = free(goals, runs);
        // Merges of low levels are short, and keep the number of runs small.
        let level = goals.iter().filter(is_ready).map(|goal| goal.level).min();
        if let Some(goal) = new_goal(&free, level, options) {
            goals.push(goal);
        }
        let goal = goals.iter().filter(is_ready).min_by_key(|goal| (goal.is_full, goal.level))?;
        invariant!(
            goal.output.is_none_or(|output| !goal.sources.contains(&output)),
            "a merge reads run {:?}, which it writes",
            goal.output
        );
        let is_source = |run: &Run| goal.sources.contains(&run.place().number);
        let extendable = |run: &&&Arc<Run>| run.place().level == goal.level && !is_source(run);
        Some(Slice {
            sources: goal.sources.iter().filter_map(|run| list.run(*run)).cloned().collect(),
            rewritten: None,
            output: goal.output,
            extendable: match goal.is_full {
                true => Vec::new(),
                false => free.iter().filter(extendable).map(|run| (*run).clone()).collect(),
            },
            level: goal.level,
            is_full: goal.is_full,
        })
    }

    /// Whether there is a next slice in a partition that can begin: see [`Goals::next`].
    pub fn has_next(
        &self,
        place: Place,
        list: &SegmentList,
        runs: &[Arc<Run>],
        options: &StoreOptions,
    ) -> bool {
        let goals = self.0.get(&place).map_or(&[][..], Vec::as_slice);
        let is_left = |goal: &Goal| {
            let mut sources = goal.sources.iter().chain(&goal.waiting);
            sources.any(|run| list.run(*run).is_some())
        };
        if goals.iter().any(|goal| is_left(goal) && goal.is_unclaimed(list)) {
            return true;
        }
        debug_assert!(
            runs.iter().all(|run| list.run(run.place().number).is_some()),
            "a run that is not listed could be merged"
        );
        mostly_deleted(goals, runs).is_some()
            || new_goal(&free(goals, runs), None, options).is_some()
    }

    /// Plans to merge these runs of a partition into one, unless that is done.
    pub fn merge_all(&mut self, place: Place, runs: &[Arc<Run>], options: &StoreOptions) {
        if let [only] = runs
            && is_compact(only, options)
        {
            return;
        }
        let mut runs: Vec<&Arc<Run>> = runs.iter().collect();
        runs.sort_by_key(|run| (run.place().level, run.states().len()));
        let level = runs.iter().map(|run| run.place().level).max().unwrap_or(0);
        let mut sources: Vec<u64> = runs.iter().map(|run| run.place().number).collect();
        let waiting = sources.split_off(sources.len().min(MAX_FAN_IN));
        let level = (level + 1).min(MAX_LEVEL);
        // Merges of some of the runs are not needed any more.
        self.0.insert(place, vec![Goal { sources, waiting, output: None, level, is_full: true }]);
    }

    /// Whether all runs of a partition are being merged into one.
    pub fn is_merging_all(&mut self, place: Place, list: &SegmentList) -> bool {
        let goals = self.0.entry(place).or_default();
        goals.retain_mut(|goal| goal.is_left(list));
        goals.iter().any(|goal| goal.is_full)
    }

    /// Notes which run the next slices of a merge go on with.
    pub fn wrote(&mut self, place: Place, slice: &Slice) {
        let goals = self.0.entry(place).or_default();
        let sources = || slice.sources.iter().map(|run| run.place().number);
        let is_of = |goal: &&mut Goal| sources().any(|run| goal.sources.contains(&run));
        if let Some(goal) = goals.iter_mut().find(is_of).filter(|_| slice.rewritten.is_none()) {
            invariant!(
                goal.output.is_none() || goal.output == slice.output,
                "a merge into run {:?} has written run {:?}",
                goal.output,
                slice.output
            );
            goal.output = slice.output;
        }
    }

    /// Gives up the merges of a partition.
    pub fn forget(&mut self, place: Place) {
        self.0.remove(&place);
    }
}

/// A segment that is mostly deleted, and its run, which no merge reads.
fn mostly_deleted<'a>(goals: &[Goal], runs: &'a [Arc<Run>]) -> Option<(&'a Arc<Run>, u64)> {
    runs.iter().filter(|run| !goals.iter().any(|goal| goal.reads(run))).find_map(|run| {
        let mut dead = run.states().iter().enumerate();
        let (_, dead) = dead.find(|(at, state)| state.is_mostly_deleted() && run.is_apart(*at))?;
        Some((run, dead.id()))
    })
}

/// The runs that no merge reads or writes.
fn free<'a>(goals: &[Goal], runs: &'a [Arc<Run>]) -> Vec<&'a Arc<Run>> {
    let is_used = |run: &Run| {
        goals.iter().any(|goal| goal.reads(run) || goal.output == Some(run.place().number))
    };
    runs.iter().filter(|run| !is_used(run)).collect()
}

/// A merge of the lowest level that has enough runs, if it is below `level`.
fn new_goal(runs: &[&Arc<Run>], level: Option<u8>, options: &StoreOptions) -> Option<Goal> {
    let enough = options.merge_from.max(2);
    let levels: Set<u8> = runs.iter().map(|run| run.place().level).collect();
    let mut levels: Vec<u8> = levels.into_iter().collect();
    levels.sort_unstable();
    for of in levels {
        let members = runs.iter().filter(|run| run.place().level == of);
        let mut sources: Vec<u64> = members.map(|run| run.place().number).collect();
        let next = (of + 1).min(MAX_LEVEL);
        if sources.len() >= enough && level.is_none_or(|level| next < level) {
            sources.truncate(MAX_FAN_IN);
            debug_assert!(sources.len() > 1, "a merge of one run of level {of} is planned");
            return Some(Goal {
                sources,
                waiting: Vec::new(),
                output: None,
                level: next,
                is_full: false,
            });
        }
    }
    None
}

/// Whether a run has no deleted rows and no two neighbours that would fit into one segment.
fn is_compact(run: &Run, options: &StoreOptions) -> bool {
    let fit = |a: &SegmentState, b: &SegmentState| {
        let sum = |of: fn(&SegmentState) -> u64| of(a).saturating_add(of(b));
        sum(|state| state.segment.rows() as u64) <= options.segment_rows as u64
            && sum(|state| state.segment.raw_bytes()) <= options.segment_bytes as u64
    };
    run.states().iter().all(|state| state.deleted_rows() == 0)
        && !run.states().windows(2).any(|pair| fit(&pair[0], &pair[1]))
}

impl Goal {
    /// Whether the merge reads a run, now or later.
    fn reads(&self, run: &Run) -> bool {
        let number = run.place().number;
        self.sources.contains(&number) || self.waiting.contains(&number)
    }

    /// Whether no transaction has claimed rows of what it reads next.
    fn is_unclaimed(&self, list: &SegmentList) -> bool {
        let mut sources = self.sources.iter().filter_map(|run| list.run(*run)).peekable();
        if sources.peek().is_some() {
            return !sources.any(|run| run.has_claims());
        }
        // Those that wait are merged with the run that it has written.
        let mut next = self.waiting.iter().chain(&self.output).filter_map(|run| list.run(*run));
        !next.any(|run| run.has_claims())
    }

    /// Whether there is something left to merge.
    fn is_left(&mut self, list: &SegmentList) -> bool {
        let is_there = |run: &u64| list.run(*run).is_some();
        self.sources.retain(is_there);
        self.waiting.retain(is_there);
        if self.sources.is_empty() && !self.waiting.is_empty() {
            let next = self.waiting.len().min(MAX_FAN_IN - 1);
            self.sources = self.waiting.drain(..next).collect();
            self.sources.extend(self.output.take());
        }
        debug_assert!(
            self.sources.len() <= MAX_FAN_IN,
            "{} runs are merged at once",
            self.sources.len()
        );
        !self.sources.is_empty()
    }
}

impl Slice {
    /// Rewrites one segment without its deleted rows.
    fn rewrite(run: &Arc<Run>, id: u64) -> Slice {
        invariant!(
            run.position(id).is_some(),
            "segment {id} is rewritten into run {}, which does not have it",
            run.place().number
        );
        Slice {
            sources: vec![run.clone()],
            rewritten: Some(id),
            output: Some(run.place().number),
            extendable: Vec::new(),
            level: run.place().level,
            is_full: false,
        }
    }

    /// Chooses a run to append to, if none is given and there is one that ends before `least`.
    pub fn extend(&mut self, least: &[u8]) {
        if self.output.is_none() {
            let ends_before = |run: &&Arc<Run>| {
                run.states().last().is_some_and(|state| state.bounds().last.as_slice() < least)
            };
            self.output = self.extendable.iter().find(ends_before).map(|run| run.place().number);
        }
    }
}

/// Whether a segment is so full that it need not be joined with its neighbours.
pub(super) fn is_filled(rows: u64, raw_bytes: u64, is_full: bool, options: &StoreOptions) -> bool {
    let is_filled = |size: u64, most: usize| match is_full {
        true => size >= most as u64 / 4 * 3,
        false => size >= (most as u64 / 2).max(1),
    };
    is_filled(rows, options.segment_rows) || is_filled(raw_bytes, options.segment_bytes)
}

/// Whether the file that is collected takes no more rows.
pub(super) fn is_full(builder: &SegmentBuilder, options: &StoreOptions) -> bool {
    let rows = builder.rows();
    debug_assert!(
        rows <= options.segment_rows,
        "a file of a merge has {rows} rows of {} at most",
        options.segment_rows
    );
    rows >= options.segment_rows || rows > 0 && builder.memory_bytes() >= options.segment_bytes
}
