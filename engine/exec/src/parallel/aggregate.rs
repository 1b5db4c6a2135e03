//! Hash aggregation on several threads: each groups and accumulates the morsels it takes, and what they have is
//! joined at the end.

use super::{Builds, Morsel, for_each_morsel, look_up};
use crate::aggregate::{Aggregation, HashAggregate};
use crate::build::{Builder, types_of};
use crate::context::Context;
use crate::context::threads::Threads;
use crate::join_filter::Wanted;
use crate::memory::Reservation;
use crate::operator::protocol::Operator;
use crate::scan::Cut;
use nacre_column::Batch;
use nacre_sql::expr::{Aggregate, Expr};
use nacre_sql::plan::Plan;
use nacre_types::{ErrorKind, Result};
use std::sync::Arc;

/// See the module.
pub(super) struct ParallelAggregate {
    input: Arc<Plan>,
    cut: Cut,
    spec: (Vec<Expr>, Vec<Aggregate>),
    /// Filters on the input.
    wanted: Wanted,
    /// Of the sides of the input's joins, until there is a result.
    builder: Builder,
    result: Option<Source>,
    emitted: usize,
}

/// Where results come from once there are some.
enum Source {
    Joined(Box<(Aggregation, Reservation)>),
    /// On one thread, because what several would hold is too much.
    Alone(Box<HashAggregate>),
}

/// What one thread has accumulated.
struct Partial {
    aggregation: Aggregation,
    held: Reservation,
    /// Which morsels it took and how many groups it knew after each: the groups a morsel brought.
    seen: Vec<(usize, usize)>,
}

impl ParallelAggregate {
    pub fn new(
        input: Arc<Plan>,
        cut: Cut,
        spec: (Vec<Expr>, Vec<Aggregate>),
        wanted: Wanted,
        builder: Builder,
    ) -> ParallelAggregate {
        ParallelAggregate { input, cut, spec, wanted, builder, result: None, emitted: 0 }
    }

    /// None when one thread has to do it.
    fn run(&mut self, context: &Context<'_>) -> Result<Option<(Aggregation, Reservation)>> {
        // What threads share must not be the operator itself, which is not theirs to look at.
        let (plan, spec, wanted): (&Plan, _, _) = (&self.input, &self.spec, &self.wanted);
        let builds = match Builds::collect(plan, wanted, &mut self.builder, context) {
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
            // One thread may not even ask for what failed.
            Err(_) => return Ok(None),
            Ok(builds) => builds,
        };
        look_up(&mut self.cut, plan, &builds, context)?;
        let morsels: &[Morsel] = &self.cut.morsels;
        let context = &Context { builds: Some(&builds), ..*context };
        let empty = || Aggregation::new(spec.0.clone(), spec.1.clone());
        let threads = context.threads.count.min(morsels.len());
        let start = || {
            Ok(Partial {
                aggregation: empty()?,
                held: Reservation::of_one_thread(threads),
                seen: Vec::new(),
            })
        };
        let partials = for_each_morsel(morsels, context, &start, &|partial, at, context| {
            let mut input = Builder::default().build_for(plan, readers(spec), wanted, context)?;
            while let Some(batch) = input.next(context)? {
                context.check_cancelled()?;
                partial.aggregation.consume(&batch, context)?;
                context.reserve(
                    &mut partial.held,
                    "aggregate",
                    partial.aggregation.memory_bytes(),
                )?;
            }
            partial.seen.push((at, partial.aggregation.groups()));
            Ok(())
        })
        .whole()?;
        join(partials, empty()?, context).map(Some)
    }
}

/// What is looked at of the input.
fn readers(spec: &(Vec<Expr>, Vec<Aggregate>)) -> impl Iterator<Item = &Expr> {
    spec.1.iter().flat_map(|a| a.arg.iter().chain(&a.filter)).chain(&spec.0)
}

/// Joins the partial results. A thread took its morsels in order, so the groups each morsel brought, morsel by
/// morsel, are the groups in the order one thread would have met them.
fn join(
    partials: Vec<Partial>,
    empty: Aggregation,
    context: &Context<'_>,
) -> Result<(Aggregation, Reservation)> {
    let mut runs: Vec<(usize, usize, usize, usize)> = Vec::new();
    for (worker, partial) in partials.iter().enumerate() {
        let mut from = 0;
        for (morsel, to) in &partial.seen {
            if *to > from {
                runs.push((*morsel, worker, from, *to));
            }
            from = *to;
        }
    }
    runs.sort_unstable();
    let (mut joined, mut held) = (empty, Reservation::default());
    for (_, worker, from, to) in runs {
        context.check_cancelled()?;
        if let Some(partial) = partials.get(worker) {
            joined.absorb(&partial.aggregation, from, to)?;
        }
        context.reserve(&mut held, "aggregate", joined.memory_bytes())?;
    }
    Ok((joined, held))
}

impl Operator for ParallelAggregate {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let result = match &mut self.result {
            Some(result) => result,
            None => {
                let source = match self.run(context) {
                    Ok(Some(joined)) => Source::Joined(Box::new(joined)),
                    // Threads share the memory, and each may hold every group.
                    Err(error) if error.kind() != ErrorKind::Limit => return Err(error),
                    Ok(None) | Err(_) => {
                        let alone = Context { threads: Threads::ONE, ..*context };
                        let input = self.builder.build_for(
                            &self.input,
                            readers(&self.spec),
                            &self.wanted,
                            &alone,
                        )?;
                        let types = types_of(&self.input);
                        Source::Alone(Box::new(HashAggregate::new(
                            input,
                            types,
                            self.spec.0.clone(),
                            self.spec.1.clone(),
                        )?))
                    }
                };
                self.cut.morsels.clear();
                self.builder = Builder::default();
                self.result.insert(source)
            }
        };
        context.check_cancelled()?;
        match result {
            Source::Alone(operator) => operator.next(context),
            Source::Joined(result) => {
                let (joined, _) = &mut **result;
                let Some(batch) = joined.emit(self.emitted)? else { return Ok(None) };
                self.emitted += batch.rows;
                Ok(Some(batch))
            }
        }
    }
}
