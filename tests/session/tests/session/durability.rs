//! What survives closing, reopening and damage.

use nacre_session_tests::{Folder, folder, kind, memory, rows, run};
use nacredb::{ErrorKind, OnDuplicate};

#[test]
fn data_is_there_after_reopening() {
    let place = Folder::new("reopen");
    {
        let db = folder(place.path()).unwrap();
        let mut s = db.session();
        run(
            &mut s,
            "create table t (id bigint primary key, name text, price decimal(12,2), day date)",
        )
        .unwrap();
        run(&mut s, "insert into t values (1, 'a', 1.25, '2026-01-31'), (2, null, -3, null)")
            .unwrap();
        run(
            &mut s,
            "optimize table t flush; insert into t values (3, 'c', 0, '1999-12-31'); delete from t where id = 2",
        )
        .unwrap();
    }
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    assert_eq!(
        rows(&mut s, "select * from t order by id").unwrap(),
        ["1|a|1.25|2026-01-31", "3|c|0.00|1999-12-31"]
    );
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
    nacre_native::block_on(db.close()).unwrap();
    assert_eq!(kind(&mut s, "select 1 from t"), Some(ErrorKind::Closed));
}

#[test]
fn a_closed_database_refuses_changes_of_the_catalog() {
    let db = memory().unwrap();
    let (mut s, mut open) = (db.session(), db.session());
    run(
        &mut s,
        "create table t (id int primary key, n int, key k (n)); create view v as select n from t",
    )
    .unwrap();
    run(&mut open, "begin; insert into t values (1, 1)").unwrap();
    nacre_native::block_on(db.close()).unwrap();
    let create = "create table u (id int primary key)";
    for sql in [
        create,
        "create table if not exists t (id int)",
        "create or replace table t (id int)",
        "create table u as select n from t",
        "create index i on t (id, n)",
        "create view w as select id from t",
        "alter table t add column c int",
        "drop index k on t",
        "drop view v",
        "drop table t",
        "drop table if exists t",
        "truncate table t",
    ] {
        assert_eq!(kind(&mut s, sql), Some(ErrorKind::Closed), "{sql}");
    }
    assert_eq!(kind(&mut open, create), Some(ErrorKind::Closed));
}

#[test]
fn a_folder_has_one_user() {
    let place = Folder::new("lock");
    let db = folder(place.path()).unwrap();
    assert_eq!(folder(place.path()).err().map(|e| e.kind()), Some(ErrorKind::InUse));
    drop(db);
    folder(place.path()).unwrap();
}

#[test]
fn a_folder_open_in_a_script_is_in_use() {
    let place = Folder::new("script");
    let lock = place.path().join("LOCK.node");
    std::fs::create_dir_all(&lock).unwrap();
    let own = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let started =
        own.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19)).unwrap_or_default();
    std::fs::write(lock.join("0123456789.owner"), format!("{} {started}", std::process::id()))
        .unwrap();
    assert_eq!(folder(place.path()).err().map(|e| e.kind()), Some(ErrorKind::InUse));
    // The owner is gone: no process has this id and this start time.
    if !started.is_empty() {
        std::fs::write(lock.join("0123456789.owner"), format!("{} 1", std::process::id())).unwrap();
        folder(place.path()).unwrap();
    }
}

fn with_segment(place: &Folder) -> Vec<u8> {
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    run(&mut s, "create table t (id bigint primary key, name text)").unwrap();
    for base in 0..20 {
        let values: Vec<String> =
            (0..100).map(|i| format!("({}, 'name {}')", base * 100 + i, i % 7)).collect();
        run(&mut s, &format!("insert into t values {}", values.join(", "))).unwrap();
    }
    run(&mut s, "optimize table t flush").unwrap();
    drop(s);
    drop(db);
    let files = place.files("seg-");
    assert_eq!(files.len(), 1);
    std::fs::read(&files[0]).unwrap()
}

#[test]
fn every_flipped_byte_of_a_segment_is_found() {
    let place = Folder::new("flip");
    let good = with_segment(&place);
    let file = place.files("seg-").remove(0);
    for at in (0..good.len()).step_by(good.len() / 60 + 1) {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&file, &bad).unwrap();
        // Damage to the footer fails the first read of the segment, damage to a block that of the
        // block.
        let db = folder(place.path()).unwrap();
        let findings = db.check().unwrap();
        assert!(findings.iter().all(|finding| finding.contains("seg-")), "{findings:?}");
        let read = run(&mut db.session(), "select count(name), sum(id) from t").map(drop);
        match read {
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Corrupt, "byte {at}: {e}");
                assert!(e.message().contains("seg-"), "{e}");
                assert!(!findings.is_empty(), "byte {at}: {e} is not found by the check");
            }
            // Padding, or a block that this statement does not need.
            Ok(()) => {
                assert!(findings.iter().all(|finding| finding.contains("block")), "{findings:?}");
            }
        }
    }
    std::fs::write(&file, &good).unwrap();
    assert_eq!(folder(place.path()).unwrap().check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_damaged_block_fails_its_reader_only() {
    let place = Folder::new("block");
    let mut bad = with_segment(&place);
    let text = bad.windows(6).position(|w| w == b"name 0").expect("a plain or dictionary value");
    bad[text] = b'N';
    std::fs::write(place.files("seg-").remove(0), &bad).unwrap();
    let db = folder(place.path()).unwrap();
    let mut s = db.session();
    assert_eq!(
        kind(&mut s, "select min(name) from t where id >= 0 and name <> 'x'"),
        Some(ErrorKind::Corrupt)
    );
    assert_eq!(rows(&mut s, "select count(*) from t where id < 1000").unwrap(), ["1000"]);
    run(&mut s, "insert into t values (9999, 'still works')").unwrap();
    assert_eq!(rows(&mut s, "select name from t where id = 9999").unwrap(), ["still works"]);
}

#[test]
fn a_truncated_or_missing_segment_is_named() {
    let place = Folder::new("cut");
    let good = with_segment(&place);
    let file = place.files("seg-").remove(0);
    for len in [0, 7, good.len() / 2, good.len() - 1] {
        std::fs::write(&file, &good[..len]).unwrap();
        let db = folder(place.path()).unwrap();
        for sql in ["select sum(id) from t", "select name from t where id = 7"] {
            let error = run(&mut db.session(), sql).map(drop).expect_err("a cut segment");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{len}: {error}");
            assert!(error.message().contains("seg-"), "{error}");
        }
        let findings = db.check().unwrap();
        assert!(findings.iter().any(|finding| finding.contains("seg-")), "{len}: {findings:?}");
    }
    std::fs::remove_file(&file).unwrap();
    let error = folder(place.path()).err().expect("a missing segment");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn segments_without_their_log_are_kept() {
    let place = Folder::new("nolog");
    with_segment(&place);
    for file in [place.files("log-"), place.files("snap-")].concat() {
        std::fs::remove_file(file).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(folder(place.path()).err().map(|e| e.kind()), Some(ErrorKind::Corrupt));
        assert_eq!(place.files("seg-").len(), 1);
    }
}

#[test]
fn a_bulk_load_that_replaces_a_row_conflicts_with_its_writers() {
    for (flush, merge) in [(false, false), (true, false), (true, true)] {
        for write in ["update t set name = 'mine' where id = 1", "delete from t where id = 1"] {
            let db = memory().unwrap();
            let (mut s, mut writer) = (db.session(), db.session());
            run(&mut s, "create table t (id bigint primary key, name text); insert into t values (1, 'a'), (2, 'b')")
                .unwrap();
            if flush {
                run(&mut s, "optimize table t flush").unwrap();
            }
            run(&mut writer, "begin").unwrap();
            let row = run(&mut s, "select cast(1 as bigint), 'loaded'").unwrap().batches.remove(0);
            let mut appender =
                nacre_native::block_on(s.appender("t", OnDuplicate::Replace)).unwrap();
            appender.append(&row).unwrap();
            nacre_native::block_on(appender.finish()).unwrap();
            if merge {
                run(&mut s, "optimize table t full").unwrap();
            }
            assert_eq!(
                kind(&mut writer, write),
                Some(ErrorKind::Conflict),
                "{write}, {flush}, {merge}"
            );
            run(&mut writer, "rollback").unwrap();
            assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|loaded", "2|b"]);
            assert_eq!(db.check().unwrap(), Vec::<String>::new());
        }
    }
}

#[test]
fn bulk_loads_are_all_or_nothing() {
    let db = memory().unwrap();
    let mut s = db.session();
    run(
        &mut s,
        "create table src (id bigint primary key, name text); create table t (id bigint primary key, name text)",
    )
    .unwrap();
    run(
        &mut s,
        "insert into src values (1, 'a'), (2, 'b'), (3, 'c'); insert into t values (2, 'old')",
    )
    .unwrap();
    let batches = run(&mut s, "select * from src").unwrap().batches;
    let load = |policy| {
        let mut s = db.session();
        let mut appender = nacre_native::block_on(s.appender("t", policy))?;
        for batch in &batches {
            appender.append(batch)?;
        }
        nacre_native::block_on(appender.finish())
    };
    assert_eq!(load(OnDuplicate::Error).err().map(|e| e.kind()), Some(ErrorKind::Constraint));
    assert_eq!(rows(&mut s, "select * from t").unwrap(), ["2|old"]);
    load(OnDuplicate::Skip).unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|a", "2|old", "3|c"]);
    load(OnDuplicate::Replace).unwrap();
    assert_eq!(rows(&mut s, "select * from t order by id").unwrap(), ["1|a", "2|b", "3|c"]);
    assert_eq!(db.check().unwrap(), Vec::<String>::new());
}

#[test]
fn files_of_others_are_left_alone() {
    let place = Folder::new("of-others");
    std::fs::create_dir_all(place.path()).unwrap();
    let others = [
        "tmp-orders.csv",
        "idx-users.json",
        "hsh-",
        "seg-ments.csv",
        "seg-00000000000000AB",
        "log-book",
        "snap-1",
    ];
    others.iter().for_each(|name| std::fs::write(place.path().join(name), b"mine").unwrap());
    for _ in 0..2 {
        let db = folder(place.path()).unwrap();
        rows(&mut db.session(), "create table if not exists t (a bigint)").unwrap();
    }
    for name in others {
        assert_eq!(std::fs::read(place.path().join(name)).unwrap(), b"mine", "{name}");
    }
}
