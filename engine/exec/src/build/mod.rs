//! From plans to operators.

mod measure;
mod nodes;

use crate::aggregate::HashAggregate;
use crate::context::Context;
use crate::join::{HashJoin, JoinSpec};
use crate::join_filter::{Wanted, filters_of};
use crate::operator::protocol::{LocatingOperator, Operator};
use crate::operator::{
    Buffer, Filter, Limit, Project, Recursive, SharedScan, SuppliedScan, Union, Values, wanted,
};
use crate::scan::Order;
use crate::sort::Sort;
use measure::{measured, measured_locating};
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_sql::{index_order, key_order};
use nacre_table::RowLocator;
use nacre_types::hash::{Map, Set};
use nacre_types::{DataType, Error, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// The operator tree of a plan.
pub fn build(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    context.memory.share_among(plan, 0);
    build_wanted(plan, &Wanted::default(), context)
}

/// Like [`build`], with all rows computed now: what the transaction does afterwards does not matter to them.
pub fn build_collected(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    context.memory.share_among(plan, 1);
    Ok(Box::new(Buffer::all_of(build(plan, context)?, types_of(plan), context)?))
}

/// Like [`build`], where rows that do not pass these filters are of no use.
pub(crate) fn build_wanted(
    plan: &Plan,
    sieve: &Wanted,
    context: &Context<'_>,
) -> Result<Box<dyn Operator>> {
    Builder::default().build(plan, sieve, context)
}

pub(crate) fn join_spec(
    left: &Plan,
    right: &Plan,
    kind: JoinKind,
    keys: &[(Expr, Expr)],
    residual: &Option<Expr>,
) -> JoinSpec {
    JoinSpec {
        kind,
        keys: keys.to_vec(),
        residual: residual.clone(),
        left_types: types_of(left),
        right_types: types_of(right),
    }
}

/// What the nodes of one plan share while it is built.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    /// Buffers of `Plan::Shared`, by number.
    shared: Map<u32, Rc<RefCell<Buffer>>>,
    /// So many rows are wanted of the sort that comes next.
    wanted: Option<u64>,
}

/// See [`Builder::for_later`].
#[derive(Default)]
struct Sharing {
    /// The recursions whose steps it is in.
    within: Vec<u32>,
    seen: Set<u32>,
    buffers: Map<u32, Rc<RefCell<Buffer>>>,
}

impl Builder {
    /// The operators of a recursive step for one round: what is shared and depends on the round is shared within it.
    pub fn round(&self, step: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
        self.clone().build(step, &Wanted::default(), context)
    }

    /// The builder of a plan that is built later, once or more often: what it shares with others, or from one time to
    /// the next, is known to it. That is all but what depends on the rounds of recursions in the plan, and of `own`, of
    /// which it is the step.
    pub fn for_later(
        &mut self,
        plan: &Plan,
        own: Option<u32>,
        context: &Context<'_>,
    ) -> Result<Builder> {
        let mut sharing = Sharing { within: own.into_iter().collect(), ..Sharing::default() };
        self.share(plan, &mut sharing, context)?;
        Ok(Builder { shared: sharing.buffers, wanted: None })
    }

    fn share(&mut self, plan: &Plan, sharing: &mut Sharing, context: &Context<'_>) -> Result<()> {
        match plan {
            Plan::Shared { id, .. } if !sharing.seen.insert(*id) => return Ok(()),
            Plan::Shared { id, input } if !depends(input, &sharing.within) => {
                sharing.buffers.insert(*id, self.buffer(*id, input, context)?);
                return Ok(());
            }
            Plan::Recursive { id, base, step, .. } => {
                self.share(base, sharing, context)?;
                sharing.within.push(*id);
                self.share(step, sharing, context)?;
                sharing.within.pop();
                return Ok(());
            }
            _ => {}
        }
        let mut result = Ok(());
        plan.for_each_input(&mut |input| {
            if result.is_ok() {
                result = self.share(input, sharing, context);
            }
        });
        result
    }

    /// What is shared under this number, computed when it is first asked for rows.
    fn buffer(
        &mut self,
        id: u32,
        input: &Plan,
        context: &Context<'_>,
    ) -> Result<Rc<RefCell<Buffer>>> {
        if let Some(known) = self.shared.get(&id) {
            return Ok(known.clone());
        }
        let new = Buffer::new(self.build(input, &Wanted::default(), context)?, types_of(input));
        self.shared.insert(id, new.clone());
        Ok(new)
    }

    pub(crate) fn build(
        &mut self,
        plan: &Plan,
        sieve: &Wanted,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>> {
        let context = &context.of_node(plan);
        if let Some(operator) = crate::parallel::build(plan, sieve, self, context)? {
            // Otherwise what the threads run is measured.
            let joins = matches!(plan, Plan::Aggregate { .. });
            return Ok(if joins { measured(operator, plan, context) } else { operator });
        }
        Ok(measured(self.node(plan, sieve, context)?, plan, context))
    }

    fn node(
        &mut self,
        plan: &Plan,
        sieve: &Wanted,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>> {
        let below = &sieve.below(plan);
        let none = &Wanted::default();
        Ok(match plan {
            Plan::Scan { table, projection, filters } => {
                crate::scan::build(table, projection, filters, None, sieve, context)?
            }
            Plan::Values { rows, .. } => Box::new(Values::new(types_of(plan), rows.clone())),
            Plan::Filter { input, predicate } => {
                Box::new(Filter::new(self.build(input, below, context)?, predicate.clone()))
            }
            Plan::Project { input, exprs, .. } => Box::new(Project::new(
                self.build_for(input, exprs.iter(), below, context)?,
                exprs.clone(),
            )),
            Plan::Aggregate { input, groups, aggregates, .. } => {
                let readers =
                    aggregates.iter().flat_map(|a| a.arg.iter().chain(&a.filter)).chain(groups);
                let types = types_of(input);
                let input = self.build_for(input, readers, below, context)?;
                Box::new(HashAggregate::new(input, types, groups.clone(), aggregates.clone())?)
            }
            Plan::Join { left, right, kind, keys, residual } => {
                let spec = join_spec(left, right, *kind, keys, residual);
                let width = spec.left_types.len();
                match context.builds.and_then(|builds| builds.of(plan)) {
                    Some((collected, own)) => {
                        let (to_left, _) = sieve.sides(*kind, keys, width, own);
                        Box::new(HashJoin::probing(
                            self.build(left, &to_left, context)?,
                            collected,
                            spec,
                        ))
                    }
                    None => {
                        let own = filters_of(*kind, keys);
                        let (to_left, to_right) = sieve.sides(*kind, keys, width, &own);
                        let left = self.build(left, &to_left, context)?;
                        let right = self.build(right, &to_right, context)?;
                        Box::new(HashJoin::new(left, right, spec).filling(own))
                    }
                }
            }
            Plan::Union { inputs, .. } => Box::new(Union::new(
                inputs
                    .iter()
                    .map(|input| self.build(input, below, context))
                    .collect::<Result<_>>()?,
            )),
            Plan::Sort { input, keys, limit } => {
                let limit = match (*limit, self.wanted.take()) {
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
                    && let Some(ordered) = in_order(input, &order, limit, context)?
                {
                    return Ok(ordered);
                }
                Box::new(Sort::new(
                    self.build(input, below, context)?,
                    &types_of(input),
                    keys.clone(),
                    limit,
                ))
            }
            Plan::Limit { input, offset, limit } => {
                self.wanted = if is_sort(input) { wanted(offset, limit, context) } else { None };
                Box::new(Limit::new(
                    self.build(input, none, context)?,
                    offset.clone(),
                    limit.clone(),
                ))
            }
            Plan::Node(node) => {
                let mut inputs: Vec<Result<Box<dyn Operator>>> = Vec::new();
                node.for_each_input(&mut |input| inputs.push(self.build(input, none, context)));
                nodes::operator(&**node, inputs.into_iter().collect::<Result<_>>()?)?
            }
            Plan::Given { id, .. } => Box::new(SuppliedScan::new(*id)),
            Plan::Recursive { id, base, step, distinct, fields } => {
                let types: Vec<DataType> = fields.iter().map(|f| f.data_type).collect();
                let base = self.build(base, none, context)?;
                let builder = self.for_later(step, Some(*id), context)?;
                let copy = step.clone();
                if let Some(profile) = context.profile {
                    profile.register_copy(step, &copy);
                }
                Box::new(Recursive::new(*id, base, copy, builder, &types, *distinct))
            }
            Plan::Shared { id, input } => {
                Box::new(SharedScan::new(self.buffer(*id, input, context)?))
            }
        })
    }

    /// The input of an operator that looks at nothing but these expressions: columns that only the filters of a
    /// scan need are not read for it.
    pub(crate) fn build_for<'a>(
        &mut self,
        input: &Plan,
        readers: impl Iterator<Item = &'a Expr>,
        sieve: &Wanted,
        context: &Context<'_>,
    ) -> Result<Box<dyn Operator>> {
        match input {
            Plan::Scan { table, projection, filters } => {
                let (context, readers) = (&context.of_node(input), readers.collect::<Vec<_>>());
                let scan =
                    crate::scan::build(table, projection, filters, Some(&readers), sieve, context)?;
                Ok(measured(scan, input, context))
            }
            other => self.build(other, sieve, context),
        }
    }
}

/// The operator of a sort whose rows nothing gives in order.
pub(crate) fn sorted(sort: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    let Plan::Sort { input, keys, limit } = sort else {
        return build_wanted(sort, &Wanted::default(), context);
    };
    let rows = build_wanted(input, &Wanted::default(), context)?;
    Ok(Box::new(Sort::new(rows, &types_of(input), keys.clone(), *limit)))
}

/// A sort, or columns computed from one.
fn is_sort(plan: &Plan) -> bool {
    match plan {
        Plan::Sort { .. } => true,
        Plan::Project { input, .. } => is_sort(input),
        _ => false,
    }
}

/// A scan under projections that gives its rows in an order; none when they should rather be sorted.
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
        Plan::Scan { .. } => crate::scan::build_ordered(plan, order, limit, context)?,
        _ => None,
    };
    Ok(operator.map(|operator| measured(operator, plan, context)))
}

/// The rows of a table that a plan picks, each with where it lives: a scan, or filters over one.
pub fn build_locating(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn LocatingOperator>> {
    let mut plan = plan;
    let mut predicates = Vec::new();
    loop {
        match plan {
            Plan::Filter { input, predicate } => {
                predicates.push(predicate.clone());
                plan = input;
            }
            Plan::Scan { table, projection, filters } => {
                // The innermost filter comes first: it protects the ones after it.
                let all: Vec<_> =
                    filters.iter().cloned().chain(predicates.into_iter().rev()).collect();
                let context = &context.of_node(plan);
                let scan = crate::scan::build_locating(table, projection, &all, context)?;
                return Ok(measured_locating(scan, plan, context));
            }
            // What the optimizer makes of a condition that is never true.
            Plan::Values { rows, .. } if rows.is_empty() => return Ok(Box::new(Nothing)),
            _ => {
                return Err(Error::unsupported(
                    "UPDATE or DELETE over more than filters of one table",
                ));
            }
        }
    }
}

/// Whether rows of the rounds of these recursions come into a plan.
fn depends(plan: &Plan, recursions: &[u32]) -> bool {
    !recursions.is_empty()
        && plan
            .any_node(&mut |node| matches!(node, Plan::Given { id, .. } if recursions.contains(id)))
}

struct Nothing;

impl LocatingOperator for Nothing {
    fn next(&mut self, _: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        Ok(None)
    }
}

/// Types of a plan's output columns.
pub(crate) fn types_of(plan: &Plan) -> Vec<DataType> {
    plan.types()
}
