//! Invalid input: values and keys that are too large, a log of a newer version, a log cut at any
//! position.

use nacre_session_tests::{Folder, folder, memory, rows, run, run_with};
use nacredb::{Error, ErrorKind, Value, limits};

fn state(result: Result<impl Sized, Error>) -> (ErrorKind, String) {
    let error = result.err().expect("must fail");
    (error.kind(), error.message().to_string())
}

#[test]
fn a_value_too_large_is_a_limit_and_changes_nothing() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id bigint primary key, a text, b blob); insert into t values (1, 'a', null)").unwrap();
    let long = "x".repeat(limits::MAX_VALUE_BYTES + 1);
    let text = [Value::Text(long.clone())];
    let bytes = [Value::Binary(long.into_bytes())];
    for in_transaction in [false, true] {
        if in_transaction {
            run(&mut s, "begin").unwrap();
        }
        let inserted = run_with(&mut s, "insert into t values (2, 'b', null), (3, ?, null)", &text);
        assert_eq!(state(inserted).0, ErrorKind::Limit);
        assert_eq!(state(run_with(&mut s, "update t set b = ?", &bytes)).0, ErrorKind::Limit);
        assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1|a|NULL"]);
        if in_transaction {
            run(&mut s, "insert into t values (4, 'still works', null); commit").unwrap();
        }
    }
    assert_eq!(rows(&mut s, "select id from t order by id").unwrap(), ["1", "4"]);
}

#[test]
fn a_key_too_large_is_a_limit_and_changes_nothing() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id text primary key, n bigint)").unwrap();
    let long = [Value::Text("k".repeat(limits::MAX_KEY_BYTES + 1))];
    assert_eq!(
        state(run_with(&mut s, "insert into t values ('a', 1), (?, 2)", &long)).0,
        ErrorKind::Limit
    );
    assert_eq!(rows(&mut s, "select * from t").unwrap(), Vec::<String>::new());
    run(&mut s, "insert into t values ('a', 1)").unwrap();
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["a|1"]);
}

#[test]
fn a_moment_outside_the_calendar_is_refused_and_changes_nothing() {
    use nacre_types::temporal::{MAX_DATE, MICROS_PER_DAY, MIN_DATE};
    let db = memory().unwrap();
    let mut s = db.session();
    run(&mut s, "create table m (id bigint primary key, d date, t time, z timestamp)").unwrap();
    let (first, end) = (MIN_DATE as i64 * MICROS_PER_DAY, (MAX_DATE as i64 + 1) * MICROS_PER_DAY);
    let ends = [
        ("d", Value::Date(MIN_DATE), Value::Date(MAX_DATE)),
        ("t", Value::Time(0), Value::Time(MICROS_PER_DAY - 1)),
        ("z", Value::Timestamp(first), Value::Timestamp(end - 1)),
    ];
    for (column, low, high) in ends {
        run_with(
            &mut s,
            &format!("insert into m (id, {column}) values (1, ?), (2, ?)"),
            &[low, high],
        )
        .unwrap();
        run(&mut s, "delete from m").unwrap();
    }
    run(&mut s, "insert into m values (1, '2026-01-01', '12:00', '2026-01-01')").unwrap();
    let before = rows(&mut s, "select * from m").unwrap();
    let beyond = [
        ("d", Value::Date(MIN_DATE - 1)),
        ("d", Value::Date(i32::MAX)),
        ("t", Value::Time(-1)),
        ("t", Value::Time(MICROS_PER_DAY)),
        ("z", Value::Timestamp(first - 1)),
        ("z", Value::Timestamp(end)),
    ];
    for (column, value) in beyond {
        let many: Vec<String> = (2..40).map(|id| format!("({id}, null)")).collect();
        for sql in [
            format!("insert into m (id, {column}) values (2, ?)"),
            format!("insert into m (id, {column}) values {}, (40, ?)", many.join(", ")),
            format!(
                "insert into m (id, {column}) values (1, ?) on conflict (id) do update set {column} = excluded.{column}"
            ),
            format!("update m set {column} = ?"),
            format!("update m set {column} = ? where id = 1"),
        ] {
            let error = run_with(&mut s, &sql, std::slice::from_ref(&value)).expect_err(&sql);
            assert_eq!(error.sqlstate(), "22008", "{sql}: {error}");
            assert_eq!(rows(&mut s, "select * from m").unwrap(), before);
        }
    }
}

fn with_log(place: &Folder) -> Vec<u8> {
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id bigint primary key, name text)").unwrap();
    for id in 0..20 {
        run(&mut s, &format!("insert into t values ({id}, 'name {id}')")).unwrap();
    }
    drop(s);
    drop(db);
    std::fs::read(place.files("log-").remove(0)).unwrap()
}

#[test]
fn a_log_of_a_newer_version_is_unsupported_and_left_alone() {
    let place = Folder::new("newer");
    let good = with_log(&place);
    let file = place.files("log-").remove(0);
    let mut newer = good.clone();
    newer[8..12].copy_from_slice(&99u32.to_le_bytes());
    let sum = nacre_types::checksum::checksum(&newer[..56]);
    newer[56..64].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&file, &newer).unwrap();
    let (kind, message) = state(folder(place.path()));
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(message.contains("log-") && message.contains("version 99"), "{message}");
    assert!(std::fs::read(&file).unwrap() == newer, "a newer log must not be touched");
    std::fs::write(&file, &good).unwrap();
    let db = folder(place.path()).unwrap();
    assert_eq!(rows(&mut db.session(), "select count(*) from t").unwrap(), ["20"]);
}

/// A torn write leaves any prefix of the log. The database must open with whole transactions, in
/// order.
#[test]
fn a_log_cut_anywhere_opens_with_whole_transactions() {
    let place = Folder::new("torn");
    let good = with_log(&place);
    let file = place.files("log-").remove(0);
    let end = good.len() - good.iter().rev().take_while(|b| **b == 0).count();
    let mut most = 0;
    for cut in (64..=end).rev().step_by(7) {
        std::fs::write(&file, &good[..cut]).unwrap();
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        let found = match rows(&mut s, "select id from t order by id") {
            Ok(found) => found,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "cut at {cut}: {error}");
                Vec::new()
            }
        };
        let expected: Vec<String> = (0..found.len()).map(|id| id.to_string()).collect();
        assert_eq!(found, expected, "cut at {cut}");
        assert_eq!(db.check().unwrap(), Vec::<String>::new());
        most = most.max(found.len());
    }
    assert!(most >= 19, "the longest cut has nearly everything: {most}");
}

#[test]
fn a_table_has_as_many_columns_as_can_be_flushed() {
    let db = memory().unwrap();
    let mut s = db.session();
    let columns =
        |count: usize| (0..count).map(|at| format!("c{at} int")).collect::<Vec<_>>().join(", ");
    let most = limits::MAX_COLUMNS;
    let tables = [
        ("plain", format!("create table plain ({})", columns(most))),
        (
            "sorted",
            format!("create table sorted ({}, primary key (c0), sort key (c1))", columns(most - 1)),
        ),
    ];
    for (name, sql) in tables {
        run(&mut s, &sql).unwrap();
        for values in ["1, 2", "2, 1", "3, 3"] {
            run(&mut s, &format!("insert into {name} (c0, c1) values ({values})")).unwrap();
            run(&mut s, &format!("optimize table {name} flush")).unwrap();
        }
        run(&mut s, &format!("optimize table {name} full")).unwrap();
        assert_eq!(
            rows(&mut s, &format!("select sum(c0), count(c4094) from {name}")).unwrap(),
            ["6|0"]
        );
        assert_eq!(
            state(run(&mut s, &format!("create index by_c on {name} (c2)"))).0,
            ErrorKind::Limit
        );
    }
    assert_eq!(
        state(run(&mut s, &format!("create table t ({})", columns(most + 1)))).0,
        ErrorKind::Limit
    );
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}
