//! What a version of a row says, and what a reader sees of it.

use crate::encoded::Row;
use nacre_types::Timestamp;

/// What a version says about the key from its timestamp on.
#[derive(Clone, Debug)]
pub enum Change {
    /// The row is this.
    Put(Row),
    /// There is no row.
    Delete,
    /// The row is in a segment from here on.
    Flushed,
}

/// A committed change.
#[derive(Clone, Debug)]
pub struct Version {
    /// The commit from which it is valid.
    pub commit: Timestamp,
    /// The commit that last changed the row's content. It differs from `commit` for versions that only
    /// moved the row between rowstore and segments: a move conflicts with no transaction.
    pub content: Timestamp,
    /// The change.
    pub change: Change,
}

/// What a reader sees at a node.
#[derive(Clone, Debug)]
pub enum Visible {
    /// This row.
    Row(Row),
    /// No row, neither here nor in a segment.
    Deleted,
    /// No version here; the row, if there is one, is in a segment.
    Elsewhere,
}
