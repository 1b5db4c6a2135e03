//! Reads of files that lack some of their bytes.

use crate::tests::{batch, options, row, scan, schema};
use crate::{Fetched, LoadStep, OnDuplicate, Store, StoreOptions};
use nacre_host::Host;
use nacre_host::memory::MemoryStore;
use nacre_testing::{Absent, Call, Fixed, Watched};
use nacre_types::{IndexKind, IndexSchema, Reason, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Segments, hash tables and index parts.
fn may_lack(name: &str) -> bool {
    ["seg-", "hsh-", "idx-"].iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn estimates_do_not_remember_that_bytes_were_absent() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(nacre_testing::host(files.clone()), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..3_000).map(|id| row(id, &format!("t{id}"), id * 977)).collect();
    let mut transaction = store.begin().unwrap();
    transaction.insert(&table, &batch(&rows)).unwrap();
    transaction.commit().unwrap();
    store.flush(&table).unwrap();
    let expected = (0..3).map(|at| table.column_summary(at).unwrap().unwrap().distinct);
    let expected: Vec<f64> = expected.collect();
    assert!(expected.iter().all(|distinct| *distinct > 0.0), "{expected:?}");
    drop((table, store));

    let absent = Absent::new(files, 1, may_lack);
    let store = Store::open(nacre_testing::host(absent.clone()), options()).unwrap();
    let table = store.table("t").unwrap();
    absent.deny(100, 100);
    let mut fetched = Fetched::default();
    for (at, expected) in expected.into_iter().enumerate() {
        let mut misses = 0;
        let summary = loop {
            match table.column_summary(at) {
                Err(error) => {
                    assert_eq!(error.reason(), Some(Reason::NotResident));
                    misses += 1;
                    fetched.resolve_now(error, &*absent, &Fixed::default()).unwrap();
                }
                summary => break summary.unwrap().unwrap(),
            }
        };
        assert!(misses > 0 || at > 0, "nothing was absent");
        assert_eq!(summary.distinct, expected, "column {at} after {misses} misses");
    }
}

/// A table of 3,000 rows in segments and 200 in memory, with unique numbers.
fn filled(files: &Arc<MemoryStore>) {
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let index = IndexSchema {
        id: Default::default(),
        name: "n".into(),
        columns: vec![3],
        unique: true,
        kind: IndexKind::BTree,
    };
    let table = store.create_index(&table, index).unwrap();
    let insert = |ids: std::ops::Range<i64>| {
        let rows: Vec<_> = ids.map(|id| row(id, "old", id * 3)).collect();
        let mut transaction = store.begin().unwrap();
        transaction.insert(&table, &batch(&rows)).unwrap();
        transaction.commit().unwrap();
    };
    insert(0..3_000);
    store.flush(&table).unwrap();
    insert(3_000..3_200);
    while store.maintain().unwrap() {}
}

fn small() -> StoreOptions {
    StoreOptions { segment_rows: 400, cache_bytes: 0, flush_bytes: usize::MAX, ..options() }
}

/// Loads rows with old and new keys, and with numbers of other rows; calls `disturb` before each
/// step. Returns all rows, and how often the load was stopped by absent bytes.
fn loaded(
    host: Host,
    files: Option<&Absent>,
    on_duplicate: OnDuplicate,
) -> (u64, Vec<Vec<Value>>, usize) {
    let store = Store::open(host, small()).unwrap();
    let table = store.table("t").unwrap();
    let mut load = store.bulk_load(&table, on_duplicate);
    let rows = (2_500..3_500).map(|id| match id % 5 {
        // A row of its own, but the number of another, in a segment or in memory.
        0 if id % 2 == 0 => row(id + 10_000, "new", (id - 2_000) * 3),
        0 => row(id + 10_000, "new", (3_000 + (id - 2_500) / 5) * 3),
        // The key of a row, and a number of its own.
        1 => row(id, "old", id * 3 + 1),
        _ => row(id, "old", id * 3),
    });
    load.append(&batch(&rows.collect::<Vec<_>>())).unwrap();
    while load.write(true).unwrap() {}
    if let Some(files) = files {
        files.deny(100, 50);
    }
    let (mut fetched, mut stops, mut steps) = (Fetched::default(), 0, 0);
    let gained = loop {
        steps += 1;
        // Rows come and go between the steps.
        if steps < 12 {
            let mut transaction = store.begin().unwrap();
            transaction.insert(&table, &batch(&[row(20_000 + steps, "beside", -1)])).unwrap();
            transaction.commit().unwrap();
        }
        // Its own files, too.
        if let Some(files) = files {
            files.upload();
        }
        match load.step() {
            Ok(LoadStep::Done(rows)) => break rows,
            Ok(LoadStep::More) => {}
            Ok(LoadStep::Blocked(_)) => panic!("no lock is held"),
            Err(error) => {
                stops += 1;
                let files = files.unwrap();
                fetched.resolve_now(error, files, &Fixed::default()).unwrap();
            }
        }
    };
    if let Some(files) = files {
        files.allow();
    }
    let mut rows: Vec<_> = scan(&store.begin().unwrap().view(&table)).unwrap();
    rows.retain(|(row, _)| row[1] != Value::Text("beside".into()));
    let mut rows: Vec<Vec<Value>> = rows.into_iter().map(|(row, _)| row).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    (gained, rows, stops)
}

#[test]
fn loads_continue_after_absent_bytes() {
    for on_duplicate in [OnDuplicate::Skip, OnDuplicate::Replace] {
        let files = Arc::new(MemoryStore::new());
        filled(&files);
        let (gained, expected, _) = loaded(nacre_testing::host(files), None, on_duplicate);
        assert!(gained > 100 && expected.len() > 3_200, "{gained} of {}", expected.len());
        for seed in 0..6 {
            let files = Arc::new(MemoryStore::new());
            filled(&files);
            let absent = Absent::new(files, seed, may_lack);
            let host = nacre_testing::host(absent.clone());
            let is_blocking = seed < 2;
            let host = if is_blocking { host } else { nacre_testing::unblocked(host) };
            let found = loaded(host, Some(&absent), on_duplicate);
            assert!(absent.misses() > 20, "{} misses", absent.misses());
            assert!(is_blocking == (found.2 == 0), "stopped {} times", found.2);
            assert!(
                (found.0, &found.1) == (gained, &expected),
                "{on_duplicate:?}, seed {seed}: gained {} of {gained}, {} rows of {}",
                found.0,
                found.1.len(),
                expected.len()
            );
        }
    }
}

/// Loads many rows. Returns how often files were read, and how often the load was stopped by absent
/// bytes.
fn reads_of_a_load(absent: u64) -> (usize, usize) {
    let memory = Arc::new(MemoryStore::new());
    filled(&memory);
    let (files, reads) = (Absent::new(memory, 1, may_lack), Arc::new(AtomicUsize::new(0)));
    let counted = reads.clone();
    let watched = Watched::new(files.clone(), move |name, call| {
        let is_read = matches!(call, Call::Read { .. }) && may_lack(name);
        counted.fetch_add(usize::from(is_read), Ordering::Relaxed);
        Ok(())
    });
    let host = nacre_testing::unblocked(nacre_testing::host(watched));
    let store = Store::open(host, small()).unwrap();
    let table = store.table("t").unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Replace);
    let rows: Vec<_> = (0..8_000).map(|id| row(id, "old", id * 3)).collect();
    load.append(&batch(&rows)).unwrap();
    while load.write(true).unwrap() {}
    files.deny(absent, 0);
    let (mut fetched, mut stops) = (Fetched::default(), 0);
    loop {
        match load.step() {
            Ok(LoadStep::Done(rows)) => {
                assert_eq!(rows, 8_000);
                return (reads.load(Ordering::Relaxed), stops);
            }
            Ok(_) => {}
            Err(error) => {
                stops += 1;
                fetched.resolve_now(error, &*files, &Fixed::default()).unwrap();
            }
        }
    }
}

#[test]
fn a_load_that_misses_bytes_does_not_compare_all_keys_again() {
    let (reads, _) = reads_of_a_load(0);
    let (more, stops) = reads_of_a_load(100);
    assert!(stops > 10, "the load was stopped {stops} times");
    assert!(more < reads * 2, "{more} reads instead of {reads}, {stops} stops");
}
