//! The build sides of a pipeline's joins, shared by all threads that run it.

use nacre_operator::context::Context;
use nacre_operator::join::{BuildSide, JoinSpec};
use nacre_operator::join_filter::{JoinFilters, RuntimeFilters, filters_of};
use nacre_operator::operator::protocol::Operator;
use nacre_sql::plan::Plan;
use nacre_types::Result;
use std::sync::Arc;

/// The build sides of one pipeline's joins, and the filters derived from them.
#[derive(Default)]
pub(crate) struct BuildSides {
    sides: Vec<Side>,
    /// The filters that apply to the pipeline's scan.
    at_scan: RuntimeFilters,
}

/// Makes the operators of a right side.
pub(super) type BuildSidePlan<'a> =
    dyn FnMut(&Plan, &RuntimeFilters) -> Result<Box<dyn Operator>> + 'a;

struct Side {
    /// The join, by its address: plans stay in place while they run.
    join: usize,
    build: Arc<BuildSide>,
    filters: JoinFilters,
}

fn address(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl BuildSides {
    /// Collects the right sides of all joins of a pipeline. `build` makes the operators of a right
    /// side.
    ///
    /// The outermost join comes first, so that its keys help to collect those below it.
    pub fn collect(
        plan: &Plan,
        filters: &RuntimeFilters,
        build: &mut BuildSidePlan<'_>,
        context: &Context<'_>,
    ) -> Result<BuildSides> {
        let mut sides = Vec::new();
        let mut filters = filters.clone();
        let mut at = plan;
        loop {
            at = match at {
                Plan::Filter { input, .. } | Plan::Project { input, .. } => {
                    filters = filters.below(at);
                    input
                }
                Plan::Join { left, right, kind, keys, residual } => {
                    let spec = JoinSpec::new(left, right, *kind, keys, residual);
                    let own = filters_of(*kind, keys);
                    let (to_left, to_right) =
                        filters.sides(*kind, keys, spec.left.types.len(), &own);
                    let right = context.fetch_waits().call(|| build(right, &to_right))?;
                    let side = BuildSide::collected(right, &spec, &context.of_node(at))?;
                    side.fill(&own);
                    sides.push(Side { join: address(at), build: side, filters: own });
                    filters = to_left;
                    left
                }
                _ => return Ok(BuildSides { sides, at_scan: filters }),
            };
        }
    }

    /// The build side of a join of the pipeline, and the filters derived from it.
    pub fn of(&self, join: &Plan) -> Option<(Arc<BuildSide>, &JoinFilters)> {
        let side = self.sides.iter().find(|side| side.join == address(join))?;
        Some((side.build.clone(), &side.filters))
    }

    /// The filters that apply to the pipeline's scan.
    pub fn at_scan(&self) -> &RuntimeFilters {
        &self.at_scan
    }
}
