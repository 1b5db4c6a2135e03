//! Segments as members of a table: their files, the timestamps between which they belong to it,
//! their delete bitmaps and index parts, and their garbage collection.

pub(crate) mod bitmap_cache;
pub(crate) mod claims;
mod deletes;
pub(crate) mod distinct;
pub(crate) mod files;
pub(crate) mod garbage;
pub(crate) mod names;
pub(crate) mod part;
pub(crate) mod state;
pub(crate) mod sync;
