//! From plans to operators.

use crate::context::{Context, LocatingOperator, Operator};
use crate::operator::{
    Filter, HashAggregate, HashJoin, JoinSpec, Limit, Project, SetOperation, Sort, Union, Values, Window,
};
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::{JoinKind, Plan};
use nacre_table::RowLocator;
use nacre_types::{DataType, Error, Result};

/// The operator tree of a plan.
pub fn build(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    if let Some(operator) = crate::parallel::build(plan, context)? {
        return Ok(operator);
    }
    Ok(match plan {
        Plan::Scan { table, projection, filters } => crate::scan::build(table, projection, filters, None, context)?,
        Plan::Values { rows, .. } => Box::new(Values::new(types_of(plan), rows.clone())),
        Plan::Filter { input, predicate } => Box::new(Filter::new(build(input, context)?, predicate.clone())),
        Plan::Project { input, exprs, .. } => {
            Box::new(Project::new(build_for(input, exprs.iter(), context)?, exprs.clone()))
        }
        Plan::Aggregate { input, groups, aggregates, .. } => {
            let readers = aggregates.iter().flat_map(|a| a.arg.iter().chain(&a.filter)).chain(groups);
            Box::new(HashAggregate::new(build_for(input, readers, context)?, groups.clone(), aggregates.clone())?)
        }
        Plan::Join { left, right, kind, keys, residual } => {
            let spec = join_spec(left, right, *kind, keys, residual);
            match context.builds.and_then(|builds| builds.of(plan)) {
                Some(collected) => Box::new(HashJoin::probing(build(left, context)?, collected, spec)),
                None => Box::new(HashJoin::new(build(left, context)?, build(right, context)?, spec)),
            }
        }
        Plan::Window { input, partition, order, calls, .. } => {
            Box::new(Window::new(build(input, context)?, &types_of(input), partition, order, calls.clone()))
        }
        Plan::Union { inputs, .. } => {
            Box::new(Union::new(inputs.iter().map(|input| build(input, context)).collect::<Result<_>>()?))
        }
        Plan::SetOperation { left, right, except, all, fields } => {
            let types: Vec<DataType> = fields.iter().map(|f| f.data_type).collect();
            Box::new(SetOperation::new(build(left, context)?, build(right, context)?, &types, *except, *all))
        }
        Plan::Sort { input, keys, limit } => {
            Box::new(Sort::new(build(input, context)?, &types_of(input), keys.clone(), *limit))
        }
        Plan::Limit { input, offset, limit } => {
            Box::new(Limit::new(build(input, context)?, offset.clone(), limit.clone()))
        }
    })
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

/// The input of an operator that looks at nothing but these expressions: columns that only the filters of a
/// scan need are not read for it.
pub(crate) fn build_for<'a>(
    input: &Plan,
    readers: impl Iterator<Item = &'a Expr>,
    context: &Context<'_>,
) -> Result<Box<dyn Operator>> {
    match input {
        Plan::Scan { table, projection, filters } => {
            crate::scan::build(table, projection, filters, Some(&readers.collect::<Vec<_>>()), context)
        }
        other => build(other, context),
    }
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
                let all: Vec<_> = filters.iter().cloned().chain(predicates.into_iter().rev()).collect();
                return crate::scan::build_locating(table, projection, &all, context);
            }
            // What the optimizer makes of a condition that is never true.
            Plan::Values { rows, .. } if rows.is_empty() => return Ok(Box::new(Nothing)),
            _ => return Err(Error::unsupported("UPDATE or DELETE over more than filters of one table")),
        }
    }
}

struct Nothing;

impl LocatingOperator for Nothing {
    fn next(&mut self, _: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        Ok(None)
    }
}

/// Types of a plan's output columns.
fn types_of(plan: &Plan) -> Vec<DataType> {
    match plan {
        Plan::Scan { table, projection, .. } => {
            projection.iter().filter_map(|at| table.columns.get(*at)).map(|c| c.data_type).collect()
        }
        Plan::Values { fields, .. }
        | Plan::Union { fields, .. }
        | Plan::SetOperation { fields, .. }
        | Plan::Window { fields, .. } => fields.iter().map(|f| f.data_type).collect(),
        Plan::Project { exprs, .. } => exprs.iter().map(|e| e.data_type).collect(),
        Plan::Aggregate { groups, aggregates, .. } => {
            groups.iter().map(|g| g.data_type).chain(aggregates.iter().map(|a| a.data_type)).collect()
        }
        Plan::Join { left, right, kind, .. } => {
            let mut types = types_of(left);
            if !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
                types.extend(types_of(right));
            }
            types
        }
        Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => types_of(input),
    }
}
