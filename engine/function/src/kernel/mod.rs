//! Kernels of operators and casts: pure functions from vectors to a vector.

pub mod arithmetic;
pub mod cast;
pub mod compare;
pub mod concat;
pub mod decimals;
pub mod double;
pub mod interval;
pub mod like;
pub mod order;
pub mod parse;
pub mod search;
pub mod truth;
