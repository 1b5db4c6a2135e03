//! `nacre-sim references`: sessions write rows that refer to each other, in an order that the seed determines,
//! inside each other's calls and beside merges. No transaction may see a row that refers to nothing, in no
//! snapshot, nor may one be left when the database is opened again.
//!
//! What a statement answers is not predicted: a foreign key may refuse it, another transaction be in its way. The
//! planted bug `fk-race` leaves keys unlocked, so that one session removes a key while another one refers to it.

use crate::background::Inline;
use crate::clock::{SimClock, SimEntropy};
use crate::disk::Disk;
use crate::hook;
use crate::op::Op;
use crate::op::condition::Where;
use crate::scheduler::Scheduler;
use crate::tiers::run::Outcome;
use crate::turns::yield_now;
use crate::world::World;
use nacre_testing::Random;
use nacredb::{
    Budget, Database, Durability, ErrorKind, Host, Options, QueryResult, Session, Value,
};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Keys of parents.
const KEYS: u64 = 6;

/// What the sessions share.
#[derive(Clone)]
struct Shared {
    db: Database,
    world: Rc<RefCell<World>>,
    outcome: Rc<RefCell<Outcome>>,
    /// Whether a transaction may see what it has not committed refer to nothing.
    is_deferred: bool,
    /// Whether the story is told.
    tells: bool,
}

impl Shared {
    fn tell(&self, line: impl FnOnce() -> String) {
        if self.tells {
            self.outcome.borrow_mut().story.push(line());
        }
    }

    fn count(&self, what: &'static str) {
        *self.outcome.borrow_mut().counts.entry(what).or_default() += 1;
    }

    fn fail(&self, failure: String) {
        self.outcome.borrow_mut().failure.get_or_insert(failure);
    }

    /// Whether anything has failed, or the scheduler has found a failure.
    fn has_failed(&self) -> bool {
        self.outcome.borrow().failure.is_some()
    }
}

fn now<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("waited where there is nothing to wait for".into()),
    }
}

/// The tables: parents, children by the key and by a unique value, and grandchildren that refer to children and
/// to each other.
fn setup(random: &mut Random, is_deferred: bool) -> String {
    let action = |random: &mut Random| {
        *random.pick(&["no action", "restrict", "cascade", "set null", "set default", "cascade"])
    };
    let deferred = if is_deferred { " deferrable initially deferred" } else { "" };
    let index = if random.percent(50) { ", key (p), key (u)" } else { "" };
    format!(
        "create table p (id int primary key, u int unique, n int);
         create table c (id int primary key, p int, u int{index},
           foreign key (p) references p on delete {} on update {}{deferred},
           foreign key (u) references p (u) on delete {} on update {}{deferred});
         create table g (id int primary key, c int references c on delete {}, g int references g on delete {})",
        action(random),
        action(random),
        action(random),
        action(random),
        action(random),
        action(random),
    )
}

/// Queries for rows that refer to nothing.
const ORPHANS: [&str; 4] = [
    "select id from c where p is not null and not exists (select 1 from p where p.id = c.p)",
    "select id from c where u is not null and not exists (select 1 from p where p.u = c.u)",
    "select id from g where c is not null and not exists (select 1 from c where c.id = g.c)",
    "select id from g where g is not null and not exists (select 1 from g as h where h.id = g.g)",
];

/// Runs one seed. Its story are the statements, if `tell` asks for them.
pub fn run(seed: u64, tell: bool) -> Outcome {
    match prepare(seed, tell) {
        Ok(outcome) => outcome,
        Err(failure) => Outcome { failure: Some(failure), ..Outcome::default() },
    }
}

fn prepare(seed: u64, tell: bool) -> Result<Outcome, String> {
    let mut random = Random::with_purpose(seed, "references");
    let clock = Arc::new(SimClock::default());
    let disk = Disk::new(seed, clock.clone());
    let world = Rc::new(RefCell::new(World::new(disk.clone(), true, false)));
    let host = Host {
        store: Arc::new(disk),
        clock: clock.clone(),
        entropy: SimEntropy::new(seed),
        parallelism: Arc::new(Inline::default()),
    };
    let options = Options {
        durability: Durability::Strict,
        segment_rows: *random.pick(&[2, 100]),
        flush_bytes: *random.pick(&[200, 1_000, 1 << 20]),
        snapshot_bytes: *random.pick(&[500, 1 << 20]),
        lock_timeout_ms: *random.pick(&[5, 1_000]),
        bulk_rows: *random.pick(&[2, 1_000]),
        load_rows: *random.pick(&[2, 1_000]),
        ..Options::default()
    };
    let is_deferred = random.percent(25);
    let opened = now(Database::open(host.clone(), options.clone()))?;
    let db = opened.map_err(|error| error.to_string())?;
    let setup = setup(&mut random, is_deferred);
    now(db.session().execute(&setup, &[]))?.map_err(|error| error.to_string())?;
    let outcome: Rc<RefCell<Outcome>> = Rc::default();
    let shared =
        Shared { db, world: world.clone(), outcome: outcome.clone(), is_deferred, tells: tell };
    shared.tell(|| setup.clone());
    let nested = *random.pick(&[0, 30]);
    let scheduler = Rc::new(Scheduler::new(world.clone(), clock, random.clone(), nested));
    let sessions = 2 + random.below(3) as usize;
    world.borrow_mut().sessions.resize_with(sessions + 1, Default::default);
    let running = Rc::new(Cell::new(sessions));
    for number in 0..sessions {
        let (shared, running) = (shared.clone(), running.clone());
        let random = Random::with_purpose(random.bits(), "session");
        scheduler.add(async move {
            session(number, random, &shared).await;
            running.set(running.get() - 1);
        });
    }
    let mut keeping = Random::with_purpose(random.bits(), "keeper");
    let keeper = shared.clone();
    scheduler.add(async move {
        while running.get() > 0 && !keeper.has_failed() {
            pause(&keeper, sessions, Op::Maintain { steps: 1 }).await;
            if let Err(failure) = keep(&mut keeping, &keeper).await {
                keeper.fail(failure);
            }
        }
    });
    hook::set(Some(scheduler.clone()));
    scheduler.run();
    hook::set(None);
    drop(scheduler);
    if let Some(failure) = world.borrow().failure.clone() {
        shared.fail(failure);
    }
    drop(shared);
    let db = now(Database::open(host, options))?.map_err(|error| error.to_string())?;
    let mut outcome = std::mem::take(&mut *outcome.borrow_mut());
    if outcome.failure.is_none() {
        outcome.failure = now(orphans(&mut db.session(), "after it was opened again"))?.err();
    }
    Ok(outcome)
}

/// Lets others run.
async fn pause(shared: &Shared, number: usize, op: Op) {
    shared.world.borrow_mut().sessions[number].op = Some(op);
    yield_now().await;
}

/// Maintains the tables, or looks at the newest commit.
async fn keep(random: &mut Random, shared: &Shared) -> Result<(), String> {
    let table = *random.pick(&["p", "c", "g"]);
    let mut session = shared.db.session();
    let done = match random.below(5) {
        0 => session.execute(&format!("optimize table {table} full"), &[]).await.map(drop),
        1 => session.execute(&format!("optimize table {table} flush"), &[]).await.map(drop),
        2 => return orphans(&mut session, "in the newest commit").await,
        _ => shared.db.maintain(Budget::Steps(1)).map(drop),
    };
    match done {
        // Rows that another session is deleting are not merged.
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        done => done.map_err(|error| error.to_string()),
    }
}

/// Fails if a session sees a row that refers to nothing.
async fn orphans(session: &mut Session, when: &str) -> Result<(), String> {
    for query in ORPHANS {
        let found = session.execute(query, &[]).await.map_err(|error| error.to_string())?;
        let rows: usize = found.batches.iter().map(|batch| batch.rows).sum();
        if rows > 0 {
            return Err(format!("{when}: {rows} rows of {query}"));
        }
    }
    Ok(())
}

async fn session(number: usize, mut random: Random, shared: &Shared) {
    let mut session = shared.db.session();
    for _ in 0..4 + random.below(8) {
        let is_explicit = random.percent(60);
        shared.tell(|| format!("{number}: {}", if is_explicit { "begin" } else { "alone" }));
        if is_explicit && session.execute("begin", &[]).await.is_err() {
            return shared.fail("a transaction does not begin".into());
        }
        let statements = if is_explicit { 1 + random.below(4) } else { 1 };
        let mut is_over = false;
        for _ in 0..statements {
            pause(shared, number, Op::Delete { table: "l", rows: Where::All }).await;
            let statement = statement(&mut random);
            let done = session.execute(&statement, &[]).await;
            shared.tell(|| {
                let answer = done.as_ref().map(|done| done.rows_affected);
                format!("{number}: {statement} -- {:?}", answer.map_err(ToString::to_string))
            });
            match done {
                Ok(done) => note(&done, shared),
                Err(error) => match refusal(error.kind()) {
                    Some(what) => shared.count(what),
                    None => return shared.fail(format!("{statement}: {error}")),
                },
            }
            is_over = is_explicit && !session.in_transaction();
            if is_over || shared.has_failed() {
                break;
            }
            if is_explicit
                && !shared.is_deferred
                && random.percent(40)
                && let Err(failure) = orphans(&mut session, &format!("after {statement}")).await
            {
                return shared.fail(failure);
            }
        }
        if shared.has_failed() {
            return;
        }
        if is_explicit && !is_over {
            pause(shared, number, Op::Commit).await;
            let end = if random.percent(80) { "commit" } else { "rollback" };
            let done = session.execute(end, &[]).await;
            shared.tell(|| {
                format!("{number}: {end} -- {:?}", done.as_ref().err().map(ToString::to_string))
            });
            match done {
                Ok(_) => shared.count(end),
                Err(error) => match refusal(error.kind()) {
                    Some(what) => shared.count(what),
                    None => return shared.fail(format!("{end}: {error}")),
                },
            }
        }
    }
    shared.world.borrow_mut().sessions[number].op = None;
}

fn note(done: &QueryResult, shared: &Shared) {
    shared.count(if done.rows_affected > 0 { "writes" } else { "writes of nothing" });
}

/// What a refused statement is counted as; `None` if it may not be refused like this.
fn refusal(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Constraint => Some("violations"),
        ErrorKind::Conflict => Some("conflicts"),
        ErrorKind::Deadlock => Some("deadlocks"),
        ErrorKind::LockTimeout => Some("lock timeouts"),
        _ => None,
    }
}

fn statement(random: &mut Random) -> String {
    let (key, other) = (random.below(KEYS), random.below(KEYS));
    let or_null = |random: &mut Random| match random.percent(20) {
        true => Value::Null,
        false => Value::Int(random.below(KEYS) as i64),
    };
    match random.below(16) {
        0..3 => format!("insert into p values ({key}, {other}, 0)"),
        3..6 => {
            let (p, u) = (or_null(random), or_null(random));
            format!("insert into c values ({}, {p}, {u})", random.below(12))
        }
        6 => format!(
            "insert into c select 20 + id, id, u from p where id >= {key} on conflict do nothing"
        ),
        7 => format!("insert into g values ({}, {}, {})", random.below(12), key, or_null(random)),
        8 => format!("insert into g values ({other}, null, {other})"),
        9 => format!("delete from p where id = {key}"),
        10 => format!("delete from p where id >= {key}"),
        11 => format!("update p set id = id + {} where id >= {key}", 1 + random.below(2)),
        12 => format!("update p set u = {other} where id = {key}"),
        13 => format!("update c set p = {}, u = {} where id <= {key}", other, or_null(random)),
        14 => format!("delete from c where p = {key} or id = {other}"),
        _ => format!("insert into p values ({key}, {other}, 1) on duplicate key update n = n + 1"),
    }
}
