//! Positions in the log.

/// A byte position in the logical log. Positions that callers see are always the end of a record
/// (or zero).
pub type Lsn = u64;
