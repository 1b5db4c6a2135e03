//! What a run knows of its databases.

use crate::tiers::blobs::SimBlobs;
use nacredb::Database;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The time of a lease.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// How failures name a reader that has no room for what it warms.
pub(super) const SMALL_READER: &str = "a reader with a small disk";

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
    /// How failures name it.
    pub(super) what: &'static str,
    /// The position of the upload that it shows.
    pub(super) position: u64,
    /// What it shows.
    pub(super) state: State,
    /// When it looked last.
    pub(super) looked_us: i64,
}

/// A branch of the database.
pub(super) struct Branch {
    pub(super) blobs: Arc<SimBlobs>,
    /// What it must show.
    pub(super) state: State,
}

/// The text of a row, which makes segments long.
pub(super) fn text_of(key: i64, value: i64) -> String {
    format!("{key}/{value}/").repeat(1 + (key + value).unsigned_abs() as usize % 12)
}
