//! The protocol of operators, and the operators that fit one file. Each pulls batches from its
//! inputs.
//!
//! Scans, joins, sorts, aggregates and windows have folders of their own beside this one.

mod duplicates;
mod filter;
pub mod inputs;
pub mod json_rows;
mod limit;
pub mod limit_by;
mod project;
pub mod protocol;
mod recursive;
pub mod series;
pub mod set_operation;
mod settle;
mod shared_rows;
mod supplied;
mod union;
mod values;

pub use duplicates::Duplicates;
pub use filter::Filter;
pub use limit::row_count;
pub use limit::{Limit, rows_needed};
pub use project::Project;
pub use recursive::Recursive;
pub use settle::settle;
pub use shared_rows::{SharedRows, SharedScan};
pub use supplied::SuppliedScan;
pub use union::Union;
pub use values::ValuesScan;
