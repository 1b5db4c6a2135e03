//! A bulk load alone, and beside sessions that write to the same table.
//!
//! Each writer is a client in a closed loop: one durable single-row statement after the other, in
//! turn an update of a random row that lives in a segment and an insert of a new one. The load adds
//! rows with keys of its own, in random order within each batch. Both loads start from a table of
//! the same size; rounds of the cases alternate.
//!
//! In a third case no session writes to the table, and a thread appends a few bytes to a file of its own and
//! syncs it, in a loop: the longest of these says how much of the longest commit is the drive's.

use crate::measure::{Folder, Outcome, check, median, open};
use crate::options::Options;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, Database, OnDuplicate, Value, VectorBuilder};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Creates the table.
pub const CREATE: &str =
    "create table t (id bigint primary key, region int, amount decimal(15,2), note text)";
/// Changes one row.
pub const UPDATE: &str = "update t set amount = amount + 1 where id = ?";
/// Adds one row.
pub const INSERT: &str = "insert into t values (?, ?, 1.00, 'a new row, written by one client')";
/// Keys of the writers' new rows begin here.
pub const WRITTEN: i64 = 1 << 40;
const BATCH: i64 = 8_192;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 5_000_000)?;
    let there: i64 = options.get("there", 1_000_000)?;
    let writers: u64 = options.get("writers", 4)?;
    let rounds: usize = options.get("rounds", 3)?;
    println!("{rows} rows loaded into {there}; {writers} writers; {rounds} rounds");
    println!(
        "{:>5} {:>8} {:>8} {:>10} {:>12} {:>8}",
        "round", "alone_s", "beside_s", "commits/s", "longest_ms", "sync_ms"
    );
    let (mut ratios, mut longest, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let alone = case(rows, there, Beside::Nothing)?;
        let beside = case(rows, there, Beside::Writers(writers))?;
        let synced = case(rows, there, Beside::Syncs)?;
        println!(
            "{round:>5} {:>8.2} {:>8.2} {:>10.0} {:>12.1} {:>8.1}",
            alone.seconds,
            beside.seconds,
            beside.commits as f64 / beside.seconds,
            beside.longest_ms,
            synced.longest_ms
        );
        ratios.push(beside.seconds / alone.seconds);
        longest.push(beside.longest_ms);
        syncs.push(synced.longest_ms);
    }
    println!(
        "load-beside: ratio={:.2} longest_commit_ms={:.1} longest_sync_ms={:.1}",
        median(&mut ratios),
        median(&mut longest),
        median(&mut syncs)
    );
    Ok(())
}

/// What runs beside a load.
#[derive(Clone, Copy)]
enum Beside {
    Nothing,
    /// This number of clients that write to its table.
    Writers(u64),
    /// A thread that appends to a file of its own and syncs it.
    Syncs,
}

/// Measurements of one load.
struct Loaded {
    seconds: f64,
    /// Commits of the writers during it.
    commits: u64,
    /// The longest statement of a writer during it, or the longest sync.
    longest_ms: f64,
}

fn case(rows: i64, there: i64, beside: Beside) -> Outcome<Loaded> {
    let folder = Folder::new("load-beside")?;
    let db = open(&folder.join("nacre"), nacredb::Options::default())?;
    block_on(db.session().execute(CREATE, &[]))?;
    // The table has every other key of the range that the load falls into.
    load(&db, there, &|n| n * 2)?;
    block_on(db.session().execute("optimize table t full", &[]))?;
    let (commits, longest_us, stop) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let seconds = std::thread::scope(|scope| {
        let (db, stop, commits, longest_us) = (&db, &stop, &commits, &longest_us);
        let mut threads = Vec::new();
        match beside {
            Beside::Nothing => {}
            Beside::Writers(writers) => threads.extend((0..writers).map(|writer| {
                scope.spawn(move || write(db, (writer, there), stop, (commits, longest_us)))
            })),
            Beside::Syncs => {
                let path = folder.join("syncs");
                threads.push(scope.spawn(move || sync(&path, stop, longest_us)));
            }
        }
        let started = Instant::now();
        let loaded = load(db, rows, &|n| n * 2 + 1);
        let seconds = started.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap_or_else(|_| Err("a client ended early".into()))?;
        }
        loaded.map(|()| seconds)
    })?;
    let written = commits.load(Ordering::Relaxed);
    let counted = block_on(db.session().execute("select count(*) from t", &[]))?;
    let expected = there + rows + written as i64 / 2;
    if counted.batches[0].columns[0].value(0) != Value::Int(expected) {
        return Err(format!("the table has not {expected} rows").into());
    }
    check(&db)?;
    let longest_ms = longest_us.load(Ordering::Relaxed) as f64 / 1_000.0;
    Ok(Loaded { seconds, commits: written, longest_ms })
}

/// Writes rows until the load has ended.
fn write(
    db: &Database,
    (writer, there): (u64, i64),
    stop: &AtomicBool,
    (commits, longest_us): (&AtomicU64, &AtomicU64),
) -> Outcome<()> {
    let mut session = db.session();
    let update = session.prepare(UPDATE)?;
    let insert = session.prepare(INSERT)?;
    let mut random = Random::new(writer);
    let mut next = WRITTEN + ((writer as i64) << 32);
    while !stop.load(Ordering::Relaxed) {
        let id = random.below(there as u64) as i64 * 2;
        let started = Instant::now();
        block_on(session.run(&update, &[Value::Int(id)]))?;
        let between = Instant::now();
        block_on(session.run(&insert, &[Value::Int(next), Value::Int(next % 20)]))?;
        let longest = between.elapsed().max(between - started);
        longest_us.fetch_max(longest.as_micros() as u64, Ordering::Relaxed);
        commits.fetch_add(2, Ordering::Relaxed);
        next += 1;
    }
    Ok(())
}

/// Appends to a file and syncs it until the load has ended.
fn sync(path: &Path, stop: &AtomicBool, longest_us: &AtomicU64) -> Outcome<()> {
    let mut file = File::create(path)?;
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        file.write_all(&[1; 200])?;
        file.sync_data()?;
        longest_us.fetch_max(started.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Loads rows `0..rows` with the keys that `key` gives them, in one bulk load.
pub fn load(db: &Database, rows: i64, key: &dyn Fn(i64) -> i64) -> Outcome<()> {
    let mut session = db.session();
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (0..rows).step_by(BATCH as usize) {
        let count = BATCH.min(rows - start);
        let mut columns: Vec<VectorBuilder> =
            types.iter().map(|t| VectorBuilder::new(*t)).collect();
        for at in 0..count {
            // An odd factor permutes a power of two.
            let at = if count == BATCH { at * 4_801 % BATCH } else { at };
            let id = key(start + at);
            columns[0].push_i64(id);
            columns[1].push_i64(id % 20);
            columns[2].push_i64(id * 7 % 100_000);
            columns[3].push_bytes(format!("a row of the usual length, number {id}").as_bytes());
        }
        let columns = columns.into_iter().map(|c| Arc::new(c.finish())).collect();
        appender.append(&Batch::new(columns, count as usize))?;
    }
    block_on(appender.finish())?;
    Ok(())
}
