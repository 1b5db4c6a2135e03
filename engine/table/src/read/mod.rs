//! Reads: a view of a table at a snapshot, one row by key, few rows by equality, range probes of
//! an index or the primary key, and the rows that differ between two views.

mod changed;
pub(crate) mod equal;
pub(crate) mod files;
pub(crate) mod point;
pub(crate) mod probe;
mod probe_key;
pub(crate) mod reader;
pub(crate) mod runs;
pub(crate) mod segment_view;
pub(crate) mod view;
pub(crate) mod warming;
