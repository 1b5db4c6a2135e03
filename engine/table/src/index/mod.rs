//! Secondary indexes, and finding the segments that may hold a key: index definitions and their
//! in-memory state, key ranges, the directory of a segment list, hash tables, and lookups in one
//! segment. Nothing here knows transactions.

pub(crate) mod candidates;
pub(crate) mod definition;
pub(crate) mod directory;
pub(crate) mod entries;
pub(crate) mod hash;
pub(crate) mod indexes;
mod intervals;
pub(crate) mod lookup;
pub(crate) mod range;
