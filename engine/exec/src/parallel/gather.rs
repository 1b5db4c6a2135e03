//! The rows of a pipeline, made by several threads and given out in the order of one.

use super::{Builds, Morsel, for_each_morsel, keeps_build, look_up};
use crate::build::{Builder, build_wanted, join_spec};
use crate::context::Context;
use crate::context::threads::Threads;
use crate::join::HashJoin;
use crate::join_filter::Wanted;
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use crate::scan::Cut;
use nacre_column::Batch;
use nacre_sql::plan::Plan;
use nacre_types::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// Morsels a thread works on before what they gave is given out.
const ROUND_MORSELS: usize = 2;
/// About so much a round may give: the first row waits for a whole round, and all of it is held.
const ROUND_BYTES: usize = 8 << 20;
/// Blocks of a morsel at most, by which it is far cheaper to begin with it than to read it.
const MORSEL_BLOCKS: usize = 64;

/// See the module. Works in rounds: what a round gives is held until it is given out. The first rounds are small, so
/// that the first rows come soon; they grow as long as they give little.
pub(super) struct Gather {
    plan: Arc<Plan>,
    /// Until the joins have collected their sides.
    cut: Option<Cut>,
    morsels: VecDeque<Morsel>,
    wanted: Wanted,
    /// Of the sides of the joins, until they are collected.
    builder: Builder,
    /// Of each morsel of the next round, so many blocks; the others are for later.
    blocks: usize,
    builds: Option<Builds>,
    ready: VecDeque<Batch>,
    /// What is ready.
    held: Vec<Reservation>,
    /// What comes after it, as it would on one thread.
    failed: Option<Error>,
    /// A morsel gives more than can be held: from there on they are read one by one, without holding anything.
    alone: bool,
    /// The collected side of a join cannot be held, so that it has to be joined in parts: one thread runs the plan.
    whole: Option<Box<dyn Operator>>,
    current: Option<Box<dyn Operator>>,
    rest: Option<HashJoin>,
}

impl Gather {
    pub fn new(plan: Arc<Plan>, cut: Cut, wanted: Wanted, builder: Builder) -> Gather {
        Gather {
            plan,
            cut: Some(cut),
            morsels: VecDeque::new(),
            wanted,
            builder,
            blocks: 1,
            builds: None,
            ready: VecDeque::new(),
            held: Vec::new(),
            failed: None,
            alone: false,
            whole: None,
            current: None,
            rest: None,
        }
    }

    /// Makes the next morsels as small as they should be, up to so many; says how many they are.
    fn cut_round(&mut self, wanted: usize) -> usize {
        let mut at = 0;
        while at < wanted
            && let Some(morsel) = self.morsels.get_mut(at)
        {
            let rest = morsel.split_off(self.blocks);
            at += 1;
            if let Some(rest) = rest {
                self.morsels.insert(at, rest);
            }
        }
        at
    }

    /// Works on the next morsels. False when what they give cannot be held; then they are still to be read.
    fn run_round(&mut self, context: &Context<'_>) -> Result<bool> {
        let size = self.cut_round(context.threads.count * ROUND_MORSELS);
        let (plan, wanted): (&Plan, _) = (&self.plan, &self.wanted);
        let threads = context.threads.count.min(size);
        let start = || Ok((Vec::new(), 0, Reservation::of_one_thread(threads)));
        let morsels = &self.morsels.make_contiguous()[..size];
        let done = for_each_morsel(morsels, context, &start, &|(out, bytes, held), at, context| {
            let mut operator = build_wanted(plan, wanted, context)?;
            while let Some(batch) = operator.next(context)? {
                *bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
                // What is for whoever asks first is left to those who take the rows.
                if !held.try_resize_small(*bytes, context.memory) {
                    return Err(Error::limit(TOO_MUCH));
                }
                out.push((at, batch));
            }
            Ok(())
        });
        let failed_at = match &done.error {
            Some((_, error)) if error.kind() == ErrorKind::Limit && error.message() == TOO_MUCH => {
                return Ok(false);
            }
            error => error.as_ref().map_or(usize::MAX, |(at, _)| *at),
        };
        let mut batches: Vec<(usize, Batch)> = Vec::new();
        let mut given = 0;
        for (out, bytes, held) in done.states {
            batches.extend(out);
            given += bytes;
            self.held.push(held);
        }
        if given < ROUND_BYTES / 2 {
            self.blocks = (self.blocks * 2).min(MORSEL_BLOCKS);
        } else if given > ROUND_BYTES {
            self.blocks = (self.blocks / 2).max(1);
        }
        // Stable: those of one morsel stay in their order.
        batches.sort_by_key(|(at, _)| *at);
        batches.retain(|(at, _)| *at <= failed_at);
        self.failed = done.error.map(|(_, error)| error);
        self.ready = batches.into_iter().map(|(_, batch)| batch).collect();
        self.morsels.drain(..size);
        Ok(true)
    }

    /// Once all morsels are done: rows that the last join of the pipeline kept for the end.
    fn next_rest(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if self.rest.is_none()
            && let Plan::Join { left, right, kind, keys, residual } = &*self.plan
            && keeps_build(*kind)
            && let Some((build, _)) = context.builds.and_then(|builds| builds.of(&self.plan))
        {
            let spec = join_spec(left, right, *kind, keys, residual);
            self.rest = Some(HashJoin::rest(build, spec));
        }
        self.rest.as_mut().map_or(Ok(None), |rest| rest.next(context))
    }

    fn next_alone(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            if let Some(operator) = &mut self.current {
                if let Some(batch) = operator.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
                continue;
            }
            let Some(morsel) = self.morsels.pop_front() else { return self.next_rest(context) };
            let context = Context { morsel: Some(&morsel), ..*context };
            self.current = Some(build_wanted(&self.plan, &self.wanted, &context)?);
        }
    }
}

const TOO_MUCH: &str = "the rows of some morsels cannot be held";

impl Operator for Gather {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if let Some(whole) = &mut self.whole {
            return whole.next(context);
        }
        if self.builds.is_none() {
            let mut builder = std::mem::take(&mut self.builder);
            match Builds::collect(&self.plan, &self.wanted, &mut builder, context) {
                Ok(builds) => {
                    if let Some(mut cut) = self.cut.take() {
                        look_up(&mut cut, &self.plan, &builds, context)?;
                        self.morsels = cut.morsels.into();
                    }
                    self.builds = Some(builds);
                }
                // One thread may not even ask for what failed.
                Err(error) if error.kind() != ErrorKind::Cancelled => {
                    let alone = Context { threads: Threads::ONE, ..*context };
                    let whole = builder.build(&self.plan, &self.wanted, &alone)?;
                    return self.whole.insert(whole).next(context);
                }
                Err(error) => return Err(error),
            }
        }
        loop {
            context.check_cancelled()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            self.held.clear();
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            let builds = self.builds.take();
            let inner = Context { builds: builds.as_ref(), ..*context };
            let answer = if self.alone {
                self.next_alone(&inner).map(Some)
            } else if self.morsels.is_empty() {
                self.next_rest(&inner).map(Some)
            } else {
                self.run_round(&inner).map(|fits| {
                    self.alone = !fits;
                    None
                })
            };
            self.builds = builds;
            // No answer: a round has run, whose rows are ready.
            if let Some(next) = answer? {
                return Ok(next);
            }
        }
    }
}
