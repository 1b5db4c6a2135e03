//! 50 writers and 2 scanners on one table, each side alone and both together.
//!
//! A writer is a client in a closed loop, without thinking time: one durable single-row statement
//! after the other, in turn an update of a random row that lives in a segment and an insert of a
//! new one. A scanner repeats an aggregate by group over the whole table. Rounds of the three cases
//! alternate; a side *keeps* the fraction of its rate alone that it achieves together with the
//! other, in the same round. Each side alone may use all cores; if it does, the two fractions
//! cannot add up to more than one. So there is a second measurement, in which each side has one
//! core for itself, alone and together: the writers share theirs with the background work, and
//! scans run on the thread of their client. A *cost* is the processor time of one commit, with the
//! background work, or of one scan, together over alone: unlike the rates, it says something on a
//! busy machine too.

use crate::measure::{Folder, Outcome, check, median, open, processor_time, thread_time_ns};
use crate::options::Options;
use crate::pin::{pin_all_threads, pin_this_thread, processors};
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, Database, OnDuplicate, Value, VectorBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: u64 = 50;
const SCANNERS: u64 = 2;
const CREATE: &str =
    "create table t (id bigint primary key, region int, amount decimal(15,2), note text)";
const UPDATE: &str = "update t set amount = amount + 1 where id = ?";
const INSERT: &str =
    "insert into t values (?, ?, 1.00, 'a new row of the usual length, written by one client')";
const SCAN: &str = "select region, count(*), sum(amount), max(id) from t group by region";

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 2_000_000)?;
    let rounds: usize = options.get("rounds", 7)?;
    let length = Duration::from_secs_f64(options.get("seconds", 2.0)?);
    let folder = Folder::new("mixed")?;
    let db = open(&folder.join("nacre"), nacredb::Options::default())?;
    fill(&db, rows)?;
    println!(
        "{rows} rows; {WRITERS} writers, {SCANNERS} scanners, {rounds} rounds of {length:?} a case"
    );
    let next = AtomicI64::new(rows);
    let table = Table { db: &db, rows, next: &next, length };
    let free = compare(&table, rounds, None)?;
    let all = processors();
    let pinned = match all[..] {
        [writers, scanners, ..] => {
            println!("writers on processor {writers}, scanners on processor {scanners}");
            let pinned = compare(&table, rounds, Some(Pins { writers, scanners }))?;
            pin_all_threads(&all)?;
            Some(pinned)
        }
        _ => None,
    };
    check(&db)?;
    print!("mixed: writers_keep={:.2} scans_keep={:.2}", free.writers_keep, free.scans_keep);
    if let Some(pinned) = pinned {
        print!(
            " pinned_writers_keep={:.2} pinned_scans_keep={:.2} commit_cost={:.2} scan_cost={:.2}",
            pinned.writers_keep, pinned.scans_keep, pinned.commit_cost, pinned.scan_cost
        );
    }
    println!();
    Ok(())
}

/// The table, and how long one case takes.
struct Table<'a> {
    db: &'a Database,
    rows: i64,
    /// The id of the next new row.
    next: &'a AtomicI64,
    length: Duration,
}

/// The processors of the two sides.
#[derive(Clone, Copy)]
struct Pins {
    writers: usize,
    scanners: usize,
}

/// The two sides together compared with each alone: medians of all rounds.
struct Compared {
    /// The fractions of their rates that they keep.
    writers_keep: f64,
    scans_keep: f64,
    /// The processor time of a commit and of a scan, over that alone.
    commit_cost: f64,
    scan_cost: f64,
}

fn compare(table: &Table<'_>, rounds: usize, pins: Option<Pins>) -> Outcome<Compared> {
    println!(
        "{:>5} {:>10} {:>6} {:>10} {:>6} {:>10} {:>8} {:>6}",
        "round", "commits/s", "cores", "scans/s", "cores", "commits/s", "scans/s", "cores"
    );
    let (mut writers, mut scanners) = (Vec::new(), Vec::new());
    let (mut commit_costs, mut scan_costs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let writing = case(table, (WRITERS, 0), pins)?;
        let scanning = case(table, (0, SCANNERS), pins)?;
        let both = case(table, (WRITERS, SCANNERS), pins)?;
        println!(
            "{round:>5} {:>10.0} {:>6.2} {:>10.1} {:>6.2} {:>10.0} {:>8.1} {:>6.2}",
            writing.commits,
            writing.cores,
            scanning.scans,
            scanning.cores,
            both.commits,
            both.scans,
            both.cores
        );
        writers.push(both.commits / writing.commits);
        scanners.push(both.scans / scanning.scans);
        let commit = |rates: &Rates| (rates.cores - rates.scan_cores) / rates.commits;
        let scan = |rates: &Rates| rates.scan_cores / rates.scans;
        commit_costs.push(commit(&both) / commit(&writing));
        scan_costs.push(scan(&both) / scan(&scanning));
    }
    Ok(Compared {
        writers_keep: median(&mut writers),
        scans_keep: median(&mut scanners),
        commit_cost: median(&mut commit_costs),
        scan_cost: median(&mut scan_costs),
    })
}

fn fill(db: &Database, rows: i64) -> Outcome<()> {
    let mut session = db.session();
    block_on(session.execute(CREATE, &[]))?;
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (0..rows).step_by(8_192) {
        let end = (start + 8_192).min(rows);
        let mut columns: Vec<VectorBuilder> =
            types.iter().map(|t| VectorBuilder::new(*t)).collect();
        for id in start..end {
            columns[0].push_i64(id);
            columns[1].push_i64(id % 20);
            columns[2].push_i64(id * 7 % 100_000);
            columns[3].push_bytes(
                format!("a row of the usual length, number {id}, from the load").as_bytes(),
            );
        }
        let columns = columns.into_iter().map(|c| Arc::new(c.finish())).collect();
        appender.append(&Batch::new(columns, (end - start) as usize))?;
    }
    block_on(appender.finish())?;
    block_on(session.execute("optimize table t full", &[]))?;
    Ok(())
}

/// Measurements of one case.
struct Rates {
    /// Commits per second.
    commits: f64,
    /// Scans per second.
    scans: f64,
    /// Number of processors this process kept busy, maintenance included.
    cores: f64,
    /// Of these, what the threads of the scanners used.
    scan_cores: f64,
}

/// Runs this many clients of each kind for some time, starting with all rows in segments.
fn case(table: &Table<'_>, (writers, scanners): (u64, u64), pins: Option<Pins>) -> Outcome<Rates> {
    let Table { db, rows, next, length } = *table;
    block_on(db.session().execute("optimize table t flush", &[]))?;
    let (commits, scans, scan_ns) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    if let Some(pins) = pins {
        // Background work is the writers'.
        pin_all_threads(&[pins.writers])?;
    }
    let (started, worked) = (Instant::now(), processor_time()?);
    let (commits, scans, scan_ns, stop) = (&commits, &scans, &scan_ns, &stop);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for writer in 0..writers {
            threads.push(scope.spawn(move || -> Outcome<()> {
                let mut session = db.session();
                let update = session.prepare(UPDATE)?;
                let insert = session.prepare(INSERT)?;
                let mut random = Random::new((writer << 40) | next.load(Ordering::Relaxed) as u64);
                while !stop.load(Ordering::Relaxed) {
                    block_on(
                        session.run(&update, &[Value::Int(random.below(rows as u64) as i64)]),
                    )?;
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    block_on(session.run(&insert, &[Value::Int(id), Value::Int(id % 20)]))?;
                    commits.fetch_add(2, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        for _ in 0..scanners {
            threads.push(scope.spawn(move || -> Outcome<()> {
                let mut session = db.session();
                if let Some(pins) = pins {
                    pin_this_thread(&[pins.scanners])?;
                    session.set_threads(1);
                }
                let scan = session.prepare(SCAN)?;
                let mut worked = thread_time_ns()?;
                while !stop.load(Ordering::Relaxed) {
                    if block_on(session.run(&scan, &[]))?.rows() != 20 {
                        return Err("a scan has not found all groups".into());
                    }
                    scans.fetch_add(1, Ordering::Relaxed);
                    let before = std::mem::replace(&mut worked, thread_time_ns()?);
                    scan_ns.fetch_add(worked - before, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        std::thread::sleep(length);
        let elapsed = started.elapsed().as_secs_f64();
        let rates = Rates {
            commits: commits.load(Ordering::Relaxed) as f64 / elapsed,
            scans: scans.load(Ordering::Relaxed) as f64 / elapsed,
            cores: (processor_time()? - worked) / elapsed,
            scan_cores: scan_ns.load(Ordering::Relaxed) as f64 / 1e9 / elapsed,
        };
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().unwrap_or_else(|_| Err("a client ended early".into()))?;
        }
        Ok(rates)
    })
}
