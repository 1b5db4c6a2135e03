//! Hash tables: built where keys overlap, bounded in number, correct after a crash at any step, and
//! checked.

use super::*;
use crate::index::hash::table::{HASH, HashTable, PLACE, file_builder, pack, stored};
use crate::record::KeySet;
use crate::table::segment_list::SegmentList;
use crate::tests::access::{collect_garbage, merge};
use nacre_column::Values;
use nacre_host::{LocalFile, LocalStore};
use nacre_types::hash::hash_bytes;

/// Segments of 100 rows with scattered keys.
fn scattered(segments: i64, from: f64) -> (Arc<MemoryStore>, Arc<Store>, StoreOptions) {
    let options = StoreOptions { segment_rows: 100, merge_from: 99, hash_from: from, ..options() };
    let (files, store, _) = open_with(schema(true), options.clone());
    for round in 0..segments {
        let items: Vec<Item> = (0..100)
            .map(|i| round + i * segments)
            .map(|i| item(i, i, &format!("t{i}"), i % 10))
            .collect();
        insert(&store, &items).unwrap();
        store.flush(&store.table("t").unwrap()).unwrap();
    }
    (files, store, options)
}

fn hash_files(files: &Arc<MemoryStore>) -> usize {
    files.list().unwrap().into_iter().filter(|name| name.starts_with("hsh-")).count()
}

fn list(store: &Arc<Store>) -> Arc<SegmentList> {
    store.table("t").unwrap().partitions()[0].segments()
}

fn named(store: &Arc<Store>) -> usize {
    list(store).tables().iter().map(|table| table.files().len()).sum()
}

fn look(store: &Arc<Store>, rows: i64) {
    let (t, table) = (store.begin().unwrap(), store.table("t").unwrap());
    for id in [0, 1, rows / 2, rows - 1] {
        assert_eq!(ids(&find(&t, &table, "u", &KeyRange::equal(vec![Value::Int(id)]))), [id]);
        let row = store.get(&table, &[Value::Int(id)], &[0, 1]).unwrap();
        assert_eq!(row, Some(vec![Value::Int(id), Value::Int(id)]));
    }
    assert_eq!(store.get(&table, &[Value::Int(rows)], &[0]).unwrap(), None);
    assert_eq!(
        ids(&find(&t, &table, "by_n", &by_n(3))),
        (0..rows).filter(|i| i % 10 == 3).collect::<Vec<_>>()
    );
    assert_eq!(insert(store, &[item(99_999, 17, "x", 1)]).unwrap_err().key(), Some("u"));
    assert_eq!(insert(store, &[item(17, 99_999, "x", 1)]).unwrap_err().key(), Some("PRIMARY"));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn tables_are_made_in_steps_and_survive_a_crash_at_any_of_them() {
    let mut steps = 0;
    let mut most = 0;
    loop {
        let (files, store, options) = scattered(9, 2.0);
        assert!(store.needs_maintenance());
        let mut done = false;
        for _ in 0..steps {
            done = !store.maintain().unwrap();
        }
        // Dropped without closing, so that uncommitted work is lost.
        drop(store);
        let store = Store::open(host(&files), options).unwrap();
        assert_eq!(hash_files(&files), named(&store));
        most = most.max(named(&store));
        look(&store, 900);
        if done {
            break;
        }
        while store.maintain().unwrap() {}
        look(&store, 900);
        steps += 7;
    }
    assert!(most > 4, "{most}");
}

#[test]
fn segments_that_do_not_overlap_get_no_tables() {
    let options = StoreOptions { segment_rows: 100, hash_from: 2.0, ..options() };
    let (_, store, table) = open_with(schema(true), options);
    for round in 0..9 {
        let items: Vec<Item> =
            (0..100).map(|i| round * 100 + i).map(|i| item(i, i, "a", i)).collect();
        insert(&store, &items).unwrap();
        store.flush(&table).unwrap();
    }
    while store.maintain().unwrap() {}
    // Every index can tell segments apart by range, one of them by its second column only, so no
    // hash table is built.
    assert_eq!(named(&store), 0);
}

#[test]
fn tables_cover_all_big_segments_and_are_few() {
    let (_, store, _) = scattered(21, 2.0);
    while store.maintain().unwrap() {}
    let list = list(&store);
    for keys in [KeySet::Primary, KeySet::Index(0), KeySet::Index(2)] {
        let tables: Vec<_> = list.tables().iter().filter(|table| table.keys() == keys).collect();
        let mut covered: Vec<u64> =
            tables.iter().flat_map(|table| table.segments().to_vec()).collect();
        covered.sort_unstable();
        let mut all: Vec<u64> = list.iter().map(|state| state.segment.id()).collect();
        all.sort_unstable();
        assert_eq!(covered, all);
        assert!(tables.len() < 4, "{}", tables.len());
    }
    // 2,100 entries in files of up to 1,600.
    assert!(list.tables().iter().any(|table| table.files().len() == 2));
    // Ten distinct numbers per segment, each counted once.
    let by_n = list.tables().iter().filter(|table| table.keys() == KeySet::Index(2));
    assert_eq!(by_n.map(|table| table.len()).sum::<usize>(), 210);
    assert!(!store.needs_maintenance());
    let (t, table) = (store.begin().unwrap(), store.table("t").unwrap());
    let view = t.view(&table);
    let probe = view.probe_index(0, &KeyRange::equal(vec![Value::Int(7)])).unwrap();
    assert_eq!((view.count().segments, probe.runs.len(), probe.segments_read), (21, 1, 0));
    assert_eq!(probe.tables_probed, list.tables_of(KeySet::Index(0)).count());
    assert!(t.view(&table).probe_key(&[Value::Int(7)]).unwrap().tables_probed > 0);
    look(&store, 2_100);
}

#[test]
fn tables_are_rewritten_when_half_of_their_segments_are_gone() {
    let (files, store, options) = scattered(8, 2.0);
    while store.maintain().unwrap() {}
    let table = store.table("t").unwrap();
    let old = store.begin().unwrap();
    let before: Vec<u64> = list(&store).tables().iter().map(|table| table.id()).collect();
    // Three of eight segments are gone: their entries are skipped.
    let states: Vec<_> = list(&store).iter().cloned().collect();
    merge(&store, &table, &table.partitions()[0], &states[..3]).unwrap();
    let after: Vec<u64> = list(&store).tables().iter().map(|table| table.id()).collect();
    assert_eq!(before, after);
    look(&store, 800);
    while store.maintain().unwrap() {}
    look(&store, 800);
    let current: Vec<u64> =
        list(&store).iter().filter(|s| s.is_current()).map(|s| s.segment.id()).collect();
    let states: Vec<_> = list(&store).iter().filter(|s| s.is_current()).cloned().collect();
    merge(&store, &table, &table.partitions()[0], &states[..states.len() - 1]).unwrap();
    while store.maintain().unwrap() {}
    assert_ne!(current.len(), 0);
    for table in list(&store).tables() {
        let dead = table
            .segments()
            .iter()
            .filter(|id| !list(&store).iter().any(|s| s.is_current() && s.segment.id() == **id));
        assert!(dead.count() * 2 < table.segments().len());
    }
    look(&store, 800);
    // An older snapshot still reads the dropped segments.
    let at = find(&old, &table, "u", &KeyRange::equal(vec![Value::Int(5)]));
    assert_eq!(ids(&at), [5]);
    drop((at, old));
    while store.maintain().unwrap() {}
    collect_garbage(&store).unwrap();
    assert_eq!(hash_files(&files), named(&store));
    drop((table, states));
    drop(store);
    let store = Store::open(host(&files), options).unwrap();
    look(&store, 800);
    // Files of a dropped table's hash tables are removed.
    store.truncate(&[store.table("t").unwrap()]).unwrap();
    while store.maintain().unwrap() {}
    collect_garbage(&store).unwrap();
    assert_eq!(hash_files(&files), 0);
}

#[test]
fn tables_of_a_dropped_index_go() {
    let (files, store, options) = scattered(8, 2.0);
    while store.maintain().unwrap() {}
    store.drop_index(&store.table("t").unwrap(), "u").unwrap();
    assert!(list(&store).tables().iter().all(|table| table.keys() != KeySet::Index(0)));
    drop(store);
    let store = Store::open(host(&files), options).unwrap();
    assert!(list(&store).tables().iter().all(|table| table.keys() != KeySet::Index(0)));
    assert_eq!(hash_files(&files), named(&store));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// A hash table of these entries, one file per slice.
fn made(keys: KeySet, files: &[&[(i64, i64)]], segments: &[u64]) -> Arc<HashTable> {
    let cache = BlockCache::new(1 << 20);
    let local = MemoryStore::new();
    let file = |(id, entries): (usize, &&[(i64, i64)])| {
        let mut builder = file_builder();
        let column =
            |values: Vec<i64>| Arc::new(Vector::new(DataType::Int64, Values::I64(values), None));
        let columns = vec![
            column(entries.iter().map(|(hash, _)| *hash).collect()),
            column(entries.iter().map(|(_, place)| *place).collect()),
        ];
        assert_eq!((HASH, PLACE), (0, 1));
        builder.push(&Batch::new(columns, entries.len()));
        let file: Arc<dyn LocalFile> = local.create(&format!("hsh-{id}")).unwrap();
        builder.write(&*file).unwrap();
        Arc::new(Segment::open(file, "hsh", 1_000 + id as u64, cache.clone()).unwrap())
    };
    Arc::new(
        HashTable::new(keys, files.iter().enumerate().map(file).collect(), segments.to_vec())
            .unwrap(),
    )
}

#[test]
fn entries_of_one_hash_are_found_across_segments_and_files() {
    let hash = |n: i64| ((n as u64) << 24) | 5;
    let entry = |n, segment, position| (n, pack(segment, position));
    let files: [&[_]; 4] = [
        &[entry(1, 0, 7), entry(4, 0, 1), entry(4, 1, 2)],
        &[entry(4, 2, 3), entry(4, 2, 4)],
        &[entry(4, 3, (1 << 20) - 1), entry(9, 1, 1)],
        &[],
    ];
    let table = made(KeySet::Primary, &files, &[10, 11, 12, 13]);
    let found = |n| {
        let mut found = Vec::new();
        table.find(hash(n), |segment, position| found.push((segment, position))).unwrap();
        found
    };
    assert_eq!(found(4), [(0, 1), (1, 2), (2, 3), (2, 4), (3, (1 << 20) - 1)]);
    assert_eq!(found(1), [(0, 7)]);
    assert_eq!(found(9), [(1, 1)]);
    for nothing in [0, 2, 5, 10] {
        assert_eq!(found(nothing), []);
    }
    // An entry for a segment that the table does not cover is corruption.
    let bad = made(KeySet::Primary, &[&[entry(1, 2, 0)]], &[10, 11]);
    assert_eq!(bad.find(hash(1), |_, _| {}).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn check_finds_entries_that_are_wrong_and_keys_of_equal_hash_are_told_apart() {
    let (_, store, _) = scattered(5, f64::MAX);
    let table = store.table("t").unwrap();
    let ids: Vec<u64> = list(&store).iter().map(|state| state.segment.id()).collect();
    let position_of = |id: i64| {
        let state = list(&store)[0].clone();
        {
            let key = [Value::Int(id)];
            table.layout().find_row(&state.segment, &key, nacre_segment::Segment::search)
        }
        .unwrap()
    };
    let mut entries: Vec<(i64, i64)> = (0..100)
        .map(|i| {
            let key = table.layout().encode_key(&[Value::Int(i * 5)]).unwrap();
            (stored(hash_bytes(&key)), pack(0, position_of(i * 5).unwrap()))
        })
        .collect();
    entries.sort_unstable();
    let partition = &table.partitions()[0];
    let with = |entries: &[(i64, i64)]| {
        let hashes = made(KeySet::Primary, &[entries], &ids[..1]);
        partition.update_tables(|tables| *tables = vec![hashes]);
        store.check().unwrap()
    };
    assert_eq!(with(&entries), Vec::<String>::new());
    let get = |id: i64| store.get(&table, &[Value::Int(id)], &[0]).unwrap();
    assert_eq!(get(10), Some(vec![Value::Int(10)]));
    // An entry missing, one with a wrong position, and an extra one with the hash of another key.
    let complaint = "its entries do not match the keys of segment";
    assert!(with(&entries[1..])[0].contains(complaint));
    let mut wrong = entries.clone();
    wrong[3].1 += 1;
    assert!(with(&wrong)[0].contains(complaint));
    let mut wrong = entries.clone();
    wrong.swap(3, 40);
    assert!(with(&wrong)[0].contains("hashes are out of order"));
    let ten = stored(hash_bytes(&table.layout().encode_key(&[Value::Int(10)]).unwrap()));
    let mut more = entries.clone();
    let other = more.iter().find(|(hash, _)| *hash != ten).unwrap().1;
    more.push((ten, other));
    more.sort_unstable();
    assert!(with(&more)[0].contains(complaint));
    assert_eq!(get(10), Some(vec![Value::Int(10)]));
    let absent = stored(hash_bytes(&table.layout().encode_key(&[Value::Int(-1)]).unwrap()));
    let mut more = entries.clone();
    more.push((absent, other));
    more.sort_unstable();
    let _ = with(&more);
    assert_eq!(get(-1), None);
}
