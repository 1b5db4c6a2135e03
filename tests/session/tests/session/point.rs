//! Point statements behave like the general path: same rows, same errors, same isolation.

use nacre_native::block_on;
use nacre_session_tests::{memory, rows, run};
use nacredb::{Database, ErrorKind, Session, Value};
use std::sync::atomic::{AtomicBool, Ordering};

fn table() -> Database {
    let db = memory().unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (a int, b text, n bigint, primary key (b, a))").unwrap();
    run(&mut session, "insert into t values (1, 'x', 10), (2, 'x', 20), (1, 'y', null)").unwrap();
    db
}

fn int(value: i64) -> Value {
    Value::Int(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

#[test]
fn a_read_by_the_whole_key_is_recognised_and_nothing_else_is() {
    let db = table();
    let mut session = db.session();
    for (sql, point) in [
        ("select * from t where a = ? and b = ?", true),
        ("select n, a from t where b = ? and ? = a", true),
        ("select n from t where b = 'x' and a = 1", true),
        ("select n from t where a = ?", false),
        ("select n + 1 from t where a = ? and b = ?", false),
        ("select n from t where a = ? and b = ? and n > 5", true),
        ("select n from t where a = ? and a = ? and b = ?", true),
        ("select n from t where a = ? and b in (?, ?)", false),
        ("select n from t where a = ? or b = ?", false),
        ("select n from t where a >= ? and b = ?", false),
        ("select count(*) from t where a = ? and b = ?", false),
    ] {
        assert_eq!(Session::is_point_read(&session.prepare(sql).unwrap()), point, "{sql}");
    }
    let scan = session.prepare("select n from t").unwrap();
    assert_eq!(session.get(&scan, &[]).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn reads_see_memory_segments_and_the_open_transaction() {
    let db = table();
    let (mut session, mut other) = (db.session(), db.session());
    let get = session.prepare("select n, b from t where a = ? and b = ?").unwrap();
    for flushed in [false, true] {
        if flushed {
            run(&mut session, "optimize table t flush").unwrap();
        }
        assert_eq!(
            session.get(&get, &[int(2), text("x")]).unwrap(),
            Some(vec![int(20), text("x")])
        );
        assert_eq!(
            session.get(&get, &[int(1), text("y")]).unwrap(),
            Some(vec![Value::Null, text("y")])
        );
        assert_eq!(session.get(&get, &[int(3), text("y")]).unwrap(), None);
        assert_eq!(session.get(&get, &[Value::Null, text("y")]).unwrap(), None);
    }
    run(&mut session, "begin; update t set n = 21 where a = 2").unwrap();
    assert_eq!(session.get(&get, &[int(2), text("x")]).unwrap(), Some(vec![int(21), text("x")]));
    assert_eq!(other.get(&get, &[int(2), text("x")]).unwrap(), Some(vec![int(20), text("x")]));
    run(&mut session, "commit").unwrap();
    assert_eq!(other.get(&get, &[int(2), text("x")]).unwrap(), Some(vec![int(21), text("x")]));
}

#[test]
fn parameters_are_converted_and_checked() {
    let db = table();
    let mut session = db.session();
    let get = session.prepare("select n from t where a = ? and b = 'x'").unwrap();
    assert_eq!(session.get(&get, &[text("2")]).unwrap(), Some(vec![int(20)]));
    assert_eq!(session.get(&get, &[]).unwrap_err().kind(), ErrorKind::Type);
    assert_eq!(session.get(&get, &[text("two")]).unwrap_err().kind(), ErrorKind::Type);
    // No `int` is that large: the general path finds nothing.
    let far = block_on(session.run(&get, &[int(i64::MAX)]));
    assert_eq!(far.map(|r| r.rows()).unwrap_or(0), 0);
}

/// A parameter that the column's type would round or truncate is compared exactly.
#[test]
fn parameters_are_not_rounded_to_equality() {
    let db = memory().unwrap();
    let mut session = db.session();
    run(&mut session, "create table p (price decimal(10,2), d date, f float)").unwrap();
    run(&mut session, "insert into p values (1.01, '2026-01-02', 0.1)").unwrap();
    let day = 20_455 * 86_400_000_000;
    let ten = Value::Timestamp(day + 36_000_000_000);
    let exact = Value::Decimal { unscaled: 1005, scale: 3 };
    for (test, value, expected) in [
        ("d < ?", ten.clone(), 1),
        ("d = ?", ten.clone(), 0),
        ("d in (?)", ten.clone(), 0),
        ("d = ?", Value::Timestamp(day), 1),
        ("d = ?", text("2026-01-02"), 1),
        ("d = ?", text("2026-01-02 10:00:00"), 0),
        ("d < ?", text("2026-01-02T10:00:00Z"), 1),
        ("price = ?", text("1.01"), 1),
        ("price = ?", text("1.010"), 1),
        ("price = ?", text("1.005"), 0),
        ("price > ?", text("1.005"), 1),
        ("price = ?", exact.clone(), 0),
        ("price in (7, ?)", exact.clone(), 0),
        ("coalesce(null, price, ?) <> coalesce(?, price)", exact, 1),
        ("f = ?", Value::Float(0.1), 0),
        ("f = ?", Value::Float(0.1f32 as f64), 1),
    ] {
        let sql = format!("select count(*) from p where {test}");
        let values = vec![value.clone(); test.matches('?').count()];
        let result = block_on(session.execute(&sql, &values)).unwrap();
        assert_eq!(result.row(0), [int(expected)], "{test} {value}");
        let prepared = session.prepare(&sql).unwrap();
        assert_eq!(
            block_on(session.run(&prepared, &values)).unwrap().row(0),
            [int(expected)],
            "{test} {value}"
        );
    }
    let read = session.prepare("select count(*) from p where d = ?").unwrap();
    for (value, expected) in [(Value::Timestamp(day), 1), (ten, 0), (Value::Timestamp(day), 1)] {
        assert_eq!(block_on(session.run(&read, &[value])).unwrap().row(0), [int(expected)]);
    }
}

#[test]
fn writes_by_key() {
    let db = table();
    let mut session = db.session();
    let insert = session.prepare("insert into t (b, a, n) values (?, ?, ?)").unwrap();
    let update = session.prepare("update t set n = ? where b = ? and a = ?").unwrap();
    let delete = session.prepare("delete from t where b = ? and a = ?").unwrap();
    let mut go = |prepared, values: &[Value]| {
        block_on(session.run(prepared, values)).map(|r| r.rows_affected)
    };
    assert_eq!(go(&insert, &[text("z"), int(5), int(50)]).unwrap(), 1);
    assert_eq!(
        go(&insert, &[text("z"), int(5), int(51)]).unwrap_err().kind(),
        ErrorKind::Constraint
    );
    assert_eq!(
        go(&insert, &[Value::Null, int(5), int(51)]).unwrap_err().kind(),
        ErrorKind::Constraint
    );
    assert_eq!(go(&update, &[int(1), text("z"), int(5)]).unwrap(), 1);
    assert_eq!(go(&update, &[int(1), text("no row"), int(5)]).unwrap(), 0);
    assert_eq!(go(&delete, &[text("x"), int(1)]).unwrap(), 1);
    assert_eq!(go(&delete, &[text("x"), int(1)]).unwrap(), 0);
    assert_eq!(
        rows(&mut session, "select b, a, n from t order by b, a").unwrap(),
        ["x|2|20", "y|1|NULL", "z|5|1"]
    );
    run(&mut session, "optimize table t flush").unwrap();
    let mut go = |prepared, values: &[Value]| {
        block_on(session.run(prepared, values)).map(|r| r.rows_affected)
    };
    assert_eq!(go(&update, &[int(2), text("z"), int(5)]).unwrap(), 1);
    assert_eq!(go(&delete, &[text("y"), int(1)]).unwrap(), 1);
    assert_eq!(
        rows(&mut session, "select b, a, n from t order by b, a").unwrap(),
        ["x|2|20", "z|5|2"]
    );
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// Assignments read the old row, wherever it is stored.
#[test]
fn assignments_compute_from_the_row() {
    let db = memory().unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, x int, y decimal(10,2), s varchar(8))")
        .unwrap();
    run(&mut session, "insert into t values (1, 1, 0.50, 'a'), (2, null, 1.00, 'b')").unwrap();
    for flushed in [false, true] {
        if flushed {
            run(&mut session, "optimize table t flush").unwrap();
        }
        let statement = "update t set y = y + x, x = case when s like 'a%' then y else -x end, s = s || ? where id = ?";
        let update = session.prepare(statement).unwrap();
        for id in 1..=3 {
            let done = block_on(session.run(&update, &[text("!"), int(id)])).unwrap();
            assert_eq!(done.rows_affected, u64::from(id < 3));
        }
    }
    assert_eq!(
        rows(&mut session, "select * from t order by id").unwrap(),
        ["1|2|2.50|a!!", "2|NULL|NULL|b!!"]
    );
    let failing = session.prepare("update t set x = x + 2147483647 where id = ?").unwrap();
    assert_eq!(block_on(session.run(&failing, &[int(1)])).unwrap_err().sqlstate(), "22003");
    let longer = session.prepare("update t set s = s || 'too long' where id = ?").unwrap();
    let short = block_on(session.run(&longer, &[int(1)])).unwrap_err();
    let general =
        run(&mut session, "update t set s = s || 'too long' where id = 1 and x = 2").unwrap_err();
    assert_eq!((short.kind(), short.sqlstate()), (general.kind(), general.sqlstate()));
    assert_eq!(rows(&mut session, "select x, s from t where id = 1").unwrap(), ["2|a!!"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// A row that exists in every committed state must be found by every read, whatever is collected
/// concurrently.
#[test]
fn a_read_without_a_snapshot_never_misses_a_row() {
    let db = table();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = db.session();
            let update = session.prepare("update t set n = ? where b = 'x' and a = 2").unwrap();
            for n in 0..3_000 {
                block_on(session.run(&update, &[int(n)])).unwrap();
                if n % 500 == 0 {
                    run(&mut session, "optimize table t flush").unwrap();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut session = db.session();
        let get = session.prepare("select n from t where b = 'x' and a = 2").unwrap();
        let mut last = -1;
        while !stop.load(Ordering::Relaxed) {
            let row = session.get(&get, &[]).unwrap().expect("the row is always there");
            let Value::Int(n) = row[0] else { panic!("{row:?}") };
            assert!(n >= last || n == 20, "went back from {last} to {n}");
            last = if n == 20 { last } else { n };
        }
    });
}

#[test]
fn a_key_that_its_column_cannot_hold_is_no_row() {
    let db = memory().unwrap();
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key, n int)").unwrap();
    run(&mut session, "insert into t values (1, 10)").unwrap();
    let read = session.prepare("select n from t where id = ?").unwrap();
    for in_transaction in [false, true] {
        if in_transaction {
            run(&mut session, "begin").unwrap();
            run(&mut session, "insert into t values (2, 20)").unwrap();
        }
        for (key, row) in [
            (Value::Float(1.0), Some(vec![int(10)])),
            (Value::Float(1.5), None),
            (Value::Decimal { unscaled: 10, scale: 1 }, Some(vec![int(10)])),
            (Value::Null, None),
            (int(2), in_transaction.then(|| vec![int(20)])),
            (int(1), Some(vec![int(10)])),
        ] {
            let general =
                block_on(session.run(&read, std::slice::from_ref(&key))).unwrap().to_rows();
            assert_eq!(general.first(), row.as_ref(), "{key}");
            assert_eq!(session.get(&read, std::slice::from_ref(&key)).unwrap(), row, "{key}");
        }
    }
    assert!(session.in_transaction());
    // A value out of the parameter's own range is an error either way.
    let outside = [int(5_000_000_000)];
    assert_eq!(session.get(&read, &outside).unwrap_err().kind(), ErrorKind::Type);
    assert_eq!(block_on(session.run(&read, &outside)).unwrap_err().kind(), ErrorKind::Type);
    run(&mut session, "rollback; create table u (k varchar(3) primary key)").unwrap();
    let short = session.prepare("select k from u where k = ?").unwrap();
    assert_eq!(session.get(&short, &[text("far too long")]).unwrap(), None);
    let other = session.prepare("select n from t where n = ?").unwrap();
    assert_eq!(session.get(&other, &[int(10)]).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// A statement may end before it notices that it is cancelled. That never ends a later one, also not a
/// read by a key that is none any more.
#[test]
fn a_late_cancellation_ends_no_later_read() {
    let db = table();
    let mut session = db.session();
    let read = session.prepare("select n from t where b = ? and a = ?").unwrap();
    let key = [text("x"), int(1)];
    assert_eq!(session.get(&read, &key).unwrap(), Some(vec![int(10)]));
    run(&mut session, "drop table t; create table t (a int, b text, n bigint)").unwrap();
    run(&mut session, "insert into t values (1, 'x', 11), (2, 'x', 20)").unwrap();
    let cancel = session.cancel_flag();
    for _ in 0..2 {
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(session.get(&read, &key).unwrap(), Some(vec![int(11)]));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(block_on(session.get_async(&read, &key)).unwrap(), Some(vec![int(11)]));
    }
}
