//! One memory budget for a database: its shares, what holds them, and what happens beyond.

use nacre_native::{block_on, memory_host, open_folder};
use nacre_session_tests::{Folder, kind, rows, run};
use nacre_testing::with_refused_background;
use nacredb::{Budget, Database, ErrorKind, Options, Rows, Session};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn open(memory_bytes: usize) -> Database {
    let options = Options { memory_bytes, lock_timeout_ms: 100, ..Options::default() };
    block_on(Database::open(memory_host(), options)).unwrap()
}

fn on_disk(path: &Path, memory_bytes: usize) -> Database {
    let options = Options { memory_bytes, ..Options::default() };
    block_on(Database::open(open_folder(path).unwrap(), options)).unwrap()
}

/// Bytes that a part holds.
fn bytes(db: &Database, name: &str) -> u64 {
    db.memory().into_iter().find(|part| part.part == name).unwrap().bytes
}

const NUMBERS: &str =
    "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < 20000)";

fn fill(session: &mut Session) {
    run(session, "create table t (id int primary key, b text)").unwrap();
    let sql = format!("insert into t {NUMBERS} select i, concat('text ', i * 7919) from n");
    run(session, &sql).unwrap();
}

#[test]
fn each_part_has_a_share() {
    let db = open(64 << 20);
    let mut session = db.session();
    let all = "select part, limit_bytes from information_schema.memory order by part";
    assert_eq!(
        rows(&mut session, all).unwrap(),
        [
            "bitmap cache|524288",
            "block cache|8388608",
            "delete bitmaps|NULL",
            "directories|NULL",
            "metadata|7864320",
            "rowstore|16777216",
            "statements|33554432",
        ]
    );
    let sum = "select sum(limit_bytes) from information_schema.memory";
    assert_eq!(rows(&mut session, sum).unwrap(), [(64 << 20).to_string()]);
    let held = |session: &mut Session| {
        rows(session, "select part from information_schema.memory where bytes > 0 order by part")
            .unwrap()
    };
    assert_eq!(held(&mut session), Vec::<String>::new());
    run(&mut session, "create table r (id int primary key); insert into r values (1), (2)")
        .unwrap();
    assert_eq!(held(&mut session), ["rowstore"]);
    run(&mut session, "optimize table r flush; select * from r where id = 1").unwrap();
    assert_eq!(held(&mut session), ["block cache", "directories", "metadata"]);
    run(&mut session, "delete from r where id = 1").unwrap();
    assert!(held(&mut session).contains(&"delete bitmaps".into()));
}

/// Hits and misses of the block cache.
fn found(session: &mut Session) -> (u64, u64) {
    let sql = "select hits, misses from information_schema.memory where part = 'block cache'";
    let rows = rows(session, sql).unwrap();
    let (hits, misses) = rows[0].split_once('|').unwrap();
    (hits.parse().unwrap(), misses.parse().unwrap())
}

#[test]
fn what_is_read_again_is_found_in_the_cache() {
    let db = open(64 << 20);
    let mut session = db.session();
    fill(&mut session);
    assert_eq!(found(&mut session), (0, 0), "nothing is in segments");
    run(&mut session, "optimize table t flush").unwrap();
    let read = "select b from t where id = 4711";
    let before = found(&mut session);
    run(&mut session, read).unwrap();
    let first = found(&mut session);
    assert!(first.1 > before.1, "the blocks of the row are read: {before:?} {first:?}");
    for _ in 0..100 {
        run(&mut session, read).unwrap();
    }
    let again = found(&mut session);
    assert_eq!(again.1, first.1, "nothing is read twice");
    assert!(again.0 >= first.0 + 100, "{first:?} {again:?}");
    let others = "select count(*) from information_schema.memory
        where part <> 'block cache' and (hits is not null or misses is not null)";
    assert_eq!(rows(&mut session, others).unwrap(), ["0"]);
}

#[test]
fn statements_of_all_sessions_share_one_pool() {
    let place = Folder::new("pool");
    let db = on_disk(place.path(), 8 << 20);
    let mut session = db.session();
    fill(&mut session);
    session.set_threads(1);
    let sql = "select count(*), min(b) from (select b, id from t order by b, id limit 19000) as s";
    let alone = run(&mut session, sql).unwrap();
    assert_eq!(alone.statistics.bytes_spilled, 0);
    // A stream keeps the rows it sorts until it has returned them.
    let stream = sorted(&db);
    let held = bytes(&db, "statements");
    assert!(held > 400_000, "{held}");
    let beside: Vec<_> = (0..8).map(|_| sorted(&db)).collect();
    let crowded = run(&mut session, sql).unwrap();
    assert!(crowded.statistics.bytes_spilled > 100_000, "{}", crowded.statistics.bytes_spilled);
    assert_eq!(crowded.to_rows(), alone.to_rows());
    drop((stream, beside));
    assert_eq!(bytes(&db, "statements"), 0);
    assert_eq!(run(&mut session, sql).unwrap().statistics.bytes_spilled, 0);
}

/// A stream that holds rows, and its session.
fn sorted(db: &Database) -> (Session, Rows) {
    let mut session = db.session();
    session.set_threads(1);
    let mut stream = block_on(session.stream("select b from t order by b", &[])).unwrap();
    block_on(stream.next()).unwrap().unwrap();
    (session, stream)
}

#[test]
fn rows_that_cannot_be_flushed_end_in_a_limit() {
    let db = open(4 << 20);
    let (mut open, mut other) = (db.session(), db.session());
    run(&mut open, "create table t (id int primary key, b text); begin").unwrap();
    let mut id = 0;
    let refused = loop {
        let values: Vec<String> = (id..id + 100).map(|id| format!("({id}, 'row {id}')")).collect();
        match run(&mut open, &format!("insert into t values {}", values.join(", "))) {
            Ok(_) => id += 100,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert!(refused.message().starts_with("rowstore: "), "{}", refused.message());
    assert!(bytes(&db, "rowstore") >= 1 << 20);
    assert_eq!(kind(&mut other, "insert into t values (-1, 'x')"), Some(ErrorKind::Limit));
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["0"], "readers go on");
    assert_eq!(rows(&mut open, "select count(*) from t").unwrap(), [id.to_string()]);
    run(&mut open, "commit").unwrap();
    run(&mut other, "insert into t values (-1, 'x')").unwrap();
    while db.maintain(Budget::Steps(1_000)).unwrap() {}
    assert!(bytes(&db, "rowstore") < 1 << 20);
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), [(id + 1).to_string()]);
}

#[test]
// Writers are threads.
#[allow(clippy::disallowed_methods)]
fn many_writers_stay_below_the_limit_of_the_rowstores() {
    let db = open(16 << 20);
    run(&mut db.session(), "create table t (id int primary key, b text)").unwrap();
    let insert = |session: &mut Session, from: i64| {
        let values: Vec<String> =
            (from..from + 300).map(|id| format!("({id}, '{}')", "long text ".repeat(10))).collect();
        run(session, &format!("insert into t values {}", values.join(", "))).unwrap();
    };
    insert(&mut db.session(), -300);
    let of_statement = bytes(&db, "rowstore");
    let (most, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    let mut session = db.session();
                    for step in 0..60 {
                        let from = (step * 4 + writer) * 300;
                        insert(&mut session, from);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                most.fetch_max(bytes(&db, "rowstore"), Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        let joined: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        ended.store(true, Ordering::Relaxed);
        joined.into_iter().for_each(|writer| writer.unwrap());
    });
    let most = most.into_inner();
    // Each writer may add the rows of one statement after it was admitted.
    assert!(most > 1 << 18 && most <= (4 << 20) + 4 * of_statement, "{most}");
    assert_eq!(rows(&mut db.session(), "select count(*) from t").unwrap(), ["72300"]);
}

#[test]
fn metadata_without_room_is_read_for_each_use() {
    let place = Folder::new("metadata");
    let db = on_disk(place.path(), 64 << 20);
    let mut session = db.session();
    fill(&mut session);
    run(&mut session, "optimize table t flush").unwrap();
    let metadata = bytes(&db, "metadata");
    assert!(metadata > 1_000, "{metadata}");
    block_on(db.close()).unwrap();
    drop((session, db));
    let options = Options { metadata_bytes: 1_000, ..Options::default() };
    let db = block_on(Database::open(open_folder(place.path()).unwrap(), options)).unwrap();
    assert_eq!(bytes(&db, "metadata"), 0, "opening reads no footer");
    for _ in 0..2 {
        let mut session = db.session();
        assert_eq!(rows(&mut session, "select count(*), min(b) from t").unwrap().len(), 1);
        assert_eq!(rows(&mut session, "select id from t where id = 777").unwrap(), ["777"]);
        // The footer that was used last stays.
        assert!(bytes(&db, "metadata") <= metadata, "{}", bytes(&db, "metadata"));
    }
}

#[test]
// A wait has no other sign than the time; it can only be longer.
#[allow(clippy::disallowed_methods)]
fn a_session_that_writes_much_is_slowed_down_while_rows_cannot_be_flushed() {
    let db = open(16 << 20);
    let (mut open, mut other) = (db.session(), db.session());
    run(&mut open, "create table t (id int primary key, b text); begin").unwrap();
    let insert = |session: &mut Session, from: usize| {
        let values: Vec<String> =
            (from..from + 300).map(|id| format!("({id}, '{}')", "long text ".repeat(10))).collect();
        run(session, &format!("insert into t values {}", values.join(", "))).unwrap();
    };
    let mut id = 0;
    // Between the soft limit of 1 MiB and the limit of 4 MiB.
    while bytes(&db, "rowstore") < 3 << 20 {
        insert(&mut open, id);
        id += 300;
    }
    insert(&mut other, id);
    let before = std::time::Instant::now();
    insert(&mut other, id + 300);
    // Two thirds of the way, squared, of 50 ms.
    assert!(before.elapsed().as_millis() >= 20, "{:?}", before.elapsed());
    run(&mut open, "rollback").unwrap();
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["600"]);
}

#[test]
fn writes_go_on_where_the_system_refuses_a_background_thread() {
    let options = Options { memory_bytes: 8 << 20, ..Options::default() };
    let host = with_refused_background(memory_host());
    let db = block_on(Database::open(host, options)).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, b text)").unwrap();
    // Five times what the rowstores may hold.
    for round in 0..20 {
        let sql = format!(
            "insert into t {NUMBERS} select i * 20 + {round}, 'some more text' from n \
             where i < 5000"
        );
        run(&mut session, &sql).unwrap();
    }
    assert_eq!(rows(&mut session, "select count(*) from t").unwrap(), ["100000"]);
    let segments = "select count(*) from t where id < 0";
    assert!(run(&mut session, segments).unwrap().statistics.segments_skipped > 0);
    assert!(bytes(&db, "rowstore") < 2 << 20, "{}", bytes(&db, "rowstore"));
}
