//! `CREATE INDEX` and `DROP INDEX` while other transactions write to the table.

use nacre_session_tests::{kind, memory, rows, run};
use nacredb::{Database, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

fn opened() -> Database {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int, m int, key by_m (m))").unwrap();
    run(&mut s, "insert into t values (1, 10, 1), (2, 20, 2), (3, 30, 3)").unwrap();
    run(&mut s, "optimize table t flush; insert into t values (4, 40, 4), (5, 50, 5)").unwrap();
    db
}

fn check(db: &Database) {
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn open_writers_commit_and_the_index_has_their_rows() {
    for change in ["create index i on t (n)", "drop index by_m on t"] {
        let db = opened();
        let (mut writer, mut s) = (db.session(), db.session());
        run(&mut writer, "begin; insert into t values (6, 60, 6)").unwrap();
        run(&mut writer, "update t set n = 11 where id = 1; update t set n = 41 where id = 4")
            .unwrap();
        run(&mut s, change).unwrap();
        // Rows of segments move to memory for all, those written before and after.
        run(&mut writer, "insert into t values (7, 70, 7); update t set n = 21 where id = 2")
            .unwrap();
        run(&mut writer, "delete from t where id = 5; update t set m = 9 where id = 3").unwrap();
        run(&mut writer, "savepoint p; update t set n = 0; rollback to p").unwrap();
        assert_eq!(rows(&mut writer, "select id from t where n = 21").unwrap(), ["2"]);
        run(&mut writer, "commit").unwrap();
        for flush in [false, true] {
            if flush {
                run(&mut s, "optimize table t flush").unwrap();
            }
            for (n, id) in [(11, 1), (21, 2), (30, 3), (41, 4), (60, 6), (70, 7)] {
                let found = rows(&mut s, &format!("select id from t where n = {n}")).unwrap();
                assert_eq!(found, [id.to_string()], "{change}, {n}");
            }
            for n in [10, 20, 40, 50, 0] {
                let found = rows(&mut s, &format!("select id from t where n = {n}")).unwrap();
                assert_eq!(found, Vec::<String>::new(), "{change}, {n}");
            }
            assert_eq!(rows(&mut s, "select id from t where m = 9").unwrap(), ["3"]);
            check(&db);
        }
    }
}

#[test]
fn many_rows_of_an_open_writer_are_in_a_new_index() {
    let db = opened();
    let (mut writer, mut s) = (db.session(), db.session());
    run(&mut writer, "begin; delete from t where id < 3").unwrap();
    run(&mut writer, "insert into t select v + 100, v, 0 from range(70000) r (v)").unwrap();
    run(&mut s, "create index i on t (n)").unwrap();
    run(&mut writer, "commit").unwrap();
    assert_eq!(rows(&mut s, "select id from t where n = 69000").unwrap(), ["69100"]);
    check(&db);
    assert_eq!(rows(&mut s, "select id from t where n = 69000").unwrap(), ["69100"]);
}

#[test]
fn a_unique_index_and_another_change_are_conflicts_for_open_writers() {
    for change in [
        "create unique index i on t (n)",
        "create index i on t (n); alter table t add column c int",
        "create index i on t (n); truncate table t",
        "create index i on t (n); drop table t",
        "create unique index i on t (n); drop index i on t",
        "alter table t rename to u; alter table u rename to t",
        "alter table t rename column n to o; alter table t rename column o to n",
    ] {
        let db = opened();
        let (mut writer, mut s) = (db.session(), db.session());
        run(&mut writer, "begin; insert into t values (6, 60, 6)").unwrap();
        run(&mut s, change).unwrap();
        let insert = "insert into t values (7, 70, 7)";
        assert_eq!(kind(&mut writer, insert), Some(ErrorKind::Conflict), "{change}");
        assert_eq!(kind(&mut writer, "commit"), Some(ErrorKind::Conflict), "{change}");
        check(&db);
    }
}

/// Rules and unique values of all rows hold although threads write to the table meanwhile. Writers
/// that began before such a change try again.
#[test]
fn rules_are_verified_beside_writers() {
    let db = opened();
    let mut s = db.session();
    run(&mut s, "insert into t select v + 100, v + 100, v from range(20000) r (v)").unwrap();
    run(&mut s, "create table u (id int primary key)").unwrap();
    let ends = AtomicBool::new(false);
    let changes = [
        ("create unique index one on t (n)", "drop index one on t"),
        ("alter table t add constraint c check (m >= 0)", "alter table t drop constraint c"),
    ];
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, ends) = (&db, &ends);
            scope.spawn(move || {
                let mut writer = db.session();
                for round in 0.. {
                    let id = 1_000_000 * (thread + 1) + round;
                    // Each write of a value that a rule forbids is taken back in the same transaction.
                    let sql = format!(
                        "begin; insert into t values ({id}, {id}, -1); \
                         update t set m = {round} where id = {id}; \
                         insert into u values ({id}); commit"
                    );
                    let refused = match run(&mut writer, &sql) {
                        Ok(_) => None,
                        Err(error) => {
                            run(&mut writer, "rollback").ok();
                            Some(error.kind())
                        }
                    };
                    let expected = [None, Some(ErrorKind::Conflict), Some(ErrorKind::Constraint)];
                    assert!(expected.contains(&refused), "{refused:?}");
                    if ends.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        for round in 0..6 {
            let (change, back) = changes[round % 2];
            run(&mut s, change).unwrap();
            let bad = "select count(*) from t where m < 0";
            assert_eq!(rows(&mut s, bad).unwrap(), ["0"]);
            if round % 2 == 0 {
                run(&mut s, "optimize table t flush").unwrap();
            }
            run(&mut s, back).unwrap();
        }
        ends.store(true, Ordering::SeqCst);
    });
    check(&db);
    run(&mut s, "insert into t values (90000, 100, 1)").unwrap();
    let twice = "create unique index one on t (n)";
    assert_eq!(kind(&mut s, twice), Some(ErrorKind::Constraint));
    assert_eq!(kind(&mut s, "alter table t add check (m > 0)"), Some(ErrorKind::Constraint));
    check(&db);
}
