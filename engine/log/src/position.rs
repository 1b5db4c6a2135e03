//! Positions in the log.

use nacre_types::{Error, Reason};

/// A byte position in the logical log. Positions that callers see are always the end of a record
/// (or zero).
pub type Lsn = u64;

/// The error for a position that is not in the log, or not any more.
#[cold]
pub(crate) fn gone(position: Lsn) -> Error {
    Error::not_found(format!("position {position} is no longer in the log"))
        .with_reason(Reason::LogGone)
        .with_hint("start again from a snapshot")
}
