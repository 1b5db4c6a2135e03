//! A store that is only read follows the store that writes beside it.

use super::*;
use crate::tests::indexes::index;
use nacre_host::LocalStore;
use nacre_types::{Reason, ViewSchema};

fn follower(files: &Arc<MemoryStore>) -> Arc<Store> {
    Store::open(host(files), StoreOptions { read_only: true, ..options() }).unwrap()
}

/// Whether the log no longer has a position, so that a follower begins again with a snapshot.
fn is_gone(files: &MemoryStore, position: u64) -> bool {
    let names = files.list().unwrap();
    names.iter().filter_map(|name| nacre_log::chunk_of(name)).all(|start| start > position)
}

/// Changes the table in one of all ways, and the model with it.
fn change(store: &Arc<Store>, model: &mut Model, random: &mut Random, step: usize) {
    let table = store.table("t").unwrap();
    match random.below(20) {
        0 => store.flush(&table).unwrap(),
        1 => write_snapshot(store).unwrap(),
        2 => store.merge_all(&table).unwrap(),
        3 | 4 => {
            for _ in 0..random.below(30) {
                store.maintain().unwrap();
            }
        }
        5 => alter(store, &table, step),
        6 if random.below(3) == 0 => {
            store.truncate(std::slice::from_ref(&table)).unwrap();
            model.clear();
        }
        7 => match table.schema().index_by_name("i") {
            Some(_) => drop(store.drop_index(&table, "i").unwrap()),
            None => drop(store.create_index(&table, index("i", &[3], false)).unwrap()),
        },
        8 => bulk(store, &table, model, random),
        _ => transaction(store, &table, model, random),
    }
}

/// A writer works, crashes and starts again. A follower sees what the writer had committed when it
/// was last refreshed, and its readers what it saw when they began.
#[test]
fn a_follower_sees_what_its_writer_has_committed() {
    let (mut refreshed, mut began_again) = (0, 0);
    for seed in 0..seeds() {
        let files = Arc::new(MemoryStore::new());
        let mut store = Store::open(host(&files), options()).unwrap();
        let mut shape = schema("t", true);
        if seed % 3 == 1 {
            shape.sort_key = Some(KeyColumns { name: "SORT".into(), columns: vec![2, 1] });
        }
        let shard_key = [None, Some(vec![0])][(seed % 2) as usize].clone();
        shape.shard_key = shard_key.map(|columns| ShardKey { columns, partitions: 0 });
        let table = store.create_table(shape).unwrap();
        let mut model = Model::new();
        let mut random = Random::new(seed);
        let follower = follower(&files);
        let mut seen = model.clone();
        let mut readers: Vec<(Transaction, Model)> = Vec::new();
        for step in 0..80 {
            change(&store, &mut model, &mut random, step);
            match random.below(6) {
                0 | 1 => {
                    refreshed += 1;
                    began_again += usize::from(is_gone(&files, follower.log_position()));
                    follower.refresh().unwrap();
                    seen = model.clone();
                }
                2 => readers.push((follower.begin().unwrap(), seen.clone())),
                3 => readers.truncate(1),
                4 if random.below(4) == 0 => {
                    drop(store);
                    store = Store::open(host(&files), options()).unwrap();
                }
                _ => drop(follower.maintain().unwrap()),
            }
            agree(&follower.begin().unwrap(), &table, &seen, seed, step);
            for (reader, then) in &readers {
                agree(reader, &table, then, seed, step);
            }
        }
        readers.clear();
        follower.refresh().unwrap();
        agree(&follower.begin().unwrap(), &table, &model, seed, 80);
        assert_eq!(follower.check().unwrap(), Vec::<String>::new(), "seed {seed}");
        let (rows, _) = follower.table("t").unwrap().rowstore_size();
        let (written, _) = store.table("t").unwrap().rowstore_size();
        assert!(rows <= written + 100, "seed {seed}: {rows} rows in memory, and {written}");
    }
    assert!(began_again * 2 < refreshed, "{began_again} of {refreshed} began again");
    assert!(began_again > 0 || seeds() < 25, "none of {refreshed} began again");
}

/// Tables and views that are created, renamed, dropped and exchanged between two refreshes.
#[test]
fn a_follower_sees_changes_of_the_catalog() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let a = store.create_table(schema("a", true)).unwrap();
    let b = store.create_table(schema("b", false)).unwrap();
    let view = |name: &str, statement: &str| ViewSchema {
        name: name.into(),
        columns: vec!["id".into()],
        statement: statement.into(),
    };
    store.create_view(view("v", "select 1"), false).unwrap();
    let follower = follower(&files);
    let before = follower.begin().unwrap();
    let rename = |table: &Arc<Table>, name: &str| {
        let newest = store.table_by_id(table.schema().id).unwrap();
        let changed = TableSchema { name: name.into(), ..(**newest.schema()).clone() };
        store.alter_table(&newest, changed).unwrap();
    };
    rename(&a, "c");
    rename(&b, "a");
    rename(&a, "b");
    store.drop_views(&["v".into()]).unwrap();
    let temporary = store.create_table(schema("v", true)).unwrap();
    store.drop_table(&temporary).unwrap();
    store.create_view(view("V", "select 2"), false).unwrap();
    assert_eq!(follower.table_names_at(follower.visible()), ["a", "b"]);
    assert!(follower.table("a").unwrap().key_columns().is_some(), "nothing is refreshed yet");
    follower.refresh().unwrap();
    assert!(follower.table("a").unwrap().key_columns().is_none());
    assert_eq!(follower.table("b").unwrap().schema().id, a.schema().id);
    assert_eq!(follower.view("v").unwrap().statement, "select 2");
    assert!(before.table("a").unwrap().key_columns().is_some(), "a snapshot keeps its names");
    store.drop_table(&store.table("b").unwrap()).unwrap();
    follower.refresh().unwrap();
    assert!(follower.table("b").is_none());
    assert!(before.table("b").is_some(), "a snapshot keeps its tables");
}

#[test]
fn a_store_that_is_only_read_changes_nothing() {
    let (files, store, table) = open_with(&[row(1, "a", 1), row(2, "a", 2)]);
    store.flush(&table).unwrap();
    let before = files.list().unwrap();
    let follower = follower(&files);
    assert!(follower.is_read_only());
    let refused = |result: Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.reason(), Some(Reason::ReadOnly), "{error}");
    };
    let own = follower.table("t").unwrap();
    refused(follower.create_table(schema("u", true)).map(drop));
    refused(follower.drop_table(&own));
    refused(follower.truncate(std::slice::from_ref(&own)));
    refused(follower.create_index(&own, index("i", &[3], false)).map(drop));
    refused(follower.flush(&own));
    refused(follower.merge_all(&own));
    refused(follower.bulk_load(&own, OnDuplicate::Error).append(&batch(&[row(7, "a", 1)])));
    let mut t = follower.begin().unwrap();
    refused(t.insert(&own, &batch(&[row(9, "a", 9)])).map(drop).and_then(|()| t.commit()));
    let mut t = follower.begin().unwrap();
    let first = locate(&t, &own, 1);
    refused(t.delete(&own, &[first]).map(drop).and_then(|()| t.commit()));
    assert!(!follower.needs_maintenance() && !follower.maintain().unwrap());
    assert!(follower.temporary_file().unwrap().is_none());
    follower.refresh().unwrap();
    assert_eq!(sorted(scan(&follower.begin().unwrap().view(&own)).unwrap()).len(), 2);
    follower.close().unwrap();
    assert_eq!(follower.refresh().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(files.list().unwrap(), before);
    let empty = Arc::new(MemoryStore::new());
    let options = StoreOptions { read_only: true, ..options() };
    let error = Store::open(host(&empty), options).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(empty.list().unwrap().is_empty());
}

/// The writer drops files before the follower opens them.
#[test]
fn files_that_later_records_drop_need_not_exist() {
    let (files, store, _) = open_with(&[row(0, "a", 1)]);
    let follower = follower(&files);
    let expected: Vec<_> = (0..60).map(|id| row(id, "a", 1)).collect();
    for rows in expected[1..].chunks(10) {
        let table = store.table("t").unwrap();
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(rows)).unwrap();
        t.commit().unwrap();
        store.flush(&table).unwrap();
    }
    store.merge_all(&store.table("t").unwrap()).unwrap();
    while store.maintain().unwrap() {}
    follower.refresh().unwrap();
    let table = follower.table("t").unwrap();
    assert_eq!(sorted(scan(&follower.begin().unwrap().view(&table)).unwrap()), expected);
    // A file that no record drops is missing: what was visible stays so.
    let mut t = store.begin().unwrap();
    t.insert(&store.table("t").unwrap(), &batch(&[row(99, "a", 1)])).unwrap();
    t.commit().unwrap();
    store.flush(&store.table("t").unwrap()).unwrap();
    let mut names = files.list().unwrap();
    names.retain(|name| name.starts_with("seg-"));
    names.sort();
    files.remove(names.last().unwrap()).unwrap();
    for _ in 0..2 {
        assert_eq!(follower.refresh().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(sorted(scan(&follower.begin().unwrap().view(&table)).unwrap()), expected);
    }
}
