//! Returns the rows of a pipeline run by several threads, in the order of a single thread.

use super::pipeline::{BuildPipelines, PipelinePart, look_up, own_copy, returns_right_rows};
use super::sides::BuildSides;
use super::workers::{for_each_morsel, reaches_the_caller};
use crate::scan::{Morsel, SplitScan};
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::join::{JoinSpec, ProbeJoin};
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::memory::Reservation;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::plan::Plan;
use nacre_types::invariant::broken;
use nacre_types::{Error, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// Morsels of each thread in a round.
const ROUND_MORSELS: usize = 2;
/// Bytes that a round should produce, roughly: the first row waits for a whole round, and all of
/// its rows are held.
const ROUND_BYTES: usize = 8 << 20;
/// The most blocks of a morsel: from here on, starting one is far cheaper than reading it.
const MORSEL_BLOCKS: usize = 64;

/// Runs a pipeline in rounds: the rows of a round are held until they are returned. The first
/// rounds are small, so that the first rows come soon; rounds grow as long as they produce little.
pub(crate) struct Gather<B> {
    plan: Arc<Plan>,
    filters: RuntimeFilters,
    /// `None` once it has failed.
    state: Option<State<B>>,
    morsels: VecDeque<Morsel>,
    /// How many blocks of each morsel the next round takes; the others are for later rounds.
    blocks: usize,
    ready: VecDeque<Batch>,
    /// Memory of the batches in `ready`.
    held: Vec<Reservation>,
    /// The error to report after the batches in `ready`, as on a single thread.
    failed: Option<Error>,
    /// Whether the remaining morsels are read one by one on this thread, without holding rows,
    /// because a morsel produced more than fits in memory.
    reads_alone: bool,
    /// The operators of the morsel that is read alone.
    current: Option<Box<dyn Operator>>,
    /// Right rows of the last join, once all morsels are done.
    rest: Option<ProbeJoin>,
}

enum State<B> {
    /// The joins' right sides are not collected yet.
    Waiting {
        split: SplitScan,
        builder: B,
    },
    Running(BuildSides),
    /// A right side cannot be collected: one thread runs the plan, and may not even need that side.
    Alone(Box<dyn Operator>),
}

/// One thread's output of a round.
struct Produced {
    /// Batches with the number of their morsel.
    batches: Vec<(usize, Batch)>,
    bytes: usize,
    held: Reservation,
}

/// Why a round ended early.
enum RoundError {
    /// The output does not fit in memory.
    Full,
    Failed(Error),
}

impl From<Error> for RoundError {
    fn from(error: Error) -> RoundError {
        RoundError::Failed(error)
    }
}

/// How a round ended.
#[derive(PartialEq, Eq)]
enum Round {
    Done,
    /// Nothing was produced: its morsels are still to be read.
    TooLarge,
}

impl<B: BuildPipelines> Gather<B> {
    /// Runs a pipeline. `builder` later builds everything outside it.
    pub fn new(
        plan: &Plan,
        split: SplitScan,
        filters: RuntimeFilters,
        builder: B,
        context: &Context<'_>,
    ) -> Gather<B> {
        Gather {
            plan: own_copy(plan, context),
            filters,
            state: Some(State::Waiting { split, builder }),
            morsels: VecDeque::new(),
            blocks: 1,
            ready: VecDeque::new(),
            held: Vec::new(),
            failed: None,
            reads_alone: false,
            current: None,
            rest: None,
        }
    }

    /// Collects the right sides of the joins.
    fn start(
        &mut self,
        split: &mut SplitScan,
        builder: &mut B,
        context: &Context<'_>,
    ) -> Result<State<B>> {
        let mut build = |plan: &Plan, filters: &RuntimeFilters| {
            builder.build_whole(plan, None, filters, context)
        };
        match BuildSides::collect(&self.plan, &self.filters, &mut build, context) {
            Ok(sides) => {
                context.fetch_waits().call(|| look_up(split, &self.plan, &sides, context))?;
                self.morsels = std::mem::take(&mut split.morsels).into();
                Ok(State::Running(sides))
            }
            Err(error) if reaches_the_caller(&error) => Err(error),
            Err(_) => {
                let context = context.on_one_thread();
                let operator = context
                    .fetch_waits()
                    .call(|| builder.build_whole(&self.plan, None, &self.filters, &context))?;
                Ok(State::Alone(operator))
            }
        }
    }

    /// Cuts the next morsels, up to `wanted`, as small as they should be; returns how many there
    /// are.
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

    /// Runs the pipeline over the next morsels.
    fn run_round(&mut self, sides: &BuildSides, context: &Context<'_>) -> Result<Round> {
        let size = self.cut_round(context.threads.count * ROUND_MORSELS);
        let (plan, filters): (&Plan, _) = (&self.plan, &self.filters);
        let threads = context.threads.count.min(size);
        let start = || Produced {
            batches: Vec::new(),
            bytes: 0,
            held: Reservation::of_one_thread(threads),
        };
        let morsels = &self.morsels.make_contiguous()[..size];
        let ended = for_each_morsel(morsels, context, &start, &|own, at, morsel, context| {
            let part = PipelinePart { morsel, sides };
            let mut waits = context.fetch_waits();
            let mut operator = waits.call(|| B::build_part(plan, None, filters, part, context))?;
            while let Some(batch) = waits.call(|| operator.next(context))? {
                own.bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
                // The pool is left to the operators that receive the rows.
                if !own.held.try_resize_small(own.bytes, context.memory) {
                    return Err(RoundError::Full);
                }
                own.batches.push((at, batch));
            }
            Ok(())
        });
        let failed_at = match ended.error {
            Some((_, RoundError::Full)) => return Ok(Round::TooLarge),
            // The next call runs the round again, from its first morsel.
            Some((_, RoundError::Failed(error))) if error.missing().is_some() => return Err(error),
            Some((at, RoundError::Failed(error))) => {
                self.failed = Some(error);
                at
            }
            None => usize::MAX,
        };
        let mut batches: Vec<(usize, Batch)> = Vec::new();
        let mut produced = 0;
        for own in ended.states {
            batches.extend(own.batches);
            produced += own.bytes;
            self.held.push(own.held);
        }
        if produced < ROUND_BYTES / 2 {
            self.blocks = (self.blocks * 2).min(MORSEL_BLOCKS);
        } else if produced > ROUND_BYTES {
            self.blocks = (self.blocks / 2).max(1);
        }
        // Stable: the batches of one morsel stay in their order.
        batches.sort_by_key(|(at, _)| *at);
        batches.retain(|(at, _)| *at <= failed_at);
        self.ready = batches.into_iter().map(|(_, batch)| batch).collect();
        self.morsels.drain(..size);
        Ok(Round::Done)
    }

    /// Once all morsels are done: the right rows that the last join of the pipeline returns at its
    /// end.
    fn next_rest(&mut self, sides: &BuildSides, context: &Context<'_>) -> Result<Option<Batch>> {
        if self.rest.is_none()
            && let Plan::Join { left, right, kind, keys, residual } = &*self.plan
            && returns_right_rows(*kind)
            && let Some((build, _)) = sides.of(&self.plan)
        {
            let spec = Arc::new(JoinSpec::new(left, right, *kind, keys, residual));
            self.rest = Some(ProbeJoin::rest(build, spec));
        }
        self.rest.as_mut().map_or(Ok(None), |rest| rest.next(context))
    }

    /// The next rows of the morsels, read one by one on this thread.
    fn next_alone(&mut self, sides: &BuildSides, context: &Context<'_>) -> Result<Option<Batch>> {
        let context = &context.on_one_thread();
        loop {
            if let Some(operator) = &mut self.current {
                if let Some(batch) = operator.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(morsel) = self.morsels.front() else {
                return self.next_rest(sides, context);
            };
            let part = PipelinePart { morsel, sides };
            let operator = B::build_part(&self.plan, None, &self.filters, part, context)?;
            self.current = Some(operator);
            self.morsels.pop_front();
        }
    }

    /// The next rows of the running pipeline.
    fn next_running(&mut self, sides: &BuildSides, context: &Context<'_>) -> Result<Option<Batch>> {
        loop {
            context.check_cancelled()?;
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            self.held.clear();
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            if self.reads_alone {
                return self.next_alone(sides, context);
            }
            if self.morsels.is_empty() {
                return self.next_rest(sides, context);
            }
            self.reads_alone = self.run_round(sides, context)? == Round::TooLarge;
        }
    }
}

impl<B: BuildPipelines> Operator for Gather<B> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let state = match (self.state.take(), &self.failed) {
            (Some(State::Waiting { mut split, mut builder }), _) => {
                match self.start(&mut split, &mut builder, context) {
                    Ok(state) => state,
                    Err(error) => {
                        match error.missing() {
                            Some(_) => self.state = Some(State::Waiting { split, builder }),
                            None => self.failed = Some(error.clone()),
                        }
                        return Err(error);
                    }
                }
            }
            (Some(state), _) => state,
            (None, Some(error)) => return Err(error.clone()),
            (None, None) => broken(format_args!("a pipeline that did not fail has a state")),
        };
        let (next, state) = match state {
            State::Running(sides) => (self.next_running(&sides, context), State::Running(sides)),
            State::Alone(mut operator) => (operator.next(context), State::Alone(operator)),
            State::Waiting { .. } => broken(format_args!("a pipeline is started once")),
        };
        self.state = Some(state);
        next
    }
}
