//! The block cache below a table: what scans, merges and checks leave in it, and what the removal
//! of files takes out.

use crate::tests::{batch, host, options, row, scan, schema};
use crate::{OnDuplicate, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{TableSchema, Value};
use std::sync::Arc;

/// A store with a cache of this many bytes.
fn store(cache_bytes: usize) -> Arc<Store> {
    let options = StoreOptions { cache_bytes, segment_rows: 20_000, ..options() };
    Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap()
}

fn create(store: &Arc<Store>, name: &str) -> Arc<Table> {
    store.create_table(TableSchema { name: name.into(), ..schema(name, true) }).unwrap()
}

/// Loads rows with these ids into segments.
fn load(store: &Arc<Store>, table: &Arc<Table>, ids: impl Iterator<Item = i64>) {
    let rows: Vec<_> = ids.map(|id| row(id, &format!("text {}", id * 7_919), id)).collect();
    let mut load = store.bulk_load(table, OnDuplicate::Error);
    load.append(&batch(&rows)).unwrap();
    load.finish().unwrap();
}

/// Reads every hundredth row of the first `count` by its key. Returns the bytes read from files.
fn read_points(store: &Arc<Store>, table: &Arc<Table>, count: i64) -> u64 {
    let before = store.cache().read_bytes();
    for id in (0..count).step_by(100) {
        let key = [Value::Int(id), Value::Text(format!("text {}", id * 7_919))];
        assert!(store.get(table, &key, &[2]).unwrap().is_some(), "row {id}");
    }
    store.cache().read_bytes() - before
}

#[test]
fn background_work_and_scans_leave_the_working_set() {
    let store = store(1_000_000);
    let (hot, big) = (create(&store, "hot"), create(&store, "big"));
    load(&store, &hot, 0..8_000);
    for part in 0..4 {
        // Overlapping, or a merge would have nothing to rewrite.
        load(&store, &big, (0..100_000).map(|n| n * 4 + part));
    }
    for _ in 0..3 {
        read_points(&store, &hot, 8_000);
    }
    assert_eq!(read_points(&store, &hot, 8_000), 0, "the working set fits");
    let works: [(&str, &dyn Fn()); 4] = [
        ("scan", &|| assert_eq!(scan(&store.begin().unwrap().view(&big)).unwrap().len(), 400_000)),
        ("merge", &|| store.merge_all(&big).unwrap()),
        ("check", &|| assert_eq!(store.check().unwrap(), Vec::<String>::new())),
        ("load", &|| load(&store, &big, 600_000..640_000)),
    ];
    for (name, work) in works {
        let before = store.cache().read_bytes();
        work();
        if name == "scan" || name == "merge" {
            let read = store.cache().read_bytes() - before;
            assert!(read > 1_500_000, "a {name} of {read} bytes does not fill the cache");
        }
        assert_eq!(read_points(&store, &hot, 8_000), 0, "after a {name}");
    }
}

#[test]
fn removed_files_leave_the_cache() {
    let store = store(64 << 20);
    let read_all = |table: &Arc<Table>| {
        let rows = scan(&store.begin().unwrap().view(table)).unwrap().len();
        assert_eq!(rows, 15_000, "{}", table.schema().name);
        store.cache().memory_bytes()
    };
    let filled = |name| {
        let table = create(&store, name);
        (0..3).for_each(|part| load(&store, &table, part * 5_000..(part + 1) * 5_000));
        while store.maintain().unwrap() {}
        table
    };
    let kept = filled("kept");
    let bytes = read_all(&kept);
    let gone = filled("gone");
    assert!(read_all(&gone) > bytes && bytes > 0);
    store.drop_table(&gone).unwrap();
    drop(gone);
    while store.maintain().unwrap() {}
    assert_eq!(store.cache().memory_bytes(), bytes, "the dropped table's blocks are gone");
    let read = store.cache().read_bytes();
    assert_eq!((read_all(&kept), store.cache().read_bytes()), (bytes, read), "the others are not");
}
