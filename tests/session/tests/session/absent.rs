//! A database whose files lack bytes, on a host whose threads cannot block, as in a browser's
//! worker: whatever meets absent bytes awaits them. It is compared with one that has everything.

use nacre_native::block_on;
use nacre_session_tests::{Random, rows};
use nacre_testing::{Absent, lacking, unblocked, without_background};
use nacredb::host::{LocalStore, number_of_file};
use nacredb::{Budget, Database, ErrorKind, OnDuplicate, Options, Session, Value};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Small segments, hardly any cache, and hash tables as soon as keys overlap.
fn options() -> Options {
    Options {
        segment_rows: 300,
        cache_bytes: 0,
        flush_bytes: 20_000,
        merge_from: 3,
        hash_from: 1.5,
        partitions: 2,
        ..Options::default()
    }
}

fn open(seed: Option<u64>) -> (Database, Option<Arc<Absent>>) {
    let host = without_background(nacre_native::memory_host());
    let (host, files) = match seed {
        Some(seed) => {
            let (host, files) = lacking(host, seed);
            (unblocked(host), Some(files))
        }
        None => (host, None),
    };
    (block_on(Database::open(host, options())).unwrap(), files)
}

async fn execute(session: &mut Session, sql: &str) -> u64 {
    session.execute(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows_affected
}

/// Rows with keys between those of others, and a value each that no other round has.
fn values(random: &mut Random, round: u64, count: u64) -> String {
    let row = |_| {
        let id = random.below(4_000);
        format!("({id}, {}, 'r{round} of {id}')", id * 50 + round)
    };
    (0..count).map(row).collect::<Vec<_>>().join(", ")
}

/// One round of work: each returns how many rows it changed.
async fn work(db: &Database, session: &mut Session, random: &mut Random, round: u64) -> Vec<u64> {
    let mut changed = Vec::new();
    let values = values(random, round, 250);
    let low = random.below(4_000);
    changed.push(match round % 4 {
        0 => execute(session, &format!("insert ignore into t values {values}")).await,
        1 => execute(session, &format!("replace into t values {values}")).await,
        2 | 3 => {
            execute(session, "create table if not exists source (id bigint, u bigint, s text)")
                .await;
            execute(session, "delete from source").await;
            execute(session, &format!("insert into source values {values}")).await;
            let batches = session.execute("select * from source order by id", &[]).await;
            let policy = if round % 4 == 2 { OnDuplicate::Skip } else { OnDuplicate::Replace };
            let mut load = session.appender("t", policy).await.unwrap();
            for batch in batches.unwrap().batches {
                load.append(&batch).unwrap();
                load.prepare().await.unwrap();
            }
            load.finish().await.unwrap()
        }
        _ => 0,
    });
    let some = format!("where id between {low} and {}", low + 300);
    changed.push(execute(session, &format!("update t set s = concat(s, '+') {some}")).await);
    changed.push(execute(session, &format!("delete from t {some} and id % 3 = 0")).await);
    match round {
        5 => changed.push(execute(session, "create index by_s on t (s)").await),
        7 | 13 => changed.push(execute(session, "optimize table t full").await),
        _ if round.is_multiple_of(3) => {
            changed.push(execute(session, "optimize table t flush").await)
        }
        _ => {}
    }
    // As much as is due, some of it, or nothing: the next round finds it half done.
    match round % 3 {
        0 => while db.maintain_async(Budget::Steps(16)).await.unwrap() {},
        1 => drop(db.maintain_async(Budget::Steps(5)).await.unwrap()),
        _ => {}
    }
    changed
}

/// All changes, all rows, and rows read one by one.
async fn run(db: &Database, seed: u64) -> (Vec<Vec<u64>>, Vec<String>, Vec<String>) {
    let (mut session, mut random) = (db.session(), Random::new(seed));
    let create = "create table t (id bigint primary key, u bigint, s text, unique key (u))";
    execute(&mut session, create).await;
    let mut changes = Vec::new();
    for round in 0..16 {
        changes.push(work(db, &mut session, &mut random, round).await);
    }
    assert_eq!(db.check_async().await.unwrap(), Vec::<String>::new());
    let by_id = session.prepare("select s from t where id = ?").unwrap();
    let by_u = session.prepare("select s, id from t where u = ?").unwrap();
    let mut points = Vec::new();
    for id in (0..4_000).step_by(37) {
        points.push(format!("{:?}", session.get_async(&by_id, &[Value::Int(id)]).await.unwrap()));
        let key = [Value::Int(id * 50 + 1)];
        points.push(format!("{:?}", session.get_async(&by_u, &key).await.unwrap()));
    }
    let all = session.execute("select * from t order by id", &[]).await.unwrap().to_rows();
    (changes, all.iter().map(|row| format!("{row:?}")).collect(), points)
}

#[test]
fn absent_bytes_change_nothing_where_threads_cannot_block() {
    for seed in 0..4 {
        let (plain, _) = open(None);
        let expected = block_on(run(&plain, seed));
        let (db, files) = open(Some(seed));
        let found = block_on(run(&db, seed));
        assert!(expected.1.len() > 500, "{} rows", expected.1.len());
        assert_eq!(found.0, expected.0, "seed {seed}: rows changed");
        assert!(found.1 == expected.1 && found.2 == expected.2, "seed {seed}: other rows");
        let files = files.unwrap();
        assert_eq!(files.unnamed(), 0, "the store is not told that it may upload a file");
        let misses = files.misses();
        assert!(misses > 1_000, "{misses} reads met absent bytes");
    }
}

#[test]
fn what_cannot_wait_for_absent_bytes_says_so_and_can_be_awaited() {
    let (db, files) = open(Some(1));
    let mut session = db.session();
    let values: Vec<String> = (0..2_000).map(|id| format!("({id}, 'x')")).collect();
    let insert = format!("insert into t values {}", values.join(", "));
    for sql in ["create table t (id bigint primary key, s text)", &insert, "optimize table t flush"]
    {
        block_on(session.execute(sql, &[])).unwrap();
    }
    // Its files are uploaded, and absent from here on.
    block_on(session.execute("create table other (id bigint)", &[])).unwrap();
    let by_id = session.prepare("select s from t where id = ?").unwrap();
    let key = [Value::Int(7)];
    let before = files.as_ref().unwrap().misses();
    assert_eq!(session.get(&by_id, &key).unwrap_err().kind(), ErrorKind::Io);
    let row = block_on(session.get_async(&by_id, &key)).unwrap();
    assert_eq!(row, Some(vec![Value::Text("x".into())]));
    assert_eq!(db.check().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(block_on(db.check_async()).unwrap(), Vec::<String>::new());
    assert!(files.unwrap().misses() > before + 10);
    assert_eq!(rows(&mut session, "select count(*) from t").unwrap(), ["2000"]);
}

/// The greatest number that a segment has had.
fn newest_segment(files: &Absent) -> u64 {
    let numbers = files.list().unwrap();
    numbers.iter().filter_map(|name| number_of_file("seg-", name)).max().unwrap()
}

#[test]
fn a_large_statement_goes_on_where_it_met_absent_bytes() {
    let host = without_background(nacre_native::memory_host());
    let (host, files) = lacking(host, 3);
    let small = Options { bulk_rows: 500, merge_from: 100, flush_bytes: 1 << 30, ..options() };
    let db = block_on(Database::open(unblocked(host), small)).unwrap();
    let mut session = db.session();
    let values: Vec<String> = (0..20_000).map(|id| format!("({id}, 0)")).collect();
    // Without a key, rows are numbered, and their numbers are read from the segments.
    for table in ["keyed (id bigint primary key, n bigint)", "numbered (id bigint, n bigint)"] {
        let name = table.split(' ').next().unwrap();
        for sql in [
            format!("create table {table}"),
            format!("insert into {name} values {}", values.join(", ")),
            format!("optimize table {name} flush"),
            "create table other (id bigint)".to_string(),
            "drop table other".to_string(),
        ] {
            block_on(session.execute(&sql, &[])).unwrap();
        }
        files.upload();
        // Everything is absent at first, and nothing is evicted.
        files.deny(100, 0);
        let (before, misses) = (newest_segment(&files), files.misses());
        assert_eq!(block_on(execute(&mut session, &format!("update {name} set n = id"))), 20_000);
        // Each row is written once.
        let written = newest_segment(&files) - before;
        assert!((66..=70).contains(&written), "{written} segments of 300 rows");
        let misses = files.misses() - misses;
        assert!(misses > 60, "{misses} reads met absent bytes");
        let sums = rows(&mut session, &format!("select count(*), sum(n) from {name}")).unwrap();
        assert_eq!(sums, ["20000|199990000"]);
    }
}

/// A point read of a view that is polled `polls` times before another session drops the view and then empties the
/// table: the number of rows that it finds, if it still finds the view, and whether it had ended by then.
fn found_beside_a_drop(polls: usize) -> (Option<usize>, bool) {
    let (db, files) = open(Some(5));
    let (mut a, mut b) = (db.session(), db.session());
    let values: Vec<String> = (0..3_000).map(|id| format!("({id}, 's{id}')")).collect();
    for sql in [
        "create table t (id bigint primary key, s varchar(20))",
        &format!("insert into t values {}", values.join(", ")),
        "optimize table t flush",
        "create view v as select * from t",
        "create table other (id bigint)",
    ] {
        block_on(execute(&mut a, sql));
    }
    files.as_ref().unwrap().upload();
    // Everything is absent at first, and nothing is evicted.
    files.unwrap().deny(100, 0);
    let mut query = Box::pin(a.execute("select s from v where id = 7", &[]));
    let mut context = Context::from_waker(Waker::noop());
    let mut ended = None;
    for _ in 0..polls {
        if let Poll::Ready(done) = query.as_mut().poll(&mut context) {
            ended = Some(done);
            break;
        }
    }
    let had_ended = ended.is_some();
    for sql in ["drop view v", "delete from t"] {
        block_on(execute(&mut b, sql));
    }
    let found = match ended.unwrap_or_else(|| block_on(query)) {
        Ok(found) => Some(found.to_rows().len()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            None
        }
    };
    (found, had_ended)
}

/// The row went after the view.
#[test]
fn a_view_that_is_dropped_while_bytes_are_awaited_is_not_read_with_later_rows() {
    for polls in 0..200 {
        let (found, had_ended) = found_beside_a_drop(polls);
        if had_ended {
            assert_eq!(found, Some(1));
            assert!(polls > 1, "the query never waited");
            return;
        }
        assert!(matches!(found, None | Some(1)), "{found:?} rows after {polls} polls");
    }
    panic!("the query does not end");
}

/// Statements of two sessions, `a` and `b`, around a table whose rows are all absent.
fn in_turns(statements: &[(char, &str)]) -> (Vec<Option<ErrorKind>>, Vec<String>) {
    let (db, files) = open(Some(5));
    let (mut a, mut b) = (db.session(), db.session());
    let values: Vec<String> = (0..3_000).map(|id| format!("({id}, {id}, 's{id}')")).collect();
    let create = "create table t (id bigint primary key, u bigint, s varchar(20))";
    for sql in [create, &format!("insert into t values {}", values.join(", "))] {
        block_on(execute(&mut a, sql));
    }
    let mut ends = Vec::new();
    for (session, sql) in statements {
        files.as_ref().unwrap().upload();
        let session = if *session == 'a' { &mut a } else { &mut b };
        ends.push(block_on(session.execute(sql, &[])).err().map(|error| error.kind()));
    }
    assert_eq!(block_on(db.check_async()).unwrap(), Vec::<String>::new());
    (ends, rows(&mut b, "select count(*), sum(u) from t").unwrap())
}

#[test]
fn a_transaction_that_alters_a_table_verifies_absent_rows_of_others() {
    let begins = [('a', "begin"), ('a', "create unique index by_u on t (u)")];
    let more = "insert into t select id + 10000, u + 10000, s from t";
    let flushed = [('b', more), ('b', "optimize table t flush")];
    let all =
        |rest: &[(char, &'static str)]| [&begins[..], &flushed, rest, &[('a', "commit")]].concat();
    let (ends, sums) = in_turns(&all(&[]));
    assert_eq!((ends, &*sums[0]), (vec![None; 5], "6000|38997000"));
    // What it has altered is another table by now.
    let (ends, _) = in_turns(&all(&[('b', "create unique index by_s on t (id, s)")]));
    assert_eq!(ends.last().unwrap(), &Some(ErrorKind::Conflict));
    // A row that breaks its rule.
    let (ends, _) = in_turns(&all(&[
        ('b', "insert into t values (-1, 7, '')"),
        ('b', "optimize table t flush"),
    ]));
    assert_eq!(ends.last().unwrap(), &Some(ErrorKind::Constraint));
}
