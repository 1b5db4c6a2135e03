//! Databases that are opened only to be read, beside the one that writes.

use nacre_native::{block_on, open_folder, open_folder_beside};
use nacre_session_tests::{Folder, folder, kind, rows, run};
use nacredb::{Database, ErrorKind, Options, Result};
use std::path::Path;

fn beside(path: &Path) -> Result<Database> {
    let options = Options { read_only: true, ..Options::default() };
    block_on(Database::open(open_folder_beside(path)?, options))
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_reader_sees_what_was_committed_when_it_was_refreshed() {
    let place = Folder::new("reader");
    let db = folder(place.path()).unwrap();
    let mut writer = db.session();
    run(&mut writer, "create table t (id int primary key, n int, key (n))").unwrap();
    run(&mut writer, "insert into t values (1, 1), (2, 2)").unwrap();
    let reader = beside(place.path()).unwrap();
    let mut s = reader.session();
    let all = "select * from t order by id";
    assert_eq!(rows(&mut s, all).unwrap(), ["1|1", "2|2"]);

    run(&mut writer, "insert into t values (3, 3); update t set n = 10 where id = 1").unwrap();
    run(&mut writer, "optimize table t flush; delete from t where id = 2").unwrap();
    assert_eq!(rows(&mut s, all).unwrap(), ["1|1", "2|2"], "nothing is refreshed");
    run(&mut s, "begin").unwrap();
    assert_eq!(rows(&mut s, all).unwrap(), ["1|1", "2|2"]);
    assert!(reader.refresh().unwrap());
    assert!(!reader.refresh().unwrap(), "nothing is new");
    assert_eq!(rows(&mut s, all).unwrap(), ["1|1", "2|2"], "a transaction keeps its snapshot");
    let mut fresh = reader.session();
    assert_eq!(rows(&mut fresh, all).unwrap(), ["1|10", "3|3"]);
    assert_eq!(rows(&mut fresh, "select id from t where n = 10").unwrap(), ["1"]);
    run(&mut s, "commit").unwrap();
    assert_eq!(rows(&mut s, all).unwrap(), ["1|10", "3|3"]);

    run(&mut writer, "alter table t add column c int default 7; drop index n on t").unwrap();
    run(&mut writer, "optimize table t full; create view v as select c from t").unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(rows(&mut s, all).unwrap(), ["1|10|7", "3|3|7"]);
    assert_eq!(rows(&mut s, "select * from v").unwrap(), ["7", "7"]);
    run(&mut writer, "drop view v; drop table t").unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(kind(&mut s, all), Some(ErrorKind::NotFound));
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

/// A transaction keeps what was deleted; a later read by key finds what was loaded in its place.
#[test]
fn a_reader_finds_rows_by_key_that_were_loaded_over_deleted_ones() {
    let place = Folder::new("loaded");
    let db = folder(place.path()).unwrap();
    let mut writer = db.session();
    run(&mut writer, "create table t (id int primary key, n int)").unwrap();
    run(&mut writer, "insert into t values (1, 1), (2, 2)").unwrap();
    let reader = beside(place.path()).unwrap();
    let mut old = reader.session();
    run(&mut old, "begin").unwrap();
    assert_eq!(rows(&mut old, "select n from t where id = 1").unwrap(), ["1"]);
    run(&mut writer, "delete from t where id = 2").unwrap();
    reader.refresh().unwrap();
    let load = "replace into t select i, 7 from generate_series(1, 100000) s (i)";
    run(&mut writer, load).unwrap();
    reader.refresh().unwrap();
    let mut new = reader.session();
    for id in [1, 2, 3] {
        let row = rows(&mut new, &format!("select n from t where id = {id}")).unwrap();
        assert_eq!(row, ["7"], "row {id}");
    }
    assert_eq!(rows(&mut old, "select n from t where id = 1").unwrap(), ["1"]);
    assert_eq!(rows(&mut old, "select count(*), sum(n) from t").unwrap(), ["2|3"]);
}

/// The end of a log that was closed is a mark, which is no commit.
#[test]
fn a_reader_reaches_the_end_of_a_log_that_was_closed() {
    let place = Folder::new("closed");
    let db = folder(place.path()).unwrap();
    run(&mut db.session(), "create table t (id int primary key)").unwrap();
    let reader = beside(place.path()).unwrap();
    block_on(db.close()).unwrap();
    drop(db);
    let db = folder(place.path()).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.log_position(), db.log_position());
    run(&mut db.session(), "insert into t values (1)").unwrap();
    reader.refresh().unwrap();
    assert_eq!(rows(&mut reader.session(), "select * from t").unwrap(), ["1"]);
    assert_eq!(reader.log_position(), db.log_position());
}

#[test]
fn a_reader_writes_nothing() {
    let place = Folder::new("readonly");
    let db = folder(place.path()).unwrap();
    run(&mut db.session(), "create table t (id int primary key); insert into t values (1)")
        .unwrap();
    let before = names(place.path());
    let reader = beside(place.path()).unwrap();
    let mut s = reader.session();
    for sql in [
        "insert into t values (2)",
        "insert into t select 5",
        "update t set id = 3",
        "delete from t where id = 99",
        "select * from t where id = 1 for update",
        "create table u (id int)",
        "create table if not exists t (id int)",
        "create table u as select * from t",
        "create view v as select 1 as one",
        "alter table t add column c int",
        "create index i on t (id)",
        "truncate table t",
        "drop table t",
        "drop table if exists nothing",
        "optimize table t flush",
        "optimize table t full",
    ] {
        let error = run(&mut s, sql).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error}");
        assert_eq!(error.sqlstate(), "25006", "{sql}: {error}");
    }
    assert!(!reader.maintain(nacredb::Budget::Steps(9)).unwrap());
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["1"]);
    block_on(reader.close()).unwrap();
    drop((s, reader));
    assert_eq!(names(place.path()), before);
    run(&mut db.session(), "insert into t values (2)").unwrap();
}

#[test]
fn a_reader_needs_a_database_and_no_writer() {
    let place = Folder::new("alone");
    assert_eq!(beside(place.path()).err().map(|e| e.kind()), Some(ErrorKind::NotFound));
    let db = folder(place.path()).unwrap();
    run(&mut db.session(), "create table t (id int); insert into t values (1)").unwrap();
    drop(db);
    let reader = beside(place.path()).unwrap();
    assert_eq!(rows(&mut reader.session(), "select * from t").unwrap(), ["1"]);
    // A writer may come while the reader is there.
    let db = folder(place.path()).unwrap();
    run(&mut db.session(), "insert into t values (2)").unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!(rows(&mut reader.session(), "select * from t order by id").unwrap(), ["1", "2"]);
}

/// Files of segments, index parts and hash tables.
fn data_files(path: &Path) -> Vec<String> {
    let mut names = names(path);
    names.retain(|name| !name.starts_with("log-") && !name.starts_with("snap-"));
    names.retain(|name| name.contains('-'));
    names
}

#[test]
fn a_reader_reads_files_that_its_writer_removed() {
    let place = Folder::new("removed");
    let db = folder(place.path()).unwrap();
    let mut writer = db.session();
    run(&mut writer, "create table t (id int primary key, n int, u int unique, key (n))").unwrap();
    for start in [0, 500] {
        let values: Vec<String> =
            (start..start + 500).map(|id| format!("({id}, {}, {id})", id % 7)).collect();
        run(&mut writer, &format!("insert into t values {}", values.join(", "))).unwrap();
        run(&mut writer, "optimize table t flush").unwrap();
    }
    // Footers are read anew for each use, long after the files were removed.
    let options = Options { read_only: true, metadata_bytes: 0, ..Options::default() };
    let reader = open_folder_beside(place.path()).unwrap();
    let reader = block_on(Database::open(reader, options)).unwrap();
    let before = data_files(place.path());
    run(&mut writer, "delete from t where id < 10; optimize table t full").unwrap();
    while db.maintain(nacredb::Budget::Steps(9)).unwrap() {}
    let after = data_files(place.path());
    let is_there = |name: &&String| after.contains(name);
    assert_eq!(before.iter().filter(is_there).count(), 0, "{before:?} are still there");
    let mut s = reader.session();
    let expect = |s: &mut _, all: &str, few: &str, one: &[&str]| {
        assert_eq!(rows(s, "select count(*), sum(u) from t").unwrap(), [all]);
        assert_eq!(rows(s, "select count(*) from t where n = 3").unwrap(), [few]);
        assert_eq!(rows(s, "select n from t where id = 3").unwrap(), one);
        assert_eq!(rows(s, "select id from t where u = 777").unwrap(), ["777"]);
    };
    for _ in 0..2 {
        expect(&mut s, "1000|499500", "143", &["3"]);
    }
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
    assert!(reader.refresh().unwrap());
    expect(&mut s, "990|499455", "142", &[]);
    assert_eq!(reader.check().unwrap(), Vec::<String>::new());
}

/// The chunks of the log.
fn chunks(path: &Path) -> Vec<String> {
    names(path).into_iter().filter(|name| name.starts_with("log-")).collect()
}

#[test]
fn the_log_is_kept_for_a_reader_that_is_behind() {
    let place = Folder::new("kept");
    let options = Options { snapshot_bytes: 20_000, ..Options::default() };
    let db = block_on(Database::open(open_folder(place.path()).unwrap(), options)).unwrap();
    let mut writer = db.session();
    run(&mut writer, "create table t (id bigint primary key, s text)").unwrap();
    let reader = beside(place.path()).unwrap();
    db.keep_log("reader", reader.log_position(), 1 << 30).unwrap();
    let kept = chunks(place.path());
    let mut write = |from: u64| {
        for id in from..from + 400 {
            run(&mut writer, &format!("insert into t values ({id}, '{}')", "x".repeat(300)))
                .unwrap();
        }
        while db.maintain(nacredb::Budget::Steps(9)).unwrap() {}
    };
    write(0);
    let now = chunks(place.path());
    assert!(now.len() >= 3 && kept.iter().all(|chunk| now.contains(chunk)), "{kept:?}, {now:?}");
    assert!(reader.refresh().unwrap());
    let count = |reader: &Database| rows(&mut reader.session(), "select count(*) from t").unwrap();
    assert_eq!(count(&reader), ["400"]);

    // What it has read is removed with the next snapshot.
    db.confirm_log("reader", reader.log_position()).unwrap();
    assert_eq!(db.log_followers(), [("reader".to_string(), reader.log_position())]);
    write(400);
    let later = chunks(place.path());
    assert!(kept.iter().all(|chunk| !later.contains(chunk)), "{kept:?}, {later:?}");
    db.release_log("reader");
    assert!(chunks(place.path()).len() < later.len());
    assert_eq!(db.log_followers(), []);
    assert!(reader.refresh().unwrap(), "it loads the snapshot");
    assert_eq!(count(&reader), ["800"]);

    let kind = |result: Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(db.confirm_log("reader", 0)), ErrorKind::NotFound);
    assert_eq!(kind(db.confirm_log("reader", u64::MAX)), ErrorKind::NotFound);
    assert_eq!(kind(db.keep_log("reader", 0, 1 << 30)), ErrorKind::NotFound);
    assert_eq!(kind(reader.keep_log("other", 0, 1 << 30)), ErrorKind::Unsupported);
}
