//! The state of one aggregate for all groups: one value per group, or the collected rows.

use super::collected::Collected;
use crate::buffer::limits::MOST_TEXT_BYTES;
use crate::expr::Evaluator;
use nacre_column::Vector;
use nacre_function::aggregate::sum::{AVG, SUM};
use nacre_function::entry::aggregate::{Accumulation, AggregateCallee, State, Types};
use nacre_function::vector::groups::Groups;
use nacre_function::vector::room::Room;
use nacre_function::vector::rows::ActiveRows;
use nacre_sql::expr::Aggregate;
use nacre_types::{DataType, Result};
use std::ops::Range;
use std::sync::Arc;

/// The state of one aggregate.
pub enum Accumulator {
    /// One state per group.
    States(Box<dyn State>),
    /// The rows, collected.
    Collected(Collected),
}

/// Whether partial results of an aggregate can be merged. Those over distinct values are merged by
/// the values: each part would count its own.
pub fn may_merge(aggregate: &Aggregate) -> bool {
    aggregate.function.is_made_of_parts()
}

/// The vectors an accumulator reads: the aggregate's arguments, then the sort keys if it collects
/// rows.
pub fn inputs(
    spec: &Aggregate,
    evaluator: &Evaluator<'_>,
    rows: ActiveRows<'_>,
) -> Result<Vec<Arc<Vector>>> {
    if let [arg] = &spec.args[..]
        && !spec.distinct
        && (spec.function == (&SUM).into() || spec.function == (&AVG).into())
    {
        return Ok(vec![evaluator.eval_short(arg, rows)?]);
    }
    let listed = spec.function.listed();
    let is_collected =
        listed.is_some_and(|f| matches!(f.accumulation, Accumulation::Collected { .. }));
    let keys = spec.order.iter().filter(|_| is_collected).map(|key| &key.expr);
    spec.args.iter().chain(keys).map(|expr| evaluator.eval(expr, rows)).collect()
}

impl Accumulator {
    /// Nothing accumulated yet.
    pub fn new(spec: &Aggregate) -> Result<Accumulator> {
        let arguments: Vec<DataType> = spec.args.iter().map(|arg| arg.data_type).collect();
        let types = Types { arguments: &arguments, result: spec.data_type };
        let function = match &spec.function {
            AggregateCallee::Listed(function) => function,
            AggregateCallee::Created(function) => {
                return Ok(Accumulator::States(function.states()));
            }
        };
        Ok(match &function.accumulation {
            Accumulation::Parts(new) | Accumulation::Stream(new) => {
                Accumulator::States(new(&types)?)
            }
            Accumulation::Collected { deciding, compute } => {
                Accumulator::Collected(Collected::new(spec, *deciding, *compute))
            }
        })
    }

    /// Whether the result does not depend on the order of rows.
    pub fn is_order_free(&self) -> bool {
        match self {
            Accumulator::States(states) => states.is_order_free(),
            Accumulator::Collected(_) => false,
        }
    }

    /// Makes room for `groups` groups.
    pub fn resize(&mut self, groups: usize) {
        if let Accumulator::States(states) = self {
            states.resize(groups);
        }
    }

    /// Estimated bytes held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Accumulator::States(states) => states.memory_bytes(),
            Accumulator::Collected(collected) => collected.memory_bytes(),
        }
    }

    /// Adds rows of [`inputs`].
    pub fn update(
        &mut self,
        inputs: &[Arc<Vector>],
        rows: ActiveRows<'_>,
        groups: Groups<'_>,
    ) -> Result<()> {
        match self {
            Accumulator::States(states) => states.update(inputs, rows, groups),
            Accumulator::Collected(collected) => collected.update(inputs, rows, groups),
        }
    }

    /// Merges groups of another accumulator of the same aggregate, from `from` on, into the groups
    /// `ids`, for which there must be room.
    pub fn merge(&mut self, other: &Accumulator, from: usize, ids: &[u32]) -> Result<()> {
        match (self, other) {
            (Accumulator::States(own), Accumulator::States(other)) => {
                own.merge(&**other, from, ids)
            }
            _ => {
                debug_assert!(false, "only aggregates that may be merged are");
                Ok(())
            }
        }
    }

    /// Whether [`Accumulator::finish_as`] gives the results of another one, over the same rows.
    pub fn has_sums_of(&self, other: &Accumulator) -> bool {
        match (self, other) {
            (Accumulator::States(own), Accumulator::States(other)) => own.has_sums_of(&**other),
            _ => false,
        }
    }

    /// The results of some groups as another accumulator would give them, over the same rows.
    pub fn finish_as(&self, other: &Accumulator, groups: Range<usize>) -> Result<Vector> {
        match (self, other) {
            (Accumulator::States(own), Accumulator::States(other)) => {
                own.finish_as(&**other, groups, Room::new(MOST_TEXT_BYTES))
            }
            _ => other.finish(groups),
        }
    }

    /// The results of some groups.
    pub fn finish(&self, groups: Range<usize>) -> Result<Vector> {
        match self {
            Accumulator::States(states) => states.finish(groups, Room::new(MOST_TEXT_BYTES)),
            Accumulator::Collected(collected) => collected.finish(groups),
        }
    }
}
