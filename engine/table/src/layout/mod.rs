//! How rows and keys of a table lie in memory, in batches and in segments.

pub(crate) mod gather;
pub(crate) mod key_filter;
pub(crate) mod keys;
pub(crate) mod rows;
