//! `check`: compares what is stored with what must hold.

pub(crate) mod hashes;
pub(crate) mod indexes;
pub(crate) mod rows;
