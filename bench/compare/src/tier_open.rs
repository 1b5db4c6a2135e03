//! How long it takes to open a database in a bucket on an empty machine, up to its first row, by how large it is:
//! seconds and requests of a large one, and of one of a tenth; and how long it takes to make a branch of each.
//! `tools/bench-tier-open.mjs` starts the server and the link. Rows have bytes that nothing compresses; the writer's
//! disk is limited, so that only the bucket has them all.

use crate::counted::Counted;
use crate::measure::{Folder, Outcome, median, timed};
use crate::options::Options;
use crate::tier::{blobs_at, open_over, url_of};
use nacre_native::{block_on, memory_host};
use nacre_testing::Random;
use nacredb::{Batch, OnDuplicate, Value, Vector};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const CREATE: &str =
    "create table event (id bigint primary key, kind int not null, body blob not null, key (kind))";
const BODY_BYTES: usize = 2_000;
const BATCH_ROWS: u64 = 8_192;
/// Bytes of the writer's disk.
const DISK_LIMIT: u64 = 1 << 30;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: u64 = options.get("rows", 2_500_000)?;
    let rounds: usize = options.get("rounds", 5)?;
    let folder = Folder::new("tier-open")?;
    let (mut opened, mut branched) = (Vec::new(), Vec::new());
    for (name, rows) in [("tenth", rows / 10), ("large", rows)] {
        let (bytes, seconds) = timed(|| write(&folder.join("writer"), name, rows))?;
        std::fs::remove_dir_all(folder.join("writer"))?;
        println!("{name}: {rows} rows, {:.2} GB, in {seconds:.0} s", bytes as f64 / 1e9);
        opened.push((name, rows, Vec::new(), 0, 0));
        branched.push(branch(&folder.join("branch"), name)?);
    }
    let mut random = Random::new(1);
    for round in 0..rounds {
        for (name, rows, times, requests, received) in &mut opened {
            let at = folder.join(&format!("{name}-{round}"));
            let (asked, bytes, seconds) = first_row(&at, name, random.below(*rows) as i64)?;
            times.push(seconds);
            (*requests, *received) = (asked, bytes);
            std::fs::remove_dir_all(&at)?;
        }
    }
    let [tenth, large] = &mut opened[..] else { return Err("two databases were written".into()) };
    let (small_s, large_s) = (median(&mut tenth.2), median(&mut large.2));
    println!(
        "tier-open: gb={:.1} first_row_s={large_s:.3} requests={} kib={} tenth_s={small_s:.3} \
         tenth_requests={} tenth_kib={} ratio={:.2} branch_s={:.3} tenth_branch_s={:.3}",
        (rows * BODY_BYTES as u64) as f64 / 1e9,
        large.3,
        large.4 / 1_024,
        tenth.3,
        tenth.4 / 1_024,
        large_s / small_s,
        branched[1],
        branched[0]
    );
    Ok(())
}

/// Uploads a database. Returns its bytes.
fn write(path: &Path, prefix: &str, rows: u64) -> Outcome<u64> {
    let mut blobs = blobs_at("NACRE_BENCH_DIRECT", prefix)?;
    blobs.options.disk_limit = DISK_LIMIT;
    blobs.options.unsent_limit = DISK_LIMIT;
    blobs.options.warms = false;
    let store = blobs.store.clone();
    let db = open_over(path, blobs)?;
    let mut session = db.session();
    block_on(session.execute(CREATE, &[]))?;
    let mut random = Random::new(7);
    let mut from = 0;
    while from < rows {
        // A load each, which is uploaded before the next one begins.
        let to = rows.min(from + 16 * BATCH_ROWS);
        let mut appender = block_on(session.appender("event", OnDuplicate::Error))?;
        let types = appender.schema().types();
        while from < to {
            let ids = from..to.min(from + BATCH_ROWS);
            from = ids.end;
            let rows = (ids.end - ids.start) as usize;
            let id = ids.clone().map(|id| Value::Int(id as i64)).collect::<Vec<_>>();
            let kind = ids.map(|id| Value::Int((id % 1_000) as i64)).collect::<Vec<_>>();
            let body = (0..rows).map(|_| body(&mut random)).collect::<Vec<_>>();
            let columns = [id, kind, body];
            let columns = columns.iter().zip(&types);
            let columns = columns.map(|(values, t)| Arc::new(Vector::from_values(*t, values)));
            appender.append(&Batch::new(columns.collect(), rows))?;
        }
        block_on(appender.finish())?;
        block_on(db.upload())?;
    }
    drop(session);
    block_on(db.close())?;
    let listed = block_on(store.list(""))?;
    Ok(listed.iter().map(|info| info.len).sum())
}

fn body(random: &mut Random) -> Value {
    let words = (0..BODY_BYTES / 8).map(|_| random.bits().to_le_bytes());
    Value::Binary(words.flatten().collect())
}

/// Makes a branch of a database behind the link, and reads a row of it. Returns the seconds of making it.
fn branch(path: &Path, prefix: &str) -> Outcome<f64> {
    let name = format!("{prefix}-branch");
    let (from, to) = (url_of(prefix)?, url_of(&name)?);
    let (origin, place) =
        (blobs_at("NACRE_BENCH_LINK", prefix)?, blobs_at("NACRE_BENCH_LINK", &name)?);
    let (_, seconds) =
        timed(|| Ok(block_on(origin.branch(&memory_host(), &from, (&place, &to), None))?))?;
    first_row(path, &name, 0)?;
    std::fs::remove_dir_all(path)?;
    Ok(seconds)
}

/// Opens a database on an empty machine behind the link, and reads a row. Returns requests, bytes and seconds.
fn first_row(path: &Path, prefix: &str, id: i64) -> Outcome<(u64, u64, f64)> {
    let mut blobs = blobs_at("NACRE_BENCH_LINK", prefix)?;
    let counted = Counted::over(&mut blobs);
    let (db, seconds) = timed(|| {
        let db = open_over(path, blobs)?;
        let sql = "select length(body) from event where id = ?";
        let found = block_on(db.session().execute(sql, &[Value::Int(id)]))?;
        match found.batches.iter().map(|batch| batch.rows).sum::<usize>() {
            1 => Ok(db),
            rows => Err(format!("{rows} rows have the id {id}").into()),
        }
    })?;
    let requests = counted.requests.load(Ordering::Relaxed);
    let bytes = counted.bytes.load(Ordering::Relaxed);
    block_on(db.close())?;
    Ok((requests, bytes, seconds))
}
