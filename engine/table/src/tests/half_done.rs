//! Readers and writers during another commit, whose segments are listed but whose outcome is open.

use crate::segments::state::SegmentState;
use crate::tests::access::{lock, write_segment};
use crate::tests::{batch, host, locate, open_with, options, row, scan, schema, sorted};
use crate::{OnDuplicate, Store, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{IndexKind, IndexSchema, Result, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;
use std::time::Duration;

fn with_unique(store: &Arc<Store>, table: &Arc<Table>) -> Arc<Table> {
    let columns = vec![table.schema().columns[2].id];
    let index =
        IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind: IndexKind::BTree };
    store.create_index(table, index).unwrap()
}

/// Lists a segment of these rows, as a commit does before it is decided. Returns a function that
/// removes it again.
fn list(
    store: &Arc<Store>,
    table: &Arc<Table>,
    commit: u64,
    rows: &[Vec<Value>],
) -> impl FnOnce() + use<> {
    let partition_of =
        |row: &Vec<Value>| table.partition_of(table.row_key(row).unwrap().encoded()).number();
    let partition = partition_of(&rows[0]);
    assert!(rows.iter().all(|row| partition_of(row) == partition));
    let mut builder = table.segment_builder();
    builder.push(&batch(rows));
    let segment = write_segment(store, table, builder).unwrap();
    let state = Arc::new(SegmentState::new(segment.clone(), commit, RoaringBitmap::new()));
    table.partition(partition).update_segments(|list| list.push(state));
    let table = table.clone();
    move || {
        table
            .partition(partition)
            .update_segments(|list| list.remove(&[segment.id()].into_iter().collect()))
    }
}

fn all(store: &Arc<Store>, table: &Arc<Table>) -> Vec<Vec<Value>> {
    sorted(scan(&store.begin().unwrap().view(table)).unwrap())
}

/// Runs `work` while another commit's segment is listed and then removed again.
#[allow(clippy::disallowed_methods)]
fn beside<T: Send>(
    store: &Arc<Store>,
    table: &Arc<Table>,
    listed: &[Vec<Value>],
    work: impl FnOnce() -> T + Send,
) -> T {
    std::thread::scope(|scope| {
        let turn = lock(store);
        let take_out = list(store, table, turn.next(), listed);
        let worker = scope.spawn(work);
        // Long enough for `work` to reach its wait.
        std::thread::sleep(Duration::from_millis(300));
        take_out();
        drop(turn);
        worker.join().unwrap()
    })
}

#[test]
fn unique_values_are_given_on_while_their_rows_are_flushed() {
    let (_, store, table) = open_with(&[row(1, "a", 7)]);
    let table = with_unique(&store, &table);
    let turn = lock(&store);
    let take_out = list(&store, &table, turn.next(), &[row(1, "a", 7)]);
    // The flush has read the row and does not know yet that it is being deleted.
    let mut t = store.begin().unwrap();
    let at = locate(&t, &table, 1);
    assert_eq!(t.delete(&table, &[at]).unwrap(), 1);
    t.insert_row(&table, &row(2, "a", 7)).unwrap();
    take_out();
    drop(turn);
    t.commit().unwrap();
    assert_eq!(all(&store, &table), [row(2, "a", 7)]);
}

#[test]
#[allow(clippy::disallowed_methods)]
fn a_unique_value_that_was_deleted_is_free_while_its_row_is_flushed() {
    for is_seen in [true, false] {
        let (_, store, table) = open_with(&[row(1, "a", 7)]);
        let table = with_unique(&store, &table);
        let reader = is_seen.then(|| store.begin().unwrap());
        let mut t = store.begin().unwrap();
        let at = locate(&t, &table, 1);
        t.delete(&table, &[at]).unwrap();
        t.commit().unwrap();
        std::thread::scope(|scope| {
            let turn = lock(&store);
            let _ = list(&store, &table, turn.next(), &[row(1, "a", 7)]);
            let insert = || {
                let mut t = store.begin().unwrap();
                t.insert_row(&table, &row(2, "a", 7)).map(|()| t)
            };
            let worker = scope.spawn(insert);
            std::thread::sleep(Duration::from_millis(200));
            // At its commit, the flush excludes rows changed since it read them.
            let states = table.segments();
            states[0].delete(turn.next(), [0].into_iter().collect(), turn.next());
            drop(turn);
            let t = worker.join().unwrap().unwrap();
            assert!(t.has_writes());
        });
        drop(reader);
    }
}

fn load(
    store: &Arc<Store>,
    table: &Arc<Table>,
    on_duplicate: OnDuplicate,
    rows: &[Vec<Value>],
) -> Result<u64> {
    let mut load = store.bulk_load(table, on_duplicate);
    load.append(&batch(rows))?;
    load.finish()
}

#[test]
fn a_load_does_not_believe_a_commit_that_is_refused() {
    for on_duplicate in [OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace] {
        let files = Arc::new(MemoryStore::new());
        let store = Store::open(host(&files), options()).unwrap();
        let table = store.create_table(schema("t", true)).unwrap();
        let loaded = beside(&store, &table, &[row(1, "a", 6)], || {
            load(&store, &table, on_duplicate, &[row(1, "a", 7), row(2, "a", 8)])
        });
        assert_eq!(loaded.map_err(|e| e.to_string()), Ok(2), "{on_duplicate:?}");
        assert_eq!(all(&store, &table), [row(1, "a", 7), row(2, "a", 8)]);
        drop((table, store));
        let store = Store::open(host(&files), options()).unwrap();
        assert_eq!(
            all(&store, &store.table("t").unwrap()),
            [row(1, "a", 7), row(2, "a", 8)],
            "{on_duplicate:?}"
        );
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_load_does_not_believe_unique_values_of_a_commit_that_is_refused() {
    let (_, store, table) = open_with(&[]);
    let table = with_unique(&store, &table);
    let loaded = beside(&store, &table, &[row(1, "a", 7)], || {
        load(&store, &table, OnDuplicate::Error, &[row(2, "a", 7)])
    });
    assert_eq!(loaded.map_err(|e| e.to_string()), Ok(1));
    assert_eq!(all(&store, &table), [row(2, "a", 7)]);
}

#[test]
fn an_insert_does_not_believe_a_commit_that_is_refused() {
    let (_, store, table) = open_with(&[]);
    let table = with_unique(&store, &table);
    for new in [row(1, "a", 8), row(2, "a", 7)] {
        let inserted = beside(&store, &table, &[row(1, "a", 7)], || {
            let mut t = store.begin()?;
            t.insert_row(&table, &new)
        });
        assert_eq!(inserted.map_err(|e| e.to_string()), Ok(()), "{new:?}");
    }
}

/// A stamped commit that waits for its sync is visible to a transaction that waits for the sync
/// too.
#[test]
fn catching_up_makes_everything_visible() {
    let (_, store, table) = open_with(&[]);
    let before = store.visible();
    let commit = {
        let mut turn = lock(&store);
        let payload = crate::record::begin(turn.next());
        turn.append(&payload).unwrap().commit
    };
    assert_eq!((commit, store.visible()), (before + 1, before));
    store.catch_up().unwrap();
    assert_eq!(store.visible(), commit);
    assert_eq!(all(&store, &table), Vec::<Vec<Value>>::new());
}

#[test]
fn a_refused_row_leaves_no_entries() {
    let (_, store, table) = open_with(&[row(1, "a", 7)]);
    let columns = vec![table.schema().columns[1].id];
    let index =
        IndexSchema { id: 0, name: "i".into(), columns, unique: false, kind: IndexKind::BTree };
    let table = store.create_index(&table, index).unwrap();
    let table = with_unique(&store, &table);
    let entries = || table.partitions().iter().map(|p| table.entry_bytes(p)).sum::<usize>();
    let before = entries();
    let mut t = store.begin().unwrap();
    for id in 2..50 {
        assert_eq!(t.insert_row(&table, &row(id, "a", 7)).unwrap_err().sqlstate(), "23505");
    }
    drop(t);
    assert_eq!(entries(), before);
}

/// Versions kept for a snapshot are not searched at every commit; they are freed by the first
/// commit after the snapshot ends.
#[test]
fn what_a_snapshot_kept_of_a_row_goes_when_it_ends() {
    let (_, store, table) = open_with(&[row(1, "a", 0)]);
    let table = with_unique(&store, &table);
    let update = |n: i64| {
        let mut t = store.begin().unwrap();
        let at = locate(&t, &table, 1);
        t.update_row(&table, &at, &row(1, "a", n)).unwrap();
        t.commit().unwrap();
    };
    let bytes = || {
        table.rowstore_size().1
            + table.partitions().iter().map(|p| table.entry_bytes(p)).sum::<usize>()
    };
    update(1);
    let few = bytes();
    let reader = store.begin().unwrap();
    (2..500).for_each(update);
    assert!(bytes() > 100 * few, "{} and {few}", bytes());
    assert_eq!(sorted(scan(&reader.view(&table)).unwrap()), [row(1, "a", 1)]);
    drop(reader);
    (500..502).for_each(update);
    assert_eq!(bytes(), few);
    assert_eq!(all(&store, &table), [row(1, "a", 501)]);
}

/// If the log fails in the middle of a flush, its segments stay listed, because nodes refer to
/// them.
#[test]
fn a_segment_that_stays_listed_is_believed() {
    let (_, store, table) = open_with(&[]);
    let table = with_unique(&store, &table);
    let _ = list(&store, &table, store.visible() + 1, &[row(1, "a", 7)]);
    for new in [row(1, "a", 8), row(2, "a", 7)] {
        assert_eq!(
            store.begin().unwrap().insert_row(&table, &new).unwrap_err().sqlstate(),
            "23505",
            "{new:?}"
        );
    }
}
