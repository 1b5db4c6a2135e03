//! Defaults, checks, generated and identity columns where a script cannot look: after a crash, with
//! several sessions, in bulk loads, and while a table is altered.

use nacre_native::block_on;
use nacre_session_tests::{memory, memory_host, options, rows, run};
use nacredb::{Batch, Budget, Database, ErrorKind, OnDuplicate, Session, Value};
use std::collections::BTreeSet;

/// Runs an `INSERT … RETURNING` of one integer column.
fn returned(session: &mut Session, sql: &str) -> Vec<i64> {
    rows(session, sql).unwrap().iter().map(|row| row.parse().unwrap()).collect()
}

#[test]
fn no_value_of_a_counter_comes_twice_after_a_crash() {
    let host = memory_host();
    let mut seen = BTreeSet::new();
    for round in 0..6 {
        // Opened again without having been closed.
        let db = block_on(Database::open(host.clone(), options())).unwrap();
        let mut s = db.session();
        run(&mut s, "create table if not exists t (id bigint auto_increment, n int)").unwrap();
        for _ in 0..3 {
            for id in returned(&mut s, "insert into t (n) values (1), (2) returning id") {
                assert!(seen.insert(id), "{id} comes again in round {round}");
            }
            // The last value is known to the log alone.
            run(&mut s, "delete from t").unwrap();
        }
        if round % 2 == 1 {
            db.flush().unwrap();
            db.maintain(Budget::Steps(100)).unwrap();
        }
    }
}

#[test]
fn no_value_of_a_counter_comes_twice_after_a_load_and_an_alteration() {
    let host = memory_host();
    let db = block_on(Database::open(host.clone(), options())).unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id bigint primary key auto_increment, n int)").unwrap();
    let inserted = run(&mut s, "insert into t (n) select x from range(0, 70000) as r(x)").unwrap();
    assert_eq!(inserted.rows_affected, 70_000);
    run(&mut s, "delete from t; optimize table t full; alter table t add column m int").unwrap();
    drop((s, db));
    let db = block_on(Database::open(host.clone(), options())).unwrap();
    let mut s = db.session();
    assert!(returned(&mut s, "insert into t (n) values (1) returning id")[0] > 70_000);
    run(&mut s, "alter table t auto_increment = 1000000").unwrap();
    drop((s, db));
    let db = block_on(Database::open(host, options())).unwrap();
    let mut s = db.session();
    assert_eq!(returned(&mut s, "insert into t (n) values (1) returning id"), [1_000_000]);
}

#[test]
fn sessions_share_a_counter_without_waiting_for_each_other() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table t (id int primary key auto_increment, n int)").unwrap();
    run(&mut a, "begin; insert into t (n) values (1)").unwrap();
    run(&mut b, "begin; insert into t (n) values (2), (3)").unwrap();
    run(&mut a, "insert into t (n) values (4)").unwrap();
    run(&mut b, "rollback").unwrap();
    run(&mut a, "commit").unwrap();
    run(&mut b, "insert into t (n) values (5)").unwrap();
    assert_eq!(rows(&mut a, "select * from t order by id").unwrap(), ["1|1", "4|4", "5|5"]);
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let insert = || {
            let mut session = db.session();
            let one = |_| returned(&mut session, "insert into t (n) values (0), (0) returning id");
            (0..50).flat_map(one).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(insert)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 400);
}

#[test]
fn a_bulk_load_is_filled_in_and_checked() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(
        &mut s,
        "create table t (id bigint primary key auto_increment, n int check (n > 0), \
         twice bigint as (n * 2), made timestamp default now())",
    )
    .unwrap();
    let load = |s: &mut Session, given: &[[Value; 3]]| {
        let mut appender = block_on(s.appender("t", OnDuplicate::Error)).unwrap();
        let schema = appender.schema().clone();
        let made = schema.columns[3].default.clone();
        assert!(matches!(made, Value::Timestamp(_)), "{made}");
        let whole: Vec<Vec<Value>> =
            given.iter().map(|row| [&row[..], std::slice::from_ref(&made)].concat()).collect();
        appender.append(&Batch::from_rows(&schema.types(), &whole))?;
        block_on(appender.finish())
    };
    let null = Value::Null;
    let first = [
        [null.clone(), Value::Int(1), null.clone()],
        [Value::Int(10), Value::Int(2), null.clone()],
    ];
    assert_eq!(load(&mut s, &first).unwrap(), 2);
    // A generated column may be given its value, and no other.
    assert_eq!(load(&mut s, &[[null.clone(), Value::Int(3), Value::Int(6)]]).unwrap(), 1);
    let other = load(&mut s, &[[null.clone(), Value::Int(3), Value::Int(7)]]).unwrap_err();
    assert_eq!((other.kind(), other.sqlstate()), (ErrorKind::Constraint, "428C9"));
    let refused = load(&mut s, &[[null.clone(), Value::Int(0), null.clone()]]).unwrap_err();
    assert_eq!((refused.kind(), refused.sqlstate()), (ErrorKind::Constraint, "23514"));
    assert_eq!(refused.table(), Some("t"));
    assert_eq!(refused.key(), Some("t_n_check"));
    assert_eq!(rows(&mut s, "select id, n, twice from t order by n").unwrap().len(), 3);
    assert_eq!(
        rows(&mut s, "select twice, made is null from t order by n").unwrap(),
        ["2|false", "4|false", "6|false"]
    );
    // Many rows of a statement go the same way.
    let many = "insert into t (n) select x from range(0, 70000) as r(x)";
    assert_eq!(run(&mut s, many).unwrap_err().sqlstate(), "23514");
    assert_eq!(run(&mut s, &many.replace("0, 7", "1, 7")).unwrap().rows_affected, 69_999);
    assert_eq!(
        rows(&mut s, "select count(*), count(distinct id), sum(twice) - 2 * sum(n) from t")
            .unwrap(),
        ["70002|70002|0"]
    );
}

#[test]
fn a_writer_that_began_before_a_check_does_not_get_past_it() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table t (id int primary key, n int); insert into t values (1, 1)").unwrap();
    run(&mut a, "begin; insert into t values (2, -2)").unwrap();
    run(&mut b, "alter table t add constraint c check (n > 0)").unwrap();
    assert_eq!(run(&mut a, "commit").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(rows(&mut b, "select * from t").unwrap(), ["1|1"]);
    assert_eq!(run(&mut b, "insert into t values (3, 0)").unwrap_err().sqlstate(), "23514");
}

#[test]
fn a_prepared_insert_follows_defaults_and_checks() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table t (id int primary key, n int default 1)").unwrap();
    let insert = a.prepare("insert into t (id) values (?)").unwrap();
    block_on(a.run(&insert, &[Value::Int(1)])).unwrap();
    run(&mut b, "alter table t alter column n set default 1 + 1").unwrap();
    block_on(a.run(&insert, &[Value::Int(2)])).unwrap();
    run(&mut b, "alter table t add constraint c check (id < 3)").unwrap();
    let refused = block_on(a.run(&insert, &[Value::Int(3)])).unwrap_err();
    assert_eq!(refused.sqlstate(), "23514");
    assert_eq!(rows(&mut b, "select * from t order by id").unwrap(), ["1|1", "2|2"]);
}
