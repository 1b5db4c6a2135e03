//! The in-memory row table: a skiplist of nodes, each with a chain of versions and a row lock.
//!
//! Source: Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD 2022,
//! sections 2.1.1 and 4.2. A node is a key; its versions are newest first, each with the commit
//! timestamp from which it is valid. At most one transaction has a pending change on a node, and
//! that transaction holds the row lock. Readers select versions by timestamp and never wait for a
//! lock.
//!
//! Invariants: commit timestamps strictly decrease along a chain. A pending change exists only
//! while the node is locked. A node is unlinked only under its own latch and is then *dead*: it can
//! never be locked again.
//!
//! Deliberately absent: segments, the log, and the decision what commits.

#![deny(unsafe_code)]

mod chain;
mod encoded;
mod entries;
mod holder;
mod list;
mod lock;
mod node;
mod reclaim;
mod rowstore;
mod sync;
mod version;

pub use encoded::{Key, Row};
pub use entries::{Entries, Entry};
pub use lock::{Blocker, LockError, Owner, Waiting};
pub use node::{FlushMark, Node};
pub use rowstore::Rowstore;
pub use version::{Change, Version, Visible};

#[cfg(test)]
#[cfg(feature = "loom")]
mod models;
#[cfg(test)]
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod tests;
