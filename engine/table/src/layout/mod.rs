//! How rows and keys of a table lie in memory, in batches and in segments. Everything here follows
//! from the schema and the bytes at hand; nothing here knows a table, a commit or a snapshot.

pub(crate) mod columns;
pub(crate) mod constraints;
pub(crate) mod gather;
pub(crate) mod key_filter;
pub(crate) mod keys;
pub(crate) mod rows;
pub(crate) mod sorted_keys;
pub(crate) mod table_layout;
