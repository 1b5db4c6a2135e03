//! Databases that only read blobs, and follow what their writer has uploaded.

use nacre_native::{NativeClock, block_on, memory_host};
use nacre_session_tests::{kind, rows, run};
use nacre_testing::{BlobChances, FaultBlobs, MemoryBlobs};
use nacredb::{Blobs, Database, ErrorKind, Options, TierOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct World {
    blobs: Arc<FaultBlobs>,
    writer: Database,
    options: Options,
}

/// A writer, whose uploads wait for nothing.
fn world(snapshot_bytes: u64) -> World {
    let clock = Arc::new(NativeClock::new());
    let blobs = FaultBlobs::new(MemoryBlobs::new(clock.clone()), clock, 7);
    let patience = Duration::from_millis(200);
    let tiers = TierOptions { lag: Duration::from_secs(3600), patience, ..TierOptions::default() };
    let options = Options {
        snapshot_bytes,
        flush_bytes: 20_000,
        segment_rows: 500,
        blobs: Some(Blobs { options: tiers, ..Blobs::new(blobs.clone()) }),
        ..Options::default()
    };
    let writer = block_on(Database::open(memory_host(), options.clone())).unwrap();
    World { blobs, writer, options }
}

impl World {
    fn write(&self, sql: &str) {
        run(&mut self.writer.session(), sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn upload(&self) {
        block_on(self.writer.upload()).unwrap();
    }

    fn reader(&self) -> Database {
        let options = Options { read_only: true, ..self.options.clone() };
        block_on(Database::open(memory_host(), options)).unwrap()
    }
}

fn shown(db: &Database, sql: &str) -> Vec<String> {
    rows(&mut db.session(), sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

#[test]
fn a_reader_shows_one_upload_and_then_the_next() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key, n int, key (n))");
    world.write("insert into t values (1, 1), (2, 2)");
    world.upload();
    let reader = world.reader();
    let all = "select * from t order by id";
    assert_eq!(shown(&reader, all), ["1|1", "2|2"]);
    assert!(!reader.refresh().unwrap(), "nothing is new");

    world.write("insert into t values (3, 3)");
    world.write("update t set n = 10 where id = 1");
    assert!(!reader.refresh().unwrap(), "nothing is uploaded");
    world.write("optimize table t flush");
    world.write("delete from t where id = 2");
    world.upload();
    assert_eq!(shown(&reader, all), ["1|1", "2|2"], "nothing is refreshed");
    let mut old = reader.session();
    run(&mut old, "begin").unwrap();
    assert_eq!(rows(&mut old, all).unwrap(), ["1|1", "2|2"]);
    assert!(reader.refresh().unwrap());
    assert_eq!(rows(&mut old, all).unwrap(), ["1|1", "2|2"], "a transaction keeps its snapshot");
    assert_eq!(shown(&reader, all), ["1|10", "3|3"]);
    assert_eq!(shown(&reader, "select id from t where n = 10"), ["1"]);
    run(&mut old, "commit").unwrap();
    assert_eq!(kind(&mut old, "insert into t values (4, 4)"), Some(ErrorKind::Unsupported));
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

#[test]
fn the_lag_of_a_reader_can_be_read() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.upload();
    let reader = world.reader();
    let before = reader.lag().unwrap();
    assert_eq!(before.position, world.writer.log_position());
    world.write("insert into t values (1)");
    world.upload();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(reader.lag().unwrap().position, before.position);
    assert!(reader.lag().unwrap().since_looked >= Duration::from_millis(20));
    assert!(block_on(reader.refresh_async()).unwrap());
    let after = reader.lag().unwrap();
    let writer = world.writer.lag().unwrap();
    assert_eq!((after.position, after.written_us), (writer.position, writer.written_us));
    assert_eq!(reader.log_position(), world.writer.log_position());
    assert!(after.written_us >= before.written_us);
    assert_eq!(writer.since_looked, Duration::ZERO);
    let plain = block_on(Database::open(memory_host(), Options::default())).unwrap();
    assert_eq!(plain.lag(), None);
    assert!(!block_on(plain.refresh_async()).unwrap());
}

/// The log between two looks may be gone, replaced by a snapshot. The reader goes on all the same.
#[test]
fn a_reader_goes_on_after_the_log_that_it_needed_is_gone() {
    let world = world(20_000);
    world.write("create table t (id int primary key, n int, s varchar(200), key (n))");
    world.write("create table gone (id int primary key)");
    world.write("insert into gone values (7)");
    world.write("create view v as select id from gone");
    world.write("create table same (id int primary key)");
    world.write("insert into same values (5)");
    world.upload();
    let reader = world.reader();
    let mut old = reader.session();
    run(&mut old, "begin").unwrap();
    assert_eq!(rows(&mut old, "select count(*) from t").unwrap(), ["0"]);
    assert_eq!(rows(&mut old, "select * from v").unwrap(), ["7"]);
    let mut total = 0;
    for round in 0..6 {
        // Several snapshots each time.
        for batch in 0..10 {
            let first = round * 1_000 + batch * 100;
            let values: Vec<String> = (first..first + 100)
                .map(|id| format!("({id}, {}, '{}')", id % 50, "x".repeat(150)))
                .collect();
            world.write(&format!("insert into t (id, n, s) values {}", values.join(", ")));
            total += 100;
        }
        if round == 1 {
            world.write("drop view v");
            world.write("drop table gone");
            world.write("create table gone (name text)");
            world.write("insert into gone values ('another')");
            world.write("alter table t add column more int default 3");
        }
        while world.writer.maintain(nacredb::Budget::Steps(100)).unwrap() {}
        world.upload();
        assert!(reader.refresh().unwrap(), "round {round}");
        assert_eq!(shown(&reader, "select count(*) from t"), [total.to_string()]);
        assert_eq!(
            shown(&reader, "select count(*) from t where n = 7"),
            [(total / 50).to_string()]
        );
        assert_eq!(shown(&reader, "select * from same"), ["5"]);
        if round >= 1 {
            assert_eq!(shown(&reader, "select * from gone"), ["another"]);
            assert_eq!(shown(&reader, "select max(more) from t"), ["3"]);
            assert_eq!(kind(&mut reader.session(), "select * from v"), Some(ErrorKind::NotFound));
        }
        assert_eq!(rows(&mut old, "select count(*) from t").unwrap(), ["0"], "round {round}");
        assert_eq!(rows(&mut old, "select * from v").unwrap(), ["7"], "round {round}");
        assert_eq!(rows(&mut old, "select id from gone").unwrap(), ["7"], "round {round}");
    }
    run(&mut old, "commit").unwrap();
    assert_eq!(rows(&mut old, "select count(*) from t").unwrap(), [total.to_string()]);
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_reader_follows_the_next_writer_too() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.write("insert into t values (1)");
    world.upload();
    let reader = world.reader();
    // Never uploaded, so it is not there for the next one.
    world.write("insert into t values (2)");
    let next = block_on(Database::open(memory_host(), world.options.clone())).unwrap();
    run(&mut next.session(), "insert into t values (3)").unwrap();
    block_on(next.upload()).unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(shown(&reader, "select * from t order by id"), ["1", "3"]);
    assert_eq!(block_on(world.writer.upload()).unwrap_err().kind(), ErrorKind::InUse);
}

#[test]
fn while_the_blob_store_is_away_a_reader_shows_what_it_showed() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.write("insert into t values (1)");
    world.upload();
    let reader = world.reader();
    world.write("insert into t values (2)");
    world.upload();
    world.blobs.set_away(true);
    let error = reader.refresh().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(shown(&reader, "select * from t"), ["1"]);
    world.blobs.set_away(false);
    assert!(reader.refresh().unwrap());
    assert_eq!(shown(&reader, "select * from t order by id"), ["1", "2"]);
}

#[test]
fn a_statement_waits_for_a_position() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.upload();
    let reader = world.reader();
    let position = |db: &Database| shown(db, "select log_position from information_schema.lag");
    let before = position(&reader);
    assert_eq!(before, position(&world.writer));
    world.write("insert into t values (1)");
    let after = position(&world.writer).concat();
    assert_ne!(vec![after.clone()], before, "a commit grows the log");
    assert_eq!(position(&reader), before, "it is not uploaded");

    let mut session = reader.session();
    let wait = format!("wait for position {after} timeout 0");
    let late = run(&mut session, &wait).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Unavailable);
    assert!(late.message().contains(&after), "{late}");
    world.upload();
    run(&mut session, "begin").unwrap();
    assert_eq!(kind(&mut session, &wait), Some(ErrorKind::Unsupported));
    run(&mut session, "rollback").unwrap();
    run(&mut session, &wait).unwrap();
    assert_eq!(rows(&mut session, "select * from t").unwrap(), ["1"]);
    let columns = "log_position - uploaded_position, uploaded_at is null, known_ms < 60000";
    let lag = format!("select {columns} from information_schema.lag");
    assert_eq!(shown(&reader, &lag), ["0|false|true"]);
    assert_eq!(shown(&reader, "show lag").len(), 1);
}

#[test]
fn the_lag_tells_why_nothing_is_uploaded() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.upload();
    let failure = "select failure is null from information_schema.lag";
    assert_eq!(shown(&world.writer, failure), ["true"]);
    world.blobs.set_away(true);
    world.write("insert into t values (1)");
    assert_eq!(block_on(world.writer.upload()).unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(shown(&world.writer, failure), ["false"]);
    assert!(world.writer.lag().unwrap().failure.is_some());
    world.blobs.set_away(false);
    world.upload();
    assert_eq!(shown(&world.writer, failure), ["true"]);
}

#[test]
fn waiting_for_a_position_ends_although_the_blob_store_is_stuck() {
    let world = world(1 << 20);
    world.write("create table t (id int primary key)");
    world.upload();
    let reader = world.reader();
    world.write("insert into t values (1)");
    let after = shown(&world.writer, "select log_position from information_schema.lag").concat();
    // Far longer than the wait may take.
    world.blobs.set(BlobChances { delay_ns: 8_000_000_000, ..BlobChances::default() });
    let mut session = reader.session();
    let begun = Instant::now();
    let late = run(&mut session, &format!("wait for position {after} timeout 1")).unwrap_err();
    let took = begun.elapsed();
    assert_eq!(late.kind(), ErrorKind::Unavailable, "{late}");
    assert!((1..5).contains(&took.as_secs()), "it took {took:?}");
    world.blobs.set(BlobChances::default());
    world.upload();
    run(&mut session, &format!("wait for position {after} timeout 60")).unwrap();
    assert_eq!(rows(&mut session, "select * from t").unwrap(), ["1"]);
}

#[test]
fn waiting_for_a_position_can_be_cancelled_and_is_checked() {
    let db = block_on(Database::open(memory_host(), Options::default())).unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key)").unwrap();
    let here = shown(&db, "select log_position from information_schema.lag").concat();
    run(&mut session, &format!("wait for position {here}")).unwrap();
    assert_eq!(
        shown(&db, "select uploaded_position, lease from information_schema.lag"),
        ["NULL|NULL"]
    );
    let cancel = session.cancel_flag();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let far = format!("wait for position {here}0 timeout 600");
        assert_eq!(kind(&mut session, &far), Some(ErrorKind::Cancelled));
    });
    for (sql, expected) in [
        ("wait for position -1", ErrorKind::Type),
        ("wait for position 'x'", ErrorKind::Type),
        ("wait for position 1 timeout 1.5", ErrorKind::Type),
        ("wait for position id", ErrorKind::NotFound),
        ("wait for", ErrorKind::Syntax),
        ("wait for position", ErrorKind::Syntax),
    ] {
        assert_eq!(kind(&mut session, sql), Some(expected), "{sql}");
    }
}
