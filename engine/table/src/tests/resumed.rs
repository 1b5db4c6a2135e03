//! Background work and checks where threads cannot block: a step that met absent bytes is called
//! again once they were fetched, and loses nothing.

use crate::tests::{batch, row, scan, schema, sorted};
use crate::{BulkLoad, Fetched, LoadStep, OnDuplicate, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_host::{Fetch, Host, LocalFile, LocalStore, Missing};
use nacre_testing::{Absent, Call, Fixed};
use nacre_types::{Error, IndexKind, IndexSchema, Result, Value};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Waker};

/// Rows of a segment: more than a block.
const ROWS: i64 = 5_000;

fn options(merge_from: usize) -> StoreOptions {
    StoreOptions {
        segment_rows: ROWS as usize,
        cache_bytes: 0,
        flush_bytes: usize::MAX,
        snapshot_bytes: u64::MAX,
        partitions: 1,
        hash_from: 2.0,
        merge_from,
        ..StoreOptions::default()
    }
}

/// Segments, hash tables and index parts.
fn may_lack(name: &str) -> bool {
    ["seg-", "hsh-", "idx-"].iter().any(|prefix| name.starts_with(prefix))
}

fn insert(store: &Store, table: &Arc<Table>, ids: impl Iterator<Item = i64>) {
    let rows: Vec<_> = ids.map(|id| row(id, &format!("t{}", id % 7), id * 3)).collect();
    let mut transaction = store.begin().unwrap();
    transaction.insert(table, &batch(&rows)).unwrap();
    transaction.commit().unwrap();
    store.flush(table).unwrap();
}

/// Rows with keys among those of the other rounds.
fn round(store: &Store, number: i64) {
    let table = store.table("mixed").unwrap();
    insert(store, &table, (0..ROWS).map(|id| id * 4 + number));
}

/// Tables of segments whose keys are mixed, and whose keys are apart. Some have no part of an index.
fn filled() -> Arc<MemoryStore> {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(nacre_testing::host(files.clone()), options(99)).unwrap();
    store.create_table(schema("mixed", true)).unwrap();
    (0..2).for_each(|number| round(&store, number));
    let index = IndexSchema {
        id: Default::default(),
        name: "n".into(),
        columns: vec![3],
        unique: true,
        kind: IndexKind::BTree,
    };
    store.create_index(&store.table("mixed").unwrap(), index).unwrap();
    round(&store, 2);
    let apart = store.create_table(schema("apart", true)).unwrap();
    for number in 0..4 {
        insert(&store, &apart, number * ROWS..(number + 1) * ROWS);
    }
    // One whose rows are between those of the others.
    insert(&store, &apart, 4 * ROWS..4 * ROWS + 500);
    store.close().unwrap();
    files
}

/// What is done with the files, and how often absent bytes were met on the way.
#[derive(Default)]
struct Driven {
    steps: usize,
    stops: usize,
}

/// Does all background work; `between` is called after every step.
fn drive(store: &Store, files: &Absent, between: &mut dyn FnMut(usize)) -> Driven {
    let (mut driven, mut fetched) = (Driven::default(), Fetched::default());
    loop {
        match store.maintain_step() {
            Ok(false) => return driven,
            Ok(true) => {
                fetched.release();
                driven.steps += 1;
                between(driven.steps);
            }
            Err(error) => {
                assert!(store.needs_maintenance(), "work was abandoned: {error}");
                driven.stops += 1;
                fetched.resolve_now(error, files, &Fixed::default()).unwrap();
            }
        }
    }
}

fn check(store: &Store, files: &Absent) -> usize {
    let (mut check, mut fetched, mut stops) = (store.begin_check(), Fetched::default(), 0);
    loop {
        match store.check_step(&mut check) {
            Ok(true) => fetched.release(),
            Ok(false) => break,
            Err(error) => {
                stops += 1;
                fetched.resolve_now(error, files, &Fixed::default()).unwrap();
            }
        }
    }
    assert_eq!(store.end_check(check), Vec::<String>::new());
    stops
}

/// The rows of both tables.
fn contents(store: &Store) -> Vec<Vec<Vec<Value>>> {
    let view = |name| store.begin().unwrap().view(&store.table(name).unwrap());
    ["mixed", "apart"].map(|name| sorted(scan(&view(name)).unwrap())).into()
}

/// A store without threads that can block, whose files lack everything if `seed` says how.
struct Lacking {
    files: Arc<Absent>,
    seed: Option<u64>,
}

impl Lacking {
    fn new(files: Arc<MemoryStore>, seed: Option<u64>) -> Lacking {
        Lacking { files: Absent::new(files, seed.unwrap_or(0), may_lack), seed }
    }

    fn open(&self, merge_from: usize) -> Arc<Store> {
        self.files.allow();
        self.files.upload();
        let host = nacre_testing::unblocked(nacre_testing::host(self.files.clone()));
        let store = Store::open(host, options(merge_from)).unwrap();
        self.deny();
        store
    }

    fn deny(&self) {
        match self.seed {
            Some(_) => self.files.deny(100, 60),
            None => self.files.allow(),
        }
    }

    /// Lets everything be there for a call.
    fn with_all<T>(&self, call: impl FnOnce() -> T) -> T {
        self.files.allow();
        let done = call();
        self.deny();
        done
    }
}

/// Builds index parts and hash tables, merges those, then merges all segments. Returns the rows, how
/// many files were made, and how often absent bytes were met.
fn maintained(seed: Option<u64>) -> (Vec<Vec<Vec<Value>>>, u64, usize) {
    let lacking = Lacking::new(filled(), seed);
    let store = lacking.open(99);
    let mut stops = drive(&store, &lacking.files, &mut |_| {}).stops;
    // The fourth hash table of each set of keys: they are merged.
    lacking.with_all(|| {
        round(&store, 3);
        lacking.files.upload();
    });
    stops += drive(&store, &lacking.files, &mut |_| {}).stops + check(&store, &lacking.files);
    store.close().unwrap();
    drop(store);

    let store = lacking.open(2);
    let driven = drive(&store, &lacking.files, &mut |_| {});
    assert!(driven.steps > 20, "{} steps", driven.steps);
    stops += driven.stops + check(&store, &lacking.files);
    let made = store.context().files().next_number();
    (lacking.with_all(|| contents(&store)), made, stops)
}

#[test]
fn background_work_and_checks_go_on_after_absent_bytes() {
    let (rows, made, stops) = maintained(None);
    assert!(rows[0].len() == 4 * ROWS as usize && stops == 0, "{} rows", rows[0].len());
    for seed in 0..3 {
        let found = maintained(Some(seed));
        assert!(found.2 > 100, "absent bytes were met {} times", found.2);
        assert!(found.0 == rows, "seed {seed}: other rows");
        assert_eq!(found.1, made, "seed {seed}: a file was written again");
    }
}

/// Deletes rows of the table with mixed keys, one by one, and notes them.
fn delete(store: &Store, count: usize, deleted: &mut Vec<i64>) {
    let table = store.table("mixed").unwrap();
    for _ in 0..count {
        let id = (deleted.len() as i64 * 7_919) % (ROWS * 3) / 3 * 4;
        let key = [Value::Int(id), Value::Text(format!("t{}", id % 7))];
        deleted.push(id);
        let mut transaction = store.begin().unwrap();
        if let Some((locator, _)) = transaction.locate(&table, &key).unwrap() {
            transaction.delete(&table, &[locator]).unwrap();
        }
        transaction.commit().unwrap();
    }
}

fn assert_deleted(store: &Store, deleted: &[i64]) {
    let rows = &contents(store)[0];
    let gone: std::collections::HashSet<i64> = deleted.iter().copied().collect();
    let is_gone = |row: &Vec<Value>| matches!(row[0], Value::Int(id) if gone.contains(&id));
    assert!(!rows.iter().any(is_gone), "a deleted row came back");
    assert_eq!(rows.len(), 3 * ROWS as usize - gone.len());
}

#[test]
fn rows_deleted_beside_a_merge_that_misses_bytes_stay_deleted() {
    for seed in 0..3 {
        let lacking = Lacking::new(filled(), Some(seed));
        let (store, mut deleted) = (lacking.open(2), Vec::new());
        let driven = drive(&store, &lacking.files, &mut |step| {
            // Few are left to the commit, and many have a step of their own.
            let count = if step % 9 == 8 { 300 } else { 5 };
            lacking.with_all(|| delete(&store, count, &mut deleted));
        });
        let (stops, gone) = (driven.stops, deleted.len());
        assert!(stops > 20 && gone > 200, "{stops} stops, {gone} rows deleted");
        check(&store, &lacking.files);
        lacking.with_all(|| assert_deleted(&store, &deleted));
    }
}

/// Files whose fetches look whether commits can go on, and fail while a flag is set.
struct Watched {
    files: Arc<Absent>,
    store: OnceLock<Weak<Store>>,
    fails: AtomicBool,
    fetches: AtomicUsize,
}

impl LocalStore for Watched {
    fn list(&self) -> Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.files.open(name)
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.files.create(name)
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.files.remove(name)
    }
    fn note_named(&self, name: &str) {
        self.files.note_named(name);
    }
    fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        if let Some(store) = self.store.get().and_then(Weak::upgrade) {
            let is_free = store.context().commits().try_lock().is_some();
            assert!(is_free, "bytes are fetched under the commit lock");
        }
        match self.fails.load(Ordering::Relaxed) {
            true => Box::pin(std::future::ready(Err(Error::io("the network is gone")))),
            false => self.files.fetch(missing),
        }
    }
}

fn watched() -> (Arc<Watched>, Host) {
    let files = Absent::new(filled(), 1, may_lack);
    let watched = Watched {
        files,
        store: OnceLock::new(),
        fails: AtomicBool::new(false),
        fetches: AtomicUsize::new(0),
    };
    let watched = Arc::new(watched);
    (watched.clone(), nacre_testing::host(watched))
}

#[test]
fn a_merge_does_not_wait_for_bytes_under_the_commit_lock() {
    let (files, host) = watched();
    let store = Store::open(host, options(2)).unwrap();
    files.store.set(Arc::downgrade(&store)).unwrap();
    files.files.deny(100, 100);
    let mut deleted = Vec::new();
    while store.maintain().unwrap() {
        files.files.allow();
        delete(&store, 5, &mut deleted);
        files.files.deny(100, 100);
    }
    let fetches = files.fetches.load(Ordering::Relaxed);
    assert!(fetches > 10, "{fetches} fetches");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    files.files.allow();
    assert_deleted(&store, &deleted);
}

#[test]
fn background_work_whose_bytes_cannot_be_fetched_fails_and_is_retried() {
    let (files, host) = watched();
    let store = Store::open(host, options(2)).unwrap();
    files.files.deny(100, 0);
    files.fails.store(true, Ordering::Relaxed);
    let mut failures = 0;
    loop {
        match store.maintain() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                assert_eq!(error.message(), "the network is gone");
                failures += 1;
                assert!(failures < 100, "what failed is retried at once");
            }
        }
    }
    assert!(failures > 1, "{failures} failures");
    files.fails.store(false, Ordering::Relaxed);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    // A flush lets it be retried.
    let table = store.table("apart").unwrap();
    let runs = |table: &Table| table.partition(0).segments().runs().len();
    let before = runs(&table);
    files.files.allow();
    let lots = StoreOptions { flush_bytes: 1, ..options(2) };
    store.close().unwrap();
    drop((table, store));
    let store = Store::open(nacre_testing::host(files), lots).unwrap();
    while store.maintain().unwrap() {}
    let table = store.table("apart").unwrap();
    assert!(runs(&table) < before, "{} of {before} runs", runs(&table));
}

/// Uploads what the log may name, as statements of other threads do.
fn upload_named(files: &Absent) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(files.prepare().as_mut().poll(&mut context).is_ready());
}

fn finish(mut load: BulkLoad, files: &Absent) -> u64 {
    let mut fetched = Fetched::default();
    loop {
        match load.step() {
            Ok(LoadStep::Done(rows)) => return rows,
            Ok(LoadStep::More) => {}
            Ok(LoadStep::Blocked(_)) => panic!("no lock is held"),
            Err(error) => fetched.resolve_now(error, files, &Fixed::default()).unwrap(),
        }
    }
}

#[test]
fn files_can_be_written_while_others_are_uploaded() {
    for on_duplicate in [OnDuplicate::Skip, OnDuplicate::Replace] {
        let files = Absent::new(filled(), 1, may_lack);
        let absent = files.clone();
        let watched = nacre_testing::Watched::new(files.clone(), move |_, call| {
            if call == Call::Sync {
                upload_named(&absent);
            }
            Ok(())
        });
        let host = nacre_testing::unblocked(nacre_testing::host(watched));
        let store = Store::open(host, options(2)).unwrap();
        files.deny(100, 100);
        let table = store.table("mixed").unwrap();
        let mut load = store.bulk_load(&table, on_duplicate);
        // Numbers that are unique come twice, in one batch and in two.
        for number in 0..6 {
            let id = |at: i64| at * 4 + number % 4;
            let rows: Vec<_> = (0..ROWS).map(|at| row(id(at), "new", at / 2)).collect();
            load.append(&batch(&rows)).unwrap();
            upload_named(&files);
        }
        finish(load, &files);
        drive(&store, &files, &mut |_| upload_named(&files));
        assert_eq!(files.unnamed(), 0, "the store is not told that it may upload a file");
        assert!(check(&store, &files) > 10);
    }
}
