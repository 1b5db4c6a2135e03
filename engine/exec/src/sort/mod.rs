//! Sorting: the operator, keys as comparable bytes, and sorted runs in the temporary file.

mod first_key;
mod key;
mod operator;
mod runs;

pub(crate) use first_key::{Ahead, FirstKey};
pub(crate) use key::SortKeys;
pub(crate) use operator::Sort;
pub(crate) use runs::{Merge, Runs};
