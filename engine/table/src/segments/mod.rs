//! Segments as members of a table: their files, from when until when they belong to it, which of
//! their rows are deleted as of when, their parts of indexes, and what is left of them afterwards.

pub(crate) mod bitmap_cache;
mod deletes;
pub(crate) mod distinct;
pub(crate) mod files;
pub(crate) mod garbage;
pub(crate) mod names;
pub(crate) mod part;
pub(crate) mod state;
pub(crate) mod sync;
