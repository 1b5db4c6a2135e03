//! The functions that SQL has beside operators: [`registry`] lists every one, by all its names.
//!
//! What a function is and what evaluates it is in `nacre-function`. Aggregates that loop over columns
//! are there, too; what is here is compiled for size where that counts.

mod average;
pub mod date_part;
pub mod registry;
pub mod scalar;
pub mod window;
