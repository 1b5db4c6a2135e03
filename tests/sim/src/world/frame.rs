//! What a session is in the middle of: the frames of its polls, its transaction, its stream.

use crate::model::{State, Txn};
use crate::op::Op;
use crate::verdict::{Answer, Verdict};

/// One poll of one session.
pub struct Frame {
    /// Whose.
    pub session: usize,
    /// The committed state when it began.
    pub(super) base: State,
    pub(super) base_index: u64,
    pub(super) faults: u64,
    pub(super) log_failures: u64,
    /// Commits that the last sync of the log covers.
    pub(super) synced: Option<u64>,
    /// A chunk of the log was made and its header is to be synced.
    pub(super) rotating: bool,
    /// It has read of a segment.
    pub(super) has_read: bool,
}

/// A session as the model knows it.
#[derive(Default)]
pub struct SessionState {
    /// Its open transaction.
    pub txn: Option<Txn>,
    /// What it does now or next.
    pub op: Option<Op>,
    /// The table a bulk load was started on, and its version.
    pub bulk_table: Option<(u64, u64)>,
    /// It makes the segments of a bulk load and holds no lock.
    pub bulk_append: bool,
    /// What is to come of its stream.
    pub stream: Option<Answer>,
    /// The commit of the current operation has happened, though its call goes on.
    pub(super) committed: Option<Verdict>,
}

/// What a session should do after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its next operation.
    Go,
    /// Give the transaction up, if the script says so.
    Failed,
}
