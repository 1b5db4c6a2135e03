//! Indexes compared with a map: random transactions, loads, flushes, merges, restarts, and
//! individual behaviours.

use crate::tests::{host, options};

use crate::*;
use nacre_column::{Batch, Vector};
use nacre_host::memory::MemoryStore;
use nacre_testing::column;
use nacre_types::{
    Column, DataType, ErrorKind, IndexKind, IndexSchema, KeyColumns, ShardKey, TableSchema, Value,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

mod builds;
mod exchanged;
mod floats;
mod hashes;
mod model;
mod races;

/// A row: id, unique number, tag, number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub id: i64,
    pub u: Option<i64>,
    pub tag: String,
    pub n: Option<i64>,
}

pub(super) fn item(id: i64, u: i64, tag: &str, n: i64) -> Item {
    let some = |v: i64| (v >= 0).then_some(v);
    Item { id, u: some(u), tag: tag.into(), n: some(n) }
}

impl Item {
    pub(super) fn values(&self) -> Vec<Value> {
        let or_null = |v: Option<i64>| v.map_or(Value::Null, Value::Int);
        vec![Value::Int(self.id), or_null(self.u), Value::Text(self.tag.clone()), or_null(self.n)]
    }

    pub(super) fn of(values: &[Value]) -> Item {
        let number = |v: &Value| if let Value::Int(v) = v { Some(*v) } else { None };
        let Value::Text(tag) = &values[2] else { panic!("{values:?}") };
        Item {
            id: number(&values[0]).unwrap(),
            u: number(&values[1]),
            tag: tag.clone(),
            n: number(&values[3]),
        }
    }
}

pub(super) fn index(name: &str, columns: &[u32], unique: bool) -> IndexSchema {
    IndexSchema {
        id: 0,
        name: name.into(),
        columns: columns.to_vec(),
        unique,
        kind: IndexKind::BTree,
    }
}

/// Columns 1 to 4: id, u, tag, n. Unique: u, and tag with n.
pub(super) fn schema(keyed: bool) -> TableSchema {
    let mut schema = TableSchema {
        name: "t".into(),
        columns: vec![
            column(1, "id", DataType::Int64, false),
            column(2, "u", DataType::Int32, true),
            column(3, "tag", DataType::TEXT, false),
            column(4, "n", DataType::Int64, true),
        ],
        primary_key: keyed.then(|| KeyColumns { name: "PRIMARY".into(), columns: vec![0] }),
        ..TableSchema::default()
    };
    for new in [
        index("u", &[2], true),
        index("tag_n", &[3, 4], true),
        index("by_n", &[4], false),
        index("by_tag", &[3, 2], false),
    ] {
        let id = schema.take_index_id();
        schema.indexes.push(IndexSchema { id, ..new });
    }
    schema
}

pub(super) fn batch(items: &[Item]) -> Batch {
    let rows: Vec<Vec<Value>> = items.iter().map(Item::values).collect();
    let types = [DataType::Int64, DataType::Int32, DataType::TEXT, DataType::Int64];
    Batch::from_rows(&types, &rows)
}

/// Small segments that soon reach full size, and hash tables for all of them.
pub(super) fn hashed() -> StoreOptions {
    StoreOptions { segment_rows: 24, hash_from: 0.0, ..options() }
}

pub(super) fn open(shape: TableSchema) -> (Arc<MemoryStore>, Arc<Store>, Arc<Table>) {
    open_with(shape, options())
}

pub(super) fn open_with(
    shape: TableSchema,
    options: StoreOptions,
) -> (Arc<MemoryStore>, Arc<Store>, Arc<Table>) {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options).unwrap();
    let table = store.create_table(shape).unwrap();
    (files, store, table)
}

pub(super) fn insert(store: &Arc<Store>, items: &[Item]) -> nacre_types::Result<()> {
    let mut t = store.begin()?;
    t.insert(&store.table("t").unwrap(), &batch(items))?;
    t.commit()
}

/// The rows found by an index: memory first, then segments.
pub(super) fn find(
    t: &Transaction,
    table: &Arc<Table>,
    name: &str,
    range: &KeyRange,
) -> Vec<(Item, RowLocator)> {
    let view = t.view(table);
    // Includes companion indexes, which no statement can name.
    let id = table.schema().indexes.iter().find(|index| index.name == name).unwrap().id;
    let probe = view.probe_index(id, range).unwrap();
    let (rows, locators) = probe.memory(0, probe.memory_rows(), &[0, 1, 2, 3]).unwrap();
    let mut found: Vec<_> =
        locators.into_iter().enumerate().map(|(at, l)| (Item::of(&rows.row(at)), l)).collect();
    let mut most = found.len();
    for run in &probe.runs {
        let segment = view.segment(run.segment);
        let mut rows = Vec::new();
        (0..run.len()).step_by(3).for_each(|at| rows.extend(run.in_key_order(at, 3).unwrap()));
        let mut ascending = rows.clone();
        ascending.sort_unstable();
        assert_eq!(run.ascending().unwrap(), ascending);
        let mut cursor = run.cursor().unwrap();
        let mut walked = Vec::new();
        while let Some(row) = cursor.next_row().unwrap() {
            walked.push(row);
        }
        assert_eq!(walked, ascending);
        if let Some(middle) = ascending.get(ascending.len() / 2) {
            let mut cursor = run.cursor().unwrap();
            assert_eq!(cursor.advance_to(*middle).unwrap(), Some(*middle));
            let after = ascending.iter().find(|row| **row > *middle).copied();
            assert_eq!(cursor.advance_to(*middle + 1).unwrap(), after);
        }
        most += run.len();
        for row in rows {
            let values: Vec<Value> = (0..4)
                .map(|at| match segment.columns[at] {
                    Some(stored) => segment.segment.get(stored, row as usize).unwrap(),
                    None => table.schema().columns[at].default.clone(),
                })
                .collect();
            let locator = RowLocator::Segment {
                partition: segment.partition,
                segment: segment.segment.id(),
                row,
            };
            found.push((Item::of(&values), locator));
        }
    }
    assert_eq!(probe.len(), most);
    found
}

pub(super) fn ids(found: &[(Item, RowLocator)]) -> Vec<i64> {
    let mut ids: Vec<i64> = found.iter().map(|(item, _)| item.id).collect();
    ids.sort_unstable();
    ids
}

fn by_n(n: i64) -> KeyRange {
    KeyRange::equal(vec![Value::Int(n)])
}

#[test]
fn a_row_is_found_by_an_index_wherever_it_is() {
    for keyed in [true, false] {
        let (files, store, table) = open(schema(keyed));
        let items: Vec<Item> =
            (0..50).map(|i| item(i, i, "a", if i % 5 == 0 { -1 } else { i })).collect();
        let items: Vec<Item> = items
            .into_iter()
            .map(|i| Item { n: i.n.map(|n| n % 7), tag: format!("t{}", i.id), ..i })
            .collect();
        insert(&store, &items).unwrap();
        let expected: Vec<i64> = items.iter().filter(|i| i.n == Some(3)).map(|i| i.id).collect();
        let nulls: Vec<i64> = items.iter().filter(|i| i.n.is_none()).map(|i| i.id).collect();
        let look = |store: &Arc<Store>| {
            let (t, table) = (store.begin().unwrap(), store.table("t").unwrap());
            assert_eq!(ids(&find(&t, &table, "by_n", &by_n(3))), expected);
            assert_eq!(ids(&find(&t, &table, "by_n", &KeyRange::equal(vec![Value::Null]))), nulls);
            let prefix = KeyRange::equal(vec![Value::Text("t7".into())]);
            assert_eq!(ids(&find(&t, &table, "by_tag", &prefix)), [7]);
            let range = KeyRange {
                prefix: vec![],
                low: Bound::Excluded(Value::Int(40)),
                high: Bound::Unbounded,
            };
            assert_eq!(ids(&find(&t, &table, "u", &range)), (41..50).collect::<Vec<_>>());
            assert_eq!(store.check().unwrap(), Vec::<String>::new());
        };
        look(&store);
        store.flush(&table).unwrap();
        look(&store);
        let one = insert(&store, &[item(100, 7, "x", 1)]).unwrap_err();
        assert_eq!(
            (one.kind(), one.key(), one.table(), one.sqlstate()),
            (ErrorKind::Constraint, Some("u"), Some("t"), "23505")
        );
        drop((table, store));
        let store = Store::open(host(&files), options()).unwrap();
        look(&store);
    }
}

#[test]
fn unique_values_are_refused_and_nulls_are_not() {
    for flush in [false, true] {
        let (_, store, table) = open(schema(true));
        insert(&store, &[item(1, 1, "a", 1), item(2, -1, "a", -1)]).unwrap();
        if flush {
            store.flush(&table).unwrap();
        }
        // Nulls never conflict, not even with each other.
        insert(&store, &[item(3, -1, "a", -1)]).unwrap();
        let key_of = |items: &[Item]| insert(&store, items).unwrap_err().key().map(str::to_string);
        assert_eq!(key_of(&[item(4, 1, "b", 1)]).as_deref(), Some("u"));
        assert_eq!(key_of(&[item(4, 2, "a", 1)]).as_deref(), Some("tag_n"));
        assert_eq!(key_of(&[item(1, 9, "z", 9)]).as_deref(), Some("PRIMARY"));
        // A single batch with a duplicate key.
        assert_eq!(key_of(&[item(5, 5, "c", 1), item(6, 5, "d", 1)]).as_deref(), Some("u"));
        insert(&store, &[item(5, 5, "c", 1), item(6, 6, "c", 2)]).unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_statement_may_pass_values_on_from_row_to_row() {
    for flush in [false, true] {
        let (_, store, table) = open(schema(true));
        let items: Vec<Item> = (0..20).map(|i| item(i, i, "a", i)).collect();
        insert(&store, &items).unwrap();
        if flush {
            store.flush(&table).unwrap();
        }
        let mut t = store.begin().unwrap();
        let found = find(&t, &table, "u", &KeyRange::all());
        let locators: Vec<_> = found.iter().map(|(_, l)| l.clone()).collect();
        let up: Vec<Item> = found
            .iter()
            .map(|(i, _)| Item { u: i.u.map(|u| u + 1), n: i.n.map(|n| 19 - n), ..i.clone() })
            .collect();
        t.update(&table, &locators, &batch(&up)).unwrap();
        assert_eq!(find(&t, &table, "u", &KeyRange::equal(vec![Value::Int(0)])).len(), 0);
        // A value assigned to two rows.
        let savepoint = t.savepoint();
        let found = find(&t, &table, "u", &KeyRange::all());
        let same: Vec<Item> =
            found.iter().map(|(i, _)| Item { u: Some(i.id / 2), ..i.clone() }).collect();
        let locators: Vec<_> = found.iter().map(|(_, l)| l.clone()).collect();
        assert_eq!(t.update(&table, &locators, &batch(&same)).unwrap_err().key(), Some("u"));
        t.rollback_to(savepoint);
        t.commit().unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
        let t = store.begin().unwrap();
        let mut now: Vec<Item> =
            find(&t, &table, "u", &KeyRange::all()).into_iter().map(|(i, _)| i).collect();
        now.sort_by_key(|i| i.id);
        let mut up = up;
        up.sort_by_key(|i| i.id);
        assert_eq!(now, up);
    }
}

#[test]
fn entries_go_with_the_rows_that_need_them() {
    let (_, store, table) = open(schema(true));
    let entries =
        |table: &Arc<Table>| table.indexes().iter().map(|i| i.entries(0).len()).collect::<Vec<_>>();
    let given =
        |table: &Arc<Table>| table.indexes().iter().map(|i| i.claims().len()).sum::<usize>();
    insert(&store, &[item(1, 1, "a", 1)]).unwrap();
    for n in 0..100 {
        let mut t = store.begin().unwrap();
        let (locator, _) = t.locate(&table, &[Value::Int(1)]).unwrap().unwrap();
        t.update_row(&table, &locator, &item(1, n, "b", n).values()).unwrap();
        if n % 2 == 0 { t.commit().unwrap() } else { t.rollback() }
    }
    assert_eq!(entries(&table), [1, 1, 1, 1]);
    assert_eq!(given(&table), 0);
    // An old snapshot keeps seeing the same rows.
    let old = store.begin().unwrap();
    let mut t = store.begin().unwrap();
    let (locator, _) = t.locate(&table, &[Value::Int(1)]).unwrap().unwrap();
    t.delete(&table, &[locator]).unwrap();
    t.commit().unwrap();
    assert_eq!(ids(&find(&old, &table, "u", &KeyRange::equal(vec![Value::Int(98)]))), [1]);
    drop(old);
    store.flush(&table).unwrap();
    assert_eq!(entries(&table), [0, 0, 0, 0]);
    assert_eq!(table.rowstore_size(), (0, 0));
}

#[test]
fn two_transactions_that_race_for_a_value() {
    for flush in [false, true] {
        let (_, store, table) = open(schema(true));
        insert(&store, &[item(1, 1, "a", 1)]).unwrap();
        if flush {
            store.flush(&table).unwrap();
        }
        // Two transactions assign an unused value: one waits.
        let (mut a, mut b) = (store.begin().unwrap(), store.begin().unwrap());
        a.insert(&table, &batch(&[item(2, 7, "x", 1)])).unwrap();
        let savepoint = b.savepoint();
        let error = b.insert(&table, &batch(&[item(3, 7, "y", 1)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert_eq!(b.take_blocker().map(|b| b.owner().id()), Some(a.owner().id()));
        b.rollback_to(savepoint);
        a.rollback();
        b.insert(&table, &batch(&[item(3, 7, "y", 1)])).unwrap();
        b.commit().unwrap();
        // One removes a value, the other assigns it: the second waits, and then its snapshot is too
        // old.
        let (mut a, mut b) = (store.begin().unwrap(), store.begin().unwrap());
        let (locator, _) = a.locate(&table, &[Value::Int(1)]).unwrap().unwrap();
        a.update_row(&table, &locator, &item(1, 2, "a", 1).values()).unwrap();
        let savepoint = b.savepoint();
        let error = b.insert(&table, &batch(&[item(4, 1, "z", 1)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout);
        assert_eq!(b.take_blocker().map(|b| b.owner().id()), Some(a.owner().id()));
        b.rollback_to(savepoint);
        a.commit().unwrap();
        let error = b.insert(&table, &batch(&[item(4, 1, "z", 1)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        b.rollback();
        insert(&store, &[item(4, 1, "z", 1)]).unwrap();
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn an_index_made_on_a_full_table_finds_what_was_there() {
    let mut shape = schema(true);
    shape.indexes.clear();
    let (files, store, table) = open(shape);
    insert(&store, &(0..5_000).map(|i| item(i, i, "a", i % 10)).collect::<Vec<_>>()).unwrap();
    store.flush(&table).unwrap();
    insert(&store, &(5_000..5_100).map(|i| item(i, i, "b", i % 10)).collect::<Vec<_>>()).unwrap();
    let old = store.begin().unwrap();
    let table = store.create_index(&table, index("by_n", &[4], false)).unwrap();
    let error = store.create_index(&table, index("n", &[4], true)).err().unwrap();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Constraint, Some("n")));
    let table = store.create_index(&table, index("u", &[2], true)).unwrap();
    let expected: Vec<i64> = (0..5_100).filter(|i| i % 10 == 3).collect();
    let t = store.begin().unwrap();
    assert_eq!(ids(&find(&t, &table, "by_n", &by_n(3))), expected);
    assert!(old.table("t").unwrap().schema().indexes.is_empty());
    assert_eq!(insert(&store, &[item(9_000, 17, "x", 1)]).unwrap_err().key(), Some("u"));
    drop((old, t));
    drop((table, store));
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(insert(&store, &[item(9_000, 17, "x", 1)]).unwrap_err().key(), Some("u"));
    let t = store.begin().unwrap();
    assert_eq!(ids(&find(&t, &table, "by_n", &by_n(3))), expected);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let table = store.drop_index(&table, "U").unwrap();
    insert(&store, &[item(9_000, 17, "x", 1)]).unwrap();
    assert_eq!(store.drop_index(&table, "u").err().unwrap().kind(), ErrorKind::NotFound);
    // Index ids are never reused.
    let table = store.create_index(&table, index("u", &[1], true)).unwrap();
    let ids: Vec<u32> = table.schema().indexes.iter().map(|i| i.id).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids[1] > 5, "{ids:?}");
}

#[test]
fn several_indexes_are_dropped_by_one_commit() {
    let mut shape = schema(true);
    shape.indexes.clear();
    let (files, store, table) = open(shape);
    insert(&store, &(0..100).map(|i| item(i, i, "a", i % 10)).collect::<Vec<_>>()).unwrap();
    let mut shape = schema(true);
    shape.name = "other".into();
    shape.indexes.retain(|index| index.name == "u");
    let other = store.create_table(shape).unwrap();
    let table = store.create_index(&table, index("by_n", &[4], false)).unwrap();
    let table = store.create_index(&table, index("tag_n", &[3, 4], false)).unwrap();
    let table = store.create_index(&table, index("u", &[2], true)).unwrap();
    let named = |table: &Arc<Table>, name: &str| (table.clone(), name.to_string());
    // The second one is unknown, so the first is not dropped either.
    let missing = store.drop_indexes(&[named(&table, "by_n"), named(&other, "nothing")]);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(store.table("t").unwrap().schema().index_by_name("by_n").is_some());
    let before = store.visible();
    let gone = [named(&other, "u"), named(&table, "by_n"), named(&table, "u")];
    store.drop_indexes(&gone).unwrap();
    assert_eq!(store.visible(), before + 1);
    // They are of versions that others have replaced.
    assert_eq!(store.drop_indexes(&gone).unwrap_err().kind(), ErrorKind::Conflict);
    // Column 4 leads no declared index any more, so it has a companion.
    let table = store.table("t").unwrap();
    let companion = table.schema().indexes.iter().find(|index| index.columns == [4]).unwrap();
    let expected: Vec<i64> = (0..100).filter(|i| i % 10 == 3).collect();
    let t = store.begin().unwrap();
    assert_eq!(ids(&find(&t, &table, &companion.name, &by_n(3))), expected);
    insert(&store, &[item(9_000, 17, "x", 1)]).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    drop((t, gone, table, other, store));
    let store = Store::open(host(&files), options()).unwrap();
    let names = |table: &str| -> Vec<String> {
        let table = store.table(table).unwrap();
        table.schema().declared_indexes().map(|index| index.name.clone()).collect()
    };
    assert_eq!(names("t"), ["tag_n"]);
    assert!(names("other").is_empty());
}

/// The expected contents by id.
pub(super) type Model = BTreeMap<i64, Item>;
