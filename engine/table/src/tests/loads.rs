//! Duplicate keys between loads and existing rows, compared with sets for every search method; and
//! which segments get key filters.

use crate::layout::columns::KEY_FILTER_COLUMN;
use crate::load::common_keys::{CommonKeys, is_few, overlap};
use crate::load::same_keys::{KeyPlace, Repeated};
use crate::tests::access::write_segment;
use crate::tests::{column, host, options};
use crate::*;
use nacre_column::{Batch, Vector};
use nacre_host::memory::MemoryStore;
use nacre_types::{
    Column, DataType, ErrorKind, IndexKind, IndexSchema, KeyColumns, ShardKey, TableSchema, Value,
    limits,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The type of keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Integer,
    Text,
    /// A text and a number.
    Pair,
    /// An integer, in segments with a different sort order.
    Unsorted,
}

const KINDS: [Kind; 4] = [Kind::Integer, Kind::Text, Kind::Pair, Kind::Unsorted];

fn key_of(kind: Kind, n: i64) -> Vec<Value> {
    match kind {
        Kind::Integer | Kind::Unsorted => vec![Value::Int(n)],
        // Text order differs from numeric order.
        Kind::Text => vec![Value::Text(format!("k{n}"))],
        Kind::Pair => vec![Value::Text(format!("k{}", n % 7)), Value::Int(n)],
    }
}

fn row_of(kind: Kind, n: i64, value: i64) -> Vec<Value> {
    let mut row = key_of(kind, n);
    row.push(Value::Int(value));
    row
}

fn schema(name: &str, kind: Kind) -> TableSchema {
    let types = match kind {
        Kind::Integer | Kind::Unsorted => vec![DataType::Int64],
        Kind::Text => vec![DataType::TEXT],
        Kind::Pair => vec![DataType::TEXT, DataType::Int64],
    };
    let column = |(at, data_type): (usize, DataType)| {
        column(at as u32 + 1, &format!("c{at}"), data_type, false)
    };
    let keys = (0..types.len()).collect();
    let columns: Vec<Column> =
        types.into_iter().chain([DataType::Int32]).enumerate().map(column).collect();
    let sort = KeyColumns { name: "SORT".into(), columns: vec![columns.len() - 1] };
    TableSchema {
        name: name.into(),
        columns,
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: keys }),
        sort_key: (kind == Kind::Unsorted).then_some(sort),
        ..TableSchema::default()
    }
}

fn batch(table: &Table, rows: &[Vec<Value>]) -> Batch {
    Batch::from_rows(&table.schema().types(), rows)
}

fn load(
    store: &Arc<Store>,
    table: &Arc<Table>,
    rows: &[Vec<Value>],
    policy: OnDuplicate,
) -> nacre_types::Result<u64> {
    let mut load = store.bulk_load(table, policy);
    load.append(&batch(table, rows))?;
    load.finish()
}

/// Deletes the row of a key, if it exists.
fn remove(t: &mut Transaction, table: &Arc<Table>, key: &[Value]) -> bool {
    let Some((locator, _)) = t.locate(table, key).unwrap() else { return false };
    t.delete(table, &[locator]).unwrap() == 1
}

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

#[test]
fn keys_in_common_are_those_of_both_sets() {
    let mut next = random(5);
    let mut walked = 0;
    let mut looked_up = [0, 0];
    for round in 0..72 {
        let kind = KINDS[round % 4];
        let options = StoreOptions { segment_rows: limits::MAX_SEGMENT_ROWS, ..options() };
        let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
        let (small, large) = (1 + next(40), 5_000 + next(5_000));
        let sizes = [[small, large], [large, small], [large, large], [small, small]][round / 4 % 4];
        // Ranges that are disjoint, touch, contain each other, or are equal.
        let (shift, spread) = ([0, 100_000, 4_000][round / 16 % 3], 1 + next(40));
        let mut sets: Vec<BTreeSet<i64>> = Vec::new();
        let mut tables = Vec::new();
        for (at, size) in sizes.into_iter().enumerate() {
            let keys: BTreeSet<i64> =
                (0..size).map(|_| (next(size * spread) + at as u64 * shift) as i64).collect();
            let table = store.create_table(schema(&format!("t{at}"), kind)).unwrap();
            let rows: Vec<_> = keys.iter().map(|n| row_of(kind, *n, n * 7_919 % 1_009)).collect();
            load(&store, &table, &rows, OnDuplicate::Error).unwrap();
            sets.push(keys);
            tables.push(table);
        }
        let segment = |table: &Arc<Table>| table.segments()[0].segment.clone();
        let (old, new) = (segment(&tables[0]), segment(&tables[1]));
        let (old, new) = (
            tables[0].layout().sorted_keys(&old).unwrap(),
            tables[1].layout().sorted_keys(&new).unwrap(),
        );
        let mut found = Vec::new();
        let mut common = CommonKeys::new(&old, &new).unwrap();
        let mut meet = |at, place| {
            assert_eq!(old.at(at)?, new.at(place)?);
            found.push(new.at(place)?);
            Ok(())
        };
        while common.step(&old, &new, 1 + round * 97, &mut meet).unwrap() {}
        let mut expected: Vec<Vec<Value>> =
            sets[0].intersection(&sets[1]).map(|n| key_of(kind, *n)).collect();
        let encoded = |key: &Vec<Value>| tables[0].layout().encode_key(key).unwrap();
        expected.sort_by_key(encoded);
        assert_eq!(found, expected, "{kind:?}, round {round}");
        let Some((olds, news)) = overlap(&old, &new).unwrap() else { continue };
        looked_up[0] += usize::from(is_few(&new, news.len(), olds.len()));
        looked_up[1] += usize::from(is_few(&old, olds.len(), news.len()));
        walked += usize::from(olds.len() > limits::BLOCK_ROWS && news.len() > limits::BLOCK_ROWS);
    }
    assert!(walked > 5 && looked_up.iter().all(|times| *times > 5), "{walked} {looked_up:?}");
}

#[test]
fn keys_with_nulls_are_in_common_with_none_and_others_as_often_as_they_are_there() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let make = |name: &str, n: &dyn Fn(i64) -> Value, rows: i64| {
        let mut schema = schema(name, Kind::Integer);
        schema.columns[1].nullable = true;
        let id = schema.take_index_id();
        let index = IndexSchema {
            id,
            name: "i".into(),
            columns: vec![2],
            unique: false,
            kind: IndexKind::BTree,
        };
        schema.indexes.push(index);
        let table = store.create_table(schema).unwrap();
        let rows: Vec<Vec<Value>> = (0..rows).map(|id| vec![Value::Int(id), n(id)]).collect();
        load(&store, &table, &rows, OnDuplicate::Error).unwrap();
        let state = table.segments()[0].clone();
        state.part(id).unwrap()
    };
    let some = |id: i64, n: i64| if id % 5 == 0 { Value::Null } else { Value::Int(n) };
    // Each number three times, with some nulls instead; and every other number once.
    for rows in [2_400, 30] {
        let old = make(&format!("old{rows}"), &|id| some(id, id / 3), rows);
        let new = make(&format!("new{rows}"), &|id| some(id, id * 2), 1_000);
        let mut found: BTreeMap<i64, usize> = BTreeMap::new();
        let mut common = CommonKeys::new(&old.sorted_keys(), &new.sorted_keys()).unwrap();
        let mut meet = |at, place| {
            let (key, other) = (old.sorted_keys().at(at)?, new.sorted_keys().at(place)?);
            assert_eq!(key, other);
            let Value::Int(n) = key[0] else { panic!("{key:?}") };
            *found.entry(n).or_default() += 1;
            Ok(())
        };
        while common.step(&old.sorted_keys(), &new.sorted_keys(), 10, &mut meet).unwrap() {}
        let mut expected: BTreeMap<i64, usize> = BTreeMap::new();
        for id in (0..rows).filter(|id| id % 5 != 0) {
            let n = id / 3;
            if n % 2 == 0 && n / 2 < 1_000 && n / 2 % 5 != 0 {
                *expected.entry(n).or_default() += 1;
            }
        }
        assert_eq!(found, expected);
    }
}

/// Above `WHOLE_KEYS`, keys in an order of their own are read in blocks.
#[test]
fn one_walk_finds_the_keys_that_several_files_have() {
    let mut next = random(6);
    let mut repeated = 0;
    for round in 0..24 {
        let kind = KINDS[round % 4];
        let options = StoreOptions { segment_rows: limits::MAX_SEGMENT_ROWS, ..options() };
        let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
        let (files, most) = ([1, 2, 9][round / 4 % 3], [30, 3_000][round / 12]);
        let mut expected: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        let mut tables = Vec::new();
        for file in 0..files {
            let table = store.create_table(schema(&format!("t{file}"), kind)).unwrap();
            let keys: BTreeSet<i64> = (0..most).map(|_| next(most * 4) as i64).collect();
            let rows: Vec<_> = keys.iter().map(|n| row_of(kind, *n, n * 7_919 % 1_009)).collect();
            load(&store, &table, &rows, OnDuplicate::Error).unwrap();
            for n in keys {
                let key = table.layout().encode_key(&key_of(kind, n)).unwrap();
                expected.entry(key).or_default().push(file);
            }
            tables.push(table);
        }
        expected.retain(|_, files| files.len() > 1);
        let segments: Vec<_> = tables.iter().map(|t| t.segments()[0].segment.clone()).collect();
        let keys: Vec<_> = segments
            .iter()
            .zip(&tables)
            .map(|(segment, table)| table.layout().sorted_keys(segment).unwrap())
            .collect();
        let mut found = Vec::new();
        let mut found_one = |places: &[KeyPlace]| {
            let encoded = |place: &KeyPlace| {
                tables[0].layout().encode_key(&keys[place.file].at(place.position).unwrap())
            };
            let key = encoded(&places[0])?;
            assert!(places.iter().all(|place| encoded(place).unwrap() == key));
            found.push((key, places.iter().map(|place| place.file).collect::<Vec<_>>()));
            Ok(())
        };
        let mut walk = Repeated::new(&keys);
        while walk.step(&keys, 1 + round, &mut found_one).unwrap() {}
        repeated += found.len();
        assert!(found == expected.into_iter().collect::<Vec<_>>(), "{kind:?}, round {round}");
    }
    assert!(repeated > 1_000, "{repeated}");
}

type Model = BTreeMap<i64, i64>;

fn rows_in(store: &Arc<Store>, table: &Arc<Table>, kind: Kind, model: &Model, most: i64) {
    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
    for n in 0..most {
        let found = store.get(table, &key_of(kind, n), &all).unwrap();
        assert_eq!(found, model.get(&n).map(|value| row_of(kind, n, *value)), "{kind:?} {n}");
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn loads_of_all_sizes_agree_with_a_map() {
    for seed in 0..12 {
        let kind = KINDS[seed as usize % 4];
        let mut next = random(seed + 100);
        let files = Arc::new(MemoryStore::new());
        let options = StoreOptions {
            segment_rows: 1_500,
            hash_from: [2.0, f64::MAX][seed as usize / 4 % 2],
            ..options()
        };
        let mut store = Store::open(host(&files), options.clone()).unwrap();
        let mut shape = schema("t", kind);
        shape.shard_key = (seed % 3 == 2).then(|| ShardKey { partitions: 3, columns: vec![0] });
        store.create_table(shape).unwrap();
        let mut model = Model::new();
        let mut filters = 0;
        for step in 0..24 {
            let table = store.table("t").unwrap();
            let policy =
                [OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace][next(3) as usize];
            let count = [1, 20, 300, 4_000][next(4) as usize];
            let fresh = policy == OnDuplicate::Error && next(3) > 0;
            let numbers: Vec<i64> = (0..count).map(|_| next(6_000) as i64).collect();
            let numbers: Vec<i64> = match fresh {
                true => numbers
                    .into_iter()
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .filter(|n| !model.contains_key(n))
                    .collect(),
                false => numbers,
            };
            let mut after = model.clone();
            let mut fails = false;
            for n in &numbers {
                match policy {
                    OnDuplicate::Error => fails |= after.insert(*n, step).is_some(),
                    OnDuplicate::Skip => drop(after.entry(*n).or_insert(step)),
                    OnDuplicate::Replace => drop(after.insert(*n, step)),
                }
            }
            let rows: Vec<_> = numbers.iter().map(|n| row_of(kind, *n, step)).collect();
            match load(&store, &table, &rows, policy) {
                Ok(_) => {
                    assert!(!fails, "{kind:?} seed {seed} step {step}");
                    model = after;
                }
                Err(error) => assert!(fails && error.kind() == ErrorKind::Constraint, "{error}"),
            }
            let gone: Vec<i64> = (0..next(30)).map(|_| next(6_000) as i64).collect();
            let mut t = store.begin().unwrap();
            for n in gone {
                assert_eq!(remove(&mut t, &table, &key_of(kind, n)), model.remove(&n).is_some());
            }
            t.commit().unwrap();
            filters += table.segments().iter().filter(|state| state.has_key_filter()).count();
            match next(8) {
                0 => while store.maintain().unwrap() {},
                1 => store.flush(&table).unwrap(),
                2 => {
                    store.close().unwrap();
                    store = Store::open(host(&files), options.clone()).unwrap();
                }
                _ => {}
            }
            if step % 6 == 5 {
                rows_in(&store, &store.table("t").unwrap(), kind, &model, 6_000);
            }
        }
        assert!(filters > 0);
    }
}

fn filters(table: &Table) -> Vec<bool> {
    table
        .segments()
        .iter()
        .map(|state| state.segment.column_index(KEY_FILTER_COLUMN).is_some())
        .collect()
}

#[test]
fn segments_have_filters_where_their_keys_are_between_those_of_others() {
    for kind in KINDS {
        let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
        let apart = store.create_table(schema("apart", kind)).unwrap();
        let mixed = store.create_table(schema("mixed", kind)).unwrap();
        for round in 0..4i64 {
            let rows: Vec<_> =
                (0..500).map(|n| row_of(kind, 10_000 + round * 500 + n, 1)).collect();
            load(&store, &apart, &rows, OnDuplicate::Error).unwrap();
            let rows: Vec<_> = (0..500).map(|n| row_of(kind, 10_000 + n * 4 + round, 1)).collect();
            load(&store, &mixed, &rows, OnDuplicate::Error).unwrap();
        }
        assert_eq!(filters(&apart), [false; 4], "{kind:?}");
        assert_eq!(filters(&mixed), [false, true, true, true], "{kind:?}");
        // Flushing the rowstore creates such a segment too; the result of a merge has no
        // neighbours.
        let mut t = store.begin().unwrap();
        let rows: Vec<_> = (0..50).map(|n| row_of(kind, 10_001 + n * 37, 2)).collect();
        for row in &rows {
            let key = &row[..row.len() - 1];
            remove(&mut t, &mixed, key);
        }
        t.insert(&mixed, &batch(&mixed, &rows)).unwrap();
        t.commit().unwrap();
        store.flush(&mixed).unwrap();
        assert_eq!(filters(&mixed), [false, true, true, true, true], "{kind:?}");
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        store.merge_all(&mixed).unwrap();
        assert_eq!(filters(&store.table("mixed").unwrap()).last(), Some(&false), "{kind:?}");
        let all = [0];
        assert!(store.get(&mixed, &key_of(kind, 10_003), &all).unwrap().is_some());
        assert!(store.get(&mixed, &key_of(kind, 9_999), &all).unwrap().is_none());
    }
}

#[test]
fn check_finds_a_filter_that_leaves_out_a_key() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(schema("t", Kind::Integer)).unwrap();
    load(&store, &table, &[row_of(Kind::Integer, 1, 1)], OnDuplicate::Error).unwrap();
    // A segment whose filter was built from another column.
    let mut builder = table.segment_builder().with_key_filter(vec![1], KEY_FILTER_COLUMN);
    builder.push(&batch(&table, &[row_of(Kind::Integer, 2, 77), row_of(Kind::Integer, 3, 78)]));
    let segment = write_segment(&store, &table, builder).unwrap();
    table.partitions()[0].update_segments(|list| {
        list.push(Arc::new(SegmentState::new(segment, 0, RoaringBitmap::new())));
    });
    let findings = store.check().unwrap();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].contains("row 0 is missing from the key filter"), "{findings:?}");
}

/// A row too long to be moved in one record cannot be loaded.
#[test]
fn rows_too_long_to_change_are_refused() {
    let long = Value::Text("x".repeat(limits::MAX_VALUE_BYTES));
    let column = Arc::new(Vector::constant(DataType::TEXT, &long, 2));
    let two = Batch::new(vec![column.clone(), column.clone()], 2);
    assert!(crate::layout::constraints::check_row_lengths(&two).is_ok());
    let three = Batch::new(vec![column.clone(), column.clone(), column], 2);
    assert_eq!(
        crate::layout::constraints::check_row_lengths(&three).unwrap_err().kind(),
        ErrorKind::Limit
    );
}
