//! Decides whether and how a plan runs on several threads.

use super::aggregate::AggregateSpec;
use super::pipeline::{scan_of, split_pipeline};
use crate::scan::{SplitScan, extremes_of};
use nacre_operator::aggregate::accumulator::may_merge;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_sql::plan::Plan;
use nacre_types::Result;

/// How a plan runs on several threads.
pub(crate) enum ParallelPlan<'p> {
    /// Each thread groups and accumulates its morsels of the input.
    Aggregate { input: &'p Plan, spec: AggregateSpec, split: SplitScan },
    /// Each thread runs the whole plan over its morsels.
    Gather { split: SplitScan },
    /// Few rows are needed, so further threads would be wasted.
    OneThread,
}

/// How a plan runs on several threads; `None` when the node itself runs on one.
pub(crate) fn plan_of<'p>(
    plan: &'p Plan,
    filters: &RuntimeFilters,
    context: &Context<'_>,
) -> Result<Option<ParallelPlan<'p>>> {
    if context.threads.count <= 1 {
        return Ok(None);
    }
    Ok(match plan {
        // It is decided by bounds, mostly.
        Plan::Aggregate { .. } if extremes_of(plan).is_some() => None,
        Plan::Aggregate { input, groups, aggregates, .. } if aggregates.iter().all(may_merge) => {
            // Right rows that a join returns at its end do not belong to any morsel.
            if scan_of(input).is_none() {
                return Ok(None);
            }
            let split = split_pipeline(input, &filters.below(plan), context)?;
            split.map(|split| {
                let (groups, aggregates) = (groups.clone(), aggregates.clone());
                let spec = AggregateSpec { groups, aggregates };
                ParallelPlan::Aggregate { input, spec, split }
            })
        }
        Plan::Limit { input, .. } if scan_of(input).is_some() => Some(ParallelPlan::OneThread),
        _ => split_pipeline(plan, filters, context)?.map(|split| ParallelPlan::Gather { split }),
    })
}
