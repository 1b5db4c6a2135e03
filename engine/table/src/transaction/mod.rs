//! Transactions: snapshot isolation, row locks, first committer wins.

mod indexed;
pub(crate) mod keyed;
pub(crate) mod locking;
pub(crate) mod moves;
mod reader;
pub(crate) mod state;
