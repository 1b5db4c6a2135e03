//! Wraps operators to measure their rows and time for a profile.

use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::operator::protocol::{LocatingOperator, Operator};
use nacre_sql::plan::Plan;
use nacre_table::RowLocator;
use nacre_types::Result;

/// Wraps the operator of this node if the statement is profiled.
pub(super) fn measured(
    operator: Box<dyn Operator>,
    plan: &Plan,
    context: &Context<'_>,
) -> Box<dyn Operator> {
    match context.profile.and_then(|profile| profile.number(plan)) {
        Some(number) => Box::new(Measuring { operator, number }),
        None => operator,
    }
}

/// Like [`measured`] for an operator that locates its rows.
pub(super) fn measured_locating(
    operator: Box<dyn LocatingOperator>,
    plan: &Plan,
    context: &Context<'_>,
) -> Box<dyn LocatingOperator> {
    match context.profile.and_then(|profile| profile.number(plan)) {
        Some(number) => Box::new(Measuring { operator, number }),
        None => operator,
    }
}

struct Measuring<O: ?Sized> {
    /// The node's number in the profile.
    number: usize,
    operator: Box<O>,
}

impl<O: ?Sized> Measuring<O> {
    fn measure<T>(
        &mut self,
        context: &Context<'_>,
        next: impl FnOnce(&mut O, &Context<'_>) -> Result<T>,
        rows: impl FnOnce(&T) -> usize,
    ) -> Result<T> {
        let Some(node) = context.profile.and_then(|profile| profile.node(self.number)) else {
            return next(&mut self.operator, context);
        };
        let from = context.now_ns();
        let answer =
            next(&mut self.operator, &Context { statistics: &node.statistics, ..*context });
        // Also of a call that was interrupted.
        node.time_ns.add(context.now_ns().saturating_sub(from) as usize);
        let answer = answer?;
        node.calls.add(1);
        node.rows.add(rows(&answer));
        Ok(answer)
    }
}

impl Operator for Measuring<dyn Operator> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let rows = |batch: &Option<Batch>| batch.as_ref().map_or(0, Batch::selected);
        self.measure(context, |operator, context| operator.next(context), rows)
    }
}

impl LocatingOperator for Measuring<dyn LocatingOperator> {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let rows = |answer: &Option<(Batch, Vec<RowLocator>)>| {
            answer.as_ref().map_or(0, |(batch, _)| batch.rows)
        };
        self.measure(context, |operator, context| operator.next(context), rows)
    }
}
