//! The shares of a memory budget: writes are slowed down, then refused, and go on after a flush;
//! metadata over its share makes room, and is read again.

use crate::tests::{batch, host, options, row, scan, schema};
use crate::{Admission, Asking, OnDuplicate, Store, StoreOptions, Table, Transaction};
use nacre_host::memory::MemoryStore;
use nacre_types::{Error, ErrorKind, IndexKind, IndexSchema, Result, Value};
use std::sync::Arc;

fn created(store: &Arc<Store>) -> Arc<Table> {
    store.create_table(schema("t", true)).unwrap()
}

/// Inserts rows from `id` on until the rowstores hold this many bytes. Returns the next free id.
fn fill(store: &Store, t: &mut Transaction, table: &Arc<Table>, mut id: i64, bytes: u64) -> i64 {
    while part(store, "rowstore").0 < bytes {
        t.insert(table, &batch(&[row(id, "some text of a row", id)])).unwrap();
        id += 1;
    }
    t.count_writes();
    id
}

/// The bytes and the limit of a part.
fn part(store: &Store, name: &str) -> (u64, Option<u64>) {
    let part = store.memory().into_iter().find(|part| part.part == name).unwrap();
    (part.bytes, part.limit_bytes)
}

fn assert_refused(error: &Error, part: &str) {
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.message().starts_with(part), "{}", error.message());
}

/// A write of a session that wrote this many rows before.
fn asking(rows: u64) -> Asking {
    Asking { rows, is_last: false }
}

fn admit(store: &Store) -> Result<Admission> {
    store.admit_write(asking(1_000))
}

fn maintain(store: &Store) {
    while store.maintain().unwrap() {}
}

#[test]
fn writes_are_slowed_down_and_then_refused() {
    let options = StoreOptions { rowstore_bytes: 400_000, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let table = created(&store);
    // Uncommitted rows, which no flush can move. The soft limit is half of the limit.
    let mut t = store.begin().unwrap();
    let mut id = fill(&store, &mut t, &table, 0, 190_000);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    let mut last = 0;
    for bytes in [240_000, 300_000, 380_000] {
        id = fill(&store, &mut t, &table, id, bytes);
        let admission = admit(&store).unwrap();
        let Admission::Delayed(ns) = admission else { panic!("{admission:?} at {bytes}") };
        assert!(ns > last && ns < 50_000_000, "{ns} ns after {last} at {bytes}");
        last = ns;
    }
    assert!(last > 30_000_000, "{last} ns close to the limit");
    let Ok(Admission::Delayed(ns)) = store.admit_write(asking(1)) else { panic!("not delayed") };
    assert!(ns < 200_000, "a session that wrote one row waits {ns} ns");
    assert_eq!(store.admit_write(asking(0)).unwrap(), Admission::Granted);
    id = fill(&store, &mut t, &table, id, 400_000);
    let admission = admit(&store).unwrap();
    assert!(matches!(admission, Admission::Full(ns) if ns > 0), "{admission:?}");
    maintain(&store);
    assert_refused(&admit(&store).unwrap_err(), "rowstore: ");
    t.commit().unwrap();
    maintain(&store);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert!(part(&store, "rowstore").0 < 200_000);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, id);
}

/// A store with little memory for rows, none of whose partitions is large enough to be flushed by
/// itself.
fn small() -> (Arc<Store>, Arc<Table>) {
    let options = StoreOptions { rowstore_bytes: 400_000, flush_bytes: 1 << 30, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let table = created(&store);
    (store, table)
}

#[test]
fn rows_that_an_old_snapshot_keeps_are_flushed_when_it_ends() {
    let (store, table) = small();
    let old = store.begin().unwrap();
    let mut t = store.begin().unwrap();
    let count = fill(&store, &mut t, &table, 0, 500_000);
    t.commit().unwrap();
    assert!(matches!(admit(&store).unwrap(), Admission::Full(_)), "nothing is flushed yet");
    maintain(&store);
    assert_refused(&admit(&store).unwrap_err(), "rowstore: ");
    assert_eq!(scan(&old.view(&table)).unwrap().len(), 0);
    drop(old);
    assert!(matches!(admit(&store).unwrap(), Admission::Full(_)), "a flush can make room now");
    maintain(&store);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert!(part(&store, "rowstore").0 < 200_000);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, count);
}

#[test]
fn rows_that_were_locked_during_a_flush_are_flushed_when_they_are_given_back() {
    let (store, table) = small();
    let mut t = store.begin().unwrap();
    let count = fill(&store, &mut t, &table, 0, 500_000);
    t.commit().unwrap();
    let mut locking = store.begin().unwrap();
    let text = || Value::Text("some text of a row".into());
    let find = |id| locking.locate(&table, &[Value::Int(id), text()]).unwrap().unwrap().0;
    let all: Vec<_> = (0..count).map(find).collect();
    locking.lock(&table, &all).unwrap();
    maintain(&store);
    assert_refused(&admit(&store).unwrap_err(), "rowstore: ");
    locking.rollback();
    assert!(matches!(admit(&store).unwrap(), Admission::Full(_)), "a flush can make room now");
    maintain(&store);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, count);
}

#[test]
fn rows_that_come_while_a_flush_goes_on_are_flushed_by_the_next() {
    for steps in 1..8 {
        let (store, table) = small();
        let mut t = store.begin().unwrap();
        let first = fill(&store, &mut t, &table, 0, 300_000);
        t.commit().unwrap();
        for _ in 0..steps {
            store.maintain().unwrap();
        }
        // Their keys follow those of all rows that the flush has read.
        let mut t = store.begin().unwrap();
        let count = fill(&store, &mut t, &table, first, 700_000);
        t.commit().unwrap();
        maintain(&store);
        assert_eq!(admit(&store).unwrap(), Admission::Granted, "{steps} steps");
        assert!(part(&store, "rowstore").0 < 200_000, "{steps} steps");
        assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, count);
    }
}

#[test]
fn writes_wait_for_a_snapshot_that_keeps_rows() {
    let options = StoreOptions {
        rowstore_bytes: 400_000,
        flush_bytes: 1 << 30,
        snapshot_bytes: 10_000,
        ..options()
    };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let table = created(&store);
    let mut t = store.begin().unwrap();
    let count = fill(&store, &mut t, &table, 0, 500_000);
    t.commit().unwrap();
    // In turn with a flush, a snapshot of the log is written.
    let mut is_waiting = false;
    while store.maintain().unwrap() {
        let admission = admit(&store).unwrap();
        is_waiting |= matches!(admission, Admission::Full(_));
    }
    assert!(is_waiting, "the rowstore was never full");
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, count);
}

#[test]
fn rows_that_were_moved_to_memory_are_flushed_without_another_commit() {
    let (store, table) = small();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    let rows: Vec<_> = (0..3_000).map(|id| row(id, "some text of a row", id)).collect();
    load.append(&batch(&rows)).unwrap();
    load.finish().unwrap();
    let mut locking = store.begin().unwrap();
    let text = || Value::Text("some text of a row".into());
    let find = |id| locking.locate(&table, &[Value::Int(id), text()]).unwrap().unwrap().0;
    let all: Vec<_> = (0..3_000).map(find).collect();
    locking.lock(&table, &all).unwrap();
    locking.count_writes();
    maintain(&store);
    assert_refused(&admit(&store).unwrap_err(), "rowstore: ");
    locking.rollback();
    assert!(matches!(admit(&store).unwrap(), Admission::Full(_)), "a flush can make room now");
    maintain(&store);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 3_000);
}

/// A transaction that empties a table has new partitions in the places of those with the rows.
#[test]
fn rows_of_a_table_are_flushed_after_emptying_it_was_undone() {
    let (store, table) = small();
    let mut t = store.begin().unwrap();
    let count = fill(&store, &mut t, &table, 0, 500_000);
    t.commit().unwrap();
    let mut emptying = store.begin().unwrap();
    emptying.truncate(&table).unwrap();
    let emptied = emptying.table("t").unwrap();
    let savepoint = emptying.savepoint();
    emptying.insert(&emptied, &batch(&[row(0, "another row", 0)])).unwrap();
    emptying.count_writes();
    emptying.rollback_to(savepoint);
    emptying.rollback();
    assert!(matches!(admit(&store).unwrap(), Admission::Full(_)), "a flush can make room");
    maintain(&store);
    assert_eq!(admit(&store).unwrap(), Admission::Granted);
    assert!(part(&store, "rowstore").0 < 200_000);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len() as i64, count);
}

#[test]
fn metadata_over_its_share_is_evicted() {
    let files = Arc::new(MemoryStore::new());
    let limit = 20_000;
    let options = || StoreOptions { metadata_bytes: limit, ..options() };
    let store = Store::open(host(&files), options()).unwrap();
    let table = created(&store);
    let held = |store: &Store| {
        let (bytes, most) = part(store, "metadata");
        assert!(bytes <= limit as u64 && most == Some(limit as u64), "{bytes} of {most:?}");
        bytes
    };
    let count = 60_000;
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    for from in (0..count).step_by(3_000) {
        let rows: Vec<_> = (from..from + 3_000).map(|id| row(id, "a", id)).collect();
        load.append(&batch(&rows)).unwrap();
        held(&store);
    }
    load.finish().unwrap();
    let count_rows = |store: &Store, table: &Arc<Table>| {
        scan(&store.begin().unwrap().view(table)).unwrap().len() as i64
    };
    assert_eq!(count_rows(&store, &table), count);
    assert!(held(&store) > limit as u64 / 2, "the footers in memory are counted");
    assert!(part(&store, "directories").0 > 0);
    store.close().unwrap();
    let store = Store::open(host(&files), options()).unwrap();
    assert_eq!(held(&store), 0, "opening reads no footer");
    let table = store.table("t").unwrap();
    assert_eq!(count_rows(&store, &table), count);
    assert!(held(&store) > limit as u64 / 2);
}

#[test]
fn claimed_values_are_counted_until_the_transaction_ends() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let table = created(&store);
    let columns = vec![table.schema().columns[1].id];
    let kind = IndexKind::BTree;
    let unique = IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind };
    let table = store.create_index(&table, unique).unwrap();
    let mut t = store.begin().unwrap();
    for id in 0..50 {
        t.insert_row(&table, &row(id, &format!("{id:0500}"), id)).unwrap();
    }
    let open = part(&store, "rowstore").0;
    t.commit().unwrap();
    let committed = part(&store, "rowstore").0;
    assert!(open > committed + 50 * 500, "{open} bytes, then {committed}");
}
