//! Admission of statements: how many run at a time, what the others wait for, and what never waits.

use nacre_native::block_on;
use nacre_session_tests::{blocked, kind, memory_host, options, rows, run};
use nacredb::{Database, ErrorKind, Options, Session, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Runs until it is cancelled.
const ENDLESS: &str = "select max(range) from range(1000000000000000)";
/// Has a plan with operators, and takes no time.
const SHORT: &str = "select sum(n) from t where n > 0";

/// Opens a database in which this many statements run at a time, with a table `t` of two rows.
fn open(concurrent_statements: usize, admission_timeout_ms: u64) -> Database {
    let options = Options { concurrent_statements, admission_timeout_ms, ..options() };
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let table = "create table t (id int primary key, n int); insert into t values (1, 1), (2, 2)";
    run(&mut db.session(), table).unwrap();
    db
}

/// Runs `work` while an endless statement has the only slot. The database's timeout is short.
fn beside_an_endless_one(db: &Database, work: impl FnOnce(&Arc<AtomicBool>)) {
    let mut endless = db.session();
    let cancel = endless.cancel_flag();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| kind(&mut endless, ENDLESS));
        while kind(&mut db.session(), SHORT) != Some(ErrorKind::Unavailable) {
            assert!(!running.is_finished(), "the endless statement ended");
        }
        work(&cancel);
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap(), Some(ErrorKind::Cancelled));
    });
}

#[test]
fn a_statement_that_finds_no_slot_in_time_is_unavailable() {
    let db = open(1, 20);
    let mut session = db.session();
    beside_an_endless_one(&db, |_| {
        let error = run(&mut session, SHORT).unwrap_err();
        assert_eq!(error.message(), "1 statements run, and 1 wait to begin");
        let stream = block_on(session.stream(SHORT, &[])).map(drop).unwrap_err();
        assert_eq!(stream.kind(), ErrorKind::Unavailable);
        let update = kind(&mut session, "update t set n = n where n > 0");
        assert_eq!(update, Some(ErrorKind::Unavailable));
    });
    assert_eq!(rows(&mut session, SHORT).unwrap(), ["3"], "the next statement works");
}

#[test]
fn point_statements_need_no_slot() {
    let db = open(1, 20);
    let mut session = db.session();
    beside_an_endless_one(&db, |_| {
        run(&mut session, "insert into t values (3, 3)").unwrap();
        run(&mut session, "update t set n = n + 1 where id = 3").unwrap();
        assert_eq!(rows(&mut session, "select n from t where id = 3").unwrap(), ["4"]);
        let read = session.prepare("select n from t where id = ?").unwrap();
        assert_eq!(session.get(&read, &[Value::Int(3)]).unwrap(), Some(vec![Value::Int(4)]));
        run(&mut session, "begin; delete from t where id = 3; commit").unwrap();
    });
}

#[test]
fn a_statement_waits_until_another_one_ends() {
    let db = open(1, 3_600_000);
    let (mut endless, mut waiter) = (db.session(), db.session());
    let cancel = endless.cancel_flag();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| kind(&mut endless, ENDLESS));
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(
            blocked(&mut waiter, "update t set n = n + 1 where n > 0", || {
                cancel.store(true, Ordering::Relaxed);
            }),
            Ok(2)
        );
        assert_eq!(running.join().unwrap(), Some(ErrorKind::Cancelled));
    });
}

#[test]
fn a_statement_that_waits_for_a_slot_can_be_cancelled() {
    let db = open(1, 3_600_000);
    let (mut endless, mut waiter) = (db.session(), db.session());
    let (cancel, cancel_waiter) = (endless.cancel_flag(), waiter.cancel_flag());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| kind(&mut endless, ENDLESS));
        std::thread::sleep(Duration::from_millis(40));
        let waiting = scope.spawn(|| kind(&mut waiter, SHORT));
        while !waiting.is_finished() {
            cancel_waiter.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waiting.join().unwrap(), Some(ErrorKind::Cancelled));
        assert!(!running.is_finished(), "nothing but its cancellation ends the other one");
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(running.join().unwrap(), Some(ErrorKind::Cancelled));
    });
    assert_eq!(rows(&mut waiter, SHORT).unwrap(), ["3"]);
}

/// Otherwise the holder of the lock could not go on, and both would fail.
#[test]
fn a_statement_that_waits_for_a_lock_has_no_slot() {
    let db = open(1, 5_000);
    let (mut holder, mut waiter) = (db.session(), db.session());
    run(&mut holder, "begin; update t set n = n + 10 where n > 0").unwrap();
    let updated = blocked(&mut waiter, "update t set n = n + 100 where n > 0", || {
        assert_eq!(rows(&mut holder, SHORT).unwrap(), ["23"]);
        run(&mut holder, "commit").unwrap();
    });
    assert_eq!(updated, Ok(2));
    assert_eq!(rows(&mut waiter, SHORT).unwrap(), ["223"]);
}

#[test]
fn a_stream_that_is_not_being_read_has_no_slot() {
    let db = open(1, 5_000);
    let mut streams: Vec<_> = (0..3)
        .map(|_| block_on(db.session().stream("select range from range(100000)", &[])).unwrap())
        .collect();
    let mut rows_read = [0; 3];
    let mut is_open = true;
    while is_open {
        is_open = false;
        for (stream, rows) in streams.iter_mut().zip(&mut rows_read) {
            if let Some(batch) = block_on(stream.next()).unwrap() {
                *rows += batch.rows;
                is_open = true;
            }
        }
        assert_eq!(rows(&mut db.session(), SHORT).unwrap(), ["3"]);
    }
    assert_eq!(rows_read, [100_000; 3]);
}

/// Its query was admitted when it was opened.
#[test]
fn a_stream_waits_for_others_longer_than_a_statement() {
    let db = open(1, 20);
    let mut session = db.session();
    let mut stream = block_on(session.stream("select range from range(5)", &[])).unwrap();
    beside_an_endless_one(&db, |cancel| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                cancel.store(true, Ordering::Relaxed);
            });
            let batch = block_on(stream.next()).unwrap().unwrap();
            assert!(cancel.load(Ordering::Relaxed), "the stream computed rows without a slot");
            assert_eq!(batch.rows, 5);
        });
    });
}

#[test]
fn many_sessions_share_few_slots() {
    let db = open(2, 60_000);
    std::thread::scope(|scope| {
        for _ in 0..32 {
            let mut session: Session = db.session();
            scope.spawn(move || {
                for _ in 0..10 {
                    assert_eq!(rows(&mut session, SHORT).unwrap(), ["3"]);
                    assert_eq!(
                        rows(&mut session, "select count(*) from range(999)").unwrap(),
                        ["999"]
                    );
                }
            });
        }
    });
}
