//! The rows of a pipeline, made by several threads and given out in the order of one.

use super::{Morsel, for_each_morsel};
use crate::context::{Context, Operator, Step};
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_types::Result;
use std::collections::VecDeque;

/// Morsels a thread works on before what they gave is given out.
const ROUND_MORSELS: usize = 2;

/// See the module. Works in rounds: what a round gives is held until it is given out.
pub(super) struct Gather {
    plan: Plan,
    morsels: VecDeque<Morsel>,
    ready: VecDeque<Batch>,
    /// Morsels of a round; fewer when they give much.
    round: usize,
}

impl Gather {
    pub fn new(plan: Plan, morsels: Vec<Morsel>) -> Gather {
        Gather { plan, morsels: morsels.into(), ready: VecDeque::new(), round: usize::MAX }
    }

    fn run_round(&mut self, context: &Context<'_>) -> Result<()> {
        let size = self.round.min(context.threads.count * ROUND_MORSELS).clamp(1, self.morsels.len());
        let morsels: Vec<Morsel> = self.morsels.drain(..size).collect();
        let plan = &self.plan;
        let done = for_each_morsel(&morsels, context, &|| Ok(Vec::new()), &|out, at, context| {
            let mut operator = crate::build(plan, context)?;
            while let Step::Batch(batch) = operator.next(context)? {
                out.push((at, batch));
            }
            Ok(())
        })?;
        let mut batches: Vec<(usize, Batch)> = done.into_iter().flatten().collect();
        // Stable: those of one morsel stay in their order.
        batches.sort_by_key(|(at, _)| *at);
        let held: usize = batches.iter().flat_map(|(_, b)| &b.columns).map(|c| c.memory_bytes()).sum();
        if held > context.memory_limit / 4 {
            self.round = (size / 2).max(1);
        }
        self.ready = batches.into_iter().map(|(_, batch)| batch).collect();
        Ok(())
    }
}

impl Operator for Gather {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        loop {
            context.check_cancelled()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Step::Batch(batch));
            }
            if self.morsels.is_empty() {
                return Ok(Step::Done);
            }
            self.run_round(context)?;
        }
    }
}
