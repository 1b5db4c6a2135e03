//! Sorting: the operator, keys as comparable bytes, and sorted runs in the temporary file.

mod first_key;
mod key;
mod operator;
mod runs;

pub use first_key::{FirstKey, SortedAhead};
pub use key::SortKeys;
pub use operator::Sort;
pub use runs::{Merge, Runs};
