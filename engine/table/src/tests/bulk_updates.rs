//! Updates of many rows that other transactions overtake between two of their steps.

use crate::segments::names::FileKind;
use crate::tests::{batch, host, locate, options, row, scan, schema, sorted};
use crate::{BulkUpdate, RowLocator, Store, StoreOptions, Table, Transaction};
use nacre_host::memory::MemoryStore;
use nacre_testing::{Call, Watched};
use nacre_types::{ErrorKind, Value};
use std::sync::{Arc, Mutex};

/// A table of one partition with these rows in a segment.
fn flushed(store: &Arc<Store>, rows: &[Vec<Value>]) -> Arc<Table> {
    let table = store.create_table(schema("t", true)).unwrap();
    let mut t = store.begin().unwrap();
    t.insert(&table, &batch(rows)).unwrap();
    t.commit().unwrap();
    store.flush(&table).unwrap();
    table
}

/// A complete update of all rows that a transaction sees, which `change` changes.
fn update_all(
    store: &Store,
    t: &Transaction,
    table: &Arc<Table>,
    rekeys: bool,
    change: impl Fn(&mut Vec<Value>),
) -> BulkUpdate {
    let (mut rows, at): (Vec<Vec<Value>>, Vec<RowLocator>) =
        scan(&t.view(table)).unwrap().into_iter().unzip();
    rows.iter_mut().for_each(change);
    let mut update = store.bulk_update(t, table, rekeys);
    update.add(batch(&rows), &at).unwrap();
    while update.complete().unwrap() {}
    update
}

/// A transaction that has changed a row, which has moved it to memory.
fn changed(store: &Arc<Store>, table: &Arc<Table>, id: i64) -> Transaction {
    let mut t = store.begin().unwrap();
    let at = locate(&t, table, id);
    t.update(table, &[at], &batch(&[row(id, "a", 99)])).unwrap();
    t
}

/// The rows are in memory when the first attempt takes their new content out of its file, and in a
/// segment again when the second one leaves it there.
#[test]
fn a_step_of_an_update_that_fails_puts_its_rows_back() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), StoreOptions { partitions: 1, ..options() }).unwrap();
    let table = flushed(&store, &[row(1, "a", 1), row(2, "a", 2)]);
    let mut t = store.begin().unwrap();
    let mut update = update_all(&store, &t, &table, false, |row| row[2] = Value::Int(50));
    changed(&store, &table, 1).rollback();
    let holder = changed(&store, &table, 2);
    let (place, start) = (update.places()[0], t.savepoint());
    let refused = t.replace_together(&mut update, place).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LockTimeout, "{refused}");
    assert!(t.take_blocker().is_some(), "it waits for the other transaction");
    t.rollback_to(start);
    holder.rollback();
    store.flush(&table).unwrap();
    let is_again = table.segments().iter().any(|state| state.id() != place.1);
    assert!(is_again, "the rows are in another segment");
    t.replace_together(&mut update, place).unwrap();
    assert_eq!(t.add_updated(update), 2);
    t.commit().unwrap();
    let seen = sorted(scan(&store.begin().unwrap().view(&table)).unwrap());
    assert_eq!(seen, [row(1, "a", 50), row(2, "a", 50)]);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

type Overtake = Box<dyn FnMut() + Send>;

/// A store without a cache. The first read of each segment, in the order of their numbers, calls a
/// function, once it is set.
fn overtaken() -> (Arc<Store>, Arc<Mutex<Option<Overtake>>>) {
    let files = Arc::new(MemoryStore::new());
    let overtake: Arc<Mutex<Option<Overtake>>> = Arc::default();
    let (set, newest) = (overtake.clone(), Mutex::new(0));
    let watched = Watched::new(files.clone(), move |name, call| {
        let number = FileKind::Segment.number(name).filter(|_| matches!(call, Call::Read { .. }));
        // Taken meanwhile: the function reads, too.
        let function = number.and_then(|_| set.lock().unwrap().take());
        let Some((number, mut function)) = number.zip(function) else { return Ok(()) };
        let is_first = {
            let mut newest = newest.lock().unwrap();
            let is_first = number > *newest;
            *newest = number.max(*newest);
            is_first
        };
        if is_first {
            function();
        }
        *set.lock().unwrap() = Some(function);
        Ok(())
    });
    let options = StoreOptions { partitions: 1, cache_bytes: 0, merge_from: 99, ..options() };
    let store = Store::open(nacre_host::Host { store: watched, ..host(&files) }, options).unwrap();
    (store, overtake)
}

/// Each look at the keys of segments meets a new segment, until commits wait.
#[test]
fn new_keys_are_reserved_although_a_writer_overtakes_each_look() {
    /// Looks after which the writer gives up: nothing has stopped it.
    const MOST: usize = 200;
    let (store, overtake) = overtaken();
    let rows: Vec<_> = (0..1_000).map(|id| row(id * 4, "a", id)).collect();
    let table = flushed(&store, &rows);
    let mut t = store.begin().unwrap();
    let next_id = |row: &mut Vec<Value>| {
        let Value::Int(id) = &mut row[0] else { panic!("{row:?} has no id") };
        *id += 1;
    };
    let mut update = update_all(&store, &t, &table, true, next_id);
    for place in update.places() {
        t.replace_together(&mut update, place).unwrap();
    }
    // How many segments the writer has added, and whether it has met a closed gate.
    let met = Arc::new(Mutex::new((0, false)));
    *overtake.lock().unwrap() = Some(Box::new({
        let (store, table, met) = (store.clone(), table.clone(), met.clone());
        move || {
            let mut met = met.lock().unwrap();
            if table.gate().is_closed() {
                met.1 = true;
            } else if met.0 < MOST {
                // Among the new keys, and none of them.
                let ids = [met.0 as i64 * 4 + 2, 3_999 - met.0 as i64 * 4];
                let mut writer = store.begin().unwrap();
                writer.insert(&table, &batch(&ids.map(|id| row(id, "a", 1)))).unwrap();
                writer.commit().unwrap();
                store.flush(&table).unwrap();
                met.0 += 1;
            }
        }
    }));
    t.reserve_keys(&mut update).unwrap();
    *overtake.lock().unwrap() = None;
    let (added, is_closed) = *met.lock().unwrap();
    assert!(added >= 16, "only {added} looks were overtaken");
    assert!(is_closed, "{added} looks were overtaken, and nothing has stopped that");
    assert!(!table.gate().is_closed(), "the gate is open again");
    t.add_updated(update);
    t.commit().unwrap();
    let seen = scan(&store.begin().unwrap().view(&table)).unwrap().len();
    assert_eq!(seen, 1_000 + 2 * added);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
