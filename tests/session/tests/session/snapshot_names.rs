//! Names of tables and views in a transaction stand for what they stood for when it began.

use nacre_session_tests::{kind, memory, rows, run};
use nacredb::ErrorKind;

#[test]
fn a_dropped_table_stays_readable_for_older_snapshots() {
    for flush in [false, true] {
        let db = memory().unwrap();
        let (mut old, mut s) = (db.session(), db.session());
        run(&mut s, "create table t (id int primary key, n int, key (n))").unwrap();
        run(&mut s, "insert into t values (1, 10), (2, 20)").unwrap();
        if flush {
            run(&mut s, "optimize table t flush").unwrap();
        }
        run(&mut old, "begin; select * from t").unwrap();
        run(&mut s, "delete from t where id = 2; drop table t").unwrap();
        run(&mut s, "create table t (name text); insert into t values ('new')").unwrap();
        for _ in 0..20 {
            db.maintain(nacredb::Budget::Steps(100)).unwrap();
        }
        assert_eq!(rows(&mut old, "select * from t order by id").unwrap(), ["1|10", "2|20"]);
        assert_eq!(rows(&mut old, "select n from t where id = 2").unwrap(), ["20"]);
        assert_eq!(rows(&mut old, "select id from t where n = 20").unwrap(), ["2"]);
        assert_eq!(kind(&mut old, "select name from t"), Some(ErrorKind::NotFound));
        for write in ["insert into t values (3, 30)", "delete from t", "update t set n = 0"] {
            assert_eq!(kind(&mut old, write), Some(ErrorKind::Conflict), "{write}");
        }
        run(&mut old, "commit").unwrap();
        assert_eq!(rows(&mut old, "select * from t").unwrap(), ["new"]);
        db.maintain(nacredb::Budget::Steps(100)).unwrap();
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_table_created_later_has_no_name_yet() {
    let db = memory().unwrap();
    let (mut old, mut s) = (db.session(), db.session());
    run(&mut old, "begin").unwrap();
    run(&mut s, "create table t (id int primary key); insert into t values (1)").unwrap();
    run(&mut s, "create table u as select * from t").unwrap();
    for name in ["t", "u"] {
        assert_eq!(kind(&mut old, &format!("select * from {name}")), Some(ErrorKind::NotFound));
        let write = format!("insert into {name} values (2)");
        assert_eq!(kind(&mut old, &write), Some(ErrorKind::NotFound));
    }
    assert_eq!(rows(&mut old, "show tables").unwrap(), Vec::<String>::new());
    run(&mut old, "commit").unwrap();
    assert_eq!(rows(&mut old, "show tables").unwrap(), ["t", "u"]);
}

#[test]
fn a_view_is_the_one_of_the_snapshot() {
    let db = memory().unwrap();
    let (mut old, mut s) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key); insert into t values (1), (2)").unwrap();
    run(&mut s, "create view v as select id from t where id = 1").unwrap();
    run(&mut s, "create view gone as select 7 as seven").unwrap();
    run(&mut old, "begin").unwrap();
    run(&mut s, "create or replace view v as select id from t where id = 2").unwrap();
    run(&mut s, "drop view gone; create table gone (id int); create view later as select 1 as one")
        .unwrap();
    assert_eq!(rows(&mut old, "select * from v").unwrap(), ["1"]);
    assert_eq!(rows(&mut old, "select * from gone").unwrap(), ["7"]);
    assert_eq!(kind(&mut old, "select * from later"), Some(ErrorKind::NotFound));
    assert_eq!(rows(&mut old, "show views").unwrap(), ["gone", "v"]);
    run(&mut s, "drop view v; drop table t").unwrap();
    assert_eq!(rows(&mut old, "select * from v").unwrap(), ["1"]);
    assert_eq!(kind(&mut s, "select * from v"), Some(ErrorKind::NotFound));
    run(&mut old, "commit").unwrap();
    assert_eq!(rows(&mut old, "show views").unwrap(), ["later"]);
}

#[test]
fn a_prepared_statement_follows_the_snapshot_of_its_session() {
    let db = memory().unwrap();
    let (mut old, mut s) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 10)")
        .unwrap();
    let get = old.prepare("select n from t where id = 1").unwrap();
    let got = |session: &mut nacredb::Session| session.get(&get, &[]).unwrap().unwrap()[0].clone();
    run(&mut old, "begin").unwrap();
    run(&mut s, "drop table t; create table t (n int, id int primary key)").unwrap();
    run(&mut s, "insert into t values (100, 1)").unwrap();
    for _ in 0..3 {
        assert_eq!(got(&mut old).to_string(), "10");
        assert_eq!(got(&mut s).to_string(), "100");
    }
    run(&mut old, "commit").unwrap();
    assert_eq!(got(&mut old).to_string(), "100");
}
