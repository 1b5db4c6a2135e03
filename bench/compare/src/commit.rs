//! Durable single-row commits per second, with 1 and 16 clients or as many as asked for, against
//! SQLite (WAL, `synchronous=FULL`).

use crate::measure::{Folder, Outcome, check, median, open, open_sqlite};
use crate::options::Options;
use nacre_native::block_on;
use nacredb::{Database, Value};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(1);
pub const CREATE: &str = "create table t (id bigint primary key, payload text)";
const INSERT: &str = "insert into t values (?, ?)";
const PAYLOAD: &str = "a row of about a hundred bytes, as an application might write it when somebody presses a button";

pub fn run(options: &Options) -> Outcome<()> {
    let folder = Folder::new("commit")?;
    let db = open(&folder.join("nacre"), nacredb::Options::default())?;
    block_on(db.session().execute(CREATE, &[]))?;
    let sqlite = folder.join("sqlite.db");
    open_sqlite(&sqlite)?.execute(CREATE, [])?;
    let next = AtomicI64::new(0);
    println!("durable single-row commits a second, {ROUNDS} interleaved rounds of {ROUND:?}");
    let mut ratios = Vec::new();
    let clients = match options.get("clients", 0)? {
        0 => vec![1, 16],
        clients => vec![clients],
    };
    for clients in &clients {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(rate(*clients, || nacre_writer(&db), &next)?);
            theirs.push(rate(*clients, || sqlite_writer(&sqlite), &next)?);
        }
        let (ours, theirs) = (median(&mut ours), median(&mut theirs));
        println!(
            "{clients:>2} clients: nacre {ours:>8.0}/s   sqlite {theirs:>8.0}/s   ratio {:.2}",
            ours / theirs
        );
        ratios.push(ours / theirs);
    }
    check(&db)?;
    let figures: Vec<String> = clients
        .iter()
        .zip(&ratios)
        .map(|(clients, ratio)| format!("ratio{clients}={ratio:.2}"))
        .collect();
    println!("commit: {}", figures.join(" "));
    Ok(())
}

/// A client of Nacre.
pub fn nacre_writer(db: &Database) -> Outcome<impl FnMut(i64) -> Outcome<()>> {
    let mut session = db.session();
    let insert = session.prepare(INSERT)?;
    Ok(move |id: i64| {
        block_on(session.run(&insert, &[Value::Int(id), Value::Text(PAYLOAD.into())]))?;
        Ok(())
    })
}

fn sqlite_writer(path: &Path) -> Outcome<impl FnMut(i64) -> Outcome<()>> {
    let connection = open_sqlite(path)?;
    Ok(move |id: i64| {
        connection.prepare_cached(INSERT)?.execute(rusqlite::params![id, PAYLOAD])?;
        Ok(())
    })
}

/// Returns the commits per second of all clients together, each a thread with its own connection.
pub fn rate<W: FnMut(i64) -> Outcome<()>>(
    clients: usize,
    connect: impl Fn() -> Outcome<W> + Sync,
    next: &AtomicI64,
) -> Outcome<f64> {
    let done = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| -> Outcome<()> {
                    let mut write = connect()?;
                    while started.elapsed() < ROUND {
                        write(next.fetch_add(1, Ordering::Relaxed))?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|t| t.join().unwrap_or_else(|_| Err("a client ended early".into())))
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
