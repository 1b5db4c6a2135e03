//! A database in a bucket behind a link of 20 ms and 100 Mbit/s: the customers of TPC-H, a query of one
//! row by key and one that groups all rows, each on an empty machine (uncached), again (cached), and on
//! an empty machine that was warmed; the row also on one that has warmed by itself after opening; with the requests,
//! waits and bytes of each. Machines that the peer is compared with do not warm by themselves: the link is for one
//! at a time. Then the rate of commits
//! with the bucket and without. `tools/bench-tier.mjs` starts the server, the link and the peer,
//! DataFusion over the same rows as Parquet in the same bucket.

use crate::counted::Counted;
use crate::measure::{Folder, Outcome, check, median, timed};
use crate::options::Options;
use crate::tpch_data;
use nacre_blobs::{BlobOptions, open_blobs};
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::host::BlobReads;
use nacredb::{Blobs, Database, OnDuplicate, Value};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Customers of TPC-H at scale 1.
const CUSTOMERS: f64 = 150_000.0;
const CREATE: &str = "create table customer (
    c_custkey int primary key, c_name varchar(25) not null, c_address varchar(40) not null,
    c_nationkey int not null, c_phone char(15) not null, c_acctbal decimal(15,2) not null,
    c_mktsegment char(10) not null, c_comment varchar(117) not null, key (c_nationkey))";
const POINT: &str = "select * from customer where c_custkey = ?";
const GROUPS: &str =
    "select c_nationkey, count(*) as total_customers, round(avg(c_acctbal), 2) as balance
    from customer group by c_nationkey order by total_customers desc, c_nationkey";
const WARM: &str = "optimize table customer warm blob cache";
/// Bytes a millisecond of the link.
const LINK: f64 = 12_500.0;
/// Points of each machine, of which the first reads the first footer.
const POINTS: usize = 10;
/// Repeated reads of what is there.
const CACHED: usize = 20;
const CLIENTS: usize = 4;

pub fn run(options: &Options) -> Outcome<()> {
    let scale = options.get("scale", 0.0)?;
    if scale > 0.0 {
        return write_tpch(scale);
    }
    let rows: u64 = options.get("rows", 15_000_000)?;
    let rounds = options.get("rounds", 3)?;
    let seconds = options.get("seconds", 3)?;
    let folder = Folder::new("tier")?;
    let size = write(&folder.join("writer"), rows)?;
    println!("{rows} rows, {:.0} MB in the bucket", size as f64 / 1e6);
    let mut peer = Peer::start()?;
    let mut found = Found::default();
    let mut random = Random::new(1);
    for round in 0..rounds {
        let at = folder.join(&format!("points-{round}"));
        points(&at, rows, &mut random, &mut peer, &mut found)?;
        std::fs::remove_dir_all(&at)?;
        let at = folder.join(&format!("groups-{round}"));
        groups(&at, &mut peer, &mut found)?;
        std::fs::remove_dir_all(&at)?;
    }
    attached(&folder.join("attached"), rows, &mut random, &mut found)?;
    warmed(&folder.join("warmed"), rows, &mut random, &mut found)?;
    let commits = commits(&folder, rounds, Duration::from_secs(seconds))?;
    println!("commits a second: {:.0} with the bucket, {:.0} without", commits.0, commits.1);
    let [open, point, again] =
        [&mut found.open, &mut found.point, &mut found.point_cached].map(Each::medians);
    let [attached, warm] = [&mut found.point_attached, &mut found.point_warm].map(Each::medians);
    let [whole, whole_again, whole_warm] =
        [&mut found.groups, &mut found.groups_cached, &mut found.groups_warm].map(Each::medians);
    let (their_point, their_groups) =
        (median(&mut found.their_point), median(&mut found.their_groups));
    println!(
        "tier: point_cold_requests={:.0} point_cold_kib={:.0} point_cold_ms={:.1} point_ratio={:.1} \
         point_attached_requests={:.0} point_attached_kib={:.0} point_attached_ms={:.1} \
         point_warm_ratio={:.2} olap_cold_ms={:.0} olap_ratio={:.1} olap_warm_ratio={:.2} \
         scan_over_link={:.2} commit_ratio={:.2} open_ms={:.0} open_requests={:.0} \
         point_over_datafusion={:.2} olap_over_datafusion={:.2}",
        point.waits,
        point.bytes / 1_024.0,
        point.ms,
        point.ms / again.ms,
        attached.waits,
        attached.bytes / 1_024.0,
        attached.ms,
        warm.ms / again.ms,
        whole.ms,
        whole.ms / whole_again.ms,
        whole_warm.ms / whole_again.ms,
        whole.bytes / whole.ms / LINK,
        commits.0 / commits.1,
        open.ms,
        open.requests,
        point.ms / their_point,
        whole.ms / their_groups,
    );
    Ok(())
}

/// What was measured of one statement, several times.
#[derive(Default)]
struct Each {
    ms: Vec<f64>,
    requests: Vec<f64>,
    waits: Vec<f64>,
    bytes: Vec<f64>,
}

struct Medians {
    ms: f64,
    requests: f64,
    waits: f64,
    bytes: f64,
}

impl Each {
    fn add(&mut self, seconds: f64, before: BlobReads, after: BlobReads) {
        self.ms.push(seconds * 1e3);
        self.requests.push((after.requests - before.requests) as f64);
        self.waits.push((after.waits - before.waits) as f64);
        self.bytes.push((after.bytes - before.bytes) as f64);
    }

    fn medians(&mut self) -> Medians {
        Medians {
            ms: median(&mut self.ms),
            requests: median(&mut self.requests),
            waits: median(&mut self.waits),
            bytes: median(&mut self.bytes),
        }
    }
}

#[derive(Default)]
struct Found {
    open: Each,
    point: Each,
    point_cached: Each,
    point_attached: Each,
    point_warm: Each,
    groups: Each,
    groups_cached: Each,
    groups_warm: Each,
    their_point: Vec<f64>,
    their_groups: Vec<f64>,
}

/// A value that `tools/bench-tier.mjs` sets.
pub(crate) fn variable(name: &str) -> Outcome<String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: use npm run bench -- tier").into())
}

/// The URL of a database in the bucket.
pub(crate) fn url_of(prefix: &str) -> Outcome<String> {
    Ok(format!("s3://{}/{prefix}", variable("NACRE_BENCH_BUCKET")?))
}

/// The blobs of a database in the bucket, behind the link or directly.
pub(crate) fn blobs_at(server: &str, prefix: &str) -> Outcome<Blobs> {
    let url = url_of(prefix)?;
    let client = BlobOptions { endpoint: Some(variable(server)?), ..BlobOptions::default() };
    Ok(Blobs::new(open_blobs(&url, &client)?))
}

/// Opens a database over blobs.
pub(crate) fn open_over(path: &Path, blobs: Blobs) -> Outcome<Database> {
    std::fs::create_dir_all(path)?;
    crate::measure::open(
        path,
        nacredb::Options { blobs: Some(blobs), ..nacredb::Options::default() },
    )
}

/// Opens a database of the bucket, behind the link or directly.
fn open(path: &Path, server: &str, prefix: &str) -> Outcome<Database> {
    open_over(path, blobs_at(server, prefix)?)
}

/// Uploads orders and line items of TPC-H, for the workload `tier-browser`.
fn write_tpch(scale: f64) -> Outcome<()> {
    let folder = Folder::new("tier-tpch")?;
    let db = open(&folder.join("writer"), "NACRE_BENCH_DIRECT", "tpch")?;
    let mut session = db.session();
    for name in ["orders", "lineitem"] {
        let table = tpch_data::table(name, scale)?;
        block_on(session.execute(table.ddl, &[]))?;
        let mut appender = block_on(session.appender(name, OnDuplicate::Error))?;
        let types = appender.schema().types();
        tpch_data::each_batch(table, &types, |batch| Ok(appender.append(batch)?))?;
        block_on(appender.finish())?;
        block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
    }
    drop(session);
    close(db)
}

/// Loads the rows, and uploads them. Returns the bytes of the folder.
fn write(path: &Path, rows: u64) -> Outcome<u64> {
    let db = open(path, "NACRE_BENCH_DIRECT", "customers")?;
    let mut session = db.session();
    block_on(session.execute(CREATE, &[]))?;
    let mut appender = block_on(session.appender("customer", OnDuplicate::Error))?;
    let types = appender.schema().types();
    let customers = tpch_data::table("customer", rows as f64 / CUSTOMERS)?;
    let loaded = tpch_data::each_batch(customers, &types, |batch| Ok(appender.append(batch)?))?;
    if loaded != rows {
        return Err(format!("--rows takes a multiple of the customers of TPC-H, not {rows}").into());
    }
    block_on(appender.finish())?;
    block_on(session.execute("optimize table customer full", &[]))?;
    check(&db)?;
    drop(session);
    block_on(db.close())?;
    drop(db);
    let bytes = crate::measure::folder_bytes(path)?;
    std::fs::remove_dir_all(path)?;
    Ok(bytes)
}

fn reads(db: &Database) -> Outcome<BlobReads> {
    Ok(db.blob_reads().ok_or("the database has no blobs")?)
}

/// Runs a query, and adds its time and requests. Returns its rows as text.
fn query(
    db: &Database,
    sql: &str,
    parameters: &[Value],
    into: &mut Each,
) -> Outcome<Vec<Vec<String>>> {
    let mut session = db.session();
    let before = reads(db)?;
    let (result, seconds) = timed(|| Ok(block_on(session.execute(sql, parameters))?))?;
    into.add(seconds, before, reads(db)?);
    let rows = result.batches.iter().flat_map(|batch| {
        (0..batch.rows).map(|row| batch.columns.iter().map(|c| c.value(row).to_string()).collect())
    });
    Ok(rows.collect())
}

/// Opens the bucket's database on an empty machine, which warms by itself or does not.
fn empty_machine(path: &Path, warms: bool, found: &mut Found) -> Outcome<Database> {
    let mut blobs = blobs_at("NACRE_BENCH_LINK", "customers")?;
    blobs.options.warms = warms;
    let counted = Counted::over(&mut blobs);
    let (db, seconds) = timed(|| open_over(path, blobs))?;
    let requests = counted.requests.load(Ordering::Relaxed);
    let after = BlobReads { requests, ..BlobReads::default() };
    found.open.add(seconds, BlobReads::default(), after);
    Ok(db)
}

/// Reads rows of an empty machine by key, and each again.
fn points(
    path: &Path,
    rows: u64,
    random: &mut Random,
    peer: &mut Peer,
    found: &mut Found,
) -> Outcome<()> {
    let db = empty_machine(path, false, found)?;
    peer.ask("open")?;
    for _ in 0..POINTS {
        let key = 1 + random.below(rows) as i64;
        let ours = query(&db, POINT, &[Value::Int(key)], &mut found.point)?;
        for _ in 0..CACHED {
            query(&db, POINT, &[Value::Int(key)], &mut found.point_cached)?;
        }
        let (theirs, ms) = peer.ask(&POINT.replace('?', &key.to_string()))?;
        found.their_point.push(ms);
        same(&ours, &theirs)?;
    }
    close(db)
}

/// Groups all rows of an empty machine, and again.
fn groups(path: &Path, peer: &mut Peer, found: &mut Found) -> Outcome<()> {
    let db = empty_machine(path, false, found)?;
    let ours = query(&db, GROUPS, &[], &mut found.groups)?;
    for _ in 0..CACHED {
        query(&db, GROUPS, &[], &mut found.groups_cached)?;
    }
    peer.ask("open")?;
    let (theirs, ms) = peer.ask(&GROUPS.replace('\n', " "))?;
    found.their_groups.push(ms);
    let counts =
        |rows: &[Vec<String>]| rows.iter().map(|row| row[..2].to_vec()).collect::<Vec<_>>();
    // They round averages of decimals otherwise.
    same(&counts(&ours), &counts(&theirs))?;
    close(db)
}

/// Reads rows of a machine that has warmed what it does by itself.
fn attached(path: &Path, rows: u64, random: &mut Random, found: &mut Found) -> Outcome<()> {
    let db = empty_machine(path, true, found)?;
    let mut warmed = 0;
    loop {
        thread::sleep(Duration::from_secs(2));
        let now = reads(&db)?.bytes_warmed;
        if now == warmed {
            break;
        }
        warmed = now;
    }
    println!("{:.1} MB warmed by themselves", warmed as f64 / 1e6);
    for _ in 0..CACHED {
        let key = Value::Int(1 + random.below(rows) as i64);
        query(&db, POINT, &[key], &mut found.point_attached)?;
    }
    close(db)
}

/// Warms an empty machine, and runs both queries for the first time.
fn warmed(path: &Path, rows: u64, random: &mut Random, found: &mut Found) -> Outcome<()> {
    let db = empty_machine(path, false, found)?;
    let mut warm_up = Each::default();
    query(&db, WARM, &[], &mut warm_up)?;
    let warm_up = warm_up.medians();
    println!(
        "warmed in {:.1} s, {:.2} of the link, by {} requests",
        warm_up.ms / 1e3,
        warm_up.bytes / warm_up.ms / LINK,
        warm_up.requests
    );
    let before = reads(&db)?.requests;
    for _ in 0..CACHED {
        let key = Value::Int(1 + random.below(rows) as i64);
        query(&db, POINT, &[key], &mut found.point_warm)?;
    }
    query(&db, GROUPS, &[], &mut found.groups_warm)?;
    if reads(&db)?.requests != before {
        return Err("a query of what was warmed made requests".into());
    }
    close(db)
}

fn close(db: Database) -> Outcome<()> {
    Ok(block_on(db.close())?)
}

fn same(ours: &[Vec<String>], theirs: &[Vec<String>]) -> Outcome<()> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("{ours:?} is not the peer's answer: {theirs:?}").into()),
    }
}

/// Durable commits of single rows a second by [`CLIENTS`] sessions, with the bucket and without, in turns.
fn commits(folder: &Folder, rounds: usize, time: Duration) -> Outcome<(f64, f64)> {
    let far = open(&folder.join("far"), "NACRE_BENCH_LINK", "commits")?;
    let near = crate::measure::open(&folder.join("near"), nacredb::Options::default())?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for db in [&far, &near] {
        block_on(db.session().execute("create table t (id bigint primary key, note text)", &[]))?;
    }
    for round in 0..rounds as u64 {
        with.push(committed(&far, round, time)?);
        without.push(committed(&near, round, time)?);
    }
    close(near)?;
    check(&far)?;
    close(far)?;
    Ok((median(&mut with), median(&mut without)))
}

fn committed(db: &Database, round: u64, time: Duration) -> Outcome<f64> {
    let (ends, count) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS as u64)
            .map(|client| {
                let (ends, count) = (&ends, &count);
                scope.spawn(move || -> Outcome<()> {
                    let mut session = db.session();
                    let mut id = ((round << 8 | client) << 40) as i64;
                    while !ends.load(Ordering::Relaxed) {
                        let row = [Value::Int(id), Value::Text("a note of some length".into())];
                        block_on(session.execute("insert into t values (?, ?)", &row))?;
                        count.fetch_add(1, Ordering::Relaxed);
                        id += 1;
                    }
                    Ok(())
                })
            })
            .collect();
        thread::sleep(time);
        ends.store(true, Ordering::Relaxed);
        clients.into_iter().try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
    })?;
    Ok(count.into_inner() as f64 / time.as_secs_f64())
}

/// DataFusion, in a process of Python.
struct Peer {
    process: Child,
    into: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Outcome<Peer> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/datafusion_peer.py");
        let mut process = Command::new(variable("NACRE_BENCH_PYTHON")?)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let into = process.stdin.take().ok_or("the peer has no input")?;
        let from = BufReader::new(process.stdout.take().ok_or("the peer has no output")?);
        Ok(Peer { process, into, from })
    }

    /// The peer's rows, and its milliseconds.
    fn ask(&mut self, line: &str) -> Outcome<(Vec<Vec<String>>, f64)> {
        writeln!(self.into, "{line}")?;
        let mut answer = String::new();
        if self.from.read_line(&mut answer)? == 0 {
            return Err("the peer has ended".into());
        }
        let (ms, rows) =
            answer.trim_end_matches('\n').split_once('\t').ok_or("the peer answers otherwise")?;
        let rows = rows.split('\x1e').filter(|row| !row.is_empty());
        let rows = rows.map(|row| row.split('\x1f').map(str::to_string).collect()).collect();
        Ok((rows, ms.parse()?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
