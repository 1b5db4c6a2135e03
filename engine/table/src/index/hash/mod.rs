//! Hash tables from keys to segments: the cross-segment part of an index.

pub(crate) mod reader;
pub(crate) mod table;
