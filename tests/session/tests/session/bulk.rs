//! Statements on many rows: inserts that write segments directly, updates and deletes that move
//! many rows at once.

use nacre_session_tests::{kind, memory, rows, run};
use nacredb::{Database, ErrorKind, OnDuplicate, Session};

const ROWS: usize = 1 << 17;

/// A table `many`, filled by repeated doubling.
fn many() -> (Database, Session) {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table many (id int primary key, n int)").unwrap();
    run(&mut s, "insert into many values (0, 0)").unwrap();
    let mut there = 1;
    while there < ROWS {
        run(&mut s, &format!("insert into many select id + {there}, n + 1 from many")).unwrap();
        there *= 2;
    }
    (db, s)
}

fn memory_rows(db: &Database, table: &str) -> u64 {
    db.inspect().unwrap().iter().find(|t| t.name == table).unwrap().rowstore_rows
}

#[test]
fn a_large_insert_select_writes_segments_and_a_small_one_the_rowstore() {
    let (db, mut s) = many();
    assert!(memory_rows(&db, "many") <= 1 << 16, "the last doubling went into a segment");
    assert_eq!(
        rows(&mut s, "select count(*), sum(id), max(n) from many").unwrap(),
        [format!("{ROWS}|{}|17", ROWS * (ROWS - 1) / 2)]
    );
    run(&mut s, "create table copy (n int, id bigint primary key, note text default 'x')").unwrap();
    let copied = run(&mut s, "insert into copy (id, n) select id, n from many").unwrap();
    assert_eq!(copied.rows_affected, ROWS as u64);
    assert_eq!(memory_rows(&db, "copy"), 0);
    assert_eq!(rows(&mut s, "select id, n, note from copy where id = 3").unwrap(), ["3|2|x"]);
    run(&mut s, "insert into copy (id, n) select id + 1000000, n from many where id < 10").unwrap();
    assert_eq!(memory_rows(&db, "copy"), 10);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_large_insert_fails_whole_and_keeps_to_its_transaction() {
    let (db, mut s) = many();
    run(
        &mut s,
        "create table copy (id int primary key, n int); insert into copy values (70000, 5)",
    )
    .unwrap();
    assert_eq!(kind(&mut s, "insert into copy select * from many"), Some(ErrorKind::Constraint));
    assert_eq!(rows(&mut s, "select * from copy").unwrap(), ["70000|5"]);
    run(&mut s, "delete from copy; begin; insert into copy select * from many").unwrap();
    assert_eq!(rows(&mut db.session(), "select count(*) from copy").unwrap(), ["0"]);
    run(&mut s, "rollback").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from copy").unwrap(), ["0"]);
    // The load waits for another transaction's row lock, as a small insert does.
    let mut other = db.session();
    run(&mut other, "begin; insert into copy values (7, 7)").unwrap();
    assert_eq!(kind(&mut s, "insert into copy select * from many"), Some(ErrorKind::LockTimeout));
    run(&mut other, "rollback").unwrap();
    run(&mut s, "insert into copy select * from many").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from copy").unwrap(), [ROWS.to_string()]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn an_update_of_many_rows_moves_them_in_few_commits() {
    let (db, mut s) = many();
    run(&mut s, "optimize table many full").unwrap();
    let before = db.log_position();
    run(&mut s, "update many set n = -1 where id % 8 = 0").unwrap();
    run(&mut s, "delete from many where id % 8 = 1").unwrap();
    assert!(db.log_position() > before);
    assert_eq!(
        rows(&mut s, "select count(*), sum(case when n = -1 then 1 else 0 end) from many").unwrap(),
        [format!("{}|{}", ROWS - ROWS / 8, ROWS / 8)]
    );
    run(
        &mut s,
        "begin; update many set n = -2 where id % 8 = 2; rollback; optimize table many full",
    )
    .unwrap();
    assert_eq!(rows(&mut s, "select count(*) from many where n = -2").unwrap(), ["0"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// The load inserts row by row because of a unique index, and would meet rows it cannot read.
#[test]
fn a_load_into_a_table_altered_meanwhile_conflicts() {
    for (alter, policy) in [
        ("alter table t add column w int default 7", OnDuplicate::Replace),
        ("alter table t add column w int default 7", OnDuplicate::Skip),
        ("truncate table t", OnDuplicate::Replace),
        ("create index by_b on t (b)", OnDuplicate::Replace),
    ] {
        let db = memory().unwrap();
        let mut s = db.session();
        run(
            &mut s,
            "create table t (a bigint primary key, b bigint unique); insert into t values (1, 1)",
        )
        .unwrap();
        let batch = run(&mut s, "select a, b from t").unwrap().batches.remove(0);
        let mut load = nacre_native::block_on(s.appender("t", policy)).unwrap();
        load.append(&batch).unwrap();
        run(&mut s, alter).unwrap();
        run(&mut s, "insert into t (a, b) values (2, 2)").unwrap();
        run(&mut s, "update t set b = b + 10").unwrap();
        let before = rows(&mut s, "select * from t").unwrap();
        let refused = nacre_native::block_on(load.finish()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{alter}: {refused}");
        assert_eq!(rows(&mut s, "select * from t").unwrap(), before);
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
    }
}
