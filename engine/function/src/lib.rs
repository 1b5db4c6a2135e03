//! What functions are, and the kernels that evaluate operators, casts and aggregates.
//!
//! Depends on types and vectors, not on plans or syntax: the binder and the evaluator call this
//! crate, never the reverse. An entry (`entry/`) holds everything that other code needs of a
//! function. The functions themselves, and their registry, are in `nacre-builtin`.

pub mod aggregate;
pub mod decimal_type;
pub mod entry;
pub mod json;
pub mod kernel;
pub mod operator;
pub mod vector;
