//! Builds the operators of a plan.

use super::check::checked;
use super::first_key::first_key;
use super::measure::measured;
use super::nodes;
use super::shared::for_each_constant;
use super::site::Site;
use crate::parallel::{
    BuildPipelines, Gather, ParallelAggregate, ParallelPlan, PipelinePart, plan_of,
};
use crate::scan::{self, Order, ScanRequest, ScanSpec, build_extremes, build_warm_up, extremes_of};
use nacre_operator::aggregate::HashAggregate;
use nacre_operator::context::Context;
use nacre_operator::join::{HashJoin, JoinSpec, ProbeJoin, RightRows};
use nacre_operator::join_filter::{JoinFilters, RuntimeFilters, filters_of};
use nacre_operator::operator::protocol::{Operator, Rebuild};
use nacre_operator::operator::{
    Duplicates, Filter, Limit, Project, Recursive, SharedRows, SharedScan, SuppliedScan, Union,
    ValuesScan, rows_needed,
};
use nacre_operator::sort::{FirstKey, Sort};
use nacre_sql::expr::{Aggregate, Expr};
use nacre_sql::plan::node::json_rows::JsonRows;
use nacre_sql::plan::node::warm_up::WarmUp;
use nacre_sql::plan::{Plan, PlanNode, SortKey};
use nacre_sql::{index_order, key_order};
use nacre_types::Result;
use nacre_types::hash::Map;
use nacre_types::invariant::broken;
use nacre_types::limits::HAS_THREADS;
use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// State shared by the nodes of a plan while it is built.
#[derive(Clone, Default)]
pub(super) struct Builder {
    /// Rows of `Plan::Shared`, by number.
    shared: Map<u32, Rc<RefCell<SharedRows>>>,
    /// Number of rows that a limit above the next sort needs.
    rows_needed: Option<u64>,
}

impl Builder {
    /// Builds a node's operator, on several threads if worthwhile.
    pub fn build(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let context = &site.context.of_node(plan);
        let site = Site { context, ..site };
        if HAS_THREADS
            && site.part.is_none()
            && let Some(operator) = self.parallel(plan, site)?
        {
            return Ok(operator);
        }
        let operator = self.operator(plan, site)?;
        Ok(measured(checked(operator, plan), plan, context))
    }

    /// Builds a node's operator for several threads; `None` if it runs on the pulling thread.
    #[inline(never)]
    fn parallel(&mut self, plan: &Plan, site: Site<'_>) -> Result<Option<Box<dyn Operator>>> {
        let context = site.context;
        Ok(match plan_of(plan, site.filters, context)? {
            None => None,
            Some(ParallelPlan::OneThread) => {
                let context = &context.on_one_thread();
                Some(self.build(plan, Site { context, ..site })?)
            }
            Some(ParallelPlan::Aggregate { input, spec, split }) => {
                let filters = site.filters.below(plan);
                let builder = self.for_later(input, None, context)?;
                let operator =
                    ParallelAggregate::new(input, split, spec, filters, builder, context);
                Some(measured(checked(Box::new(operator), plan), plan, context))
            }
            Some(ParallelPlan::Gather { split }) => {
                let builder = self.for_later(plan, None, context)?;
                let operator = Gather::new(plan, split, site.filters.clone(), builder, context);
                // Only the nodes that the threads run are measured.
                Some(checked(Box::new(operator), plan))
            }
        })
    }

    /// The operator of a node over those of its inputs.
    ///
    /// Plans are deep and a page's stack is small, so this is only the dispatch: each kind of node
    /// that has inputs has a function, and thus a stack frame, of its own.
    fn operator(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        match plan {
            Plan::Scan { .. } => scan_operator(ScanSpec::of(plan), None, site),
            Plan::Values { rows, .. } => values(plan, rows),
            Plan::Filter { input, predicate } => self.filter(plan, input, predicate, site),
            Plan::Project { input, exprs, .. } => self.project(plan, input, exprs, site),
            Plan::Aggregate { input, groups, aggregates, .. } => {
                self.aggregate(plan, input, groups, aggregates, site)
            }
            Plan::Join { .. } => self.join(plan, site),
            Plan::Union { inputs, .. } => self.union(plan, inputs, site),
            Plan::Sort { input, keys, limit } => self.sort(plan, input, keys, *limit, site),
            Plan::Limit { input, offset, limit } => self.limit(input, offset, limit, site),
            Plan::Node(node) => self.node(&**node, site),
            Plan::Given { id, .. } => Ok(Box::new(SuppliedScan::new(*id))),
            Plan::Recursive { .. } => self.recursive(plan, site),
            Plan::Shared { id, input } => {
                Ok(Box::new(SharedScan::new(self.shared_rows(*id, input, site.context)?)))
            }
        }
    }

    #[inline(never)]
    fn filter(
        &mut self,
        plan: &Plan,
        input: &Plan,
        predicate: &Expr,
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let filters = site.filters.below(plan);
        let rows = self.build(input, site.with_filters(&filters))?;
        Ok(Box::new(Filter::new(rows, predicate.clone())))
    }

    #[inline(never)]
    fn project(
        &mut self,
        plan: &Plan,
        input: &Plan,
        exprs: &[Expr],
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let filters = site.filters.below(plan);
        let readers: Vec<&Expr> = exprs.iter().collect();
        let rows = self.build_read(input, &readers, site.with_filters(&filters))?;
        Ok(Box::new(Project::new(rows, exprs.to_vec())))
    }

    #[inline(never)]
    fn aggregate(
        &mut self,
        plan: &Plan,
        input: &Plan,
        groups: &[Expr],
        aggregates: &[Aggregate],
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        if site.part.is_none()
            && let Some(spec) = extremes_of(plan)
        {
            let context = &site.context.of_node(input);
            let rows = measured(checked(build_extremes(spec, context)?, input), input, context);
            return boxed_aggregate(rows, input, groups, aggregates);
        }
        let filters = site.filters.below(plan);
        let of_aggregates = aggregates.iter().flat_map(nacre_sql::Aggregate::exprs);
        let readers: Vec<&Expr> = of_aggregates.chain(groups).collect();
        let rows = self.build_read(input, &readers, site.with_filters(&filters))?;
        boxed_aggregate(rows, input, groups, aggregates)
    }

    #[inline(never)]
    fn union(&mut self, plan: &Plan, inputs: &[Plan], site: Site<'_>) -> Result<Box<dyn Operator>> {
        let filters = site.filters.below(plan);
        let inputs = inputs.iter().map(|input| self.build(input, site.with_filters(&filters)));
        Ok(Box::new(Union::new(inputs.collect::<Result<_>>()?)))
    }

    #[inline(never)]
    fn limit(
        &mut self,
        input: &Plan,
        offset: &Option<Expr>,
        limit: &Option<Expr>,
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        self.rows_needed =
            if is_sort(input) { rows_needed(offset, limit, site.context) } else { None };
        let rows = self.build(input, site.with_filters(&RuntimeFilters::default()))?;
        Ok(Box::new(Limit::new(rows, offset.clone(), limit.clone())))
    }

    #[inline(never)]
    fn node(&mut self, node: &dyn PlanNode, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let filters = RuntimeFilters::default();
        let site = site.with_filters(&filters);
        if let Some(rows) = (node as &dyn Any).downcast_ref::<JsonRows>()
            && let Some(operator) = elements(rows, site)?
        {
            return Ok(operator);
        }
        if let Some(node) = (node as &dyn Any).downcast_ref::<WarmUp>() {
            return build_warm_up(node, site.context);
        }
        let mut inputs: Vec<Result<Box<dyn Operator>>> = Vec::new();
        node.for_each_input(&mut |input| inputs.push(self.build(input, site)));
        nodes::operator(node, inputs.into_iter().collect::<Result<_>>()?)
    }

    #[inline(never)]
    fn recursive(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let Plan::Recursive { id, base, step, distinct, .. } = plan else {
            broken(format_args!("a recursion is a Plan::Recursive"))
        };
        let base = self.build(base, site.with_filters(&RuntimeFilters::default()))?;
        let rounds = self.rounds(step, *id, site.context)?;
        let duplicates = if *distinct { Duplicates::Drop } else { Duplicates::Keep };
        Ok(Box::new(Recursive::new(*id, base, rounds, &plan.types(), duplicates)))
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
        let operator = scan_operator(Some(spec), Some(readers), Site { context, ..site })?;
        Ok(measured(checked(operator, input), input, context))
    }

    /// The operator of a join; in a pipeline, one whose right side is collected already.
    #[inline(never)]
    fn join(&mut self, plan: &Plan, site: Site<'_>) -> Result<Box<dyn Operator>> {
        let Plan::Join { left, right, kind, keys, residual } = plan else {
            broken(format_args!("a join is a Plan::Join"))
        };
        let spec = JoinSpec::new(left, right, *kind, keys, residual);
        let width = spec.left.types.len();
        if let Some((build, own)) = site.part.and_then(|part| part.sides.of(plan)) {
            let (to_left, _) = site.filters.sides(*kind, keys, width, own);
            let left = self.build(left, site.with_filters(&to_left))?;
            let join = ProbeJoin::new(left, build, Arc::new(spec), RightRows::LeaveToOthers);
            return Ok(Box::new(join));
        }
        let own = filters_of(*kind, keys);
        let (to_left, to_right) = site.filters.sides(*kind, keys, width, &own);
        let left = self.build(left, site.with_filters(&to_left))?;
        let right = self.build(right, site.with_filters(&to_right))?;
        Ok(boxed_join(left, right, spec, own))
    }

    /// The operator of a sort; the input itself where a scan returns its rows in that order.
    #[inline(never)]
    fn sort(
        &mut self,
        plan: &Plan,
        input: &Plan,
        keys: &[SortKey],
        limit: Option<u64>,
        site: Site<'_>,
    ) -> Result<Box<dyn Operator>> {
        let limit = match (limit, self.rows_needed.take()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(ordered) = ordered_scan(input, keys, limit, site.context)? {
            return Ok(ordered);
        }
        let mut filters = site.filters.below(plan);
        let first = first_key(input, keys, limit, &mut filters, site.context)?;
        let rows = self.build(input, site.with_filters(&filters))?;
        Ok(boxed_sort(rows, input, keys, limit, first))
    }

    /// Returns a builder for the step of a recursion in each round. Shared inputs that depend on
    /// the round are recomputed in each; the others keep their rows.
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

    /// Returns a builder for a plan that is built later, possibly repeatedly. It holds the shared
    /// rows that stay the same: those of inputs that do not depend on rounds of recursions in the
    /// plan, or of `own`, whose step the plan is.
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

    /// The rows of a shared input, computed when an operator first reads them.
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

/// The operator of a scan; in a pipeline, of a morsel.
#[inline(never)]
fn scan_operator(
    spec: Option<ScanSpec<'_>>,
    readers: Option<&[&Expr]>,
    site: Site<'_>,
) -> Result<Box<dyn Operator>> {
    let Some(spec) = spec else { broken(format_args!("a scan is a Plan::Scan")) };
    let morsel = site.part.map(|part| part.morsel);
    let request = ScanRequest { readers, filters: site.filters, morsel };
    scan::build(spec, &request, site.context)
}

/// The operator of rows of documents that are read where segments store them.
#[inline(never)]
fn elements(node: &JsonRows, site: Site<'_>) -> Result<Option<Box<dyn Operator>>> {
    scan::build_elements(node, &site.context.of_node(&node.input))
}

#[inline(never)]
fn values(plan: &Plan, rows: &[Vec<Expr>]) -> Result<Box<dyn Operator>> {
    Ok(Box::new(ValuesScan::new(plan.types(), rows.to_vec())))
}

// Large operators are built in separate functions, whose stack frames are gone while their inputs
// are built.

#[inline(never)]
fn boxed_aggregate(
    rows: Box<dyn Operator>,
    input: &Plan,
    groups: &[Expr],
    aggregates: &[Aggregate],
) -> Result<Box<dyn Operator>> {
    let (groups, aggregates) = (groups.to_vec(), aggregates.to_vec());
    Ok(Box::new(HashAggregate::new(rows, input.types(), groups, aggregates)?))
}

#[inline(never)]
fn boxed_join(
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    spec: JoinSpec,
    filters: JoinFilters,
) -> Box<dyn Operator> {
    Box::new(HashJoin::new(left, right, spec, filters))
}

#[inline(never)]
fn boxed_sort(
    rows: Box<dyn Operator>,
    input: &Plan,
    keys: &[SortKey],
    limit: Option<u64>,
    first: Option<FirstKey>,
) -> Box<dyn Operator> {
    Box::new(Sort::new(rows, &input.types(), keys.to_vec(), limit, first))
}

/// Whether a plan is a sort, or columns computed from one.
fn is_sort(plan: &Plan) -> bool {
    match plan {
        Plan::Sort { .. } => true,
        Plan::Project { input, .. } => is_sort(input),
        _ => false,
    }
}

/// Builds a plan that returns its rows in the order of sort keys, if a scan can provide it and that
/// is cheaper than sorting.
#[inline(never)]
fn ordered_scan(
    input: &Plan,
    keys: &[SortKey],
    limit: Option<u64>,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let (kept, by_index) = (key_order(input, keys), index_order(input, keys));
    match (&kept, &by_index) {
        (Some(order), _) => in_order(input, &Order::Kept(order), limit, context),
        (None, Some((index, order))) => {
            in_order(input, &Order::Index(*index, order), limit, context)
        }
        (None, None) => Ok(None),
    }
}

/// Builds a scan under projections in an order; `None` if the rows should be sorted instead.
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

/// Returns a builder for a plan during execution.
fn rebuild(plan: Plan) -> Rebuild {
    Box::new(move |context: &Context<'_>| {
        Builder::default().build(&plan, Site::of(&RuntimeFilters::default(), context))
    })
}
