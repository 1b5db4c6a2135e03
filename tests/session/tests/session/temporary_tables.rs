//! Temporary tables: of one session, in memory, hiding others of their name.

use nacre_session_tests::{Folder, folder, kind, memory, rows, run};
use nacredb::{Database, ErrorKind};

const NONE: Vec<String> = Vec::new();

fn check(db: &Database) {
    assert_eq!(db.check().unwrap(), NONE);
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    assert_eq!(db.check().unwrap(), NONE);
}

#[test]
fn a_temporary_table_is_of_its_session_and_hides_others() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut other, "create table t (id int primary key, n int); insert into t values (1, 10)")
        .unwrap();
    let get = s.prepare("select n from t where id = 1").unwrap();
    run(&mut s, "create temporary table t (id int primary key, n text, key (n))").unwrap();
    run(
        &mut s,
        "insert into t values (1, 'mine'), (2, 'too'); update t set n = 'still' where id = 1",
    )
    .unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|still", "2|too"]);
    assert_eq!(rows(&mut s, "select id from t where n = 'too'").unwrap(), ["2"]);
    for _ in 0..2 {
        assert_eq!(s.get(&get, &[]).unwrap().unwrap()[0].to_string(), "still");
        assert_eq!(other.get(&get, &[]).unwrap().unwrap()[0].to_string(), "10");
        assert_eq!(rows(&mut other, "select * from t").unwrap(), ["1|10"]);
    }
    assert_eq!(kind(&mut s, "insert into t values (1, 'again')"), Some(ErrorKind::Constraint));
    assert_eq!(kind(&mut s, "create temp table t (x int)"), Some(ErrorKind::AlreadyExists));
    run(&mut s, "create temp table if not exists t (x int)").unwrap();
    run(&mut other, "create temp table t (x int); insert into t values (7)").unwrap();
    assert_eq!(rows(&mut other, "select * from t").unwrap(), ["7"]);
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["t"]);
    run(&mut s, "drop table t").unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1|10"]);
    assert_eq!(s.get(&get, &[]).unwrap().unwrap()[0].to_string(), "10");
    run(&mut s, "insert into t values (2, 20)").unwrap();
    drop(other);
    assert_eq!(rows(&mut db.session(), "select * from t order by id").unwrap(), ["1|10", "2|20"]);
    check(&db);
}

#[test]
fn it_is_changed_in_transactions_with_other_tables() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table p (id int primary key); create temp table t (id int)").unwrap();
    for end in ["rollback", "commit"] {
        run(&mut s, "begin; insert into t values (1), (2); insert into p values (1)").unwrap();
        run(&mut s, "create temp table u as select id * 10 as ten from t").unwrap();
        run(&mut s, "savepoint a; truncate t; alter table t rename to w; drop table u").unwrap();
        assert_eq!(kind(&mut s, "select * from t"), Some(ErrorKind::NotFound));
        assert_eq!(rows(&mut s, "select * from w").unwrap(), NONE);
        run(&mut s, "rollback to a; delete from t where id = 1").unwrap();
        assert_eq!(rows(&mut s, "select * from u order by 1").unwrap(), ["10", "20"]);
        run(&mut s, end).unwrap();
        assert_eq!(rows(&mut other, "show tables").unwrap(), ["p"]);
        if end == "rollback" {
            assert_eq!(rows(&mut s, "select * from t").unwrap(), NONE);
            assert_eq!(kind(&mut s, "select * from u"), Some(ErrorKind::NotFound));
            assert_eq!(rows(&mut other, "select * from p").unwrap(), NONE);
        }
    }
    assert_eq!(rows(&mut s, "select t.id, ten from t, u order by ten").unwrap(), ["2|10", "2|20"]);
    assert_eq!(rows(&mut other, "select * from p").unwrap(), ["1"]);
    run(&mut s, "create unique index i on t (id); alter table t add column n int default 5")
        .unwrap();
    assert_eq!(kind(&mut s, "insert into t values (2, 0)"), Some(ErrorKind::Constraint));
    run(&mut s, "alter table t rename to w; alter table u rename to t; alter table w rename to u")
        .unwrap();
    assert_eq!(rows(&mut s, "select * from u").unwrap(), ["2|5"]);
    assert_eq!(rows(&mut s, "select * from t order by 1").unwrap(), ["10", "20"]);
    run(&mut s, "create or replace temp table t (x int); truncate table u").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from t, u").unwrap(), ["0"]);
    assert_eq!(kind(&mut s, "optimize table t"), Some(ErrorKind::Unsupported));
    check(&db);
}

#[test]
fn many_rows_stay_in_memory() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table p (id int primary key, n int)").unwrap();
    run(&mut s, "insert into p select v, v from range(80000) r (v)").unwrap();
    run(&mut s, "create temp table t as select * from p").unwrap();
    run(&mut s, "update t set n = n + 1; delete from t where id >= 70000").unwrap();
    assert_eq!(rows(&mut s, "select count(*), sum(n) from t").unwrap(), ["70000|2450035000"]);
    run(&mut s, "insert into t select id + 100000, n from p").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["150000"]);
    let merged = "merge into t using p on t.id = p.id when matched then delete \
                  when not matched then insert values (p.id, 0)";
    run(&mut s, merged).unwrap();
    assert_eq!(rows(&mut s, "select count(*) from t where id < 100000").unwrap(), ["10000"]);
    let mut rows_of = s;
    let mut stream = nacre_native::block_on(rows_of.stream("select count(*) from t", &[])).unwrap();
    run(&mut rows_of, "drop table t").unwrap();
    let batch = nacre_native::block_on(stream.next()).unwrap();
    assert!(batch.is_some(), "the stream ends with its table");
    drop(stream);
    check(&db);
}

#[test]
fn nothing_of_it_is_there_after_a_restart() {
    let place = Folder::new("temporary_tables");
    {
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        run(
            &mut s,
            "create table p (id int primary key); create temp table t (id int primary key)",
        )
        .unwrap();
        run(&mut s, "insert into t values (1); insert into p values (1)").unwrap();
        run(&mut s, "begin; insert into t values (2); insert into p values (2); commit").unwrap();
        run(&mut s, "insert into t values (3); update t set id = 9 where id = 1").unwrap();
        run(&mut s, "insert into p values (3)").unwrap();
        assert_eq!(rows(&mut s, "select id from t order by id").unwrap(), ["2", "3", "9"]);
        db.flush().unwrap();
    }
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["p"]);
    assert_eq!(rows(&mut s, "select * from p order by id").unwrap(), ["1", "2", "3"]);
    assert_eq!(kind(&mut s, "select * from t"), Some(ErrorKind::NotFound));
    run(&mut s, "insert into p values (4)").unwrap();
    check(&db);
}
