//! SQL functions and the kernels of expressions: what a call means and how it is evaluated.
//!
//! Knows types and vectors. Knows neither plans nor syntax: the binder and the evaluator come to this
//! crate, never the other way round. [`registry`] lists every function; an entry (`entry/`) holds all
//! that anything else knows of one.

pub mod aggregate;
pub mod date_part;
pub mod decimal_type;
pub mod entry;
pub mod kernel;
pub mod operator;
pub mod registry;
pub mod scalar;
pub mod vector;
pub mod window;
