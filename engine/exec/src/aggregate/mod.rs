//! `GROUP BY` and aggregates.

pub(crate) mod absorb;
pub(crate) mod accumulate;
pub(crate) mod collect;
mod operator;

pub(crate) use absorb::may_absorb;
pub(crate) use operator::{Aggregation, HashAggregate};
