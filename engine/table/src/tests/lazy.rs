//! Files that are opened when they are first read: opening a database reads none, damage is told by
//! the first read and by `check`, and footers in memory are bounded.

use crate::tests::access::write_snapshot;
use crate::tests::{batch, options, row, scan, schema};
use crate::{KeyRange, Store, StoreOptions, Table};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::{ErrorKind, IndexKind, IndexSchema, Result, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A store that notes the names of the files it opens.
struct Noting {
    files: Arc<MemoryStore>,
    opened: Mutex<Vec<String>>,
}

impl Noting {
    fn new(files: &Arc<MemoryStore>) -> Arc<Noting> {
        Arc::new(Noting { files: files.clone(), opened: Mutex::default() })
    }

    /// The files in the format of segments that were opened since the last call.
    fn opened(&self) -> Vec<String> {
        let mut names = std::mem::take(&mut *self.opened.lock().unwrap());
        names.retain(|name| !name.starts_with("log-") && !name.starts_with("snap-"));
        names.retain(|name| name != "reach");
        names
    }
}

impl LocalStore for Noting {
    fn list(&self) -> Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.opened.lock().unwrap().push(name.to_string());
        self.files.open(name)
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        self.files.create(name)
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.files.remove(name)
    }
}

fn small() -> StoreOptions {
    StoreOptions { segment_rows: 20, merge_from: 99, partitions: 1, ..options() }
}

fn key(id: i64) -> [Value; 2] {
    [Value::Int(id), Value::Text(format!("t{id}"))]
}

fn insert(store: &Arc<Store>, table: &Arc<Table>, ids: std::ops::Range<i64>) {
    let rows: Vec<_> = ids.map(|id| row(id, &format!("t{id}"), id)).collect();
    let mut transaction = store.begin().unwrap();
    transaction.insert(table, &batch(&rows)).unwrap();
    transaction.commit().unwrap();
    store.flush(table).unwrap();
}

/// A database of 500 segments.
fn filled(snapshot: bool) -> Arc<MemoryStore> {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    insert(&store, &table, 0..10_000);
    assert_eq!(table.segments().len(), 500);
    if snapshot {
        write_snapshot(&store).unwrap();
    }
    files
}

#[test]
fn opening_five_hundred_segments_opens_no_file_of_them() {
    for snapshot in [false, true] {
        let files = filled(snapshot);
        let noting = Noting::new(&files);
        let store = Store::open(nacre_testing::host(noting.clone()), small()).unwrap();
        let table = store.table("t").unwrap();
        assert_eq!(noting.opened(), Vec::<String>::new(), "{snapshot}");
        assert_eq!(store.cache().opened_segments(), 0);
        assert_eq!(table.row_count_estimate(), 10_000);
        // Neither does background work that has nothing to do, nor a snapshot.
        while store.maintain().unwrap() {}
        write_snapshot(&store).unwrap();
        assert_eq!(noting.opened(), Vec::<String>::new(), "{snapshot}");
        // A row is in one segment, and its file stays open.
        for _ in 0..2 {
            assert_eq!(store.get(&table, &key(777), &[2]).unwrap(), Some(vec![Value::Int(777)]));
        }
        assert_eq!(noting.opened().len(), 1);
        // A key beyond all others is in none.
        assert_eq!(store.get(&table, &key(10_000), &[2]).unwrap(), None);
        assert_eq!(noting.opened(), Vec::<String>::new());
        assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 10_000);
        assert_eq!(noting.opened().len(), 499);
        // Rows at the end of the run open no file either.
        insert(&store, &table, 10_000..10_100);
        assert_eq!(noting.opened(), Vec::<String>::new());
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

/// Opening reads what there is, not all that ever was: the log does not describe many more files than there are.
#[test]
fn files_that_were_merged_leave_the_log() {
    let files = Arc::new(MemoryStore::new());
    let merging = StoreOptions { merge_from: 2, ..small() };
    let store = Store::open(nacre_testing::host(files.clone()), merging.clone()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let newest = || files.list().unwrap().into_iter().filter(|n| n.starts_with("snap-")).max();
    // Bytes of the newest snapshot, and of the log after it.
    let read = |store: &Arc<Store>| {
        let name = newest().unwrap();
        let at = u64::from_str_radix(&name["snap-".len()..], 16).unwrap();
        (files.open(&name).unwrap().len().unwrap(), store.log_position() - at)
    };
    let mut snapshots = Vec::new();
    for number in 0..300 {
        insert(&store, &table, number * 10..number * 10 + 10);
        while store.maintain().unwrap() {}
        snapshots.extend(newest().filter(|name| !snapshots.contains(name)));
        if let Some(name) = snapshots.last() {
            assert_eq!(Some(name), newest().as_ref(), "there is one snapshot");
            let (snapshot, log) = read(&store);
            // A round adds few files, each of some hundred bytes in the log.
            assert!(
                log < (snapshot / 2).max(32 * 1_000) + 5_000,
                "{log} after {snapshot}, {number}"
            );
        }
    }
    // Not one after each round either.
    assert!((5..=60).contains(&snapshots.len()), "{} snapshots", snapshots.len());
    let (_, log) = read(&store);
    drop((table, store));
    // What is counted goes on after the database is opened.
    let store = Store::open(nacre_testing::host(files.clone()), merging).unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(read(&store).1, log);
    for number in 300..340 {
        insert(&store, &table, number * 10..number * 10 + 10);
        while store.maintain().unwrap() {}
    }
    assert!(newest() > snapshots.pop(), "the log of before counts");
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert_eq!(table.row_count_estimate(), 3_400);
}

/// The description of a file has the bounds of its columns, so a key that is in one segment is found
/// without opening the others, and plans open some segments only, however many there are.
#[test]
fn a_plan_and_a_read_by_an_index_open_few_files() {
    let files = Arc::new(MemoryStore::new());
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    let mut shape = schema("t", true);
    let id = shape.take_index_id();
    shape.indexes.push(IndexSchema {
        id,
        name: "by_n".into(),
        columns: vec![3],
        unique: false,
        kind: IndexKind::BTree,
    });
    let table = store.create_table(shape).unwrap();
    insert(&store, &table, 0..4_000);
    write_snapshot(&store).unwrap();
    drop((table, store));

    let noting = Noting::new(&files);
    let store = Store::open(nacre_testing::host(noting.clone()), small()).unwrap();
    let table = store.table("t").unwrap();
    assert_eq!(table.segments().len(), 200);
    let summary = table.column_summary(2).unwrap().unwrap();
    assert_eq!((&summary.min, &summary.max), (&Value::Int(0), &Value::Int(3_999)));
    assert_eq!((summary.nulls, summary.distinct), (0.0, 4_000.0));
    assert_eq!(noting.opened().len(), 8);
    for n in [0, 1_234, 2_507, 3_999, 9_000] {
        let view = store.begin().unwrap().view(&table);
        let probe = view.probe_index(id, &KeyRange::equal(vec![Value::Int(n)])).unwrap();
        let rows: usize = probe.runs.iter().map(|run| run.len()).sum();
        assert_eq!(rows, usize::from(n < 4_000), "{n}");
        assert!(noting.opened().len() <= 1, "{n}");
    }
}

#[test]
fn a_log_without_contents_of_files_is_opened_as_before() {
    // Descriptions as they were written before they had contents.
    let files = filled(true);
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    assert_eq!(store.cache().opened_segments(), 0);
    for state in store.table("t").unwrap().segments().iter() {
        let mut description = crate::record::Description::of(
            crate::segments::names::FileKind::Segment,
            &state.segment,
        );
        assert!(description.known().is_some());
        description.contents = None;
        assert!(description.known().is_none());
    }
}

/// Changes a byte of a file, counted from its end.
fn damage(files: &MemoryStore, name: &str, from_end: u64) {
    let file = files.open(name).unwrap();
    let at = file.len().unwrap() - from_end;
    let mut byte = [0];
    file.read(&mut [ReadRange { offset: at, buffer: &mut byte }]).unwrap();
    file.write(at, &[byte[0] ^ 4]).unwrap();
}

#[test]
fn a_damaged_footer_is_told_by_the_first_read_and_by_check() {
    let files = filled(false);
    let table = |store: &Arc<Store>| store.table("t").unwrap();
    let name = {
        let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
        table(&store).segments()[100].segment.name().to_string()
    };
    damage(&files, &name, 60);
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    let is_told = |error: nacre_types::Error| {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(&name), "{error} does not name {name}");
    };
    let table = table(&store);
    for _ in 0..2 {
        is_told(store.get(&table, &key(2_007), &[2]).unwrap_err());
    }
    is_told(scan(&store.begin().unwrap().view(&table)).unwrap_err());
    // Rows of other segments can be read and written.
    assert_eq!(store.get(&table, &key(1_999), &[2]).unwrap(), Some(vec![Value::Int(1_999)]));
    insert(&store, &table, 10_000..10_030);
    let findings = store.check().unwrap();
    assert!(findings.iter().any(|finding| finding.contains(&name)), "{findings:?}");
    // Once it is repaired the same database reads it.
    damage(&files, &name, 60);
    assert_eq!(store.get(&table, &key(2_007), &[2]).unwrap(), Some(vec![Value::Int(2_007)]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    // Damage after the footer was read is found by `check`, which reads it again.
    damage(&files, &name, 60);
    let findings = store.check().unwrap();
    assert!(findings.iter().any(|finding| finding.contains(&name)), "{findings:?}");
}

#[test]
fn a_missing_file_is_told_when_the_database_opens() {
    let files = filled(true);
    let name = files.list().unwrap().into_iter().find(|name| name.starts_with("seg-")).unwrap();
    files.remove(&name).unwrap();
    let error = Store::open(nacre_testing::host(files), small()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains(&format!("{name} of table t is missing")), "{error}");
}

#[test]
fn a_file_that_is_lost_or_exchanged_later_is_told_by_its_first_read() {
    let files = filled(false);
    let store = Store::open(nacre_testing::host(files.clone()), small()).unwrap();
    let table = store.table("t").unwrap();
    let name_of = |at: usize| table.segments()[at].segment.name().to_string();
    let (lost, other) = (name_of(200), name_of(300));
    files.remove(&lost).unwrap();
    let is_told = |error: nacre_types::Error, what: &str| {
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(&lost) && error.message().contains(what), "{error}");
    };
    for _ in 0..2 {
        is_told(store.get(&table, &key(4_007), &[2]).unwrap_err(), "is missing");
        is_told(scan(&store.begin().unwrap().view(&table)).unwrap_err(), "is missing");
    }
    let findings = store.check().unwrap();
    assert!(findings.iter().any(|finding| finding.contains(&lost)), "{findings:?}");
    // Another valid file of the same table in its place.
    let file = files.open(&other).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read(&mut [ReadRange { offset: 0, buffer: &mut bytes }]).unwrap();
    files.create(&lost).unwrap().write(0, &bytes).unwrap();
    is_told(store.get(&table, &key(4_007), &[2]).unwrap_err(), "not");
    let findings = store.check().unwrap();
    assert!(findings.iter().any(|finding| finding.contains(&lost)), "{findings:?}");
    assert_eq!(store.get(&table, &key(6_007), &[2]).unwrap(), Some(vec![Value::Int(6_007)]));
}

#[test]
fn footers_in_memory_are_bounded() {
    let files = filled(false);
    let limit = 20_000;
    let options = StoreOptions { metadata_bytes: limit, ..small() };
    let store = Store::open(nacre_testing::host(files), options).unwrap();
    let table = store.table("t").unwrap();
    let most = AtomicUsize::new(0);
    let note = || {
        most.fetch_max(store.cache().opened_segments(), Ordering::Relaxed);
        assert!(store.cache().footer_bytes() <= limit, "{}", store.cache().footer_bytes());
    };
    for id in (0..10_000).step_by(11) {
        assert_eq!(store.get(&table, &key(id), &[2]).unwrap(), Some(vec![Value::Int(id)]));
        note();
    }
    assert_eq!(scan(&store.begin().unwrap().view(&table)).unwrap().len(), 10_000);
    note();
    store.merge_all(&table).unwrap();
    note();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let most = most.into_inner();
    assert!((2..100).contains(&most), "{most} of 500 footers in memory at once");
}

#[test]
#[allow(clippy::disallowed_methods)]
fn readers_of_evicted_footers_agree_with_writers() {
    let files = filled(false);
    let options = StoreOptions { metadata_bytes: 5_000, ..small() };
    let store = Store::open(nacre_testing::host(files), options).unwrap();
    let table = store.table("t").unwrap();
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (store, table) = (&store, &table);
            scope.spawn(move || {
                for id in (reader..10_000).step_by(7) {
                    let found = store.get(table, &key(id), &[2]).unwrap();
                    assert_eq!(found, Some(vec![Value::Int(id)]));
                }
            });
        }
        scope.spawn(|| store.merge_all(&table).unwrap());
    });
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
