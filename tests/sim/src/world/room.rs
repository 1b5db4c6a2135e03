//! What other sessions may do in the middle of a call of one session.

use super::World;
use super::frame::is_updating;
use crate::disk::Class;
use crate::model::Txn;
use crate::op::{Op, Weight};
use crate::subject::is_commit;

impl World {
    /// The heaviest operation another session may run while this class of file is accessed, if any.
    pub fn room(&self, class: Class) -> Option<Weight> {
        let frame = self.frames.last()?;
        let state = &self.sessions[frame.session];
        let has_changes = |txn: &Txn| !txn.catalog.is_empty();
        let ddl = match &state.op {
            Some(Op::Commit) => state.txn.as_ref().is_some_and(has_changes),
            op => op.as_ref().is_some_and(Op::is_ddl),
        };
        // A relaxed commit may become visible before or after the log is written.
        let open =
            !self.strict && state.committed.is_none() && state.op.as_ref().is_some_and(is_commit);
        match class {
            Class::Log | Class::Folder if ddl || open => None,
            // The session that syncs the log blocks others from syncing it.
            Class::Log | Class::Folder => Some(Weight::Writes),
            // A statement that writes segments may itself run while another session is at the log.
            Class::Segment | Class::Snapshot if self.frames.iter().any(|f| f.is_at_log) => {
                Some(Weight::Writes)
            }
            // The model would not know which snapshot a statement has that is repeated after a
            // conflict.
            Class::Segment if is_updating() && state.txn.is_none() => Some(Weight::Reads),
            Class::Segment | Class::Snapshot => {
                let free = self.frames.iter().all(|f| self.sessions[f.session].bulk_append);
                Some(if free { Weight::Maintains } else { Weight::Commits })
            }
        }
    }

    /// Notes whether other sessions run while the innermost one accesses this class of file.
    pub fn interrupt(&mut self, class: Class, is_interrupted: bool) {
        if let Some(frame) = self.frames.last_mut() {
            frame.is_at_log = is_interrupted && matches!(class, Class::Log | Class::Folder);
        }
    }

    /// Whether this is the innermost session's first read in an operation that reads all rows
    /// before it takes a lock, so that other sessions may change them in between. Reads after its
    /// commit are maintenance, which may hold a lock; only a strict commit shows when that begins.
    pub fn looks_ahead(&mut self) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        let first =
            !std::mem::replace(&mut frame.has_read, true) && self.strict && frame.synced.is_none();
        let op = self.sessions[frame.session].op.as_ref();
        first && matches!(op, Some(Op::CreateIndex { index, alter: false, .. }) if index.unique)
    }

    /// Whether a session's current operation is light enough.
    pub fn fits(&self, session: usize, room: Weight) -> bool {
        let state = &self.sessions[session];
        let weight = |op: &Op| match op.weight(state.txn.is_some()) {
            Weight::Writes if self.relieves => Weight::Maintains,
            weight => weight,
        };
        state.op.as_ref().is_none_or(|op| weight(op) <= room)
    }
}
