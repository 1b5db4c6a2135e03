//! Access to a table: which way to read it, and the reading.
//!
//! `access` chooses: a point read when the filters fix the whole primary key, rows that indexes find
//! (`index`) when they are few, rows in an order (`ordered`), or else the blocks that zone maps leave
//! (`source`). `filter` takes the filters apart for zone maps and encoded columns. `split` cuts what
//! there is to read into morsels for several threads.

mod access;
mod filter;
mod index;
mod morsel;
mod ordered;
mod point;
mod source;
mod spec;
mod split;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use access::{ScanRequest, build, build_locating};
pub(crate) use morsel::Morsel;
pub(crate) use ordered::{Order, build as build_ordered};
pub(crate) use spec::ScanSpec;
pub(crate) use split::{AskIndexes, SplitScan, split};
