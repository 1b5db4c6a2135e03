//! What surrounds the operation of a session: outer frames, concurrent loads and faults.

use super::frame::Frame;
use super::{Cancel, SessionState, World};
use crate::model::verdict::{Answer, Verdict};
use crate::model::{State, Txn};
use crate::op::Op;
use crate::op::condition::Where;
use crate::subject::{is_commit, table_of};
use nacredb::{Error, ErrorKind, OnDuplicate, Result};
use std::sync::atomic::Ordering;

impl World {
    /// The state that the statement of the innermost frame sees, and its commit.
    pub(super) fn seen(&self) -> Option<(State, u64)> {
        let frame = self.frames.last()?;
        let before = self.sessions[frame.session].seen.as_ref();
        let of_frame = || (frame.base.clone(), frame.base_index);
        Some(before.filter(|_| !frame.has_begun()).cloned().unwrap_or_else(of_frame))
    }

    /// Whether the statement of the innermost frame has taken a snapshot.
    pub(super) fn has_begun(&self) -> bool {
        let has_seen = |frame: &Frame| self.sessions[frame.session].seen.is_some();
        self.frames.last().is_some_and(|frame| frame.has_begun() || has_seen(frame))
    }

    /// Like [`World::judge`], after the commits in outer frames that are about to become durable:
    /// their unique values are free once they are in the log.
    pub(super) fn judge_ahead(&mut self, session: usize, op: &Op) -> Verdict {
        let latest = self.model.latest.clone();
        for depth in 1..self.frames.len() {
            let inner = self.frames.split_off(depth);
            if let Some(outer) = self.frames.last().map(|frame| frame.session)
                && self.sessions[outer].committed.is_none()
                && let Some(commit) = self.sessions[outer].op.clone().filter(is_commit)
            {
                let verdict = self.judge(outer, &commit);
                self.model.latest.apply(&verdict.writes);
            }
            self.frames.extend(inner);
        }
        let verdict = self.judge(session, op);
        self.model.latest = latest;
        verdict
    }

    /// Like [`World::judge`], as if nothing had been committed since the operation took its snapshot,
    /// if that explains its result, or else since it began.
    pub(super) fn judge_before(
        &mut self,
        session: usize,
        op: &Op,
        result: &Result<Answer>,
    ) -> Verdict {
        let begun = self.sessions[session].begun.clone();
        let mut verdict = Verdict::done();
        for (state, _) in self.seen().into_iter().chain(begun) {
            let latest = std::mem::replace(&mut self.model.latest, state);
            verdict = self.judge(session, op);
            self.model.latest = latest;
            if verdict.answer.as_ref() == result.as_ref().ok() {
                break;
            }
        }
        verdict
    }

    /// The table that an operation loads rows into as a commit of their own.
    pub(super) fn loads_into(&self, session: usize, op: &Op) -> Option<u64> {
        match op {
            Op::Bulk { .. } => self.sessions[session].bulk_table.map(|(table, _)| table),
            Op::Fill { table, policy: OnDuplicate::Skip | OnDuplicate::Replace, .. } => {
                self.model.latest.tables.get(*table).map(|table| table.id)
            }
            _ => None,
        }
    }

    /// Whether `CREATE TABLE IF NOT EXISTS … AS` did nothing because the table existed briefly.
    pub(super) fn found_for_a_moment(
        &self,
        session: usize,
        op: &Op,
        result: &Result<Answer>,
    ) -> bool {
        let (Op::CreateAs { table, if_missing: true, .. }, Ok(Answer::Done)) = (op, result) else {
            return false;
        };
        let begun = self.sessions[session].begun.as_ref();
        begun.is_some_and(|(_, index)| self.model.freed_since(table, *index))
    }

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

    /// Whether a bulk load or an update of many rows changed the table after the session's snapshot.
    /// Merges do not preserve which rows these were, so all rows then conflict.
    pub(super) fn loaded(&self, session: usize, op: &Op) -> bool {
        let known = table_of(op).and_then(|name| self.model.latest.tables.get(name));
        let snapshot = self.sessions[session].txn.as_ref().map(|txn| txn.snapshot);
        known.zip(snapshot).is_some_and(|(table, at)| {
            self.model.loaded.get(&table.id).is_some_and(|load| *load > at)
        })
    }

    /// Whether the operation of a session has begun: it is in an outer frame, or has given way.
    fn is_running(&self, session: usize) -> bool {
        let is_there = self.frames.iter().any(|frame| frame.session == session);
        is_there || self.sessions[session].begun.is_some()
    }

    /// Whether another session may hold locks of rows: in a transaction, or for a statement.
    pub(super) fn locking(&self, session: usize) -> bool {
        let locks = |op: &Op| op.locks_rows();
        let is_one =
            |at: usize| self.is_running(at) && self.sessions[at].op.as_ref().is_some_and(locks);
        let mut others = self.sessions.iter().enumerate().filter(|(at, _)| *at != session);
        others.any(|(at, state)| state.txn.is_some() || is_one(at))
    }

    /// Whether another session may be about to change rows of the table together, which are not
    /// merged meanwhile.
    pub(super) fn claims(&self, session: usize, op: &Op) -> bool {
        let known = |state: &State| {
            table_of(op).and_then(|name| state.tables.get(name)).map(|table| table.id)
        };
        let base = self.frames.last().and_then(|frame| known(&frame.base));
        let ids = [base, known(&self.model.latest)];
        let has_changed = |txn: &Txn| {
            let mine = txn.writes.keys().filter(|(table, _)| ids.contains(&Some(*table)));
            mine.count() >= self.bulk_rows
        };
        let is_changing = |at: usize| {
            let other = self.sessions[at].op.as_ref().filter(|other| other.changes_rows());
            self.is_running(at) && other.is_some_and(|other| table_of(other) == table_of(op))
        };
        let mut others = self.sessions.iter().enumerate().filter(|(at, _)| *at != session);
        others.any(|(at, state)| state.txn.as_ref().is_some_and(has_changed) || is_changing(at))
    }

    /// Whether a write may be refused because the rowstores are full: something keeps their rows
    /// from being flushed, or flushes have failed.
    pub(super) fn may_refuse(&self, session: usize, op: &Op, error: &Error) -> bool {
        let is_refusal =
            error.kind() == ErrorKind::Limit && error.message().starts_with("rowstore: ");
        let writes = op.locks_rows() || matches!(op, Op::Fill { .. } | Op::CreateAs { .. });
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

    /// Counts a call of the disk, or a poll, of the innermost session. Cancels its operation if it is
    /// time.
    pub fn count_down(&mut self) {
        let Some(session) = self.frames.last().map(|frame| frame.session) else { return };
        let Some(cancel) = &mut self.sessions[session].cancel else { return };
        cancel.left = cancel.left.saturating_sub(1);
        if cancel.left == 0 && !cancel.flag.swap(true, Ordering::Relaxed) {
            self.tell(|| format!("— s{session} is cancelled"));
        }
    }

    /// Whether an operation was cancelled in its middle, as its error says.
    pub(super) fn is_cancelled(&mut self, session: usize, op: &Op, error: &Error) -> bool {
        let is_set = |cancel: &Cancel| cancel.flag.load(Ordering::Relaxed);
        let is_cancelled = error.kind() == ErrorKind::Cancelled
            && self.sessions[session].cancel.as_ref().is_some_and(is_set);
        if is_cancelled {
            let what = match op {
                Op::Bulk { .. } => "load",
                Op::Fill { .. } => "many-inserted",
                Op::Delete { rows: Where::All, .. } => "many-deleted",
                op if op.locks_rows() => "other-write",
                _ => "other",
            };
            self.coverage.add(format!("cancel:{what}"), 1);
        }
        is_cancelled
    }

    /// Whether a fault occurred during the innermost frame's operation.
    pub(super) fn disturbed(&self) -> bool {
        let before = |frame: &Frame| self.sessions[frame.session].faults_before;
        self.frames.last().is_some_and(|frame| self.disk.counts().faults > before(frame))
    }

    /// Whether a log call has failed since the database was opened.
    pub(super) fn log_failed(&self) -> bool {
        self.model.poisoned || self.disk.counts().log_failures > self.log_failures_before
    }
}
