//! Runs a plan: opens the database on the simulated disk, runs its sessions, crashes, reopens it,
//! and compares.

use crate::background::Inline;
use crate::clock::{SimClock, SimEntropy};
use crate::coverage::Coverage;
use crate::disk::{Class, Disk, Ended};
use crate::follower::{Followed, Follower};
use crate::found::{Found, FoundView, Printed, difference, fits};
use crate::hook;
use crate::model::State;
use crate::model::verdict::Answer;
use crate::now::now;
use crate::op::Op;
use crate::op::row::{Column, Row};
use crate::plan::{ACCOUNTS, BALANCE, End, Phase, Plan, Script, Setup};
use crate::scheduler::Scheduler;
use crate::session::drive;
use crate::subject::short;
use crate::world::{self, World};
use nacre_testing::Absent;
use nacre_testing::Random;
use nacredb::{Budget, Database, Durability, Error, ErrorKind, Host, OnDuplicate, Value};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// Rounds of background work before the database is closed.
const MAINTAINED: usize = 200;
/// Attempts to open the database under faults.
const OPENINGS: usize = 8;

/// The outcome of a plan.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The failure, if any.
    pub failure: Option<String>,
    /// The story, if requested.
    pub story: Vec<String>,
    /// A hash of all events.
    pub trace: u64,
    /// Number of session operations.
    pub steps: u64,
    /// Number of power cuts and kills.
    pub crashes: u64,
    /// Number of other faults.
    pub faults: u64,
    /// What was walked.
    pub coverage: Coverage,
}

struct Run<'a> {
    plan: &'a Plan,
    world: Rc<RefCell<World>>,
    disk: Disk,
    clock: Arc<SimClock>,
    host: Host,
    threads: Inline,
    crashes: u64,
    /// The files that the database kept when it was closed with nothing left to do.
    kept: Option<BTreeSet<String>>,
    /// Number of failed removals of files before the database was opened.
    removals_before: u64,
}

/// Runs a plan; `tell` requests the story.
pub fn run(plan: &Plan, tell: bool) -> Outcome {
    nacredb::walked::reset();
    world::reset();
    let clock = Arc::new(SimClock::default());
    let disk = Disk::new(plan.seed, clock.clone());
    let strict = plan.options.durability == Durability::Strict;
    let world = Rc::new(RefCell::new(World::new(disk.clone(), strict, tell)));
    let threads = if plan.is_limited() { Inline::with_background() } else { Inline::default() };
    let threads = if plan.never_blocks { threads.never_blocking() } else { threads };
    let lacking = lacking(plan, &disk);
    let host = Host {
        store: match &lacking {
            Some(lacking) => lacking.clone(),
            None => Arc::new(disk.clone()),
        },
        clock: clock.clone(),
        entropy: SimEntropy::new(plan.seed),
        parallelism: Arc::new(threads.clone()),
    };
    world.borrow_mut().is_limited = plan.is_limited();
    world.borrow_mut().relieves = plan.relieves;
    world.borrow_mut().bulk_rows = plan.options.bulk_rows;
    let mut run = Run {
        plan,
        world: world.clone(),
        disk: disk.clone(),
        clock,
        host,
        threads,
        crashes: 0,
        kept: None,
        removals_before: 0,
    };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.all()));
    hook::set(None);
    let (crashes, counts) = (run.crashes, disk.counts());
    drop(run);
    // After a panic, a leaked future may still hold the world.
    let Ok(mut world) = world.try_borrow_mut() else {
        return Outcome {
            failure: Some(format!("panic: {}", crate::panics::last())),
            ..Outcome::default()
        };
    };
    if ended.is_err() {
        world.fail(format!("panic: {}", crate::panics::last()));
    }
    let mut coverage = std::mem::take(&mut world.coverage);
    coverage.extend(&Coverage::of_thread());
    disk.struck().into_iter().for_each(|((what, path), n)| coverage.add_struck(what, path, n));
    let absent = if plan.never_blocks { "absent-unblocked" } else { "absent" };
    coverage.add(absent, lacking.map_or(0, |files| files.misses()));
    let trace = disk.trace();
    world.note(&trace);
    Outcome {
        failure: world.failure.clone(),
        story: world.story.take().unwrap_or_default(),
        trace: world.trace,
        steps: world.steps,
        crashes,
        faults: counts.faults,
        coverage,
    }
}

/// The files of a disk, if they may lack parts of their bytes.
fn lacking(plan: &Plan, disk: &Disk) -> Option<Arc<Absent>> {
    let (absent, evicts) = plan.absent?;
    let files = Arc::new(disk.clone());
    let lacking = Absent::new(files, plan.seed, |name| Class::of(name) == Class::Segment);
    lacking.deny(absent, evicts);
    Some(lacking)
}

impl Run<'_> {
    fn all(&mut self) {
        for (number, phase) in self.plan.phases.iter().enumerate() {
            self.phase(number, phase);
            if self.world.borrow().failure.is_some() {
                return;
            }
        }
        // At the end, and once more after closing.
        for _ in 0..2 {
            let Some(db) = self.open(&[]) else { return };
            if let Err(error) = self.close(&db) {
                self.world.borrow_mut().fail(format!("close: {error}"));
            }
        }
    }

    /// Closes a database after it has done everything that is due.
    fn close(&mut self, db: &Database) -> Result<(), Error> {
        let failed = self.disk.counts().failed_removals - self.removals_before;
        let is_idle =
            (0..MAINTAINED).find_map(|_| match now(db.maintain_async(Budget::Steps(100))) {
                Ok(true) => None,
                Ok(false) => Some(true),
                Err(_) => Some(false),
            });
        now(db.close())?;
        self.kept = (is_idle == Some(true) && failed == 0).then(|| self.data_files());
        Ok(())
    }

    /// The files that are neither log nor snapshots.
    fn data_files(&self) -> BTreeSet<String> {
        let is_data = |name: &String| Class::of(name) == Class::Segment || name.starts_with("tmp-");
        self.disk.listing().into_iter().map(|(name, _)| name).filter(is_data).collect()
    }

    /// Whatever failed before a clean end has given its files back: there are none to be removed.
    fn compare_files(&mut self) {
        let Some(kept) = self.kept.take() else { return };
        let found = self.data_files();
        let mut world = self.world.borrow_mut();
        world.coverage.add("space-given-back", 1);
        let left: Vec<&String> = kept.difference(&found).collect();
        if !left.is_empty() {
            world.fail(format!("files were left that no record names: {left:?}"));
        }
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        self.world.borrow_mut().tell(line);
    }

    fn restart(&mut self, how: Ended) {
        self.crashes += 1;
        self.kept = None;
        self.disk.restart(how);
        self.clock.forget_sleepers();
        let disk = self.disk.clone();
        self.tell(|| format!("— {how:?}; files: {:?}", disk.listing()));
    }

    fn phase(&mut self, number: usize, phase: &Phase) {
        self.tell(|| {
            format!("— phase {number}, {} sessions, until {:?}", phase.scripts.len(), phase.end)
        });
        let Some(db) = self.open(&phase.recovery_faults) else { return };
        {
            let mut world = self.world.borrow_mut();
            world.log_failures_before = self.disk.counts().log_failures;
            world.faults_before = self.disk.counts().faults;
            world.tell(|| format!("— faults: {:?}", phase.faults));
        }
        self.disk.set_faults(phase.faults.clone());
        let follower = Follower::new(&self.disk, &self.host, &self.plan.options);
        self.sessions(number, &db, phase, &follower);
        self.follow(&follower);
        if self.world.borrow().failure.is_some() {
            return;
        }
        let ended = self.disk.ended();
        let how = match (ended, phase.end) {
            (Some(how), _) => Some(how),
            (None, End::PowerCut) => Some(Ended::PowerCut),
            (None, End::Kill) => Some(Ended::Kill),
            (None, End::Close) => {
                self.disk.set_faults(Vec::new());
                match self.close(&db) {
                    Ok(()) => {
                        let mut world = self.world.borrow_mut();
                        let index = world.model.index;
                        world.model.durable(index);
                        world.tell(|| "— closed".into());
                        None
                    }
                    Err(error) => {
                        let failed = self.disk.counts().log_failures
                            > self.world.borrow().log_failures_before;
                        if !failed {
                            self.world.borrow_mut().fail(format!("close: {error}"));
                        }
                        Some(Ended::Kill)
                    }
                }
            }
        };
        drop(db);
        if let Some(how) = how {
            self.restart(how);
        }
    }

    /// Compares what a follower sees with what a recovery could find.
    fn follow(&self, follower: &Follower) {
        if self.world.borrow().failure.is_some() || self.disk.ended() == Some(Ended::PowerCut) {
            return;
        }
        let outcome = follower.refresh().and_then(|db| {
            let (found, views) = self.contents(&db)?;
            let candidates = self.world.borrow().model.candidates();
            let mut printed = Printed::default();
            let fitting =
                candidates.iter().find(|state| printed.fits(state, &found) && fits(state, &views));
            match fitting {
                Some(state) => self.seek(&mut db.session(), state, "the follower")?,
                None => {
                    let why = difference(&candidates[0], &found);
                    self.world.borrow_mut().fail(format!("the follower: {why}"));
                }
            }
            follower.read_again()?;
            db.check()
        });
        match outcome {
            Ok(findings) if findings.is_empty() => {}
            other => self.world.borrow_mut().fail(format!("the follower: {other:?}")),
        }
    }

    fn sessions(&mut self, number: usize, db: &Database, phase: &Phase, follower: &Rc<Follower>) {
        // Permanent tables are created first, in a separate session.
        let missing: Vec<Op> = {
            let world = self.world.borrow();
            let there = &world.model.latest.tables;
            let missing = self.plan.tables.iter().filter(|setup| !there.contains_key(setup.name));
            let mut ops: Vec<Op> = missing.map(Setup::create).collect();
            if there.get("bank").is_none_or(|bank| bank.rows.is_empty()) {
                let rows = (0..ACCOUNTS)
                    .map(|k| Row { k, v: BALANCE, s: None, w: None, z: None })
                    .collect();
                ops.push(Op::Insert { table: "bank", rows });
            }
            ops
        };
        if !missing.is_empty() {
            self.stage(
                number,
                db,
                vec![Script { role: "setup", ops: missing, prepares: false }],
                "setup",
                0,
                follower,
            );
        }
        let scripts = phase.scripts.clone();
        self.stage(number, db, scripts, "stage", self.plan.nested_percent, follower);
        let mut world = self.world.borrow_mut();
        if let Some(bank) = world.model.latest.tables.get("bank") {
            let sum: i64 = bank.rows.values().map(|row| row.v).sum();
            if self.plan.bank_whole && !bank.rows.is_empty() && sum != ACCOUNTS * BALANCE {
                world.fail(format!("the bank holds {sum}"));
            }
        }
    }

    fn stage(
        &mut self,
        number: usize,
        db: &Database,
        scripts: Vec<Script>,
        purpose: &str,
        nested: u64,
        follower: &Rc<Follower>,
    ) {
        if self.world.borrow().failure.is_some() || self.disk.ended().is_some() {
            return;
        }
        let random = Random::with_purpose(self.plan.seed ^ (number as u64) << 48, purpose);
        let scheduler =
            Rc::new(Scheduler::new(self.world.clone(), self.clock.clone(), random.clone(), nested));
        {
            let mut world = self.world.borrow_mut();
            world.sessions.clear();
            world.sessions.resize_with(scripts.len() + 1, Default::default);
            world.sessions[scripts.len()].op = Some(Op::Maintain { steps: 1 });
            world.frames.clear();
        }
        for (at, script) in scripts.into_iter().enumerate() {
            let own = Random::with_purpose(random.clone().bits() ^ at as u64, "session");
            scheduler.add(drive(
                self.world.clone(),
                db.clone(),
                self.clock.clone(),
                at,
                script,
                own,
            ));
        }
        if self.threads.has_background() {
            let threads = self.threads.clone();
            scheduler.add_background(threads.serve(self.clock.clone(), db.clone()));
        }
        let followed = Followed { inner: scheduler.clone(), follower: follower.clone() };
        hook::set(Some(Rc::new(followed)));
        scheduler.run();
        hook::set(None);
    }

    /// Opens the database and compares its contents with the possible states.
    fn open(&mut self, faults: &[crate::disk::Fault]) -> Option<Database> {
        self.disk.set_faults(faults.to_vec());
        for attempt in 0..OPENINGS {
            if attempt > 1 {
                self.disk.set_faults(Vec::new());
            }
            let before = self.disk.counts().faults;
            self.removals_before = self.disk.counts().failed_removals;
            let result = now(Database::open(self.host.clone(), self.plan.options.clone()))
                .and_then(|db| self.compare(&db).map(|()| db));
            match result {
                Ok(db) if self.disk.ended().is_none() => {
                    self.disk.set_faults(Vec::new());
                    self.compare_files();
                    self.checked(&db);
                    return self.world.borrow().failure.is_none().then_some(db);
                }
                Ok(_) => {}
                Err(error) => {
                    let disturbed = self.disk.counts().faults > before
                        && matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit);
                    self.tell(|| format!("— opening: {error}"));
                    if !disturbed && self.disk.ended().is_none() {
                        self.world.borrow_mut().fail(format!("opening: {error}"));
                        return None;
                    }
                }
            }
            if let Some(how) = self.disk.ended() {
                self.restart(how);
            }
        }
        self.world.borrow_mut().fail("the database does not open".into());
        None
    }

    fn checked(&self, db: &Database) {
        let findings = match now(db.check_async()) {
            Ok(findings) => findings,
            Err(error) => vec![error.to_string()],
        };
        if !findings.is_empty() {
            self.world.borrow_mut().fail(format!("check after opening: {findings:?}"));
        }
    }

    /// The tables and views that a database shows.
    fn contents(&self, db: &Database) -> Result<(Vec<Found>, Vec<FoundView>), Error> {
        let mut session = db.session();
        let run = |session: &mut nacredb::Session, sql: &str| {
            now(session.execute(sql, &[])).map(|r| Answer::of(&r))
        };
        let names = match run(&mut session, "show tables")? {
            Answer::Rows(rows) => rows.into_iter().flatten().collect::<Vec<String>>(),
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        for name in &names {
            let result = now(session.execute(&format!("select * from {name}"), &[]))?;
            let columns = result.columns.iter().map(|field| field.name.clone()).collect();
            let Answer::Rows(rows) = Answer::of(&result) else { continue };
            let schema = now(session.appender(name, OnDuplicate::Error))?.schema().clone();
            let indexes = schema.declared_indexes().map(|index| index.name.clone()).collect();
            found.push(Found { name: name.clone(), columns, indexes, rows });
        }
        let names = match run(&mut session, "show views")? {
            Answer::Rows(rows) => rows.into_iter().flatten().collect::<Vec<String>>(),
            _ => Vec::new(),
        };
        let mut views = Vec::new();
        for name in names {
            let text = match run(&mut session, &format!("show create view {name}"))? {
                Answer::Rows(rows) => rows.into_iter().flatten().next_back().unwrap_or_default(),
                _ => String::new(),
            };
            let shown = match run(&mut session, &format!("select * from {name}")) {
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                shown => shown.map_err(|error| error.kind()),
            };
            views.push(FoundView { name, text, shown });
        }
        Ok((found, views))
    }

    /// Determines which of the possible states the database is in.
    fn compare(&self, db: &Database) -> Result<(), Error> {
        let (found, views) = self.contents(db)?;
        let candidates = self.world.borrow().model.candidates();
        let mut printed = Printed::default();
        let fitting =
            candidates.iter().find(|state| printed.fits(state, &found) && fits(state, &views));
        let Some(state) = fitting else {
            let mut why = difference(&candidates[0], &found);
            if !fits(&candidates[0], &views) {
                why += &format!("; views {:?}, not {:?}", views, candidates[0].views);
            }
            let mut world = self.world.borrow_mut();
            world.fail(format!(
                "after opening, none of {} possible states: {why}",
                candidates.len()
            ));
            return Ok(());
        };
        {
            let mut world = self.world.borrow_mut();
            world.tell(|| {
                format!(
                    "— opened: {:?}",
                    found.iter().map(|t| (&t.name, t.rows.len())).collect::<Vec<_>>()
                )
            });
            // Faults from here on are counted separately.
            world.model.recovered(state.clone());
        }
        self.seek(&mut db.session(), state, "after opening")
    }

    /// Queries some rows through their keys and their indexed values.
    fn seek(&self, session: &mut nacredb::Session, state: &State, who: &str) -> Result<(), Error> {
        for (name, table) in &state.tables {
            let indexes = table.shape.indexes.iter().map(|index| index.columns);
            for columns in indexes.chain([&[Column::K][..]]) {
                let ends = [table.rows.values().next(), table.rows.values().next_back()];
                let middle = table.rows.values().nth(table.rows.len() / 2);
                let some = ends.into_iter().chain([middle]).flatten();
                for row in some.take(table.rows.len()) {
                    let alike = |other: &&Row| columns.iter().all(|c| c.of(other) == c.of(row));
                    let condition = columns.iter().map(|column| match column.of(row) {
                        Value::Null => format!("{} is null", column.name()),
                        Value::Text(text) => format!("{} = '{text}'", column.name()),
                        value => format!("{} = {value}", column.name()),
                    });
                    let condition: Vec<String> = condition.collect();
                    let sql = format!("select * from {name} where {}", condition.join(" and "));
                    let found = Answer::of(&now(session.execute(&sql, &[]))?);
                    let mut expected: Vec<_> = table
                        .rows
                        .values()
                        .filter(alike)
                        .map(|row| table.shape.printed(row))
                        .collect();
                    expected.sort();
                    if found != Answer::Rows(expected) {
                        self.world.borrow_mut().fail(format!("{who}: {}: {found:?}", short(&sql)));
                    }
                }
            }
        }
        Ok(())
    }
}
