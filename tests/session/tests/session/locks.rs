//! Named savepoints and `SELECT … FOR UPDATE`.

use nacre_native::{block_on, memory_host};
use nacre_session_tests::{blocked, kind, memory, rows, run, run_with};
use nacredb::{Database, ErrorKind, Options, Session, Value};
use std::sync::atomic::Ordering;
use std::time::Duration;

const ALL: &str = "select * from a order by id";

fn accounts(in_segment: bool) -> Database {
    let db = nacre_session_tests::accounts().unwrap();
    if in_segment {
        run(&mut db.session(), "optimize table a flush").unwrap();
    }
    db
}

fn state(session: &mut Session, sql: &str) -> (ErrorKind, String) {
    let error = run(session, sql).unwrap_err();
    (error.kind(), error.sqlstate().to_string())
}

#[test]
fn savepoints_take_back_what_came_after_them() {
    for in_segment in [false, true] {
        let db = accounts(in_segment);
        let mut a = db.session();
        run(
            &mut a,
            "begin; update a set n = 1 where id = 1; savepoint s; update a set n = 2 where id = 1",
        )
        .unwrap();
        run(
            &mut a,
            "delete from a where id = 2; insert into a values (3, 3); rollback to savepoint s",
        )
        .unwrap();
        assert_eq!(rows(&mut a, ALL).unwrap(), ["1|1", "2|100"]);
        run(&mut a, "update a set n = 5 where id = 2; rollback to S").unwrap();
        assert_eq!(
            rows(&mut a, ALL).unwrap(),
            ["1|1", "2|100"],
            "the savepoint stays, whatever its case"
        );
        run(&mut db.session(), "update a set n = 7 where id = 2").unwrap();
        run(&mut a, "insert into a values (4, 4); release savepoint s; commit").unwrap();
        assert_eq!(rows(&mut a, ALL).unwrap(), ["1|1", "2|7", "4|4"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn savepoints_nest_and_shadow() {
    let db = accounts(false);
    let mut a = db.session();
    run(
        &mut a,
        "begin; savepoint s; insert into a values (3, 3); savepoint s; insert into a values (4, 4)",
    )
    .unwrap();
    run(&mut a, "savepoint t; insert into a values (5, 5); rollback to s").unwrap();
    assert_eq!(rows(&mut a, "select id from a order by id").unwrap(), ["1", "2", "3"]);
    assert_eq!(state(&mut a, "rollback to t"), (ErrorKind::NotFound, "3B001".into()));
    run(&mut a, "release s; rollback to s").unwrap();
    assert_eq!(rows(&mut a, "select id from a order by id").unwrap(), ["1", "2"]);
    run(&mut a, "release s").unwrap();
    assert_eq!(state(&mut a, "release s"), (ErrorKind::NotFound, "3B001".into()));
    run(&mut a, "savepoint s; commit; begin").unwrap();
    assert_eq!(state(&mut a, "rollback to s"), (ErrorKind::NotFound, "3B001".into()));
    run(&mut a, "savepoint s; rollback; begin").unwrap();
    assert_eq!(state(&mut a, "rollback to s"), (ErrorKind::NotFound, "3B001".into()));
    run(&mut a, "rollback").unwrap();
    for sql in ["savepoint s", "rollback to s", "release savepoint s"] {
        assert_eq!(state(&mut a, sql), (ErrorKind::Unsupported, "25P01".into()));
    }
}

#[test]
fn for_update_locks_what_where_finds() {
    for in_segment in [false, true] {
        let db = accounts(in_segment);
        let (mut a, mut b) = (db.session(), db.session());
        run(&mut a, "begin").unwrap();
        let read = "select n + ?, id from a where id = ? for update";
        let found = run_with(&mut a, read, &[Value::Int(1), Value::Int(1)]).unwrap();
        assert_eq!(found.to_rows(), [[Value::Int(101), Value::Int(1)]]);
        assert_eq!(kind(&mut b, "update a set n = 0 where id = 1"), Some(ErrorKind::LockTimeout));
        assert_eq!(kind(&mut b, "delete from a where id = 1"), Some(ErrorKind::LockTimeout));
        assert_eq!(kind(&mut b, "select * from a for update"), Some(ErrorKind::LockTimeout));
        assert_eq!(rows(&mut b, ALL).unwrap(), ["1|100", "2|100"], "readers do not wait");
        run(&mut b, "update a set n = 2 where id = 2").unwrap();
        run(&mut a, "update a set n = 1 where id = 1").unwrap();
        assert_eq!(rows(&mut a, ALL).unwrap(), ["1|1", "2|100"]);
        run(&mut a, "commit").unwrap();
        assert_eq!(rows(&mut b, ALL).unwrap(), ["1|1", "2|2"]);
        run(&mut b, "update a set n = 3").unwrap();
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn for_update_locks_the_first_rows_only() {
    for in_segment in [false, true] {
        let db = accounts(in_segment);
        let (mut a, mut b) = (db.session(), db.session());
        let first = "begin; select n, id as x from a order by x desc limit 1 for update of a";
        assert_eq!(rows(&mut a, first).unwrap(), ["100|2"]);
        run(&mut b, "update a set n = 1 where id = 1").unwrap();
        assert_eq!(kind(&mut b, "update a set n = 2 where id = 2"), Some(ErrorKind::LockTimeout));
        run(&mut a, "rollback").unwrap();
        // What is left out before them is locked, too.
        let second = "begin; select id from a order by id limit 1 offset 1 for update";
        assert_eq!(rows(&mut a, second).unwrap(), ["2"]);
        assert_eq!(kind(&mut b, "update a set n = 1 where id = 1"), Some(ErrorKind::LockTimeout));
        assert_eq!(
            state(&mut b, "select * from a for update of b"),
            (ErrorKind::NotFound, "42P01".into())
        );
        assert_eq!(
            state(&mut b, "select * from a order by id limit -1 for update skip locked").1,
            "2201W"
        );
        run(&mut a, "commit").unwrap();
        assert_eq!(rows(&mut b, ALL).unwrap(), ["1|1", "2|100"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn for_update_does_not_wait_if_it_is_told_so() {
    let patient = Options { lock_timeout_ms: 3_600_000, ..Options::default() };
    let db = block_on(Database::open(memory_host(), patient)).unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table a (id int primary key, n int); insert into a values (1, 1), (2, 2)")
        .unwrap();
    run(&mut a, "begin; update a set n = 3 where id = 1").unwrap();
    run(&mut b, "set lock_timeout = 20").unwrap();
    assert_eq!(kind(&mut b, "delete from a where id = 1"), Some(ErrorKind::LockTimeout));
    run(&mut b, "set lock_timeout = '30 ms'").unwrap();
    assert_eq!(kind(&mut b, "insert into a values (1, 1)"), Some(ErrorKind::LockTimeout));
    run(&mut b, "set lock_timeout = default").unwrap();
    assert_eq!(state(&mut b, "set lock_timeout = '5 years'").1, "22023");
    assert_eq!(state(&mut b, "set lock_timeout = -1").1, "22023");
    for sql in [
        "select * from a for update nowait",
        "select * from a order by id limit 1 for update nowait",
        "profile select * from a for update nowait",
    ] {
        assert_eq!(state(&mut b, sql), (ErrorKind::LockTimeout, "55P03".into()), "{sql}");
    }
    run(&mut b, "begin").unwrap();
    assert_eq!(rows(&mut b, "select * from a where id = 2 for update nowait").unwrap(), ["2|2"]);
    // The transaction goes on, and keeps what it has.
    assert_eq!(kind(&mut b, "select * from a for update nowait"), Some(ErrorKind::LockTimeout));
    assert_eq!(
        kind(&mut a, "select * from a where id = 2 for update nowait"),
        Some(ErrorKind::LockTimeout)
    );
    run(&mut b, "commit").unwrap();
    run(&mut a, "commit").unwrap();
    assert_eq!(rows(&mut b, "select * from a for update nowait").unwrap(), ["1|3", "2|2"]);
}

/// Workers take the rows of a queue, each row once, and none waits for another.
#[test]
fn workers_skip_what_others_have_taken() {
    for in_segment in [false, true] {
        let patient = Options { lock_timeout_ms: 3_600_000, ..Options::default() };
        let db = block_on(Database::open(memory_host(), patient)).unwrap();
        let mut session = db.session();
        run(&mut session, "create table job (id int primary key, urgent bool)").unwrap();
        let fill = "insert into job select i, i % 3 = 0 from generate_series(1, 60) s (i)";
        run(&mut session, fill).unwrap();
        if in_segment {
            run(&mut session, "optimize table job flush").unwrap();
        }
        let next = "select id from job order by urgent desc, id limit 1 for update skip locked";
        let (mut a, mut b) = (db.session(), db.session());
        assert_eq!(rows(&mut a, &format!("begin; {next}")).unwrap(), ["3"]);
        assert_eq!(rows(&mut b, &format!("begin; {next}")).unwrap(), ["6"]);
        let many = "select id from job where id < 10 order by id for update skip locked";
        let others = ["1", "2", "4", "5", "7", "8", "9"];
        assert_eq!(rows(&mut session, many).unwrap(), others, "of 3 and 6 by others");
        run(&mut a, "rollback").unwrap();
        assert_eq!(rows(&mut session, next).unwrap(), ["3"]);
        run(&mut b, "rollback").unwrap();
        let work = |mut session: nacredb::Session| {
            let mut done = Vec::new();
            loop {
                run(&mut session, "begin").unwrap();
                let taken = rows(&mut session, next).unwrap();
                let Some(id) = taken.first() else {
                    // Those that are left are being done by others.
                    run(&mut session, "rollback").unwrap();
                    match rows(&mut session, "select count(*) from job").unwrap()[0].as_str() {
                        "0" => return done,
                        _ => continue,
                    }
                };
                run(&mut session, &format!("delete from job where id = {id}; commit")).unwrap();
                done.push(id.clone());
            }
        };
        let mut done: Vec<String> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| work(db.session()))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        done.sort_by_key(|id| id.parse::<u32>().unwrap());
        let all: Vec<String> = (1..=60).map(|id| id.to_string()).collect();
        assert_eq!(done, all);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn for_update_is_released_with_its_transaction_or_savepoint() {
    for in_segment in [false, true] {
        for end in ["commit", "rollback", "rollback to s", "insert into a values (9, 9); commit"] {
            let db = accounts(in_segment);
            let (mut a, mut b) = (db.session(), db.session());
            run(&mut a, "begin; savepoint s; select id from a order by n desc limit 1 for update")
                .unwrap();
            assert_eq!(
                kind(&mut b, "update a set n = 0 where id = 1"),
                Some(ErrorKind::LockTimeout)
            );
            run(&mut a, end).unwrap();
            run(&mut b, "update a set n = 0 where id = 1").unwrap();
            run(&mut b, "select * from a for update; optimize table a flush").unwrap();
            run(&mut a, "delete from a where id = 2").err();
            drop(a);
            assert_eq!(rows(&mut b, "select n from a where id = 1").unwrap(), ["0"]);
            assert_eq!(db.check().unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_change_after_for_update_is_taken_back_to_the_lock() {
    for in_segment in [false, true] {
        let db = accounts(in_segment);
        let (mut a, mut b) = (db.session(), db.session());
        run(&mut a, "begin; select * from a where id = 1 for update; savepoint s; delete from a where id = 1").unwrap();
        assert_eq!(rows(&mut a, ALL).unwrap(), ["2|100"]);
        run(&mut a, "rollback to s").unwrap();
        assert_eq!(rows(&mut a, ALL).unwrap(), ["1|100", "2|100"]);
        assert_eq!(kind(&mut b, "update a set n = 0 where id = 1"), Some(ErrorKind::LockTimeout));
        run(&mut a, "update a set id = 3 where id = 1; commit").unwrap();
        assert_eq!(rows(&mut b, ALL).unwrap(), ["2|100", "3|100"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn for_update_of_changed_rows_conflicts_and_autocommit_tries_again() {
    for in_segment in [false, true] {
        let db = accounts(in_segment);
        let (mut a, mut b) = (db.session(), db.session());
        run(&mut a, "begin").unwrap();
        run(&mut b, "update a set n = 7 where id = 1").unwrap();
        assert_eq!(
            kind(&mut a, "select * from a where id = 1 for update"),
            Some(ErrorKind::Conflict)
        );
        assert_eq!(rows(&mut a, "select * from a where id = 2 for update").unwrap(), ["2|100"]);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| rows(&mut b, "select * from a order by id for update"));
            std::thread::sleep(Duration::from_millis(30));
            run(&mut a, "update a set n = 8 where id = 2; commit").unwrap();
            assert_eq!(waiter.join().unwrap().unwrap(), ["1|7", "2|8"]);
        });
        run(&mut a, "update a set n = 0").unwrap();
    }
}

#[test]
fn for_update_works_without_a_primary_key() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table t (n int); insert into t values (1), (2); optimize table t flush")
        .unwrap();
    run(&mut a, "insert into t values (3); begin").unwrap();
    assert_eq!(
        rows(&mut a, "select n from t as x where x.n >= 2 order by n for update").unwrap(),
        ["2", "3"]
    );
    assert_eq!(kind(&mut b, "update t set n = 0 where n = 2"), Some(ErrorKind::LockTimeout));
    assert_eq!(kind(&mut b, "update t set n = 0 where n = 3"), Some(ErrorKind::LockTimeout));
    run(&mut b, "update t set n = 0 where n = 1").unwrap();
    run(&mut a, "update t set n = n + 10 where n >= 2; commit").unwrap();
    assert_eq!(rows(&mut b, "select n from t order by n").unwrap(), ["0", "12", "13"]);
}

/// A waiting statement holds no locks, so no other statement can wait for it.
#[test]
fn statements_of_their_own_never_deadlock() {
    const TIMES: usize = 300;
    let db = accounts(false);
    let up: Vec<String> = (1..=40).map(|id| format!("({id}, 0)")).collect();
    let down: Vec<String> = up.iter().rev().cloned().collect();
    std::thread::scope(|scope| {
        for order in [up, down] {
            let mut session = db.session();
            let sql = format!(
                "insert into a values {} on duplicate key update n = n + 1",
                order.join(", ")
            );
            scope.spawn(move || (0..TIMES).for_each(|_| drop(run(&mut session, &sql).unwrap())));
        }
    });
    let sums =
        rows(&mut db.session(), "select count(*), min(n), max(n) from a where id > 2").unwrap();
    assert_eq!(sums, [format!("38|{0}|{0}", 2 * TIMES - 1)]);
}

/// A waiter gets a row lock that an open transaction releases.
#[test]
fn a_row_given_back_goes_to_who_waits_for_it() {
    let db = accounts(false);
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "begin; savepoint s; insert into a values (9, 1)").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| run(&mut b, "insert into a values (9, 2)").map(drop));
        std::thread::sleep(Duration::from_millis(30));
        run(&mut a, "rollback to s").unwrap();
        waiter.join().unwrap().unwrap();
    });
    run(&mut a, "commit").unwrap();
    assert_eq!(rows(&mut b, "select n from a where id = 9").unwrap(), ["2"]);
}

#[test]
fn a_statement_that_waits_can_be_cancelled() {
    let patient = Options { lock_timeout_ms: 3_600_000, ..Options::default() };
    let db = block_on(Database::open(memory_host(), patient)).unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table a (id int primary key, n int); begin; insert into a values (1, 1)")
        .unwrap();
    let cancel = b.cancel_flag();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| kind(&mut b, "insert into a values (1, 2)"));
        while !waiter.is_finished() {
            cancel.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(waiter.join().unwrap(), Some(ErrorKind::Cancelled));
    });
    run(&mut a, "commit").unwrap();
    assert_eq!(rows(&mut b, "select n from a").unwrap(), ["1"]);
}

#[test]
fn a_statement_that_waited_reads_the_views_of_now() {
    let db = accounts(true);
    let (mut a, mut b, mut c) = (db.session(), db.session(), db.session());
    run(&mut a, "create view v as select 5 as x").unwrap();
    run(&mut a, "begin; update a set n = 1 where id = 1").unwrap();
    let statement = "update a set n = (select max(x) from v) where id = 1";
    let done = blocked(&mut b, statement, || {
        run(&mut c, "drop view v; create view v as select 6 as x").unwrap();
        run(&mut a, "commit").unwrap();
    });
    assert_eq!(done, Ok(1));
    assert_eq!(rows(&mut a, "select n from a where id = 1").unwrap(), ["6"]);
    run(&mut a, "begin; update a set n = 1 where id = 1").unwrap();
    let done = blocked(&mut b, statement, || {
        run(&mut c, "drop view v").unwrap();
        run(&mut a, "commit").unwrap();
    });
    assert_eq!(done, Err(ErrorKind::NotFound));
}
