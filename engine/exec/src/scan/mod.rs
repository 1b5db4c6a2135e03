//! Access to a table: the scan over segments and rowstore, and the point read that replaces it when the
//! filters fix the whole primary key.

mod access;
mod by_index;
mod clauses;
mod index;
mod ordered;
mod point;
mod prune;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use access::{Cut, Order, build, build_locating, build_ordered, morsels};
