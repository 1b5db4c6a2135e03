//! Reads: a view of a table at a snapshot, one row by its key, few rows by equality, ranges of an index.

pub(crate) mod equal;
pub(crate) mod point;
pub(crate) mod probe;
mod probe_key;
pub(crate) mod view;
