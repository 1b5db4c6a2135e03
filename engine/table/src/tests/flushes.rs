//! Flushes step by step: what happens between two steps, and after a crash between them.

use crate::maintenance::context::Progress;
use crate::maintenance::flush::Flush;
use crate::record::{self, FlushedRange, NewSegment};
use crate::tests::access::{copy, lock, wants_flush};
use crate::tests::{
    Model, agree, alter, batch, batch_for, host, locate, options, row, scan, schema, sorted,
};
use crate::{Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_testing::Random;
use nacre_types::{ErrorKind, KeyColumns, TableSchema, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Options with which a slice takes 50 rows, and a rowstore of more than ten rows is flushed.
fn small() -> StoreOptions {
    StoreOptions { segment_rows: 50, flush_bytes: 1_000, partitions: 1, ..options() }
}

/// A table whose rows are ordered by a column other than the key.
fn sorted_schema() -> TableSchema {
    let sort = KeyColumns { name: "SORT".into(), columns: vec![2] };
    TableSchema { sort_key: Some(sort), ..schema("t", true) }
}

fn insert(store: &Arc<Store>, table: &Arc<Table>, rows: &[Vec<Value>]) {
    let mut t = store.begin().unwrap();
    t.insert(table, &batch_for(table, rows)).unwrap();
    t.commit().unwrap();
}

/// A store with a table of these ids, all in memory.
pub(crate) fn filled(
    files: &Arc<MemoryStore>,
    schema: TableSchema,
    ids: impl Iterator<Item = i64>,
) -> (Arc<Store>, Arc<Table>, Model) {
    let store = Store::open(host(files), small()).unwrap();
    let table = store.create_table(schema).unwrap();
    let model: Model = ids.map(|id| ((id, "a".into()), id * 7 % 100)).collect();
    let rows: Vec<_> = model.iter().map(|((id, tag), n)| row(*id, tag, *n)).collect();
    insert(&store, &table, &rows);
    (store, table, model)
}

/// One random change of a random row.
pub(crate) fn change(store: &Arc<Store>, model: &mut Model, random: &mut Random) {
    let table = &store.table("t").unwrap();
    let id = random.below(400) as i64;
    let key = (id, "a".to_string());
    let n = random.below(1_000) as i64;
    let mut t = store.begin().unwrap();
    match model.contains_key(&key) {
        false => {
            t.insert(table, &batch_for(table, &[row(id, "a", n)])).unwrap();
            model.insert(key, n);
        }
        true if random.percent(50) => {
            let at = locate(&t, table, id);
            t.delete(table, &[at]).unwrap();
            model.remove(&key);
        }
        true => {
            let at = locate(&t, table, id);
            t.update(table, &[at], &batch_for(table, &[row(id, "a", n)])).unwrap();
            model.insert(key, n);
        }
    }
    t.commit().unwrap();
}

/// Rows are written while a flush goes on, and after each step a crash loses nothing.
#[test]
fn writers_and_crashes_come_between_the_steps_of_a_flush() {
    for (seed, schema) in
        [schema("t", true), sorted_schema()].into_iter().cycle().take(6).enumerate()
    {
        let mut random = Random::new(seed as u64);
        let files = Arc::new(MemoryStore::new());
        let (store, table, mut model) = filled(&files, schema, 0..300);
        let reader = store.begin().unwrap();
        let before = model.clone();
        let mut flush = Flush::new(&table, &table.partitions()[0]);
        let mut steps = 0;
        while flush.step(store.context()).unwrap() == Progress::More {
            steps += 1;
            if random.percent(60) {
                change(&store, &mut model, &mut random);
            }
            if random.percent(10) {
                alter(&store, &store.table("t").unwrap(), steps);
            }
            let newest = store.begin().unwrap();
            agree(&newest, &table, &model, seed as u64, steps);
            agree(&reader, &table, &before, seed as u64, steps);
            let crashed = Store::open(host(&copy(&files)), small()).unwrap();
            let after = crashed.begin().unwrap();
            agree(&after, &crashed.table("t").unwrap(), &model, seed as u64, steps);
            if steps % 8 == 0 {
                assert_eq!(crashed.check().unwrap(), Vec::<String>::new());
            }
        }
        assert!(steps > 20, "{steps} steps");
        assert!(table.segments().len() >= 6, "{} segments", table.segments().len());
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn the_files_of_a_flush_ascend_and_its_memory_is_freed() {
    let files = Arc::new(MemoryStore::new());
    let (store, table, model) = filled(&files, schema("t", true), 0..1_000);
    assert!(wants_flush(&store, &table));
    store.flush(&table).unwrap();
    let segments = table.segments();
    assert_eq!(segments.len(), 20);
    let bounds: Vec<_> =
        segments.iter().map(|s| s.segment.order_bounds().cloned().unwrap()).collect();
    assert!(bounds.windows(2).all(|pair| pair[0].last < pair[1].first), "disjoint and ascending");
    assert_eq!(table.rowstore_size(), (0, 0));
    assert!(!wants_flush(&store, &table));
    agree(&store.begin().unwrap(), &table, &model, 0, 0);
}

/// A flush leaves rows that a transaction has locked. Whenever that commits, the next flush takes them.
#[test]
fn rows_that_are_committed_while_a_flush_goes_on_are_flushed_next() {
    let mut is_done = false;
    for at in 0..12 {
        let files = Arc::new(MemoryStore::new());
        let (store, table, _) = filled(&files, schema("t", true), 0..1);
        store.flush(&table).unwrap();
        let mut t = store.begin().unwrap();
        let rows: Vec<_> = (1_000..1_200).map(|id| row(id, "a", id)).collect();
        t.insert(&table, &batch_for(&table, &rows)).unwrap();
        let mut flush = Flush::new(&table, &table.partitions()[0]);
        let more = |flush: &mut Flush| flush.step(store.context()).unwrap() == Progress::More;
        is_done = !(0..at).all(|_| more(&mut flush));
        t.commit().unwrap();
        while !is_done && more(&mut flush) {}
        let is_empty = table.rowstore_size().0 == 0;
        assert!(is_empty || wants_flush(&store, &table), "committed after {at} steps");
        while store.maintain().unwrap() {}
        assert_eq!(table.rowstore_size().0, 0, "committed after {at} steps");
    }
    assert!(is_done, "a commit after every step");
}

/// Versions that a snapshot needs stay, and go with the next flush after it has ended.
#[test]
fn a_snapshot_keeps_flushed_rows_in_memory_until_it_ends() {
    let files = Arc::new(MemoryStore::new());
    let (store, table, _) = filled(&files, schema("t", true), 0..200);
    let reader = store.begin().unwrap();
    store.flush(&table).unwrap();
    assert_eq!(table.rowstore_size().0, 200);
    assert!(!wants_flush(&store, &table), "nothing to gain while the snapshot lives");
    drop(reader);
    assert!(wants_flush(&store, &table));
    while store.maintain().unwrap() {}
    assert_eq!(table.rowstore_size().0, 0);
}

#[test]
fn locked_rows_stay_and_come_with_the_next_flush() {
    let files = Arc::new(MemoryStore::new());
    let (store, table, _) = filled(&files, schema("t", true), 0..120);
    let mut holder = store.begin().unwrap();
    for id in [0, 49, 50, 119] {
        let at = locate(&holder, &table, id);
        holder.update(&table, &[at], &batch(&[row(id, "a", 5_000)])).unwrap();
    }
    store.flush(&table).unwrap();
    let flushed = |table: &Table| table.segments().iter().map(|s| s.segment.rows()).sum::<usize>();
    assert_eq!(flushed(&table), 116);
    let crashed = Store::open(host(&copy(&files)), small()).unwrap();
    let rows = scan(&crashed.begin().unwrap().view(&crashed.table("t").unwrap())).unwrap();
    assert_eq!(rows.len(), 120);
    holder.commit().unwrap();
    store.flush(&table).unwrap();
    assert_eq!((flushed(&table), table.rowstore_size().0), (120, 0));
    let rows = sorted(scan(&store.begin().unwrap().view(&table)).unwrap());
    assert_eq!(rows.iter().filter(|row| row[2] == Value::Int(5_000)).count(), 4);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// A truncated table ends its flush; a slice that is being written leaves no file.
#[test]
fn a_flush_ends_with_its_table() {
    for stop in 1..12 {
        let files = Arc::new(MemoryStore::new());
        let (store, table, _) = filled(&files, schema("t", true), 0..120);
        let mut flush = Flush::new(&table, &table.partitions()[0]);
        for _ in 0..stop {
            assert_eq!(flush.step(store.context()).unwrap(), Progress::More);
        }
        match stop % 2 {
            0 => store.truncate(std::slice::from_ref(&table)).unwrap(),
            _ => store.drop_table(&table).unwrap(),
        }
        assert_eq!(flush.step(store.context()).unwrap(), Progress::Done);
        drop((table, flush));
        while store.maintain().unwrap() {}
        let left = nacre_host::LocalStore::list(&*files).unwrap();
        assert!(!left.iter().any(|name| name.starts_with("seg-")), "after {stop} steps: {left:?}");
    }
}

/// A range that flushes rows of its own commit, or of later ones, is refused.
#[test]
fn a_flush_of_later_rows_is_corrupt() {
    for late in [0, 1] {
        let files = Arc::new(MemoryStore::new());
        let (store, table, _) = filled(&files, schema("t", true), 0..10);
        store.flush(&table).unwrap();
        let mut turn = lock(&store);
        let commit = turn.next();
        let mut payload = record::begin(commit);
        let to = table.row_key(&row(5, "a", 0)).unwrap().encoded().to_vec();
        let range = FlushedRange { after: None, to, upto: commit + late, except: Vec::new() };
        let segment = NewSegment { id: 100, deleted: RoaringBitmap::new() };
        let place = table.place(&table.partitions()[0]);
        record::flush_range(&mut payload, place, &range, &segment).unwrap();
        turn.append(&payload).unwrap();
        drop(turn);
        store.sync_log().unwrap();
        drop((table, store));
        let error = Store::open(host(&files), small()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("flushes rows up to"), "{error}");
    }
}
