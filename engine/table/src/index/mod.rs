//! Secondary indexes, and finding the segments that may hold a key: what an index is and keeps in
//! memory, ranges of its keys, the directory of a list of segments, hash tables, and looking into one
//! segment. Nothing here knows a transaction.

pub(crate) mod candidates;
pub(crate) mod definition;
pub(crate) mod directory;
pub(crate) mod entries;
pub(crate) mod hash;
pub(crate) mod indexes;
mod intervals;
pub(crate) mod lookup;
pub(crate) mod range;
