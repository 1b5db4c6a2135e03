//! An open database with its sessions: their current operations, and whether the results are right.
//! Sessions are futures. A *frame* is one poll of a session; frames nest, because the disk lets other sessions
//! run in the middle of a long call. A statement sees the committed state as of the start of the frame in which
//! it last took a snapshot. If a commit continues with maintenance, it is known to have taken effect once a
//! file other than the log is accessed.

mod frame;
mod room;
mod surroundings;

pub use frame::{Cancel, Frame, Next, SessionState, elsewhere, reset};

use crate::coverage::Coverage;
use crate::disk::{Call, Class, Disk};
use crate::model::catalog::{alters, judge_change, judge_create_as, judge_ddl, judge_within};
use crate::model::judge::{judge, judge_bulk, judge_fill};
use crate::model::verdict::{Answer, Sight, Verdict};
use crate::model::{Effect, Model, State, Txn, UNCOMMITTED, Writes, read};
use crate::op::Op;
use crate::op::row::Row;
use crate::subject::{effect, is_commit, judge_commit, show, table_of, tables_of, told};
use nacredb::{Error, ErrorKind, Result};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// The model's view of an open database.
pub struct World {
    /// The disk of the database.
    pub disk: Disk,
    /// The expected contents.
    pub model: Model,
    /// Indexed by session number.
    pub sessions: Vec<SessionState>,
    /// Innermost last.
    pub frames: Vec<Frame>,
    /// The first failure, in a sentence.
    pub failure: Option<String>,
    /// The log of events, if requested.
    pub story: Option<Vec<String>>,
    /// A hash of all events.
    pub trace: u64,
    /// Number of completed operations.
    pub steps: u64,
    /// Whether commits are acknowledged only when durable.
    pub strict: bool,
    /// Number of failed log calls before the database was opened.
    pub log_failures_before: u64,
    /// Number of faults before the database was opened.
    pub faults_before: u64,
    /// Whether writes may wait for memory.
    pub is_limited: bool,
    /// Whether a write may do maintenance first.
    pub relieves: bool,
    /// The number of rows from which a statement changes them together.
    pub bulk_rows: usize,
    /// What was walked.
    pub coverage: Coverage,
}

impl World {
    /// Creates a world with an empty history.
    pub fn new(disk: Disk, strict: bool, tell: bool) -> World {
        World {
            disk,
            model: Model::default(),
            sessions: Vec::new(),
            frames: Vec::new(),
            failure: None,
            story: tell.then(Vec::new),
            trace: 0,
            steps: 0,
            strict,
            log_failures_before: 0,
            faults_before: 0,
            is_limited: false,
            relieves: false,
            bulk_rows: usize::MAX,
            coverage: Coverage::default(),
        }
    }

    /// Adds a line to the story.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }

    /// Records the first failure.
    pub fn fail(&mut self, what: String) {
        self.tell(|| format!("WRONG: {what}"));
        self.failure.get_or_insert(what);
    }

    /// Mixes an event into the trace.
    pub fn note(&mut self, what: &impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.trace, what).hash(&mut hasher);
        self.trace = hasher.finish();
    }

    /// Starts a poll of a session.
    pub fn enter(&mut self, session: usize) {
        let counts = self.disk.counts();
        self.frames.push(Frame {
            session,
            base: self.model.latest.clone(),
            base_index: self.model.index,
            begins: frame::begins(),
            begins_inside: 0,
            faults: counts.faults,
            log_failures: counts.log_failures,
            synced: None,
            load_synced: false,
            rotating: false,
            has_read: false,
            is_at_log: false,
        });
        self.count_down();
    }

    /// Ends the poll.
    pub fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if let Some(around) = self.frames.last_mut() {
            around.begins_inside += frame::begins() - frame.begins;
        }
        if frame.has_begun() {
            self.sessions[frame.session].seen = Some((frame.base, frame.base_index));
        }
        if let Some(index) = frame.synced
            && self.disk.counts().log_failures == frame.log_failures
        {
            self.model.durable(index);
        }
    }

    /// Records a successful sync of the log.
    pub fn log_synced(&mut self) {
        let index = self.model.index;
        if let Some(frame) = self.frames.last_mut()
            && !std::mem::take(&mut frame.rotating)
        {
            frame.synced = Some(index);
            frame.load_synced |= frame::is_publishing();
        }
    }

    /// Called before the innermost session makes this call. If the call can only be maintenance
    /// after its commit, the commit has taken effect.
    pub fn before_call(&mut self, call: Call, class: Class) {
        let Some(frame) = self.frames.last_mut() else { return };
        if class == Class::Log {
            frame.rotating |= call == Call::Create;
            // A strict commit syncs the log once; a further write to the log has another cause.
            if frame.synced.is_none() || call == Call::Sync {
                return;
            }
        }
        if class == Class::Folder || self.disk.ended().is_some() {
            return;
        }
        if frame::is_updating() {
            return;
        }
        let session = frame.session;
        let (synced, load_synced) = (frame.synced.is_some(), frame.load_synced);
        let state = &self.sessions[session];
        let Some(op) = state.op.clone() else { return };
        if state.committed.is_some() || state.bulk_append || self.model.poisoned {
            return;
        }
        let happened = match &op {
            Op::Commit => state.txn.is_some(),
            // Background work after a load syncs the log, too.
            Op::Bulk { .. } | Op::CreateAs { .. } => load_synced && state.txn.is_none(),
            op if op.is_load() || op.is_ddl() => synced && state.txn.is_none(),
            // What comes before its snapshot makes room for its rows.
            op => op.locks_rows() && state.txn.is_none() && self.has_begun(),
        };
        if happened {
            let verdict = self.judge(session, &op);
            if verdict.answer.is_some() {
                if is_commit(&op) {
                    self.apply(session, &op, &verdict);
                }
                self.sessions[session].committed = Some(verdict);
                if synced {
                    let index = self.model.index;
                    self.model.durable(index);
                }
            }
        }
    }

    /// Applies a commit to the model.
    fn apply(&mut self, session: usize, op: &Op, verdict: &Verdict) {
        let effect = effect(verdict);
        let rewritten = match &effect {
            Effect::Rows(writes) | Effect::Transaction(_, writes) => {
                self.model.rewritten(writes, self.bulk_rows)
            }
            _ => Vec::new(),
        };
        self.model.commit(&effect);
        // Rows merged with those of an update of many rows appear to stem from it.
        let index = self.model.index;
        self.model.loaded.extend(rewritten.into_iter().map(|table| (table, index)));
        if let Effect::Rows(writes) | Effect::Transaction(_, writes) = &effect {
            // A load deletes the rows that it replaces by a bit each.
            self.model.erase(writes, if op.is_load() { 1 } else { self.bulk_rows });
        }
        if let Some(table) = self.loads_into(session, op) {
            // A load that adds nothing is a commit too; rows merged with it appear to stem from it.
            self.model.index += u64::from(verdict.writes.is_empty());
            self.model.loaded.insert(table, self.model.index);
        }
    }

    /// The model's verdict on an operation that ends, or a commit that takes effect, in this frame.
    fn judge(&mut self, session: usize, op: &Op) -> Verdict {
        let Some((base, base_index)) = self.seen() else { return Verdict::done() };
        let state = &self.sessions[session];
        if state.txn.is_some() && !op.fits_transaction()
            || state.txn.is_none() && op.needs_transaction()
        {
            // Any of its errors may be reported first.
            let others = judge_ddl(op, &self.model.latest).errors;
            return Verdict::fails(&[&others[..], &[ErrorKind::Unsupported]].concat());
        }
        match op {
            Op::RollbackTo(name) | Op::Release(name) => {
                match state.txn.as_ref().is_some_and(|t| t.knows(name)) {
                    true => Verdict::done(),
                    false => Verdict::fails(&[ErrorKind::NotFound]),
                }
            }
            Op::Commit => match &state.txn {
                Some(txn) => judge_commit(txn, &self.model.latest),
                None => Verdict::done(),
            },
            Op::Bulk { policy, batches, .. } => match state.bulk_table {
                Some(place) => {
                    let rows: Vec<&Row> = batches.iter().flatten().collect();
                    judge_bulk(&mut self.model, place, *policy, &rows)
                }
                None => Verdict::fails(&[ErrorKind::NotFound]),
            },
            op if op.is_ddl() && state.txn.is_some() => match (&state.txn, table_of(op)) {
                (Some(txn), Some(name)) => judge_within(op, name, txn, &base, &mut self.model),
                _ => Verdict::done(),
            },
            Op::Fill { table, policy, rows } => judge_fill(&mut self.model, table, *policy, *rows),
            Op::CreateAs { .. } => judge_create_as(op, &base, base_index, &mut self.model),
            op if op.is_ddl() => {
                // Whether there is anything to do is decided at the start; maintenance may follow.
                let first = judge_ddl(op, &base);
                let nothing = first.answer.is_some() && first.catalog.is_none();
                if nothing {
                    return first;
                }
                let mut verdict = judge_ddl(op, &self.model.latest);
                if verdict.answer.is_none() && matches!(op, Op::CreateIndex { .. }) {
                    // It reads the rows before it takes a lock.
                    verdict.errors.extend(first.errors);
                }
                verdict
            }
            Op::Optimize { table, .. } => {
                // It finds its table at the start, and may wait for absent bytes.
                let base = state.begun.clone().map_or(base, |(begun, _)| begun);
                let there = |state: &State| state.tables.get(table).map(|table| table.id);
                match (there(&base), there(&self.model.latest)) {
                    (Some(then), Some(now)) if then == now => Verdict::done(),
                    (None, None) if base.views.contains_key(table) => {
                        Verdict::fails(&[ErrorKind::Unsupported])
                    }
                    (None, None) => Verdict::fails(&[ErrorKind::NotFound]),
                    // The table was created or dropped meanwhile, and a view may have its name now.
                    _ => {
                        let view = self.model.latest.views.contains_key(table)
                            || base.views.contains_key(table);
                        let view = view.then_some(ErrorKind::Unsupported);
                        Verdict {
                            errors: view.into_iter().chain([ErrorKind::NotFound]).collect(),
                            ..Verdict::done()
                        }
                    }
                }
            }
            Op::Check => Verdict::nothing_found(),
            _ => {
                // A statement outside a transaction that finds its table dropped or renamed meanwhile
                // looks the name up again.
                let latest = &self.model.latest;
                let is_gone = |name| {
                    let id = |state: &State| state.tables.get(name).map(|table| table.id);
                    id(&base).is_some() && id(&base) != id(latest)
                };
                let again = state.txn.is_none() && tables_of(op).any(is_gone);
                // One that reads a view which is dropped or replaced meanwhile may look it up again, too.
                let is_other = |name: &&str| {
                    let since = |state: &State| state.views.get(*name).map(|view| view.since);
                    since(&base).is_some() && since(&base) != since(latest)
                };
                let reads_again = state.txn.is_none()
                    && read::reached(tables_of(op), &base.views).iter().any(is_other);
                let catalog = state.txn.as_ref().map_or(Vec::new(), |txn| txn.catalog.clone());
                let (view, snapshot, own) = match &state.txn {
                    Some(txn) => (txn.view.clone(), txn.snapshot, txn.writes.clone()),
                    None if again && op.locks_rows() => {
                        (latest.clone(), self.model.index, Writes::new())
                    }
                    None => (base, base_index, Writes::new()),
                };
                let model = &mut self.model;
                let (view, own, catalog) = (&view, &own, &*catalog);
                let mut verdict = judge(op, &mut Sight { model, view, snapshot, own, catalog });
                if again && !op.locks_rows() || reads_again {
                    verdict.errors.push(ErrorKind::NotFound);
                }
                // What the transaction has changed of a table cannot be committed any more.
                if read::reaches_stale(tables_of(op), view, &self.model.latest) {
                    verdict.errors.push(ErrorKind::Conflict);
                }
                verdict
            }
        }
    }

    /// Records the result of an operation and decides how the session continues.
    pub fn end(&mut self, session: usize, op: &Op, result: Result<Answer>) -> Next {
        self.steps += 1;
        self.note(&(
            session,
            result.as_ref().map_err(|e| e.message().to_string()).map(|a| format!("{a:?}")),
        ));
        if self.story.is_some() {
            let depth = self.frames.len();
            let shown = told(&result);
            let room = "    ".repeat(depth.saturating_sub(1));
            self.tell(|| format!("{room}s{session}: {op}  →  {shown}"));
        }
        let committed = self.sessions[session].committed.take();
        let reached = read::reached(tables_of(op), &self.model.latest.views);
        let blurred = reached.iter().any(|name| self.model.blurred.contains(name));
        let mut verdict = match &committed {
            Some(verdict) => verdict.clone(),
            // The end of a stream returns the rows expected when it was opened.
            None if matches!((op, &result), (Op::Take { .. }, Ok(Answer::Rows(_)))) => {
                Verdict::answer(self.sessions[session].stream.take().unwrap_or(Answer::Done))
            }
            None => self.judge(session, op),
        };
        if result.is_ok()
            && verdict.errors.contains(&ErrorKind::Constraint)
            && op.changes_rows()
            && self.committing()
        {
            verdict = self.judge_ahead(session, op);
        }
        // An empty load does not show when it read the table: it may have been at the start.
        let loads_nothing = matches!((op, &result), (Op::Bulk { .. }, Ok(Answer::Affected(0))))
            && committed.is_none();
        // Rows that a statement has locked before it gives way stay locked if their table is altered,
        // and one that locks none may miss that its table is altered.
        let is_before = result.is_ok() && verdict.answer.is_none() && op.locks_rows();
        if loads_nothing && verdict.answer != Some(Answer::Affected(0)) || is_before {
            verdict = self.judge_before(session, op, &result);
        }
        if committed.is_none() && self.found_for_a_moment(session, op, &result) {
            verdict = Verdict::done();
        }
        if matches!((op, &result), (Op::Open { .. }, Ok(_))) {
            let rows = verdict.answer.as_mut().map(|rows| std::mem::replace(rows, Answer::Done));
            self.sessions[session].stream = rows.filter(|_| !blurred);
            self.sessions[session].is_streaming = true;
        }
        if matches!((op, &result), (Op::Take { .. }, Ok(Answer::Rows(_)) | Err(_))) {
            self.sessions[session].is_streaming = false;
        }
        let outcome = match result {
            Ok(answer) => {
                self.succeeded(session, op, &verdict, answer, committed.is_some(), blurred)
            }
            Err(error) => self.failed(session, op, &verdict, &error, committed.is_some(), blurred),
        };
        if matches!(op, Op::Commit | Op::Rollback) {
            self.sessions[session].txn = None;
        }
        (self.sessions[session].bulk_table, self.sessions[session].begun) = (None, None);
        self.sessions[session].bulk_append = false;
        self.sessions[session].cancel = None;
        outcome
    }

    fn succeeded(
        &mut self,
        session: usize,
        op: &Op,
        verdict: &Verdict,
        answer: Answer,
        done: bool,
        blurred: bool,
    ) -> Next {
        if blurred {
            if op.changes_rows() || op.is_ddl() {
                // Objects created from unknown ones, or renamed to them, are unknown too.
                self.model.blurred.extend(table_of(op));
            }
            return Next::Go;
        }
        match &verdict.answer {
            None => {
                self.fail(format!(
                    "s{session}: {op}: succeeded, but must fail with {:?}",
                    verdict.errors
                ));
                return Next::Go;
            }
            Some(_) if *op == Op::Check && self.disturbed() => {}
            Some(expected) if *expected != Answer::Done && *expected != answer => {
                self.fail(format!(
                    "s{session}: {op}: expected {}, found {}",
                    show(expected),
                    show(&answer)
                ));
                return Next::Go;
            }
            _ => {}
        }
        let in_txn = self.sessions[session].txn.is_some();
        match op {
            Op::Begin => self.sessions[session].txn = Some(self.model.begin()),
            Op::Savepoint(name) => self.with_txn(session, |t| {
                t.savepoint(name);
                true
            }),
            Op::RollbackTo(name) => self.with_txn(session, |t| t.rollback_to(name)),
            Op::Release(name) => self.with_txn(session, |t| t.release(name)),
            _ if op.is_ddl() && in_txn => {
                let next = self.model.new_table();
                if let (Some(txn), Some(effect)) =
                    (&mut self.sessions[session].txn, verdict.catalog.clone())
                {
                    let table = table_of(op).and_then(|name| txn.view.tables.get(name));
                    if alters(op) && table.is_some_and(|table| table.since != UNCOMMITTED) {
                        let again = op.clone();
                        let change =
                            Rc::new(move |state: &State| judge_change(&again, state).catalog);
                        txn.alter(&effect, matches!(op, Op::Truncate { .. }), change);
                        self.coverage.add("table-altered-in-transaction", 1);
                    } else {
                        txn.change_catalog(effect, next);
                    }
                    self.coverage.add("ddl-in-transaction", 1);
                }
            }
            _ if op.locks_rows() && in_txn => {
                let latest = self.model.latest.clone();
                if let Some(txn) = &mut self.sessions[session].txn {
                    txn.write(&latest, verdict.writes.clone(), verdict.locks.clone());
                }
            }
            _ if done => {}
            _ if is_commit(op) => {
                // `IF NOT EXISTS` and the like: nothing is written.
                let exists = op.is_ddl() && verdict.catalog.is_none();
                let nothing = matches!(effect(verdict), Effect::Rows(writes) if writes.is_empty());
                if !exists && !nothing && self.model.poisoned {
                    self.fail(format!("s{session}: {op}: committed after the log had failed"));
                }
                if !exists {
                    self.apply(session, op, verdict);
                }
                // Strict commits, loads and catalog changes are durable once acknowledged.
                let synced = self.frames.last().is_some_and(|f| f.synced.is_some());
                if exists {
                    return Next::Go;
                }
                if self.strict || synced || !(op.changes_rows() || *op == Op::Commit || nothing) {
                    let index = self.model.index;
                    self.model.durable(index);
                }
            }
            Op::SyncLog => {
                let index = self.model.index;
                self.model.durable(index);
            }
            _ => {}
        }
        Next::Go
    }

    fn failed(
        &mut self,
        session: usize,
        op: &Op,
        verdict: &Verdict,
        error: &Error,
        done: bool,
        blurred: bool,
    ) -> Next {
        if done {
            self.fail(format!("s{session}: {op}: has happened, but answered {error}"));
            return Next::Failed;
        }
        let counts = self.disk.counts();
        let (faults, log_failures) = self
            .frames
            .last()
            .map_or((0, 0), |f| (counts.faults - f.faults, counts.log_failures - f.log_failures));
        let ended = self.disk.ended().is_some();
        let kind = error.kind();
        // The outcome of a commit is unknown if the log failed.
        let effect = effect(verdict);
        let nothing = matches!(&effect, Effect::Rows(writes) if writes.is_empty());
        let mine = self.sessions[session].txn.is_some();
        let commits = is_commit(op) && !(mine && *op != Op::Commit);
        // Failing to reserve zeros ahead of the log's records is not fatal for the log; then
        // something else has failed, and nothing was committed.
        let of_log =
            kind == ErrorKind::Io && (ended || log_failures > 0 && error.message().contains("log"));
        if commits && !nothing && of_log && verdict.answer.is_some() {
            self.blur(effect.names());
            self.model.doubt(&effect);
            self.model.poisoned = true;
            return Next::Failed;
        }
        // The catalog changes before the log fails.
        if op.is_ddl() && of_log && !mine {
            self.blur(tables_of(op).collect());
        }
        self.model.poisoned |= of_log && !ended;
        let known = verdict.errors.contains(&kind) || self.may_refuse(session, op, error);
        let disturbed = kind == ErrorKind::Io && (faults > 0 || ended)
            || kind == ErrorKind::Limit && faults > 0;
        let others = self.committing() || self.publishing(session) || self.locking(session);
        let waited = match kind {
            ErrorKind::LockTimeout => (op.locks_rows() || op.is_load()) && others,
            ErrorKind::Deadlock => op.locks_rows() && others && mine,
            // A load in an outer frame is in the log but not durable, or rows were merged with its own.
            ErrorKind::Conflict => {
                op.locks_rows() && (self.loading() || self.loaded(session, op))
                    || matches!(op, Op::Optimize { full: true, .. }) && self.claims(session, op)
            }
            ErrorKind::Constraint => op.changes_rows() && self.loading(),
            _ => false,
        };
        let keeps = matches!(op, Op::Maintain { .. } | Op::Optimize { .. } | Op::SyncLog);
        let writes = op.locks_rows() || keeps || is_commit(op);
        let cancelled = self.is_cancelled(session, op, error);
        if !(known
            || disturbed
            || cancelled
            || waited
            || blurred
            || ended
            || writes && self.log_failed())
        {
            let may = if verdict.answer.is_some() { "succeed" } else { "fail otherwise" };
            self.fail(format!(
                "s{session}: {op}: must {may}, but answered {}: {}",
                kind.name(),
                error.message()
            ));
        }
        Next::Failed
    }

    /// Marks tables and views as unknown, under all names that transactions know them by.
    fn blur(&mut self, names: Vec<&'static str>) {
        let ids: Vec<u64> = names
            .iter()
            .filter_map(|name| self.model.latest.tables.get(name))
            .map(|t| t.id)
            .collect();
        for txn in self.sessions.iter().filter_map(|session| session.txn.as_ref()) {
            let known = txn.view.tables.iter().filter(|(_, table)| ids.contains(&table.id));
            self.model.blurred.extend(known.map(|(name, _)| *name));
        }
        self.model.blurred.extend(names);
    }

    fn with_txn(&mut self, session: usize, change: impl FnOnce(&mut Txn) -> bool) {
        let changed = self.sessions[session].txn.as_mut().is_some_and(change);
        if !changed {
            self.fail(format!("s{session}: a savepoint was found that the model does not know"));
        }
    }
}
