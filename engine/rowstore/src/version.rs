//! The content of a row version, and what a reader sees of it.

use crate::encoded::Row;
use nacre_types::Timestamp;

/// What a version says about the key from its timestamp on.
#[derive(Clone, Debug)]
pub enum Change {
    /// The row has this content.
    Put(Row),
    /// The row does not exist.
    Delete,
    /// The row is in a segment from then on.
    Flushed,
}

impl Change {
    /// The row, if there is one.
    pub fn into_row(self) -> Option<Row> {
        match self {
            Change::Put(row) => Some(row),
            Change::Delete | Change::Flushed => None,
        }
    }
}

/// A committed change.
#[derive(Clone, Debug)]
pub struct Version {
    /// The commit from which it is valid.
    pub commit: Timestamp,
    /// The commit that last changed the row's content. Differs from `commit` for versions that only
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
    /// No row, neither in the rowstore nor in a segment.
    Deleted,
    /// No version in the rowstore; the row, if it exists, is in a segment.
    Elsewhere,
}
