//! What single operations cost, in looks at partitions and segments.

use super::*;
use crate::segments::state::SegmentState;
use crate::tests::access::write_segment;
use crate::tests::merges::current;
use crate::visits;
use crate::{Admission, Asking, KeyRange, Transaction};
use roaring::RoaringBitmap;
use std::ops::Bound;

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

/// Looks of each kind of lookup in a table of this many segments in one run, the second time.
fn cost_of_lookups(segments: usize) -> Vec<(&'static str, usize)> {
    let options = StoreOptions { segment_rows: 20, merge_from: 99, partitions: 1, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let mut shape = schema("t", true);
    shape.indexes.push(indexes::index("by_n", &[3], false));
    let table = store.create_table(shape).unwrap();
    let rows: Vec<_> = (0..segments as i64 * 20).map(|id| row(id, "t", id)).collect();
    for rows in rows.chunks(20_000) {
        let mut transaction = store.begin().unwrap();
        transaction.insert(&table, &batch(rows)).unwrap();
        transaction.commit().unwrap();
    }
    store.flush(&table).unwrap();
    assert_eq!((table.segments().len(), table.runs().len()), (segments, 1));
    let middle = segments as i64 * 10;
    let key = [Value::Int(middle), Value::Text("t".into())];
    // Rows that the transaction hides are part of each view.
    let mut transaction = store.begin().unwrap();
    let (locator, _) = transaction.locate(&table, &key).unwrap().unwrap();
    transaction.delete(&table, &[locator]).unwrap();
    let next = [Value::Int(middle + 1), Value::Text("t".into())];
    let index = table.schema().indexes[0].id;
    let between = |from: i64, to: i64| KeyRange {
        prefix: Vec::new(),
        low: Bound::Included(Value::Int(from)),
        high: Bound::Excluded(Value::Int(to)),
    };
    let view = || transaction.view(&table);
    let lookups: [(&str, &dyn Fn()); 9] = [
        ("point", &|| assert!(transaction.get(&table, &next, &[2]).unwrap().is_some())),
        ("newest", &|| assert!(store.get(&table, &key, &[2]).unwrap().is_some())),
        ("index key", &|| {
            let probe = view().probe_index(index, &KeyRange::equal(vec![Value::Int(middle + 1)]));
            assert_eq!(probe.unwrap().len(), 1);
        }),
        ("index range", &|| {
            let probe = view().probe_index(index, &between(middle, middle + 15)).unwrap();
            assert_eq!(probe.len(), 15);
        }),
        ("prefix", &|| assert_eq!(view().probe_key(&next[..1]).unwrap().len(), 1)),
        ("key range", &|| {
            let (view, range) = (view(), between(middle, middle + 15));
            let mut walk = view.walk_range(&range).unwrap();
            assert_eq!(view.count_of(&walk).segments, 1);
            let segment = view.next_segment(&mut walk).unwrap();
            assert_eq!(segment.deleted.unwrap().len(), 1);
            assert!(view.next_segment(&mut walk).is_none());
        }),
        ("count", &|| assert_eq!(view().count().segments, segments)),
        ("unindexed", &|| assert_eq!(view().unindexed_rows(index).unwrap(), 0)),
        ("statistics", &|| {
            assert_eq!(table.column_summary(0).unwrap().unwrap().min, Value::Int(0));
            assert_eq!(table.row_count_estimate(), segments as u64 * 20);
        }),
    ];
    let cost = |(name, look): &(&'static str, &dyn Fn())| {
        look();
        visits::take();
        look();
        (*name, visits::take())
    };
    lookups.iter().map(cost).collect()
}

#[test]
fn a_lookup_looks_at_a_number_of_segments_logarithmic_in_the_table() {
    let (small, large) = (cost_of_lookups(64), cost_of_lookups(1_024));
    for ((name, few), (_, many)) in small.iter().zip(&large) {
        // Two binary searches over 16 times as many.
        assert!(*few > 0 && *many <= few + 8, "{name}: {few} looks, {many} in a large table");
        assert!(*many <= 40, "{name}: {many} looks");
    }
}

/// The number of rows is known without a look at each segment, and follows every change.
#[test]
fn live_rows_are_counted_as_by_looking_at_every_segment() {
    let options = StoreOptions { segment_rows: 20, merge_from: 99, partitions: 2, ..options() };
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options.clone()).unwrap();
    let table = table_of(&store, "t", 2);
    let walked = |table: &Table| -> u64 {
        let current = table.segments().into_iter().filter(|state| state.is_current());
        current.map(|state| state.segment.rows() as u64 - state.deleted_rows()).sum()
    };
    #[track_caller]
    fn check(table: &Arc<Table>, walked: u64, snapshot: &Transaction) {
        assert_eq!(table.row_count_estimate() - table.rowstore_size().0 as u64, walked);
        let view = snapshot.view(table);
        assert_eq!(view.count(), view.count_of(&view.walk()));
    }
    let old = store.begin().unwrap();
    for round in 0..3 {
        (0..60).for_each(|id| insert(&store, &table, round * 60 + id));
        store.flush(&table).unwrap();
        check(&table, walked(&table), &old);
        check(&table, walked(&table), &store.begin().unwrap());
    }
    assert_eq!(walked(&table), 180);
    let kept = store.begin().unwrap();
    let mut deleting = store.begin().unwrap();
    for id in (0..180).step_by(3) {
        let key = [Value::Int(id), Value::Text("x".into())];
        let (locator, _) = deleting.locate(&table, &key).unwrap().unwrap();
        deleting.delete(&table, &[locator]).unwrap();
    }
    deleting.commit().unwrap();
    check(&table, walked(&table), &kept);
    let mut bulk = store.bulk_load(&table, OnDuplicate::Replace);
    bulk.append(&batch(&(100..250).map(|id| row(id, "x", 2)).collect::<Vec<_>>())).unwrap();
    bulk.finish().unwrap();
    check(&table, walked(&table), &kept);
    store.merge_all(&table).unwrap();
    assert!(walked(&table) < 250);
    // Dropped segments are still seen by older snapshots, then removed.
    for snapshot in [&old, &kept, &store.begin().unwrap()] {
        check(&table, walked(&table), snapshot);
    }
    drop((old, kept));
    while store.maintain().unwrap() {}
    check(&table, walked(&table), &store.begin().unwrap());
    let before = walked(&table);
    drop(table);
    store.close().unwrap();
    let store = Store::open(host(&files), options).unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(table.row_count_estimate(), before);
    check(&table, walked(&table), &store.begin().unwrap());
    store.truncate(std::slice::from_ref(&table)).unwrap();
    assert_eq!(store.table("t").unwrap().row_count_estimate(), 0);
}

/// Whether a segment gets a key filter is found out without a look at every other segment.
#[test]
fn the_cost_of_a_flush_hardly_depends_on_the_segments_beside_it() {
    let cost = |segments: i64| {
        let options = StoreOptions { segment_rows: 20, merge_from: 99, partitions: 1, ..options() };
        let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
        let table = store.create_table(schema("t", true)).unwrap();
        let mut transaction = store.begin().unwrap();
        let rows: Vec<_> = (0..segments * 20).map(|id| row(id * 2, "x", 1)).collect();
        transaction.insert(&table, &batch(&rows)).unwrap();
        transaction.commit().unwrap();
        store.flush(&table).unwrap();
        let partition = table.partition(0);
        let mut builder = table.segment_builder();
        builder.push(&batch(&(0..20).map(|id| row(id * 2 + 1, "x", 1)).collect::<Vec<_>>()));
        visits::take();
        let filtered = partition.with_key_filter(table.layout(), builder, &[], &[]);
        let cost = visits::take();
        let file = write_segment(&store, &table, filtered).unwrap();
        assert!(SegmentState::new(file, 0, RoaringBitmap::new()).has_key_filter());
        cost
    };
    let (few, many) = (cost(16), cost(256));
    assert!(few > 0 && many <= few + 16 * 8, "{few} looks, {many} beside more segments");
}
