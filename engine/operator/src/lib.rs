//! Evaluates bound expressions over batches, and has the operators that take batches from others.
//!
//! `operator` has their protocol and the small ones; `join`, `sort`, `aggregate` and `window` have the
//! others. Below them: `expr` evaluates expressions, `group` numbers keys, `join_filter` knows which
//! keys a join can match, `buffer` holds rows in memory and `spill` in a temporary file, within the
//! limit that `memory` divides. `context` is what a statement gives to all of them.
//!
//! Invariants: an operator never returns an empty batch or one of more than
//! [`nacre_types::limits::VECTOR_ROWS`] rows; a row outside a batch's selection never raises an
//! error. No operator knows where its rows come from, or who builds it. Nothing here waits, writes
//! tables, or knows SQL text.
//!
//! A crate by itself because its loops run for each row: for WebAssembly it is compiled for size, and
//! the rest of execution for the smallest size.

pub mod aggregate;
pub mod buffer;
pub mod context;
pub mod expr;
pub mod group;
pub mod join;
pub mod join_filter;
pub mod memory;
pub mod operator;
pub mod sort;
mod spill;
#[cfg(test)]
mod tests_limits;
pub mod window;

pub use buffer::pieces;
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
