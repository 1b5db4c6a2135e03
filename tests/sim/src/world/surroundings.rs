//! What surrounds the operation of a session: outer frames, concurrent loads and faults.

use super::{SessionState, World};
use crate::op::Op;
use crate::subject::{is_commit, table_of};
use nacredb::{Error, ErrorKind};

impl World {
    /// Whether a bulk load in an outer frame is about to become durable.
    pub(super) fn loading(&self) -> bool {
        let outer = self.frames.iter().rev().skip(1).map(|f| &self.sessions[f.session]);
        outer.into_iter().any(|s| {
            matches!(s.op, Some(Op::Bulk { .. })) && !s.bulk_append && s.committed.is_none()
        })
    }

    /// Whether another session's bulk load is being published, and may hold locks.
    pub(super) fn publishing(&self, session: usize) -> bool {
        let is_load = |op: &Op| matches!(op, Op::Bulk { .. });
        let mut others = self.sessions.iter().enumerate().filter(|(at, _)| *at != session);
        others.any(|(_, s)| s.op.as_ref().is_some_and(is_load) && !s.bulk_append)
    }

    /// Whether a commit in an outer frame is about to become durable.
    pub(super) fn committing(&self) -> bool {
        let mut outer = self.frames.iter().rev().skip(1).map(|f| &self.sessions[f.session]);
        outer.any(|s| s.op.as_ref().is_some_and(is_commit) && s.committed.is_none())
    }

    /// Whether a bulk load changed the table after the session's snapshot. Merges do not preserve
    /// which rows were loaded, so all rows then conflict.
    pub(super) fn loaded(&self, session: usize, op: &Op) -> bool {
        let known = table_of(op).and_then(|name| self.model.latest.tables.get(name));
        let snapshot = self.sessions[session].txn.as_ref().map(|txn| txn.snapshot);
        known.zip(snapshot).is_some_and(|(table, at)| {
            self.model.loaded.get(&table.id).is_some_and(|load| *load > at)
        })
    }

    /// Whether a write may be refused because the rowstores are full: something keeps their rows
    /// from being flushed, or flushes have failed.
    pub(super) fn may_refuse(&self, session: usize, op: &Op, error: &Error) -> bool {
        let is_refusal =
            error.kind() == ErrorKind::Limit && error.message().starts_with("rowstore: ");
        let writes = op.locks_rows() || matches!(op, Op::Fill { .. });
        if !is_refusal || !self.is_limited || !writes {
            return false;
        }
        let keeps = |(at, state): (usize, &SessionState)| {
            let is_loading = at != session && matches!(state.op, Some(Op::Bulk { .. }));
            state.txn.is_some() || state.is_streaming || is_loading
        };
        self.sessions.iter().enumerate().any(keeps)
            || self.frames.len() > 1
            || self.disk.counts().faults > self.faults_before
    }

    /// Whether a fault occurred during the innermost frame.
    pub(super) fn disturbed(&self) -> bool {
        self.frames.last().is_some_and(|f| self.disk.counts().faults > f.faults)
    }

    /// Whether a log call has failed since the database was opened.
    pub(super) fn log_failed(&self) -> bool {
        self.model.poisoned || self.disk.counts().log_failures > self.log_failures_before
    }
}
