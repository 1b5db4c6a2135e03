//! Joins: the collected side and its hash table, probing it, and what does not fit in memory.

mod build_side;
mod hash;
mod keys;
mod partitioned;
mod probe;
#[cfg(test)]
mod tests;

pub(crate) use build_side::{Build, JoinSpec};
pub(crate) use hash::HashJoin;
