//! Runs a seed: statements, uploads, crashes, lost disks, writers that take over, and readers, and compares
//! what each database has with the model.

use crate::clock::{SimClock, SimEntropy};
use crate::disk::{Disk, Ended, Fault, FaultKind};
use crate::hook;
use crate::tiers::blobs::SimBlobs;
use crate::tiers::machine::{Inside, Machine, Threads, drive};
use crate::tiers::state::{Branch, Commit, LEASE, Reader, SMALL_READER, State, text_of};
use nacre_testing::Random;
use nacredb::host::{Clock, Host};
use nacredb::{Blobs, Budget, Database, Error, ErrorKind, Options, TierOptions, Value};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of a seed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The failure, if any.
    pub failure: Option<String>,
    /// What was done, if requested.
    pub story: Vec<String>,
    /// How often what was done.
    pub counts: BTreeMap<&'static str, u64>,
}

pub(super) struct Run {
    pub(super) random: Random,
    pub(super) seed: u64,
    pub(super) clock: Arc<SimClock>,
    pub(super) blobs: Arc<SimBlobs>,
    pub(super) options: Options,
    pub(super) writer: Machine,
    /// A writer that another one has replaced, perhaps without knowing.
    pub(super) older: Option<Machine>,
    /// Whether the older writer has been told.
    pub(super) is_told: bool,
    /// The commits of the database as the blobs or the writer's disk have it.
    pub(super) commits: Vec<Commit>,
    /// A position that the writer was told is uploaded.
    pub(super) uploaded: u64,
    pub(super) machines: u64,
    pub(super) tells: bool,
    pub(super) outcome: Outcome,
    /// A database that only reads the blobs and follows the writers.
    pub(super) reader: Option<Reader>,
    /// How far the log was uploaded, and when it was still no further.
    pub(super) uploads: Vec<(u64, i64)>,
    /// A branch of the database.
    pub(super) branch: Option<Branch>,
    /// Positions of the log that another process wrote than the one that uploaded it.
    pub(super) gaps: Vec<Gap>,
    /// Whether the reader may find that what it shows is gone.
    pub(super) may_miss: bool,
    /// Chooses what readers do, so that older seeds keep their meaning.
    pub(super) reading: Random,
}

/// A part of the log that has no history.
pub(super) struct Gap {
    pub from: u64,
    /// `None` until an upload ends it.
    pub to: Option<u64>,
    /// What the process before may have uploaded at most.
    pub least: u64,
}

/// Runs a seed; `tell` requests the story.
pub fn run(seed: u64, tell: bool) -> Outcome {
    let mut run = Run::new(seed, tell);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.all()));
    hook::set(None);
    if ended.is_err() {
        run.fail(format!("panic: {}", crate::panics::last()));
    }
    run.count("faults", run.blobs.faults());
    std::mem::take(&mut run.outcome)
}

impl Run {
    fn new(seed: u64, tells: bool) -> Run {
        let mut random = Random::with_purpose(seed, "tiers");
        let clock = Arc::new(SimClock::default());
        let faulty = *random.pick(&[0, 0, 5, 20]);
        let blobs = SimBlobs::new(seed, clock.clone(), faulty);
        let tiers = TierOptions {
            disk_limit: *random.pick(&[1_000, 6_000, 40_000, u64::MAX]),
            lag: Duration::from_millis(*random.pick(&[0, 1, 50])),
            block_bytes: *random.pick(&[512, 2_048]),
            retention: Duration::from_secs(60),
            patience: Duration::from_secs(2),
            lease: LEASE,
            history: Duration::from_secs(
                *Random::with_purpose(seed, "history").pick(&[0, 60, 60, 3_600]),
            ),
            // Drawn separately, so that older seeds keep their meaning.
            holds_commits: Random::with_purpose(seed, "held commits").percent(25),
            warms: Random::with_purpose(seed, "warms").percent(50),
            ..TierOptions::default()
        };
        let tiers = Blobs { options: tiers, ..Blobs::new(blobs.clone()) };
        let options = Options {
            segment_rows: *random.pick(&[5, 30, 1_000]),
            flush_bytes: *random.pick(&[300, 2_000, 20_000]),
            snapshot_bytes: *random.pick(&[600, 4_000, 100_000]),
            cache_bytes: *random.pick(&[0, 4 << 10]),
            metadata_bytes: *random.pick(&[0, 1 << 20]),
            merge_from: 2,
            blobs: Some(tiers),
            ..Options::default()
        };
        Run {
            seed,
            writer: Machine::new(seed, &clock),
            older: None,
            is_told: false,
            clock,
            blobs,
            options,
            random,
            commits: vec![Commit { before: 0, after: 0, state: None }],
            uploaded: 0,
            machines: 1,
            tells,
            outcome: Outcome::default(),
            reader: None,
            uploads: Vec::new(),
            gaps: Vec::new(),
            branch: None,
            may_miss: false,
            reading: Random::with_purpose(seed, "leases"),
        }
    }

    pub(super) fn fail(&mut self, what: String) {
        self.tell(|| format!("WRONG: {what}"));
        self.outcome.failure.get_or_insert(what);
    }

    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.tells {
            self.outcome.story.push(line());
        }
    }

    pub(super) fn count(&mut self, what: &'static str, by: u64) {
        *self.outcome.counts.entry(what).or_default() += by;
    }

    pub(super) fn host(&self, disk: &Disk) -> Host {
        let never_block = self.seed.is_multiple_of(2);
        Host {
            store: Arc::new(disk.clone()),
            clock: self.clock.clone(),
            entropy: SimEntropy::new(self.seed ^ self.machines << 32 ^ self.clock.monotonic_ns()),
            parallelism: Arc::new(Threads { clock: self.clock.clone(), never_block }),
        }
    }

    /// A fresh machine.
    pub(super) fn machine(&mut self) -> Machine {
        self.machines += 1;
        Machine::new(self.seed ^ self.machines << 40, &self.clock)
    }

    fn all(&mut self) {
        let mut steps = 20 + self.random.below(60);
        // Long enough for several chunks of the log. Drawn separately, so that older seeds keep their meaning.
        if Random::with_purpose(self.seed, "length").percent(4) {
            steps *= 10;
        }
        self.start();
        for _ in 0..steps {
            if self.outcome.failure.is_some() {
                return;
            }
            self.step();
        }
        self.end();
    }

    fn step(&mut self) {
        self.renew_lease();
        self.look_back();
        self.branch_off();
        self.note_upload();
        match self.random.below(100) {
            0..=39 => self.write(),
            40..=54 => self.maintain(),
            55..=74 => self.upload(),
            75..=79 => self.read(),
            80..=83 => {
                let us = *self.random.pick(&[1_000, 100_000, 2_000_000, 70_000_000]);
                self.pass(us);
            }
            84 => {
                let calls = 1 + self.random.below(30);
                self.tell(|| format!("the blob store is away for {calls} calls"));
                self.blobs.go_away(calls);
            }
            85..=88 => self.crash(),
            89 | 90 => self.lose_disk(),
            91 | 92 => self.take_over(),
            93 => self.close(),
            94 => self.attach_reader(),
            95..=97 => self.refresh_reader(),
            _ => self.write_older(),
        }
    }

    /// Opens the writer's database on its disk. It must have every commit, or what the blobs have if the disk
    /// was empty.
    fn start(&mut self) {
        let (is_empty, answered) = (self.writer.disk.listing().is_empty(), self.blobs.answered());
        for attempt in 0..20 {
            let host = self.host(&self.writer.disk);
            let opened = drive(&self.clock, Database::open(host, self.options.clone()));
            match opened {
                Ok(db) => {
                    self.writer.db = Some(db);
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Unavailable && attempt < 19 => {
                    self.tell(|| format!("opening: {error}"));
                }
                Err(error) => return self.fail(format!("opening: {error}")),
            }
        }
        let Some(db) = &self.writer.db else { return };
        let position = db.uploaded_position().unwrap_or(0);
        // Apart, it learns of what the blobs have once it joins.
        let is_apart = self.blobs.answered() == answered;
        let least = if is_apart { db.log_position() } else { position };
        if is_empty {
            self.compare_uploaded(position, "the new writer");
        } else {
            self.compare_local();
        }
        self.uploaded = position;
        if !is_empty {
            self.gaps.push(Gap { from: position, to: None, least });
        }
    }

    /// The states that a database may have whose log ends at a position.
    pub(super) fn allowed(&self, position: u64) -> std::ops::RangeInclusive<usize> {
        let certain = self.commits.iter().rposition(|commit| commit.after <= position);
        let possible = self.commits.iter().rposition(|commit| commit.before < position);
        let certain = certain.unwrap_or(0);
        certain..=possible.unwrap_or(0).max(certain)
    }

    /// Compares the writer's database with the commits up to a position. What came after them is gone.
    fn compare_uploaded(&mut self, position: u64, what: &str) {
        let uploaded = self.uploaded;
        if position < uploaded {
            return self.fail(format!("{what} has position {position}, {uploaded} was uploaded"));
        }
        let Some(db) = self.writer.db.clone() else { return };
        let Some(found) = self.contents(&db, what) else { return };
        let allowed = self.allowed(position);
        let Some(at) = allowed.clone().rev().find(|at| self.commits[*at].state == found) else {
            let expected = self.commits[*allowed.end()].state.clone();
            return self.fail(format!("{what} at {position} has {found:?}, not {expected:?}"));
        };
        self.commits.truncate(at + 1);
        self.commits[at].after = self.commits[at].after.min(position);
        self.tell(|| format!("{what} has commit {at} at position {position}"));
    }

    /// Compares the writer's database with all commits.
    fn compare_local(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        let Some(found) = self.contents(&db, "the writer") else { return };
        let last = self.commits.len() - 1;
        let is_uncertain = self.commits[last].after == u64::MAX;
        let oldest = if is_uncertain { last - 1 } else { last };
        let Some(at) = (oldest..=last).rev().find(|at| self.commits[*at].state == found) else {
            let expected = self.commits[last].state.clone();
            return self.fail(format!("the writer's disk has {found:?}, not {expected:?}"));
        };
        self.commits.truncate(at + 1);
        self.commits[at].after = self.commits[at].after.min(db.log_position());
    }

    /// The rows that a database shows; `None` if the blob store was away, or the machine stopped.
    pub(super) fn contents(&mut self, db: &Database, what: &str) -> Option<State> {
        for attempt in 0..20 {
            let is_warm = self.warm(db) && what != SMALL_READER;
            let requests = db.blob_reads().map_or(0, |reads| reads.requests);
            let mut session = db.session();
            let result =
                drive(&self.clock, session.execute("select k, v, s from t order by k", &[]));
            match result {
                Ok(result) => {
                    let mut rows = BTreeMap::new();
                    for row in result.to_rows() {
                        let [Value::Int(key), Value::Int(value), Value::Text(text)] = &row[..]
                        else {
                            self.fail(format!("{what} has the row {row:?}"));
                            return None;
                        };
                        if *text != text_of(*key, *value) {
                            self.fail(format!("{what} has the text {text:?} of {key} and {value}"));
                        }
                        rows.insert(*key, *value);
                    }
                    let more = db.blob_reads().map_or(0, |reads| reads.requests) - requests;
                    if is_warm && more > 0 {
                        self.fail(format!("{what} is warm, and asks for {more} ranges"));
                    }
                    let ahead = db.blob_reads().is_some_and(|reads| reads.bytes_ahead > 0);
                    self.count("reads ahead", u64::from(ahead));
                    return Some(Some(rows));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Some(None),
                Err(error) if error.kind() == ErrorKind::Unavailable && attempt < 19 => {}
                // Its reader has no lease any more.
                Err(error)
                    if error.kind() == ErrorKind::Unavailable
                        && self.may_miss
                        && what.starts_with("a reader") =>
                {
                    self.count("reads of what is gone", 1);
                    return None;
                }
                Err(error) => {
                    if self.writer.disk.ended().is_none() {
                        self.fail(format!("{what} cannot be read: {error}"));
                    }
                    return None;
                }
            }
        }
        None
    }

    /// Warms the table, sometimes. Returns whether all of it must be on the local disk then, until something else
    /// is done.
    fn warm(&mut self, db: &Database) -> bool {
        // Drawn separately, so that older seeds keep their meaning.
        let purpose = self.seed ^ (self.commits.len() as u64) << 20 ^ self.clock.monotonic_ns();
        let mut random = Random::with_purpose(purpose, "warm");
        if !random.percent(30) {
            return false;
        }
        let how = *random.pick(&["", "", "for column (s)", "for index v", "where k < 20"]);
        let mut session = db.session();
        let sql = format!("optimize table t warm blob cache {how}");
        match drive(&self.clock, session.execute(&sql, &[])) {
            Ok(result) => {
                let rows = result.to_rows();
                let [Value::Int(fetched), Value::Int(local)] = rows[0][..] else {
                    self.fail(format!("a warm-up returns {rows:?}"));
                    return false;
                };
                self.tell(|| format!("{sql}: {fetched} bytes fetched, {local} local"));
                self.count("warmed", u64::from(fetched > 0));
                let limit = self.options.blobs.as_ref().map(|blobs| blobs.options.disk_limit);
                how.is_empty() && limit == Some(u64::MAX)
            }
            Err(error) => {
                let is_away = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable);
                if !is_away && self.writer.disk.ended().is_none() {
                    self.fail(format!("a warm-up fails: {error}"));
                }
                false
            }
        }
    }

    /// Runs something while uploads go on inside calls of the disk.
    fn inside<T>(&mut self, work: impl FnOnce(&mut Run) -> T) -> T {
        let inside = Inside::new(&self.writer, Random::new(self.random.bits()));
        hook::set(inside.map(|inside| inside as Rc<dyn hook::Hook>));
        let done = work(self);
        hook::set(None);
        done
    }

    fn latest(&self) -> State {
        self.commits.last().and_then(|commit| commit.state.clone())
    }

    pub(super) fn write(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        if self.random.percent(4) {
            // The machine stops in the middle.
            let kind = *self.random.pick(&[FaultKind::PowerCut, FaultKind::Kill]);
            let nth = self.random.below(12);
            let fault = Fault { call: None, class: None, within: None, nth, kind };
            self.writer.disk.set_faults(vec![fault]);
        }
        let before = db.log_position();
        let latest = self.latest();
        let (sql, state) = self.statement(&latest);
        let clock = self.clock.clone();
        let holds = self.holds_commits();
        let outcome = match holds {
            // What goes on inside calls is not polled while the statement waits for an upload.
            true => {
                self.writer.uploading.give_up();
                drive(&clock, db.session().execute(&sql, &[])).map(drop)
            }
            false => self.inside(|_| drive(&clock, db.session().execute(&sql, &[])).map(drop)),
        };
        let after = db.log_position();
        self.tell(|| format!("{}: {outcome:?}", sql.chars().take(60).collect::<String>()));
        self.count("writes", 1);
        match outcome {
            Ok(()) => {
                self.commits.push(Commit { before, after, state });
                if holds {
                    self.uploaded = self.uploaded.max(after);
                    self.count("held commits", 1);
                }
            }
            Err(_) if self.writer.disk.ended().is_some() => {
                self.commits.push(Commit { before, after: u64::MAX, state });
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                // It may have waited for its upload in vain.
                let found = if holds { self.contents(&db, "the writer") } else { None };
                if found.is_some_and(|found| found == state) {
                    self.commits.push(Commit { before, after, state });
                    self.count("commits that were not uploaded", 1);
                } else if holds && self.writer.disk.ended().is_some() {
                    self.commits.push(Commit { before, after: u64::MAX, state });
                }
            }
            Err(error) => self.fail(format!("{sql}: {error}")),
        }
        self.restart_if_ended();
    }

    pub(super) fn holds_commits(&self) -> bool {
        self.options.blobs.as_ref().is_some_and(|blobs| blobs.options.holds_commits)
    }

    pub(super) fn maintain(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        let steps = 1 + self.random.below(40) as usize;
        let clock = self.clock.clone();
        let outcome = self.inside(|_| drive(&clock, db.maintain_async(Budget::Steps(steps))));
        match outcome {
            Err(error) if self.may_fail(&error) => {}
            Err(error) => self.fail(format!("maintenance: {error}")),
            Ok(_) => {}
        }
        self.restart_if_ended();
    }

    fn may_fail(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::Unavailable || self.writer.disk.ended().is_some()
    }

    pub(super) fn upload(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        for _ in 0..1 + self.random.below(30) {
            let polls = 1 + self.random.below(6);
            if self.writer.uploading.poll(&db, polls) {
                self.clock.advance_us(20_000);
            }
        }
        if self.random.percent(10) {
            self.writer.uploading.give_up();
        }
        let uploaded = db.uploaded_position().unwrap_or(0);
        self.count("uploads", u64::from(uploaded > self.uploaded));
        if uploaded < self.uploaded {
            self.fail(format!("uploaded {uploaded} after {}", self.uploaded));
        }
        self.uploaded = uploaded;
        self.tell(|| format!("uploaded to {uploaded}"));
        self.restart_if_ended();
    }

    fn read(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        let Some(found) = self.inside(|run| run.contents(&db, "the writer")) else { return };
        let expected = self.latest();
        if found != expected {
            self.fail(format!("the writer has {found:?}, not {expected:?}"));
        }
        self.count("reads", 1);
    }

    /// Stops the machine between two statements.
    fn crash(&mut self) {
        let how = *self.random.pick(&[Ended::PowerCut, Ended::Kill]);
        self.writer.stop();
        self.writer.disk.restart(how);
        self.tell(|| format!("{how:?}"));
        self.count("crashes", 1);
        self.start();
    }

    fn restart_if_ended(&mut self) {
        let Some(how) = self.writer.disk.ended() else {
            return self.writer.disk.set_faults(Vec::new());
        };
        self.writer.stop();
        self.writer.disk.restart(how);
        self.tell(|| format!("{how:?} in the middle"));
        self.count("crashes", 1);
        // A disk that is lost now has a commit perhaps.
        if self.random.percent(30) { self.lose_disk() } else { self.start() }
    }

    fn lose_disk(&mut self) {
        self.writer.stop();
        self.writer = self.machine();
        self.tell(|| "the disk is lost".into());
        self.count("lost disks", 1);
        self.start();
    }

    /// Another machine becomes the writer, while this one goes on.
    fn take_over(&mut self) {
        let machine = self.machine();
        self.older = Some(std::mem::replace(&mut self.writer, machine));
        self.is_told = false;
        self.tell(|| "another machine takes over".into());
        self.count("takeovers", 1);
        self.start();
    }

    fn close(&mut self) {
        let Some(db) = self.writer.db.clone() else { return };
        self.writer.uploading.give_up();
        match drive(&self.clock, db.close()) {
            Ok(()) => self.uploaded = db.uploaded_position().unwrap_or(0),
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => return self.fail(format!("closing: {error}")),
        }
        drop(db);
        self.writer.stop();
        self.tell(|| "closed".into());
        self.start();
    }

    /// At the end everything is uploaded, and another machine has it.
    fn end(&mut self) {
        self.blobs.settle();
        self.refresh_reader();
        let Some(db) = self.writer.db.clone() else { return };
        self.writer.uploading.give_up();
        if let Err(error) = drive(&self.clock, db.upload()) {
            return self.fail(format!("the last upload: {error}"));
        }
        self.uploaded = db.uploaded_position().unwrap_or(0);
        if self.uploaded != db.log_position() {
            return self.fail(format!("{} of {} is uploaded", self.uploaded, db.log_position()));
        }
        drop(db);
        self.lose_disk();
        let Some(db) = self.writer.db.clone() else { return };
        match drive(&self.clock, db.check_async()) {
            Ok(findings) if findings.is_empty() => {}
            other => self.fail(format!("check: {other:?}")),
        }
        if self.outcome.failure.is_none()
            && self.commits.last().is_some_and(|c| c.after == u64::MAX)
        {
            self.fail("a commit is left uncertain".into());
        }
    }
}
