//! The state of a session: the frames of its polls, its transaction, and its stream.

use crate::model::verdict::{Answer, Verdict};
use crate::model::{State, Txn};
use crate::op::Op;
use nacredb::walked::{self, Path};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One poll of one session.
pub struct Frame {
    /// The session polled.
    pub session: usize,
    /// The committed state at the start of the frame.
    pub(super) base: State,
    pub(super) base_index: u64,
    /// How many transactions had begun at its start.
    pub(super) begins: u64,
    /// How many have begun since in frames inside it.
    pub(super) begins_inside: u64,
    pub(super) faults: u64,
    pub(super) log_failures: u64,
    /// The number of commits that the last log sync covers.
    pub(super) synced: Option<u64>,
    /// Whether a load has synced the log, which it does once, at its end.
    pub(super) load_synced: bool,
    /// Whether a log chunk was created and its header is about to be synced.
    pub(super) rotating: bool,
    /// Whether it has read from a segment.
    pub(super) has_read: bool,
    /// Whether other sessions run while it writes or syncs the log.
    pub(super) is_at_log: bool,
}

/// Cancels an operation in its middle.
pub struct Cancel {
    /// Calls of the disk, or polls, until then.
    pub left: u64,
    /// Set then.
    pub flag: Arc<AtomicBool>,
}

/// A session as the model knows it.
#[derive(Default)]
pub struct SessionState {
    /// Its open transaction.
    pub txn: Option<Txn>,
    /// Its current or next operation.
    pub op: Option<Op>,
    /// How many faults there had been when it began.
    pub faults_before: u64,
    /// The committed state when it began, and its number of commits.
    pub begun: Option<(State, u64)>,
    /// The committed state at the start of the frame in which it last took a snapshot, if that has ended: it
    /// may give way with its snapshot.
    pub seen: Option<(State, u64)>,
    /// The table that a bulk load was started on, and its version.
    pub bulk_table: Option<(u64, u64)>,
    /// Whether it is writing segments of a bulk load and holds no lock.
    pub bulk_append: bool,
    /// The rows expected from its stream.
    pub stream: Option<Answer>,
    /// Whether it has a stream, which keeps a snapshot.
    pub is_streaming: bool,
    /// If the current operation is to be cancelled, when and how.
    pub cancel: Option<Cancel>,
    /// The verdict of the current operation's commit, if that has taken effect although the call
    /// continues.
    pub(super) committed: Option<Verdict>,
}

/// How a session continues after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run the next operation.
    Go,
    /// Abandon the transaction, if the script says so.
    Failed,
}

impl Frame {
    /// Whether its statement has taken a snapshot in it.
    pub(super) fn has_begun(&self) -> bool {
        begins() > self.begins + self.begins_inside
    }
}

/// How many transactions of sessions have begun.
pub(super) fn begins() -> u64 {
    walked::counts()[Path::Begin as usize] - ELSEWHERE.get()
}

thread_local! {
    /// How many transactions have begun that are not those of sessions.
    static ELSEWHERE: Cell<u64> = const { Cell::new(0) };
}

/// Counts from the start again. The paths walked are counted again too.
pub fn reset() {
    ELSEWHERE.set(0);
}

/// Runs what begins transactions that are not those of sessions, inside a session's call.
pub fn elsewhere<T>(run: impl FnOnce() -> T) -> T {
    let before = begins();
    let done = run();
    ELSEWHERE.set(ELSEWHERE.get() + begins() - before);
    done
}

/// Whether the call is one of an update of many rows, which writes files before it commits.
pub(super) fn is_updating() -> bool {
    walked::current() == Some(Path::ManyUpdated)
}

/// Whether the call is one of the last round of a load, of its commit, or of one that creates a table.
pub(super) fn is_publishing() -> bool {
    matches!(walked::current(), Some(Path::LoadEnd | Path::Load))
}
