//! `GROUP BY` and aggregates.

pub(crate) mod accumulator;
mod collected;
mod operator;

pub(crate) use operator::{Aggregation, HashAggregate};
