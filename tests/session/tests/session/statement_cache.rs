//! A text that ran before answers as if it ran for the first time: after changes of the catalog,
//! with parameters of other types, after failures, in older transactions, and beside other threads.

use nacre_native::block_on;
use nacre_session_tests::{memory, run, run_with};
use nacredb::{Database, ErrorKind, QueryResult, Session, Value};
use std::sync::atomic::{AtomicBool, Ordering};

const GET: &str = "select * from t where id = ?";

fn table() -> Database {
    let db = memory().unwrap();
    run(
        &mut db.session(),
        "create table t (id bigint primary key, b text); insert into t values (1, 'x'), (2, 'y')",
    )
    .unwrap();
    db
}

fn rows(result: &QueryResult) -> Vec<Vec<String>> {
    result.to_rows().iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

/// The rows of a text with one parameter, which runs three times in two sessions: the first of
/// them may bind it, the others must find the same.
fn get(db: &Database, sql: &str, parameter: Value) -> Vec<Vec<String>> {
    let (mut session, mut other) = (db.session(), db.session());
    let parameters = [parameter];
    let first = rows(&run_with(&mut session, sql, &parameters).unwrap());
    for session in [&mut session, &mut other] {
        assert_eq!(rows(&run_with(session, sql, &parameters).unwrap()), first, "{sql}");
    }
    first
}

fn get_id(db: &Database, id: i64) -> Vec<Vec<String>> {
    get(db, GET, Value::Int(id))
}

fn fails(session: &mut Session, sql: &str, parameters: &[Value]) -> ErrorKind {
    run_with(session, sql, parameters).unwrap_err().kind()
}

#[test]
fn changes_of_the_table_show() {
    let db = table();
    let mut session = db.session();
    assert_eq!(get_id(&db, 1), [["1", "x"]]);
    run(&mut session, "alter table t add column n int not null default 7").unwrap();
    assert_eq!(get_id(&db, 1), [["1", "x", "7"]]);
    run(&mut session, "alter table t drop column b").unwrap();
    assert_eq!(get_id(&db, 1), [["1", "7"]]);
    run(&mut session, "optimize table t flush").unwrap();
    assert_eq!(get_id(&db, 2), [["2", "7"]]);
    run(&mut session, "truncate table t").unwrap();
    assert!(get_id(&db, 1).is_empty());
    run(&mut session, "drop table t").unwrap();
    assert_eq!(fails(&mut session, GET, &[Value::Int(1)]), ErrorKind::NotFound);
    run(&mut session, "create table t (id text primary key)").unwrap();
    run(&mut session, "insert into t values ('1')").unwrap();
    assert_eq!(get(&db, GET, Value::Text("1".into())), [["1"]]);
}

#[test]
fn a_name_that_another_table_takes_is_that_table() {
    let db = table();
    let mut session = db.session();
    run(&mut session, "create table u (id bigint primary key, c int)").unwrap();
    run(&mut session, "insert into u values (1, 100)").unwrap();
    assert_eq!(get_id(&db, 1), [["1", "x"]]);
    run(&mut session, "alter table t rename to v; alter table u rename to t").unwrap();
    assert_eq!(get_id(&db, 1), [["1", "100"]]);
}

#[test]
fn a_view_that_is_replaced_by_another_or_by_a_table_shows() {
    let db = table();
    let mut session = db.session();
    let sql = "select * from v where id = ?";
    run(&mut session, "create view v as select id, b from t").unwrap();
    assert_eq!(get(&db, sql, Value::Int(1)), [["1", "x"]]);
    run(&mut session, "create or replace view v as select id, upper(b) as b from t").unwrap();
    assert_eq!(get(&db, sql, Value::Int(1)), [["1", "X"]]);
    run(&mut session, "drop view v; create table v (id bigint primary key)").unwrap();
    assert!(get(&db, sql, Value::Int(1)).is_empty());
}

#[test]
fn indexes_that_come_and_go_change_no_row() {
    let db = table();
    let mut session = db.session();
    let (sql, x) = ("select id from t where b = ?", || Value::Text("x".into()));
    assert_eq!(get(&db, sql, x()), [["1"]]);
    run(&mut session, "create unique index by_b on t (b)").unwrap();
    assert_eq!(get(&db, sql, x()), [["1"]]);
    run(&mut session, "drop index by_b on t; insert into t values (3, 'x')").unwrap();
    assert_eq!(get(&db, sql, x()).len(), 2);
}

#[test]
fn parameters_of_other_types_are_bound_anew() {
    let db = table();
    let mut session = db.session();
    for _ in 0..2 {
        assert_eq!(get(&db, GET, Value::Int(1)), [["1", "x"]]);
        assert_eq!(get(&db, GET, Value::Text("2".into())), [["2", "y"]]);
        assert!(get(&db, GET, Value::Float(1.5)).is_empty());
        assert!(get(&db, GET, Value::Null).is_empty());
        assert_eq!(get(&db, "select ? as a", Value::Int(1)), [["1"]]);
        assert_eq!(get(&db, "select ? as a", Value::Text("a".into())), [["a"]]);
        assert_eq!(fails(&mut session, GET, &[]), ErrorKind::Type);
        assert_eq!(fails(&mut session, GET, &[Value::Int(1), Value::Int(1)]), ErrorKind::Type);
        let named = [("id".to_string(), Value::Int(2))];
        let by_name = "select b from t where id = :id";
        let found = block_on(session.execute_named(by_name, &named)).unwrap();
        assert_eq!(rows(&found), [["y"]]);
    }
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let db = table();
    let mut session = db.session();
    let insert = "insert into t values (?, ?)";
    let row = |id: i64| [Value::Int(id), Value::Text("z".into())];
    for id in 3..6 {
        run_with(&mut session, insert, &row(id)).unwrap();
        assert_eq!(fails(&mut session, insert, &row(id)), ErrorKind::Constraint);
    }
    assert_eq!(get(&db, "select count(*) from t where b = ?", Value::Text("z".into())), [["3"]]);
    // What could not be bound can be once its table is there.
    let sql = "select * from later where id = ?";
    assert_eq!(fails(&mut session, sql, &[Value::Int(1)]), ErrorKind::NotFound);
    run(&mut session, "create table later (id int primary key)").unwrap();
    assert!(get(&db, sql, Value::Int(1)).is_empty());
}

#[test]
fn what_the_catalog_and_the_memory_hold_is_read_each_time() {
    let db = table();
    let mut session = db.session();
    let sql = "select count(*) from information_schema.tables where table_name = ?";
    assert_eq!(get(&db, sql, Value::Text("u".into())), [["0"]]);
    run(&mut session, "create table u (id int primary key, b text)").unwrap();
    assert_eq!(get(&db, sql, Value::Text("u".into())), [["1"]]);
    let memory = "select sum(bytes) from information_schema.memory";
    let before = rows(&run(&mut session, memory).unwrap());
    let insert =
        "insert into u select id, repeat('b', 100) from generate_series(1, 10000) as s(id)";
    run(&mut session, insert).unwrap();
    assert_ne!(rows(&run(&mut session, memory).unwrap()), before);
}

#[test]
fn an_older_transaction_sees_the_catalog_of_its_snapshot() {
    let db = table();
    let (mut older, mut session) = (db.session(), db.session());
    run(&mut older, "begin").unwrap();
    for _ in 0..2 {
        assert_eq!(rows(&run_with(&mut older, GET, &[Value::Int(1)]).unwrap()), [["1", "x"]]);
    }
    run(&mut session, "alter table t rename to u; create table t (id int primary key)").unwrap();
    run(&mut session, "insert into t values (1)").unwrap();
    for _ in 0..3 {
        assert_eq!(rows(&run_with(&mut older, GET, &[Value::Int(1)]).unwrap()), [["1", "x"]]);
        assert_eq!(rows(&run_with(&mut session, GET, &[Value::Int(1)]).unwrap()), [["1"]]);
    }
    run(&mut older, "commit").unwrap();
    assert_eq!(rows(&run_with(&mut older, GET, &[Value::Int(1)]).unwrap()), [["1"]]);
}

#[test]
fn other_threads_see_a_change_of_the_catalog_when_it_has_returned() {
    let db = table();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut session = db.session();
                while !stop.load(Ordering::Relaxed) {
                    let found = rows(&run_with(&mut session, GET, &[Value::Int(1)]).unwrap());
                    assert_eq!(found[0][..2], ["1", "x"]);
                }
            });
        }
        let (mut session, mut reader) = (db.session(), db.session());
        for width in 3..40 {
            run(&mut session, &format!("alter table t add column c{width} int")).unwrap();
            let found = rows(&run_with(&mut reader, GET, &[Value::Int(1)]).unwrap());
            assert_eq!(found[0].len(), width);
        }
        stop.store(true, Ordering::Relaxed);
    });
}
