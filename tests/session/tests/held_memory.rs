//! Memory use, counted by the allocator: that of a stream does not grow with the result, that of a
//! database does not include data it no longer holds. The tests run one after another, alone in
//! their process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::block_on;
use nacre_session_tests::{memory, memory_host, options, rows, run};
use nacredb::{Budget, Database, ErrorKind, Options, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts allocated bytes and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: forwards every call to the system allocator and only updates counters.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller upholds the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Maximum bytes that some work allocated in addition to those in use.
fn most_during(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    work();
    MOST.load(Ordering::Relaxed) - before
}

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_stream_holds_a_few_batches() {
    let _alone = alone();
    let db = memory().unwrap();
    let mut session = db.session();
    session.set_threads(1);
    run(&mut session, "create table big (id int primary key, a bigint, b text)").unwrap();
    let numbers =
        "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < 200000)";
    let sql = format!(
        "insert into big {numbers} select i, i * 31, concat('some text of the row ', i * 7919) from n"
    );
    run(&mut session, &sql).unwrap();
    run(&mut session, "optimize table big flush").unwrap();
    let sql = "select * from big";
    // Run once first, to fill the block cache.
    let whole = most_during(|| assert_eq!(run(&mut session, sql).unwrap().rows(), 200_000));
    let streamed = most_during(|| {
        let mut rows = block_on(session.stream(sql, &[])).unwrap();
        let mut count = 0;
        while let Some(batch) = block_on(rows.next()).unwrap() {
            count += batch.rows;
        }
        assert_eq!(count, 200_000);
    });
    assert!(whole > 10_000_000, "{whole}");
    assert!(streamed < 1_000_000, "{streamed} of {whole}");
}

/// Inserts rows, reads them, flushes them to segments, and deletes them.
fn come_and_go(db: &Database, round: usize) {
    let mut s = db.session();
    let numbers =
        "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < 500)";
    let from = round * 500;
    run(
        &mut s,
        &format!("insert into t {numbers} select {from} + i, i % 50, concat('text ', i) from n"),
    )
    .unwrap();
    assert_eq!(
        rows(&mut s, "select count(*), count(distinct a), min(b) from t").unwrap(),
        ["500|50|text 0"]
    );
    assert_eq!(
        rows(&mut s, "select count(*) from t where b between 'text 10' and 'text 11'").unwrap(),
        ["12"]
    );
    assert_eq!(rows(&mut s, "select count(*) from t where a < 5").unwrap(), ["50"]);
    run(&mut s, "update t set b = concat(b, '!') where a = 3; optimize table t flush").unwrap();
    run(&mut s, "update t set a = a + 1 where a = 4; delete from t; optimize table t full")
        .unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), Vec::<String>::new());
    while db.maintain(Budget::Steps(100)).unwrap() {}
}

/// Creates, alters and drops tables while a statement stays prepared and a transaction is open.
fn tables_come_and_go(db: &Database, round: usize) {
    let (mut s, mut old) = (db.session(), db.session());
    let prepared = s.prepare("select * from t where id = ?").unwrap();
    run(&mut old, "begin; select count(*) from t").unwrap();
    let name = format!("x{}", round % 3);
    run(&mut s, &format!("create table {name} (id int primary key, a int, b text, key (a))"))
        .unwrap();
    run(&mut s, &format!("insert into {name} values (1, 2, 'three'), (4, 5, 'six')")).unwrap();
    run(&mut s, &format!("optimize table {name} flush; create view v as select * from {name}"))
        .unwrap();
    run(
        &mut s,
        &format!(
            "create unique index u on {name} (b); alter table {name} add column c int default 7"
        ),
    )
    .unwrap();
    assert_eq!(
        rows(&mut s, "select v.c from v join t on v.id = t.id").unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(rows(&mut s, &format!("select sum(c) from {name} where b > 'a'")).unwrap(), ["14"]);
    run(&mut s, "alter table t rename column a to d, rename to t2; alter table t2 rename column d to a, rename to t")
        .unwrap();
    assert_eq!(block_on(s.run(&prepared, &[Value::Int(1)])).unwrap().rows(), 0);
    run(
        &mut s,
        &format!("truncate table {name}; drop index u on {name}; drop view v; drop table {name}"),
    )
    .unwrap();
    run(&mut old, "commit").unwrap();
    while db.maintain(Budget::Steps(100)).unwrap() {}
}

#[test]
fn what_rows_took_is_free_again_when_they_are_gone() {
    let _alone = alone();
    let options = Options { snapshot_bytes: 50_000, ..options() };
    let held = |work: &dyn Fn(usize), rounds: std::ops::Range<usize>| {
        let before = NOW.load(Ordering::Relaxed);
        rounds.for_each(work);
        NOW.load(Ordering::Relaxed).saturating_sub(before)
    };
    let opened = || {
        let db = block_on(Database::open(memory_host(), options.clone())).unwrap();
        run(
            &mut db.session(),
            "create table t (id int primary key, a int, b text, key (b), key (a))",
        )
        .unwrap();
        db
    };
    let db = opened();
    let work = |round| come_and_go(&db, round);
    held(&work, 0..10);
    let more = held(&work, 10..60);
    assert!(more < 500_000, "{more} bytes of 25,000 rows stay");
    let work = |round| tables_come_and_go(&db, round);
    held(&work, 0..20);
    let more = held(&work, 20..220);
    assert!(more < 200_000, "{more} bytes of 200 tables stay");
    let work = |round| come_and_go(&opened(), round);
    let more = held(&work, 0..50);
    assert!(more < 500_000, "{more} bytes of 50 databases stay");
}
