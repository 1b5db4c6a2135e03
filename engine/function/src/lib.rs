//! SQL functions and the kernels of expressions: what a call means and how it is evaluated.
//!
//! Knows types and vectors. Knows neither plans nor syntax: the binder and the evaluator come to this
//! crate, never the other way round.

pub mod date_part;
pub mod kernel;
pub mod operator;
pub mod vector;
