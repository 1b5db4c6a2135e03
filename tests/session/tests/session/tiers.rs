//! Databases whose files are blobs, on threads: with a small disk, on another machine, and two writers.

use nacre_native::{NativeClock, block_on, memory_host, open_folder};
use nacre_session_tests::{Folder, kind, rows, run};
use nacre_testing::{FaultBlobs, MemoryBlobs};
use nacredb::{
    Batch, Blobs, DataType, Database, ErrorKind, OnDuplicate, Options, TierOptions, Value,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Rows of the table.
const ROWS: u64 = 30_000;

fn store() -> (Arc<MemoryBlobs>, Arc<FaultBlobs>) {
    let clock = Arc::new(NativeClock::new());
    let blobs = MemoryBlobs::new(clock.clone());
    (blobs.clone(), FaultBlobs::new(blobs, clock, 7))
}

fn options(blobs: Blobs) -> Options {
    Options {
        segment_rows: 2_000,
        cache_bytes: 0,
        metadata_bytes: 0,
        snapshot_bytes: 200_000,
        flush_bytes: 100_000,
        blobs: Some(blobs),
        ..Options::default()
    }
}

/// Bytes of the files of a folder that the limit of the disk is about.
fn held(folder: &Folder) -> u64 {
    let files = ["seg-", "idx-", "hsh-", "blocks"].iter().flat_map(|kind| folder.files(kind));
    files.map(|path| path.metadata().map_or(0, |metadata| metadata.len())).sum()
}

const QUERIES: [&str; 4] = [
    "select count(*), sum(id), sum(n) from t",
    "select n % 10 as g, count(*) from t group by g order by g",
    "select id, n, s from t where id in (5, 999, 15000, 29999) order by id",
    "select count(*), min(id) from t where n = 77",
];

/// Settings that upload without waiting for more.
fn at_once() -> TierOptions {
    TierOptions { lag: Duration::ZERO, ..TierOptions::default() }
}

#[test]
fn a_table_may_be_twenty_times_larger_than_the_disk() {
    let (memory, blobs) = store();
    let (folder, limit) = (Folder::new("tiers"), 20_000);
    let tiers = TierOptions { disk_limit: limit, block_bytes: 1_024, ..at_once() };
    let options = options(Blobs { options: tiers, ..Blobs::new(blobs) });
    let open = || block_on(Database::open(open_folder(folder.path()).unwrap(), options.clone()));
    let mut expected = Vec::new();
    {
        let db = open().unwrap();
        let mut session = db.session();
        run(&mut session, "create table t (id int primary key, n int, s text, key (n))").unwrap();
        for first in (0..ROWS).step_by(2_000) {
            let values: Vec<String> = (first..first + 2_000)
                .map(|id| {
                    format!("({id}, {}, '{:x}{:x}')", id % 500, id * id * 7919, id ^ 0x5a5a5a)
                })
                .collect();
            run(&mut session, &format!("insert into t values {}", values.join(", "))).unwrap();
        }
        run(&mut session, "optimize table t full").unwrap();
        for query in QUERIES {
            expected.push(rows(&mut session, query).unwrap());
        }
        assert_eq!(expected[0], [format!("{ROWS}|{}|7485000", ROWS * (ROWS - 1) / 2)]);
        // Files that background work writes meanwhile come on top, until they are uploaded, too.
        let until = Instant::now() + Duration::from_secs(60);
        while {
            block_on(db.upload()).unwrap();
            held(&folder) > limit || db.uploaded_position() != Some(db.log_position())
        } {
            assert!(Instant::now() < until, "{} bytes are local", held(&folder));
        }
        for (query, expected) in QUERIES.iter().zip(&expected) {
            assert_eq!(rows(&mut session, query).unwrap(), *expected, "{query}");
        }
        assert_eq!(block_on(db.check_async()).unwrap(), Vec::<String>::new());
        run(&mut session, "update t set n = n + 1 where id % 1000 = 5").unwrap();
        run(&mut session, "update t set n = n - 1 where id % 1000 = 5").unwrap();
        block_on(db.close()).unwrap();
    }
    let stored: usize =
        memory.names().iter().filter_map(|name| memory.get(name)).map(|b| b.len()).sum();
    assert!(stored as u64 > 20 * limit, "{stored} bytes are blobs");
    // The disk of before, an empty one, and a reader.
    let elsewhere = || block_on(Database::open(memory_host(), options.clone()));
    let reader = Options { read_only: true, ..options.clone() };
    let reading = || block_on(Database::open(memory_host(), reader.clone()));
    let opens: [(&str, &dyn Fn() -> nacredb::Result<Database>); 3] =
        [("again", &open), ("a reader", &reading), ("elsewhere", &elsewhere)];
    for (what, open) in opens {
        let db = open().unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut session = db.session();
        for (query, expected) in QUERIES.iter().zip(&expected) {
            assert_eq!(rows(&mut session, query).unwrap(), *expected, "{what}: {query}");
        }
        if what == "a reader" {
            assert_eq!(kind(&mut session, "delete from t"), Some(ErrorKind::Unsupported));
        }
        block_on(db.close()).unwrap();
    }
    // Its folder has been overtaken.
    assert_eq!(open().err().unwrap().kind(), ErrorKind::InUse);
}

#[test]
fn the_older_of_two_writers_stops() {
    let (_, blobs) = store();
    let options = options(Blobs { options: at_once(), ..Blobs::new(blobs) });
    let first = block_on(Database::open(memory_host(), options.clone())).unwrap();
    let mut session = first.session();
    run(&mut session, "create table t (id int primary key)").unwrap();
    block_on(first.upload()).unwrap();
    let second = block_on(Database::open(memory_host(), options)).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    let mut id = 0;
    let error = loop {
        id += 1;
        match run(&mut session, &format!("insert into t values ({id})")) {
            Ok(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Ok(_) => panic!("the older writer goes on"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
    assert!(error.message().contains("fenced"), "{error}");
    assert_eq!(kind(&mut session, "insert into t values (0)"), Some(ErrorKind::InUse));
    assert_eq!(rows(&mut session, "select count(*) from t where id < 1").unwrap(), ["0"]);
    let mut session = second.session();
    run(&mut session, "insert into t values (7)").unwrap();
    assert_eq!(rows(&mut session, "select * from t").unwrap(), ["7"]);
    block_on(second.close()).unwrap();
}

#[test]
fn commits_go_on_while_the_blob_store_is_away_up_to_a_limit() {
    let (_, blobs) = store();
    let patience = Duration::from_secs(20);
    let tiers = TierOptions { unsent_limit: 50_000, patience, ..at_once() };
    let blobs_of = Blobs { options: tiers, ..Blobs::new(blobs.clone()) };
    let options = Options { lock_timeout_ms: 50, ..options(blobs_of) };
    let db = block_on(Database::open(memory_host(), options.clone())).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, s varchar(1000))").unwrap();
    block_on(db.upload()).unwrap();
    blobs.set_away(true);
    let mut insert = |id: u32| {
        let sql = format!("insert into t values ({id}, '{}')", "x".repeat(500));
        run(&mut session, &sql).map(drop)
    };
    let refused = (0..1_000).find_map(|id| insert(id).err().map(|error| (id, error)));
    let (id, error) = refused.expect("a limit");
    assert!(id > 50, "{id} rows of 500 bytes");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    blobs.set_away(false);
    block_on(db.upload()).unwrap();
    insert(id).unwrap();
    block_on(db.close()).unwrap();
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    assert_eq!(rows(&mut db.session(), "select count(*) from t").unwrap(), [(id + 1).to_string()]);
}

#[test]
fn a_statement_that_waits_for_the_blob_store_can_be_cancelled() {
    let (_, blobs) = store();
    let patience = Duration::from_secs(600);
    let tiers = TierOptions { patience, warms: false, ..at_once() };
    let options = options(Blobs { options: tiers, ..Blobs::new(blobs.clone()) });
    let db = block_on(Database::open(memory_host(), options.clone())).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, n int)").unwrap();
    run(&mut session, "insert into t values (1, 10), (2, 20); optimize table t full").unwrap();
    block_on(db.close()).unwrap();
    for threads in [1, 2] {
        let options = Options { threads, ..options.clone() };
        let db = block_on(Database::open(memory_host(), options)).unwrap();
        blobs.set_away(true);
        for sql in [
            "select sum(n) from t",
            "select n from t where id = 2",
            "update t set n = n + 1",
            "delete from t where id = 1",
            "create table u as select * from t",
        ] {
            let mut session = db.session();
            let cancel = session.cancel_flag();
            let began = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(50));
                    cancel.store(true, Ordering::Relaxed);
                });
                assert_eq!(kind(&mut session, sql), Some(ErrorKind::Cancelled), "{sql}");
            });
            assert!(began.elapsed() < patience / 2, "{sql} waits for its patience");
        }
        blobs.set_away(false);
        let found = rows(&mut db.session(), "select id, n from t order by id").unwrap();
        assert_eq!(found, ["1|10", "2|20"]);
        block_on(db.close()).unwrap();
    }
}

#[test]
fn commits_that_are_held_survive_the_loss_of_the_disk() {
    let (_, blobs) = store();
    let lag = Duration::from_secs(3600);
    let tiers = TierOptions { holds_commits: true, lag, ..TierOptions::default() };
    let options = options(Blobs { options: tiers, ..Blobs::new(blobs) });
    let first = block_on(Database::open(memory_host(), options.clone())).unwrap();
    let mut session = first.session();
    run(&mut session, "create table t (id int primary key, n int)").unwrap();
    run(&mut session, "insert into t values (1, 1), (2, 2)").unwrap();
    run(
        &mut session,
        "begin; update t set n = 7 where id = 2; insert into t values (3, 3); commit",
    )
    .unwrap();
    run(&mut session, "create table copy as select * from t").unwrap();
    run(&mut session, "alter table t add column w int default 5").unwrap();
    let mut load = block_on(session.appender("copy", OnDuplicate::Error)).unwrap();
    let row = vec![Value::Int(9), Value::Int(9)];
    load.append(&Batch::from_rows(&[DataType::Int32, DataType::Int32], &[row])).unwrap();
    block_on(load.finish()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let first = &first;
            scope.spawn(move || {
                let mut session = first.session();
                for id in 0..20 {
                    let id = 100 + thread * 100 + id;
                    run(&mut session, &format!("insert into t values ({id}, 0, 0)")).unwrap();
                }
            });
        }
    });
    assert_eq!(first.uploaded_position(), Some(first.log_position()));
    // Another machine, without the first one's disk.
    let second = block_on(Database::open(memory_host(), options)).unwrap();
    let mut other = second.session();
    let few = "select id, n, w from t where id < 100 order by id";
    assert_eq!(rows(&mut other, few).unwrap(), ["1|1|5", "2|7|5", "3|3|5"]);
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["83"]);
    assert_eq!(rows(&mut other, "select count(*) from copy").unwrap(), ["4"]);
    assert_eq!(kind(&mut session, "insert into t values (4, 4, 4)"), Some(ErrorKind::InUse));
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["83"]);
}

#[test]
fn a_commit_that_cannot_be_uploaded_is_not_acknowledged() {
    let (_, blobs) = store();
    let patience = Duration::from_millis(100);
    let tiers = TierOptions { holds_commits: true, patience, ..TierOptions::default() };
    let options = options(Blobs { options: tiers, ..Blobs::new(blobs.clone()) });
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key)").unwrap();
    blobs.set_away(true);
    let error = run(&mut session, "insert into t values (1)").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("uploaded later")), "{error}");
    // Reads, and transactions that change nothing, wait for nothing.
    assert_eq!(rows(&mut session, "select count(*) from t").unwrap(), ["1"]);
    run(&mut session, "begin; select * from t; commit").unwrap();
    assert!(db.uploaded_position() < Some(db.log_position()));
    blobs.set_away(false);
    run(&mut session, "insert into t values (2)").unwrap();
    assert_eq!(db.uploaded_position(), Some(db.log_position()));
}
