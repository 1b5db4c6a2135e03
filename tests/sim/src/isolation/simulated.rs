//! Histories of simulated sessions on one thread: the seed determines their order, and sessions run
//! inside each other's calls.

use crate::background::Inline;
use crate::clock::{SimClock, SimEntropy};
use crate::disk::Disk;
use crate::hook;
use crate::isolation::history::History;
use crate::isolation::work::{Kind, Task, last, setup, tasks, transact};
use crate::op::Op;
use crate::op::condition::Where;
use crate::scheduler::Scheduler;
use crate::turns::yield_now;
use crate::world::World;
use nacre_testing::Random;
use nacredb::{Budget, Database, Durability, Host, Options};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn now<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("waited where there is nothing to wait for".into()),
    }
}

/// An operation with the same weight as the statement, for the scheduler.
fn stand_in(what: &str) -> Op {
    let table = "l";
    match what {
        "begin" => Op::Begin,
        "read" => Op::Select { table, rows: Where::All },
        // The scheduler knows no transactions here, so a write counts as a commit, which is
        // conservative.
        "write" => Op::Delete { table, rows: Where::All },
        "keep" => Op::Maintain { steps: 1 },
        _ => Op::Commit,
    }
}

/// Runs one history, deterministically.
pub fn run(seed: u64, kind: Kind) -> Result<History, String> {
    let mut random = Random::with_purpose(seed, "isolation");
    let (count, each) = (2 + random.below(5) as usize, 2 + random.below(8) as usize);
    let (lists, sessions) = tasks(&mut random, count, each);
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
        ..Options::default()
    };
    let db = now(Database::open(host, options))?.map_err(|e| e.to_string())?;
    now(db.session().execute(&setup(lists), &[]))?.map_err(|e| e.to_string())?;

    let moment = Rc::new(Cell::new(0));
    let history: Rc<RefCell<Result<History, String>>> = Rc::new(RefCell::new(Ok(History::new())));
    let scheduler =
        Rc::new(Scheduler::new(world.clone(), clock, random.clone(), *random.pick(&[0, 30])));
    world.borrow_mut().sessions.resize_with(sessions.len() + 1, Default::default);
    let running = Rc::new(Cell::new(sessions.len()));
    for (at, tasks) in sessions.into_iter().enumerate() {
        let (db, world, history) = (db.clone(), world.clone(), history.clone());
        let (moment, running) = (moment.clone(), running.clone());
        scheduler.add(async move {
            session(at, tasks, kind, db, world, history, moment).await;
            running.set(running.get() - 1);
        });
    }
    let keeper = (world.clone(), db.clone(), random.bits());
    let number = world.borrow().sessions.len() - 1;
    let failed = history.clone();
    scheduler.add(async move {
        let (world, db, seed) = keeper;
        let mut random = Random::with_purpose(seed, "keeper");
        while running.get() > 0 {
            world.borrow_mut().sessions[number].op = Some(stand_in("keep"));
            yield_now().await;
            let outcome = match random.below(4) {
                0 => db.session().execute("optimize table l full", &[]).await.map(|_| ()),
                1 => db.session().execute("optimize table l flush", &[]).await.map(|_| ()),
                _ => db.maintain(Budget::Steps(1)).map(|_| ()),
            };
            if let Err(error) = outcome {
                *failed.borrow_mut() = Err(error.to_string());
            }
        }
    });
    hook::set(Some(scheduler.clone()));
    scheduler.run();
    hook::set(None);
    if let Some(failure) = world.borrow().failure.clone() {
        return Err(failure);
    }
    let tick = || {
        moment.set(moment.get() + 1);
        moment.get()
    };
    let pause = async |_: &'static str| {};
    let read = now(transact(&mut db.session(), &last(lists), Kind::Plain, &tick, &pause))??;
    let mut history = std::mem::replace(&mut *history.borrow_mut(), Ok(History::new()))?;
    history.push(read);
    Ok(history)
}

async fn session(
    number: usize,
    tasks: Vec<Task>,
    kind: Kind,
    db: Database,
    world: Rc<RefCell<World>>,
    history: Rc<RefCell<Result<History, String>>>,
    moment: Rc<Cell<u64>>,
) {
    let mut session = db.session();
    let tick = || {
        moment.set(moment.get() + 1);
        moment.get()
    };
    let pause = async |what: &'static str| {
        world.borrow_mut().sessions[number].op = Some(stand_in(what));
        yield_now().await;
    };
    for task in &tasks {
        let done = transact(&mut session, task, kind, &tick, &pause).await;
        let mut history = history.borrow_mut();
        match (&mut *history, done) {
            (Ok(all), Ok(transaction)) => all.push(transaction),
            (Ok(_), Err(error)) => *history = Err(error),
            (Err(_), _) => return,
        }
    }
    world.borrow_mut().sessions[number].op = None;
}
