//! The rows of a pipeline, made by several threads and given out in the order of one.

use super::{Builds, Morsel, for_each_morsel};
use crate::context::{Context, Operator, Step};
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_types::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// Morsels a thread works on before what they gave is given out.
const ROUND_MORSELS: usize = 2;

/// See the module. Works in rounds: what a round gives is held until it is given out.
pub(super) struct Gather {
    plan: Arc<Plan>,
    morsels: VecDeque<Morsel>,
    builds: Option<Builds>,
    ready: VecDeque<Batch>,
    /// A morsel gives more than can be held: from there on they are read one by one, without holding anything.
    alone: bool,
    current: Option<Box<dyn Operator>>,
}

impl Gather {
    pub fn new(plan: Arc<Plan>, morsels: Vec<Morsel>) -> Gather {
        Gather { plan, morsels: morsels.into(), builds: None, ready: VecDeque::new(), alone: false, current: None }
    }

    /// Works on the next morsels. False when what they give cannot be held; then they are still to be read.
    fn run_round(&mut self, context: &Context<'_>) -> Result<bool> {
        let size = (context.threads.count * ROUND_MORSELS).clamp(1, self.morsels.len());
        let plan: &Plan = &self.plan;
        let start = || Ok((Vec::new(), 0));
        let morsels = &self.morsels.make_contiguous()[..size];
        let done = for_each_morsel(morsels, context, &start, &|(out, held), at, context| {
            let mut operator = crate::build(plan, context)?;
            while let Step::Batch(batch) = operator.next(context)? {
                *held += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
                // Half of the memory is left to those who take the rows.
                if *held > context.memory_limit / 2 {
                    return Err(Error::limit(TOO_MUCH));
                }
                out.push((at, batch));
            }
            Ok(())
        });
        let done = match done {
            Err(error) if error.kind() == ErrorKind::Limit && error.message() == TOO_MUCH => return Ok(false),
            done => done?,
        };
        let mut batches: Vec<(usize, Batch)> = done.into_iter().flat_map(|(out, _)| out).collect();
        // Stable: those of one morsel stay in their order.
        batches.sort_by_key(|(at, _)| *at);
        self.ready = batches.into_iter().map(|(_, batch)| batch).collect();
        self.morsels.drain(..size);
        Ok(true)
    }

    fn next_alone(&mut self, context: &Context<'_>) -> Result<Step> {
        loop {
            if let Some(operator) = &mut self.current {
                match operator.next(context)? {
                    Step::Done => self.current = None,
                    step => return Ok(step),
                }
                continue;
            }
            let Some(morsel) = self.morsels.pop_front() else { return Ok(Step::Done) };
            self.current = Some(crate::build(&self.plan, &Context { morsel: Some(&morsel), ..*context })?);
        }
    }
}

const TOO_MUCH: &str = "the rows of some morsels cannot be held";

impl Operator for Gather {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        if self.builds.is_none() {
            self.builds = Some(Builds::collect(&self.plan, context)?);
        }
        loop {
            context.check_cancelled()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Step::Batch(batch));
            }
            let builds = self.builds.take();
            let inner = Context { builds: builds.as_ref(), ..*context };
            let step = if self.alone {
                self.next_alone(&inner).map(Some)
            } else if self.morsels.is_empty() {
                Ok(Some(Step::Done))
            } else {
                self.run_round(&inner).map(|fits| {
                    self.alone = !fits;
                    None
                })
            };
            self.builds = builds;
            if let Some(step) = step? {
                return Ok(step);
            }
        }
    }
}
