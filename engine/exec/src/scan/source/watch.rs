//! What is seen of the clauses in the block that a scan reads, between two decisions.

use crate::scan::filter::adaptive::decision::{Deciding, Decision, Trial};
use crate::scan::filter::adaptive::estimates::Observations;
use crate::scan::filter::adaptive::learned::Learned;
use crate::scan::upcoming::Upcoming;
use std::sync::Arc;

/// The block that is read: how its ranges are filtered, and what they have shown.
pub(in crate::scan) struct Watch {
    learned: Arc<Learned>,
    /// `None` before the first block, and without clauses.
    decision: Option<Arc<Decision>>,
    seen: Observations,
}

impl Watch {
    /// Nothing decided yet.
    pub fn new(learned: Arc<Learned>) -> Watch {
        Watch { learned, decision: None, seen: Observations::default() }
    }

    /// Reports what was seen and takes the decision for the next block.
    pub fn begin_block(&mut self, segment: u64, deciding: Deciding<'_>) {
        let seen = self.decision.is_some().then_some(&self.seen);
        self.decision = Some(self.learned.next(segment, deciding, seen));
        self.seen = Observations::none(deciding.clauses.leaves.len(), deciding.needed.len());
    }

    /// What is read ahead.
    pub(super) fn upcoming(&self) -> &Upcoming {
        &self.learned.upcoming
    }

    /// What evaluates the clauses; `None` if there are none.
    pub(super) fn parts(&mut self) -> Option<(&Learned, &Decision, &mut Observations)> {
        Some((&self.learned, self.decision.as_ref()?, &mut self.seen))
    }

    /// Whether the time of each range is wanted.
    pub(super) fn times_ranges(&self) -> bool {
        self.decision.as_ref().is_some_and(|decision| decision.trial == Trial::Whole)
    }

    /// Notes the time of a range.
    pub(super) fn note_range(&mut self, rows: usize, ns: u64) {
        let group = self.decision.as_ref().is_some_and(|decision| decision.group);
        let timing = if group { &mut self.seen.as_group } else { &mut self.seen.by_clause };
        timing.add(rows, ns);
    }
}
