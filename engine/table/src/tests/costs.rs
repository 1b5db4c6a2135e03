//! What single operations cost, in looks at partitions and segments.

use super::*;
use crate::tests::merges::current;
use crate::visits;
use crate::{Admission, Asking};

/// What is in the database beside the row that is written.
struct Beside {
    tables: usize,
    partitions: u32,
    loads: i64,
}

fn table_of(store: &Store, name: &str, partitions: u32) -> Arc<Table> {
    let shard_key = Some(ShardKey { columns: vec![0], partitions });
    store.create_table(TableSchema { shard_key, ..schema(name, true) }).unwrap()
}

fn insert(store: &Store, table: &Arc<Table>, id: i64) {
    let mut transaction = store.begin().unwrap();
    transaction.insert(table, &batch(&[row(id, "x", 1)])).unwrap();
    transaction.commit().unwrap();
}

/// Looks of commits of one row each, and of what follows a commit.
fn cost_of_commits(beside: Beside) -> usize {
    let options = StoreOptions { flush_bytes: 1 << 20, merge_from: 1_000, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    for number in 1..beside.tables {
        let other = table_of(&store, &format!("other {number}"), beside.partitions);
        insert(&store, &other, 1);
    }
    let table = table_of(&store, "t", beside.partitions);
    for load in 0..beside.loads {
        let rows: Vec<_> = (0..20).map(|id| row(1_000 + load * 20 + id, "x", 1)).collect();
        let mut bulk = store.bulk_load(&table, OnDuplicate::Error);
        bulk.append(&batch(&rows)).unwrap();
        bulk.finish().unwrap();
    }
    assert!(table.partitions().len() > 1 || current(&table) == beside.loads as usize);
    while store.maintain().unwrap() {}
    visits::take();
    for id in 0..8 {
        insert(&store, &table, id);
        assert!(!store.needs_maintenance() && !store.can_relieve());
        let admission = store.admit_write(Asking { rows: 1, is_last: false }).unwrap();
        assert_eq!(admission, Admission::Granted);
        assert!(!store.maintain().unwrap());
    }
    visits::take()
}

#[test]
fn a_commit_costs_the_same_beside_many_tables_partitions_and_segments() {
    let alone = cost_of_commits(Beside { tables: 1, partitions: 1, loads: 1 });
    assert!(alone > 0, "looks are counted");
    for beside in [
        Beside { tables: 1_000, partitions: 1, loads: 1 },
        Beside { tables: 30, partitions: 32, loads: 1 },
        Beside { tables: 1, partitions: 1, loads: 40 },
    ] {
        let what = (beside.tables, beside.partitions, beside.loads);
        let cost = cost_of_commits(beside);
        assert!(cost <= alone, "{cost} looks, {alone} alone, beside {what:?}");
    }
}

/// Rowstores that are dropped, emptied, rolled back or flushed are not counted any more.
#[test]
fn the_size_of_rowstores_follows_every_change() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let counted = |store: &Store| store.context().catalog().agenda().held();
    let sum = |store: &Store| -> usize {
        store.tables().iter().map(|table| table.rowstore_size().1).sum()
    };
    let (a, b) = (table_of(&store, "a", 3), table_of(&store, "b", 1));
    for id in 0..100 {
        insert(&store, &a, id);
        insert(&store, &b, id);
    }
    assert!(counted(&store) > 0);
    assert_eq!(counted(&store), sum(&store));
    let before = counted(&store);
    let mut undone = store.begin().unwrap();
    undone.insert(&a, &batch(&[row(1_000, "x", 1)])).unwrap();
    drop(undone);
    assert_eq!(counted(&store), before);
    store.flush(&a).unwrap();
    assert_eq!(a.rowstore_size().1, 0);
    assert_eq!(counted(&store), b.rowstore_size().1);
    let reader = store.begin().unwrap();
    store.truncate(std::slice::from_ref(&b)).unwrap();
    assert_eq!(counted(&store), 0, "of a table that only a snapshot reads");
    drop(reader);
    let b = store.table("b").unwrap();
    insert(&store, &b, 1);
    assert_eq!(counted(&store), b.rowstore_size().1);
    store.drop_table(&b).unwrap();
    assert_eq!(counted(&store), 0);
}

#[test]
fn a_recovered_database_counts_its_rowstores() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = table_of(&store, "t", 2);
    (0..50).for_each(|id| insert(&store, &table, id));
    store.close().unwrap();
    let small = StoreOptions { flush_bytes: 100, ..options() };
    let store = Store::open(host(&files), small).unwrap();
    let size = store.table("t").unwrap().rowstore_size().1;
    assert_eq!(store.context().catalog().agenda().held(), size);
    assert!(size > 0 && store.needs_maintenance());
    while store.maintain().unwrap() {}
    assert_eq!(store.context().catalog().agenda().held(), 0);
}
