//! From plans to operators. The builder knows every operator; no operator knows the builder.

mod builder;
mod check;
mod first_key;
mod locating;
mod measure;
mod nodes;
mod shared;
mod site;

pub use locating::build_locating;

use builder::Builder;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::operator::SharedRows;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::plan::Plan;
use nacre_types::Result;
use site::Site;

/// Builds the operators of a plan.
pub fn build(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    context.memory.share_among(plan, 0);
    Builder::default().build(plan, Site::of(&RuntimeFilters::default(), context))
}

/// Like [`build`], but computes all rows immediately, so that later changes by the transaction do
/// not affect them.
pub fn build_collected(plan: &Plan, context: &Context<'_>) -> Result<Box<dyn Operator>> {
    context.memory.share_among(plan, 1);
    Ok(Box::new(SharedRows::all_of(build(plan, context)?, plan.types(), context)?))
}
