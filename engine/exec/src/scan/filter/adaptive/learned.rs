//! What a scan learns about its clauses while it runs, shared by its threads.
//!
//! Each segment begins with the estimates of the segment before it; the first one with a block that
//! only counts the rows that pass. The next blocks measure, as long as they are a small part of all
//! blocks: first every clause by every strategy, then whole blocks clause by clause and as a group.
//! Times of a block are the least of its ranges, so what is done once, such as decoding a
//! dictionary, does not count.

use super::decision::{Deciding, Decision, Trial};
use super::estimates::{Estimates, Observations};
use crate::scan::filter::clauses::{Clause, Clauses, Test};
use crate::scan::spec::ScanSpec;
use crate::scan::upcoming::Upcoming;
use nacre_column::{Bitmap, Values};
use nacre_operator::context::Context;
use nacre_operator::context::statistics::Describe;
use nacre_sql::{ScanStrategy, path_text};
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Blocks that a scan reads for each block in which every strategy of every clause is measured.
const BLOCKS_PER_TRIAL: usize = 16;
/// The same for a block in which only the time of a whole range is measured.
const BLOCKS_PER_WHOLE: usize = 4;
/// After this many blocks all decisions of a segment are reconsidered, not only the order.
const RECONSIDER_BLOCKS: usize = 16;
/// The most segments that are remembered; threads read few at the same time.
const SEGMENTS: usize = 32;

/// The results of a clause for the entries of a dictionary.
#[derive(Debug)]
pub(in crate::scan) struct Truths {
    values: Weak<Values>,
    /// A bit for each code.
    pub passes: Bitmap,
    /// Whether null passes.
    pub null_passes: bool,
}

impl Truths {
    /// The results for these entries.
    pub fn new(values: &Arc<Values>, passes: Bitmap, null_passes: bool) -> Truths {
        debug_assert_eq!(values.len(), passes.len(), "a result for each entry");
        Truths { values: Arc::downgrade(values), passes, null_passes }
    }
}

/// What a scan has learned.
#[derive(Debug)]
pub(crate) struct Learned {
    strategy: ScanStrategy,
    /// Names of the output columns.
    names: Vec<String>,
    state: Mutex<State>,
    /// What is read ahead of absent bytes.
    pub(in crate::scan) upcoming: Upcoming,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks that are read without measuring, to pay for trials.
    credit: usize,
    /// In the order in which they were met.
    segments: Vec<Segment>,
    /// The decision that a setting fixes.
    fixed: Option<Arc<Decision>>,
    counts: Counts,
}

/// Numbers for `PROFILE`.
#[derive(Debug, Default)]
struct Counts {
    labels: Vec<String>,
    blocks: usize,
    group: usize,
    measured: usize,
    reordered: usize,
    /// Blocks in which a leaf tested encoded values.
    encoded: Vec<usize>,
}

#[derive(Debug)]
struct Segment {
    id: u64,
    estimates: Estimates,
    decision: Arc<Decision>,
    stage: Stage,
    /// Blocks since all decisions were made.
    blocks: usize,
    /// After how many blocks the order may change again: more each time that it does, because clauses
    /// that depend on each other look better in each other's place.
    patience: usize,
    truths: Vec<Option<Arc<Truths>>>,
}

/// The next thing to measure in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing: first, the rows that pass each clause are counted, which says what is worth
    /// measuring.
    Shares,
    Leaves,
    ByClause,
    AsGroup,
    Measured,
}

impl Learned {
    /// Nothing learned yet. A profile of the statement will describe what is learned.
    pub(in crate::scan) fn new(spec: ScanSpec<'_>, context: &Context<'_>) -> Arc<Learned> {
        let name = |at: &usize| spec.schema.columns[*at].name.clone();
        let is_profiled = context.profile.is_some();
        let paths = spec.paths.iter().map(|path| path_text(spec.schema, path));
        let names = is_profiled.then(|| spec.projection.iter().map(name).chain(paths).collect());
        let learned = Arc::new(Learned {
            strategy: context.scan_strategy,
            names: names.unwrap_or_default(),
            state: Mutex::default(),
            upcoming: Upcoming::default(),
        });
        if is_profiled {
            context.statistics.describe(learned.clone());
        }
        learned
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the scan will read more blocks.
    pub(in crate::scan) fn expect(&self, blocks: usize) {
        self.state().credit += blocks;
    }

    /// The decision for the next block of a segment, after what was seen of the blocks before.
    pub(in crate::scan) fn next(
        &self,
        segment: u64,
        deciding: Deciding<'_>,
        seen: Option<&Observations>,
    ) -> Arc<Decision> {
        let mut state = self.state();
        let state = &mut *state;
        if self.strategy != ScanStrategy::Adaptive && state.fixed.is_none() {
            state.fixed = Some(Arc::new(Decision::fixed(self.strategy, deciding.clauses)));
        }
        let at = state.place_of(segment, deciding);
        let own = &mut state.segments[at];
        if let Some(seen) = seen {
            own.estimates.add(seen);
        }
        let decision = match &state.fixed {
            Some(fixed) => fixed.clone(),
            None => own.decide(deciding, &mut state.credit, &mut state.counts),
        };
        if !self.names.is_empty() {
            state.counts.add(&decision, deciding.clauses, &self.names);
        }
        decision
    }

    /// The results of a leaf for the entries of a segment's dictionary, if they are known.
    pub(in crate::scan) fn truths(
        &self,
        segment: u64,
        leaf: usize,
        values: &Arc<Values>,
    ) -> Option<Arc<Truths>> {
        let state = self.state();
        let own = state.segments.iter().find(|known| known.id == segment)?;
        let truths = own.truths.get(leaf)?.as_ref()?;
        // The same allocation: it lives as long as a weak reference to it.
        std::ptr::eq(truths.values.as_ptr(), Arc::as_ptr(values)).then(|| truths.clone())
    }

    /// Keeps the results of a leaf for a segment's dictionary.
    pub(in crate::scan) fn keep_truths(&self, segment: u64, leaf: usize, truths: Arc<Truths>) {
        let mut state = self.state();
        let own = state.segments.iter_mut().find(|known| known.id == segment);
        if let Some(place) = own.and_then(|own| own.truths.get_mut(leaf)) {
            *place = Some(truths);
        }
    }
}

impl State {
    /// The place of a segment, which is added if it is new.
    fn place_of(&mut self, id: u64, deciding: Deciding<'_>) -> usize {
        if let Some(at) = self.segments.iter().rposition(|known| known.id == id) {
            return at;
        }
        if self.segments.len() == SEGMENTS {
            self.segments.remove(0);
        }
        let clauses = deciding.clauses;
        let (estimates, decision, stage) = match self.segments.last() {
            Some(last) => (last.estimates.for_another(), last.decision.clone(), Stage::Leaves),
            None => {
                let guessed = Estimates::guess(clauses, deciding.needed.len());
                let decision = Decision::best(&clauses.tree, deciding, &guessed);
                (guessed, Arc::new(decision), Stage::Shares)
            }
        };
        let truths = vec![None; clauses.leaves.len()];
        self.segments.push(Segment {
            id,
            estimates,
            decision,
            stage,
            blocks: 0,
            patience: 0,
            truths,
        });
        self.segments.len() - 1
    }
}

impl Segment {
    fn decide(
        &mut self,
        deciding: Deciding<'_>,
        credit: &mut usize,
        counts: &mut Counts,
    ) -> Arc<Decision> {
        let is_first = self.stage == Stage::Shares;
        if let Some(trial) = self.trial(deciding, credit) {
            self.blocks = RECONSIDER_BLOCKS;
            return Arc::new(trial);
        }
        let is_due = self.blocks >= RECONSIDER_BLOCKS;
        let may_reorder = self.blocks >= self.patience;
        if is_due || may_reorder && !self.decision.is_ordered(deciding, &self.estimates) {
            let best = Decision::best(&self.decision.tree, deciding, &self.estimates);
            let is_reordered = best.tree != self.decision.tree;
            self.patience = match is_reordered {
                true => (self.patience * 2).clamp(1, RECONSIDER_BLOCKS),
                false => self.patience / 2,
            };
            if best != *self.decision {
                counts.reordered += usize::from(is_reordered);
                self.decision = Arc::new(best);
            }
            self.blocks = 0;
        }
        // What the first block shows counts at once.
        self.blocks = if is_first { RECONSIDER_BLOCKS } else { self.blocks + 1 };
        self.decision.clone()
    }

    /// What to measure in the next block, if the scan can afford it.
    fn trial(&mut self, deciding: Deciding<'_>, credit: &mut usize) -> Option<Decision> {
        let cost = match self.stage {
            Stage::Shares => {
                self.stage = Stage::Leaves;
                return None;
            }
            Stage::Leaves => BLOCKS_PER_TRIAL,
            Stage::ByClause | Stage::AsGroup => BLOCKS_PER_WHOLE,
            Stage::Measured => return None,
        };
        if self.stage == Stage::ByClause && !self.decision.may_group(deciding, &self.estimates) {
            self.stage = Stage::Measured;
            return None;
        }
        *credit = credit.checked_sub(cost)?;
        let best = Decision::best(&self.decision.tree, deciding, &self.estimates);
        let (next, trial) = match self.stage {
            Stage::Leaves if deciding.clauses.leaves.len() > 1 => (Stage::ByClause, Trial::Leaves),
            Stage::Leaves => (Stage::Measured, Trial::Leaves),
            Stage::ByClause => (Stage::AsGroup, Trial::Whole),
            _ => (Stage::Measured, Trial::Whole),
        };
        let group = self.stage == Stage::AsGroup;
        self.stage = next;
        Some(Decision { group, trial, ..best })
    }
}

impl Counts {
    fn add(&mut self, decision: &Decision, clauses: &Clauses, names: &[String]) {
        let name = |column: &usize| names.get(*column).map_or("", String::as_str);
        if self.labels.is_empty() {
            self.encoded = vec![0; clauses.leaves.len()];
            let label = |leaf: &crate::scan::filter::clauses::Leaf| {
                let columns: Vec<&str> = leaf.columns.iter().map(name).collect();
                let of_join =
                    if matches!(leaf.test, Test::Joined { .. }) { "join on " } else { "" };
                format!("{of_join}{}", columns.join(", "))
            };
            self.labels = clauses.leaves.iter().map(label).collect();
        }
        self.blocks += 1;
        self.measured += usize::from(decision.trial != Trial::Nothing);
        self.group += usize::from(decision.group);
        if !decision.group {
            let encoded = self.encoded.iter_mut().zip(&decision.encoded);
            encoded.for_each(|(count, encoded)| *count += usize::from(*encoded));
        }
    }
}

impl Describe for Learned {
    fn describe(&self) -> Option<String> {
        let state = self.state();
        let (own, counts) = (state.segments.last()?, &state.counts);
        let decision = state.fixed.as_ref().unwrap_or(&own.decision);
        let mut text = String::new();
        describe(&decision.tree, decision, own, counts, &mut text);
        let _ = write!(
            text,
            "; blocks={} group={} measured={} reordered={}",
            counts.blocks, counts.group, counts.measured, counts.reordered
        );
        Some(text)
    }
}

fn describe(node: &Clause, decision: &Decision, own: &Segment, counts: &Counts, out: &mut String) {
    let (list, word) = match node {
        Clause::Leaf(at) => {
            let leaf = &own.estimates.leaves[*at];
            let (strategy, cost) = match (decision.group, decision.encoded[*at]) {
                (true, _) => ("group", leaf.regular),
                (false, true) => ("encoded", leaf.encoded),
                (false, false) => ("regular", leaf.regular),
            };
            let _ = write!(
                out,
                "[{}: {strategy} p={:.3} ns={:.2} encoded={}]",
                counts.labels.get(*at).map_or("", String::as_str),
                leaf.share(),
                cost.ns(),
                counts.encoded.get(*at).copied().unwrap_or(0),
            );
            return;
        }
        Clause::All(list) => (list, " and "),
        Clause::Any(list) => (list, " or "),
    };
    let is_root = out.is_empty();
    out.push_str(if is_root { "" } else { "(" });
    for (at, clause) in list.iter().enumerate() {
        out.push_str(if at > 0 { word } else { "" });
        describe(clause, decision, own, counts, out);
    }
    out.push_str(if is_root { "" } else { ")" });
}
