//! Changes of the catalog in transactions: visible to the transaction, to others once it has
//! committed, and undone with it.

use nacre_session_tests::{Folder, folder, kind, memory, rows, run};
use nacredb::{Database, ErrorKind};

const NONE: [&str; 0] = [];

/// The tables and views that a new session sees.
fn names(db: &Database) -> Vec<String> {
    let mut session = db.session();
    let mut names = rows(&mut session, "show tables").unwrap();
    names.extend(rows(&mut session, "show views").unwrap());
    names
}

fn check(db: &Database) {
    assert_eq!(db.check().unwrap(), NONE);
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    assert_eq!(db.check().unwrap(), NONE);
}

#[test]
fn a_created_table_is_used_in_its_transaction_and_seen_by_others_after_it() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "begin").unwrap();
    run(&mut s, "create table t (id int primary key, n int, name text, key by_n (n))").unwrap();
    run(&mut s, "insert into t values (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')").unwrap();
    run(&mut s, "update t set n = 21 where id = 2; delete from t where id = 3").unwrap();
    run(&mut s, "create index by_name on t (name)").unwrap();
    run(&mut s, "insert into t values (4, 40, 'd') on conflict (id) do update set n = 0").unwrap();
    run(&mut s, "insert into t values (4, 40, 'd') on conflict (id) do update set n = 41").unwrap();
    let all = ["1|10|a", "2|21|b", "4|41|d"];
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), all);
    assert_eq!(rows(&mut s, "select id from t where n = 21").unwrap(), ["2"]);
    assert_eq!(rows(&mut s, "select id from t where name = 'd'").unwrap(), ["4"]);
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["t"]);
    assert_eq!(kind(&mut s, "insert into t values (1, 0, '')"), Some(ErrorKind::Constraint));
    assert_eq!(kind(&mut s, "create table t (id int)"), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(&mut other, "select * from t"), Some(ErrorKind::NotFound));
    assert_eq!(names(&db), NONE);
    check(&db);
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut other, "select * from t order by id").unwrap(), all);
    assert_eq!(rows(&mut other, "select id from t where name = 'd'").unwrap(), ["4"]);
    run(&mut other, "insert into t values (5, 50, 'e'); optimize table t flush").unwrap();
    assert_eq!(rows(&mut other, "select id from t where n > 40 order by id").unwrap(), ["4", "5"]);
    check(&db);
}

#[test]
fn a_rollback_undoes_every_change() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key); insert into t values (1)").unwrap();
    run(&mut s, "create view v as select id from t").unwrap();
    run(&mut s, "begin; create table u (id int primary key, n int); insert into u values (1, 2)")
        .unwrap();
    run(&mut s, "create view w as select n from u; drop view v; drop table t").unwrap();
    run(&mut s, "create table t (other text); insert into t values ('x')").unwrap();
    run(&mut s, "create view v as select other from t").unwrap();
    assert_eq!(rows(&mut s, "select * from v").unwrap(), ["x"]);
    assert_eq!(rows(&mut s, "select * from w").unwrap(), ["2"]);
    assert_eq!(names(&db), ["t", "v"]);
    run(&mut s, "rollback").unwrap();
    assert_eq!(names(&db), ["t", "v"]);
    assert_eq!(rows(&mut s, "select * from v").unwrap(), ["1"]);
    assert_eq!(kind(&mut s, "select * from u"), Some(ErrorKind::NotFound));
    check(&db);
}

#[test]
fn savepoints_and_failed_statements_undo_what_came_after() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table gone (id int); begin; create table t (id int primary key)").unwrap();
    run(&mut s, "insert into t values (1); savepoint a").unwrap();
    run(&mut s, "alter table t add column n int default 7; create unique index i on t (n)")
        .unwrap();
    run(&mut s, "insert into t values (2, 8); drop table gone; create view v as select 1 as one")
        .unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|7", "2|8"]);
    assert_eq!(kind(&mut s, "insert into t values (3, 8)"), Some(ErrorKind::Constraint));
    run(&mut s, "rollback to a").unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1"]);
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["gone", "t"]);
    assert_eq!(rows(&mut s, "show views").unwrap(), NONE);
    // The second name is unknown, so the first is not dropped either.
    assert_eq!(kind(&mut s, "drop table t, nowhere"), Some(ErrorKind::NotFound));
    assert_eq!(
        kind(&mut s, "create table c as select 10 / (id - 1) as n from t"),
        Some(ErrorKind::Type)
    );
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["gone", "t"]);
    run(&mut s, "insert into t values (2); commit").unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1", "2"]);
    check(&db);
}

#[test]
fn a_table_created_in_a_transaction_can_be_changed_in_it() {
    for end in ["commit", "rollback"] {
        let db = memory().unwrap();
        let mut s = db.session();
        run(&mut s, "begin; create table t (id int primary key, n int, m int)").unwrap();
        run(&mut s, "insert into t values (1, 10, 5), (2, 20, 5)").unwrap();
        assert_eq!(kind(&mut s, "create unique index u on t (m)"), Some(ErrorKind::Constraint));
        assert_eq!(
            kind(&mut s, "alter table t add constraint small check (n < 20)"),
            Some(ErrorKind::Constraint)
        );
        run(&mut s, "create unique index u on t (n); alter table t drop column m").unwrap();
        run(&mut s, "alter table t rename to r; alter table r rename column n to number").unwrap();
        run(&mut s, "insert into r values (3, 30); update r set number = 11 where id = 1").unwrap();
        assert_eq!(kind(&mut s, "insert into r values (4, 11)"), Some(ErrorKind::Constraint));
        // A row of an older version of the table, changed and changed back.
        run(&mut s, "savepoint b; update r set number = 12 where id = 2; rollback to b").unwrap();
        assert_eq!(rows(&mut s, "select id from r where number = 20").unwrap(), ["2"]);
        assert_eq!(kind(&mut s, "insert into r values (4, 20)"), Some(ErrorKind::Constraint));
        run(&mut s, "insert into r values (4, 10)").unwrap();
        assert_eq!(rows(&mut s, "select id from r where number = 11").unwrap(), ["1"]);
        assert_eq!(kind(&mut s, "select * from t"), Some(ErrorKind::NotFound));
        run(&mut s, "create table e (id int primary key); insert into e values (1)").unwrap();
        run(&mut s, "truncate table e; insert into e values (2)").unwrap();
        run(&mut s, "create table f (id int); insert into f values (1); drop table f").unwrap();
        run(&mut s, end).unwrap();
        if end == "commit" {
            assert_eq!(names(&db), ["e", "r"]);
            let all = rows(&mut s, "select id, number from r order by id").unwrap();
            assert_eq!(all, ["1|11", "2|20", "3|30", "4|10"]);
            assert_eq!(rows(&mut s, "select id from r where number = 10").unwrap(), ["4"]);
            assert_eq!(kind(&mut s, "insert into r values (5, 11)"), Some(ErrorKind::Constraint));
            assert_eq!(rows(&mut s, "select * from e").unwrap(), ["2"]);
            run(&mut s, "optimize table r flush; optimize table e flush").unwrap();
            assert_eq!(rows(&mut s, "select id from r where number = 10").unwrap(), ["4"]);
        } else {
            assert_eq!(names(&db), NONE);
        }
        check(&db);
    }
}

#[test]
fn the_second_of_two_that_change_an_object_conflicts() {
    for (first, second) in [
        ("drop table t", "drop table t"),
        ("alter table t add column m int", "drop table t"),
        ("create table n (id int)", "create table n (other int)"),
        ("create view n as select 1 as a", "create table n (other int)"),
        ("create view n as select 1 as a", "create view n as select 2 as a"),
        ("create or replace view v as select 1 as a", "drop view v"),
        ("drop view v", "create or replace view v as select 2 as a"),
    ] {
        for explicit in [false, true] {
            let db = memory().unwrap();
            let (mut a, mut b) = (db.session(), db.session());
            run(&mut a, "create table t (id int primary key); insert into t values (1)").unwrap();
            run(&mut a, "create view v as select id from t").unwrap();
            run(&mut b, "begin").unwrap();
            run(&mut b, second).unwrap();
            if explicit && !first.starts_with("alter") {
                run(&mut a, &format!("begin; {first}; commit")).unwrap();
            } else {
                run(&mut a, first).unwrap();
            }
            let after = names(&db);
            assert_eq!(kind(&mut b, "commit"), Some(ErrorKind::Conflict), "{first}; {second}");
            assert_eq!(names(&db), after, "{first}; {second}");
            check(&db);
        }
    }
}

#[test]
fn a_dropped_table_is_there_for_others_until_the_commit() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 10)")
        .unwrap();
    run(&mut s, "optimize table t flush; begin; insert into t values (2, 20)").unwrap();
    run(&mut s, "delete from t where id = 1; drop table t; create table t (a text)").unwrap();
    run(&mut s, "insert into t values ('new')").unwrap();
    assert_eq!(rows(&mut other, "select * from t").unwrap(), ["1|10"]);
    run(&mut other, "begin; insert into t values (3, 30)").unwrap();
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut other, "select * from t order by id").unwrap(), ["1|10", "3|30"]);
    assert_eq!(kind(&mut other, "commit"), Some(ErrorKind::Conflict));
    assert_eq!(rows(&mut other, "select * from t").unwrap(), ["new"]);
    check(&db);
}

#[test]
fn a_commit_survives_a_restart_as_a_whole() {
    let place = Folder::new("ddl");
    {
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        run(&mut s, "create table old (id int primary key); insert into old values (1)").unwrap();
        run(&mut s, "create table kept (id int primary key); begin; drop table old").unwrap();
        run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 10)")
            .unwrap();
        run(&mut s, "alter table t add column m int default 3; insert into t values (2, 20, 4)")
            .unwrap();
        run(&mut s, "create index i on t (m); insert into kept values (7)").unwrap();
        run(&mut s, "create view v as select n + m as sum from t; commit").unwrap();
        run(&mut s, "begin; create table lost (id int); drop table kept").unwrap();
    }
    for _ in 0..2 {
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        assert_eq!(names(&db), ["kept", "t", "v"]);
        assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|10|3", "2|20|4"]);
        assert_eq!(rows(&mut s, "select id from t where m = 4").unwrap(), ["2"]);
        assert_eq!(rows(&mut s, "select * from v order by 1").unwrap(), ["13", "24"]);
        assert_eq!(rows(&mut s, "select * from kept").unwrap(), ["7"]);
        check(&db);
    }
}

#[test]
fn create_table_as_in_a_transaction_has_its_rows_in_it() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key); insert into t values (1), (2)").unwrap();
    run(&mut s, "begin; insert into t values (3)").unwrap();
    run(&mut s, "create table big (n) as select * from range(70000)").unwrap();
    run(&mut s, "create table c as select id * 10 as n from t").unwrap();
    run(&mut s, "create table if not exists c as select 1 as n").unwrap();
    run(&mut s, "create or replace table c as select n + 1 as n from c").unwrap();
    run(&mut s, "delete from big where n >= 69000; create index i on big (n)").unwrap();
    assert_eq!(rows(&mut s, "select * from c order by n").unwrap(), ["11", "21", "31"]);
    assert_eq!(rows(&mut s, "select count(*), sum(n) from big").unwrap(), ["69000|2380465500"]);
    assert_eq!(rows(&mut s, "select n from big where n = 68000").unwrap(), ["68000"]);
    assert_eq!(kind(&mut other, "select * from c"), Some(ErrorKind::NotFound));
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut other, "select * from c order by n").unwrap(), ["11", "21", "31"]);
    assert_eq!(rows(&mut other, "select count(*), sum(n) from big").unwrap(), ["69000|2380465500"]);
    assert_eq!(rows(&mut other, "select n from big where n = 68000").unwrap(), ["68000"]);
    check(&db);
}

#[test]
fn what_is_not_supported_says_so_and_leaves_the_transaction_open() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int); begin; insert into t values (1, 2)")
        .unwrap();
    let error = run(&mut s, "optimize table t").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("OPTIMIZE TABLE inside a transaction"), "{error}");
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1|2"]);
}

#[test]
fn a_statement_prepared_in_a_transaction_is_bound_to_what_it_sees() {
    let db = memory().unwrap();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 10)")
        .unwrap();
    let get = s.prepare("select n from t where id = 1").unwrap();
    run(&mut s, "begin; drop table t; create table t (n text, id int primary key)").unwrap();
    run(&mut s, "insert into t values ('mine', 1)").unwrap();
    let got = |session: &mut nacredb::Session| {
        session.get(&get, &[]).unwrap().map(|row| row[0].to_string())
    };
    for _ in 0..2 {
        assert_eq!(got(&mut s).as_deref(), Some("mine"));
        assert_eq!(got(&mut other).as_deref(), Some("10"));
    }
    run(&mut s, "rollback").unwrap();
    assert_eq!(got(&mut s).as_deref(), Some("10"));
    assert_eq!(got(&mut other).as_deref(), Some("10"));
}

#[test]
fn what_came_and_went_in_a_transaction_takes_no_name_from_others() {
    let place = Folder::new("came_and_went");
    {
        let db = folder(place.path()).unwrap();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "begin; create table t (id int primary key); insert into t values (1)")
            .unwrap();
        run(&mut s, "drop table t; create view v as select 1 as one; drop view v").unwrap();
        run(&mut other, "create table t (id int primary key, n int)").unwrap();
        run(&mut other, "insert into t values (7, 8)").unwrap();
        run(&mut other, "create view v as select 2 as two").unwrap();
        run(&mut s, "commit").unwrap();
        assert_eq!(names(&db), ["t", "v"]);
        db.flush().unwrap();
    }
    // The database was not closed: its log is replayed.
    let db = folder(place.path()).unwrap();
    assert_eq!(names(&db), ["t", "v"]);
    let mut s = db.session();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["7|8"]);
    assert_eq!(rows(&mut s, "select * from v").unwrap(), ["2"]);
    check(&db);
}

/// What the transaction has changed cannot be committed, so it writes no rows that its keys are not compared with.
#[test]
fn rows_of_a_table_that_another_has_changed_since_are_not_written() {
    for change in ["drop table t", "truncate table t", "alter table t add column c int"] {
        let db = memory().unwrap();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "create table t (id int primary key, n int); insert into t values (1, 1)")
            .unwrap();
        run(&mut s, "optimize table t flush; begin; alter table t add index (n)").unwrap();
        run(&mut s, "insert into t values (2, 2)").unwrap();
        run(&mut other, change).unwrap();
        for write in ["insert into t values (1, 5)", "update t set n = 3", "delete from t"] {
            assert_eq!(kind(&mut s, write), Some(ErrorKind::Conflict), "{change}: {write}");
        }
        run(&mut s, "rollback").unwrap();
        check(&db);
    }
}
