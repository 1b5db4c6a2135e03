//! Loads whose steps alternate with transactions, flushes and merges, compared with a model that
//! runs the load row by row at the moment it is published.

use crate::tests::access::merge;
use crate::tests::{Random, column, host, options, scan};
use crate::*;
use nacre_column::Batch;
use nacre_host::memory::MemoryStore;
use nacre_host::{Host, LocalStore};
use nacre_testing::{Call, Watched};
use nacre_types::{
    DataType, Error, ErrorKind, IndexKind, IndexSchema, KeyColumns, Result, ShardKey, TableSchema,
    Value,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The primary key, if there is one; a unique value; and a number.
type Row = (i64, Option<i64>, i64);

const POLICIES: [OnDuplicate; 3] = [OnDuplicate::Error, OnDuplicate::Skip, OnDuplicate::Replace];

/// What a table looks like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    keyed: bool,
    unique: bool,
    sorted: bool,
    partitions: u32,
}

impl Shape {
    fn of(random: &mut Random) -> Shape {
        let unique = random.percent(50);
        Shape {
            keyed: random.percent(75) || !unique,
            unique,
            sorted: random.percent(30),
            partitions: *random.pick(&[1, 1, 3]),
        }
    }

    fn schema(self) -> TableSchema {
        let key = |columns| Some(KeyColumns { name: "PRIMARY".into(), columns });
        let mut schema = TableSchema {
            name: "t".into(),
            columns: vec![
                column(1, "a", DataType::Int64, false),
                column(2, "u", DataType::Int64, true),
                column(3, "n", DataType::Int64, false),
            ],
            primary_key: if self.keyed { key(vec![0]) } else { None },
            sort_key: if self.sorted { key(vec![2]) } else { None },
            ..TableSchema::default()
        };
        if self.partitions > 1 {
            let columns = if self.keyed { vec![0] } else { Vec::new() };
            schema.shard_key = Some(ShardKey { partitions: self.partitions, columns });
        }
        if self.unique {
            let id = schema.take_index_id();
            let (name, columns, kind) = ("u".into(), vec![2], IndexKind::BTree);
            schema.indexes.push(IndexSchema { id, name, columns, unique: true, kind });
        }
        schema
    }

    fn is_same(self, a: &Row, b: &Row) -> bool {
        self.keyed && a.0 == b.0 || self.unique && a.1.is_some() && a.1 == b.1
    }

    /// Loads rows into a table one by one. `None` if one must not be there.
    fn load(self, table: &[Row], rows: &[Row], policy: OnDuplicate) -> Option<Vec<Row>> {
        let mut table = table.to_vec();
        for row in rows {
            if table.iter().any(|other| self.is_same(row, other)) {
                match policy {
                    OnDuplicate::Error => return None,
                    OnDuplicate::Skip => continue,
                    OnDuplicate::Replace => table.retain(|other| !self.is_same(row, other)),
                }
            }
            table.push(*row);
        }
        table.sort_unstable();
        Some(table)
    }
}

fn values(row: &Row) -> Vec<Value> {
    vec![Value::Int(row.0), row.1.map_or(Value::Null, Value::Int), Value::Int(row.2)]
}

fn row_of(values: &[Value]) -> Row {
    let int = |value: &Value| if let Value::Int(n) = value { Some(*n) } else { None };
    (int(&values[0]).unwrap(), int(&values[1]), int(&values[2]).unwrap())
}

fn rows_of(view: &TableView) -> Vec<Row> {
    let mut rows: Vec<Row> = scan(view).unwrap().iter().map(|(row, _)| row_of(row)).collect();
    rows.sort_unstable();
    rows
}

/// A transaction with changes.
struct Open {
    transaction: Transaction,
    /// The rows it sees.
    rows: Vec<Row>,
    changes: Vec<Change>,
}

/// The row before and the row after a change.
type Change = (Option<Row>, Option<Row>);

fn apply(rows: &mut Vec<Row>, (before, after): Change) {
    rows.retain(|row| Some(*row) != before);
    rows.extend(after);
    rows.sort_unstable();
}

/// How a load ends before it is published.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// Dropped before this call of it.
    Cancel(usize),
    /// No file of segments can be created or written to from this call of the disk on.
    Full(usize),
}

/// How a load ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Loaded,
    Refused,
    Stopped,
}

/// Calls of the disk that succeed before it is full; `usize::MAX` if it is not.
type Room = Arc<AtomicUsize>;

fn watched(files: &Arc<MemoryStore>, room: &Room) -> Host {
    let room = room.clone();
    let store = Watched::new(files.clone(), move |name, call| {
        let grows = matches!(call, Call::Create | Call::Write { .. }) && name.starts_with("seg-");
        match room.load(Ordering::Relaxed) {
            0 if grows => Err(Error::io("no space left")),
            left if grows && left < usize::MAX => {
                room.store(left - 1, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    });
    Host { store, ..host(files) }
}

struct Run {
    random: Random,
    files: Arc<MemoryStore>,
    room: Room,
    shape: Shape,
    store: Arc<Store>,
    table: Arc<Table>,
    /// Committed rows.
    model: Vec<Row>,
    open: Option<Open>,
    span: i64,
    serial: i64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed);
        let shape = Shape::of(&mut random);
        let options = StoreOptions {
            segment_rows: *random.pick(&[3, 20, 200]),
            load_rest: *random.pick(&[0, 2, 256]),
            ..options()
        };
        let (files, room) = (Arc::new(MemoryStore::new()), Room::new(usize::MAX.into()));
        let store = Store::open(watched(&files, &room), options).unwrap();
        let table = store.create_table(shape.schema()).unwrap();
        let span = *random.pick(&[30, 300]);
        let (model, open, serial) = (Vec::new(), None, 0);
        Run { random, files, room, shape, store, table, model, open, span, serial }
    }

    fn row(&mut self) -> Row {
        self.serial += 1;
        let u = self.random.percent(80).then(|| self.random.between(0, self.span));
        (self.random.between(0, self.span), u, self.serial)
    }

    /// Ends the open transaction.
    fn end(&mut self) {
        let Some(Open { transaction, changes, .. }) = self.open.take() else { return };
        if self.random.percent(70) {
            transaction.commit().unwrap();
            changes.into_iter().for_each(|change| apply(&mut self.model, change));
        } else {
            transaction.rollback();
        }
    }

    /// Changes a few rows in a transaction, which may stay open.
    fn write(&mut self) {
        if self.open.is_none() {
            let (transaction, rows) = (self.store.begin().unwrap(), self.model.clone());
            self.open = Some(Open { transaction, rows, changes: Vec::new() });
        }
        for _ in 0..1 + self.random.below(4) {
            let row = self.row();
            let Some(mut open) = self.open.take() else { return };
            let (kind, at) = (self.random.below(3), self.random.below(1 << 20) as usize);
            match open.change(&self.table, kind, at, row) {
                Ok(()) => self.open = Some(open),
                // The load or another row is in the way.
                Err(error) => {
                    let kinds =
                        [ErrorKind::Constraint, ErrorKind::Conflict, ErrorKind::LockTimeout];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    return;
                }
            }
        }
        if self.random.percent(60) {
            self.end();
        }
    }

    fn disturb(&mut self) {
        match self.random.below(10) {
            0 => self.store.flush(&self.table).unwrap(),
            1 => self.store.merge_all(&self.table).unwrap(),
            2 => drop(self.store.maintain().unwrap()),
            3 => self.end(),
            4 => {}
            _ => self.write(),
        }
    }

    /// Loads rows beside other work, to the end or until it is stopped.
    fn load(&mut self, stop: Option<Stop>) -> Ended {
        let policy = *self.random.pick(&POLICIES);
        let count = *self.random.pick(&[1, 10, 100]);
        let mut rows: Vec<Row> = (0..count).map(|_| self.row()).collect();
        if policy == OnDuplicate::Error {
            // Otherwise it seldom succeeds.
            let mut apart: Vec<Row> = Vec::new();
            for row in rows {
                let is_same = |other: &Row| self.shape.is_same(&row, other);
                if !apart.iter().chain(&self.model).any(is_same) {
                    apart.push(row);
                }
            }
            rows = apart;
        }
        let mut load = self.store.bulk_load(&self.table, policy);
        let types = self.table.schema().types();
        let (mut calls, mut room) = (0, usize::MAX);
        if let Some(Stop::Full(calls)) = stop {
            room = calls;
        }
        let mut is_cancelled = || {
            calls += 1;
            matches!(stop, Some(Stop::Cancel(at)) if at < calls)
        };
        for part in rows.chunks(1 + self.random.below(40) as usize) {
            if is_cancelled() {
                return Ended::Stopped;
            }
            let part: Vec<Vec<Value>> = part.iter().map(values).collect();
            match with_room(&self.room, &mut room, || load.append(&Batch::from_rows(&types, &part)))
            {
                Ok(()) => {}
                Err(error) if is_full(&error, stop) => return Ended::Stopped,
                Err(error) => panic!("{error}"),
            }
        }
        let mut may_fail = false;
        loop {
            let after = self.shape.load(&self.model, &rows, policy);
            may_fail |= after.is_none();
            if is_cancelled() {
                return Ended::Stopped;
            }
            match with_room(&self.room, &mut room, || load.step()) {
                Ok(LoadStep::More) => self.disturb(),
                Ok(LoadStep::Blocked(blocker)) => {
                    let open = self.open.as_ref().expect("nothing else has locks");
                    assert!(Arc::ptr_eq(blocker.owner(), open.transaction.owner()));
                    self.end();
                }
                Ok(LoadStep::Done(_)) => {
                    self.model = after.expect("the load has a key that is taken");
                    break Ended::Loaded;
                }
                Err(error) if is_full(&error, stop) => break Ended::Stopped,
                Err(error) => {
                    assert!(may_fail && error.kind() == ErrorKind::Constraint, "{error}");
                    break Ended::Refused;
                }
            }
        }
    }

    /// Every file of a segment is one of the table's: what was stopped has given its own back.
    fn check_files(&mut self) {
        self.end();
        while self.store.maintain().unwrap() {}
        let mut found = self.files.list().unwrap();
        found.retain(|name| name.starts_with("seg-"));
        found.sort_unstable();
        let states = self.table.segments();
        let mut listed: Vec<&str> = states.iter().map(|state| state.segment.name()).collect();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    fn check(&mut self) {
        let found = rows_of(&self.store.begin().unwrap().view(&self.table));
        assert!(found == self.model, "{:?}: {found:?}, not {:?}", self.shape, self.model);
        assert_eq!(self.store.check().unwrap(), Vec::<String>::new());
    }
}

impl Open {
    /// Inserts a row, or changes or deletes one that is there.
    fn change(&mut self, table: &Arc<Table>, kind: u64, at: usize, new: Row) -> Result<()> {
        let change = if kind == 0 || self.rows.is_empty() {
            self.transaction.insert_row(table, &values(&new))?;
            (None, Some(new))
        } else {
            let old = self.rows[at % self.rows.len()];
            let seen = scan(&self.transaction.view(table))?;
            let found = seen.iter().find(|(row, _)| row_of(row) == old);
            let (_, locator) = found.expect("a row that was committed is there");
            let new = (old.0, new.1, new.2);
            if kind == 1 {
                let types = table.schema().types();
                let batch = Batch::from_rows(&types, &[values(&new)]);
                self.transaction.update(table, std::slice::from_ref(locator), &batch)?;
                (Some(old), Some(new))
            } else {
                self.transaction.delete(table, std::slice::from_ref(locator))?;
                (Some(old), None)
            }
        };
        apply(&mut self.rows, change);
        self.changes.push(change);
        Ok(())
    }
}

/// Calls a load while the disk has room for this many calls.
fn with_room<T>(disk: &Room, room: &mut usize, call: impl FnOnce() -> T) -> T {
    disk.store(*room, Ordering::Relaxed);
    let called = call();
    *room = disk.swap(usize::MAX, Ordering::Relaxed);
    called
}

fn is_full(error: &Error, stop: Option<Stop>) -> bool {
    matches!(stop, Some(Stop::Full(_)))
        && error.kind() == ErrorKind::Io
        && error.message().contains("no space left")
}

#[test]
fn loads_beside_writers_agree_with_loads_row_by_row() {
    let mut loaded = 0;
    for seed in 0..400 {
        let mut run = Run::new(seed);
        for _ in 0..6 {
            (0..run.random.below(6)).for_each(|_| run.disturb());
            loaded += u32::from(run.load(None) == Ended::Loaded);
            run.end();
            run.check();
        }
    }
    assert!(loaded > 1_000, "{loaded}");
}

/// Stops one load of each run, at every point up to where it would have ended, and then loads again.
fn stop_everywhere(stop: impl Fn(usize) -> Stop) {
    let mut stopped = 0;
    for seed in 0..40 {
        for at in 0.. {
            let mut run = Run::new(seed);
            (0..6).for_each(|_| run.disturb());
            let ended = run.load(Some(stop(at)));
            run.end();
            run.check();
            run.check_files();
            if ended != Ended::Stopped {
                break;
            }
            stopped += 1;
            // Its locks are free, and the table takes rows as before.
            run.write();
            run.load(None);
            run.end();
            run.check();
        }
    }
    assert!(stopped > 200, "{stopped}");
}

#[test]
fn a_load_beside_writers_that_is_cancelled_changes_nothing() {
    stop_everywhere(Stop::Cancel);
}

#[test]
fn a_load_beside_writers_that_finds_no_space_changes_nothing() {
    stop_everywhere(Stop::Full);
}

/// Rows of one primary key with different values of another unique key are in files of their own.
#[test]
fn a_load_of_one_key_with_too_many_unique_values_is_refused() {
    let shape = Shape { keyed: true, unique: true, sorted: false, partitions: 1 };
    for policy in [OnDuplicate::Skip, OnDuplicate::Replace] {
        let files = Arc::new(MemoryStore::new());
        let store = Store::open(host(&files), options()).unwrap();
        let table = store.create_table(shape.schema()).unwrap();
        let load = |rows: i64| {
            let mut load = store.bulk_load(&table, policy);
            let rows: Vec<Vec<Value>> = (0..rows).map(|n| values(&(7, Some(n), n))).collect();
            load.append(&Batch::from_rows(&table.schema().types(), &rows))?;
            load.finish()
        };
        let refused = load(65).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
        assert!(refused.message().starts_with("more than 64 rows of a load have one primary key"));
        assert_eq!(rows_of(&store.begin().unwrap().view(&table)), []);
        assert!(files.list().unwrap().iter().all(|name| !name.starts_with("seg-")));
        assert_eq!(load(64).unwrap(), 1);
        let kept = if policy == OnDuplicate::Skip { 0 } else { 63 };
        assert_eq!(rows_of(&store.begin().unwrap().view(&table)), [(7, Some(kept), kept)]);
    }
}

/// The keys of a load that skips are in a segment, then in one that replaces it, and then the first
/// is merged away.
#[test]
fn a_key_is_skipped_as_long_as_any_segment_has_it() {
    let shape = Shape { keyed: true, unique: false, sorted: false, partitions: 1 };
    let options = StoreOptions { load_rest: 0, ..options() };
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options).unwrap();
    let table = store.create_table(shape.schema()).unwrap();
    let begin = |policy, keys: std::ops::Range<i64>| {
        let mut load = store.bulk_load(&table, policy);
        let rows: Vec<Vec<Value>> = keys.map(|key| values(&(key, None, key))).collect();
        load.append(&Batch::from_rows(&table.schema().types(), &rows)).unwrap();
        load
    };
    begin(OnDuplicate::Error, 0..9).finish().unwrap();
    let first = table.segments();
    let mut skipping = begin(OnDuplicate::Skip, 0..4);
    // Writes the file, then compares it.
    assert!((0..2).all(|_| matches!(skipping.step(), Ok(LoadStep::More))));
    begin(OnDuplicate::Replace, 0..4).finish().unwrap();
    assert!(matches!(skipping.step(), Ok(LoadStep::More)));
    merge(&store, &table, table.partition(0), &first).unwrap();
    assert_eq!(skipping.finish().unwrap(), 0);
    let keys: Vec<i64> =
        rows_of(&store.begin().unwrap().view(&table)).iter().map(|r| r.0).collect();
    assert_eq!(keys, (0..9).collect::<Vec<_>>());
}

/// What lets go of a row before one of the reads of a load.
type Release = Box<dyn FnOnce() -> Result<()> + Send>;

/// The key of a row in a segment is locked when a load meets it. Before any later read of the load, it is free, and
/// the row has moved to memory: its unique value then is no other row's.
#[test]
fn a_row_that_moves_while_a_load_meets_it_keeps_its_unique_value() {
    let mut interrupted = 0;
    for insert_at in 0..20 {
        interrupted += (0..).take_while(|reads| release_after(insert_at, *reads)).count();
    }
    assert!(interrupted > 600, "{interrupted} reads");
}

/// Runs a load that waits for a locked key, which is free after a number of its reads. Another row is inserted
/// before one of its steps. Returns whether the load reads as often until it waits.
fn release_after(insert_at: usize, reads: usize) -> bool {
    let shape = Shape { keyed: true, unique: true, sorted: false, partitions: 1 };
    let (old, new, other) = ((1, Some(7), 0), (1, Some(7), 2), (5, Some(55), 0));
    let due: Arc<Mutex<Option<(usize, Release)>>> = Arc::default();
    let (files, known) = (Arc::new(MemoryStore::new()), due.clone());
    let watched = Watched::new(files.clone(), move |name, call| {
        let is_read = matches!(call, Call::Read { .. }) && name.starts_with("seg-");
        let due = if is_read { known.lock().unwrap().take() } else { None };
        match due {
            Some((0, release)) => release()?,
            Some((left, release)) => *known.lock().unwrap() = Some((left - 1, release)),
            None => {}
        }
        Ok(())
    });
    let options = StoreOptions { cache_bytes: 0, ..options() };
    let store = Store::open(Host { store: watched, ..host(&files) }, options).unwrap();
    let table = store.create_table(shape.schema()).unwrap();
    let load = |policy, rows: &[Row]| {
        let mut load = store.bulk_load(&table, policy);
        let rows: Vec<Vec<Value>> = rows.iter().map(values).collect();
        load.append(&Batch::from_rows(&table.schema().types(), &rows)).unwrap();
        load
    };
    load(OnDuplicate::Error, &[old]).finish().unwrap();
    // Refused, but its key stays locked.
    let mut holder = store.begin().unwrap();
    holder.insert_row(&table, &values(&old)).unwrap_err();
    let release = {
        let (store, table) = (store.clone(), table.clone());
        move || {
            drop(holder);
            let mut update = store.begin()?;
            let (locator, _) = update.locate(&table, &[Value::Int(1)])?.unwrap();
            update.update_row(&table, &locator, &values(&new))?;
            update.commit().map(drop)
        }
    };
    let mut skipping =
        load(OnDuplicate::Skip, &[(1, Some(100), 1), (2, Some(7), 1), (5, Some(55), 1)]);
    *due.lock().unwrap() = Some((reads, Box::new(release)));
    let (mut was_late, mut step) = (false, 0);
    let loaded = loop {
        if step == insert_at {
            // With a key and a value that the load has, and locks, too.
            let mut writer = store.begin().unwrap();
            writer.insert_row(&table, &values(&other)).unwrap();
            writer.commit().unwrap();
        }
        step += 1;
        match skipping.step().unwrap() {
            LoadStep::More => {}
            LoadStep::Blocked(_) => {
                let (_, release) = due.lock().unwrap().take().unwrap();
                was_late = true;
                release().unwrap();
            }
            LoadStep::Done(loaded) => break loaded,
        }
    };
    let found = rows_of(&store.begin().unwrap().view(&table));
    assert_eq!((loaded, &found[..]), (0, &[new, other][..]), "after {reads} reads");
    !was_late
}
