//! Merges concurrent with other work, the order of segments, and bitmaps of old snapshots.

use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::tests::access::{build_indexes, last_commit, lock, merge, write_segment};
use crate::tests::{batch, host, locate, open_with, options, row, scan, schema};
use crate::{OnDuplicate, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{ErrorKind, KeyColumns, Value, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

#[test]
fn long_snapshots_merge_their_bitmaps_once() {
    let rows: Vec<_> = (0..2_000).map(|id| row(id, "a", id)).collect();
    let (_, store, table) = open_with(&rows);
    store.flush(&table).unwrap();
    let mut readers = Vec::new();
    for round in 0..12 {
        readers.push((store.begin().unwrap(), 2_000 - round * 10));
        let mut t = store.begin().unwrap();
        for id in round * 10..(round + 1) * 10 {
            let at = locate(&t, &table, id as i64);
            t.delete(&table, &[at]).unwrap();
        }
        t.commit().unwrap();
        store.maintain().unwrap();
    }
    for _ in 0..3 {
        for (reader, expected) in &readers {
            assert_eq!(scan(&reader.view(&table)).unwrap().len(), *expected);
        }
    }
    let (made, held, _) = store.context().files().bitmaps().statistics();
    assert!(made == held as u64 && (10..=11).contains(&made), "{made} made, {held} held");
    drop(readers);
    while store.maintain().unwrap() {}
    store.merge_all(&table).unwrap();
    assert_eq!(
        store.context().files().bitmaps().statistics().1,
        0,
        "those of segments that are gone are forgotten"
    );
    let reader = store.begin().unwrap();
    assert_eq!(scan(&reader.view(&table)).unwrap().len(), 2_000 - 120);
}

#[test]
fn segments_are_sorted_by_the_sort_key_and_found_by_the_key() {
    for keyed in [true, false] {
        let files = Arc::new(MemoryStore::new());
        let store = Store::open(host(&files), options()).unwrap();
        let mut shape = schema("s", keyed);
        shape.sort_key = Some(KeyColumns { name: "SORT".into(), columns: vec![2] });
        let table = store.create_table(shape).unwrap();
        let rows: Vec<_> = (0..2_500).map(|id| row(id, "a", (id * 37) % 101 - 1)).collect();
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&rows)).unwrap();
        t.commit().unwrap();
        store.flush(&table).unwrap();
        let mut load = store.bulk_load(&table, OnDuplicate::Replace);
        let more: Vec<_> = (2_000..7_000).rev().map(|id| row(id, "a", (id * 41) % 103)).collect();
        load.append(&batch(&more)).unwrap();
        load.finish().unwrap();
        for round in 0..2 {
            for state in table.segments().iter().filter(|s| s.is_current()) {
                let segment = &state.segment;
                let sorted: Vec<_> =
                    (0..segment.rows()).map(|row| segment.get(2, row).unwrap()).collect();
                let number = |v: &Value| if let Value::Int(n) = v { *n } else { -1 };
                assert!(
                    sorted.windows(2).all(|pair| number(&pair[0]) <= number(&pair[1])),
                    "round {round}"
                );
            }
            let reader = store.begin().unwrap();
            if keyed {
                for id in (0..7_000).step_by(97) {
                    let n = if id < 2_000 { (id * 37) % 101 - 1 } else { (id * 41) % 103 };
                    let found = reader
                        .get(&table, &[Value::Int(id), Value::Text("a".into())], &[0, 1, 2])
                        .unwrap();
                    assert_eq!(found, Some(row(id, "a", n)));
                }
                assert_eq!(
                    reader
                        .get(&table, &[Value::Int(9_999), Value::Text("a".into())], &[0])
                        .unwrap(),
                    None
                );
            }
            assert_eq!(
                scan(&reader.view(&table)).unwrap().len(),
                if keyed { 7_000 } else { 7_500 }
            );
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
            store.merge_all(&table).unwrap();
        }
    }
}

/// Sort order encodings are not stored, so they may exceed the length limit of keys.
#[test]
fn rows_are_sorted_by_texts_that_are_longer_than_keys() {
    for keyed in [true, false] {
        let files = Arc::new(MemoryStore::new());
        let store = Store::open(host(&files), options()).unwrap();
        let mut shape = schema("s", keyed);
        if let Some(key) = &mut shape.primary_key {
            key.columns = vec![0];
        }
        shape.sort_key = Some(KeyColumns { name: "SORT".into(), columns: vec![1] });
        shape.primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] });
        let table = store.create_table(shape).unwrap();
        let long = |c: char| c.to_string().repeat(limits::MAX_KEY_BYTES + 1);
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&[row(1, &long('b'), 1), row(2, &long('a'), 2)])).unwrap();
        t.commit().unwrap();
        store.flush(&table).unwrap();
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        load.append(&batch(&[row(3, &long('c'), 3), row(4, "b", 4)])).unwrap();
        load.finish().unwrap();
        store.merge_all(&table).unwrap();
        let reader = store.begin().unwrap();
        let ids: Vec<Value> = scan(&reader.view(&table))
            .unwrap()
            .into_iter()
            .map(|(row, _)| row[0].clone())
            .collect();
        assert_eq!(ids, [2, 4, 1, 3].map(Value::Int));
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

/// Many deletes arrive in segments while they are being merged.
#[test]
fn a_merge_is_stepped_and_deletes_overtake_it() {
    let rows: Vec<_> = (0..2_000).map(|id| row(id, "a", id)).collect();
    for end in ["commit", "close", "drop", "truncate"] {
        let (files, store, table) = open_with(&rows);
        store.flush(&table).unwrap();
        for _ in 0..3 {
            let mut load = store.bulk_load(&table, OnDuplicate::Replace);
            load.append(&batch(&rows)).unwrap();
            load.finish().unwrap();
        }
        let mut steps = 0;
        assert!(store.maintain().unwrap());
        while store.needs_maintenance() {
            store.maintain().unwrap();
            steps += 1;
            if steps == 1 && end != "commit" {
                break;
            }
            if steps < 4 {
                let mut t = store.begin().unwrap();
                for id in (steps * 400)..(steps * 400 + 300) {
                    let at = locate(&t, &table, id);
                    t.delete(&table, &[at]).unwrap();
                }
                t.commit().unwrap();
            }
        }
        let on_disk = || -> Vec<String> {
            let names = nacre_host::LocalStore::list(&*files).unwrap();
            names.into_iter().filter(|n| n.starts_with("seg-")).collect()
        };
        match end {
            "close" => store.close().unwrap(),
            "drop" => store.drop_table(&table).unwrap(),
            "truncate" => store.truncate(std::slice::from_ref(&table)).unwrap(),
            _ => {
                assert!(steps > 3, "the merge took {steps} steps");
                let reader = store.begin().unwrap();
                assert_eq!(scan(&reader.view(&table)).unwrap().len(), 2_000 - 900);
                assert_eq!(store.check().unwrap(), Vec::<String>::new());
                continue;
            }
        }
        while end != "close" && store.maintain().unwrap() {}
        let known: Vec<String> =
            table.segments().iter().map(|s| s.segment.name().to_string()).collect();
        match end {
            "close" => assert!(
                on_disk().iter().all(|name| known.contains(name)),
                "{:?} of {known:?}",
                on_disk()
            ),
            _ => assert_eq!(on_disk(), Vec::<String>::new(), "{end}"),
        }
        drop((table, store));
        let store = Store::open(host(&files), options()).unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn moves_that_wait_together_are_committed_together() {
    let rows: Vec<_> = (0..100).map(|id| row(id, "a", id)).collect();
    let (files, store, table) = open_with(&rows);
    store.flush(&table).unwrap();
    let change = |id: i64| {
        let mut t = store.begin().unwrap();
        let at = locate(&t, &table, id);
        t.update(&table, &[at], &batch(&[row(id, "a", 1_000 + id)])).unwrap();
        t
    };
    #[allow(clippy::disallowed_methods)]
    std::thread::scope(|scope| {
        let held = lock(&store);
        let last = held.last();
        let change = &change;
        let movers: Vec<_> = (0..4).map(|id| scope.spawn(move || change(id * 20))).collect();
        while store.transactions().moves().waiting() < 4 {
            std::thread::yield_now();
        }
        drop(held);
        let transactions: Vec<_> = movers.into_iter().map(|m| m.join().unwrap()).collect();
        assert_eq!(last_commit(&store), last + 1, "one record for all four");
        transactions.into_iter().for_each(|t| t.commit().unwrap());
    });
    let expected: Vec<_> = (0..100)
        .map(|id| row(id, "a", if id % 20 == 0 && id < 80 { 1_000 + id } else { id }))
        .collect();
    for _ in 0..2 {
        let reader = store.begin().unwrap();
        assert_eq!(crate::tests::sorted(scan(&reader.view(&table)).unwrap()), expected);
    }
    drop((table, store));
    let store = Store::open(host(&files), options()).unwrap();
    let reader = store.begin().unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(crate::tests::sorted(scan(&reader.view(&table)).unwrap()), expected);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Four segments of one size.
fn four() -> (Arc<Store>, Arc<Table>) {
    let (_, store, table) = open_with(&[]);
    for round in 0..4 {
        let rows: Vec<_> = (0..100).map(|id| row(id * 4 + round, "a", id)).collect();
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        load.append(&batch(&rows)).unwrap();
        load.finish().unwrap();
    }
    (store, table)
}

pub(crate) fn current(table: &Table) -> usize {
    table.segments().iter().filter(|state| state.is_current()).count()
}

#[test]
fn a_merge_that_had_to_make_way_begins_again() {
    let (store, table) = four();
    let other = store.create_table(schema("u", true)).unwrap();
    assert!(store.maintain().unwrap());
    assert_eq!(current(&table), 4);
    build_indexes(&store, &other).unwrap();
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 1);
}

#[test]
fn nothing_is_to_do_after_the_table_of_an_abandoned_merge_is_emptied() {
    let (store, table) = four();
    let other = store.create_table(schema("u", true)).unwrap();
    assert!(store.maintain().unwrap());
    store.merge_all(&other).unwrap();
    store.truncate(std::slice::from_ref(&table)).unwrap();
    while store.maintain().unwrap() {}
    assert!(!store.needs_maintenance());
}

#[test]
fn a_segment_out_of_order_is_not_merged() {
    let (_, store, table) = open_with(&[]);
    let mut builder = table.segment_builder();
    builder.push(&batch(&[row(1, "a", 1), row(3, "a", 3), row(2, "a", 2)]));
    let segment = write_segment(&store, &table, builder).unwrap();
    let partition = table.partition(0);
    let state = Arc::new(SegmentState::new(segment, 0, RoaringBitmap::from_iter([0])));
    partition.update_segments(|list| list.push(state));
    let error = merge(&store, &table, partition, &table.segments()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("row 2 is out of order"), "{error}");
}

#[test]
fn segments_that_are_not_visible_yet_are_merged_when_they_are() {
    let (store, table) = four();
    let partition = &table.partitions()[0];
    let not_yet = store.visible() + 1;
    partition.update_segments(|list| {
        let new = |old: &Arc<SegmentState>| {
            SegmentState::new(old.segment.clone(), not_yet, RoaringBitmap::new())
        };
        let old: Vec<_> = list.iter().cloned().collect();
        list.remove(&old.iter().map(|state| state.segment.id()).collect());
        old.iter().for_each(|old| list.push(Arc::new(new(old))));
    });
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 4);
    assert!(partition.may_need(Work::Merge));
    lock(&store).set_last(not_yet);
    store.context().snapshots().make_visible(not_yet);
    while store.maintain().unwrap() {}
    assert_eq!(current(&table), 1);
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 400);
}

#[test]
fn segments_are_bounded_in_bytes() {
    const BYTES: usize = 20_000;
    let store = Store::open(
        host(&Arc::new(MemoryStore::new())),
        StoreOptions { segment_bytes: BYTES, ..options() },
    )
    .unwrap();
    for (name, sorted) in [("t", false), ("sorted", true)] {
        let mut shape = schema(name, true);
        shape.sort_key = sorted.then(|| KeyColumns { name: "SORT".into(), columns: vec![2] });
        shape.primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] });
        let table = store.create_table(shape).unwrap();
        let long = "x".repeat(150);
        // Alternating order, so that rows are picked one by one, and one row longer than a segment.
        let rows: Vec<_> = (0..1_200)
            .map(|n| {
                row(
                    n * 7 % 1_200,
                    if n == 77 { "y".repeat(3 * BYTES) } else { long.clone() }.as_str(),
                    n,
                )
            })
            .collect();
        let (loaded, inserted) = rows.split_at(600);
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        loaded.chunks(250).for_each(|rows| load.append(&batch(rows)).unwrap());
        assert_eq!(load.finish().unwrap(), 600);
        for rows in inserted.chunks(200) {
            let mut t = store.begin().unwrap();
            t.insert(&table, &batch(rows)).unwrap();
            t.commit().unwrap();
            store.flush(&table).unwrap();
        }
        let check = |most: usize| {
            let segments = table.partition(0).segments();
            let current: Vec<_> = segments.iter().filter(|s| s.is_current()).cloned().collect();
            for state in &current {
                let (rows, bytes) = (state.segment.rows(), state.segment.raw_bytes() as usize);
                assert!(
                    rows == 1 || !(2 * BYTES..=3 * BYTES).contains(&bytes),
                    "{rows} rows of {bytes} bytes"
                );
            }
            assert!((8..=most).contains(&current.len()), "{}", current.len());
            assert_eq!(current.iter().map(|s| s.segment.rows()).sum::<usize>(), rows.len());
            current
        };
        let states = check(40);
        merge(&store, &table, table.partition(0), &states).unwrap();
        check(20);
        let t = store.begin().unwrap();
        for row in &rows {
            assert_eq!(t.get(&table, &row[..1], &[0, 1, 2]).unwrap().as_ref(), Some(row));
        }
    }
}

#[test]
fn a_rowstore_that_could_not_be_emptied_is_flushed_when_it_can() {
    let options = StoreOptions { flush_bytes: 50_000, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..4_000).map(|id| row(id, "a", id)).collect();
    let insert = |from: usize, to: usize| {
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&rows[from..to])).unwrap();
        t
    };
    let keep_house = || while store.needs_maintenance() && store.maintain().unwrap() {};
    // A reader's snapshot keeps flushed rows in memory; then a writer writes many rows and rolls
    // back.
    for pinned in [true, false] {
        let old = store.begin().unwrap();
        let from = if pinned { 0 } else { 2_000 };
        let large = insert(from, from + 1_500);
        if pinned {
            large.commit().unwrap();
            keep_house();
        } else {
            keep_house();
            drop(large);
        }
        assert!(table.rowstore_size().1 > 50_000 || !pinned);
        drop(old);
        insert(from + 1_500, from + 1_501).commit().unwrap();
        keep_house();
        if !pinned {
            // Far fewer rows than were rolled back.
            insert(from + 1_501, 4_000).commit().unwrap();
            keep_house();
        }
        assert!(table.rowstore_size().1 < 50_000, "{:?}, pinned: {pinned}", table.rowstore_size());
    }
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 1_501 + 500);
}

/// More keys than fit into one log record are flushed by several commits.
#[test]
fn a_large_rowstore_is_flushed_commit_by_commit() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let tag = "k".repeat(900);
    for from in (0..2_800).step_by(400) {
        let mut t = store.begin().unwrap();
        t.insert(
            &table,
            &batch(&(from..from + 400).map(|id| row(id, &tag, id)).collect::<Vec<_>>()),
        )
        .unwrap();
        t.commit().unwrap();
    }
    // A transaction holds the lock on a row of the first commit.
    let mut holder = store.begin().unwrap();
    let (at, _) =
        holder.locate(&table, &[Value::Int(7), Value::Text(tag.clone())]).unwrap().unwrap();
    holder.update(&table, &[at], &batch(&[row(7, &tag, 70_000)])).unwrap();
    store.flush(&table).unwrap();
    assert!(table.segments().len() > 1, "{} segments", table.segments().len());
    let live = |state: &Arc<SegmentState>| state.segment.rows() as u64 - state.deleted_rows();
    assert_eq!(
        table.segments().iter().map(live).sum::<u64>(),
        2_799,
        "all but the row that is held"
    );
    holder.commit().unwrap();
    drop((store, table));
    let store = Store::open(host(&files), options()).unwrap();
    let seen = scan(&store.begin().unwrap().view(&store.table("t").unwrap())).unwrap();
    assert_eq!(seen.len(), 2_800);
    assert!(seen.iter().any(|(values, _)| values[2] == Value::Int(70_000)));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn many_tables_together_have_a_bound_in_memory() {
    let options = StoreOptions { flush_bytes: 100_000, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let tables: Vec<_> = (0..10)
        .map(|n| store.create_table(schema(&format!("t{n}"), n % 2 == 0)).unwrap())
        .collect();
    let bytes = || tables.iter().map(|table| table.rowstore_size().1).sum::<usize>();
    let mut most = 0;
    for from in (0..1_000).step_by(50) {
        for table in &tables {
            let mut t = store.begin().unwrap();
            t.insert(
                table,
                &batch(&(from..from + 50).map(|id| row(id, "a", id)).collect::<Vec<_>>()),
            )
            .unwrap();
            t.commit().unwrap();
            most = most.max(bytes());
            while store.needs_maintenance() && store.maintain().unwrap() {}
            assert!(bytes() <= 400_000, "{}", bytes());
        }
    }
    assert!(most > 400_000, "{most} bytes at most: not one was flushed for the sake of all");
    assert!(
        tables
            .iter()
            .all(|table| scan(&store.begin().unwrap().view(table)).unwrap().len() == 1_000)
    );
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn many_rows_are_moved_in_several_records() {
    let options = StoreOptions { segment_bytes: 50_000, ..options() };
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options.clone()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..2_000).map(|id| row(id, "a", id)).collect();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    load.append(&batch(&rows)).unwrap();
    load.finish().unwrap();
    let last = || last_commit(&store);
    let before = last();
    let mut t = store.begin().unwrap();
    let found: Vec<_> =
        scan(&t.view(&table)).unwrap().into_iter().map(|(_, locator)| locator).collect();
    assert_eq!(t.delete(&table, &found[..1_500]).unwrap(), 1_500);
    let moves = last() - before;
    assert!(moves > 10, "{moves} moves");
    t.commit().unwrap();
    drop((table, store));
    let store = Store::open(host(&files), options).unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 500);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
