//! Latency of single-row commits and point reads, alone and while a load, a merge of the whole
//! table and snapshots of the log run, against SQLite (WAL, `synchronous=FULL`).
//!
//! Each of eight sessions is a client in a closed loop: in turn one durable single-row statement
//! and one prepared read of a row by its key. Both cases start from a table of the same size. The
//! load adds rows with keys of its own; then `OPTIMIZE TABLE … FULL` merges everything, and
//! snapshots are written often enough that several fall into the time. SQLite loads in transactions
//! of 10,000 rows, because its only writer would otherwise stop the others to the end of the load;
//! then it checkpoints.

use crate::load_beside::{CREATE, INSERT, UPDATE, WRITTEN, load};
use crate::measure::{Folder, Outcome, check, open, open_sqlite};
use crate::options::Options;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Database, Value};
use rusqlite::TransactionBehavior::Immediate;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SESSIONS: i64 = 8;
const READ: &str = "select * from t where id = ?";
/// Bytes of log after which a snapshot is written, in the case with a load.
const SNAPSHOT_BYTES: u64 = 2 << 20;
const SQLITE_BATCH: usize = 10_000;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 10_000_000)?;
    let there: i64 = options.get("there", 1_000_000)?;
    let length = Duration::from_secs_f64(options.get("seconds", 20.0)?);
    println!("{SESSIONS} sessions on {there} rows; {rows} rows loaded; {length:?} alone");
    println!("{:>8} {:>8} {:>10} {:>12} {:>12}", "", "case", "pairs/s", "commit_p999", "read_p999");
    let show = |name: &str, case: &str, measured: Measured| {
        println!(
            "{name:>8} {case:>8} {:>10.0} {:>9.0} µs {:>9.0} µs",
            measured.pairs_per_second, measured.commit_us, measured.read_us
        );
        measured
    };
    let (nothing, loading) = (Work::Nothing(length), Work::Load(rows));
    let ours = [
        show("nacre", "alone", nacre(there, nothing)?),
        show("nacre", "beside", nacre(there, loading)?),
    ];
    let theirs = [
        show("sqlite", "alone", sqlite(there, nothing)?),
        show("sqlite", "beside", sqlite(there, loading)?),
    ];
    let commits = |cases: &[Measured; 2]| cases[1].commit_us / cases[0].commit_us;
    let reads = |cases: &[Measured; 2]| cases[1].read_us / cases[0].read_us;
    println!(
        "latency: commit_p999_ratio={:.2} read_p999_ratio={:.2} sqlite_commit_p999_ratio={:.2} sqlite_read_p999_ratio={:.2}",
        commits(&ours),
        reads(&ours),
        commits(&theirs),
        reads(&theirs)
    );
    Ok(())
}

/// What runs beside the sessions.
#[derive(Clone, Copy)]
enum Work {
    /// Nothing, for some time.
    Nothing(Duration),
    /// A load of this many rows, a merge and snapshots.
    Load(i64),
}

/// Measurements of one case, over all sessions.
struct Measured {
    pairs_per_second: f64,
    /// The 99.9th percentile of the statements that write, in microseconds.
    commit_us: f64,
    /// The same of the reads.
    read_us: f64,
}

/// Times of one session's statements, in nanoseconds.
#[derive(Default)]
struct Times {
    commits: Vec<u64>,
    reads: Vec<u64>,
}

fn nacre(there: i64, work: Work) -> Outcome<Measured> {
    let folder = Folder::new("latency")?;
    let mut options = nacredb::Options::default();
    if let Work::Load(_) = work {
        options.snapshot_bytes = SNAPSHOT_BYTES;
    }
    let db = open(&folder.join("nacre"), options)?;
    block_on(db.session().execute(CREATE, &[]))?;
    // The table has every other key of the range that the load falls into.
    load(&db, there, &|n| n * 2)?;
    block_on(db.session().execute("optimize table t full", &[]))?;
    let measured = measure(
        work,
        |session, stop| nacre_session(&db, session, there, stop),
        |rows| {
            load(&db, rows, &|n| n * 2 + 1)?;
            block_on(db.session().execute("optimize table t full", &[]))?;
            Ok(())
        },
    )?;
    check(&db)?;
    Ok(measured)
}

fn nacre_session(db: &Database, session: i64, there: i64, stop: &AtomicBool) -> Outcome<Times> {
    let mut connection = db.session();
    let (update, insert) = (connection.prepare(UPDATE)?, connection.prepare(INSERT)?);
    let read = connection.prepare(READ)?;
    client(session, there, stop, &mut |step| {
        match step {
            Step::Update(id) => block_on(connection.run(&update, &[Value::Int(id)])).map(drop),
            Step::Insert(id) => {
                let values = [Value::Int(id), Value::Int(id % 20)];
                block_on(connection.run(&insert, &values)).map(drop)
            }
            Step::Read(id) => match connection.get(&read, &[Value::Int(id)])? {
                Some(_) => Ok(()),
                None => return Err(format!("row {id} is missing").into()),
            },
        }
        .map_err(Into::into)
    })
}

fn sqlite(there: i64, work: Work) -> Outcome<Measured> {
    let folder = Folder::new("latency")?;
    let path = folder.join("sqlite.db");
    let connection = open_sqlite(&path)?;
    connection.execute(&CREATE.replace("bigint", "integer"), [])?;
    load_sqlite(&path, there, &|n| n * 2)?;
    measure(
        work,
        |session, stop| sqlite_session(&path, session, there, stop),
        |rows| load_sqlite(&path, rows, &|n| n * 2 + 1),
    )
}

fn sqlite_session(path: &Path, session: i64, there: i64, stop: &AtomicBool) -> Outcome<Times> {
    let connection = open_patiently(path)?;
    client(session, there, stop, &mut |step| {
        match step {
            Step::Update(id) => connection.prepare_cached(UPDATE)?.execute([id])?,
            Step::Insert(id) => connection.prepare_cached(INSERT)?.execute([id, id % 20])?,
            Step::Read(id) => {
                let mut read = connection.prepare_cached(READ)?;
                usize::from(read.query_row([id], |row| row.get::<_, i64>(0))? == id)
            }
        };
        Ok(())
    })
}

/// Opens SQLite for a connection that waits as long as it takes: its writers do not wait in order.
fn open_patiently(path: &Path) -> Outcome<rusqlite::Connection> {
    let connection = open_sqlite(path)?;
    connection.busy_timeout(Duration::from_secs(600))?;
    Ok(connection)
}

fn load_sqlite(path: &Path, rows: i64, key: &dyn Fn(i64) -> i64) -> Outcome<()> {
    let mut connection = open_patiently(path)?;
    for start in (0..rows).step_by(SQLITE_BATCH) {
        let transaction = connection.transaction_with_behavior(Immediate)?;
        let mut insert = transaction.prepare_cached("insert into t values (?, ?, ?, ?)")?;
        for id in (start..rows.min(start + SQLITE_BATCH as i64)).map(key) {
            let note = format!("a row of the usual length, number {id}");
            insert.execute(rusqlite::params![id, id % 20, id * 7 % 100_000, note])?;
        }
        drop(insert);
        transaction.commit()?;
    }
    connection.pragma_update(None, "wal_checkpoint", "PASSIVE")?;
    Ok(())
}

/// A statement of a session, with the key it is about.
enum Step {
    Update(i64),
    Insert(i64),
    Read(i64),
}

/// Runs a session's statements until it is stopped.
fn client(
    session: i64,
    there: i64,
    stop: &AtomicBool,
    run: &mut dyn FnMut(Step) -> Outcome<()>,
) -> Outcome<Times> {
    let mut random = Random::new(session as u64);
    let mut key = || random.below(there as u64) as i64 * 2;
    let mut times = Times::default();
    let mut next = WRITTEN + (session << 32);
    while !stop.load(Ordering::Relaxed) {
        let write = if next % 2 == 0 { Step::Update(key()) } else { Step::Insert(next) };
        next += 1;
        for (step, times) in [(write, &mut times.commits), (Step::Read(key()), &mut times.reads)] {
            let started = Instant::now();
            run(step)?;
            times.push(started.elapsed().as_nanos() as u64);
        }
    }
    Ok(times)
}

/// Runs all sessions beside the work, to its end.
fn measure(
    work: Work,
    session: impl Fn(i64, &AtomicBool) -> Outcome<Times> + Sync,
    load: impl FnOnce(i64) -> Outcome<()>,
) -> Outcome<Measured> {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let (mut commits, mut reads) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| -> Outcome<()> {
        let (stop, session) = (&stop, &session);
        let threads: Vec<_> =
            (0..SESSIONS).map(|at| scope.spawn(move || session(at, stop))).collect();
        let done = match work {
            Work::Nothing(length) => {
                std::thread::sleep(length);
                Ok(())
            }
            Work::Load(rows) => load(rows),
        };
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let times = thread.join().unwrap_or_else(|_| Err("a client ended early".into()))?;
            commits.extend(times.commits);
            reads.extend(times.reads);
        }
        done
    })?;
    Ok(Measured {
        pairs_per_second: reads.len() as f64 / started.elapsed().as_secs_f64(),
        commit_us: p999_us(&mut commits),
        read_us: p999_us(&mut reads),
    })
}

/// The 99.9th percentile of times in nanoseconds, in microseconds.
fn p999_us(times: &mut [u64]) -> f64 {
    times.sort_unstable();
    times.get(times.len() * 999 / 1_000).map_or(f64::NAN, |ns| *ns as f64 / 1_000.0)
}
