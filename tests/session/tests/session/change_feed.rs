//! Feeds of changed rows: after any statements, flushes and merges, a feed has exactly the rows that
//! differ between two readings of the table.

use nacre_native::block_on;
use nacre_session_tests::{Random, memory, memory_host, run};
use nacredb::{Database, ErrorKind, Options, Result, Value};
use std::collections::BTreeMap;

type Rows = BTreeMap<String, Vec<Value>>;

/// Small segments, which statements of a few rows write and delete from.
fn small() -> Result<Database> {
    let options = Options {
        segment_rows: 64,
        bulk_rows: 20,
        merge_from: 2,
        partitions: 2,
        ..Options::default()
    };
    block_on(Database::open(memory_host(), options))
}

/// The rows of a table, by their first column.
fn read(db: &Database, table: &str) -> Result<Rows> {
    let rows = run(&mut db.session(), &format!("select * from {table}"))?.to_rows();
    Ok(rows.into_iter().map(|row| (format!("{:?}", row[0]), row)).collect())
}

/// What a feed answers if a table was `old` and is `new`.
fn difference(old: &Rows, new: &Rows) -> Vec<Vec<Value>> {
    let mut changes = Vec::new();
    for (key, row) in old {
        match new.get(key) {
            None => changes.push(change("delete", row)),
            Some(now) if now != row => changes.push(change("update", now)),
            Some(_) => {}
        }
    }
    let inserted = new.iter().filter(|(key, _)| !old.contains_key(*key));
    changes.extend(inserted.map(|(_, row)| change("insert", row)));
    sorted(changes)
}

fn change(what: &str, row: &[Value]) -> Vec<Value> {
    [&[Value::Text(what.into())], row].concat()
}

fn sorted(mut changes: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    changes.sort_by_key(|row| format!("{row:?}"));
    changes
}

/// A statement that changes some rows, or where they are.
fn statement(random: &mut Random) -> String {
    let (key, n) = (random.below(200), random.below(50));
    let many = key + 20 + n;
    match random.below(12) {
        0 | 1 => {
            format!("insert into t values ({key}, {n}, 'new') on duplicate key update n = {n}")
        }
        2 => format!("update t set n = n + {n} where id = {key}"),
        3 => format!("update t set note = note where id between {key} and {many}"),
        4 => format!("update t set n = {n} where id between {key} and {many}"),
        5 => format!("update t set id = id + 1000 where id = {key}"),
        6 => format!("delete from t where id = {key}"),
        7 => format!("delete from t where id between {key} and {many}"),
        8 => format!(
            "replace into t select i, {n}, 'many' from generate_series({key}, {many}) as s(i)"
        ),
        9 => "optimize table t flush".into(),
        10 => "optimize table t full".into(),
        _ => format!("begin; delete from t where id < {n}; rollback"),
    }
}

#[test]
fn a_feed_has_the_rows_that_differ() -> Result<()> {
    for seed in 0..60 {
        let db = small()?;
        let mut session = db.session();
        let shard = if seed % 2 == 0 { ", shard key (id)" } else { "" };
        run(
            &mut session,
            &format!("create table t (id int primary key, n int, note text{shard})"),
        )?;
        let mut random = Random::new(seed);
        let mut feed = db.change_feed("t")?;
        let mut seen = read(&db, "t")?;
        for call in 0..30 {
            for _ in 0..random.below(6) {
                let sql = statement(&mut random);
                if let Err(error) = run(&mut session, &sql) {
                    assert_eq!(error.kind(), ErrorKind::Constraint, "seed {seed}: {sql}: {error}");
                }
            }
            while random.below(3) == 0 && db.maintain(nacredb::Budget::Steps(1))? {}
            let changes = sorted(block_on(feed.next())?.to_rows());
            let now = read(&db, "t")?;
            assert_eq!(changes, difference(&seen, &now), "seed {seed}, call {call}");
            seen = now;
        }
    }
    Ok(())
}

#[test]
fn a_feed_has_what_other_sessions_commit_and_no_more() -> Result<()> {
    let db = memory()?;
    let (mut one, mut two) = (db.session(), db.session());
    run(&mut one, "create table t (id int primary key, n int)")?;
    let mut feed = db.change_feed("t")?;
    run(&mut one, "begin; insert into t values (1, 0)")?;
    run(&mut two, "insert into t values (2, 0)")?;
    let row = |what: &str, id, n| vec![Value::Text(what.into()), Value::Int(id), Value::Int(n)];
    assert_eq!(block_on(feed.next())?.to_rows(), [row("insert", 2, 0)]);
    run(&mut one, "commit")?;
    run(&mut two, "update t set n = 1 where id = 2; insert into t values (3, 0)")?;
    run(&mut two, "delete from t where id = 3")?;
    assert_eq!(block_on(feed.next())?.to_rows(), [row("insert", 1, 0), row("update", 2, 1)]);
    assert_eq!(block_on(feed.next())?.to_rows(), Vec::<Vec<Value>>::new());
    Ok(())
}

#[test]
fn a_feed_ends_with_what_it_cannot_compare() -> Result<()> {
    let db = memory()?;
    let mut session = db.session();
    run(&mut session, "create table t (id int primary key); create table keyless (n int)")?;
    assert_eq!(db.change_feed("missing").map(drop).map_err(|e| e.kind()), Err(ErrorKind::NotFound));
    assert_eq!(
        db.change_feed("keyless").map(drop).map_err(|e| e.kind()),
        Err(ErrorKind::Unsupported)
    );

    let mut feed = db.change_feed("t")?;
    run(&mut session, "insert into t values (1); create index by_id on t (id)")?;
    assert_eq!(block_on(feed.next())?.rows(), 1);
    run(&mut session, "truncate table t; insert into t values (2)")?;
    assert_eq!(block_on(feed.next()).err().map(|e| e.kind()), Some(ErrorKind::Conflict));

    let mut feed = db.change_feed("t")?;
    run(&mut session, "alter table t add column n int")?;
    assert_eq!(block_on(feed.next()).err().map(|e| e.kind()), Some(ErrorKind::Conflict));

    let mut feed = db.change_feed("t")?;
    run(&mut session, "drop table t; create table t (id int primary key, n int)")?;
    assert_eq!(block_on(feed.next()).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    Ok(())
}
