//! `GROUP BY` and aggregates.

pub mod accumulator;
mod collected;
mod operator;

pub use operator::{Aggregation, HashAggregate};
