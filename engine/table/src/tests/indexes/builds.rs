//! Building index parts for segments older than the index.

use super::*;
use crate::tests::access::{build_indexes, write_snapshot};
use nacre_host::LocalStore;
use nacre_types::hash::Set;

fn full() -> (Arc<MemoryStore>, Arc<Store>) {
    let mut shape = schema(true);
    shape.indexes.clear();
    let (files, store, table) = open(shape);
    for round in 0..2 {
        let items: Vec<Item> =
            (0..5_000).map(|i| 2 * i + round).map(|i| item(i, i, "a", i % 10)).collect();
        insert(&store, &items).unwrap();
        store.flush(&table).unwrap();
    }
    (files, store)
}

fn part_files(files: &Arc<MemoryStore>) -> Vec<String> {
    files.list().unwrap().into_iter().filter(|name| name.starts_with("idx-")).collect()
}

fn look(store: &Arc<Store>) {
    let (t, table) = (store.begin().unwrap(), store.table("t").unwrap());
    assert_eq!(
        ids(&find(&t, &table, "by_n", &by_n(3))),
        (0..10_000).filter(|i| i % 10 == 3).collect::<Vec<_>>()
    );
    assert_eq!(insert(store, &[item(99_999, 17, "x", 1)]).unwrap_err().key(), Some("u"));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

fn progress(store: &Arc<Store>) -> Vec<(usize, usize)> {
    let table = store.table("t").unwrap();
    table.schema().indexes.iter().map(|index| table.index_progress(index.id)).collect()
}

#[test]
fn parts_are_built_in_steps_and_after_a_crash_at_any_of_them() {
    let mut steps = 0;
    loop {
        let (files, store) = full();
        let table =
            store.create_index(&store.table("t").unwrap(), index("by_n", &[4], false)).unwrap();
        store.create_index(&table, index("u", &[2], true)).unwrap();
        assert_eq!(progress(&store), [(0, 4), (0, 4)]);
        let mut done = false;
        for _ in 0..steps {
            done = !store.maintain().unwrap();
        }
        // Dropped without closing, so that uncommitted work is lost.
        drop(store);
        let store = Store::open(host(&files), options()).unwrap();
        let named: usize = progress(&store).iter().map(|(built, _)| built).sum();
        assert_eq!(part_files(&files).len(), named);
        look(&store);
        if done {
            assert_eq!(progress(&store), [(4, 4), (4, 4)]);
            break;
        }
        while store.maintain().unwrap() {}
        assert!(!store.needs_maintenance());
        assert_eq!(progress(&store), [(4, 4), (4, 4)]);
        look(&store);
        steps += 3;
    }
    assert!(steps > 9);
}

#[test]
fn files_of_parts_go_with_their_index_or_their_segment() {
    let (files, store) = full();
    let table = store.create_index(&store.table("t").unwrap(), index("by_n", &[4], false)).unwrap();
    let table = store.create_index(&table, index("u", &[2], true)).unwrap();
    build_indexes(&store, &table).unwrap();
    assert_eq!(part_files(&files).len(), 8);
    write_snapshot(&store).unwrap();
    drop((table, store));
    let store = Store::open(host(&files), options()).unwrap();
    assert_eq!(progress(&store), [(4, 4), (4, 4)]);
    look(&store);
    let old = store.begin().unwrap();
    store.drop_index(&store.table("t").unwrap(), "by_n").unwrap();
    while store.maintain().unwrap() {}
    assert_eq!(part_files(&files).len(), 8);
    // The old snapshot can use the index.
    let table = old.table("t").unwrap();
    assert_eq!(ids(&find(&old, &table, "by_n", &by_n(3))).len(), 1_000);
    drop((old, table));
    while store.maintain().unwrap() {}
    assert_eq!(part_files(&files).len(), 4);
    // New segments contain their parts.
    store.merge_all(&store.table("t").unwrap()).unwrap();
    while store.maintain().unwrap() {}
    assert!(part_files(&files).is_empty());
    assert_eq!(progress(&store).first().map(|(built, all)| built == all), Some(true));
    drop(store);
    let store = Store::open(host(&files), options()).unwrap();
    assert_eq!(insert(&store, &[item(99_999, 17, "x", 1)]).unwrap_err().key(), Some("u"));
}

#[test]
fn check_finds_a_part_that_is_not_of_its_segment() {
    let (_, store) = full();
    let table = store.create_index(&store.table("t").unwrap(), index("by_n", &[4], false)).unwrap();
    build_indexes(&store, &table).unwrap();
    // Swap the parts of two segments with the same number of rows. In their files they would be
    // refused when the database is opened.
    let segments = table.segments();
    let own = table.schema().indexes.last().unwrap().id;
    let file_of = |at: usize| segments[at].part(own).unwrap().file().clone();
    let (first, third) = (file_of(0), file_of(2));
    assert_eq!(first.rows(), third.rows());
    for (at, gone, new) in [(0, &first, &third), (2, &third, &first)] {
        segments[at].forget_parts(&Set::from_iter([gone.id()]));
        segments[at].add_parts(new);
    }
    let findings = store.check().unwrap();
    assert!(
        findings.iter().any(|f| f.contains("index by_n") && f.contains("another key")),
        "{findings:?}"
    );
}

#[test]
fn a_filter_lets_few_keys_through_that_are_not_there() {
    let (_, store) = full();
    let table = store.create_index(&store.table("t").unwrap(), index("u", &[2], true)).unwrap();
    build_indexes(&store, &table).unwrap();
    let index = &table.indexes()[0];
    let mut through = 0;
    for state in table.segments() {
        let part = state.part(index.id()).unwrap();
        for u in 0..20_000 {
            let values = [Value::Int(u)];
            let hash = nacre_types::hash::hash_bytes(&index.encode(&values).unwrap());
            let is_there = part.lower(&values).unwrap() < part.upper(&values, 0).unwrap();
            let may = part.file().may_have(part.filter().unwrap(), hash).unwrap();
            assert!(may || !is_there);
            through += u32::from(may && !is_there);
        }
    }
    // About one in a thousand of 70,000.
    assert!((10..300).contains(&through), "{through}");
}
