//! Transactions: snapshot isolation, row locks, first committer wins.

mod changes;
mod claimed;
mod claiming;
mod core;
pub(crate) mod handle;
mod hidden;
mod keyed;
mod locking;
pub(crate) mod manager;
pub(crate) mod moves;
mod unique;
mod write_set;
