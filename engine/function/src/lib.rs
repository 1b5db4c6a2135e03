//! SQL functions and expression kernels: the meaning of calls and their evaluation.
//!
//! Depends on types and vectors, not on plans or syntax: the binder and the evaluator call this
//! crate, never the reverse. [`registry`] lists every function; an entry (`entry/`) holds
//! everything that other code needs of one.

pub mod aggregate;
pub mod date_part;
pub mod decimal_type;
pub mod entry;
pub mod json;
pub mod kernel;
pub mod operator;
pub mod registry;
pub mod scalar;
pub mod vector;
pub mod window;
