//! Pipelines: the part of a plan that a thread runs over one morsel.
//!
//! A pipeline is a scan with filters, projections and joins over it, whose other sides are
//! collected before it runs.

use super::sides::BuildSides;
use crate::scan::{AskIndexes, Morsel, ScanSpec, SplitScan, split};
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::Expr;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_types::Result;
use std::sync::Arc;

/// The inputs of a pipeline's operators besides its plan.
#[derive(Clone, Copy)]
pub(crate) struct PipelinePart<'a> {
    /// The part of the table that its scan reads.
    pub morsel: &'a Morsel,
    /// The collected right sides of its joins.
    pub sides: &'a BuildSides,
}

/// How a parallel operator builds parts of its plan. Implemented by the builder of plans, which
/// operators do not know.
pub(crate) trait BuildPipelines: Sized + 'static {
    /// Builds a plan for one thread. With `readers`, the expressions that read the output, columns
    /// that none of them reads may hold nulls.
    fn build_whole(
        &mut self,
        plan: &Plan,
        readers: Option<&[&Expr]>,
        filters: &RuntimeFilters,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>>;

    /// Like [`BuildPipelines::build_whole`], for a pipeline over one morsel. Any thread may call
    /// it.
    fn build_part(
        plan: &Plan,
        readers: Option<&[&Expr]>,
        filters: &RuntimeFilters,
        part: PipelinePart<'_>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>>;
}

/// A copy of a plan that stays in place while threads run it.
pub(super) fn own_copy(plan: &Plan, context: &Context<'_>) -> Arc<Plan> {
    let copy = Arc::new(plan.clone());
    if let Some(profile) = context.profile {
        profile.register_copy(plan, &copy);
    }
    copy
}

/// The scan that a pipeline begins with; `None` for a plan that is no pipeline.
pub(super) fn scan_of(plan: &Plan) -> Option<&Plan> {
    match plan {
        Plan::Scan { .. } => Some(plan),
        Plan::Filter { input, .. } | Plan::Project { input, .. } => scan_of(input),
        Plan::Join { left, kind, .. } if probes_only(*kind) => scan_of(left),
        _ => None,
    }
}

/// Like [`scan_of`], where the last join may return right rows at the end.
fn probing_scan(plan: &Plan) -> Option<&Plan> {
    match plan {
        Plan::Join { left, kind, .. } if returns_right_rows(*kind) => scan_of(left),
        other => scan_of(other),
    }
}

/// Whether a join returns rows of its right side after its left side has ended. Such a join can
/// only be the last of a pipeline.
pub(super) fn returns_right_rows(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti)
}

/// Whether a join processes each left row independently.
fn probes_only(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
}

fn has_join(plan: &Plan) -> bool {
    match plan {
        Plan::Filter { input, .. } | Plan::Project { input, .. } => has_join(input),
        other => matches!(other, Plan::Join { .. }),
    }
}

/// The morsels of a pipeline; `None` for a plan that is none, or not worth several threads.
pub(super) fn split_pipeline(
    plan: &Plan,
    filters: &RuntimeFilters,
    context: &Context<'_>,
) -> Result<Option<SplitScan>> {
    let Some(scan) = probing_scan(plan) else { return Ok(None) };
    let Some(spec) = ScanSpec::of(scan) else { return Ok(None) };
    let is_under_joins = !filters.0.is_empty() || has_join(plan);
    let indexes = if is_under_joins { AskIndexes::AfterJoins } else { AskIndexes::Now };
    let split = split(spec, indexes, &context.of_node(scan))?;
    let enough = if context.threads.morsel_rows == 1 { 1 } else { 2 };
    Ok(split.filter(|split| split.is_found || split.morsels.len() >= enough))
}

/// Asks the indexes of a pipeline's scan, once its joins have collected their right sides.
pub(super) fn look_up(
    split: &mut SplitScan,
    plan: &Plan,
    sides: &BuildSides,
    context: &Context<'_>,
) -> Result<()> {
    match probing_scan(plan).and_then(|scan| Some((scan, ScanSpec::of(scan)?))) {
        Some((scan, spec)) => split.look_up(spec, sides.at_scan(), &context.of_node(scan)),
        None => Ok(()),
    }
}
