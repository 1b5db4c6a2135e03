//! Sorted runs: which files form one, how they are searched, and merges that go on slice by slice.

use crate::record::{self, Description, RunPlace};
use crate::tests::access::{collect_garbage, lock, write_snapshot};
use crate::tests::{batch, host, locate, options, row, scan, schema, sorted};
use crate::{OnDuplicate, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{ErrorKind, KeyColumns, Value};
use std::sync::Arc;

/// Segments of 100 rows, in one partition.
fn small() -> StoreOptions {
    StoreOptions { segment_rows: 100, partitions: 1, ..options() }
}

fn open(files: &Arc<MemoryStore>, options: StoreOptions) -> (Arc<Store>, Arc<Table>) {
    let store = Store::open(host(files), options).unwrap();
    let table = match store.table("t") {
        Some(table) => table,
        None => store.create_table(schema("t", true)).unwrap(),
    };
    (store, table)
}

fn insert(store: &Arc<Store>, table: &Arc<Table>, ids: impl Iterator<Item = i64>) {
    let mut t = store.begin().unwrap();
    t.insert(table, &batch(&ids.map(|id| row(id, "a", id)).collect::<Vec<_>>())).unwrap();
    t.commit().unwrap();
    store.flush(table).unwrap();
}

fn load(store: &Arc<Store>, table: &Arc<Table>, ids: impl Iterator<Item = i64>) {
    let mut load = store.bulk_load(table, OnDuplicate::Error);
    load.append(&batch(&ids.map(|id| row(id, "a", id)).collect::<Vec<_>>())).unwrap();
    load.finish().unwrap();
}

/// Runs of `each` rows, whose keys alternate.
fn interleaved(store: &Arc<Store>, table: &Arc<Table>, runs: i64, each: i64) {
    (0..runs).for_each(|run| insert(store, table, (0..each).map(|n| n * runs + run)));
}

fn ids(store: &Arc<Store>, table: &Arc<Table>) -> Vec<i64> {
    let rows = sorted(scan(&store.begin().unwrap().view(table)).unwrap());
    let id = |row: &Vec<Value>| if let Value::Int(id) = row[0] { id } else { -1 };
    rows.iter().map(id).collect()
}

/// The level and number of segments of each run.
fn shape(table: &Table) -> Vec<(u8, usize)> {
    table.runs().iter().map(|run| (run.level, run.segments.len())).collect()
}

fn names(table: &Table) -> Vec<u64> {
    let mut names: Vec<u64> = table.segments().iter().map(|state| state.id()).collect();
    names.sort_unstable();
    names
}

#[test]
fn files_that_do_not_overlap_are_one_run() {
    let (store, table) = open(&Arc::new(MemoryStore::new()), small());
    load(&store, &table, 0..350);
    assert_eq!(shape(&table), [(0, 4)]);
    // Each file is sorted on its own; every third hundred of rows is among the others.
    load(&store, &table, (1_000..1_400).map(|id| id / 2 + id % 2 * 5_000));
    assert_eq!(shape(&table), [(0, 4), (0, 1), (0, 1), (0, 1), (0, 1)]);
    insert(&store, &table, 20_000..20_450);
    assert_eq!(shape(&table)[5..], [(0, 5)]);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_key_is_looked_for_in_one_segment_of_each_run() {
    for sorted in [false, true] {
        let files = Arc::new(MemoryStore::new());
        let never = StoreOptions { merge_from: 99, ..small() };
        let store = Store::open(host(&files), never).unwrap();
        let mut shape = schema("t", true);
        shape.sort_key = sorted.then(|| KeyColumns { name: "SORT".into(), columns: vec![2] });
        let table = store.create_table(shape).unwrap();
        interleaved(&store, &table, 5, 1_000);
        let list = table.partition(0).segments();
        // The files of a flush that are sorted by another key overlap.
        assert_eq!((list.runs().len(), list.len()), (if sorted { 50 } else { 5 }, 50));
        for id in (0..5_000).step_by(77) {
            let key = [Value::Int(id), Value::Text("a".into())];
            let encoded = table.layout().encode_key(&key).unwrap();
            let found = list.of_key(table.layout(), &encoded).unwrap();
            assert!(found.newest_first().count() <= 5, "{id}");
            let values = store.get(&table, &key, &[0, 1, 2]).unwrap();
            assert_eq!(values, Some(row(id, "a", id)));
            let view = store.begin().unwrap().view(&table);
            let probe = view.probe_key(&key[..1]).unwrap();
            assert_eq!((probe.len(), view.count().segments - probe.runs.len()), (1, 49));
            let prefix = &encoded[..9];
            let places = list.with_key_prefix(table.layout(), &key[..1], prefix).unwrap();
            assert!((1..=5).contains(&places.len()), "{places:?}");
        }
    }
}

#[test]
fn runs_are_merged_slice_by_slice_and_every_snapshot_sees_each_row_once() {
    let files = Arc::new(MemoryStore::new());
    let (store, table) = open(&files, small());
    interleaved(&store, &table, 4, 500);
    assert_eq!(shape(&table), [(0, 5); 4]);
    let all: Vec<i64> = (0..2_000).collect();
    let mut readers = vec![(store.begin().unwrap(), all.clone())];
    let (mut left, mut commits, mut straddling) = (all, 0, 0);
    let mut runs = shape(&table);
    while store.maintain().unwrap() {
        let now = shape(&table);
        let partly =
            |run: &crate::RunSegments| run.segments.first().is_some_and(|s| s.deleted_rows() > 0);
        if now != runs {
            (commits, runs) = (commits + 1, now);
            straddling += table.runs().iter().filter(|run| partly(run)).count();
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
            // One row that was merged, and one that will be.
            let (first, last) = (commits * 90, 1_999 - commits * 3);
            let mut t = store.begin().unwrap();
            for id in [first, last] {
                let at = locate(&t, &table, id);
                assert_eq!(t.delete(&table, &[at]).unwrap(), 1);
            }
            t.commit().unwrap();
            left.retain(|id| *id != first && *id != last);
            readers.push((store.begin().unwrap(), left.clone()));
        }
        for (reader, expected) in &readers {
            assert_eq!(scan(&reader.view(&table)).unwrap().len(), expected.len());
            for id in [0, 90, 777, 1_996, 1_999] {
                let key = [Value::Int(id), Value::Text("a".into())];
                let found = reader.get(&table, &key, &[0]).unwrap().is_some();
                assert_eq!(found, expected.binary_search(&id).is_ok(), "{id}");
            }
        }
    }
    assert!(commits >= 19 && straddling > 30, "{commits} commits, {straddling} straddling");
    assert_eq!(shape(&table), [(1, 20)]);
    drop(readers);
    while store.maintain().unwrap() {}
    collect_garbage(&store).unwrap();
    assert_eq!(ids(&store, &table), left);
    drop((table, store));
    let (store, table) = open(&files, small());
    assert_eq!((ids(&store, &table), shape(&table)), (left, vec![(1, 20)]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_merge_goes_on_after_a_crash_between_any_slices() {
    let all: Vec<i64> = (0..1_600).collect();
    for snapshot in [false, true] {
        let mut steps = 1;
        loop {
            let files = Arc::new(MemoryStore::new());
            let (store, table) = open(&files, small());
            interleaved(&store, &table, 4, 400);
            let mut done = false;
            for _ in 0..steps {
                done = !store.maintain().unwrap();
            }
            if snapshot {
                write_snapshot(&store).unwrap();
            }
            let before = shape(&table);
            drop((table, store));
            let (store, table) = open(&files, small());
            assert_eq!(shape(&table), before);
            assert_eq!(ids(&store, &table), all);
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
            while store.maintain().unwrap() {}
            if before.len() == 5 {
                // All sources are left, so they are merged again, and appended.
                assert_eq!(table.runs().len(), 1, "{before:?}");
            }
            store.merge_all(&table).unwrap();
            assert_eq!(table.runs().len(), 1);
            assert_eq!(ids(&store, &table), all);
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
            if done {
                break;
            }
            steps += 9;
        }
    }
}

#[test]
fn full_segments_that_overlap_no_other_are_adopted() {
    let files = Arc::new(MemoryStore::new());
    let (store, table) = open(&files, small());
    // The second and the last load overlap in one segment each.
    for (from, to) in [(0, 400), (400, 800), (1_000, 1_300), (700, 900)] {
        let step = if from == 700 { 2 } else { 1 };
        load(&store, &table, (from..to).step_by(step).filter(|id| step == 1 || *id >= 800));
    }
    let before = names(&table);
    while store.maintain().unwrap() {}
    collect_garbage(&store).unwrap();
    assert_eq!(shape(&table).len(), 1);
    let after = names(&table);
    let kept = before.iter().filter(|id| after.contains(id)).count();
    assert!(kept >= 11, "{kept} of {before:?} are in {after:?}");
    drop((table, store));
    let (store, table) = open(&files, small());
    assert_eq!((shape(&table).len(), names(&table)), (1, after));
    assert_eq!(ids(&store, &table).len(), 400 + 400 + 300 + 50);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn the_number_of_runs_grows_with_the_logarithm() {
    let (store, table) = open(&Arc::new(MemoryStore::new()), small());
    let mut most = 0;
    for round in 0..150 {
        insert(&store, &table, (0..60).map(|n| n * 150 + round * 77 % 150));
        while store.maintain().unwrap() {}
        most = most.max(table.runs().len());
    }
    // Three of each level below 150, and one being filled.
    assert!(most <= 12, "{most} runs");
    assert_eq!(ids(&store, &table), (0..9_000).collect::<Vec<_>>());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn everything_is_merged_into_one_run_and_then_left_alone() {
    let never = StoreOptions { merge_from: 99, ..small() };
    let (store, table) = open(&Arc::new(MemoryStore::new()), never);
    // More runs than are merged at once.
    interleaved(&store, &table, 21, 130);
    assert_eq!(table.runs().len(), 21);
    store.merge_all(&table).unwrap();
    assert_eq!(shape(&table).len(), 1);
    let merged = names(&table);
    assert!(merged.len() <= 28, "{} segments", merged.len());
    store.merge_all(&table).unwrap();
    assert_eq!(names(&table), merged);
    let mut t = store.begin().unwrap();
    let at = locate(&t, &table, 1_000);
    t.delete(&table, &[at]).unwrap();
    t.commit().unwrap();
    store.merge_all(&table).unwrap();
    assert_ne!(names(&table), merged);
    assert!(table.segments().iter().all(|state| state.deleted_rows() == 0));
    assert_eq!(ids(&store, &table).len(), 21 * 130 - 1);
}

#[test]
fn a_mostly_deleted_segment_is_rewritten_in_its_run() {
    let files = Arc::new(MemoryStore::new());
    let (store, table) = open(&files, small());
    load(&store, &table, 0..500);
    let reader = store.begin().unwrap();
    let mut t = store.begin().unwrap();
    let gone: Vec<i64> = (210..290).chain(300..400).collect();
    for id in &gone {
        let at = locate(&t, &table, *id);
        t.delete(&table, &[at]).unwrap();
    }
    t.commit().unwrap();
    while store.maintain().unwrap() {}
    let runs = table.runs();
    let rows: Vec<usize> = runs[0].segments.iter().map(|state| state.segment.rows()).collect();
    assert_eq!((runs.len(), rows), (1, vec![100, 100, 20, 100]));
    assert_eq!(scan(&reader.view(&table)).unwrap().len(), 500);
    drop((reader, runs));
    let left: Vec<i64> = (0..500).filter(|id| !gone.contains(id)).collect();
    assert_eq!(ids(&store, &table), left);
    drop((table, store));
    let (store, table) = open(&files, small());
    assert_eq!(shape(&table), [(0, 4)]);
    assert_eq!(ids(&store, &table), left);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Bounds are cut, so all segments have the same ones.
#[test]
fn keys_that_begin_alike_are_kept_in_order() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), small()).unwrap();
    let mut shape = schema("t", true);
    shape.primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns: vec![1] });
    let table = store.create_table(shape).unwrap();
    let long = |id: i64| row(id, &format!("{}{id:05}", "k".repeat(100)), id);
    let insert = |ids: &mut dyn Iterator<Item = i64>| {
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&ids.map(long).collect::<Vec<_>>())).unwrap();
        t.commit().unwrap();
        store.flush(&table).unwrap();
    };
    let delete = |ids: &mut dyn Iterator<Item = i64>| {
        let mut t = store.begin().unwrap();
        for id in ids {
            let (at, _) = t.locate(&table, &[long(id)[1].clone()]).unwrap().unwrap();
            t.delete(&table, &[at]).unwrap();
        }
        t.commit().unwrap();
        while store.maintain().unwrap() {}
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    };
    (0..4).for_each(|run| insert(&mut (0..450).map(|n| n * 4 + run)));
    insert(&mut (1_800..2_150));
    delete(&mut (100..190));
    delete(&mut (1_900..1_990));
    (0..3).for_each(|run| insert(&mut (2_150..2_350).map(|n| n + run * 200)));
    delete(&mut (2_300..2_310));
    store.merge_all(&table).unwrap();
    assert_eq!(table.runs().len(), 1);
    let gone = |id: &i64| [100..190, 1_900..1_990, 2_300..2_310].iter().any(|r| r.contains(id));
    let found = scan(&store.begin().unwrap().view(&table)).unwrap();
    let expected: Vec<_> = (0..2_750).filter(|id| !gone(id)).map(long).collect();
    assert_eq!(found.into_iter().map(|(row, _)| row).collect::<Vec<_>>(), expected);
    for id in (0..2_750).step_by(31) {
        let values = store.get(&table, &[long(id)[1].clone()], &[0]).unwrap();
        assert_eq!(values.is_some(), !gone(&id), "{id}");
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_log_whose_runs_overlap_is_corrupt() {
    let files = Arc::new(MemoryStore::new());
    let (store, table) = open(&files, small());
    interleaved(&store, &table, 2, 80);
    let states = table.segments();
    let number = states[0].id();
    let mut turn = lock(&store);
    let mut payload = record::begin(turn.next());
    let description = Description::of_segment(&states[1].segment, RunPlace { number, level: 0 });
    record::describe(&mut payload, table.place(table.partition(0)), &description);
    let committed = turn.append(&payload).unwrap();
    drop(turn);
    store.context().commits().settle_strictly(committed).unwrap();
    drop((states, table, store));
    let error = Store::open(host(&files), small()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(&format!("of run {number} overlap")), "{error}");
}
