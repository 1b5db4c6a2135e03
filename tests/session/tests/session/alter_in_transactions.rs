//! `ALTER TABLE`, `CREATE INDEX`, `DROP INDEX` and `TRUNCATE` of tables that exist, in transactions.

use nacre_session_tests::{Folder, folder, kind, memory, rows, run};
use nacredb::{Database, ErrorKind};

const NONE: Vec<String> = Vec::new();

/// Rows 1 and 2 are in a segment, 3 and 4 in memory.
fn opened() -> Database {
    let db = memory().unwrap();
    fill(&db);
    db
}

fn fill(db: &Database) {
    let mut s = db.session();
    run(&mut s, "create table t (id int primary key, n int, m int, key by_m (m))").unwrap();
    run(&mut s, "insert into t values (1, 10, 1), (2, 20, 2); optimize table t flush").unwrap();
    run(&mut s, "insert into t values (3, 30, 3), (4, 40, 4)").unwrap();
}

fn all(session: &mut nacredb::Session) -> Vec<String> {
    rows(session, "select * from t order by id").unwrap()
}

fn check(db: &Database) {
    assert_eq!(db.check().unwrap(), NONE);
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    assert_eq!(db.check().unwrap(), NONE);
}

const BEFORE: [&str; 4] = ["1|10|1", "2|20|2", "3|30|3", "4|40|4"];

#[test]
fn others_see_the_table_as_it_was_until_the_commit() {
    for end in ["commit", "rollback"] {
        let db = opened();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "begin; alter table t add column c text default 'new', drop column m")
            .unwrap_err();
        run(&mut s, "drop index by_m on t").unwrap();
        run(&mut s, "alter table t add column c text default 'new', drop column m").unwrap();
        run(&mut s, "update t set n = n + 1 where id in (1, 3); delete from t where id in (2, 4)")
            .unwrap();
        run(&mut s, "insert into t values (5, 50, 'five')").unwrap();
        assert_eq!(all(&mut s), ["1|11|new", "3|31|new", "5|50|five"]);
        assert_eq!(all(&mut other), BEFORE);
        assert_eq!(rows(&mut other, "select id from t where m = 2").unwrap(), ["2"]);
        run(&mut s, end).unwrap();
        if end == "commit" {
            assert_eq!(all(&mut other), ["1|11|new", "3|31|new", "5|50|five"]);
        } else {
            assert_eq!(all(&mut other), BEFORE);
            assert_eq!(rows(&mut other, "select id from t where m = 1").unwrap(), ["1"]);
        }
        assert_eq!(all(&mut s), all(&mut other));
        check(&db);
        run(&mut s, "optimize table t full").unwrap();
        assert_eq!(all(&mut s), all(&mut other));
        check(&db);
    }
}

#[test]
fn savepoints_and_failed_statements_undo_changes_of_a_table() {
    let db = opened();
    let mut s = db.session();
    run(&mut s, "begin; update t set n = 11 where id = 1; savepoint a").unwrap();
    run(&mut s, "alter table t add column c int default 7; create unique index u on t (n)")
        .unwrap();
    run(&mut s, "update t set c = 8 where id in (1, 2); insert into t values (5, 50, 5, 9)")
        .unwrap();
    assert_eq!(all(&mut s), ["1|11|1|8", "2|20|2|8", "3|30|3|7", "4|40|4|7", "5|50|5|9"]);
    assert_eq!(kind(&mut s, "insert into t values (6, 50, 6, 0)"), Some(ErrorKind::Constraint));
    run(&mut s, "savepoint b; truncate table t; insert into t values (9, 90, 9, 9)").unwrap();
    assert_eq!(all(&mut s), ["9|90|9|9"]);
    run(&mut s, "rollback to b").unwrap();
    assert_eq!(rows(&mut s, "select id from t where n = 50").unwrap(), ["5"]);
    run(&mut s, "rollback to a").unwrap();
    assert_eq!(all(&mut s), ["1|11|1", "2|20|2", "3|30|3", "4|40|4"]);
    // The index is gone, so its values may repeat.
    run(&mut s, "insert into t values (6, 20, 6); commit").unwrap();
    assert_eq!(all(&mut s), ["1|11|1", "2|20|2", "3|30|3", "4|40|4", "6|20|6"]);
    check(&db);
}

#[test]
fn rows_that_others_write_meanwhile_are_in_the_changed_table() {
    let db = opened();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "begin; alter table t add column c int default 7; create index by_n on t (n)")
        .unwrap();
    run(&mut other, "insert into t values (5, 50, 5); update t set n = 12 where id = 1").unwrap();
    run(&mut other, "update t set n = 31 where id = 3; delete from t where id = 4").unwrap();
    run(&mut other, "optimize table t flush; insert into t values (6, 60, 6)").unwrap();
    assert_eq!(all(&mut s), ["1|10|1|7", "2|20|2|7", "3|30|3|7", "4|40|4|7"]);
    assert_eq!(rows(&mut s, "select id from t where n = 10").unwrap(), ["1"]);
    run(&mut s, "update t set c = 8 where id = 2; commit").unwrap();
    let after = ["1|12|1|7", "2|20|2|8", "3|31|3|7", "5|50|5|7", "6|60|6|7"];
    for _ in 0..2 {
        assert_eq!(all(&mut other), after);
        for (n, id) in [(12, "1"), (20, "2"), (31, "3"), (50, "5"), (60, "6")] {
            let found = rows(&mut other, &format!("select id from t where n = {n}")).unwrap();
            assert_eq!(found, [id], "{n}");
        }
        for n in [10, 30, 40] {
            let found = rows(&mut other, &format!("select id from t where n = {n}")).unwrap();
            assert_eq!(found, NONE, "{n}");
        }
        check(&db);
        run(&mut other, "optimize table t full").unwrap();
    }
}

#[test]
fn writers_that_are_open_at_the_commit_conflict_or_are_in_the_new_index() {
    for (change, fits) in [
        ("create index by_n on t (n)", true),
        ("drop index by_m on t", true),
        ("create unique index by_n on t (n)", false),
        ("alter table t add column c int", false),
        ("truncate table t", false),
        ("alter table t rename to u; alter table u rename to t", false),
    ] {
        let db = opened();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, &format!("begin; {change}")).unwrap();
        run(&mut other, "begin; insert into t values (5, 50, 5); update t set n = 12 where id = 1")
            .unwrap();
        run(&mut s, "commit").unwrap();
        let committed = kind(&mut other, "commit");
        assert_eq!(committed, (!fits).then_some(ErrorKind::Conflict), "{change}");
        if fits {
            assert_eq!(rows(&mut s, "select id from t where n = 50").unwrap(), ["5"], "{change}");
            assert_eq!(rows(&mut s, "select id from t where n = 12").unwrap(), ["1"], "{change}");
        }
        check(&db);
    }
}

#[test]
fn a_row_of_another_writer_that_breaks_the_change_fails_the_commit() {
    for (change, row) in [
        ("create unique index u on t (n)", "(5, 10, 5)"),
        ("alter table t add constraint small check (n < 100)", "(5, 100, 5)"),
        ("alter table t alter column n set not null", "(5, null, 5)"),
    ] {
        let db = opened();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "begin; insert into t values (6, 60, 6)").unwrap();
        run(&mut s, change).unwrap();
        run(&mut other, &format!("insert into t values {row}")).unwrap();
        assert_eq!(kind(&mut s, "commit"), Some(ErrorKind::Constraint), "{change}");
        assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["5"], "{change}");
        // What is there already fails the statement, and leaves the transaction open.
        run(&mut s, "begin; insert into t values (6, 60, 6)").unwrap();
        assert_eq!(kind(&mut s, change), Some(ErrorKind::Constraint), "{change}");
        run(&mut s, "commit").unwrap();
        assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["6"], "{change}");
        check(&db);
    }
}

#[test]
fn the_first_of_two_that_change_a_table_wins() {
    let changes = [
        "alter table t add column c int default 1",
        "alter table t rename to u",
        "create index i on t (n)",
        "drop index by_m on t",
        "truncate table t",
        "drop table t",
    ];
    for first in changes {
        for second in changes {
            let db = opened();
            let (mut a, mut b) = (db.session(), db.session());
            run(&mut a, "begin").unwrap();
            run(&mut b, "begin").unwrap();
            run(&mut a, first).unwrap();
            run(&mut b, second).unwrap();
            run(&mut a, "commit").unwrap();
            let read = kind(&mut b, "select count(*) from t");
            assert!(
                matches!(read, None | Some(ErrorKind::Conflict | ErrorKind::NotFound)),
                "{first}; {second}: {read:?}"
            );
            assert_eq!(kind(&mut b, "commit"), Some(ErrorKind::Conflict), "{first}; {second}");
            check(&db);
        }
    }
}

#[test]
fn two_changes_of_one_table_do_not_share_numbers() {
    // Both add a column and an index of their own; the rows of each are read as it knows them.
    let db = opened();
    let (mut a, mut b) = (db.session(), db.session());
    run(&mut a, "begin; alter table t add column c int default 1; create index i on t (c)")
        .unwrap();
    run(&mut b, "begin; alter table t add column d text default 'x'; create index j on t (d)")
        .unwrap();
    run(&mut a, "insert into t values (5, 50, 5, 55)").unwrap();
    run(&mut b, "insert into t values (6, 60, 6, 'sixty')").unwrap();
    assert_eq!(rows(&mut a, "select id from t where c = 55").unwrap(), ["5"]);
    assert_eq!(rows(&mut b, "select id from t where d = 'sixty'").unwrap(), ["6"]);
    run(&mut a, "rollback").unwrap();
    run(&mut b, "commit").unwrap();
    assert_eq!(
        rows(&mut a, "select id from t where d = 'x' order by id").unwrap(),
        ["1", "2", "3", "4"]
    );
    check(&db);
}

#[test]
fn names_are_exchanged_in_one_transaction() {
    let db = opened();
    let (mut s, mut other) = (db.session(), db.session());
    run(&mut s, "create table u (x text); insert into u values ('u'); begin").unwrap();
    run(&mut s, "alter table t rename to w; alter table u rename to t").unwrap();
    run(&mut s, "alter table w rename to u; create table w (y int); insert into w values (1)")
        .unwrap();
    run(&mut s, "insert into u values (5, 50, 5)").unwrap();
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["t", "u", "w"]);
    assert_eq!(rows(&mut other, "show tables").unwrap(), ["t", "u"]);
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut other, "select * from t").unwrap(), ["u"]);
    assert_eq!(rows(&mut other, "select count(*) from u").unwrap(), ["5"]);
    assert_eq!(rows(&mut other, "select * from w").unwrap(), ["1"]);
    check(&db);
}

#[test]
fn a_truncated_table_has_only_the_rows_that_came_after() {
    for end in ["commit", "rollback"] {
        let db = opened();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "create table h (n int); insert into h values (1), (2)").unwrap();
        run(&mut s, "begin; insert into t values (5, 50, 5); truncate table t, h").unwrap();
        run(&mut s, "insert into t values (1, 1, 1); insert into h values (3)").unwrap();
        run(&mut s, "insert into t select v + 100, v, v from range(70000) r (v)").unwrap();
        run(&mut s, "create index by_n on t (n); alter table t drop column n").unwrap_err();
        run(&mut other, "insert into h values (4); insert into t values (7, 70, 7)").unwrap();
        assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), ["5"]);
        assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["70001"]);
        run(&mut s, end).unwrap();
        let (t, h) = if end == "commit" { ("70001", "3") } else { ("5", "1\n2\n4") };
        assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), [t]);
        assert_eq!(rows(&mut other, "select n from h order by n").unwrap().join("\n"), h);
        check(&db);
        run(&mut s, "insert into h values (5); optimize table h flush").unwrap();
        check(&db);
    }
}

#[test]
fn an_altered_table_can_be_dropped_and_made_again() {
    let db = opened();
    let mut s = db.session();
    run(&mut s, "begin; alter table t add column c int; alter table t rename to u").unwrap();
    run(&mut s, "insert into u values (5, 50, 5, 5); drop table u").unwrap();
    run(&mut s, "create table t (only text); insert into t values ('one'); commit").unwrap();
    assert_eq!(rows(&mut s, "show tables").unwrap(), ["t"]);
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["one"]);
    check(&db);
}

#[test]
fn many_rows_are_updated_and_deleted_in_an_altered_table() {
    for end in ["commit", "rollback"] {
        let db = memory().unwrap();
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "create table t (id int primary key, n int)").unwrap();
        run(&mut s, "insert into t select v, v from range(100000) r (v)").unwrap();
        run(
            &mut s,
            "begin; alter table t add column c int default 1; update t set c = 2, n = n + 1",
        )
        .unwrap();
        run(&mut s, "create index by_n on t (n); delete from t where id >= 90000").unwrap();
        let sums = "select count(*), sum(n), sum(c) from t";
        assert_eq!(rows(&mut s, sums).unwrap(), ["90000|4050045000|180000"]);
        assert_eq!(rows(&mut s, "select id from t where n = 500").unwrap(), ["499"]);
        run(&mut s, end).unwrap();
        let expected = if end == "commit" { "90000|4050045000" } else { "100000|4999950000" };
        assert_eq!(rows(&mut other, "select count(*), sum(n) from t").unwrap(), [expected]);
        check(&db);
    }
}

#[test]
fn changes_of_tables_survive_a_restart_as_a_whole() {
    let place = Folder::new("alter_in_transactions");
    {
        let db = folder(place.path()).unwrap();
        fill(&db);
        let (mut s, mut other) = (db.session(), db.session());
        run(&mut s, "create table h (n int); insert into h values (1), (2)").unwrap();
        run(&mut s, "begin; update t set n = 11 where id = 1").unwrap();
        run(&mut s, "alter table t add column c int default 7; update t set c = 8 where id = 2")
            .unwrap();
        run(&mut s, "alter table t rename to u; alter table u add column d int default 9").unwrap();
        run(&mut s, "create index by_n on u (n); truncate table h; insert into h values (3)")
            .unwrap();
        run(&mut s, "insert into u values (5, 50, 5, 5, 5); commit").unwrap();
        run(&mut other, "insert into u values (6, 60, 6, 6, 6)").unwrap();
        // What is not committed is lost, but moves of rows that it made stay.
        run(&mut s, "begin; alter table u drop column d; update u set c = 0 where id = 2").unwrap();
        run(&mut s, "truncate table h").unwrap();
        db.flush().unwrap();
    }
    for _ in 0..2 {
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        assert_eq!(
            rows(&mut s, "select * from u order by id").unwrap(),
            ["1|11|1|7|9", "2|20|2|8|9", "3|30|3|7|9", "4|40|4|7|9", "5|50|5|5|5", "6|60|6|6|6"]
        );
        assert_eq!(rows(&mut s, "select id from u where n = 11").unwrap(), ["1"]);
        assert_eq!(rows(&mut s, "select * from h").unwrap(), ["3"]);
        check(&db);
    }
}
