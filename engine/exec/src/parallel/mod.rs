//! Plans on several threads, through the host's `Parallelism`.
//!
//! What a scan has to read is cut into morsels: some neighbouring blocks of a segment, or a rowstore. Threads take
//! one after the other. For each, a thread builds the operators of a *pipeline* (a scan with filters, projections
//! and joins over it, of which the other side was collected before) anew, which see that morsel only, and runs them
//! to their end; so operators stay what they are on one thread, and what is shared is not changed, but for the number
//! of the next morsel (Leis et al., "Morsel-Driven Parallelism", SIGMOD 2014).
//!
//! Invariants: rows come out in the order one thread would give them, groups too. Of several errors the one of the
//! first morsel is reported, which is the one that one thread would have met. What a plan shares is computed once,
//! however many pipelines read it. Sums of doubles are joined in no particular order: their last digits may differ
//! from run to run. A thread that works on a morsel gives no work to others. No lock is held while rows are read.

mod aggregate;
mod gather;
#[cfg(test)]
pub(crate) mod tests;

use crate::aggregate::may_absorb;
use crate::build::{Builder, join_spec};
use crate::context::Context;
use crate::context::threads::Threads;
use crate::join::Build;
use crate::join_filter::{Filters, Wanted, filters_of};
use crate::operator::protocol::Operator;
use crate::scan::Cut;
use aggregate::ParallelAggregate;
use gather::Gather;
use nacre_column::Batch;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_table::{RowLocator, SegmentView, TableView};
use nacre_types::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a thread reads at a time.
pub(crate) enum Morsel {
    /// Blocks of a segment, ascending.
    Blocks { view: SegmentView, blocks: Vec<usize> },
    /// The rowstores of a view.
    Memory(TableView),
    /// Rows of a segment that indexes found, ascending.
    Rows { view: SegmentView, rows: Vec<u32> },
    /// Rows in memory that they found.
    Batches(Vec<(Batch, Vec<RowLocator>)>),
}

impl Morsel {
    /// Keeps the first so many blocks and answers the others, if there are any.
    fn split_off(&mut self, at: usize) -> Option<Morsel> {
        match self {
            Morsel::Blocks { view, blocks } if blocks.len() > at => {
                Some(Morsel::Blocks { view: view.clone(), blocks: blocks.split_off(at) })
            }
            _ => None,
        }
    }
}

/// The collected right sides of the joins of a pipeline, by where the join is in memory: plans stay in place while
/// they run.
#[derive(Default)]
pub(crate) struct Builds {
    list: Vec<(usize, Arc<Build>, Filters)>,
    /// What they want of the scan that the pipeline begins with.
    at_scan: Wanted,
}

/// The operator of a plan that is worth several threads; `None` for all others.
pub(crate) fn build(
    plan: &Plan,
    wanted: &Wanted,
    builder: &mut Builder,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    if context.threads.count <= 1 || context.morsel.is_some() {
        return Ok(None);
    }
    match plan {
        Plan::Aggregate { input, groups, aggregates, .. } if aggregates.iter().all(may_absorb) => {
            let below = wanted.below(plan);
            // What a join keeps for the end belongs to no morsel.
            if scan_of(input).is_none() {
                return Ok(None);
            }
            let Some(cut) = cut(input, &below, context)? else { return Ok(None) };
            let spec = (groups.clone(), aggregates.clone());
            let builder = builder.for_later(input, None, context)?;
            Ok(Some(Box::new(ParallelAggregate::new(
                own_copy(input, context),
                cut,
                spec,
                below,
                builder,
            ))))
        }
        // Few rows are wanted: the other threads would read in vain.
        Plan::Limit { input, .. } if scan_of(input).is_some() => {
            let alone = Context { threads: Threads::ONE, ..*context };
            builder.build(plan, wanted, &alone).map(Some)
        }
        _ => {
            let Some(cut) = cut(plan, wanted, context)? else { return Ok(None) };
            let builder = builder.for_later(plan, None, context)?;
            Ok(Some(Box::new(Gather::new(own_copy(plan, context), cut, wanted.clone(), builder))))
        }
    }
}

/// A copy of a plan that stays in place while threads work on it.
fn own_copy(plan: &Plan, context: &Context<'_>) -> Arc<Plan> {
    let copy = Arc::new(plan.clone());
    if let Some(profile) = context.profile {
        profile.register_copy(plan, &copy);
    }
    copy
}

/// The scan that a pipeline begins with.
fn scan_of(plan: &Plan) -> Option<&Plan> {
    match plan {
        Plan::Scan { .. } => Some(plan),
        Plan::Filter { input, .. } | Plan::Project { input, .. } => scan_of(input),
        Plan::Join { left, kind, .. } if probes_only(*kind) => scan_of(left),
        _ => None,
    }
}

/// Whether a join gives out rows of its right side when its left side is at an end. Then it can be the last of a
/// pipeline only.
fn keeps_build(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti)
}

/// Whether a join's rows follow from one row of its left side at a time.
fn probes_only(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
}

impl Builds {
    /// Collects the right sides of all joins of a pipeline.
    ///
    /// The outermost comes first, so that what it knows of its keys helps to collect those below it.
    fn collect(
        plan: &Plan,
        wanted: &Wanted,
        builder: &mut Builder,
        context: &Context<'_>,
    ) -> Result<Builds> {
        let mut builds = Builds::default();
        let mut wanted = wanted.clone();
        let mut at = plan;
        loop {
            at = match at {
                Plan::Filter { input, .. } | Plan::Project { input, .. } => {
                    wanted = wanted.below(at);
                    input
                }
                Plan::Join { left, right, kind, keys, residual } => {
                    let spec = join_spec(left, right, *kind, keys, residual);
                    let own = filters_of(*kind, keys);
                    let (to_left, to_right) =
                        wanted.sides(*kind, keys, spec.left_types.len(), &own);
                    let right = builder.build(right, &to_right, context)?;
                    let collected = Build::collected(right, &spec, &context.of_node(at))?;
                    collected.fill(&own);
                    builds.list.push((std::ptr::from_ref(at).addr(), collected, own));
                    wanted = to_left;
                    left
                }
                _ => {
                    builds.at_scan = wanted;
                    return Ok(builds);
                }
            };
        }
    }

    /// What was collected for a join of the plan, and the filters made of it.
    pub fn of(&self, join: &Plan) -> Option<(Arc<Build>, &Filters)> {
        let known = self.list.iter().find(|(at, ..)| *at == std::ptr::from_ref(join).addr());
        known.map(|(_, build, own)| (build.clone(), own))
    }
}

/// The scan of a pipeline, whose last join may keep its right side for the end.
fn probing_scan(plan: &Plan) -> Option<&Plan> {
    match plan {
        Plan::Join { left, kind, .. } if keeps_build(*kind) => scan_of(left),
        other => scan_of(other),
    }
}

/// The morsels of a pipeline, if that is what the plan is and they are enough for several threads.
fn cut(plan: &Plan, wanted: &Wanted, context: &Context<'_>) -> Result<Option<Cut>> {
    let Some(scan @ Plan::Scan { table, projection, filters }) = probing_scan(plan) else {
        return Ok(None);
    };
    let under_joins = !wanted.0.is_empty() || has_join(plan);
    let cut =
        crate::scan::morsels(table, projection, filters, under_joins, &context.of_node(scan))?;
    let enough = if context.threads.morsel_rows == 1 { 1 } else { 2 };
    Ok(cut.filter(|cut| cut.is_found || cut.morsels.len() >= enough))
}

/// Once the joins of a pipeline have collected their sides: what is left to be read.
fn look_up(cut: &mut Cut, plan: &Plan, builds: &Builds, context: &Context<'_>) -> Result<()> {
    let Some(scan @ Plan::Scan { table, projection, filters }) = probing_scan(plan) else {
        return Ok(());
    };
    cut.look_up(table, projection, filters, &builds.at_scan, &context.of_node(scan))
}

fn has_join(plan: &Plan) -> bool {
    match plan {
        Plan::Filter { input, .. } | Plan::Project { input, .. } => has_join(input),
        other => matches!(other, Plan::Join { .. }),
    }
}

/// What became of the threads.
struct Ended<W> {
    states: Vec<W>,
    /// The error of the first morsel that had one. Those before it are done.
    error: Option<(usize, Error)>,
}

impl<W> Ended<W> {
    fn whole(self) -> Result<Vec<W>> {
        self.error.map_or(Ok(self.states), |(_, error)| Err(error))
    }
}

/// Runs `work` for each of these morsels, on several threads, each with a state of its own; answers the states.
/// `work` is given the morsel's number and a context for it.
fn for_each_morsel<W: Send>(
    morsels: &[Morsel],
    context: &Context<'_>,
    state: &(dyn Fn() -> Result<W> + Sync),
    work: &(dyn Fn(&mut W, usize, &Context<'_>) -> Result<()> + Sync),
) -> Ended<W> {
    let workers = context.threads.count.min(morsels.len());
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let ended = Mutex::new(Ended { states: Vec::new(), error: None });
    let fail = |at: usize, error: Error| {
        failed.store(true, Ordering::Relaxed);
        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.error.as_ref().is_none_or(|(first, _)| at < *first) {
            ended.error = Some((at, error));
        }
    };
    let task = |_: usize| {
        let mut own = match state() {
            Ok(own) => own,
            Err(error) => return fail(0, error),
        };
        // Morsels are taken in order, so those before a failed one are done by whoever took them.
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(morsel) = morsels.get(at) else { break };
            let context = Context { threads: Threads::ONE, morsel: Some(morsel), ..*context };
            if let Err(error) = work(&mut own, at, &context) {
                fail(at, error);
                break;
            }
        }
        ended.lock().unwrap_or_else(PoisonError::into_inner).states.push(own);
    };
    context.transaction.store().run(workers, &task);
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}
