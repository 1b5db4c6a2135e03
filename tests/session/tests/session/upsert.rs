//! Concurrent upserts: no increment is lost, no key is stored twice, and none fails with a
//! duplicate key.

use nacre_native::block_on;
use nacre_session_tests::{kind, memory, rows, run};
use nacredb::{ErrorKind, Value};

const THREADS: i64 = 4;
const ROUNDS: i64 = 300;
const KEYS: i64 = 7;

#[test]
fn threads_count_together() {
    let db = memory().unwrap();
    run(&mut db.session(), "create table t (k int primary key, n bigint not null)").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let db = &db;
            scope.spawn(move || {
                let mut session = db.session();
                let upsert = "insert into t values (?, 1) on conflict (k) do update set n = t.n + excluded.n";
                let upsert = session.prepare(upsert).unwrap();
                for round in 0..ROUNDS {
                    let key = Value::Int((round * (thread + 1)) % KEYS);
                    block_on(session.run(&upsert, &[key])).unwrap();
                    if round % 100 == 50 {
                        run(&mut session, "optimize table t flush").unwrap();
                    }
                }
            });
        }
    });
    let mut session = db.session();
    assert_eq!(
        rows(&mut session, "select sum(n), count(*) from t").unwrap(),
        [format!("{}|{KEYS}", THREADS * ROUNDS)]
    );
    run(&mut session, "optimize table t full").unwrap();
    assert_eq!(
        rows(&mut session, "select sum(n), count(*) from t").unwrap(),
        [format!("{}|{KEYS}", THREADS * ROUNDS)]
    );
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn inside_a_transaction_a_faster_one_is_a_conflict() {
    for place in ["select 1", "optimize table t flush"] {
        let db = memory().unwrap();
        let (mut a, mut b) = (db.session(), db.session());
        run(&mut a, "create table t (k int primary key, n int); insert into t values (1, 1)")
            .unwrap();
        run(&mut a, place).unwrap();
        run(&mut a, "begin; select * from t").unwrap();
        run(&mut b, "insert into t values (2, 2)").unwrap();
        run(&mut b, "update t set n = 5 where k = 1").unwrap();
        run(&mut b, place).unwrap();
        let upsert = |k: i32| {
            format!("insert into t values ({k}, 9) on conflict (k) do update set n = t.n + 1")
        };
        assert_eq!(
            kind(&mut a, &upsert(2)),
            Some(ErrorKind::Conflict),
            "{place}: a key this snapshot does not see"
        );
        assert_eq!(
            kind(&mut a, &upsert(1)),
            Some(ErrorKind::Conflict),
            "{place}: a row changed since"
        );
        run(&mut a, "rollback").unwrap();
        run(&mut a, &upsert(1)).unwrap();
        run(&mut a, &upsert(2)).unwrap();
        assert_eq!(rows(&mut b, "select * from t order by k").unwrap(), ["1|6", "2|3"]);
    }
}

#[test]
fn a_unique_value_of_a_row_deleted_since_is_a_conflict() {
    for place in ["select 1", "optimize table t flush"] {
        let db = memory().unwrap();
        let (mut a, mut b) = (db.session(), db.session());
        run(&mut a, "create table t (k int primary key, v int, s text, unique (v), unique (s), unique (s, v))")
            .unwrap();
        run(&mut a, "insert into t values (52, 2, 'mother')").unwrap();
        run(&mut a, place).unwrap();
        run(&mut a, "begin").unwrap();
        run(&mut b, "delete from t where k = 52").unwrap();
        let upsert = "insert into t (k, v, s) values (287, -76, 'mother') on duplicate key update v = v + values(v)";
        assert_eq!(kind(&mut a, upsert), Some(ErrorKind::Conflict), "{place}");
        run(&mut a, "rollback").unwrap();
        run(&mut a, upsert).unwrap();
        assert_eq!(rows(&mut b, "select * from t order by k").unwrap(), ["287|-76|mother"]);
    }
}

#[test]
fn only_the_first_row_that_is_met_is_written() {
    let db = memory().unwrap();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "create table t (k int primary key, v int, unique (v)); insert into t values (1, 1), (2, 2)").unwrap();
    run(&mut a, "begin").unwrap();
    run(&mut b, "delete from t where k = 2").unwrap();
    run(&mut a, "insert into t values (1, 2) on duplicate key update v = v + 10").unwrap();
    run(&mut a, "commit").unwrap();
    assert_eq!(rows(&mut b, "select * from t").unwrap(), ["1|11"]);
}
