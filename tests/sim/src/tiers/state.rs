//! What a run knows of its databases.

use nacredb::Database;
use std::collections::BTreeMap;

/// The rows of the table by key; `None` without a table.
pub(super) type State = Option<BTreeMap<i64, i64>>;

/// A commit of the model.
#[derive(Clone)]
pub(super) struct Commit {
    /// The end of the log before its record.
    pub(super) before: u64,
    /// The end of the log when it was acknowledged; `u64::MAX` if that is not known.
    pub(super) after: u64,
    /// What it left.
    pub(super) state: State,
}

/// A database that only reads the blobs.
pub(super) struct Reader {
    pub(super) db: Database,
    /// The position of the upload that it shows.
    pub(super) position: u64,
    /// What it shows.
    pub(super) state: State,
    /// When it looked last.
    pub(super) looked_us: i64,
}
