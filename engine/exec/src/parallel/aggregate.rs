//! Parallel hash aggregation: each thread aggregates the morsels it takes, and the partial results
//! are merged at the end.

use super::pipeline::{BuildPipelines, PipelinePart, look_up, own_copy};
use super::sides::BuildSides;
use super::workers::{for_each_morsel, reaches_the_caller};
use crate::scan::SplitScan;
use nacre_column::Batch;
use nacre_operator::aggregate::{Aggregation, HashAggregate};
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::memory::Reservation;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::{Aggregate, Expr};
use nacre_sql::plan::Plan;
use nacre_types::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The parameters of an aggregation.
pub(crate) struct AggregateSpec {
    pub groups: Vec<Expr>,
    pub aggregates: Vec<Aggregate>,
}

impl AggregateSpec {
    fn empty(&self) -> Result<Aggregation> {
        Aggregation::new(self.groups.clone(), self.aggregates.clone())
    }

    /// The expressions that read the input.
    fn readers(&self) -> Vec<&Expr> {
        let of_aggregates = self.aggregates.iter().flat_map(Aggregate::exprs);
        of_aggregates.chain(&self.groups).collect()
    }
}

/// Aggregates a pipeline.
pub(crate) struct ParallelAggregate<B> {
    input: Arc<Plan>,
    split: SplitScan,
    spec: AggregateSpec,
    /// Filters on the input.
    filters: RuntimeFilters,
    /// Builds the build sides of the pipeline's joins; taken once there is a result.
    builder: Option<B>,
    result: Option<Groups>,
    emitted: usize,
}

/// The source of the completed groups.
enum Groups {
    Joined {
        aggregation: Box<Aggregation>,
        /// Held as long as the groups.
        _held: Reservation,
    },
    /// On one thread, because the partial results of several do not fit.
    Alone(Box<HashAggregate>),
}

/// One thread's partial result.
struct Partial {
    aggregation: Aggregation,
    held: Reservation,
    /// Each morsel that the thread took, and how many groups it knew afterwards.
    seen: Vec<(usize, usize)>,
}

/// The groups that one morsel added to a thread's partial result.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Added {
    morsel: usize,
    worker: usize,
    from: usize,
    to: usize,
}

/// Why parallel aggregation failed.
enum NotParallel {
    /// A single thread must aggregate.
    OneThread,
    Failed(Error),
}

impl From<Error> for NotParallel {
    fn from(error: Error) -> NotParallel {
        match error.kind() {
            // Threads share the memory, and each may hold every group.
            ErrorKind::Limit => NotParallel::OneThread,
            _ => NotParallel::Failed(error),
        }
    }
}

impl<B: BuildPipelines> ParallelAggregate<B> {
    /// Aggregates a pipeline. `builder` later builds everything outside it.
    pub fn new(
        input: &Plan,
        split: SplitScan,
        spec: AggregateSpec,
        filters: RuntimeFilters,
        builder: B,
        context: &Context<'_>,
    ) -> ParallelAggregate<B> {
        let (input, builder) = (own_copy(input, context), Some(builder));
        ParallelAggregate { input, split, spec, filters, builder, result: None, emitted: 0 }
    }

    /// Aggregates on several threads.
    fn run(
        &mut self,
        builder: &mut B,
        context: &Context<'_>,
    ) -> std::result::Result<Groups, NotParallel> {
        let (plan, filters): (&Plan, _) = (&self.input, &self.filters);
        let mut build = |plan: &Plan, filters: &RuntimeFilters| {
            builder.build_whole(plan, None, filters, context)
        };
        let sides = match BuildSides::collect(plan, filters, &mut build, context) {
            Ok(sides) => sides,
            Err(error) if reaches_the_caller(&error) => return Err(NotParallel::Failed(error)),
            // One thread may not even need the side that failed.
            Err(_) => return Err(NotParallel::OneThread),
        };
        let split = &mut self.split;
        context.fetch_waits().call(|| look_up(split, plan, &sides, context))?;
        // Threads share these parts, not the operator.
        let (morsels, spec) = (&self.split.morsels, &self.spec);
        let readers = spec.readers();
        let threads = context.threads.count.min(morsels.len());
        let partials: Vec<Option<Partial>> =
            for_each_morsel(morsels, context, &|| None, &|own: &mut Option<Partial>,
                                                          at,
                                                          morsel,
                                                          context|
             -> Result<()> {
                let own = match own {
                    Some(own) => own,
                    None => own.insert(Partial {
                        aggregation: spec.empty()?,
                        held: Reservation::of_one_thread(threads),
                        seen: Vec::new(),
                    }),
                };
                let part = PipelinePart { morsel, sides: &sides };
                let mut waits = context.fetch_waits();
                let mut input =
                    waits.call(|| B::build_part(plan, Some(&readers), filters, part, context))?;
                while let Some(batch) = waits.call(|| input.next(context))? {
                    context.check_cancelled()?;
                    own.aggregation.consume(&batch, context)?;
                    let bytes = own.aggregation.memory_bytes();
                    context.reserve(&mut own.held, "aggregate", bytes)?;
                }
                own.seen.push((at, own.aggregation.groups()));
                Ok(())
            })
            .whole()?;
        let partials = partials.into_iter().flatten().collect();
        Ok(join(partials, spec.empty()?, context)?)
    }

    /// Aggregates on one thread.
    fn alone(&self, builder: &mut B, context: &Context<'_>) -> Result<Groups> {
        let (readers, context) = (self.spec.readers(), context.on_one_thread());
        let input = builder.build_whole(&self.input, Some(&readers), &self.filters, &context)?;
        let (groups, aggregates) = (self.spec.groups.clone(), self.spec.aggregates.clone());
        let operator = HashAggregate::new(input, self.input.types(), groups, aggregates)?;
        Ok(Groups::Alone(Box::new(operator)))
    }
}

/// Merges partial results. Each thread took its morsels in order, so the groups that each morsel
/// added, morsel by morsel, are in the order in which a single thread would have seen them.
fn join(partials: Vec<Partial>, empty: Aggregation, context: &Context<'_>) -> Result<Groups> {
    let mut added: Vec<Added> = Vec::new();
    for (worker, partial) in partials.iter().enumerate() {
        debug_assert!(partial.seen.is_sorted(), "a thread takes its morsels in order");
        let mut from = 0;
        for (morsel, to) in &partial.seen {
            if *to > from {
                added.push(Added { morsel: *morsel, worker, from, to: *to });
            }
            from = *to;
        }
    }
    added.sort_unstable();
    let (mut aggregation, mut held) = (empty, Reservation::default());
    let mut ids = vec![Vec::new(); partials.len()];
    for Added { worker, from, to, .. } in added {
        context.check_cancelled()?;
        debug_assert_eq!(ids[worker].len(), from, "the groups of a thread are absorbed in order");
        ids[worker].extend(aggregation.absorb(&partials[worker].aggregation, from, to)?);
        context.reserve(&mut held, "aggregate", aggregation.memory_bytes())?;
    }
    for (partial, ids) in partials.iter().zip(&ids) {
        aggregation.absorb_distinct(&partial.aggregation, ids, context)?;
        context.reserve(&mut held, "aggregate", aggregation.memory_bytes())?;
    }
    Ok(Groups::Joined { aggregation: Box::new(aggregation), _held: held })
}

impl<B: BuildPipelines> Operator for ParallelAggregate<B> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if self.result.is_none()
            && let Some(mut builder) = self.builder.take()
        {
            let groups = match self.run(&mut builder, context) {
                Ok(groups) => Ok(groups),
                Err(NotParallel::OneThread) => self.alone(&mut builder, context),
                Err(NotParallel::Failed(error)) => Err(error),
            };
            // A call after an error retries.
            self.result = Some(groups.inspect_err(|_| self.builder = Some(builder))?);
            self.split.morsels.clear();
        }
        context.check_cancelled()?;
        match &mut self.result {
            Some(Groups::Alone(operator)) => operator.next(context),
            Some(Groups::Joined { aggregation, .. }) => {
                let Some(batch) = aggregation.emit(self.emitted)? else { return Ok(None) };
                self.emitted += batch.rows;
                Ok(Some(batch))
            }
            None => Ok(None),
        }
    }
}
