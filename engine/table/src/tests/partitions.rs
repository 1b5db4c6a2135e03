//! Partitioned tables: rows without a primary key that change partition, rows without a fixed
//! partition, routing, and concurrent writers to different partitions.

use crate::tests::access::write_snapshot;
use crate::tests::{Random, batch, host, options, row, scan, schema};
use crate::*;
use nacre_host::memory::MemoryStore;
use nacre_types::{ErrorKind, Result, ShardKey, TableSchema, Value, limits};
use std::sync::Arc;

fn sharded(name: &str, keyed: bool, columns: &[usize]) -> TableSchema {
    let shard_key = Some(ShardKey { columns: columns.to_vec(), partitions: 0 });
    TableSchema { shard_key, ..schema(name, keyed) }
}

fn insert(store: &Arc<Store>, table: &Arc<Table>, rows: &[Vec<Value>]) -> Result<()> {
    let mut t = store.begin()?;
    t.insert(table, &batch(rows))?;
    t.commit()
}

/// Rows as text, sorted, with duplicates.
fn contents(store: &Arc<Store>, table: &Arc<Table>) -> Vec<String> {
    let reader = store.begin().unwrap();
    let mut rows: Vec<String> =
        scan(&reader.view(table)).unwrap().iter().map(|(r, _)| format!("{r:?}")).collect();
    rows.sort();
    rows
}

/// Checks that every row is in the partition of its shard key, and runs `check`.
fn check(store: &Arc<Store>, table: &Arc<Table>) {
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let shard = table.schema().shard_key.clone().unwrap();
    for (values, locator) in scan(&store.begin().unwrap().view(table)).unwrap() {
        let (RowLocator::Memory { partition, .. } | RowLocator::Segment { partition, .. }) =
            locator;
        if !shard.columns.is_empty() {
            let values: Vec<Value> = shard.columns.iter().map(|c| values[*c].clone()).collect();
            assert_eq!(table.partition_of_values(&values).unwrap(), partition);
        }
    }
}

/// Compares rows without a primary key with a list, with updates that move them between partitions.
fn history(seed: u64, columns: &[usize]) {
    let files = Arc::new(MemoryStore::new());
    let mut store = Store::open(host(&files), options()).unwrap();
    store.create_table(sharded("t", false, columns)).unwrap();
    let mut random = Random::new(seed);
    let mut model: Vec<Vec<Value>> = Vec::new();
    for step in 0..40 {
        let table = store.table("t").unwrap();
        let make = |random: &mut Random| {
            row(
                random.below(20) as i64,
                &format!("{}", random.below(5)),
                random.below(9) as i64 - 1,
            )
        };
        match random.below(9) {
            0 => store.flush(&table).unwrap(),
            1 => store.merge_all(&table).unwrap(),
            2 => write_snapshot(&store).unwrap(),
            3 => {
                drop(table);
                drop(store);
                store = Store::open(host(&files), options()).unwrap();
            }
            4 => {
                let mut load = store.bulk_load(&table, OnDuplicate::Error);
                for _ in 0..random.below(4) {
                    let rows: Vec<_> =
                        (0..random.below(3_000)).map(|_| make(&mut random)).collect();
                    load.append(&batch(&rows)).unwrap();
                    model.extend(rows);
                }
                load.finish().unwrap();
            }
            5 | 6 => {
                let rows: Vec<_> = (0..random.below(20)).map(|_| make(&mut random)).collect();
                insert(&store, &table, &rows).unwrap();
                model.extend(rows);
            }
            kind => {
                let wanted = Value::Int(random.below(20) as i64);
                let mut t = store.begin().unwrap();
                let found: Vec<_> = scan(&t.view(&table))
                    .unwrap()
                    .into_iter()
                    .filter(|r| r.0[0] == wanted)
                    .collect();
                let locators: Vec<_> = found.iter().map(|(_, l)| l.clone()).collect();
                model.retain(|r| r[0] != wanted);
                if kind == 7 {
                    t.delete(&table, &locators).unwrap();
                } else {
                    let rows: Vec<_> = found.iter().map(|_| make(&mut random)).collect();
                    t.update(&table, &locators, &batch(&rows)).unwrap();
                    model.extend(rows);
                }
                t.commit().unwrap();
            }
        }
        let mut expected: Vec<String> = model.iter().map(|r| format!("{r:?}")).collect();
        expected.sort();
        let table = store.table("t").unwrap();
        assert_eq!(table.partitions().len(), 3);
        assert!(contents(&store, &table) == expected, "seed {seed} step {step}");
        check(&store, &table);
    }
}

#[test]
fn rows_without_a_primary_key_agree_with_a_list() {
    for seed in 0..6 {
        history(seed, [&[][..], &[0], &[2, 1]][(seed % 3) as usize]);
    }
}

#[test]
fn every_partition_gets_its_share_and_answers_for_its_keys() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(sharded("t", true, &[0])).unwrap();
    let rows: Vec<_> = (0..3_000).map(|id| row(id, "a", id)).collect();
    insert(&store, &table, &rows).unwrap();
    let sizes: Vec<u64> = table.partitions().iter().map(Partition::row_count_estimate).collect();
    assert!(sizes.iter().all(|n| (900..1_100).contains(n)), "{sizes:?}");
    store.flush(&table).unwrap();
    assert_eq!(
        table.partitions().iter().map(|p| p.segments().len()).collect::<Vec<_>>(),
        [1, 1, 1]
    );
    let reader = store.begin().unwrap();
    for id in (0..3_000).step_by(97) {
        let key = [Value::Int(id), Value::Text("a".into())];
        let (locator, values) = reader.locate(&table, &key).unwrap().unwrap();
        assert_eq!(values, row(id, "a", id));
        let RowLocator::Segment { partition, .. } = locator else { panic!("flushed") };
        let mut view = reader.view(&table);
        view.only_partition(partition);
        assert!(scan(&view).unwrap().iter().any(|(r, _)| *r == values));
    }
    check(&store, &table);
}

/// The hash is part of the format: later versions must find the rows of a stored table.
#[test]
fn routing_does_not_change_between_versions() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(sharded("t", true, &[1, 0])).unwrap();
    let place = |id: i64, tag: &str| {
        table.partition_of_values(&[Value::Text(tag.into()), Value::Int(id)]).unwrap()
    };
    let places: Vec<u32> = (0..12).map(|id| place(id, "a\0b")).collect();
    assert_eq!(places, ROUTED);
}

const ROUTED: [u32; 12] = [0, 1, 2, 2, 1, 0, 1, 1, 2, 2, 0, 2];

#[test]
fn a_shard_key_outside_the_primary_key_is_refused() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let refused = |schema| store.create_table(schema).map(drop).unwrap_err().kind();
    assert_eq!(refused(sharded("t", true, &[0, 2])), ErrorKind::Constraint);
    assert_eq!(refused(sharded("t", true, &[])), ErrorKind::Unsupported);
    let many = Some(ShardKey { columns: vec![0], partitions: u32::MAX });
    assert_eq!(refused(TableSchema { shard_key: many, ..schema("t", true) }), ErrorKind::Limit);
    assert!(limits::MAX_PARTITIONS < u32::MAX as usize);
}

#[test]
#[allow(clippy::disallowed_methods)]
fn threads_write_to_several_partitions_at_once() {
    let files = Arc::new(MemoryStore::new());
    let small = StoreOptions { flush_bytes: 60_000, ..options() };
    let store = Store::open(host(&files), small.clone()).unwrap();
    let table = store.create_table(sharded("t", true, &[0])).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4i64 {
            let (store, table) = (&store, &table);
            scope.spawn(move || {
                for n in 0..100 {
                    let rows: Vec<_> =
                        (0..5).map(|k| row(thread * 1_000 + n * 5 + k, "a", n)).collect();
                    insert(store, table, &rows).unwrap();
                    if n % 10 == 3 {
                        while store.maintain().unwrap() {}
                    }
                    let mut t = store.begin().unwrap();
                    let key = [Value::Int(thread * 1_000 + n * 5), Value::Text("a".into())];
                    let (at, _) = t.locate(table, &key).unwrap().unwrap();
                    t.update(
                        table,
                        &[at],
                        &batch(&[row(thread * 1_000 + n * 5 + 500_000, "a", n)]),
                    )
                    .unwrap();
                    t.commit().unwrap();
                }
            });
        }
        for _ in 0..20 {
            let reader = store.begin().unwrap();
            let seen = scan(&reader.view(&table)).unwrap().len();
            assert_eq!(seen % 5, 0, "{seen}");
        }
    });
    while store.maintain().unwrap() {}
    check(&store, &table);
    assert!(
        table.partitions().iter().all(|p| !p.segments().is_empty()),
        "every partition was flushed"
    );
    let before = contents(&store, &table);
    assert_eq!(before.len(), 4 * 100 * 5);
    drop((table, store));
    let store = Store::open(host(&files), small).unwrap();
    assert!(contents(&store, &store.table("t").unwrap()) == before);
}
