//! `DELETE` of many rows: those in segments are deleted by a bit each.

use nacre_native::{block_on, memory_host, open_folder};
use nacre_session_tests::{Folder, blocked, kind, options, rows, run};
use nacredb::{Database, ErrorKind, Options, Session};

const ROWS: u64 = 20_000;

/// Statements that change a hundred rows do so together.
fn bulk() -> Options {
    Options { bulk_rows: 100, segment_rows: 3_000, ..options() }
}

/// A table in several segments and in memory, with a second unique and a plain index.
fn filled(db: &Database) -> Session {
    let mut s = db.session();
    run(
        &mut s,
        "create table t (id bigint primary key, u bigint unique, n bigint, s text, key by_n (n))",
    )
    .unwrap();
    for part in 0..4 {
        let first = part * ROWS / 4;
        let values: Vec<String> = (first..first + ROWS / 4)
            .map(|id| format!("({id}, {}, {}, 'text of row {id}')", id * 7 + 1, id % 10))
            .collect();
        run(&mut s, &format!("insert into t values {}", values.join(", "))).unwrap();
        if part < 3 {
            run(&mut s, "optimize table t flush").unwrap();
        }
    }
    s
}

fn opened() -> (Database, Session) {
    let db = block_on(Database::open(memory_host(), bulk())).unwrap();
    let session = filled(&db);
    (db, session)
}

fn count(s: &mut Session) -> String {
    rows(s, "select count(*) from t").unwrap().remove(0)
}

fn assert_sound(db: &Database) {
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn deleting_every_row_logs_few_bytes_a_row() {
    let (db, mut s) = opened();
    run(&mut s, "optimize table t full").unwrap();
    let before = db.log_position();
    assert_eq!(run(&mut s, "delete from t").unwrap().rows_affected, ROWS);
    let logged = db.log_position() - before;
    assert!(logged < ROWS * 5 / 2, "{logged} bytes are logged");
    assert_eq!(count(&mut s), "0");
    assert_eq!(rows(&mut s, "select * from t where n = 3 or u = 8").unwrap(), [""; 0]);
    assert_sound(&db);
    // All keys and unique values are free.
    run(&mut s, "insert into t values (5, 8, 3, 'again')").unwrap();
    assert_eq!(rows(&mut s, "select * from t where u = 8").unwrap(), ["5|8|3|again"]);
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    assert_eq!(count(&mut s), "1");
    assert_sound(&db);
}

#[test]
fn deleted_rows_stay_deleted_after_opening_again() {
    let folder = Folder::new("delete many");
    {
        let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
        let mut s = filled(&db);
        assert_eq!(run(&mut s, "delete from t where n < 9").unwrap().rows_affected, ROWS / 10 * 9);
    }
    let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
    let mut s = db.session();
    assert_eq!(count(&mut s), (ROWS / 10).to_string());
    assert_eq!(rows(&mut s, "select count(*) from t where n < 9").unwrap(), ["0"]);
    assert_eq!(rows(&mut s, "select id from t where u = 64").unwrap(), ["9"]);
    assert_sound(&db);
}

#[test]
fn a_transaction_sees_its_own_deletion_and_can_undo_it() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut s, "begin; update t set s = 'changed' where id < 5; savepoint a").unwrap();
    run(&mut s, "delete from t where n >= 5").unwrap();
    assert_eq!(count(&mut s), (ROWS / 2).to_string());
    assert_eq!(rows(&mut s, "select count(*) from t where n = 7").unwrap(), ["0"]);
    assert_eq!(rows(&mut s, "select * from t where u = 36").unwrap(), [""; 0]);
    assert_eq!(count(&mut other), ROWS.to_string());
    // Its keys and unique values can be used again at once.
    run(&mut s, "insert into t values (5, 64, 1, 'new')").unwrap();
    assert_eq!(rows(&mut s, "select * from t where u = 64").unwrap(), ["5|64|1|new"]);
    assert_eq!(kind(&mut s, "insert into t values (0, -1, 1, '')"), Some(ErrorKind::Constraint));
    run(&mut s, "insert into t values (15, 36, 1, '') on duplicate key update s = 'no'").unwrap();
    run(&mut s, "rollback to a").unwrap();
    assert_eq!(count(&mut s), ROWS.to_string());
    assert_eq!(
        rows(&mut s, "select s from t where id in (3, 5) order by id").unwrap(),
        ["changed", "text of row 5"]
    );
    run(&mut s, "delete from t where n >= 5").unwrap();
    run(&mut s, "insert into t values (5, 64, 1, 'new')").unwrap();
    run(&mut s, "commit").unwrap();
    assert_eq!(count(&mut other), (ROWS / 2 + 1).to_string());
    assert_eq!(rows(&mut other, "select s from t where u = 64").unwrap(), ["new"]);
    assert_sound(&db);
    run(&mut s, "begin; delete from t; rollback").unwrap();
    assert_eq!(count(&mut s), (ROWS / 2 + 1).to_string());
    run(&mut s, "optimize table t full").unwrap();
    assert_eq!(count(&mut s), (ROWS / 2 + 1).to_string());
    assert_sound(&db);
}

#[test]
fn other_writers_wait_for_a_deletion_that_is_not_committed() {
    for statement in [
        "update t set s = '' where id = 7",
        "delete from t where u = 50",
        "insert into t values (7, -1, 0, '')",
        "insert into t values (-1, 50, 0, '')",
        "insert into t values (7, -1, 0, '') on duplicate key update s = ''",
        "select * from t where id = 7 for update",
        "delete from t where n = 7",
    ] {
        let (db, mut s) = opened();
        let mut other = db.session();
        run(&mut s, "begin; delete from t").unwrap();
        assert_eq!(kind(&mut other, statement), Some(ErrorKind::LockTimeout), "{statement}");
        // A merge would move the rows. Nothing else is stopped.
        assert_eq!(kind(&mut other, "optimize table t full"), Some(ErrorKind::Conflict));
        let done = blocked(&mut other, statement, || drop(run(&mut s, "rollback").unwrap()));
        match statement.starts_with("insert") && !statement.contains("update") {
            true => assert_eq!(done, Err(ErrorKind::Constraint), "{statement}"),
            false => assert!(done.is_ok(), "{statement}: {done:?}"),
        }
        assert_sound(&db);
    }
}

#[test]
fn a_deletion_waits_for_the_locks_of_others() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut other, "begin; update t set n = -1 where id = 7").unwrap();
    assert_eq!(kind(&mut s, "delete from t"), Some(ErrorKind::LockTimeout));
    assert_eq!(count(&mut s), ROWS.to_string());
    let done = blocked(&mut s, "delete from t", || drop(run(&mut other, "commit").unwrap()));
    assert_eq!(done, Ok(ROWS));
    assert_eq!(count(&mut other), "0");
    assert_sound(&db);
}

#[test]
fn the_first_of_two_deletions_wins() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut other, "begin; select count(*) from t").unwrap();
    run(&mut s, "delete from t where n < 5").unwrap();
    assert_eq!(count(&mut other), ROWS.to_string());
    assert_eq!(kind(&mut other, "delete from t"), Some(ErrorKind::Conflict));
    assert_eq!(kind(&mut other, "insert into t values (3, -3, 0, '')"), Some(ErrorKind::Conflict));
    assert_eq!(kind(&mut other, "insert into t values (-3, 22, 0, '')"), Some(ErrorKind::Conflict));
    run(&mut other, "delete from t where n >= 5; commit").unwrap();
    assert_eq!(count(&mut s), "0");
    assert_sound(&db);
}

#[test]
fn rows_that_were_merged_meanwhile_are_followed() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut s, "begin; select count(*) from t").unwrap();
    run(&mut other, "update t set n = n where id = 100").unwrap();
    run(&mut other, "optimize table t full").unwrap();
    run(&mut s, "delete from t where id <> 100").unwrap();
    assert_eq!(rows(&mut s, "select id from t").unwrap(), ["100"]);
    run(&mut s, "rollback").unwrap();
    assert_eq!(count(&mut s), ROWS.to_string());
    run(&mut s, "begin; select count(*) from t").unwrap();
    run(&mut other, "optimize table t full").unwrap();
    run(&mut s, "delete from t where id <> 100; commit").unwrap();
    assert_eq!(count(&mut other), "1");
    assert_sound(&db);
}

#[test]
fn rows_that_were_changed_and_flushed_meanwhile_are_not_deleted() {
    for merge in ["flush", "full"] {
        let (db, mut s) = opened();
        let mut other = db.session();
        run(&mut s, "begin; select count(*) from t").unwrap();
        run(&mut other, "update t set s = 'changed' where id = 100").unwrap();
        run(&mut other, &format!("optimize table t {merge}")).unwrap();
        assert_eq!(kind(&mut s, "delete from t"), Some(ErrorKind::Conflict), "{merge}");
        run(&mut s, "delete from t where id <> 100; commit").unwrap();
        assert_eq!(rows(&mut other, "select s from t").unwrap(), ["changed"]);
        assert_sound(&db);
    }
}

#[test]
fn a_transaction_writes_again_under_the_keys_that_it_deleted() {
    for statement in [
        "replace into t values (7, -7, 0, 'again'), (8, -8, 0, 'again')",
        "insert into t values (7, -7, 0, 'again'), (8, -8, 0, 'again')
            on duplicate key update s = 'wrong'",
        "insert into t values (7, -7, 0, 'again'), (8, -8, 0, 'again') on conflict do nothing",
    ] {
        let (db, mut s) = opened();
        run(&mut s, "begin; delete from t").unwrap();
        assert_eq!(run(&mut s, statement).unwrap().rows_affected, 2, "{statement}");
        let expected = ["7|-7|0|again", "8|-8|0|again"];
        assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), expected, "{statement}");
        run(&mut s, "commit").unwrap();
        assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), expected, "{statement}");
        assert_sound(&db);
    }
}
