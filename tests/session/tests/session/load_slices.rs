//! A load on a thread that has other work: segments are written in steps, and other statements run in
//! between.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{rows, run};
use nacre_testing::{Slicing, slicing};
use nacredb::{Appender, Batch, DataType, Database, OnDuplicate, Options, Session, Value, Vector};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

/// Rows of a segment.
const SEGMENT: i64 = 40_000;
const ROWS: i64 = 100_000;
const BATCH: i64 = 2_000;

fn opened() -> (Database, Arc<Slicing>) {
    let (host, thread) = slicing(memory_host(), 1);
    let options = Options { segment_rows: SEGMENT as usize, ..Options::default() };
    (block_on(Database::open(host, options)).unwrap(), thread)
}

/// Appends rows `id`, `id * 3 % 1000`, preparing each batch. Returns how often the load gave way while
/// it wrote segments.
fn append(appender: &mut Appender, thread: &Slicing, ids: &[i64]) -> u64 {
    let mut given_way = 0;
    for ids in ids.chunks(BATCH as usize) {
        let before = thread.given_way();
        block_on(appender.prepare()).unwrap();
        given_way += thread.given_way() - before;
        let before = thread.given_way();
        appender.append(&batch(ids)).unwrap();
        assert_eq!(thread.given_way(), before, "nothing is left to write");
    }
    given_way
}

fn batch(ids: &[i64]) -> Batch {
    let column = |of: &dyn Fn(i64) -> i64| {
        let values: Vec<Value> = ids.iter().map(|id| Value::Int(of(*id))).collect();
        Arc::new(Vector::from_values(DataType::Int64, &values))
    };
    Batch::new(vec![column(&|id| id), column(&|id| id * 3 % 1000)], ids.len())
}

/// Every id once, far from ascending.
fn shuffled() -> Vec<i64> {
    (0..ROWS).map(|at| at * 7919 % ROWS).collect()
}

fn expected() -> Vec<String> {
    let sum: i64 = (0..ROWS).map(|id| id * 3 % 1000).sum();
    vec![format!("{ROWS}|{}|{sum}", ROWS * (ROWS - 1) / 2)]
}

fn sums(session: &mut Session, table: &str) -> Vec<String> {
    rows(session, &format!("select count(*), sum(id), sum(n) from {table}")).unwrap()
}

#[test]
fn segments_of_a_load_are_written_in_steps() {
    let tables = [
        ("ascending", "id bigint primary key, n bigint", (0..ROWS).collect(), OnDuplicate::Error),
        ("shuffled", "id bigint primary key, n bigint", shuffled(), OnDuplicate::Error),
        ("sorted", "id bigint primary key, n bigint, sort key (n)", shuffled(), OnDuplicate::Skip),
        ("keyless", "id bigint, n bigint, index (n)", shuffled(), OnDuplicate::Error),
        (
            "replaced",
            "id bigint primary key, n bigint, unique (n, id)",
            shuffled(),
            OnDuplicate::Replace,
        ),
    ];
    for (table, columns, ids, on_duplicate) in tables {
        let (db, thread) = opened();
        let mut session = db.session();
        run(&mut session, &format!("create table {table} ({columns})")).unwrap();
        let mut appender = block_on(session.appender(table, on_duplicate)).unwrap();
        let given_way = append(&mut appender, &thread, &ids);
        // Two segments are full before the last batch.
        assert!(given_way > 40, "{table}: the load gave way {given_way} times");
        assert_eq!(sums(&mut session, table), ["0|NULL|NULL"]);
        assert_eq!(block_on(appender.finish()).unwrap(), ROWS as u64);
        assert_eq!(sums(&mut session, table), expected(), "{table}");
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn inserts_and_updates_of_many_rows_give_way_as_often() {
    let (db, thread) = opened();
    let mut session = db.session();
    run(&mut session, "create table t (id bigint primary key, n bigint)").unwrap();
    let ids = format!("select i, i * 3 % 1000 from generate_series(0, {}) as g (i)", ROWS - 1);
    // As often as the query alone, and while segments are written.
    let before = thread.given_way();
    rows(&mut session, &format!("select count(*) from ({ids}) as q")).unwrap();
    let reading = thread.given_way() - before;
    let before = thread.given_way();
    run(&mut session, &format!("insert into t {ids}")).unwrap();
    let written = thread.given_way() - before;
    assert!(written > reading + 40, "{written} times, {reading} of them to read");
    assert_eq!(sums(&mut session, "t"), expected());
    run(&mut session, "update t set n = n + 1").unwrap();
    let sum = format!("{}", (0..ROWS).map(|id| id * 3 % 1000 + 1).sum::<i64>());
    assert_eq!(rows(&mut session, "select sum(n) from t").unwrap(), [sum]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_load_that_is_dropped_in_the_middle_of_a_segment_leaves_nothing() {
    let (host, thread) = slicing(memory_host(), 1);
    let options = Options { segment_rows: SEGMENT as usize, ..Options::default() };
    let db = block_on(Database::open(host.clone(), options)).unwrap();
    let (mut session, mut other) = (db.session(), db.session());
    run(&mut session, "create table t (id bigint primary key, n bigint)").unwrap();
    let segments = || {
        let names = host.store.list().unwrap();
        names.iter().filter(|name| name.starts_with("seg-")).count()
    };
    for polls in [1, 5, 15, 1_000] {
        let mut appender = block_on(session.appender("t", OnDuplicate::Error)).unwrap();
        append(&mut appender, &thread, &(0..SEGMENT).collect::<Vec<_>>());
        let mut is_writing = false;
        {
            let mut prepared = pin!(appender.prepare());
            for _ in 0..polls {
                let state = prepared.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(state.is_pending(), "a segment needs more steps");
                run(&mut other, &format!("insert into t values ({}, 0)", -polls)).unwrap();
                run(&mut other, &format!("delete from t where id = {}", -polls)).unwrap();
                is_writing = segments() > 0;
                if is_writing {
                    break;
                }
            }
        }
        assert!(is_writing || polls < 1_000, "no file is begun within {polls} steps");
        drop(appender);
        assert_eq!(segments(), 0, "after {polls} steps");
    }
    assert_eq!(sums(&mut session, "t"), ["0|NULL|NULL"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}
