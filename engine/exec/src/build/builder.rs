//! The builder of one plan: which operator each node becomes.

use super::check::checked;
use super::measure::measured;
use super::nodes;
use super::shared::for_each_constant;
use super::site::Site;
use crate::aggregate::HashAggregate;
use crate::context::Context;
use crate::join::{HashJoin, JoinSpec, ProbeJoin, RightRows};
use crate::join_filter::{RuntimeFilters, filters_of};
use crate::operator::protocol::{Operator, Rebuild};
use crate::operator::{
    Duplicates, Filter, Limit, Project, Recursive, SharedRows, SharedScan, SuppliedScan, Union,
    ValuesScan, rows_needed,
};
use crate::parallel::{
    AggregateSpec, BuildPipelines, Gather, ParallelAggregate, ParallelPlan, PipelinePart, plan_of,
};
use crate::scan::{self, Order, ScanRequest, ScanSpec};
use crate::sort::Sort;
use nacre_sql::expr::Expr;
use nacre_sql::plan::{Plan, SortKey};
use nacre_sql::{index_order, key_order};
use nacre_types::Result;
use nacre_types::hash::Map;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What the nodes of one plan share while it is built.
#[derive(Clone, Default)]
pub(super) struct Builder {
    /// Rows of `Plan::Shared`, by number.
    shared: Map<u32, Rc<RefCell<SharedRows>>>,
    /// A limit above the next sort needs only this many rows of it.
    rows_needed: Option<u64>,
}

impl Builder {
    /// The operator of a node, on several threads where that is worth it.
    pub fn build(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let context = &site.context.of_node(plan);
        let site = Site { context, ..site };
        if site.part.is_some() {
            return self.build_node(plan, site);
        }
        match plan_of(plan, site.filters, context)? {
            None => self.build_node(plan, site),
            Some(ParallelPlan::OneThread) => {
                let context = &context.on_one_thread();
                self.build(plan, Site { context, ..site })
            }
            Some(ParallelPlan::Aggregate { input, split }) => {
                let Plan::Aggregate { groups, aggregates, .. } = plan else {
                    return self.build_node(plan, site);
                };
                let (groups, aggregates) = (groups.clone(), aggregates.clone());
                let spec = AggregateSpec { groups, aggregates };
                let filters = site.filters.below(plan);
                let builder = self.for_later(input, None, context)?;
                let operator =
                    ParallelAggregate::new(input, split, spec, filters, builder, context);
                Ok(measured(checked(Box::new(operator), plan), plan, context))
            }
            Some(ParallelPlan::Gather { split }) => {
                let builder = self.for_later(plan, None, context)?;
                let operator = Gather::new(plan, split, site.filters.clone(), builder, context);
                // The nodes that the threads run are measured.
                Ok(checked(Box::new(operator), plan))
            }
        }
    }

    /// The operator of a node on the thread that pulls from it.
    fn build_node(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let operator = checked(self.operator(plan, site)?, plan);
        Ok(measured(operator, plan, site.context))
    }

    /// The operator of a node over those of its inputs.
    fn operator(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let context = site.context;
        let filters = site.filters.below(plan);
        let below = site.with_filters(&filters);
        let nothing = RuntimeFilters::default();
        let unfiltered = site.with_filters(&nothing);
        Ok(match plan {
            Plan::Scan { table, projection, filters } => {
                scan_operator(ScanSpec { schema: table, projection, filters }, None, site)?
            }
            Plan::Values { rows, .. } => Box::new(ValuesScan::new(plan.types(), rows.clone())),
            Plan::Filter { input, predicate } => {
                Box::new(Filter::new(self.build(input, below)?, predicate.clone()))
            }
            Plan::Project { input, exprs, .. } => {
                let readers: Vec<&Expr> = exprs.iter().collect();
                Box::new(Project::new(self.build_read(input, &readers, below)?, exprs.clone()))
            }
            Plan::Aggregate { input, groups, aggregates, .. } => {
                let of_aggregates = aggregates.iter().flat_map(|a| a.arg.iter().chain(&a.filter));
                let readers: Vec<&Expr> = of_aggregates.chain(groups).collect();
                let rows = self.build_read(input, &readers, below)?;
                let (groups, aggregates) = (groups.clone(), aggregates.clone());
                Box::new(HashAggregate::new(rows, input.types(), groups, aggregates)?)
            }
            Plan::Join { left, right, kind, keys, residual } => {
                let spec = JoinSpec::new(left, right, *kind, keys, residual);
                self.join(plan, [left, right], keys, spec, site)?
            }
            Plan::Union { inputs, .. } => {
                let inputs = inputs.iter().map(|input| self.build(input, below));
                Box::new(Union::new(inputs.collect::<Result<_>>()?))
            }
            Plan::Sort { input, keys, limit } => self.sort(input, keys, *limit, below)?,
            Plan::Limit { input, offset, limit } => {
                let needed =
                    if is_sort(input) { rows_needed(offset, limit, context) } else { None };
                self.rows_needed = needed;
                let rows = self.build(input, unfiltered)?;
                Box::new(Limit::new(rows, offset.clone(), limit.clone()))
            }
            Plan::Node(node) => {
                let mut inputs: Vec<Result<Box<dyn Operator>>> = Vec::new();
                node.for_each_input(&mut |input| inputs.push(self.build(input, unfiltered)));
                nodes::operator(&**node, inputs.into_iter().collect::<Result<_>>()?)?
            }
            Plan::Given { id, .. } => Box::new(SuppliedScan::new(*id)),
            Plan::Recursive { id, base, step, distinct, .. } => {
                let base = self.build(base, unfiltered)?;
                let rounds = self.rounds(step, *id, context)?;
                let duplicates = if *distinct { Duplicates::Drop } else { Duplicates::Keep };
                Box::new(Recursive::new(*id, base, rounds, &plan.types(), duplicates))
            }
            Plan::Shared { id, input } => {
                Box::new(SharedScan::new(self.shared_rows(*id, input, context)?))
            }
        })
    }

    /// The operator of an input of which only these expressions read columns: columns that only the
    /// filters of a scan need are not filled.
    fn build_read(
        &mut self,
        input: &Plan,
        readers: &[&Expr],
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let Some(spec) = ScanSpec::of(input) else { return self.build(input, site) };
        let context = &site.context.of_node(input);
        let operator = scan_operator(spec, Some(readers), Site { context, ..site })?;
        Ok(measured(checked(operator, input), input, context))
    }

    /// The operator of a join; one whose right side is collected already where a pipeline runs it.
    fn join(
        &mut self,
        plan: &Plan,
        [left, right]: [&Plan; 2],
        keys: &[(Expr, Expr)],
        spec: JoinSpec,
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let (kind, width) = (spec.kind, spec.left.types.len());
        if let Some((build, own)) = site.part.and_then(|part| part.sides.of(plan)) {
            let (to_left, _) = site.filters.sides(kind, keys, width, own);
            let left = self.build(left, site.with_filters(&to_left))?;
            let join = ProbeJoin::new(left, build, Arc::new(spec), RightRows::LeaveToOthers);
            return Ok(Box::new(join));
        }
        let own = filters_of(kind, keys);
        let (to_left, to_right) = site.filters.sides(kind, keys, width, &own);
        let left = self.build(left, site.with_filters(&to_left))?;
        let right = self.build(right, site.with_filters(&to_right))?;
        Ok(Box::new(HashJoin::new(left, right, spec, own)))
    }

    /// The operator of a sort; the input itself where a scan returns its rows in that order.
    fn sort(
        &mut self,
        input: &Plan,
        keys: &[SortKey],
        limit: Option<u64>,
        below: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let limit = match (limit, self.rows_needed.take()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let (kept, by_index) = (key_order(input, keys), index_order(input, keys));
        let order = match (&kept, &by_index) {
            (Some(order), _) => Some(Order::Kept(order)),
            (None, Some((index, order))) => Some(Order::Index(*index, order)),
            (None, None) => None,
        };
        if let Some(order) = order
            && let Some(ordered) = in_order(input, &order, limit, below.context)?
        {
            return Ok(ordered);
        }
        let rows = self.build(input, below)?;
        Ok(Box::new(Sort::new(rows, &input.types(), keys.to_vec(), limit)))
    }

    /// What builds the step of a recursion for each round. Shared inputs that depend on the round are
    /// shared within it; the others keep their rows.
    fn rounds(&mut self, step: &Plan, id: u32, context: &Context<'_>) -> Result<Rebuild> {
        let builder = self.for_later(step, Some(id), context)?;
        let copy = Box::new(step.clone());
        if let Some(profile) = context.profile {
            profile.register_copy(step, &copy);
        }
        Ok(Box::new(move |context: &Context<'_>| {
            builder.clone().build(&copy, Site::of(&RuntimeFilters::default(), context))
        }))
    }

    /// A builder for a plan that is built later, once or several times. It knows the rows that the
    /// plan shares with others, or from one time to the next: all that do not depend on the rounds of
    /// recursions in the plan, or of `own`, whose step it is.
    fn for_later(
        &mut self,
        plan: &Plan,
        own: Option<u32>,
        context: &Context<'_>,
    ) -> Result<Builder> {
        let mut shared = Map::default();
        for_each_constant(plan, own, &mut |id, input| {
            shared.insert(id, self.shared_rows(id, input, context)?);
            Ok(())
        })?;
        Ok(Builder { shared, rows_needed: None })
    }

    /// The rows that are shared under a number, computed when the first operator reads them.
    fn shared_rows(
        &mut self,
        id: u32,
        input: &Plan,
        context: &Context<'_>,
    ) -> Result<Rc<RefCell<SharedRows>>> {
        if let Some(known) = self.shared.get(&id) {
            return Ok(known.clone());
        }
        let operator = self.build(input, Site::of(&RuntimeFilters::default(), context))?;
        let new = SharedRows::new(operator, input.types());
        self.shared.insert(id, new.clone());
        Ok(new)
    }
}

impl BuildPipelines for Builder {
    fn build_whole(
        &mut self,
        plan: &Plan,
        readers: Option<&[&Expr]>,
        filters: &RuntimeFilters,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>> {
        let site = Site::of(filters, context);
        match readers {
            Some(readers) => self.build_read(plan, readers, site),
            None => self.build(plan, site),
        }
    }

    fn build_part(
        plan: &Plan,
        readers: Option<&[&Expr]>,
        filters: &RuntimeFilters,
        part: PipelinePart<'_>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>> {
        let site = Site { filters, part: Some(part), context };
        let mut builder = Builder::default();
        match readers {
            Some(readers) => builder.build_read(plan, readers, site),
            None => builder.build(plan, site),
        }
    }
}

/// The operator of a scan, of a morsel where a pipeline runs it.
fn scan_operator(
    spec: ScanSpec<'_>,
    readers: Option<&[&Expr]>,
    site: Site<'_>,
) -> Result<Box<dyn Operator>> {
    let morsel = site.part.map(|part| part.morsel);
    let request = ScanRequest { readers, filters: site.filters, morsel };
    scan::build(spec, &request, site.context)
}

/// Whether a plan is a sort, or columns computed from one.
fn is_sort(plan: &Plan) -> bool {
    match plan {
        Plan::Sort { .. } => true,
        Plan::Project { input, .. } => is_sort(input),
        _ => false,
    }
}

/// A scan under projections that returns its rows in an order; `None` when they should be sorted
/// instead.
fn in_order(
    plan: &Plan,
    order: &Order<'_>,
    limit: Option<u64>,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let context = &context.of_node(plan);
    let operator = match plan {
        Plan::Project { input, exprs, .. } => {
            let input = in_order(input, order, limit, context)?;
            input.map(|input| Box::new(Project::new(input, exprs.clone())) as Box<dyn Operator>)
        }
        Plan::Scan { .. } => scan::build_ordered(plan, order, limit, rebuild, context)?,
        _ => None,
    };
    Ok(operator.map(|operator| measured(checked(operator, plan), plan, context)))
}

/// What builds a plan during execution.
fn rebuild(plan: Plan) -> Rebuild {
    Box::new(move |context: &Context<'_>| {
        Builder::default().build(&plan, Site::of(&RuntimeFilters::default(), context))
    })
}
