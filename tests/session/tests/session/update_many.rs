//! `UPDATE` of many rows: those in segments are written to new segments, and a bit replaces each.

use nacre_native::{block_on, memory_host, open_folder};
use nacre_session_tests::{Folder, blocked, kind, options, rows, run};
use nacredb::{Database, ErrorKind, Options, Session};

const ROWS: u64 = 20_000;

/// Statements that change a hundred rows do so together.
fn bulk() -> Options {
    Options { bulk_rows: 100, segment_rows: 3_000, ..options() }
}

/// The table of [`filled`].
const TABLE: &str =
    "create table t (id bigint primary key, u bigint unique, n bigint, s text, key by_n (n))";

/// Makes a table with rows in several segments and in memory.
fn fill(db: &Database, table: &str) -> Session {
    let mut s = db.session();
    run(&mut s, table).unwrap();
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

fn filled(db: &Database) -> Session {
    fill(db, TABLE)
}

fn opened() -> (Database, Session) {
    let db = block_on(Database::open(memory_host(), bulk())).unwrap();
    let session = filled(&db);
    (db, session)
}

/// A merge of changed rows and others could make a conflict of the others, too.
fn opened_without_merges() -> (Database, Session) {
    let options = Options { merge_from: 100, ..bulk() };
    let db = block_on(Database::open(memory_host(), options)).unwrap();
    let session = filled(&db);
    (db, session)
}

fn assert_sound(db: &Database) {
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

/// The number of rows, and the sum of `n`.
fn sums(s: &mut Session) -> String {
    rows(s, "select count(*), sum(n) from t").unwrap().remove(0)
}

#[test]
fn updating_every_row_logs_few_bytes_a_row() {
    let (db, mut s) = opened();
    run(&mut s, "optimize table t full").unwrap();
    let before = db.log_position();
    assert_eq!(run(&mut s, "update t set n = n + 100, s = upper(s)").unwrap().rows_affected, ROWS);
    let logged = db.log_position() - before;
    assert!(logged < ROWS * 5 / 2, "{logged} bytes are logged");
    assert_eq!(sums(&mut s), format!("{ROWS}|{}", ROWS / 10 * 45 + ROWS * 100));
    assert_eq!(rows(&mut s, "select * from t where u = 64").unwrap(), ["9|64|109|TEXT OF ROW 9"]);
    assert_eq!(
        rows(&mut s, "select count(*) from t where n = 3 or n = 103").unwrap(),
        [(ROWS / 10).to_string()]
    );
    assert_sound(&db);
    // Keys and unique values are taken as before.
    assert_eq!(kind(&mut s, "insert into t values (9, -1, 0, '')"), Some(ErrorKind::Constraint));
    assert_eq!(kind(&mut s, "insert into t values (-9, 64, 0, '')"), Some(ErrorKind::Constraint));
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    run(&mut s, "optimize table t full").unwrap();
    assert_eq!(sums(&mut s), format!("{ROWS}|{}", ROWS / 10 * 45 + ROWS * 100));
    assert_sound(&db);
}

#[test]
fn updated_rows_stay_updated_after_opening_again() {
    let folder = Folder::new("update many");
    {
        let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
        let mut s = filled(&db);
        let updated = run(&mut s, "update t set s = 'new' where n < 9").unwrap();
        assert_eq!(updated.rows_affected, ROWS / 10 * 9);
    }
    let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
    let mut s = db.session();
    assert_eq!(
        rows(&mut s, "select s = 'new', count(*) from t group by s = 'new' order by 1").unwrap(),
        [format!("false|{}", ROWS / 10), format!("true|{}", ROWS / 10 * 9)]
    );
    assert_eq!(rows(&mut s, "select * from t where u = 57").unwrap(), ["8|57|8|new"]);
    assert_sound(&db);
}

#[test]
fn rows_without_a_key_are_updated_in_their_partitions() {
    for shard in ["", ", shard key (n)"] {
        let folder = Folder::new("update many without a key");
        let table = format!("create table t (id bigint, u bigint, n bigint, s text{shard})");
        {
            let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
            let mut s = fill(&db, &table);
            assert_eq!(run(&mut s, "update t set u = -u").unwrap().rows_affected, ROWS);
            assert_eq!(run(&mut s, "update t set u = u - 1").unwrap().rows_affected, ROWS);
            // Another partition may get the rows.
            assert_eq!(run(&mut s, "update t set n = n + 1").unwrap().rows_affected, ROWS);
            run(&mut s, "insert into t values (1, 2, 3, 'more')").unwrap();
            assert_sound(&db);
        }
        let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
        let mut s = db.session();
        let sum = -7 * (ROWS * (ROWS - 1) / 2) as i64 - 2 * ROWS as i64 + 2;
        assert_eq!(
            rows(&mut s, "select count(*), count(distinct id), sum(u), sum(n) from t").unwrap(),
            [format!("{}|{ROWS}|{sum}|{}", ROWS + 1, ROWS / 10 * 55 + 3)]
        );
        assert_sound(&db);
    }
}

#[test]
fn a_failed_update_changes_nothing_and_leaves_no_file() {
    let folder = Folder::new("update many fails");
    let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
    let mut s = filled(&db);
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    while db.maintain(nacredb::Budget::Steps(100)).unwrap() {}
    let (before, there) = (sums(&mut s), files());
    let failed = "update t set n = n / (id - 14999)";
    assert!(kind(&mut s, failed).is_some());
    assert_eq!((sums(&mut s), files()), (before, there));
    assert_sound(&db);
}

#[test]
fn the_first_of_two_updates_wins() {
    let (db, mut s) = opened_without_merges();
    let mut other = db.session();
    run(&mut other, "begin; select count(*) from t").unwrap();
    run(&mut s, "update t set s = 'first' where n < 5").unwrap();
    assert_eq!(sums(&mut other), format!("{ROWS}|{}", ROWS / 10 * 45));
    assert_eq!(rows(&mut other, "select s from t where id = 3").unwrap(), ["text of row 3"]);
    for statement in [
        "update t set s = 'second'",
        "delete from t",
        "update t set s = 'second' where id = 3",
        "delete from t where id = 3",
        "update t set s = 'second' where u = 22",
        "insert into t values (3, -3, 0, '') on duplicate key update s = 'second'",
    ] {
        assert_eq!(kind(&mut other, statement), Some(ErrorKind::Conflict), "{statement}");
    }
    run(&mut other, "update t set s = 'second' where n >= 5; commit").unwrap();
    assert_eq!(
        rows(&mut s, "select s, count(*) from t group by s order by s").unwrap(),
        [format!("first|{}", ROWS / 2), format!("second|{}", ROWS / 2)]
    );
    assert_sound(&db);
}

#[test]
fn an_update_waits_for_the_locks_of_others() {
    let (db, mut s) = opened();
    let mut other = db.session();
    run(&mut other, "begin; update t set n = -1 where id = 7").unwrap();
    assert_eq!(kind(&mut s, "update t set n = n + 1"), Some(ErrorKind::LockTimeout));
    let update = "update t set n = n + 1";
    let done = blocked(&mut s, update, || drop(run(&mut other, "commit").unwrap()));
    assert_eq!(done, Ok(ROWS));
    assert_eq!(sums(&mut other), format!("{ROWS}|{}", ROWS / 10 * 45 - 8 + ROWS));
    assert_sound(&db);
}

#[test]
fn rows_that_moved_to_memory_are_updated_there() {
    let (db, mut s) = opened();
    let mut other = db.session();
    // Locking moves rows to memory, and changes nothing.
    run(&mut other, "begin; select * from t where id < 50 for update; rollback").unwrap();
    assert_eq!(run(&mut s, "update t set n = n + 1").unwrap().rows_affected, ROWS);
    assert_eq!(sums(&mut s), format!("{ROWS}|{}", ROWS / 10 * 45 + ROWS));
    assert_sound(&db);
}

#[test]
fn a_transaction_sees_its_own_update_and_can_undo_it() {
    let (db, mut s) = opened();
    let mut other = db.session();
    let (all, sum) = (ROWS, ROWS / 10 * 45);
    run(&mut s, "begin; update t set n = n + 100; savepoint a").unwrap();
    assert_eq!(sums(&mut s), format!("{all}|{}", sum + 100 * all));
    assert_eq!(sums(&mut other), format!("{all}|{sum}"));
    for (query, expected) in [
        ("select n from t where id = 9", vec!["109"]),
        ("select n from t where u = 64", vec!["109"]),
        ("select id from t where n = 9", vec![]),
        ("select count(*) from t where n = 109", vec!["2000"]),
        ("select id, n from t order by id limit 2", vec!["0|100", "1|101"]),
        ("select id from t where id between 17 and 19", vec!["17", "18", "19"]),
        (
            "select a.id from t as a join t as b on a.id = b.u where a.n = 100 and b.id = 7",
            vec!["50"],
        ),
    ] {
        assert_eq!(rows(&mut s, query).unwrap(), expected, "{query}");
    }
    // Again, all of it, and single rows of it in every way.
    run(&mut s, "update t set n = n + 100").unwrap();
    assert_eq!(sums(&mut s), format!("{all}|{}", sum + 200 * all));
    run(&mut s, "update t set n = 0 where id = 9; update t set n = 0 where u = 15").unwrap();
    run(&mut s, "delete from t where id = 10; delete from t where u = 78").unwrap();
    run(&mut s, "insert into t values (12, 0, 0, '') on duplicate key update n = -1").unwrap();
    run(&mut s, "replace into t values (13, 92, -2, 'replaced')").unwrap();
    run(&mut s, "select * from t where id = 14 for update; update t set u = -14 where id = 14")
        .unwrap();
    run(&mut s, "insert into t values (10, 71, 3, 'again')").unwrap();
    for taken in ["(15, -1, 0, '')", "(-15, 106, 0, '')", "(10, -1, 0, '')", "(-1, 71, 0, '')"] {
        let statement = format!("insert into t values {taken}");
        assert_eq!(kind(&mut s, &statement), Some(ErrorKind::Constraint), "{taken}");
    }
    let expected = ["2|0", "9|0", "10|3", "12|-1", "13|-2", "14|204", "15|205"];
    let query = "select id, n from t where id in (2, 9, 10, 11, 12, 13, 14, 15) order by id";
    assert_eq!(rows(&mut s, query).unwrap(), expected);
    assert_eq!(rows(&mut s, "select id from t where u in (-14, 99) order by 1").unwrap(), ["14"]);
    run(&mut s, "savepoint b; delete from t where n > 100").unwrap();
    assert_eq!(rows(&mut s, query).unwrap(), expected[..5]);
    run(&mut s, "rollback to b").unwrap();
    assert_eq!(rows(&mut s, query).unwrap(), expected);
    run(&mut s, "rollback to a").unwrap();
    assert_eq!(sums(&mut s), format!("{all}|{}", sum + 100 * all));
    run(&mut s, "update t set s = 'kept' where n < 105; delete from t where n >= 105").unwrap();
    run(&mut s, "update t set n = -1 where id = 3; commit").unwrap();
    let counts = "select count(*) as c, n >= 0 from t group by n >= 0 order by c";
    assert_eq!(rows(&mut other, counts).unwrap(), ["1|false", "9999|true"]);
    assert_sound(&db);
    run(&mut s, "begin; update t set n = 7; rollback").unwrap();
    assert_eq!(rows(&mut s, counts).unwrap(), ["1|false", "9999|true"]);
    run(&mut s, "optimize table t full").unwrap();
    assert_eq!(rows(&mut s, counts).unwrap(), ["1|false", "9999|true"]);
    assert_eq!(rows(&mut s, "select s, count(*) from t group by s").unwrap(), ["kept|10000"]);
    assert_sound(&db);
}

#[test]
fn a_transaction_with_several_updates_is_there_after_opening_again() {
    let folder = Folder::new("update many twice");
    {
        let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
        let mut s = filled(&db);
        run(&mut s, "begin; update t set n = n + 1; update t set n = n + 1 where n > 5").unwrap();
        run(&mut s, "update t set s = 'one' where id = 77; delete from t where id = 78").unwrap();
        run(&mut s, "delete from t where n > 9; insert into t values (78, 547, 0, 'new')").unwrap();
        run(&mut s, "commit").unwrap();
    }
    let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
    let mut s = db.session();
    assert_eq!(
        rows(&mut s, "select n, count(*) from t group by n order by n").unwrap(),
        ["0|1", "1|2000", "2|2000", "3|2000", "4|2000", "5|2000", "7|2000", "8|2000", "9|2000"]
    );
    assert_eq!(
        rows(&mut s, "select id, n, s from t where id in (77, 78)").unwrap(),
        ["77|9|one", "78|0|new"]
    );
    assert_sound(&db);
}

#[test]
fn other_writers_wait_for_an_update_that_is_not_committed() {
    for statement in [
        "update t set s = '' where id = 7",
        "delete from t where u = 50",
        "insert into t values (7, -1, 0, '')",
        "insert into t values (-1, 50, 0, '')",
        "insert into t values (7, -1, 0, '') on duplicate key update s = ''",
        "select * from t where id = 7 for update",
        "delete from t where n = 7",
        "update t set n = n + 1",
    ] {
        let (db, mut s) = opened();
        let mut other = db.session();
        run(&mut s, "begin; update t set s = 'mine'").unwrap();
        assert_eq!(kind(&mut other, statement), Some(ErrorKind::LockTimeout), "{statement}");
        let done = blocked(&mut other, statement, || drop(run(&mut s, "commit").unwrap()));
        match statement.starts_with("insert") && !statement.contains("update") {
            true => assert_eq!(done, Err(ErrorKind::Constraint), "{statement}"),
            false => assert!(done.is_ok(), "{statement}: {done:?}"),
        }
        assert_sound(&db);
    }
}

#[test]
fn keys_and_unique_values_move_by_one() {
    for (flush, logged_a_row) in [(true, 3), (false, 40)] {
        let (db, mut s) = opened();
        if flush {
            run(&mut s, "optimize table t full").unwrap();
        }
        let before = db.log_position();
        for statement in [
            "update t set id = id + 1",
            "update t set u = u + 7",
            "update t set id = id - 1, u = u - 7",
        ] {
            assert_eq!(run(&mut s, statement).unwrap().rows_affected, ROWS, "{statement}");
            assert_sound(&db);
        }
        assert!(db.log_position() - before < 3 * ROWS * logged_a_row);
        assert_eq!(rows(&mut s, "select * from t where id = 9").unwrap(), ["9|64|9|text of row 9"]);
        assert_eq!(rows(&mut s, "select id from t where u = 64").unwrap(), ["9"]);
        run(&mut s, "update t set id = -id").unwrap();
        assert_eq!(
            rows(&mut s, "select min(id), max(id) from t").unwrap(),
            [format!("-{}|0", ROWS - 1)]
        );
        assert_eq!(rows(&mut s, "select n from t where id = -19999").unwrap(), ["9"]);
        assert_eq!(rows(&mut s, "select n from t where id = 19999").unwrap(), [""; 0]);
        assert_sound(&db);
    }
}

#[test]
fn new_keys_that_are_taken_are_refused() {
    let (db, mut s) = opened();
    let before = sums(&mut s);
    for statement in [
        // A new row has the key of another new row, of a row of a segment, and of one in memory.
        "update t set id = 7 where id < 1000",
        "update t set id = id + 1000 where id < 1000",
        "update t set id = id + 15000 where id < 1000",
        "update t set u = 1 where id < 1000",
        "update t set u = u + 7000 where id < 1000",
        "update t set u = u + 105000 where id < 1000",
        // Rows in memory get the keys of rows in segments, and the other way round.
        "update t set id = 19998 - id where id < 1000 or id > 19990",
        "update t set id = id - 1000 where id between 14000 and 15999",
    ] {
        assert_eq!(kind(&mut s, statement), Some(ErrorKind::Constraint), "{statement}");
        assert_eq!(sums(&mut s), before);
    }
    run(&mut s, "begin; update t set id = -id - 1 where id < 500").unwrap();
    assert_eq!(kind(&mut s, "insert into t values (-3, -1, 0, '')"), Some(ErrorKind::Constraint));
    assert_eq!(
        kind(&mut s, "update t set id = -1 - (id - 500) where id between 500 and 700"),
        Some(ErrorKind::Constraint)
    );
    run(&mut s, "insert into t values (3, -1, 0, 'new'); commit").unwrap();
    assert_eq!(
        rows(&mut s, "select s from t where id in (3, -4) order by 1").unwrap(),
        ["new", "text of row 3"]
    );
    assert_sound(&db);
}

#[test]
fn new_keys_may_be_those_of_deleted_rows() {
    let (db, mut s) = opened_without_merges();
    let mut other = db.session();
    // The snapshot keeps the deleted rows in memory.
    run(&mut other, "begin; select count(*) from t").unwrap();
    run(&mut s, "delete from t where id in (17000, 17001, 17002, 3000, 3001)").unwrap();
    run(&mut s, "update t set id = id + 17000 where id < 3").unwrap();
    run(&mut s, "delete from t where id between 18000 and 18999").unwrap();
    assert_eq!(
        run(&mut s, "update t set id = id + 8000 where id between 10000 and 10999")
            .unwrap()
            .rows_affected,
        1000
    );
    for (id, text) in [(17001, "text of row 1"), (18500, "text of row 10500")] {
        let query = format!("select s from t where id = {id}");
        assert_eq!(rows(&mut s, &query).unwrap(), [text]);
        assert_eq!(rows(&mut other, &query).unwrap(), [format!("text of row {id}")]);
    }
    assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), [ROWS.to_string()]);
    assert_eq!(
        kind(&mut other, "update t set id = id + 10000 where id between 8000 and 8400"),
        Some(ErrorKind::Conflict)
    );
    assert_eq!(
        kind(&mut other, "update t set id = id - 7000 where id between 10000 and 10400"),
        Some(ErrorKind::Conflict)
    );
    run(&mut other, "rollback").unwrap();
    assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), [(ROWS - 1005).to_string()]);
    assert_sound(&db);
}

#[test]
fn other_writers_wait_for_keys_that_are_not_committed() {
    for (statement, done) in [
        ("insert into t values (-7, -1, 0, '')", Err(ErrorKind::Constraint)),
        ("insert into t values (-7, -1, 0, '') on duplicate key update s = ''", Ok(1)),
        ("replace into t values (-7, -1, 0, '')", Ok(1)),
        ("insert into t values (100000, -50, 0, '')", Err(ErrorKind::Constraint)),
        ("update t set id = -7 where id = 15000", Err(ErrorKind::Constraint)),
        ("update t set u = -50 where id = 15000", Err(ErrorKind::Constraint)),
        ("update t set id = -id where id > 0", Ok(ROWS - 1)),
    ] {
        let (db, mut s) = opened();
        let mut other = db.session();
        run(&mut s, "begin; update t set id = -id, u = -u where id < 14000").unwrap();
        assert_eq!(kind(&mut other, statement), Some(ErrorKind::LockTimeout), "{statement}");
        let ended = blocked(&mut other, statement, || drop(run(&mut s, "rollback").unwrap()));
        assert!(ended.is_ok(), "{statement}: {ended:?}");
        assert_sound(&db);
        if statement.contains("-id") {
            continue;
        }
        let (db, mut s) = opened();
        let mut other = db.session();
        run(&mut s, "begin; update t set id = -id, u = -u where id < 14000").unwrap();
        let ended = blocked(&mut other, statement, || drop(run(&mut s, "commit").unwrap()));
        assert_eq!(ended, done, "{statement}");
        assert_sound(&db);
    }
}

#[test]
fn keys_wait_for_the_locks_of_others() {
    for lock in [
        "insert into t values (-7, -1, 0, '')",
        "insert into t values (100000, -50, 0, '')",
        "delete from t where id = 15000",
        "update t set u = 200000 where id = 15000",
    ] {
        let (db, mut s) = opened();
        let mut other = db.session();
        let update = "update t set id = if(id = 5, 15000, -id), u = if(id = 5, 105001, -u)
            where id < 14000";
        run(&mut other, &format!("begin; {lock}")).unwrap();
        assert_eq!(kind(&mut s, update), Some(ErrorKind::LockTimeout), "{lock}");
        let done = blocked(&mut s, update, || drop(run(&mut other, "rollback").unwrap()));
        assert_eq!(done, Err(ErrorKind::Constraint), "{lock}");
        assert_sound(&db);
    }
}

#[test]
fn a_transaction_inserts_many_rows_and_can_undo_it() {
    let folder = Folder::new("insert many");
    let many = "select i, i * 7 + 1, i % 10, 'new' from generate_series(100000, 169999) as g(i)";
    {
        let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
        let mut s = filled(&db);
        let mut other = db.session();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        let (there, before) = (files(), db.log_position());
        run(&mut s, "begin; update t set n = -1 where id = 3; savepoint a").unwrap();
        assert_eq!(run(&mut s, &format!("insert into t {many}")).unwrap().rows_affected, 70_000);
        assert_eq!(rows(&mut s, "select s from t where u = 700008").unwrap(), ["new"]);
        assert_eq!(rows(&mut s, "select count(*) from t").unwrap(), ["90000"]);
        assert_eq!(rows(&mut other, "select count(*) from t").unwrap(), [ROWS.to_string()]);
        let taken = "insert into t values (100001, -1, 0, '')";
        assert_eq!(kind(&mut s, taken), Some(ErrorKind::Constraint));
        assert_eq!(kind(&mut other, taken), Some(ErrorKind::LockTimeout));
        assert_eq!(kind(&mut s, &format!("insert into t {many}")), Some(ErrorKind::Constraint));
        run(&mut s, "rollback to a").unwrap();
        assert_eq!(
            (files(), rows(&mut s, "select count(*) from t").unwrap()),
            (there, vec![ROWS.to_string()])
        );
        run(&mut other, "insert into t values (-1, -1, 0, '')").unwrap();
        assert!(db.log_position() - before < 1_000);
        run(&mut s, &format!("insert into t {many}")).unwrap();
        run(&mut s, "delete from t where id % 2 = 0 and id >= 100000; commit").unwrap();
        assert_sound(&db);
    }
    let db = block_on(Database::open(open_folder(folder.path()).unwrap(), bulk())).unwrap();
    let mut s = db.session();
    assert_eq!(
        rows(&mut s, "select count(*), min(id), max(id) from t").unwrap(),
        ["55001|-1|169999"]
    );
    assert_sound(&db);
}
