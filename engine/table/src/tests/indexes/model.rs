//! Random histories compared with a map, on one thread.

use super::*;
use crate::tests::Random;
use crate::tests::access::write_snapshot;
use nacre_types::{ColumnRule, Result};
use std::fmt::Debug;

/// The key on which two rows conflict, if any.
fn conflict(a: &Item, b: &Item) -> Option<&'static str> {
    if a.id == b.id {
        return Some("PRIMARY");
    }
    if a.u.is_some() && a.u == b.u {
        return Some("u");
    }
    (a.n.is_some() && a.n == b.n && a.tag == b.tag).then_some("tag_n")
}

/// Whether the existing unique indexes allow a map.
fn is_allowed(model: &Model, has: &dyn Fn(&str) -> bool) -> bool {
    let (mut us, mut tag_ns) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    model.values().all(|i| {
        (!has("u") || i.u.is_none_or(|u| us.insert(u)))
            && (!has("tag_n") || i.n.is_none_or(|n| tag_ns.insert((i.tag.clone(), n))))
    })
}

/// Asserts that an outcome is a broken constraint if `fails`, or else a success.
fn expect_constraint<T: Debug>(outcome: &Result<T>, fails: bool) {
    let kind = outcome.as_ref().err().map(|error| error.kind());
    assert_eq!(kind, fails.then_some(ErrorKind::Constraint), "{outcome:?}");
}

fn random_item(random: &mut Random, ids: u64) -> Item {
    let tag = ["a", "b", "longer than most tags are", ""][random.below(4) as usize];
    let n = random.below(30) as i64;
    item(random.below(ids) as i64, random.below(80) as i64 - 8, tag, n - 3)
}

struct World {
    files: Arc<MemoryStore>,
    options: StoreOptions,
    store: Arc<Store>,
    model: Model,
    random: Random,
    keyed: bool,
    next_id: i64,
}

impl World {
    fn table(&self) -> Arc<Table> {
        self.store.table("t").unwrap()
    }

    fn item(&mut self) -> Item {
        let mut item = random_item(&mut self.random, 60);
        if !self.keyed {
            // Without a primary key, only this counter prevents duplicate ids.
            self.next_id += 1;
            item.id = self.next_id;
        }
        item
    }

    fn transaction(&mut self) {
        let (store, table) = (self.store.clone(), self.table());
        let has = |name: &str| table.schema().index_by_name(name).is_some();
        let mut t = store.begin().unwrap();
        let mut after = self.model.clone();
        for _ in 0..self.random.below(6) {
            let (savepoint, before) = (t.savepoint(), after.clone());
            match self.random.below(5) {
                0 | 1 => {
                    let items: Vec<Item> =
                        (0..1 + self.random.below(6)).map(|_| self.item()).collect();
                    let mut fails = false;
                    for item in &items {
                        fails |= after.insert(item.id, item.clone()).is_some()
                            || !is_allowed(&after, &has);
                    }
                    let outcome = t.insert(&table, &batch(&items));
                    expect_constraint(&outcome, fails);
                    if fails {
                        t.rollback_to(savepoint);
                        after = before.clone();
                    }
                }
                2 => {
                    let item = self.item();
                    let others = after.values().filter(|other| match conflict(&item, other) {
                        Some("PRIMARY") => true,
                        Some("u") => {
                            has("u")
                                || (has("tag_n")
                                    && item.n.is_some()
                                    && item.n == other.n
                                    && item.tag == other.tag)
                        }
                        Some(name) => has(name),
                        None => false,
                    });
                    let gone: Vec<i64> = others.map(|other| other.id).collect();
                    let met = t.conflicting(&table, &item.values()).unwrap();
                    assert_eq!(met.len(), gone.len(), "{item:?} {gone:?}");
                    t.delete(&table, &met).unwrap();
                    t.insert_row(&table, &item.values()).unwrap();
                    after.retain(|id, _| !gone.contains(id));
                    after.insert(item.id, item);
                }
                kind => {
                    let which = self.random.below(20) as i64;
                    let name = if has("by_n") { "by_n" } else { "by_tag" };
                    let range = match name {
                        "by_n" => by_n(which),
                        _ => KeyRange::equal(vec![Value::Text("a".into())]),
                    };
                    if !has(name) {
                        continue;
                    }
                    let found = find(&t, &table, name, &range);
                    let locators: Vec<_> = found.iter().map(|(_, l)| l.clone()).collect();
                    if kind == 3 {
                        t.delete(&table, &locators).unwrap();
                        found.iter().for_each(|(item, _)| drop(after.remove(&item.id)));
                    } else {
                        let shift = self.random.below(3) as i64;
                        let change = |i: &Item| Item {
                            u: i.u.map(|u| u + shift),
                            n: i.n.map(|n| n + 1),
                            ..i.clone()
                        };
                        let rows: Vec<Item> = found.iter().map(|(item, _)| change(item)).collect();
                        rows.iter().for_each(|item| drop(after.insert(item.id, item.clone())));
                        let fails = !is_allowed(&after, &has);
                        let outcome = t.update(&table, &locators, &batch(&rows));
                        expect_constraint(&outcome, fails);
                        if fails {
                            t.rollback_to(savepoint);
                            after = before.clone();
                        }
                    }
                }
            }
            if self.random.below(4) == 0 {
                t.rollback_to(savepoint);
                after = before;
            }
            self.agree(&t, &after);
        }
        if self.random.below(4) == 0 {
            t.rollback();
        } else {
            t.commit().unwrap();
            self.model = after;
        }
    }

    /// Compares a few ranges of every index with the model.
    fn agree(&mut self, t: &Transaction, model: &Model) {
        let table = t.table("t").unwrap();
        for index in table.schema().indexes.clone() {
            let key = |i: &Item| -> Vec<Value> {
                index.columns.iter().map(|c| i.values()[*c as usize - 1].clone()).collect()
            };
            let wanted = key(&random_item(&mut self.random, 60));
            let depth = self.random.below(index.columns.len() as u64 + 1) as usize;
            let mut range = KeyRange::equal(wanted[..depth].to_vec());
            if let Some(next) = wanted.get(depth).filter(|v| !v.is_null()) {
                let bound = |kind: u64| match kind {
                    0 => Bound::Unbounded,
                    1 => Bound::Included(next.clone()),
                    _ => Bound::Excluded(next.clone()),
                };
                (range.low, range.high) =
                    (bound(self.random.below(3)), bound(self.random.below(3)));
            }
            let order = |v: &Value| match v {
                Value::Null => (0, 0, String::new()),
                Value::Int(v) => (1, *v, String::new()),
                Value::Text(v) => (1, 0, v.clone()),
                other => panic!("{other:?}"),
            };
            let is_inside = |item: &&Item| {
                let key = key(item);
                let Some(next) = key.get(depth) else { return key[..depth] == wanted[..depth] };
                let next = order(next);
                let unbounded =
                    matches!((&range.low, &range.high), (Bound::Unbounded, Bound::Unbounded));
                let low = match &range.low {
                    Bound::Included(v) => next >= order(v),
                    Bound::Excluded(v) => next > order(v),
                    Bound::Unbounded => unbounded || next.0 == 1,
                };
                let high = match &range.high {
                    Bound::Included(v) => next <= order(v),
                    Bound::Excluded(v) => next < order(v),
                    Bound::Unbounded => true,
                };
                key[..depth] == wanted[..depth] && low && high
            };
            let expected: Vec<Item> = model.values().filter(is_inside).cloned().collect();
            let mut found: Vec<Item> =
                find(t, &table, &index.name, &range).into_iter().map(|(item, _)| item).collect();
            found.sort_by_key(|item| item.id);
            assert_eq!(found, expected, "index {} {range:?}", index.name);
            if index.unique && !wanted.iter().any(Value::is_null) {
                let expected = model.values().find(|item| key(item) == wanted).map(Item::values);
                let found =
                    t.locate_unique(&table, index.id, &wanted).unwrap().map(|(_, values)| values);
                assert_eq!(found, expected, "index {} {wanted:?}", index.name);
            }
        }
    }

    fn load(&mut self) {
        let table = self.table();
        let has = |name: &str| table.schema().index_by_name(name).is_some();
        let policy = [OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace]
            [self.random.below(3) as usize];
        let mut load = self.store.bulk_load(&table, policy);
        let mut after = self.model.clone();
        let (many, first) =
            (self.random.below(2) == 0, 1_000 + self.random.below(1 << 17) as i64 * 16_000);
        // Rows at odd positions get the value of their even neighbour.
        let clash = self.random.below(2) == 0;
        let mut fails = false;
        for round in 0..self.random.below(4) as i64 {
            let items: Vec<Item> = match many {
                // New rows, in segments of several blocks.
                true => (0..4_000)
                    .map(|i| first + round * 4_000 + i)
                    .map(|v| {
                        item(
                            v,
                            if v % 9 == 0 { -1 } else { v / 2 * 2 + 1 },
                            "bulk",
                            if v % 2 == 0 { -1 } else { v },
                        )
                    })
                    .filter(|i| i.id % 2 == 0 || (clash && i.id % 100 == 1))
                    .collect(),
                false => (0..self.random.below(5)).map(|_| self.item()).collect(),
            };
            for item in &items {
                let mut next = after.clone();
                match policy {
                    OnDuplicate::Error => {
                        fails |= after.insert(item.id, item.clone()).is_some();
                        continue;
                    }
                    _ if many => {
                        // Too many to try one by one: these conflict only on each other's `u`.
                        continue;
                    }
                    OnDuplicate::Skip => {
                        if next.insert(item.id, item.clone()).is_none() && is_allowed(&next, &has) {
                            after = next;
                        }
                    }
                    OnDuplicate::Replace => {
                        next.retain(|_, other| match conflict(item, other) {
                            None => true,
                            Some("PRIMARY") => false,
                            Some(_) => {
                                !(has("u") && item.u.is_some() && item.u == other.u)
                                    && !(has("tag_n")
                                        && item.n.is_some()
                                        && item.n == other.n
                                        && item.tag == other.tag)
                            }
                        });
                        next.insert(item.id, item.clone());
                        after = next;
                    }
                }
            }
            if many && policy != OnDuplicate::Error {
                continue;
            }
            if let Err(e) = load.append(&batch(&items)) {
                assert!(fails && e.kind() == ErrorKind::Constraint, "{e}");
                return;
            }
        }
        fails |= !is_allowed(&after, &has);
        match load.finish() {
            Ok(_) => {
                assert!(!fails);
                self.model = after;
            }
            Err(e) => assert!(fails && e.kind() == ErrorKind::Constraint, "{e}"),
        }
    }

    /// Creates a missing index, or drops one.
    fn change_indexes(&mut self) {
        let table = self.table();
        let all = super::schema(true).indexes;
        let which = all[self.random.below(all.len() as u64) as usize].clone();
        if table.schema().index_by_name(&which.name).is_some() {
            self.store.drop_index(&table, &which.name).unwrap();
            return;
        }
        let has = |name: &str| name == which.name;
        let allowed = is_allowed(&self.model, &has);
        let made = self.store.create_index(&table, which);
        assert_eq!(made.err().map(|e| e.kind()), (!allowed).then_some(ErrorKind::Constraint));
    }
}

fn run_seed(seed: u64) {
    let keyed = !seed.is_multiple_of(4);
    let mut shape = schema(keyed);
    if seed % 3 == 1 {
        shape.sort_key = Some(KeyColumns { name: "SORT".into(), columns: vec![2] });
    }
    if seed.is_multiple_of(2) {
        shape.shard_key =
            Some(ShardKey { columns: if keyed { vec![0] } else { vec![] }, partitions: 3 });
    }
    // Most histories use many small segments covered by hash tables.
    let options = if seed.is_multiple_of(5) { options() } else { hashed() };
    let (files, store, _) = open_with(shape, options.clone());
    let mut world = World {
        files,
        options,
        store,
        model: Model::new(),
        random: Random::new(seed),
        keyed,
        next_id: 0,
    };
    let mut readers: Vec<(Transaction, Model)> = Vec::new();
    for step in 0..70 {
        let (store, table) = (world.store.clone(), world.table());
        let _context = Context(seed, step);
        match world.random.below(20) {
            0 | 1 => store.flush(&table).unwrap(),
            2 => write_snapshot(&store).unwrap(),
            3 => {
                readers.clear();
                drop((table, store));
                world.store = Store::open(host(&world.files), world.options.clone()).unwrap();
            }
            4 => readers.push((store.begin().unwrap(), world.model.clone())),
            5 => store.merge_all(&table).unwrap(),
            6 => while store.maintain().unwrap() {},
            7 | 8 => {
                for _ in 0..world.random.below(12) {
                    store.maintain().unwrap();
                }
            }
            9 => world.load(),
            10 => world.change_indexes(),
            11 if world.random.below(4) == 0 => {
                store.truncate(std::slice::from_ref(&table)).unwrap();
                world.model.clear();
            }
            12 => {
                // Add a column before all others, so that positions change but ids do not; later
                // drop it.
                let mut changed = (**table.schema()).clone();
                let id = changed.take_column_id();
                let column = Column {
                    id,
                    name: "x".into(),
                    data_type: DataType::TEXT,
                    nullable: true,
                    default: Value::Null,
                    rule: ColumnRule::Constant,
                };
                changed.insert_column(0, column);
                let mut wider = store.alter_table(&table, changed).unwrap();
                if world.random.below(2) == 0 {
                    store.flush(&wider).unwrap();
                }
                let mut changed = (**wider.schema()).clone();
                changed.remove_column(0);
                wider = store.alter_table(&wider, changed).unwrap();
                drop(wider);
            }
            _ => world.transaction(),
        }
        let reader = world.store.begin().unwrap();
        let model = world.model.clone();
        world.agree(&reader, &model);
        for (reader, then) in &readers {
            world.agree(reader, then);
        }
        if step % 10 == 9 {
            assert_eq!(world.store.check().unwrap(), Vec::<String>::new());
        }
    }
    drop(readers);
    assert_eq!(world.store.check().unwrap(), Vec::<String>::new(), "seed {seed}");
}

/// Reports the seed and step of a panic.
struct Context(u64, usize);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {} step {}", self.0, self.1);
        }
    }
}

/// The seeds to run; the environment can request more.
#[allow(clippy::disallowed_methods)]
fn seeds() -> std::ops::Range<u64> {
    let read = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first = read("NACRE_FIRST_SEED").unwrap_or(0);
    first..first + read("NACRE_SEEDS").unwrap_or(12)
}

#[test]
fn random_histories_agree_with_a_map() {
    seeds().for_each(run_seed);
}
