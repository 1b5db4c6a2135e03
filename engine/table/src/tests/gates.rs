//! What writers of a table wait for, and what they do not: the last round of a load, and the last
//! look at rows that must satisfy more.

use crate::record::{self, NewSegment};
use crate::segments::state::SegmentState;
use crate::tests::access::{lock, write_segment};
use crate::tests::{batch, host, open_with, options, row, scan, schema};
use crate::{LoadStep, OnDuplicate, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_types::{ErrorKind, IndexKind, IndexSchema, Result, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn unique(table: &Table) -> IndexSchema {
    let columns = vec![table.schema().columns[2].id];
    IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind: IndexKind::BTree }
}

fn insert(store: &Store, table: &Arc<Table>, rows: &[Vec<Value>]) -> Result<()> {
    let mut writer = store.begin()?;
    writer.insert(table, &batch(rows))?;
    writer.commit()
}

fn load(store: &Store, table: &Arc<Table>, rows: &[Vec<Value>]) {
    let mut load = store.bulk_load(table, OnDuplicate::Error);
    load.append(&batch(rows)).unwrap();
    load.finish().unwrap();
}

/// A segment that is committed while a load waits for the commit lock is compared after the load
/// has given the lock back.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_load_compares_no_new_segment_under_the_commit_lock() {
    for same in [false, true] {
        let (_, store, table) = open_with(&[row(1, "a", 1)]);
        let mut load = store.bulk_load(&table, OnDuplicate::Error);
        load.append(&batch(&[row(2, "a", 2)])).unwrap();
        // Writes its file, begins to publish, and looks at what is there.
        for _ in 0..3 {
            assert!(matches!(load.step().unwrap(), LoadStep::More));
        }
        let mut builder = table.segment_builder();
        builder.push(&batch(&[row(if same { 2 } else { 3 }, "a", 3)]));
        let file = write_segment(&store, &table, builder).unwrap();
        let mut turn = lock(&store);
        let step = std::thread::scope(|scope| {
            let publisher = scope.spawn(|| load.step());
            // Long enough for the load to reach the lock.
            std::thread::sleep(Duration::from_millis(400));
            let (commit, partition) = (turn.next(), &table.partitions()[0]);
            let state = SegmentState::new(file.clone(), commit, RoaringBitmap::new());
            partition.update_segments(|list| list.push(Arc::new(state)));
            let mut payload = record::begin(commit);
            let new = NewSegment { id: file.id(), deleted: RoaringBitmap::new() };
            record::add_segments(&mut payload, table.place(partition), &[new]).unwrap();
            let committed = turn.append(&payload).unwrap();
            table.set_changed(commit);
            drop(turn);
            store.context().commits().settle_strictly(committed).unwrap();
            publisher.join().unwrap()
        });
        assert!(matches!(step.unwrap(), LoadStep::More));
        let ended = load.finish().map_err(|error| error.kind());
        assert_eq!(ended, if same { Err(ErrorKind::Constraint) } else { Ok(1) });
        let rows = scan(&store.begin().unwrap().view(&table)).unwrap().len();
        assert_eq!(rows, if same { 2 } else { 3 });
    }
}

/// Loads that are never near, because a writer commits again and again.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_load_ends_although_writers_overtake_it() {
    let never_near = StoreOptions { load_rest: 0, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), never_near).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let (ends, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (store, table, ends, written) = (&store, &table, &ends, &written);
            scope.spawn(move || {
                for round in 0.. {
                    insert(store, table, &[row(1_000_000 * (thread + 1) + round, "w", 1)]).unwrap();
                    written.fetch_add(1, Ordering::SeqCst);
                    if round % 50 == 49 {
                        store.flush(table).unwrap();
                    }
                    if ends.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        for round in 0..10 {
            let rows: Vec<_> = (0..4_000).map(|id| row(round * 4_000 + id, "l", 2)).collect();
            load(&store, &table, &rows);
        }
        ends.store(true, Ordering::SeqCst);
    });
    let rows = scan(&store.begin().unwrap().view(&table)).unwrap().len();
    assert_eq!(rows, 40_000 + written.load(Ordering::SeqCst));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Each unique index is made beside writers that insert, and of rows that are flushed and merged.
#[test]
#[allow(clippy::disallowed_methods)]
fn a_unique_index_is_made_beside_writers() {
    for duplicate in [false, true] {
        let small = StoreOptions { segment_rows: 500, statement_bytes: 2_000, ..options() };
        let store = Store::open(host(&Arc::new(MemoryStore::new())), small).unwrap();
        let table = store.create_table(schema("t", true)).unwrap();
        let rows: Vec<_> = (0..3_000).map(|id| row(id, "l", id)).collect();
        rows.chunks(1_000).for_each(|rows| load(&store, &table, rows));
        let ends = AtomicBool::new(false);
        let made = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0.. {
                    let n = if duplicate && round == 20 { 7 } else { 10_000 + round };
                    match insert(&store, &table, &[row(10_000 + round, "w", n)]) {
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                        Ok(()) if round % 20 == 19 => {
                            let newest = store.table("t").unwrap();
                            store.flush(&newest).unwrap();
                            store.maintain().unwrap();
                        }
                        Ok(()) => {}
                    }
                    if ends.load(Ordering::SeqCst) && round > 20 {
                        break;
                    }
                }
            });
            while duplicate && store.visible() < 30 {
                std::thread::yield_now();
            }
            let made = store.create_index(&table, unique(&table));
            ends.store(true, Ordering::SeqCst);
            writer.join().unwrap();
            made
        });
        let kind = made.as_ref().err().map(|error| error.kind());
        assert_eq!(kind, duplicate.then_some(ErrorKind::Constraint));
        assert_eq!(store.environment().statement_memory().memory_bytes(), 0);
        if let Ok(made) = made {
            let error = insert(&store, &made, &[row(-1, "x", 10_000)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
        }
        while store.maintain().unwrap() {}
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

/// More keys than fit into the memory for them: several passes, in each of which one is found.
#[test]
fn a_key_that_is_there_twice_is_found_in_little_memory() {
    let small = StoreOptions { statement_bytes: 4_000, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), small).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows: Vec<_> = (0..5_000).map(|id| row(id, "l", id)).collect();
    load(&store, &table, &rows);
    for twice in (0..5_000).step_by(613) {
        insert(&store, &table, &[row(10_000, "w", twice)]).unwrap();
        for flush in [false, true] {
            if flush {
                store.flush(&table).unwrap();
            }
            let error = store.create_index(&table, unique(&table)).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Constraint, "{error}");
            assert!(error.message().contains(&twice.to_string()), "{error}");
        }
        let mut writer = store.begin().unwrap();
        let all = scan(&writer.view(&table)).unwrap();
        let (_, at) = all.into_iter().find(|(row, _)| row[0] == Value::Int(10_000)).unwrap();
        writer.delete(&table, &[at]).unwrap();
        writer.commit().unwrap();
    }
    // All of one key, more of them than fit.
    let same: Vec<_> = (20_000..21_000).map(|id| row(id, "s", 77_777)).collect();
    load(&store, &table, &same);
    let error = store.create_index(&table, unique(&table)).map(drop).unwrap_err();
    assert!(error.message().contains("77777"), "{error}");
    assert_eq!(store.environment().statement_memory().memory_bytes(), 0);
    let mut writer = store.begin().unwrap();
    let all = scan(&writer.view(&table)).unwrap();
    let gone: Vec<_> = all.into_iter().filter(|(row, _)| row[2] == Value::Int(77_777)).collect();
    writer.delete(&table, &gone.into_iter().map(|(_, at)| at).collect::<Vec<_>>()).unwrap();
    writer.commit().unwrap();
    store.create_index(&table, unique(&table)).unwrap();
}
