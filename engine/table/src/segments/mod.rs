//! Segments as members of a table: files, state, delete bitmaps, parts of indexes.

pub(crate) mod bitmap_cache;
pub(crate) mod file;
pub(crate) mod part;
pub(crate) mod state;
pub(crate) mod sync;
