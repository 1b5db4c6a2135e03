//! Races at a fixed point: a writer between the last check of a bulk load and its stamping, and
//! large writes during a merge. Hooks on file writes run the other party at that point.

use crate::tests::{access, batch, host, options, row, scan, schema};
use crate::{OnDuplicate, Store, StoreOptions};
use nacre_host::memory::MemoryStore;
use nacre_testing::Watched;
use nacre_types::{DataType, IndexKind, IndexSchema, Value};
use std::sync::{Arc, Mutex};

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Opens a store on files in memory. The first read or write of more than `bytes` in a file whose
/// name starts with `kind`, after the hook is set, runs the hook.
fn hooked(kind: &'static str, bytes: usize, options: StoreOptions) -> (Arc<Store>, Hook) {
    let hook = Hook::default();
    let files = Arc::new(MemoryStore::new());
    let mut host = host(&files);
    let set = hook.clone();
    host.store = Watched::new(files, move |name, call| {
        if name.starts_with(kind) && call.bytes() > bytes {
            let hook = set.lock().unwrap().take();
            if let Some(hook) = hook {
                hook();
            }
        }
        Ok(())
    });
    (Store::open(host, options).unwrap(), hook)
}

#[test]
fn an_update_does_not_overtake_the_load_that_replaces_its_row() {
    let (store, hook) = hooked("log-", 1 << 20, options());
    let table = store.create_table(schema("t", true)).unwrap();
    // Long keys, so that the load's record is written out as soon as it is appended.
    let tag = "k".repeat(700);
    let rows = |n| batch(&(0..2_000).map(|id| row(id, &tag, n)).collect::<Vec<_>>());
    let mut t = store.begin().unwrap();
    t.insert(&table, &rows(1)).unwrap();
    t.commit().unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Replace);
    load.append(&rows(2)).unwrap();
    let outcome = Arc::new(Mutex::new(None));
    let mut writer = store.begin().unwrap();
    let (_, at) = scan(&writer.view(&table)).unwrap().into_iter().next().unwrap();
    let changed = batch(&[row(0, &tag, 3)]);
    *hook.lock().unwrap() = Some(Box::new({
        let (table, outcome) = (table.clone(), outcome.clone());
        move || {
            let updated = writer.update(&table, &[at], &changed).map(|_| ());
            *outcome.lock().unwrap() = Some((writer, updated));
        }
    }));
    load.finish().unwrap();
    let (writer, updated) =
        outcome.lock().unwrap().take().expect("the record is large enough to be written at once");
    let committed = updated.and_then(|()| writer.commit());
    assert!(committed.is_err(), "the row it saw is gone");
    let reader = store.begin().unwrap();
    let seen = scan(&reader.view(&table)).unwrap();
    assert_eq!(seen.len(), 2_000, "every key once");
    assert!(seen.iter().all(|(values, _)| values[2] == row(0, "", 2)[2]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// A transaction moves a row that a load has replaced, and changes nothing. The row in memory is
/// still newer than a snapshot from before the load.
#[test]
fn a_move_does_not_make_a_loaded_row_older() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows = |n| batch(&(0..10).map(|id| row(id, "x", n)).collect::<Vec<_>>());
    let load = |n| {
        let mut load = store.bulk_load(&table, OnDuplicate::Replace);
        load.append(&rows(n)).unwrap();
        load.finish().unwrap();
    };
    load(1);
    let mut old = store.begin().unwrap();
    let (_, seen) = scan(&old.view(&table)).unwrap().into_iter().next().unwrap();
    load(2);
    let mut mover = store.begin().unwrap();
    let (_, there) = scan(&mover.view(&table)).unwrap().into_iter().next().unwrap();
    mover.lock(&table, &[there]).unwrap();
    mover.rollback();
    let error = old.update(&table, &[seen], &batch(&[row(0, "x", 3)])).unwrap_err();
    assert_eq!(error.kind(), nacre_types::ErrorKind::Conflict, "{error}");
}

#[test]
fn a_transaction_keeps_the_name_of_a_table_that_is_being_renamed() {
    let (store, hook) = hooked("log-", 1 << 20, options());
    // Long defaults, so that the record is written out as soon as it is appended.
    let mut long = schema("t", true);
    let text =
        long.columns.iter().find(|column| column.data_type == DataType::TEXT).unwrap().clone();
    long.columns.extend((100..250).map(|id| nacre_types::Column {
        id,
        name: format!("c{id}"),
        default: Value::Text("d".repeat(10_000)),
        ..text.clone()
    }));
    let table = store.create_table(long.clone()).unwrap();
    let reader = store.begin().unwrap();
    let found = Arc::new(Mutex::new(None));
    *hook.lock().unwrap() = Some(Box::new({
        let found = found.clone();
        move || {
            *found.lock().unwrap() =
                Some((reader.table("t").is_some(), reader.table("u").is_some()))
        }
    }));
    long.id = table.id();
    store.alter_table(&table, nacre_types::TableSchema { name: "u".into(), ..long }).unwrap();
    assert_eq!(*found.lock().unwrap(), Some((true, false)));
}

#[test]
fn rows_are_flushed_while_a_table_is_merged() {
    let (store, hook) = hooked("seg-", 0, StoreOptions { flush_bytes: 100_000, ..options() });
    let table = store.create_table(schema("t", true)).unwrap();
    for part in 0..4 {
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        load.append(&batch(&(0..500).map(|id| row(part * 500 + id, "x", 1)).collect::<Vec<_>>()))
            .unwrap();
        load.finish().unwrap();
    }
    *hook.lock().unwrap() = Some(Box::new({
        let (store, table) = (store.clone(), table.clone());
        move || {
            let tag = "k".repeat(200);
            let mut t = store.begin().unwrap();
            t.insert(&table, &batch(&(0..1_000).map(|id| row(id, &tag, 2)).collect::<Vec<_>>()))
                .unwrap();
            t.commit().unwrap();
            assert!(access::wants_flush(&store, &table));
            assert!(!store.maintain().unwrap(), "the merge has the turn");
        }
    }));
    store.merge_all(&table).unwrap();
    assert!(hook.lock().unwrap().is_none());
    assert!(!access::wants_flush(&store, &table));
    assert_eq!(
        table.segments().iter().filter(|state| state.is_current()).count(),
        2,
        "merged and flushed"
    );
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 3_000);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn tables_are_looked_up_while_a_unique_index_is_verified() {
    let (store, hook) = hooked("seg-", 0, options());
    let table = store.create_table(schema("t", true)).unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    load.append(&batch(&(0..500).map(|id| row(id, "x", id)).collect::<Vec<_>>())).unwrap();
    load.finish().unwrap();
    let mut changed = (**table.schema()).clone();
    let (id, columns) = (changed.take_index_id(), vec![changed.columns[2].id]);
    changed.indexes.push(IndexSchema {
        id,
        name: "u".into(),
        columns,
        unique: true,
        kind: IndexKind::BTree,
    });
    *hook.lock().unwrap() = Some(Box::new({
        let store = store.clone();
        move || assert!(store.context().catalog().is_free())
    }));
    store.alter_table(&table, changed).unwrap();
    assert!(hook.lock().unwrap().is_none());
}
