//! Writers that meet a commit which is logged but not durable yet: they wait for its owner, as for
//! any row lock, because a retry under the same snapshot would meet it again.

use crate::tests::{batch, host, locate, options, row, scan, schema};
use crate::{OnDuplicate, Owner, RowLocator, Store, Table, Transaction};
use nacre_host::Host;
use nacre_host::memory::MemoryStore;
use nacre_testing::{Call, Watched};
use nacre_types::{ErrorKind, IndexKind, IndexSchema, Value};
use roaring::RoaringBitmap;
use std::sync::{Arc, Mutex};

type During = Box<dyn FnOnce() + Send>;

/// A store whose next sync of the log calls a function first.
struct Paused {
    store: Arc<Store>,
    table: Arc<Table>,
    during: Arc<Mutex<Option<During>>>,
}

impl Paused {
    /// A table with a unique index on its last column. Its rows are in a segment, or in memory.
    fn new(rows: &[Vec<Value>], flush: bool) -> Paused {
        let files = Arc::new(MemoryStore::new());
        let during: Arc<Mutex<Option<During>>> = Arc::default();
        let next = during.clone();
        let watched = Watched::new(files.clone(), move |name, call| {
            if matches!(call, Call::Sync) && name.starts_with("log-") {
                let during = next.lock().unwrap().take();
                during.into_iter().for_each(|during| during());
            }
            Ok(())
        });
        let store = Store::open(Host { store: watched, ..host(&files) }, options()).unwrap();
        let table = store.create_table(schema("t", true)).unwrap();
        let columns = vec![table.schema().columns[2].id];
        let index =
            IndexSchema { id: 0, name: "u".into(), columns, unique: true, kind: IndexKind::BTree };
        let table = store.create_index(&table, index).unwrap();
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(rows)).unwrap();
        t.commit().unwrap();
        if flush {
            store.flush(&table).unwrap();
        }
        Paused { store, table, during }
    }

    /// Commits a deletion. While it is being synced, and again afterwards, tries to insert a row in
    /// a transaction that began before.
    fn insert_beside(&self, delete: impl FnOnce(&mut Transaction, &Arc<Table>), new: Vec<Value>) {
        let mut t = self.store.begin().unwrap();
        delete(&mut t, &self.table);
        let owner = t.owner().clone();
        let (table, outcome) = (self.table.clone(), Arc::new(Mutex::new(None)));
        let mut early = self.store.begin().unwrap();
        let found = outcome.clone();
        *self.during.lock().unwrap() = Some(Box::new(move || {
            assert_waits(&mut early, &table, &new, &owner);
            *found.lock().unwrap() = Some((early, new));
        }));
        t.commit().unwrap();
        let (mut early, new) = outcome.lock().unwrap().take().expect("the log was not synced");
        let refused = early.insert_row(&self.table, &new).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(early.take_blocker().is_none(), "a transaction that has ended holds a lock");
        drop(early);
        let mut late = self.store.begin().unwrap();
        late.insert_row(&self.table, &new).unwrap();
        late.commit().unwrap();
        assert_eq!(scan(&self.store.begin().unwrap().view(&self.table)).unwrap().len(), 2);
        assert_eq!(self.store.check().unwrap(), Vec::<String>::new());
    }
}

/// Tries to insert a row, which has to wait for a transaction.
fn assert_waits(t: &mut Transaction, table: &Arc<Table>, new: &[Value], owner: &Arc<Owner>) {
    let start = t.savepoint();
    let refused = t.insert_row(table, new).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LockTimeout, "{refused}");
    let blocker = t.take_blocker().expect("a lock is reported without its holder");
    assert!(Arc::ptr_eq(blocker.owner(), owner), "another transaction has the lock");
    t.rollback_to(start);
}

/// Deletes the row with key 1 by its bit.
fn delete_by_bit(t: &mut Transaction, table: &Arc<Table>) {
    let RowLocator::Segment { partition, segment, row } = locate(t, table, 1) else {
        panic!("the row is not in a segment")
    };
    t.delete_together(table, partition, segment, &RoaringBitmap::from_iter([row])).unwrap();
}

fn delete_row(t: &mut Transaction, table: &Arc<Table>) {
    let at = locate(t, table, 1);
    t.delete(table, &[at]).unwrap();
}

fn rows() -> Vec<Vec<Value>> {
    vec![row(1, "a", 7), row(2, "a", 8)]
}

#[test]
fn a_key_is_waited_for_whose_deletion_by_bits_is_not_durable() {
    Paused::new(&rows(), true).insert_beside(delete_by_bit, row(1, "a", 9));
}

#[test]
fn a_unique_value_is_waited_for_whose_deletion_by_bits_is_not_durable() {
    Paused::new(&rows(), true).insert_beside(delete_by_bit, row(3, "a", 7));
}

#[test]
fn a_unique_value_is_waited_for_whose_deletion_is_not_durable() {
    for flush in [false, true] {
        Paused::new(&rows(), flush).insert_beside(delete_row, row(3, "a", 7));
    }
}

#[test]
fn a_unique_value_is_waited_for_whose_change_is_not_durable() {
    for flush in [false, true] {
        let change = |t: &mut Transaction, table: &Arc<Table>| {
            let at = locate(t, table, 1);
            t.update(table, &[at], &batch(&[row(1, "a", 9)])).unwrap();
        };
        let paused = Paused::new(&[row(1, "a", 7)], flush);
        paused.insert_beside(change, row(3, "a", 7));
    }
}

/// The key was loaded after the snapshot, which has no row to lose.
#[test]
fn a_key_that_came_and_goes_is_waited_for_until_it_is_gone_for_good() {
    let Paused { store, table, during } = Paused::new(&[row(2, "b", 8)], true);
    let mut early = store.begin().unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Error);
    load.append(&batch(&[row(1, "a", 7)])).unwrap();
    load.finish().unwrap();
    let mut t = store.begin().unwrap();
    delete_by_bit(&mut t, &table);
    let (owner, new) = (t.owner().clone(), row(1, "a", 9));
    let outcome = Arc::new(Mutex::new(None));
    let (found, at) = (outcome.clone(), table.clone());
    *during.lock().unwrap() = Some(Box::new(move || {
        assert_waits(&mut early, &at, &new, &owner);
        *found.lock().unwrap() = Some((early, new));
    }));
    t.commit().unwrap();
    let (mut early, new) = outcome.lock().unwrap().take().expect("the log was not synced");
    early.insert_row(&table, &new).unwrap();
    early.commit().unwrap();
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 2);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
