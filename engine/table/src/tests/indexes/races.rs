//! Unique values and index lookups while threads write and background work runs.

use super::*;
use crate::tests::Random;
use crate::tests::access::build_indexes;
use nacre_types::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of unique values that writers compete for.
const NUMBERS: u64 = 24;

/// The owner of each number. A row is recorded after its commit and removed before the commit that
/// deletes or changes it, so two rows with one number would be detected.
#[derive(Default)]
struct Owners(Mutex<BTreeMap<i64, Item>>);

impl Owners {
    fn put(&self, item: &Item) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let other = all
            .values()
            .find(|other| other.u == item.u || (other.tag == item.tag && other.n == item.n));
        assert!(other.is_none(), "{item:?} beside {other:?}");
        all.insert(item.id, item.clone());
    }

    fn take(&self, item: &Item) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&item.id);
    }
}

struct World {
    store: Arc<Store>,
    owners: Owners,
    done: AtomicBool,
    inserted: AtomicU64,
    refused: AtomicU64,
    /// Failures because another transaction was faster or holds a lock.
    again: AtomicU64,
}

fn expected(world: &World, outcome: &Result<()>) {
    let count = match outcome {
        Ok(()) => &world.inserted,
        Err(e) if e.kind() == ErrorKind::Constraint => &world.refused,
        Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::LockTimeout) => &world.again,
        Err(e) => panic!("{e}"),
    };
    count.fetch_add(1, Ordering::Relaxed);
}

fn new_item(random: &mut Random, id: i64) -> Item {
    item(
        id,
        random.below(NUMBERS) as i64,
        ["a", "b"][random.below(2) as usize],
        random.below(NUMBERS / 2) as i64,
    )
}

/// Inserts, updates and deletes rows of its own.
fn writer(world: &World, thread: u64, rounds: u64) {
    let store = &world.store;
    let mut random = Random::new(thread);
    let mut own: Vec<Item> = Vec::new();
    for round in 0..rounds {
        let id = (thread * 1_000_000 + round) as i64;
        let mut t = store.begin().unwrap();
        // May be an older version, which rejects writes.
        let table = t.table("t").unwrap();
        let kind = random.below(4);
        if kind < 2 || own.is_empty() {
            let new = new_item(&mut random, id);
            let outcome = if kind == 0 {
                drop(t);
                let mut load = store.bulk_load(&table, OnDuplicate::Error);
                load.append(&batch(std::slice::from_ref(&new)))
                    .and_then(|()| load.finish().map(drop))
            } else {
                t.insert_row(&table, &new.values()).and_then(|()| t.commit())
            };
            expected(world, &outcome);
            if outcome.is_ok() {
                world.owners.put(&new);
                own.push(new);
            }
            continue;
        }
        let at = random.below(own.len() as u64) as usize;
        let old = own[at].clone();
        let Some((locator, values)) = t.locate(&table, &[Value::Int(old.id)]).unwrap() else {
            panic!("{old:?} is gone")
        };
        assert_eq!(Item::of(&values), old);
        let new = (kind == 2).then(|| new_item(&mut random, old.id));
        let written = match &new {
            Some(new) => t.update_row(&table, &locator, &new.values()),
            None => t.delete(&table, &[locator]).map(drop),
        };
        expected(world, &written);
        if written.is_err() {
            continue;
        }
        world.owners.take(&old);
        match t.commit() {
            Ok(()) => {
                own.remove(at);
                if let Some(new) = new {
                    world.owners.put(&new);
                    own.push(new);
                }
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                world.owners.put(&old);
            }
        }
    }
}

/// All rows of a view, found without an index.
fn scan(view: &TableView) -> Vec<Item> {
    let mut found = Vec::new();
    for segment in view.segments() {
        let is_there =
            |row: &u32| segment.deleted.as_ref().is_none_or(|deleted| !deleted.contains(*row));
        for row in (0..segment.segment.rows() as u32).filter(is_there) {
            let value =
                |at: &Option<usize>| segment.segment.get(at.unwrap(), row as usize).unwrap();
            found.push(Item::of(&segment.columns.iter().map(value).collect::<Vec<_>>()));
        }
    }
    let mut memory = view.memory(&[0, 1, 2, 3], false);
    while let Some((batch, _)) = memory.next(100).unwrap() {
        found.extend((0..batch.rows).map(|row| Item::of(&batch.row(row))));
    }
    found
}

/// Checks that an index lookup finds the same rows as a scan of the same snapshot.
fn reader(world: &World) {
    let mut random = Random::new(99);
    while !world.done.load(Ordering::Relaxed) {
        let t = world.store.begin().unwrap();
        let table = t.table("t").unwrap();
        let wanted = new_item(&mut random, 0);
        let all: Vec<Item> = scan(&t.view(&table));
        let expect = |is: &dyn Fn(&Item) -> bool| {
            let mut ids: Vec<i64> = all.iter().filter(|i| is(i)).map(|i| i.id).collect();
            ids.sort_unstable();
            ids
        };
        let number = |n: Option<i64>| KeyRange::equal(vec![Value::Int(n.unwrap())]);
        assert_eq!(ids(&find(&t, &table, "u", &number(wanted.u))), expect(&|i| i.u == wanted.u));
        assert_eq!(ids(&find(&t, &table, "by_n", &number(wanted.n))), expect(&|i| i.n == wanted.n));
        let tag = KeyRange::equal(vec![Value::Text(wanted.tag.clone())]);
        assert_eq!(ids(&find(&t, &table, "by_tag", &tag)), expect(&|i| i.tag == wanted.tag));
        // An index that is created and dropped concurrently.
        if let Some(extra) = table.schema().index_by_name("extra").map(|index| index.id) {
            assert_eq!(
                ids(&find(&t, &table, "extra", &number(wanted.u))),
                expect(&|i| i.u == wanted.u)
            );
            let values = [(1, Value::Int(wanted.u.unwrap())), (2, Value::Text(wanted.tag.clone()))];
            let equal = Equal { values: &values, indexes: &[(extra, 1)], unique: false, most: 100 };
            let found: usize =
                t.equal(&table, &equal).unwrap().unwrap().iter().map(FoundRows::count).sum();
            assert_eq!(found, expect(&|i| i.u == wanted.u && i.tag == wanted.tag).len());
        }
    }
}

/// Flushes, merges and builds index parts.
fn keeper(world: &World) {
    let mut random = Random::new(7);
    while !world.done.load(Ordering::Relaxed) {
        let table = world.store.table("t").unwrap();
        match random.below(4) {
            0 => world.store.flush(&table).unwrap(),
            1 => world.store.merge_all(&table).unwrap(),
            _ => drop(world.store.maintain().unwrap()),
        }
    }
}

/// Creates and drops an index over unique values, so that creation never fails.
fn changer(world: &World) {
    let mut unique = false;
    while !world.done.load(Ordering::Relaxed) {
        let table = world.store.table("t").unwrap();
        unique = !unique;
        let made = world
            .store
            .create_index(&table, index("extra", if unique { &[2] } else { &[2, 1] }, unique))
            .unwrap();
        build_indexes(&world.store, &made).unwrap();
        // Drive the abandoned work forward again.
        for _ in 0..20 {
            world.store.maintain().unwrap();
        }
        world.store.drop_index(&world.store.table("t").unwrap(), "extra").unwrap();
    }
}

#[test]
fn threads_that_fight_for_values() {
    fight(options(), false);
}

#[test]
fn threads_that_fight_for_values_while_indexes_come_and_go() {
    fight(hashed(), true);
}

#[allow(clippy::disallowed_methods)]
fn fight(options: StoreOptions, changes: bool) {
    let mut shape = schema(true);
    shape.shard_key = Some(ShardKey { columns: vec![0], partitions: 2 });
    let (files, store, _) = open_with(shape, options.clone());
    let world = World {
        store,
        owners: Owners::default(),
        done: AtomicBool::new(false),
        inserted: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        again: AtomicU64::new(0),
    };
    // Stops the other threads even if one panics.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let rounds = std::env::var("NACRE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..=3)
            .map(|thread| {
                scope.spawn({
                    let world = &world;
                    move || writer(world, thread, rounds)
                })
            })
            .collect();
        scope.spawn(|| {
            let _done = Done(&world.done);
            reader(&world)
        });
        scope.spawn(|| {
            let _done = Done(&world.done);
            keeper(&world)
        });
        if changes {
            scope.spawn(|| {
                let _done = Done(&world.done);
                changer(&world)
            });
        }
        let _done = Done(&world.done);
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        assert!(ended.iter().all(|ended| ended.is_ok()));
    });
    let World { store, owners, inserted, refused, .. } = world;
    assert!(inserted.into_inner() > 50 && refused.into_inner() > 50);
    let expected = owners.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let look = |store: &Arc<Store>| {
        let (t, table) = (store.begin().unwrap(), store.table("t").unwrap());
        assert_eq!(
            ids(&find(&t, &table, "u", &KeyRange::all())),
            expected.keys().copied().collect::<Vec<_>>()
        );
    };
    look(&store);
    drop(store);
    look(&Store::open(host(&files), options).unwrap());
}
