//! Runs the same statements here and in SQLite, on equal tables: the results must be equal as
//! multisets of rows. The statements, and what is omitted because the dialects differ, are
//! described in [`crate::query`].

use crate::input::Input;
use crate::query::{Maker, TEXTS};
use crate::subject::{Subject, options, printed};
use nacredb::{ErrorKind, Options};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// Statements that fill the tables, which must exist already.
pub fn rows(input: &mut Input<'_>) -> Vec<String> {
    let mut statements = Vec::new();
    let number = |input: &mut Input<'_>| {
        input.pick(&["null", "0", "1", "2", "3", "-1", "7", "100", "-1000000"])
    };
    let text = |input: &mut Input<'_>| {
        if input.one_in(5) { "null".to_string() } else { format!("'{}'", input.pick(&TEXTS)) }
    };
    for table in ["t", "u"] {
        let count = input.below(14);
        let mut values = Vec::new();
        for k in 0..count {
            let (a, s) = (number(input), text(input));
            values.push(match table {
                "t" => format!(
                    "({k}, {a}, {}, {s}, {})",
                    number(input),
                    input.pick(&["null", "0.25e0", "1.5e0", "-2e0", "8e0"])
                ),
                _ => format!("({k}, {a}, {s})"),
            });
        }
        if !values.is_empty() {
            let columns = if table == "t" { "k, a, b, s, d" } else { "k, a, s" };
            statements
                .push(format!("insert into {table} ({columns}) values {}", values.join(", ")));
        }
    }
    statements
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let lite = Connection::open_in_memory().expect("SQLite opens");
    lite.execute_batch("pragma case_sensitive_like = on").expect("SQLite has pragmas");
    let mut ours = Subject::new(Options {
        segment_rows: 4,
        partitions: 2,
        morsel_rows: 1,
        threads: 1 + input.below(2),
        ..options()
    });
    let keys =
        input.pick(&["", ", sort key (a)", ", shard key (k)", ", shard key (k), sort key (s, b)"]);
    ours.must(&format!(
        "create table t (k bigint primary key, a bigint, b bigint, s text, d double{keys})"
    ));
    ours.must("create table u (k bigint primary key, a bigint, s text)");
    lite.execute_batch("create table t (k integer primary key, a integer, b integer, s text, d real); create table u (k integer primary key, a integer, s text)")
        .expect("SQLite makes tables");
    for sql in rows(&mut input) {
        ours.must(&sql);
        lite.execute_batch(&sql).expect("SQLite inserts");
    }
    let flushed = input.below(4);
    let indexes = input.below(8);
    if indexes >= 4 {
        ["create index ia on t (a)", "create index isb on t (s, b)", "create index iu on u (a)"]
            .iter()
            .for_each(|sql| drop(ours.must(sql)));
    }
    // Whether a row exists is the same on both sides.
    let unique = ["", "create unique index q on t (a)", "create unique index q on t (s, a)", ""]
        [indexes % 4];
    let mut is_unique = false;
    if !unique.is_empty() {
        let made = (ours.run(unique), lite.execute_batch(unique));
        is_unique = made.0.is_ok();
        assert_eq!(
            is_unique,
            made.1.is_ok(),
            "{unique}: {:?}, SQLite {:?}",
            made.0.err(),
            made.1.err()
        );
    }
    ["t", "u"]
        .iter()
        .filter(|_| flushed > 0)
        .for_each(|t| drop(ours.must(&format!("optimize table {t} flush"))));
    while !input.is_empty() {
        let change = input.one_in(4).then(|| change(&mut input));
        if let Some(sql) = change {
            if !same_change(&mut ours, &lite, &sql, is_unique) {
                return;
            }
            if flushed > 1 && input.one_in(2) {
                ours.must("optimize table t flush");
            }
            continue;
        }
        let (mut sql, kinds) = Maker::new(&mut input, true).query();
        let ordered = input.one_in(3);
        if ordered {
            let order: Vec<String> =
                (1..=kinds.len()).map(|n| format!("{n}{}", input.pick(&["", " desc"]))).collect();
            sql = format!("{sql} order by {}", order.join(", "));
            if input.one_in(2) {
                sql = format!("{sql} limit {} offset {}", input.below(6), input.below(4));
            }
        }
        same_rows(&mut ours, &lite, &sql, ordered);
    }
    same_rows(&mut ours, &lite, "select k, a, b, s, d from t", false);
    same_rows(&mut ours, &lite, "select k, a, s from u", false);
    ours.check();
}

/// A statement that changes rows.
fn change(input: &mut Input<'_>) -> String {
    let mut maker = Maker::new(input, true);
    let columns = ["k", "a", "b", "s", "d"];
    let kinds = crate::query::TABLES[0].1;
    maker.scope =
        columns.iter().zip(kinds).map(|(name, (_, kind))| (name.to_string(), *kind)).collect();
    match maker.input.below(5) {
        0 => format!("delete from t where {}", maker.boolean(2)),
        1 => format!(
            "update t set a = {} where {}",
            maker.expression(crate::query::Kind::Int, 1),
            maker.boolean(2)
        ),
        2 => format!(
            "update t set s = {}, a = b where {}",
            maker.expression(crate::query::Kind::Text, 1),
            maker.boolean(2)
        ),
        3 => format!(
            "insert into t (k, a) values ({}, 1) on conflict (k) do update set a = excluded.a + 1, b = t.k",
            maker.input.below(20)
        ),
        _ => format!(
            "insert into t (k, s) values ({}, 'new') on conflict do nothing",
            maker.input.below(20)
        ),
    }
}

/// Returns `false` if the two may differ from here on: SQLite checks unique values row by row and
/// rejects an update that exchanges some.
fn same_change(ours: &mut Subject, lite: &Connection, sql: &str, is_unique: bool) -> bool {
    let found = ours.run(sql);
    if found
        .as_ref()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Limit))
    {
        return true;
    }
    match (found, lite.execute(sql, [])) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.rows_affected, theirs as u64, "{sql}: rows changed")
        }
        (Err(error), Ok(_)) => panic!("{sql}: {error}"),
        (Ok(_), Err(_)) if is_unique && sql.starts_with("update") => return false,
        (Ok(_), Err(error)) => panic!("{sql}: SQLite refuses: {error}"),
        (Err(_), Err(_)) => {}
    }
    true
}

fn same_rows(ours: &mut Subject, lite: &Connection, sql: &str, ordered: bool) {
    let found = match ours.run(sql) {
        Ok(result) => result,
        // A limit of the engine, or an unsupported feature.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::Unsupported | ErrorKind::Limit | ErrorKind::Cancelled
            ) =>
        {
            return;
        }
        Err(error) => panic!("{sql}\n{}: {error}", error.kind().name()),
    };
    let mut statement =
        lite.prepare(sql).unwrap_or_else(|error| panic!("{sql}\nSQLite refuses: {error}"));
    let width = statement.column_count();
    let mut theirs = Vec::new();
    let mut rows = statement.query([]).expect("SQLite runs");
    while let Some(row) = rows.next().unwrap_or_else(|error| panic!("{sql}\nSQLite fails: {error}"))
    {
        theirs.push(
            (0..width)
                .map(|at| lite_text(row.get_ref(at).expect("a column")))
                .collect::<Vec<String>>(),
        );
    }
    let mut ours: Vec<Vec<String>> =
        printed(&found).into_iter().map(|row| row.into_iter().map(plain).collect()).collect();
    if !ordered {
        ours.sort();
        theirs.sort();
    }
    assert_eq!(ours, theirs, "{sql}\nours left, SQLite's right");
}

/// Formats one of our values as SQLite would.
fn plain(text: String) -> String {
    match text.as_str() {
        "true" => "1".into(),
        "false" => "0".into(),
        _ => match text.strip_suffix(".0") {
            Some("-0") => "0".into(),
            Some(whole) if whole.parse::<i64>().is_ok() => whole.into(),
            _ => text,
        },
    }
}

fn lite_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) if number == number.trunc() && number.abs() < 1e15 => {
            format!("{}", number as i64)
        }
        ValueRef::Real(number) => format!("{number:?}"),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}
