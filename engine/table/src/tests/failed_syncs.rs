//! Syncs that fail after the record was written: the outcome is unknown, so files that the record
//! names must stay.

use crate::tests::access::{lock, merge, write_snapshot};
use crate::tests::{batch, host, locate, options, row, scan, schema, sorted};
use crate::{Durability, OnDuplicate, Store, StoreOptions, Table, Transaction};
use nacre_host::memory::MemoryStore;
use nacre_host::{Host, LocalStore, ReadRange};
use nacre_testing::{Call, Watched};
use nacre_types::{Error, ErrorKind, Result, ViewSchema};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Files in memory. Syncing log files fails while `refuse` is set, but keeps what was written;
/// creating files fails while `full` is set; `during` runs during a log sync.
#[derive(Clone, Default)]
struct Refusing {
    files: Arc<MemoryStore>,
    refuse: Arc<AtomicBool>,
    full: Arc<AtomicBool>,
    during: Arc<Mutex<Option<During>>>,
}

type During = Box<dyn FnOnce() + Send>;

impl Refusing {
    fn host(&self) -> Host {
        let disk = self.clone();
        let files =
            Watched::new(self.files.clone(), move |name, call| disk.before_call(name, call));
        Host { store: files, ..host(&self.files) }
    }

    fn before_call(&self, name: &str, call: Call) -> Result<()> {
        match call {
            Call::Create if self.full.load(Ordering::Relaxed) => Err(Error::io("no space left")),
            Call::Sync if name.starts_with("log-") => {
                let during = self.during.lock().unwrap().take();
                if let Some(during) = during {
                    during();
                }
                match self.refuse.load(Ordering::Relaxed) {
                    true => Err(Error::io("sync refused")),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A store with a table, and the switch that makes its disk fail.
fn refusing(options: StoreOptions) -> (Arc<Store>, Arc<Table>, Arc<AtomicBool>, Arc<MemoryStore>) {
    let disk = Refusing::default();
    let store = Store::open(disk.host(), options).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    (store, table, disk.refuse, disk.files)
}

/// A transaction that has inserted a row.
fn insert(store: &Arc<Store>, table: &Arc<Table>, id: i64) -> Result<Transaction> {
    let mut t = store.begin().unwrap();
    t.insert(table, &batch(&[row(id, "a", id)])).map(|_| t)
}

fn check(work: impl Fn(&Arc<Store>, &Arc<Table>) -> Result<()>) {
    let (store, table, refuse, files) = refusing(options());
    for id in 0..3 {
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&[row(id, "a", id)])).unwrap();
        t.commit().unwrap();
        if id < 2 {
            store.flush(&table).unwrap();
        }
    }
    refuse.store(true, Ordering::Relaxed);
    assert!(work(&store, &table).is_err());
    drop((table, store));
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.table("t").unwrap();
    let reader = store.begin().unwrap();
    let expected: Vec<_> = (0..3).map(|id| row(id, "a", id)).collect();
    assert_eq!(sorted(scan(&reader.view(&table)).unwrap()), expected);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_flush_whose_sync_fails_loses_nothing() {
    check(|store, table| store.flush(table));
}

#[test]
fn a_merge_whose_sync_fails_loses_nothing() {
    check(|store, table| {
        let sources = table.segments();
        merge(store, table, table.partition(0), &sources).map(drop)
    });
}

#[test]
fn after_a_failed_commit_a_flush_takes_no_row_away() {
    let (store, table, refuse, _) = refusing(options());
    let insert = |id| insert(&store, &table, id);
    insert(1).unwrap().commit().unwrap();
    refuse.store(true, Ordering::Relaxed);
    assert!(insert(2).unwrap().commit().is_err());
    assert!(store.flush(&table).is_err());
    assert_eq!(insert(1).map(|_| ()).unwrap_err().kind(), nacre_types::ErrorKind::Constraint);
    assert_eq!(sorted(scan(&store.begin().unwrap().view(&table)).unwrap()), [row(1, "a", 1)]);
}

#[test]
fn after_a_failed_commit_a_change_of_the_catalog_changes_nothing() {
    let (store, table, refuse, _) = refusing(options());
    let insert = |id| insert(&store, &table, id);
    insert(1).unwrap().commit().unwrap();
    refuse.store(true, Ordering::Relaxed);
    assert!(insert(2).unwrap().commit().is_err());
    let mut renamed = (**table.schema()).clone();
    renamed.name = "u".into();
    for refused in [
        store.alter_table(&table, renamed).map(drop),
        store.truncate(std::slice::from_ref(&table)),
        store.drop_table(&table),
        store.create_table(schema("u", true)).map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Io);
    }
    assert!(store.table("u").is_none());
    let reader = store.begin().unwrap();
    let there = reader.table("t").unwrap();
    assert_eq!(sorted(scan(&reader.view(&there)).unwrap()), [row(1, "a", 1)]);
}

/// A store with relaxed durability, a table with a unique index, and the switch that makes its disk
/// fail.
fn relaxed() -> (Arc<Store>, Arc<Table>, Arc<AtomicBool>) {
    let durability = crate::Durability::Relaxed { interval_ms: 1_000_000 };
    let (store, table, refuse, _) = refusing(StoreOptions { durability, ..options() });
    let columns = vec![table.schema().columns[1].id];
    let kind = nacre_types::IndexKind::BTree;
    let unique = nacre_types::IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind };
    let table = store.create_index(&table, unique).unwrap();
    (store, table, refuse)
}

#[test]
fn a_load_that_goes_row_by_row_is_durable_like_any_other() {
    let (store, table, refuse) = relaxed();
    let load = |id: i64, name: &str| {
        let mut load = store.bulk_load(&table, crate::OnDuplicate::Replace);
        load.append(&batch(&[row(id, name, id)])).unwrap();
        load.finish()
    };
    assert_eq!(load(1, "a").unwrap(), 1);
    refuse.store(true, Ordering::Relaxed);
    assert!(load(2, "b").is_err(), "what cannot be made durable is not acknowledged");
    let mut again = store.bulk_load(&table, crate::OnDuplicate::Skip);
    again.append(&batch(&[row(2, "b", 2)])).unwrap();
    assert!(again.finish().is_err(), "nothing is skipped for a row that may be gone");
    assert_eq!(sorted(scan(&store.begin().unwrap().view(&table)).unwrap()), [row(1, "a", 1)]);
}

#[test]
fn what_a_load_skips_its_rows_for_is_durable() {
    let (store, table, refuse) = relaxed();
    let mut transaction = store.begin().unwrap();
    transaction.insert_row(&table, &row(1, "a", 1)).unwrap();
    transaction.commit().unwrap();
    refuse.store(true, Ordering::Relaxed);
    let mut load = store.bulk_load(&table, crate::OnDuplicate::Skip);
    load.append(&batch(&[row(1, "a", 1)])).unwrap();
    assert!(load.finish().is_err());
}

/// No sync is due, so the commits do not meet the failure by themselves.
#[test]
fn a_relaxed_commit_after_the_log_has_failed_is_refused() {
    let durability = Durability::Relaxed { interval_ms: 1_000_000 };
    let (store, table, refuse, _) = refusing(StoreOptions { durability, ..options() });
    insert(&store, &table, 1).unwrap().commit().unwrap();
    let open = insert(&store, &table, 2).unwrap();
    refuse.store(true, Ordering::Relaxed);
    assert_eq!(store.context().commits().sync_log().unwrap_err().kind(), ErrorKind::Io);
    refuse.store(false, Ordering::Relaxed);
    assert_eq!(open.commit().unwrap_err().kind(), ErrorKind::Io);
    let late = insert(&store, &table, 3).and_then(|t| t.commit());
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(sorted(scan(&store.begin().unwrap().view(&table)).unwrap()), [row(1, "a", 1)]);
}

/// Background work that rests until a sync is due would otherwise never rest again.
#[test]
fn after_a_failed_sync_no_other_is_due() {
    let durability = Durability::Relaxed { interval_ms: 0 };
    let (store, table, refuse, _) = refusing(StoreOptions { durability, ..options() });
    refuse.store(true, Ordering::Relaxed);
    assert!(insert(&store, &table, 1).unwrap().commit().is_err());
    assert_eq!(store.sync_due_in(), None);
    assert_eq!(store.maintain().unwrap_err().kind(), ErrorKind::Io);
}

/// A full disk blocks writes but not the removal of files, which frees space.
#[test]
fn a_dropped_table_makes_room_on_a_full_disk() {
    let disk = Refusing::default();
    let Refusing { files, full, .. } = &disk;
    let store = Store::open(disk.host(), StoreOptions { flush_bytes: 1, ..options() }).unwrap();
    let tables = ["large", "other"].map(|name| store.create_table(schema(name, true)).unwrap());
    for table in &tables {
        let mut t = store.begin().unwrap();
        t.insert(table, &batch(&[row(1, "a", 1)])).unwrap();
        t.commit().unwrap();
    }
    store.flush(&tables[0]).unwrap();
    full.store(true, Ordering::Relaxed);
    let segments = || files.list().unwrap().iter().filter(|name| name.starts_with("seg-")).count();
    assert_eq!(segments(), 1);
    store.drop_table(&tables[0]).unwrap();
    // A table is due for a flush, which fails.
    assert_eq!(store.maintain().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(segments(), 0);
    full.store(false, Ordering::Relaxed);
    while store.maintain().unwrap() {}
    assert_eq!(segments(), 1);
}

/// A relaxed commit is visible immediately, even if the preceding commit, which dropped a table, is
/// not durable yet; a crash would then bring the table back.
#[test]
#[allow(clippy::disallowed_methods)]
fn files_of_a_dropped_table_stay_until_that_is_durable() {
    let disk = Refusing::default();
    let durability = crate::Durability::Relaxed { interval_ms: 1_000_000 };
    let store = Store::open(disk.host(), StoreOptions { durability, ..options() }).unwrap();
    let [gone, other] =
        ["gone", "other"].map(|name| store.create_table(schema(name, true)).unwrap());
    let insert = |store: &Arc<Store>, table: &Arc<Table>| {
        let mut t = store.begin().unwrap();
        t.insert(table, &batch(&[row(1, "a", 1)])).unwrap();
        t.commit().unwrap();
    };
    insert(&store, &gone);
    store.flush(&gone).unwrap();
    let at_crash = Arc::new(MemoryStore::new());
    let (files, copy, keeper) = (disk.files.clone(), at_crash.clone(), store.clone());
    *disk.during.lock().unwrap() = Some(Box::new(move || {
        let work = std::thread::spawn(move || {
            insert(&keeper, &other);
            keeper.maintain().unwrap();
        });
        // The thread either ends or waits for the sync.
        for _ in 0..50 {
            std::thread::sleep(std::time::Duration::from_millis(10));
            if work.is_finished() {
                break;
            }
        }
        // The state after a crash: all files, but only the synced part of the log.
        for name in files.list().unwrap().iter().filter(|name| !name.starts_with("log-")) {
            let from = files.open(name).unwrap();
            let mut bytes = vec![0; from.len().unwrap() as usize];
            from.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
            copy.create(name).unwrap().write(0, &bytes).unwrap();
        }
    }));
    store.drop_table(&gone).unwrap();
    let segments = |files: &MemoryStore| {
        files.list().unwrap().iter().filter(|name| name.starts_with("seg-")).count()
    };
    assert_eq!(segments(&at_crash), 1);
    // The other thread may be in the middle of maintenance.
    for _ in 0..500 {
        store.maintain().unwrap();
        if segments(&disk.files) == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the files are still there");
}

#[test]
fn a_load_that_could_not_write_its_rows_loads_nothing() {
    let disk = Refusing::default();
    let store = Store::open(disk.host(), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..7_000).map(|id| row(id, "a", id)).collect();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    load.append(&batch(&rows[..1_000])).unwrap();
    disk.full.store(true, Ordering::Relaxed);
    load.append(&batch(&rows[1_000..4_000])).unwrap();
    // Either writes what is due.
    let refused = load.append(&batch(&rows[4_000..])).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Io);
    assert_eq!(load.write(true).unwrap_err().message(), refused.message());
    disk.full.store(false, Ordering::Relaxed);
    assert_eq!(load.append(&batch(&rows[4_000..])).unwrap_err().message(), refused.message());
    assert_eq!(load.finish().unwrap_err().message(), refused.message());
    assert!(scan(&store.begin().unwrap().view(&table)).unwrap().is_empty());
}

#[test]
fn closing_is_done_when_all_is_durable() {
    let relaxed =
        StoreOptions { durability: Durability::Relaxed { interval_ms: 1_000_000 }, ..options() };
    let (store, table, refuse, _) = refusing(relaxed);
    insert(&store, &table, 1).unwrap().commit().unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    load.append(&batch(&[row(2, "a", 2)])).unwrap();
    refuse.store(true, Ordering::Relaxed);
    assert!(store.close().is_err());
    assert!(store.close().is_err(), "it is not durable yet");
    assert_eq!(load.append(&batch(&[row(3, "a", 3)])).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::Closed);
    let (store, table, ..) = refusing(options());
    insert(&store, &table, 1).unwrap().commit().unwrap();
    store.close().unwrap();
    store.close().unwrap();
}

/// Rows in a snapshot are kept until it is written, even if newer commits become visible before
/// they are durable.
#[test]
fn a_snapshot_has_the_rows_that_a_relaxed_commit_overtakes() {
    let disk = Refusing::default();
    let durability = Durability::Relaxed { interval_ms: 1_000_000 };
    let store = Store::open(disk.host(), StoreOptions { durability, ..options() }).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let mut t = store.begin().unwrap();
    t.insert(&table, &batch(&[row(1, "a", 1), row(2, "a", 2), row(3, "a", 3)])).unwrap();
    t.commit().unwrap();
    *disk.during.lock().unwrap() = Some(Box::new({
        let (store, table) = (store.clone(), table.clone());
        move || {
            let mut t = store.begin().unwrap();
            let [first, second] = [1, 2].map(|id| locate(&t, &table, id));
            t.update(&table, &[first], &batch(&[row(1, "a", 10)])).unwrap();
            t.delete(&table, &[second]).unwrap();
            t.commit().unwrap();
        }
    }));
    write_snapshot(&store).unwrap();
    assert!(disk.during.lock().unwrap().is_none());
    // The process ends before another sync.
    let after = Store::open(host(&disk.files), options()).unwrap();
    let seen = scan(&after.begin().unwrap().view(&after.table("t").unwrap())).unwrap();
    assert_eq!(sorted(seen), [row(1, "a", 1), row(2, "a", 2), row(3, "a", 3)]);
}

/// A statement that reports a catalog object as existing or missing must not rely on a commit that
/// is not durable.
#[test]
fn the_catalog_is_not_believed_after_a_failed_commit() {
    let (store, table, refuse, files) = refusing(options());
    store.settle_catalog().unwrap();
    refuse.store(true, Ordering::Relaxed);
    assert!(store.drop_table(&table).is_err());
    assert!(store.table("t").is_none());
    assert_eq!(store.settle_catalog().unwrap_err().kind(), ErrorKind::Io);
    drop((table, store));
    assert!(Store::open(host(&files), options()).is_ok());
}

/// A commit that waits for its turn while the database is closed is rejected, not lost.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_relaxed_commit_is_synced_by_the_close_or_refused() {
    let durability = Durability::Relaxed { interval_ms: 1_000_000 };
    let (store, table, _, files) = refusing(StoreOptions { durability, ..options() });
    let turn = lock(&store);
    let t = insert(&store, &table, 1).unwrap();
    let (committed, closed) = std::thread::scope(|scope| {
        let committing = scope.spawn(|| t.commit());
        std::thread::sleep(std::time::Duration::from_millis(100));
        let closing = scope.spawn(|| store.close());
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(turn);
        (committing.join().unwrap(), closing.join().unwrap())
    });
    closed.unwrap();
    drop((table, store));
    let store = Store::open(host(&files), options()).unwrap();
    let found = scan(&store.begin().unwrap().view(&store.table("t").unwrap())).unwrap();
    assert_eq!(found.len(), usize::from(committed.is_ok()));
}

#[test]
fn several_tables_are_dropped_by_one_commit() {
    let (store, table, ..) = refusing(options());
    let other = store.create_table(schema("u", false)).unwrap();
    let before = store.visible();
    store.drop_tables(&[other.clone(), table.clone(), other.clone()]).unwrap();
    assert_eq!(store.visible(), before + 1);
    assert!(store.tables().is_empty());
    let third = store.create_table(schema("v", false)).unwrap();
    assert_eq!(store.drop_tables(&[third, table]).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.tables().len(), 1);
}

#[test]
fn several_views_are_dropped_by_one_commit() {
    let (store, ..) = refusing(options());
    for name in ["v", "w"] {
        let columns = vec!["id".into()];
        let view = ViewSchema { name: name.into(), columns, statement: "select 1".into() };
        store.create_view(view, false).unwrap();
    }
    let missing = store.drop_views(&["v".into(), "x".into()]);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.views().len(), 2);
    let before = store.visible();
    store.drop_views(&["v".into(), "w".into(), "V".into()]).unwrap();
    assert_eq!(store.visible(), before + 1);
    assert!(store.views().is_empty());
}
