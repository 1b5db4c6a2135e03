//! The protocol of operators, and the operators that fit one file. Each pulls batches from its
//! inputs.
//!
//! Scans, joins, sorts, aggregates and windows have folders of their own beside this one.

mod duplicates;
mod filter;
pub(crate) mod inputs;
pub(crate) mod json_rows;
mod limit;
pub(crate) mod limit_by;
mod project;
pub(crate) mod protocol;
mod recursive;
pub(crate) mod series;
pub(crate) mod set_operation;
mod settle;
mod shared_rows;
mod supplied;
#[cfg(test)]
mod tests;
mod union;
mod values;

pub(crate) use duplicates::Duplicates;
pub(crate) use filter::Filter;
pub use limit::row_count;
pub(crate) use limit::{Limit, rows_needed};
pub(crate) use project::Project;
pub(crate) use recursive::Recursive;
pub(crate) use settle::settle;
pub(crate) use shared_rows::{SharedRows, SharedScan};
pub(crate) use supplied::SuppliedScan;
pub(crate) use union::Union;
pub(crate) use values::ValuesScan;
