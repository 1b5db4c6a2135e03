//! `ALTER TABLE` and `TRUNCATE` concurrent with other transactions, prepared statements and bulk
//! loads.

use nacre_native::block_on;
use nacre_session_tests::{Folder, blocked, folder, kind, memory, rows, run};
use nacredb::{Batch, DataType, Database, ErrorKind, OnDuplicate, Value, Vector};
use std::sync::Arc;

fn opened() -> Database {
    let db = memory().unwrap();
    run(
        &mut db.session(),
        "create table t (id int primary key, n int); insert into t values (1, 10), (2, 20)",
    )
    .unwrap();
    db
}

#[test]
fn an_old_snapshot_keeps_its_schema_and_its_rows() {
    for flush in [false, true] {
        let db = opened();
        let (mut old, mut s) = (db.session(), db.session());
        if flush {
            run(&mut s, "optimize table t flush").unwrap();
        }
        run(&mut old, "begin").unwrap();
        assert_eq!(rows(&mut old, "select * from t order by id").unwrap(), ["1|10", "2|20"]);
        run(&mut s, "alter table t add column c int default 5, rename column n to m; insert into t values (3, 30, 6)")
            .unwrap();
        assert_eq!(rows(&mut old, "select id, n from t order by id").unwrap(), ["1|10", "2|20"]);
        assert_eq!(kind(&mut old, "select m from t"), Some(ErrorKind::NotFound));
        run(&mut s, "truncate table t; insert into t values (9, 9, 9)").unwrap();
        run(&mut s, "alter table t rename to u; optimize table u full").unwrap();
        assert_eq!(rows(&mut old, "select * from t order by id").unwrap(), ["1|10", "2|20"]);
        assert_eq!(rows(&mut old, "select n from t where id = 2").unwrap(), ["20"]);
        assert_eq!(kind(&mut old, "select * from u"), Some(ErrorKind::NotFound));
        assert_eq!(kind(&mut old, "update t set n = 0"), Some(ErrorKind::Conflict));
        run(&mut old, "rollback").unwrap();
        assert_eq!(rows(&mut old, "select * from u").unwrap(), ["9|9|9"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn who_wrote_before_the_change_conflicts_with_it() {
    for change in
        ["alter table t add column c int", "truncate table t", "alter table t rename to u"]
    {
        let db = opened();
        let (mut writer, mut s) = (db.session(), db.session());
        run(&mut writer, "begin; update t set n = 11 where id = 1; insert into t values (3, 30)")
            .unwrap();
        run(&mut s, change).unwrap();
        assert_eq!(kind(&mut writer, "commit"), Some(ErrorKind::Conflict), "{change}");
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
        // Another transaction can lock the rows that the writer had locked.
        run(&mut s, "alter table if exists u rename to t; delete from t").unwrap();
        assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["0"]);
    }
}

#[test]
fn prepared_statements_bind_again() {
    let db = opened();
    let (mut a, mut b) = (db.session(), db.session());
    let all = a.prepare("select * from t where id = ?").unwrap();
    let insert = a.prepare("insert into t values (?, 7)").unwrap();
    assert_eq!(
        block_on(a.run(&all, &[Value::Int(1)])).unwrap().row(0),
        [Value::Int(1), Value::Int(10)]
    );
    run(&mut b, "alter table t add column c int default 3").unwrap();
    assert_eq!(
        block_on(a.run(&all, &[Value::Int(1)])).unwrap().row(0),
        [Value::Int(1), Value::Int(10), Value::Int(3)]
    );
    assert_eq!(block_on(a.run(&insert, &[Value::Int(5)])).unwrap_err().kind(), ErrorKind::Syntax);
    run(&mut b, "alter table t drop column n").unwrap();
    block_on(a.run(&insert, &[Value::Int(5)])).unwrap();
    assert_eq!(rows(&mut b, "select * from t order by id").unwrap(), ["1|3", "2|3", "5|7"]);
    assert_eq!(
        rows(&mut b, "show create table t").unwrap(),
        [
            "t|CREATE TABLE \"t\" (\n  \"id\" INT NOT NULL,\n  \"c\" INT DEFAULT 3,\n  PRIMARY KEY (\"id\")\n)"
        ]
    );
}

fn batch(columns: &[&[i64]]) -> Batch {
    let vector = |values: &&[i64]| {
        let values: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
        Arc::new(Vector::from_values(DataType::Int32, &values))
    };
    Batch::new(columns.iter().map(vector).collect(), columns[0].len())
}

#[test]
fn a_bulk_load_has_the_schema_it_began_with_or_conflicts() {
    let db = opened();
    let (mut a, mut s) = (db.session(), db.session());
    let mut load = block_on(a.appender("t", OnDuplicate::Error)).unwrap();
    load.append(&batch(&[&[5, 6], &[50, 60]])).unwrap();
    run(&mut s, "alter table t add column c int default 3").unwrap();
    assert_eq!(block_on(load.finish()).unwrap_err().kind(), ErrorKind::Conflict);
    let mut load = block_on(a.appender("t", OnDuplicate::Error)).unwrap();
    assert_eq!(load.append(&batch(&[&[5, 6], &[50, 60]])).unwrap_err().kind(), ErrorKind::Type);
    load.append(&batch(&[&[5, 6], &[50, 60], &[1, 2]])).unwrap();
    block_on(load.finish()).unwrap();
    run(&mut s, "alter table t drop column n").unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|3", "2|3", "5|1", "6|2"]);
    let arrow = run(&mut s, "select * from t").unwrap().arrow_schema();
    assert_eq!(arrow.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["id", "c"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_load_takes_no_notice_of_an_index_that_is_not_committed() {
    let db = opened();
    let (mut a, mut s) = (db.session(), db.session());
    let mut load = block_on(a.appender("t", OnDuplicate::Skip)).unwrap();
    load.append(&batch(&[&[5, 6], &[50, 60]])).unwrap();
    run(&mut s, "begin; alter table t add unique u (n); insert into t values (7, 70)").unwrap();
    assert_eq!(block_on(load.finish()).unwrap(), 2);
    run(&mut s, "rollback").unwrap();
    // The index knows the rows that were loaded before its commit.
    run(&mut s, "begin; alter table t add unique u (n); insert into t values (7, 70)").unwrap();
    let mut load = block_on(a.appender("t", OnDuplicate::Skip)).unwrap();
    load.append(&batch(&[&[8, 9], &[80, 80]])).unwrap();
    assert_eq!(block_on(load.finish()).unwrap(), 2);
    assert_eq!(kind(&mut s, "commit"), Some(ErrorKind::Constraint));
    assert_eq!(
        rows(&mut s, "select id from t order by id").unwrap(),
        ["1", "2", "5", "6", "8", "9"]
    );
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn changes_survive_a_restart_and_leave_no_files() {
    let home = Folder::new("alter");
    {
        let db = folder(home.path()).unwrap();
        let mut s = db.session();
        run(&mut s, "create table t (id int primary key, n int, gone text)").unwrap();
        run(&mut s, "insert into t values (1, 10, 'x'), (2, 20, 'y'); optimize table t flush")
            .unwrap();
        run(&mut s, "insert into t values (3, 30, 'z'); alter table t drop column gone").unwrap();
        run(&mut s, "alter table t add column c int default 4; insert into t values (4, 40, 5)")
            .unwrap();
        run(
            &mut s,
            "create table e (a int); insert into e values (1); optimize table e flush; insert into e values (2)",
        )
        .unwrap();
        run(&mut s, "truncate table e; insert into e values (3)").unwrap();
        assert_eq!(home.files("seg-").len(), 1, "the emptied table's file is gone");
        // Dropped without closing, so that the log is replayed.
    }
    for _ in 0..2 {
        let db = folder(home.path()).unwrap();
        let mut s = db.session();
        assert_eq!(
            rows(&mut s, "select * from t order by id").unwrap(),
            ["1|10|4", "2|20|4", "3|30|4", "4|40|5"]
        );
        assert_eq!(rows(&mut s, "select * from e").unwrap(), ["3"]);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
    let db = folder(home.path()).unwrap();
    let mut s = db.session();
    run(&mut s, "alter table t add column gone int").unwrap();
    assert_eq!(
        rows(&mut s, "select gone from t where id = 1").unwrap(),
        ["NULL"],
        "not the dropped column's text"
    );
}

#[test]
fn an_old_snapshot_finds_its_table_though_another_has_its_name() {
    for to in ["a", "u"] {
        for flush in [false, true] {
            let db = opened();
            let (mut old, mut s) = (db.session(), db.session());
            if flush {
                run(&mut s, "optimize table t flush").unwrap();
            }
            run(&mut old, "begin").unwrap();
            run(
                &mut s,
                &format!(
                    "alter table t rename to {to}; create table t (id int primary key, n int)"
                ),
            )
            .unwrap();
            run(&mut s, "insert into t values (7, 70); create table v (id int primary key); alter table v rename to w")
                .unwrap();
            assert_eq!(
                rows(&mut old, "select * from t order by id").unwrap(),
                ["1|10", "2|20"],
                "{to}"
            );
            assert_eq!(rows(&mut old, "select n from t where id = 2").unwrap(), ["20"], "{to}");
            assert_eq!(kind(&mut old, &format!("select * from {to}")), Some(ErrorKind::NotFound));
            // A table created later does not exist yet.
            for name in ["w", "v"] {
                let sql = format!("select * from {name}");
                assert_eq!(kind(&mut old, &sql), Some(ErrorKind::NotFound));
                let sql = format!("insert into {name} values (1)");
                assert_eq!(kind(&mut old, &sql), Some(ErrorKind::NotFound));
            }
            assert_eq!(kind(&mut old, "update t set n = 0"), Some(ErrorKind::Conflict));
            run(&mut old, "rollback").unwrap();
            assert_eq!(rows(&mut old, "select * from t").unwrap(), ["7|70"]);
            assert_eq!(
                rows(&mut old, &format!("select * from {to} order by id")).unwrap(),
                ["1|10", "2|20"]
            );
        }
    }
}

#[test]
fn a_statement_that_waited_looks_its_table_up_again() {
    let waits = |taken: &str, explicit: bool| {
        let db = opened();
        let (mut holder, mut waiter, mut s) = (db.session(), db.session(), db.session());
        run(&mut holder, "begin; update t set n = 11 where id = 1").unwrap();
        if explicit {
            run(&mut waiter, "begin; select * from t").unwrap();
        }
        let waited = blocked(&mut waiter, "update t set n = n + 1 where id = 1", || {
            run(&mut s, &format!("{taken}; create table t (id int primary key, n int)")).unwrap();
            run(&mut s, "insert into t values (1, 100)").unwrap();
            run(&mut holder, "rollback").unwrap();
        });
        (db, waited)
    };
    let (db, waited) = waits("alter table t rename to u", false);
    assert_eq!(waited, Ok(1));
    assert_eq!(rows(&mut db.session(), "select * from t").unwrap(), ["1|101"]);
    assert_eq!(rows(&mut db.session(), "select * from u order by id").unwrap(), ["1|10", "2|20"]);
    let (db, waited) = waits("drop table t", false);
    assert_eq!(waited, Ok(1));
    assert_eq!(rows(&mut db.session(), "select * from t").unwrap(), ["1|101"]);
    // An open transaction sees the table that was dropped, and cannot write to it.
    let (db, waited) = waits("drop table t", true);
    assert_eq!(waited, Err(ErrorKind::Conflict));
    assert_eq!(rows(&mut db.session(), "select * from t").unwrap(), ["1|100"]);
    assert_eq!(waits("alter table t rename to u", true).1, Err(ErrorKind::Conflict));
}

#[test]
fn an_upsert_that_waited_knows_the_unique_keys_there_are_now() {
    for (made, now) in [
        ("create unique index i on t (n)", ["2|20", "5|10"].as_slice()),
        ("drop index u on t", &["1|10", "2|20", "5|10"]),
    ] {
        let db = opened();
        let (mut holder, mut waiter, mut s) = (db.session(), db.session(), db.session());
        if made.starts_with("drop") {
            run(&mut s, "create unique index u on t (n)").unwrap();
        }
        run(&mut holder, "begin; insert into t values (5, 50)").unwrap();
        let waited = blocked(&mut waiter, "replace into t values (5, 10)", || {
            run(&mut s, made).unwrap();
            run(&mut holder, "rollback").unwrap();
        });
        assert_eq!(waited, Ok(1), "{made}");
        assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), now, "{made}");
    }
}

#[test]
fn a_write_to_a_table_that_was_truncated_and_dropped_is_a_conflict() {
    let db = opened();
    let (mut holder, mut waiter, mut s) = (db.session(), db.session(), db.session());
    run(&mut holder, "begin; update t set n = 11 where id = 1").unwrap();
    run(&mut waiter, "begin").unwrap();
    let waited = blocked(&mut waiter, "delete from t where id = 1", || {
        run(&mut s, "truncate table t; drop table t").unwrap();
        run(&mut holder, "rollback").unwrap();
    });
    assert_eq!(waited, Err(ErrorKind::Conflict));
    assert_eq!(kind(&mut waiter, "delete from t where id = 1"), Some(ErrorKind::Conflict));
    run(&mut waiter, "rollback").unwrap();
    assert_eq!(kind(&mut waiter, "delete from t where id = 1"), Some(ErrorKind::NotFound));
}

#[test]
fn columns_of_segments_that_are_none_of_the_table_are_said_to_be_what_they_are() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(
        &mut s,
        "create table t (k int primary key, a int, gone int, sort key (a), key i (a)); create table heap (a int)",
    )
    .unwrap();
    run(&mut s, "insert into t values (1, 2, 3), (2, 1, 4); insert into heap values (1)").unwrap();
    run(
        &mut s,
        "optimize table t flush; optimize table heap flush; alter table t drop column gone",
    )
    .unwrap();
    let names = |table: &str| -> Vec<String> {
        let reports = db.inspect().unwrap();
        let segments = reports.into_iter().find(|t| t.name == table).unwrap().segments;
        let mut names: Vec<String> =
            segments.into_iter().flat_map(|s| s.columns).map(|c| c.name).collect();
        names.dedup();
        names
    };
    assert_eq!(names("t"), ["k", "a", "(dropped)", "(key order)", "(index)"]);
    assert_eq!(names("heap"), ["a", "(row number)"]);
}
