//! Table access: chooses an access path and reads rows.
//!
//! `access` chooses: a point read if the filters fix the whole primary key, rows found by indexes
//! (`index`) if they are few, rows in an order (`ordered`), or else the blocks that zone maps
//! cannot rule out (`source`). `filter` splits the filters for zone maps and encoded columns.
//! `split` divides the input into morsels for several threads.

mod access;
mod ahead;
mod elements;
mod extremes;
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
#[cfg(test)]
mod tests_adaptive;
#[cfg(test)]
mod tests_order;
mod upcoming;
mod view;
mod warm_up;

pub(crate) use access::{ScanRequest, build, build_locating};
pub(crate) use ahead::build_ahead;
pub(crate) use elements::build_elements;
pub(crate) use extremes::{build_extremes, extremes_of};
pub(crate) use morsel::Morsel;
pub(crate) use ordered::{Order, build as build_ordered};
pub(crate) use spec::ScanSpec;
pub(crate) use split::{AskIndexes, SplitScan, split};
pub(crate) use warm_up::build_warm_up;
