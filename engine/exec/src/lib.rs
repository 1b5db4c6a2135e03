//! Vectorised execution: evaluates bound expressions over batches and runs logical plans as pull
//! operators.
//!
//! `build` turns a plan into operators. `operator` has their protocol and the small ones; `scan`,
//! `join`, `sort`, `aggregate` and `window` have the others; `parallel` runs parts of a plan on
//! several threads. Below them: `expr` evaluates expressions, `group` numbers keys, `buffer` holds
//! rows in memory and `spill` in a temporary file, within the limit that `memory` divides.
//! `context` is what a statement gives to all of them.
//!
//! Invariants: an operator never returns an empty batch or one of more than
//! [`nacre_types::limits::VECTOR_ROWS`] rows; a row outside a batch's selection never raises an
//! error. No operator knows the builder. Nothing here waits, writes tables, or knows SQL text.

mod aggregate;
mod buffer;
mod build;
mod context;
pub mod expr;
mod group;
mod join;
mod join_filter;
mod memory;
mod operator;
mod parallel;
mod scan;
mod sort;
mod spill;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests_absent;
#[cfg(test)]
mod tests_first_rows;
#[cfg(test)]
mod tests_limits;
mod window;

pub use buffer::pieces;
pub use build::{build, build_collected, build_locating};
pub use context::profile::{Measured, Profile};
pub use context::statistics::Statistics;
pub use context::supplied::SuppliedRows;
pub use context::threads::Threads;
pub use context::time_slice::TimeSlice;
pub use context::{Context, tables_of};
pub use expr::{cast_value, cast_value_of, evaluate, evaluate_alone, evaluate_constant, filter};
pub use memory::{Memory, Reservation};
pub use operator::protocol::{LocatedColumns, LocatingOperator, Operator};
pub use operator::row_count;
