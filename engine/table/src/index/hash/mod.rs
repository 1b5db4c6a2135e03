//! Hash tables from keys to segments: the global half of an index.

pub(crate) mod reader;
pub(crate) mod table;
