//! Tests of table storage as a whole: a random workload compared with a model, with flushes,
//! snapshots, bulk loads, reopening and long-lived readers; then individual behaviours.

mod absent;
mod access;
mod beside;
mod bulk_updates;
mod cache;
mod costs;
mod failed_syncs;
mod failed_work;
mod flushes;
mod follow;
mod forged;
mod gates;
mod half_done;
mod indexes;
#[cfg(feature = "loom")]
mod journal_models;
mod keyed;
mod lazy;
mod loads;
mod long_rows;
mod memory;
mod merges;
#[cfg(feature = "loom")]
mod models;
mod overtaken;
mod overtaking;
mod partitions;
mod resumed;
mod runs;
mod snapshots;
mod undurable;
mod used_up;

use crate::tests::access::write_snapshot;
use crate::*;
use nacre_column::{Batch, Vector};
use nacre_host::Host;
use nacre_host::memory::MemoryStore;
pub(crate) use nacre_testing::{Random, column};
use nacre_types::{
    Column, DataType, ErrorKind, KeyColumns, Result, ShardKey, TableSchema, Value, limits,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn host(files: &Arc<MemoryStore>) -> Host {
    nacre_testing::host(files.clone())
}

pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        segment_rows: 3_000,
        flush_bytes: usize::MAX,
        snapshot_bytes: 200_000,
        partitions: 3,
        ..StoreOptions::default()
    }
}

pub(crate) fn schema(name: &str, keyed: bool) -> TableSchema {
    TableSchema {
        id: 0,
        name: name.into(),
        columns: vec![
            column(1, "id", DataType::Int64, false),
            column(2, "tag", DataType::TEXT, false),
            column(3, "n", DataType::Int32, true),
        ],
        primary_key: keyed.then(|| KeyColumns { name: "PRIMARY".into(), columns: vec![0, 1] }),
        ..TableSchema::default()
    }
}

pub(crate) fn batch(rows: &[Vec<Value>]) -> Batch {
    Batch::from_rows(&[DataType::Int64, DataType::TEXT, DataType::Int32], rows)
}

pub(crate) fn row(id: i64, tag: &str, n: i64) -> Vec<Value> {
    vec![Value::Int(id), Value::Text(tag.into()), if n < 0 { Value::Null } else { Value::Int(n) }]
}

/// Like [`batch`], with the table's current columns. The optional column identifies the row.
fn batch_for(table: &Table, rows: &[Vec<Value>]) -> Batch {
    let mut batch = batch(rows);
    if table.schema().columns.len() == 4 {
        let extra: Vec<Value> = rows.iter().map(|r| extra_of(&r[2])).collect();
        batch.columns.push(Arc::new(Vector::from_values(DataType::Int32, &extra)));
    }
    batch
}

fn extra_of(n: &Value) -> Value {
    Value::Int(if let Value::Int(n) = n { 1_000_000 + n } else { 999_999 })
}

/// Checks and removes a row's optional column.
fn without_extra(view: &TableView, mut row: Vec<Value>) -> Vec<Value> {
    if let Some(extra) = row.get(3) {
        let default = &view.table().schema().columns[3].default;
        assert!(extra == default || *extra == extra_of(&row[2]), "{row:?}");
    }
    row.truncate(3);
    row
}

/// Adds the optional column, or drops it.
fn alter(store: &Arc<Store>, table: &Arc<Table>, step: usize) {
    let mut changed = (**table.schema()).clone();
    if changed.columns.len() == 4 {
        changed.remove_column(3);
    } else {
        let id = changed.take_column_id();
        let default = Value::Int(step as i64);
        changed.insert_column(3, Column { default, ..column(id, "x", DataType::Int32, false) });
    }
    store.alter_table(table, changed).unwrap();
}

/// All rows of a view with their locators.
pub(crate) fn scan(view: &TableView) -> Result<Vec<(Vec<Value>, RowLocator)>> {
    let mut found = Vec::new();
    for segment in view.segments() {
        let rows = segment.segment.rows();
        for start in (0..rows).step_by(limits::BLOCK_ROWS) {
            let count = limits::BLOCK_ROWS.min(rows - start);
            let schema = view.table().schema();
            let columns: Vec<Vector> = (segment.columns.iter().zip(&schema.columns))
                .map(|(stored, column)| match stored {
                    Some(stored) => segment.segment.decode(*stored, start, count),
                    None => Ok(Vector::constant(column.data_type, &column.default, count)),
                })
                .collect::<Result<_>>()?;
            for at in 0..count {
                let number = (start + at) as u32;
                if segment.deleted.as_ref().is_some_and(|d| d.contains(number)) {
                    continue;
                }
                let values = without_extra(view, columns.iter().map(|c| c.value(at)).collect());
                found.push((
                    values,
                    RowLocator::Segment {
                        partition: segment.partition,
                        segment: segment.segment.id(),
                        row: number,
                    },
                ));
            }
        }
    }
    let all: Vec<usize> = (0..view.table().schema().columns.len()).collect();
    let mut memory = view.memory(&all, true);
    while let Some((batch, locators)) = memory.next(7)? {
        for (at, locator) in locators.into_iter().enumerate() {
            found.push((without_extra(view, batch.row(at)), locator));
        }
    }
    Ok(found)
}

type Model = BTreeMap<(i64, String), i64>;

fn model_rows(model: &Model) -> Vec<Vec<Value>> {
    model.iter().map(|((id, tag), n)| row(*id, tag, *n)).collect()
}

pub(crate) fn sorted(rows: Vec<(Vec<Value>, RowLocator)>) -> Vec<Vec<Value>> {
    let mut rows: Vec<_> = rows.into_iter().map(|(values, _)| values).collect();
    rows.sort_by_key(|r| match (&r[0], &r[1]) {
        (Value::Int(id), Value::Text(tag)) => (*id, tag.clone()),
        _ => (0, String::new()),
    });
    rows
}

/// Compares what a transaction sees with the model, reporting the first difference.
fn agree(reader: &Transaction, table: &Arc<Table>, model: &Model, seed: u64, step: usize) {
    // The table as of the reader's snapshot.
    let table = &reader.table(&table.schema().name).unwrap();
    let seen = sorted(scan(&reader.view(table)).unwrap());
    let expected = model_rows(model);
    let differs = seen.iter().zip(&expected).find(|(a, b)| a != b);
    assert!(
        differs.is_none() && seen.len() == expected.len(),
        "seed {seed} step {step}: {differs:?}"
    );
    // A scan and a read by key look in different places first.
    for ((id, tag), n) in model.iter().skip(step % 7).step_by(1 + model.len() / 20) {
        let key = [Value::Int(*id), Value::Text(tag.clone())];
        let found = reader.get(table, &key, &[0, 1, 2]).unwrap();
        assert_eq!(found, Some(row(*id, tag, *n)), "seed {seed} step {step}: {key:?}");
    }
}

/// Runs one seed: random transactions on one table compared with a map, with occasional flushes,
/// snapshots of the storage, bulk loads, crashes (reopening the same files), and readers that keep
/// their snapshot.
fn run_seed(seed: u64) {
    let files = Arc::new(MemoryStore::new());
    let mut store = Store::open(host(&files), options()).unwrap();
    let mut shape = schema("t", true);
    if seed % 3 == 1 {
        shape.sort_key = Some(KeyColumns { name: "SORT".into(), columns: vec![2, 1] });
    }
    let shard_key = [None, None, Some(vec![0]), Some(vec![1, 0])][(seed % 4) as usize].clone();
    shape.shard_key = shard_key.map(|columns| ShardKey { columns, partitions: 0 });
    store.create_table(shape).unwrap();
    let mut model = Model::new();
    let mut random = Random::new(seed);
    let mut readers: Vec<(Transaction, Model)> = Vec::new();
    for step in 0..60 {
        let table = store.table("t").unwrap();
        match random.below(19) {
            0 => store.flush(&table).unwrap(),
            1 => write_snapshot(&store).unwrap(),
            2 => {
                readers.clear();
                drop(table);
                drop(store);
                store = Store::open(host(&files), options()).unwrap();
            }
            3 => readers.push((store.begin().unwrap(), model.clone())),
            12 => store.merge_all(&table).unwrap(),
            13 => while store.maintain().unwrap() {},
            // An unfinished merge continues during later steps.
            17 | 18 => {
                for _ in 0..random.below(12) {
                    store.maintain().unwrap();
                }
            }
            14 | 15 => alter(&store, &table, step),
            16 if random.below(3) == 0 => {
                store.truncate(std::slice::from_ref(&table)).unwrap();
                model.clear();
            }
            4 => bulk(&store, &table, &mut model, &mut random),
            _ => transaction(&store, &table, &mut model, &mut random),
        }
        let table = store.table("t").unwrap();
        let reader = store.begin().unwrap();
        agree(&reader, &table, &model, seed, step);
        for (reader, then) in &readers {
            agree(reader, &table, then, seed, step);
        }
        let key = (random.below(40) as i64, format!("{}", random.below(3)));
        let got =
            reader.get(&table, &[Value::Int(key.0), Value::Text(key.1.clone())], &[2]).unwrap();
        let expected = model.get(&key).map(|n| vec![row(0, "", *n)[2].clone()]);
        assert_eq!(got, expected, "seed {seed} step {step}");
    }
    drop(readers);
    assert_eq!(store.check().unwrap(), Vec::<String>::new(), "seed {seed}");
}

fn bulk(store: &Arc<Store>, table: &Arc<Table>, model: &mut Model, random: &mut Random) {
    let policy =
        [OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace][random.below(3) as usize];
    let mut load = store.bulk_load(table, policy);
    let mut after = model.clone();
    let mut fails = false;
    for _ in 0..random.below(6) {
        let rows: Vec<_> = (0..random.below(2_500))
            .map(|_| {
                row(
                    random.below(3_000) as i64,
                    &format!("{}", random.below(3)),
                    random.below(100) as i64,
                )
            })
            .collect();
        for r in &rows {
            let (Value::Int(id), Value::Text(tag), Value::Int(n)) = (&r[0], &r[1], &r[2]) else {
                continue;
            };
            let key = (*id, tag.clone());
            match policy {
                OnDuplicate::Error => fails |= after.insert(key, *n).is_some(),
                OnDuplicate::Skip => {
                    after.entry(key).or_insert(*n);
                }
                OnDuplicate::Replace => {
                    after.insert(key, *n);
                }
            }
        }
        // A duplicate within one segment is found when it is written, others at the end.
        if let Err(e) = load.append(&batch_for(table, &rows)) {
            assert!(fails && e.kind() == ErrorKind::Constraint, "{e}");
            return;
        }
    }
    match load.finish() {
        Ok(_) => {
            assert!(!fails);
            *model = after;
        }
        Err(e) => assert!(fails && e.kind() == ErrorKind::Constraint, "{e}"),
    }
}

fn transaction(store: &Arc<Store>, table: &Arc<Table>, model: &mut Model, random: &mut Random) {
    let mut transaction = store.begin().unwrap();
    let mut after = model.clone();
    for _ in 0..random.below(5) {
        let savepoint = transaction.savepoint();
        let before = after.clone();
        match random.below(3) {
            0 => {
                let rows: Vec<_> = (0..1 + random.below(8))
                    .map(|_| {
                        row(
                            random.below(40) as i64,
                            &format!("{}", random.below(3)),
                            random.below(9) as i64 - 1,
                        )
                    })
                    .collect();
                let mut duplicate = false;
                for r in &rows {
                    let (Value::Int(id), Value::Text(tag)) = (&r[0], &r[1]) else { continue };
                    let n = if let Value::Int(n) = r[2] { n } else { -1 };
                    duplicate |= after.insert((*id, tag.clone()), n).is_some();
                }
                let outcome = transaction.insert(table, &batch_for(table, &rows));
                assert_eq!(
                    outcome.as_ref().err().map(|e| e.kind()),
                    duplicate.then_some(ErrorKind::Constraint)
                );
                if duplicate {
                    transaction.rollback_to(savepoint);
                    after = before.clone();
                }
            }
            kind => {
                let limit = random.below(40) as i64;
                let found: Vec<_> = scan(&transaction.view(table))
                    .unwrap()
                    .into_iter()
                    .filter(|(values, _)| matches!(values[0], Value::Int(id) if id % 41 == limit))
                    .collect();
                let locators: Vec<_> = found.iter().map(|(_, l)| l.clone()).collect();
                let keys: Vec<_> = found
                    .iter()
                    .filter_map(|(v, _)| match (&v[0], &v[1]) {
                        (Value::Int(id), Value::Text(tag)) => Some((*id, tag.clone())),
                        _ => None,
                    })
                    .collect();
                if kind == 1 {
                    transaction.delete(table, &locators).unwrap();
                    after.retain(|k, _| !keys.contains(k));
                } else {
                    let rows: Vec<_> = keys.iter().map(|(id, tag)| row(*id, tag, 1_000)).collect();
                    transaction.update(table, &locators, &batch_for(table, &rows)).unwrap();
                    after.extend(keys.into_iter().map(|k| (k, 1_000)));
                }
            }
        }
        if random.below(4) == 0 {
            transaction.rollback_to(savepoint);
            after = before;
        }
        agree(&transaction, table, &after, 0, 0);
    }
    if random.below(4) == 0 {
        transaction.rollback();
    } else {
        transaction.commit().unwrap();
        *model = after;
    }
}

/// Number of seeds to run; the environment can request more.
#[allow(clippy::disallowed_methods)]
fn seeds() -> u64 {
    std::env::var("NACRE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(25)
}

#[test]
fn random_histories_agree_with_a_map() {
    let seeds = seeds();
    for seed in 0..seeds {
        run_seed(seed);
    }
}

pub(crate) fn open_with(rows: &[Vec<Value>]) -> (Arc<MemoryStore>, Arc<Store>, Arc<Table>) {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let mut t = store.begin().unwrap();
    t.insert(&table, &batch(rows)).unwrap();
    t.commit().unwrap();
    (files, store, table)
}

pub(crate) fn locate(t: &Transaction, table: &Arc<Table>, id: i64) -> RowLocator {
    t.locate(table, &[Value::Int(id), Value::Text("a".into())]).unwrap().unwrap().0
}

#[test]
fn first_committer_wins() {
    for flush in [false, true] {
        let (_, store, table) = open_with(&[row(1, "a", 1), row(2, "a", 2)]);
        if flush {
            store.flush(&table).unwrap();
        }
        let (mut a, mut b) = (store.begin().unwrap(), store.begin().unwrap());
        let (at_a, at_b) = (locate(&a, &table, 1), locate(&b, &table, 1));
        a.update(&table, &[at_a], &batch(&[row(1, "a", 10)])).unwrap();
        let blocked =
            b.update(&table, std::slice::from_ref(&at_b), &batch(&[row(1, "a", 20)])).unwrap_err();
        assert_eq!(blocked.kind(), ErrorKind::LockTimeout);
        assert_eq!(b.take_blocker().map(|b| b.owner().id()), Some(a.owner().id()));
        a.commit().unwrap();
        let conflict = b.update(&table, &[at_b], &batch(&[row(1, "a", 20)])).unwrap_err();
        assert_eq!(conflict.kind(), ErrorKind::Conflict);
    }
}

#[test]
fn a_move_that_is_rolled_back_causes_no_conflict() {
    let (_, store, table) = open_with(&[row(1, "a", 1)]);
    store.flush(&table).unwrap();
    let (mut a, mut b) = (store.begin().unwrap(), store.begin().unwrap());
    let (at_a, at_b) = (locate(&a, &table, 1), locate(&b, &table, 1));
    a.delete(&table, &[at_a]).unwrap();
    a.rollback();
    b.update(&table, &[at_b], &batch(&[row(1, "a", 5)])).unwrap();
    assert_eq!(sorted(scan(&b.view(&table)).unwrap()), [row(1, "a", 5)]);
    b.commit().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn flushing_under_a_writer_keeps_its_row() {
    let (files, store, table) = open_with(&[row(1, "a", 1), row(2, "a", 2)]);
    let mut writer = store.begin().unwrap();
    let at = locate(&writer, &table, 1);
    writer.update(&table, &[at], &batch(&[row(1, "a", 9)])).unwrap();
    store.flush(&table).unwrap();
    assert_eq!(table.segments().len(), 1);
    writer.commit().unwrap();
    drop(table);
    drop(store);
    let store = Store::open(host(&files), options()).unwrap();
    let table = store.table("t").unwrap();
    let reader = store.begin().unwrap();
    assert_eq!(sorted(scan(&reader.view(&table)).unwrap()), [row(1, "a", 9), row(2, "a", 2)]);
}

#[test]
fn row_numbers_stay_unique_after_reopening() {
    let files = Arc::new(MemoryStore::new());
    for round in 0..3 {
        let store = Store::open(host(&files), options()).unwrap();
        let table =
            store.table("k").map_or_else(|| store.create_table(schema("k", false)), Ok).unwrap();
        let mut t = store.begin().unwrap();
        t.insert(&table, &batch(&[row(1, "a", 1), row(1, "a", 1)])).unwrap();
        t.commit().unwrap();
        if round == 1 {
            store.flush(&table).unwrap();
        }
        let reader = store.begin().unwrap();
        assert_eq!(scan(&reader.view(&table)).unwrap().len(), 2 * (round + 1));
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_dropped_table_leaves_no_files() {
    let (files, store, table) = open_with(&[row(1, "a", 1)]);
    store.flush(&table).unwrap();
    let reader = store.begin().unwrap();
    let view = reader.view(&table);
    store.drop_table(&table).unwrap();
    store.maintain().unwrap();
    assert_eq!(scan(&view).unwrap().len(), 1, "a reader goes on");
    let mut late = store.begin().unwrap();
    assert_eq!(
        late.insert(&table, &batch(&[row(2, "a", 1)])).unwrap_err().kind(),
        ErrorKind::Conflict
    );
    drop((view, reader, late));
    store.maintain().unwrap();
    let names = nacre_host::LocalStore::list(&*files).unwrap();
    assert!(names.iter().all(|n| !n.starts_with("seg-")), "{names:?}");
}

#[test]
fn bad_rows_change_nothing() {
    let (_, store, table) = open_with(&[row(1, "a", 1)]);
    let mut t = store.begin().unwrap();
    let mut null_key = row(5, "a", 1);
    null_key[0] = Value::Null;
    assert_eq!(
        t.insert(&table, &batch(&[row(4, "a", 1), null_key])).unwrap_err().kind(),
        ErrorKind::Constraint
    );
    let mut too_large = row(5, "a", 1);
    too_large[2] = Value::Int(1 << 40);
    assert_eq!(t.insert(&table, &batch(&[too_large])).unwrap_err().kind(), ErrorKind::Type);
    assert!(!t.has_writes());
}

#[test]
fn threads_that_move_the_same_money_lose_none() {
    let accounts = 20i64;
    let rows: Vec<_> = (0..accounts).map(|id| row(id, "a", 100)).collect();
    let (_, store, table) = open_with(&rows);
    let transfer = |seed: u64| {
        let mut random = Random::new(seed);
        let mut done = 0;
        while done < 200 {
            let (from, to) =
                (random.below(accounts as u64) as i64, random.below(accounts as u64) as i64);
            if from == to {
                continue;
            }
            let mut t = store.begin().unwrap();
            let change = |t: &mut Transaction, id: i64, by: i64| -> Result<()> {
                let key = [Value::Int(id), Value::Text("a".into())];
                let (at, values) = t.locate(&table, &key)?.unwrap();
                let Value::Int(n) = values[2] else { return Ok(()) };
                t.update(&table, &[at], &batch(&[row(id, "a", n + by)])).map(drop)
            };
            let outcome = change(&mut t, from, -1).and_then(|()| change(&mut t, to, 1));
            match outcome.and_then(|()| t.commit()) {
                Ok(()) => done += 1,
                Err(e) => assert!(e.is_retryable() || e.kind() == ErrorKind::Type, "{e}"),
            }
            match done % 50 {
                0 => store.flush(&table).unwrap(),
                25 => store.merge_all(&table).unwrap(),
                _ => {}
            }
        }
    };
    #[allow(clippy::disallowed_methods)]
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3).map(|seed| scope.spawn(move || transfer(seed))).collect();
        for _ in 0..50 {
            let reader = store.begin().unwrap();
            let total: i64 = scan(&reader.view(&table))
                .unwrap()
                .iter()
                .map(|(values, _)| if let Value::Int(n) = values[2] { n } else { 0 })
                .sum();
            assert_eq!(total, accounts * 100);
        }
        workers.into_iter().for_each(|w| w.join().unwrap());
    });
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
