//! Prepared select of a full row by primary key, with rows in segments and caches warm, against
//! SQLite and, as the lower bound without any SQL, redb; on the same rows, with one thread and with
//! two.

use crate::measure::{Folder, Outcome, check, median, open, open_sqlite};
use crate::options::Options;
use crate::people::{self, person};
use nacre_native::block_on;
use nacre_testing::Random;
use nacredb::{Database, OnDuplicate, Value};
use redb::{ReadableDatabase, TableDefinition};
use std::path::Path;
use std::time::Instant;

const READS: usize = 20_000;
const SELECT: &str = "select * from t where id = ?";
const REDB: TableDefinition<u64, &[u8]> = TableDefinition::new("t");

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 10_000_000)?;
    let rounds: usize = options.get("rounds", 7)?;
    let folder = Folder::new("point-select")?;
    println!("loading {rows} rows into Nacre, SQLite and redb");
    // Larger than the table, so that it is in memory in every engine once it is warm.
    let settings = nacredb::Options { cache_bytes: 4 << 30, ..nacredb::Options::default() };
    let db = open(&folder.join("nacre"), settings)?;
    let sqlite = folder.join("sqlite.db");
    let redb = redb::Builder::new().set_cache_size(4 << 30).create(folder.join("redb"))?;
    fill(&db, &sqlite, &redb, rows)?;
    check(&db)?;

    let mut figures = Vec::new();
    for threads in [1, 2] {
        let mut rates: [Vec<f64>; 3] = Default::default();
        for round in 0..=rounds {
            let seed = (round * 1_000) as u64;
            let ours = rate(threads, seed, rows, || reader_nacre(&db))?;
            let theirs = rate(threads, seed, rows, || reader_sqlite(&sqlite))?;
            let floor = rate(threads, seed, rows, || reader_redb(&redb))?;
            // The first round warms up.
            if round > 0 {
                rates
                    .iter_mut()
                    .zip([ours, theirs, floor])
                    .for_each(|(rates, rate)| rates.push(rate));
            }
        }
        let [ours, theirs, floor] = rates.map(|mut rates| median(&mut rates));
        println!(
            "{threads} threads: nacre {ours:>9.0}/s   sqlite {theirs:>9.0}/s   redb {floor:>9.0}/s"
        );
        figures.push((ours / theirs, ours / floor));
    }
    let [(sqlite1, redb1), (sqlite2, redb2)] = figures[..] else {
        return Err("not all was measured".into());
    };
    println!(
        "point-select: ratio_sqlite={sqlite1:.2} ratio_redb={redb1:.2} ratio_sqlite2={sqlite2:.2} ratio_redb2={redb2:.2}"
    );
    Ok(())
}

fn fill(db: &Database, sqlite: &Path, redb: &redb::Database, rows: i64) -> Outcome<()> {
    let mut session = db.session();
    block_on(session.execute(people::CREATE, &[]))?;
    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
    let types = appender.schema().types();
    for start in (0..rows).step_by(8_192) {
        appender.append(&people::batch(
            (start..(start + 8_192).min(rows)).collect::<Vec<_>>().into_iter(),
            rows,
            &types,
        ))?;
    }
    block_on(appender.finish())?;
    block_on(session.execute("optimize table t full", &[]))?;

    let mut connection = open_sqlite(sqlite)?;
    connection.execute(people::CREATE_SQLITE, [])?;
    people::insert_sqlite(&mut connection, 0..rows, rows)?;
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;

    let transaction = redb.begin_write()?;
    {
        let mut table = transaction.open_table(REDB)?;
        let mut row = Vec::new();
        for id in 0..rows {
            encode(id, rows, &mut row);
            table.insert(id as u64, row.as_slice())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Encodes the row as a program without SQL would: the fixed fields, then the two texts with their
/// lengths.
fn encode(id: i64, rows: i64, out: &mut Vec<u8>) {
    let p = person(id, rows);
    out.clear();
    out.extend_from_slice(&p.n.to_le_bytes());
    out.extend_from_slice(&p.price.to_le_bytes());
    out.extend_from_slice(&(p.name.len() as u32).to_le_bytes());
    out.extend_from_slice(p.name.as_bytes());
    out.extend_from_slice(p.note.as_bytes());
}

/// Returns the reads per second of all threads together, each with its own reader.
fn rate<R: FnMut(i64) -> Outcome<()>>(
    threads: usize,
    seed: u64,
    rows: i64,
    connect: impl Fn() -> Outcome<R> + Sync,
) -> Outcome<f64> {
    let connect = &connect;
    let elapsed: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads as u64)
            .map(|thread| {
                scope.spawn(move || -> Outcome<f64> {
                    let mut read = connect()?;
                    let mut random = Random::new(seed + thread);
                    let started = Instant::now();
                    for _ in 0..READS {
                        read(random.below(rows as u64) as i64)?;
                    }
                    Ok(started.elapsed().as_secs_f64())
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a reader ended early".into())))
            .collect::<Outcome<_>>()
    })?;
    Ok(elapsed.iter().map(|seconds| READS as f64 / seconds).sum())
}

fn reader_nacre(db: &Database) -> Outcome<impl FnMut(i64) -> Outcome<()>> {
    let mut session = db.session();
    let select = session.prepare(SELECT)?;
    Ok(move |id: i64| match session.get(&select, &[Value::Int(id)])?.as_deref() {
        Some([Value::Int(found), _, _, _, Value::Text(note)])
            if *found == id && !note.is_empty() =>
        {
            Ok(())
        }
        other => Err(format!("row {id}: {other:?}").into()),
    })
}

fn reader_sqlite(path: &Path) -> Outcome<impl FnMut(i64) -> Outcome<()>> {
    let connection = open_sqlite(path)?;
    connection.pragma_update(None, "cache_size", -4_000_000)?;
    connection.pragma_update(None, "mmap_size", 4u64 << 30)?;
    Ok(move |id: i64| {
        type Row = (i64, String, i64, f64, String);
        let mut select = connection.prepare_cached(SELECT)?;
        let row: Row = select
            .query_row([id], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))?;
        if row.0 == id && !row.4.is_empty() {
            Ok(())
        } else {
            Err(format!("row {id}: {row:?}").into())
        }
    })
}

fn reader_redb(db: &redb::Database) -> Outcome<impl FnMut(i64) -> Outcome<()>> {
    Ok(move |id: i64| {
        let transaction = db.begin_read()?;
        let found = transaction.open_table(REDB)?.get(id as u64)?;
        let row = found.as_ref().map(|row| row.value()).unwrap_or_default();
        let decoded = decode(row).ok_or_else(|| format!("row {id} is not there"))?;
        if decoded.3.ends_with(&id.to_string()) {
            Ok(())
        } else {
            Err(format!("row {id}: {decoded:?}").into())
        }
    })
}

fn decode(row: &[u8]) -> Option<(i64, f64, String, String)> {
    let (n, rest) = row.split_first_chunk()?;
    let (price, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (name, note) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some((i64::from_le_bytes(*n), f64::from_le_bytes(*price), text(name)?, text(note)?))
}
