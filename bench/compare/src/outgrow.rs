//! A table that outgrows its memory: loads with keys scattered over the whole range, then an update
//! of every row, a delete of a third, `OPTIMIZE TABLE … FULL` and a scan, all within one memory
//! budget. Opening and point reads are compared with a table of a hundredth of the rows, which the
//! block cache holds almost completely; so point reads are also compared with those of that table
//! with a hundredth of the cache, in which blocks are missed as often.
//!
//! With `--rounds` only point reads are measured, of both tables in turns, in processor time too.
//!
//! The processor is not compared with a peer: what is measured is whether cost and memory follow
//! the work or the size of the table.

use crate::measure::{Folder, Outcome, check, median, open, thread_time_ns, timed};
use crate::options::Options;
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Batch, Database, ErrorKind, OnDuplicate, Value, VectorBuilder};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const CREATE: &str = "create table t (
    id bigint primary key, code text, seen_at timestamp, region int, customer int, quantity int,
    amount decimal(15,2), discount decimal(15,2), weight double, status text, city text, note text,
    key by_code (code), key by_time using btree (seen_at))";
const READ: &str = "select * from t where id = ?";
const SCAN: &str = "select count(*), sum(quantity), sum(amount), sum(discount), sum(weight),
    max(code), max(seen_at), max(region), max(customer), max(status), max(city), max(note) from t";
const UPDATE: &str = "update t set quantity = quantity + 1";
const DELETE: &str = "delete from t where id % 3 = 0";
const MEMORY_BYTES: usize = 512 << 20;
/// The share of the block cache.
const CACHE_BYTES: usize = MEMORY_BYTES / 8;
/// Loads of one table.
const LOADS: i64 = 100;
/// The small table has one row for this many.
const FRACTION: i64 = 100;
const BATCH: i64 = 8_192;
const READS: usize = 5_000;
const OPENINGS: usize = 5;
/// A prime that scatters consecutive numbers over the keys.
const SCATTER: i64 = 7_368_787;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 50_000_000)?;
    if rows < LOADS * FRACTION || rows % SCATTER == 0 {
        return Err(
            format!("--rows takes {} or more, no multiple of {SCATTER}", LOADS * FRACTION).into()
        );
    }
    let folder = Folder::new("outgrow")?;
    println!("{rows} rows in {LOADS} loads, {} MB", MEMORY_BYTES >> 20);
    println!("{:>10} {:>9} {:>8} {:>8}  parts in MB", "", "seconds", "rss_mb", "peak_mb");
    let small = table(&folder.join("small"), rows / FRACTION, CACHE_BYTES / FRACTION as usize)?;
    let large = table(&folder.join("large"), rows, CACHE_BYTES)?;
    let rounds = options.get("rounds", 0)?;
    if rounds > 0 {
        return only_points(&folder, rows, rounds);
    }
    let db = open(&folder.join("large"), engine_options())?;
    let updated = statement(&db, "update", UPDATE)?;
    let deleted = statement(&db, "delete", DELETE)?;
    phase(&db, "optimize", || execute(&db, "optimize table t full").map(drop))?;
    let left = if deleted.is_some() { rows - (rows + 2) / 3 } else { rows };
    let more = if updated.is_some() { left } else { 0 };
    let quantities: i64 =
        (0..rows).filter(|id| deleted.is_none() || id % 3 != 0).map(quantity).sum();
    phase(&db, "scan", || expect(&db, left, quantities + more))?;
    let peak = resident("VmHWM")?;
    check(&db)?;
    block_on(db.close())?;
    println!(
        "outgrow: rows_per_s_ratio={:.2} peak_rss_mb={peak:.0} open_ms={:.1} open_ratio={:.2} \
         point_ratio={:.2} point_miss_ratio={:.2} update_all_s={} runs={}",
        large.rate_ratio,
        large.open_ms,
        large.open_ms / small.open_ms,
        large.point_us / small.point_us,
        large.miss_us / small.miss_us,
        updated.map_or("unsupported".into(), |seconds| format!("{seconds:.1}")),
        large.runs
    );
    Ok(())
}

/// Compares point reads of the two tables in turns.
fn only_points(folder: &Folder, rows: i64, rounds: usize) -> Outcome<()> {
    let (mut hits, mut misses) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        hits.push(points_of(&folder.join("small"), engine_options(), rows / FRACTION)?);
        misses.push(points_of(&folder.join("large"), engine_options(), rows)?);
    }
    let all = |points: &[Points], of: fn(&Points) -> f64| {
        median(&mut points.iter().map(of).collect::<Vec<_>>())
    };
    let (hit, miss) = (all(&hits, |p| p.median_us), all(&misses, |p| p.median_us));
    let (hit_cpu, miss_cpu) = (all(&hits, |p| p.processor_us), all(&misses, |p| p.processor_us));
    println!(
        "outgrow: point_us={miss:.1} point_hit_us={hit:.1} point_ratio={:.2} \
         point_processor_us={miss_cpu:.1} point_hit_processor_us={hit_cpu:.1}",
        miss / hit
    );
    Ok(())
}

/// Measurements of a table after its loads.
struct Measured {
    /// Rows a second in the last tenth of the loads, over those in the first.
    rate_ratio: f64,
    open_ms: f64,
    point_us: f64,
    /// With a cache in proportion to the rows.
    miss_us: f64,
    runs: u64,
}

/// Creates a table, loads it, opens it again and reads rows by their keys.
fn table(path: &Path, rows: i64, cache_bytes: usize) -> Outcome<Measured> {
    let db = open(path, engine_options())?;
    execute(&db, CREATE)?;
    let mut times = Vec::new();
    phase(&db, "load", || {
        for number in 0..LOADS {
            let part = rows * number / LOADS..rows * (number + 1) / LOADS;
            times.push(timed(|| load(&db, part, rows))?.1);
        }
        Ok(())
    })?;
    let tenth = times.len() / 10;
    let rates = times.chunks(tenth).map(|part| part.iter().sum::<f64>());
    let rates: Vec<String> =
        rates.map(|seconds| format!("{:.0}", rows as f64 / 10_000.0 / seconds)).collect();
    println!("thousand rows a second, by tenth of the loads: {}", rates.join(" "));
    let first: f64 = times[..tenth].iter().sum();
    let last: f64 = times[times.len() - tenth..].iter().sum();
    // Waits for the work that is due, so that all openings find the same files.
    phase(&db, "maintain", || {
        while db.maintain(nacredb::Budget::Steps(64))? {}
        Ok(())
    })?;
    let runs = db.inspect()?.iter().map(|table| table.runs).sum();
    block_on(db.close())?;
    drop(db);
    let mut openings = Vec::new();
    for _ in 0..OPENINGS {
        let (db, seconds) = timed(|| open(path, engine_options()))?;
        openings.push(seconds * 1_000.0);
        block_on(db.close())?;
    }
    let point_us = points_of(path, engine_options(), rows)?.median_us;
    let small_cache = nacredb::Options { cache_bytes, ..engine_options() };
    let miss_us = points_of(path, small_cache, rows)?.median_us;
    let open_ms = median(&mut openings);
    println!("opening {open_ms:.1} ms, a point read {point_us:.1} µs, {miss_us:.1} µs with misses");
    Ok(Measured { rate_ratio: first / last, open_ms, point_us, miss_us, runs })
}

/// Times of point reads.
#[derive(Default)]
struct Points {
    median_us: f64,
    /// Mean processor time.
    processor_us: f64,
}

/// Reads rows of a database opened with these options.
fn points_of(path: &Path, options: nacredb::Options, rows: i64) -> Outcome<Points> {
    let db = open(path, options)?;
    let mut read = Points::default();
    phase(&db, "points", || {
        read = points(&db, rows)?;
        Ok(())
    })?;
    block_on(db.close())?;
    Ok(read)
}

fn engine_options() -> nacredb::Options {
    nacredb::Options { memory_bytes: MEMORY_BYTES, ..nacredb::Options::default() }
}

/// Loads these of `rows` rows in one bulk load.
fn load(db: &Database, part: std::ops::Range<i64>, rows: i64) -> Outcome<()> {
    let mut session = db.session();
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in part.clone().step_by(BATCH as usize) {
        let end = part.end.min(start + BATCH);
        let mut columns: Vec<VectorBuilder> =
            types.iter().map(|t| VectorBuilder::new(*t)).collect();
        (start..end).for_each(|n| push_row(&mut columns, n * SCATTER % rows));
        let columns = columns.into_iter().map(|c| Arc::new(c.finish())).collect();
        appender.append(&Batch::new(columns, (end - start) as usize))?;
    }
    block_on(appender.finish())?;
    Ok(())
}

fn quantity(id: i64) -> i64 {
    id % 50
}

fn push_row(columns: &mut [VectorBuilder], id: i64) {
    let mixed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
    columns[0].push_i64(id);
    columns[1].push_bytes(format!("{mixed:016x}").as_bytes());
    columns[2].push_i64(1_700_000_000_000_000 + (mixed >> 24 & 0xff_ffff_ffff));
    columns[3].push_i64(id % 20);
    columns[4].push_i64(mixed >> 40 & 0xf_ffff);
    columns[5].push_i64(quantity(id));
    columns[6].push_i64(mixed >> 20 & 0xf_ffff);
    columns[7].push_i64(id % 11);
    columns[8].push_f64((mixed >> 32 & 0xffff) as f64 / 16.0);
    columns[9].push_bytes([&b"open"[..], b"paid", b"sent"][(id % 3) as usize]);
    columns[10].push_bytes(format!("city {}", id % 1_000).as_bytes());
    columns[11].push_bytes(format!("a note about row {id}").as_bytes());
}

/// Reads rows by key.
fn points(db: &Database, rows: i64) -> Outcome<Points> {
    let mut session = db.session();
    let read = session.prepare(READ)?;
    let mut random = Random::new(1);
    let mut times = Vec::with_capacity(READS);
    let mut before = 0;
    for at in 0..2 * READS {
        let id = random.below(rows as u64) as i64;
        if at == READS {
            before = thread_time_ns()?;
        }
        let started = Instant::now();
        if session.get(&read, &[Value::Int(id)])?.is_none() {
            return Err(format!("row {id} is missing").into());
        }
        // The first half opens what is opened when it is first read.
        if at >= READS {
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
    }
    let processor_us = (thread_time_ns()? - before) as f64 / 1e3 / READS as f64;
    Ok(Points { median_us: median(&mut times), processor_us })
}

/// The seconds of a statement; `None` if the engine refuses one of this size.
fn statement(db: &Database, name: &str, sql: &str) -> Outcome<Option<f64>> {
    let mut answer = None;
    phase(db, name, || {
        let started = Instant::now();
        match block_on(db.session().execute(sql, &[])) {
            Ok(_) => answer = Some(started.elapsed().as_secs_f64()),
            Err(error) if error.kind() == ErrorKind::Limit => println!("{name}: {error}"),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    })?;
    Ok(answer)
}

/// Fails unless the table has this many rows with this sum of quantities.
fn expect(db: &Database, rows: i64, quantities: i64) -> Outcome<()> {
    let found = execute(db, SCAN)?;
    let value = |column: usize| found[0].columns[column].value(0).to_string();
    if value(0) == rows.to_string() && value(1) == quantities.to_string() {
        return Ok(());
    }
    let (count, sum) = (value(0), value(1));
    Err(format!("{count} rows, quantities of {sum}; expected {rows} and {quantities}").into())
}

fn execute(db: &Database, sql: &str) -> Outcome<Vec<Batch>> {
    Ok(block_on(db.session().execute(sql, &[]))?.batches)
}

/// Runs a phase and prints its time and what the process and the parts of the database then hold.
fn phase(db: &Database, name: &str, work: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
    let ((), seconds) = timed(work)?;
    let parts: Vec<String> = db
        .memory()
        .iter()
        .map(|part| format!("{} {:.1}", part.part, part.bytes as f64 / f64::from(1 << 20)))
        .collect();
    let (now, peak) = (resident("VmRSS")?, resident("VmHWM")?);
    println!("{name:>10} {seconds:>9.2} {now:>8.0} {peak:>8.0}  {}", parts.join(", "));
    Ok(())
}

/// Resident memory of this process in megabytes: `VmRSS` now, `VmHWM` at its peak. Not a number where
/// the system does not report it.
fn resident(field: &str) -> Outcome<f64> {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else { return Ok(f64::NAN) };
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()).unwrap_or("NaN");
    Ok(kilobytes.parse::<f64>()? / 1_024.0)
}
