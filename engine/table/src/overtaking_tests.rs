//! A writer that comes between the last look of a bulk load and its stamping. The place is made sure of by a log file
//! that runs the writer when the load's record is written, which is there.

use crate::tests::{batch, host, options, row, scan, schema};
use crate::{OnDuplicate, Store};
use nacre_host::memory::MemoryStore;
use nacre_host::{LocalFile, LocalStore, ReadRange};
use nacre_types::{DataType, Result, Value};
use std::sync::{Arc, Mutex};

type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// Files in memory; the first large write to the log after the hook is set runs it.
struct Hooked(Arc<MemoryStore>, Hook);

struct HookedFile(Arc<dyn LocalFile>, Hook);

impl LocalStore for Hooked {
    fn list(&self) -> Result<Vec<String>> {
        self.0.list()
    }
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        Ok(Arc::new(HookedFile(self.0.open(name)?, self.1.clone())))
    }
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>> {
        let file = self.0.create(name)?;
        Ok(if name.starts_with("log-") { Arc::new(HookedFile(file, self.1.clone())) } else { file })
    }
    fn remove(&self, name: &str) -> Result<()> {
        self.0.remove(name)
    }
}

impl LocalFile for HookedFile {
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()> {
        self.0.read(ranges)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let hook = if bytes.len() > 1 << 20 { self.1.lock().unwrap().take() } else { None };
        if let Some(hook) = hook {
            hook();
        }
        self.0.write(offset, bytes)
    }
    fn truncate(&self, len: u64) -> Result<()> {
        self.0.truncate(len)
    }
    fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}

#[test]
fn an_update_does_not_overtake_the_load_that_replaces_its_row() {
    let hook = Hook::default();
    let files = Arc::new(MemoryStore::new());
    let mut hooked = host(&files);
    hooked.store = Arc::new(Hooked(files, hook.clone()));
    let store = Store::open(hooked, options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    // Long keys, so that the load's record is written out as soon as it is appended.
    let tag = "k".repeat(700);
    let rows = |n| batch(&(0..2_000).map(|id| row(id, &tag, n)).collect::<Vec<_>>());
    let mut t = store.begin().unwrap();
    t.insert(&table, &rows(1)).unwrap();
    t.commit().unwrap();
    let mut load = store.bulk_load(&table, OnDuplicate::Replace);
    load.append(&rows(2)).unwrap();
    let outcome = Arc::new(Mutex::new(None));
    let mut writer = store.begin().unwrap();
    let (_, at) = scan(&writer.view(&table)).unwrap().into_iter().next().unwrap();
    let changed = batch(&[row(0, &tag, 3)]);
    *hook.lock().unwrap() = Some(Box::new({
        let (table, outcome) = (table.clone(), outcome.clone());
        move || {
            let updated = writer.update(&table, &[at], &changed).map(|_| ());
            *outcome.lock().unwrap() = Some((writer, updated));
        }
    }));
    load.finish().unwrap();
    let (writer, updated) = outcome.lock().unwrap().take().expect("the record is large enough to be written at once");
    let committed = updated.and_then(|()| writer.commit());
    assert!(committed.is_err(), "the row it saw is gone");
    let reader = store.begin().unwrap();
    let seen = scan(&reader.view(&table)).unwrap();
    assert_eq!(seen.len(), 2_000, "every key once");
    assert!(seen.iter().all(|(values, _)| values[2] == row(0, "", 2)[2]));
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// A row that a load has replaced is moved by somebody who then changes nothing: what is in memory now is still newer
/// than the snapshot from before the load.
#[test]
fn a_move_does_not_make_a_loaded_row_older() {
    let store = Store::open(host(&Arc::new(MemoryStore::new())), options()).unwrap();
    let table = store.create_table(schema("t", true)).unwrap();
    let rows = |n| batch(&(0..10).map(|id| row(id, "x", n)).collect::<Vec<_>>());
    let load = |n| {
        let mut load = store.bulk_load(&table, OnDuplicate::Replace);
        load.append(&rows(n)).unwrap();
        load.finish().unwrap();
    };
    load(1);
    let mut old = store.begin().unwrap();
    let (_, seen) = scan(&old.view(&table)).unwrap().into_iter().next().unwrap();
    load(2);
    let mut mover = store.begin().unwrap();
    let (_, there) = scan(&mover.view(&table)).unwrap().into_iter().next().unwrap();
    mover.lock(&table, &[there]).unwrap();
    mover.rollback();
    let error = old.update(&table, &[seen], &batch(&[row(0, "x", 3)])).unwrap_err();
    assert_eq!(error.kind(), nacre_types::ErrorKind::Conflict, "{error}");
}

#[test]
fn a_transaction_keeps_the_name_of_a_table_that_is_being_renamed() {
    let hook = Hook::default();
    let files = Arc::new(MemoryStore::new());
    let mut hooked = host(&files);
    hooked.store = Arc::new(Hooked(files, hook.clone()));
    let store = Store::open(hooked, options()).unwrap();
    // Long defaults, so that the record is written out as soon as it is appended.
    let mut long = schema("t", true);
    let text = long.columns.iter().find(|column| column.data_type == DataType::TEXT).unwrap().clone();
    long.columns.extend((100..250).map(|id| nacre_types::Column {
        id,
        name: format!("c{id}"),
        default: Value::Text("d".repeat(10_000)),
        ..text.clone()
    }));
    let table = store.create_table(long.clone()).unwrap();
    let reader = store.begin().unwrap();
    let found = Arc::new(Mutex::new(None));
    *hook.lock().unwrap() = Some(Box::new({
        let found = found.clone();
        move || *found.lock().unwrap() = Some((reader.table("t").is_some(), reader.table("u").is_some()))
    }));
    long.id = table.id();
    store.alter_table(&table, nacre_types::TableSchema { name: "u".into(), ..long }).unwrap();
    assert_eq!(*found.lock().unwrap(), Some((true, false)));
}
