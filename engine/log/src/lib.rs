//! The log: redo records in chunk files, group commit, snapshots, recovery. A commit writes nothing
//! else.
//!
//! Invariants:
//! - A position ([`Lsn`]) counts record bytes since the database was created. It never decreases,
//!   and a position that was once durable is never reused, unless its loss was accepted.
//! - A chunk starts only after everything before it is durable, so every chunk but the last is
//!   complete.
//! - A snapshot starts only after the log is durable up to its position, and the files it replaces
//!   are removed only after it is durable itself.
//! - A chunk that a follower needs is removed only once that follower is given up.
//! - How far the log must reach is recorded only after the log reaches that far.
//! - After a failed write or sync, nothing more is written and no later commit is reported as
//!   durable.
//!
//! Deliberately absent: the meaning of a record or snapshot (payloads are opaque), the decision
//! when to sync or to take a snapshot (the caller's), timers and threads. Calls block for as long
//! as the host's file calls do.

mod cut;
mod followers;
mod format;
mod log;
#[cfg(test)]
#[cfg(feature = "loom")]
mod models;
mod options;
mod position;
mod reach;
mod reader;
mod recovery;
mod snapshot;
mod sync;
mod tail;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;
mod turns;
mod writer;

pub use cut::{end_of_records, goes_on_after};
pub use format::{
    HEADER_BYTES, MAX_RECORD_BYTES, REACH, chunk_name, chunk_of, database_of, has_log, position_at,
    snapshot_name, snapshot_of,
};
pub use log::{Log, check_length};
pub use options::LogOptions;
pub use position::Lsn;
pub use snapshot::NewSnapshot;
pub use tail::LogReader;
