//! Background work that fails is retried after other work has been done, and the agenda is checked.

use crate::tests::access::collect_garbage;
use crate::tests::{batch, merges::current, options, row, schema};
use crate::{Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalFile, LocalStore};
use nacre_testing::FaultStore;
use nacre_types::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store that fails to open files of segments while a flag is set.
struct Refusing {
    files: MemoryStore,
    refuses: AtomicBool,
}

impl LocalStore for Refusing {
    fn list(&self) -> Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        if self.refuses.load(Ordering::Relaxed) && name.starts_with("seg-") {
            return Err(Error::io(format!("{name} cannot be opened")));
        }
        self.files.open(name)
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.files.create(name)
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.files.remove(name)
    }
}

fn fill(store: &Store, table: &Arc<Table>, first: i64) {
    let mut transaction = store.begin().unwrap();
    let rows: Vec<_> = (0..100).map(|id| row(first + id * 10, "x", id)).collect();
    transaction.insert(table, &batch(&rows)).unwrap();
    transaction.commit().unwrap();
}

fn is_clean(store: &Store) {
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_merge_that_cannot_begin_is_retried_after_other_work() {
    let files = Arc::new(Refusing { files: MemoryStore::new(), refuses: AtomicBool::new(false) });
    let host = || nacre_testing::host(files.clone());
    let options = StoreOptions { partitions: 1, merge_from: 4, ..options() };
    let store = Store::open(host(), StoreOptions { merge_from: 99, ..options.clone() }).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let other = store.create_table(schema("other", true)).unwrap();
    for first in 0..4 {
        fill(&store, &table, first);
        store.flush(&table).unwrap();
    }
    fill(&store, &other, 0);
    assert_eq!(current(&table), 4);
    is_clean(&store);
    store.close().unwrap();

    let options = StoreOptions { flush_bytes: 1, ..options };
    let store = Store::open(host(), options).unwrap();
    let (table, other) = (store.table("t").unwrap(), store.table("other").unwrap());
    while other.rowstore_size().0 > 0 {
        assert!(store.maintain().unwrap());
    }
    files.refuses.store(true, Ordering::Relaxed);
    let failed = loop {
        match store.maintain() {
            Ok(more) => assert!(more, "nothing failed"),
            Err(error) => break error,
        }
    };
    assert!(failed.message().contains("cannot be opened"), "{failed}");
    // It is not repeated at once.
    while store.maintain().unwrap() {}
    files.refuses.store(false, Ordering::Relaxed);
    assert_eq!(current(&table), 4);
    is_clean(&store);
    fill(&store, &other, 1);
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 1);
    is_clean(&store);
}

#[test]
fn check_tells_work_that_nothing_asks_for() {
    let store = Store::open(
        nacre_testing::host(Arc::new(MemoryStore::new())),
        StoreOptions { partitions: 1, merge_from: 4, ..options() },
    )
    .unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    for first in 0..4 {
        fill(&store, &table, first);
        store.flush(&table).unwrap();
    }
    is_clean(&store);
    let (partition, agenda) = (table.partition(0), store.context().catalog().agenda());
    let work = crate::table::agenda::Work::Merge;
    let finding = |wanted: &str| {
        let findings = store.check().unwrap();
        assert!(matches!(&findings[..], [one] if one.contains(wanted)), "{findings:?}");
    };
    agenda.remove(work, table.place(partition));
    finding("Merge is not on the agenda");
    partition.take_need(work);
    finding("Merge is due, and nothing asks for it");
    partition.consider(work);
    is_clean(&store);
    agenda.count(0, 7);
    finding("are counted as");
    agenda.count(7, 0);
    while store.maintain().unwrap() {}
    is_clean(&store);
    assert_eq!(current(&table), 1);
}

/// Deletes that a snapshot distinguishes are on the agenda, also those of rows claimed together.
#[test]
fn deletes_of_claimed_rows_are_folded_when_a_snapshot_ends() {
    let store = Store::open(
        nacre_testing::host(Arc::new(MemoryStore::new())),
        StoreOptions { partitions: 1, merge_from: 99, ..options() },
    )
    .unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    fill(&store, &table, 0);
    store.flush(&table).unwrap();
    while store.maintain().unwrap() {}
    let state = table.segments()[0].clone();
    let snapshot = store.begin().unwrap();
    let mut deleting = store.begin().unwrap();
    let rows = (0..10).collect();
    assert_eq!(deleting.delete_together(&table, 0, state.id(), &rows).unwrap(), 10);
    deleting.commit().unwrap();
    while store.maintain().unwrap() {}
    assert!(state.has_deltas());
    is_clean(&store);
    drop(snapshot);
    while store.maintain().unwrap() {}
    assert!(!state.has_deltas());
    is_clean(&store);
}

/// A merge whose rows a transaction has claimed waits for it; merges of other runs do not.
#[test]
fn merges_go_on_beside_claimed_rows() {
    let store = Store::open(
        nacre_testing::host(Arc::new(MemoryStore::new())),
        StoreOptions { partitions: 1, merge_from: 4, ..options() },
    )
    .unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let add = |runs: std::ops::Range<i64>| {
        for first in runs {
            fill(&store, &table, first);
            store.flush(&table).unwrap();
        }
    };
    add(0..4);
    assert!(store.maintain().unwrap(), "the first step of a merge");
    let claimed = table.segments()[0].id();
    let mut deleting = store.begin().unwrap();
    let rows = (0..10).collect();
    assert_eq!(deleting.delete_together(&table, 0, claimed, &rows).unwrap(), 10);
    add(4..8);
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 4 + 1);
    is_clean(&store);
    deleting.rollback();
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 1 + 1);
    is_clean(&store);
}

#[test]
fn a_file_that_cannot_be_removed_holds_up_no_other() {
    let faults = FaultStore::default();
    let open = || {
        let options = StoreOptions { partitions: 1, merge_from: 99, ..options() };
        Store::open(nacre_testing::host(Arc::new(faults.clone())), options).unwrap()
    };
    let segments = || faults.list().unwrap().iter().filter(|name| name.starts_with("seg-")).count();
    let store = open();
    let table = store.create_table(schema("t", true)).unwrap();
    for first in 0..3 {
        fill(&store, &table, first);
        store.flush(&table).unwrap();
    }
    store.drop_table(&table).unwrap();
    assert_eq!(segments(), 3);
    faults.fail_next("remove");
    assert_eq!(collect_garbage(&store).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(segments(), 1, "the first one is refused");
    assert!(!collect_garbage(&store).unwrap(), "it is given up");
    drop((table, store));
    let store = open();
    assert_eq!(segments(), 0, "the next start finds it");
    is_clean(&store);
}
