//! The layout of a table's rows and keys in memory, in batches and in segments. Everything here
//! derives from the schema and the given bytes; nothing knows tables, commits or snapshots.

pub(crate) mod bounds;
pub(crate) mod columns;
pub(crate) mod computed;
pub(crate) mod constraints;
pub(crate) mod gather;
pub(crate) mod key_filter;
pub(crate) mod keys;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod sorted_keys;
pub(crate) mod table_layout;
