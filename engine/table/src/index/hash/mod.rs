//! Immutable hash tables from keys to segments.

pub(crate) mod reader;
pub(crate) mod table;
