//! Schema changes racing with background work and commits.

use crate::index::definition::Index;
use crate::record::{self, FlushedRange, NewSegment};
use crate::segments::state::SegmentState;
use crate::tests::access::{collect_garbage, lock, merge, write_segment};
use crate::tests::{
    alter, batch, batch_for, extra_of, host, open_with, options, row, scan, schema,
};
use crate::{OnDuplicate, Store, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{ErrorKind, IndexKind, IndexSchema, Result, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;
use std::time::Duration;

/// A merge that starts with an older version of the table than its segments must keep their
/// columns.
#[test]
fn a_merge_does_not_lose_a_column_that_came_before_its_segments() {
    let (_, store, old) = open_with(&[]);
    alter(&store, &old, 7);
    let newest = store.table("t").unwrap();
    let rows: Vec<_> = (0..200).map(|id| row(id, "a", id)).collect();
    for part in rows.chunks(100) {
        let mut load = store.bulk_load(&newest, OnDuplicate::Error);
        load.append(&batch_for(&newest, part)).unwrap();
        load.finish().unwrap();
    }
    merge(&store, &old, &old.partitions()[0], &old.segments()).unwrap();
    // The merge is due again.
    assert!(store.needs_maintenance());
    store.merge_all(&newest).unwrap();
    let reader = store.begin().unwrap();
    for segment in reader.view(&newest).segments() {
        let x = segment.columns[3].unwrap();
        for at in 0..segment.segment.rows() {
            let n = segment.segment.get(segment.columns[2].unwrap(), at).unwrap();
            assert_eq!(segment.segment.get(x, at).unwrap(), extra_of(&n));
        }
    }
    assert_eq!(scan(&reader.view(&newest)).unwrap().len(), 200);
}

fn unique(table: &Arc<Table>) -> IndexSchema {
    let columns = vec![table.schema().columns[2].id];
    IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind: IndexKind::BTree }
}

/// Creates a unique index while another transaction is in the middle of a commit, which `finish`
/// completes.
#[allow(clippy::disallowed_methods)]
fn create_beside(
    store: &Arc<Store>,
    table: &Arc<Table>,
    finish: impl FnOnce(),
) -> Result<Arc<Table>> {
    std::thread::scope(|scope| {
        let creator = scope.spawn(|| store.create_index(table, unique(table)));
        // Long enough for the creator to reach the lock.
        std::thread::sleep(Duration::from_millis(400));
        finish();
        creator.join().unwrap()
    })
}

#[test]
fn a_unique_index_meets_all_rows_of_a_commit_that_is_half_done() {
    let (_, store, table) = open_with(&[]);
    let mut writer = store.begin().unwrap();
    writer.insert(&table, &batch(&[row(1, "a", 7), row(2, "a", 7)])).unwrap();
    let partition = &table.partitions()[0];
    let mut nodes = Vec::new();
    partition.each_node(|node| nodes.push(node.clone()));
    let [first, second] = &nodes[..] else { panic!("{} nodes", nodes.len()) };
    // Like a commit, which stamps one row after another.
    let mut turn = lock(&store);
    let commit = turn.next();
    let mut payload = record::begin(commit);
    for node in &nodes {
        let Some(nacre_rowstore::Change::Put(row)) = node.pending() else { panic!("no row") };
        record::put(&mut payload, table.place(partition), node.key(), &row);
    }
    first.commit_pending(commit);
    table.set_changed(commit);
    let refused = create_beside(&store, &table, || {
        second.commit_pending(commit);
        table.set_changed(commit);
        let committed = turn.append(&payload).unwrap();
        drop(turn);
        store.context().commits().settle_strictly(committed).unwrap();
    });
    drop(writer);
    assert_eq!(refused.err().map(|error| error.kind()), Some(ErrorKind::Constraint));
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 2);
}

#[test]
fn a_unique_index_is_not_refused_for_a_row_that_is_being_flushed() {
    let (_, store, table) = open_with(&[row(1, "a", 7)]);
    let partition = &table.partitions()[0];
    let mut builder = table.segment_builder();
    builder.push(&batch(&[row(1, "a", 7)]));
    let segment = write_segment(&store, &table, builder).unwrap();
    // Like a flush, which lists the segment before marking the row as flushed.
    let mut turn = lock(&store);
    let commit = turn.next();
    let added = Arc::new(SegmentState::new(segment.clone(), commit, RoaringBitmap::new()));
    partition.update_segments(|list| list.push(added));
    let made = create_beside(&store, &table, || {
        partition.each_node(|node| assert!(node.flush(commit, node.newest().unwrap().commit)));
        let mut payload = record::begin(commit);
        let new = NewSegment { id: segment.id(), deleted: RoaringBitmap::new() };
        let to = table.row_key(&row(1, "a", 7)).unwrap().encoded().to_vec();
        let range = FlushedRange { after: None, to, upto: commit - 1, except: Vec::new() };
        record::flush_range(&mut payload, table.place(partition), &range, &new).unwrap();
        let committed = turn.append(&payload).unwrap();
        table.set_changed(commit);
        drop(turn);
        store.context().commits().settle_strictly(committed).unwrap();
    });
    assert_eq!(made.err().map(|error| error.to_string()), None);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn a_unique_index_is_not_refused_for_rows_that_were_truncated() {
    let (_, store, table) = open_with(&[row(1, "a", 7), row(2, "b", 7)]);
    store.truncate(std::slice::from_ref(&table)).unwrap();
    let kind = |table: &Arc<Table>| {
        store.create_index(table, unique(table)).err().map(|error| error.kind())
    };
    assert_eq!(kind(&table), Some(ErrorKind::Conflict));
    assert_eq!(kind(&store.table("t").unwrap()), None);
}

/// A catalog change is announced first, so that a reader of the changed catalog knows of it.
#[test]
fn a_snapshot_has_its_names_when_the_catalog_has_changed() {
    let (_, store, table) = open_with(&[]);
    let at = store.visible();
    alter(&store, &table, 7);
    let mut renamed = (**store.table("t").unwrap().schema()).clone();
    renamed.name = "u".into();
    store.alter_table(&store.table("t").unwrap(), renamed).unwrap();
    assert_eq!(store.table_at("T", at).map(|t| t.schema().columns.len()), Some(3));
    assert!(store.table_at("u", at).is_none());
    assert_eq!(store.table_at("U", store.visible()).map(|t| t.schema().columns.len()), Some(4));
    assert!(store.table_at("t", store.visible()).is_none());
}

/// Dropping a long chain of versions at once must not overflow a small stack.
#[test]
#[allow(clippy::disallowed_methods)]
fn many_versions_of_a_table_go_at_once() {
    let go = || {
        let mut table = Arc::new(Table::new(schema("t", true)));
        for commit in 1..5_000 {
            let next = Arc::new(Table::altered(&table, schema("t", true), commit));
            next.set_previous(Some(table));
            table = next;
        }
        let second = table.previous().unwrap();
        drop(table);
        second.set_previous(None);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(go).unwrap().join().unwrap();
}

/// A dropped index still serves transactions that began earlier, as fast as before and without
/// duplicates.
#[test]
fn a_dropped_index_serves_those_who_began_before() {
    let files = Arc::new(MemoryStore::new());
    let small =
        crate::StoreOptions { segment_rows: 100, merge_from: 99, hash_from: 0.0, ..options() };
    let store = Store::open(host(&files), small).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    for round in 0..8 {
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        let rows: Vec<_> = (0..100).map(|i| row(i * 8 + round, "a", i * 8 + round)).collect();
        load.append(&batch(&rows)).unwrap();
        load.finish().unwrap();
    }
    let index = IndexSchema { unique: false, ..unique(&table) };
    let table = store.create_index(&table, index).unwrap();
    while store.maintain().unwrap() {}
    let id = table.schema().indexes[0].id;
    let built =
        |index: &Index| table.segments().iter().all(|state| state.part(index.id()).is_some());
    assert!(table.indexes().iter().all(built));
    let list = table.partitions()[0].segments();
    let covered =
        list.tables_of(crate::record::KeySet::Index(id)).map(|hashes| hashes.segments().len());
    assert_eq!(covered.sum::<usize>(), 8);
    let old = store.begin().unwrap();
    let view = old.view(&table);
    store.drop_index(&table, "u").unwrap();
    while store.maintain().unwrap() {}
    for wanted in [0, 17, 799] {
        let range = crate::KeyRange::equal(vec![Value::Int(wanted)]);
        let probe = view.probe_index(id, &range).unwrap();
        assert_eq!((probe.len(), probe.segments_read), (1, 0), "{wanted}");
        let values = [(2, Value::Int(wanted))];
        let equal = crate::Equal { values: &values, indexes: &[(id, 1)], unique: false, most: 100 };
        let found = old.equal(&table, &equal).unwrap().unwrap();
        assert_eq!(found.iter().map(crate::FoundRows::count).sum::<usize>(), 1, "{wanted}");
    }
    let parts = || {
        nacre_host::LocalStore::list(&*files)
            .unwrap()
            .iter()
            .filter(|n| n.starts_with("idx-"))
            .count()
    };
    assert_eq!(parts(), 8);
    drop((old, view));
    while store.maintain().unwrap() {}
    collect_garbage(&store).unwrap();
    assert_eq!(parts(), 0);
    assert!(table.segments().iter().all(|state| state.part(id).is_none()));
}
