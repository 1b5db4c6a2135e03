//! Secondary indexes, and finding the segments that may hold a key.

pub(crate) mod definition;
pub(crate) mod directory;
pub(crate) mod entries;
pub(crate) mod hash;
pub(crate) mod intervals;
