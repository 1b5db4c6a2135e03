//! Reads: a view of a table at a snapshot, one row by its key, few rows by equality, and probes of an
//! index or of the primary key with ranges.

pub(crate) mod equal;
pub(crate) mod point;
pub(crate) mod probe;
mod probe_key;
pub(crate) mod reader;
pub(crate) mod runs;
pub(crate) mod view;
