//! Transactions through SQL: isolation, waiting, conflicts, deadlocks, statement rollback.

use nacre_session_tests::{accounts, kind, memory, rows, run, run_with};
use nacredb::{ErrorKind, Value};
use std::time::Duration;

#[test]
fn a_transaction_sees_its_own_writes_and_no_others() {
    let db = accounts().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "begin; update a set n = 50 where id = 1; insert into a values (3, 7); delete from a where id = 2")
        .unwrap();
    assert_eq!(rows(&mut a, "select * from a order by id").unwrap(), ["1|50", "3|7"]);
    assert_eq!(rows(&mut b, "select * from a order by id").unwrap(), ["1|100", "2|100"]);
    run(&mut b, "begin").unwrap();
    assert_eq!(rows(&mut b, "select count(*) from a").unwrap(), ["2"]);
    run(&mut a, "commit").unwrap();
    assert_eq!(
        rows(&mut b, "select * from a order by id").unwrap(),
        ["1|100", "2|100"],
        "a snapshot stays"
    );
    run(&mut b, "rollback").unwrap();
    assert_eq!(rows(&mut b, "select * from a order by id").unwrap(), ["1|50", "3|7"]);
}

#[test]
fn rollback_leaves_nothing_behind() {
    for flush in [false, true] {
        let db = accounts().unwrap();
        let mut a = db.session();
        if flush {
            run(&mut a, "optimize table a flush").unwrap();
        }
        run(&mut a, "begin; update a set n = 0; delete from a where id = 2; insert into a values (9, 9); rollback")
            .unwrap();
        assert_eq!(rows(&mut a, "select * from a order by id").unwrap(), ["1|100", "2|100"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_failed_statement_is_undone_and_the_transaction_goes_on() {
    let db = accounts().unwrap();
    let mut a = db.session();
    run(&mut a, "begin; insert into a values (3, 3)").unwrap();
    assert_eq!(kind(&mut a, "insert into a values (4, 4), (1, 1)"), Some(ErrorKind::Constraint));
    assert_eq!(kind(&mut a, "update a set n = n / 0"), Some(ErrorKind::Type));
    run(&mut a, "insert into a values (5, 5); commit").unwrap();
    assert_eq!(rows(&mut a, "select id from a order by id").unwrap(), ["1", "2", "3", "5"]);
}

#[test]
fn a_waiter_gets_the_lock_when_the_holder_ends() {
    let db = accounts().unwrap();
    let mut a = db.session();
    run(&mut a, "begin; update a set n = n + 1 where id = 1").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            run(&mut db.session(), "update a set n = n + 10 where id = 1").map(|r| r.rows_affected)
        });
        std::thread::sleep(Duration::from_millis(30));
        run(&mut a, "commit").unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), 1);
    });
    assert_eq!(rows(&mut a, "select n from a where id = 1").unwrap(), ["111"]);
}

#[test]
fn a_lock_that_stays_held_times_out() {
    let db = accounts().unwrap();
    let mut a = db.session();
    run(&mut a, "begin; delete from a where id = 1").unwrap();
    assert_eq!(
        kind(&mut db.session(), "update a set n = 0 where id = 1"),
        Some(ErrorKind::LockTimeout)
    );
    run(&mut a, "rollback").unwrap();
    run(&mut db.session(), "update a set n = 0 where id = 1").unwrap();
}

#[test]
fn lost_updates_are_conflicts() {
    let db = accounts().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "begin").unwrap();
    assert_eq!(rows(&mut a, "select n from a where id = 1").unwrap(), ["100"]);
    run(&mut b, "update a set n = 7 where id = 1").unwrap();
    let error = run(&mut a, "update a set n = 8 where id = 1").unwrap_err();
    assert_eq!(
        (error.kind(), error.sqlstate(), error.is_retryable()),
        (ErrorKind::Conflict, "40001", true)
    );
    run(&mut a, "rollback").unwrap();
    assert_eq!(rows(&mut a, "select n from a where id = 1").unwrap(), ["7"]);
}

#[test]
fn deadlocks_are_found_at_once() {
    let db = accounts().unwrap();
    let mut a = db.session();
    run(&mut a, "begin; update a set n = 1 where id = 1").unwrap();
    let outcomes = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut b = db.session();
            run(&mut b, "begin; update a set n = 2 where id = 2").unwrap();
            let outcome = run(&mut b, "update a set n = 2 where id = 1").map(drop);
            run(&mut b, "rollback").unwrap();
            outcome
        });
        std::thread::sleep(Duration::from_millis(40));
        let mine = run(&mut a, "update a set n = 1 where id = 2").map(drop);
        run(&mut a, "rollback").unwrap();
        [mine, other.join().unwrap()]
    });
    assert!(
        outcomes.iter().any(|o| o.as_ref().is_err_and(|e| e.kind() == ErrorKind::Deadlock)),
        "{outcomes:?}"
    );
}

#[test]
fn keys_can_be_shifted_in_one_statement() {
    for flush in [false, true] {
        let db = accounts().unwrap();
        let mut a = db.session();
        run(&mut a, "insert into a values (3, 300)").unwrap();
        if flush {
            run(&mut a, "optimize table a flush").unwrap();
        }
        assert_eq!(run(&mut a, "update a set id = id + 1").unwrap().rows_affected, 3);
        assert_eq!(
            rows(&mut a, "select id, n from a order by id").unwrap(),
            ["2|100", "3|100", "4|300"]
        );
        assert_eq!(kind(&mut a, "update a set id = 4 where id = 2"), Some(ErrorKind::Constraint));
        assert_eq!(rows(&mut a, "select count(*) from a where id = 2").unwrap(), ["1"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn an_insert_does_not_read_what_it_writes() {
    let db = memory().unwrap();
    let mut a = db.session();
    run(&mut a, "create table t (n int); insert into t values (1), (2)").unwrap();
    for expected in [4, 8, 16] {
        run(&mut a, "insert into t select n + 10 from t").unwrap();
        assert_eq!(rows(&mut a, "select count(*) from t").unwrap(), [expected.to_string()]);
    }
}

#[test]
fn many_threads_increment_without_losing_one() {
    let db = accounts().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = db.session();
                let add = session.prepare("update a set n = n + ? where id = 1").unwrap();
                for _ in 0..50 {
                    // Four threads update one row: under load a wait may time out, and is then
                    // retried.
                    while let Err(e) = nacre_native::block_on(session.run(&add, &[Value::Int(1)])) {
                        assert!(e.is_retryable(), "{e}");
                    }
                }
            });
        }
    });
    assert_eq!(rows(&mut db.session(), "select n from a where id = 1").unwrap(), ["300"]);
}

#[test]
fn prepared_statements_follow_the_catalog_and_their_parameters() {
    let db = accounts().unwrap();
    let mut a = db.session();
    let get = a.prepare("select n, ? from a where id = ?").unwrap();
    let one =
        nacre_native::block_on(a.run(&get, &[Value::Text("x".into()), Value::Int(1)])).unwrap();
    assert_eq!(one.row(0), [Value::Int(100), Value::Text("x".into())]);
    let two = nacre_native::block_on(a.run(&get, &[Value::Int(5), Value::Int(2)])).unwrap();
    assert_eq!(two.row(0), [Value::Int(100), Value::Int(5)]);
    run(&mut a, "drop table a; create table a (n text, id int primary key); insert into a values ('new', 1)").unwrap();
    let three = nacre_native::block_on(a.run(&get, &[Value::Null, Value::Int(1)])).unwrap();
    assert_eq!(three.row(0), [Value::Text("new".into()), Value::Null]);
    assert_eq!(run_with(&mut a, "select ?", &[]).unwrap_err().kind(), ErrorKind::Type);
}
