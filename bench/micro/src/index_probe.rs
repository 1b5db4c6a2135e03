//! The cost of finding the segments that contain a key: Bloom filters behind an interval tree over
//! key ranges, hash tables over all segments, or a search in each segment, with few and many
//! segments, whose keys ascend or are scattered.
//!
//! The data is in memory, as are all blocks after their first read. A table has one index and no
//! primary key, so that a load looks up no keys. "Searched" is the same lookup as a range from the
//! key to itself, which uses neither filters nor hash tables. Segments are small, so that a
//! thousand of them fit in memory; more rows would add one or two steps to the search in a segment.

use crate::measure::{Work, interleaved};
use nacre_column::{Batch, Values, Vector};
use nacre_host::LocalStore;
use nacre_host::memory::MemoryStore;
use nacre_table::{KeyRange, OnDuplicate, Store, StoreOptions, Table, TableView, Transaction};
use nacre_testing::{Random, column, host};
use nacre_types::hash::hash_u64;
use nacre_types::{DataType, IndexKind, IndexSchema, TableSchema, Value};
use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

const ROWS: usize = 8_192;
const PROBES: usize = 512;

/// A table of this many segments, and the time to build it.
struct Subject {
    files: Arc<MemoryStore>,
    store: Arc<Store>,
    table: Arc<Table>,
    transaction: Transaction,
    view: TableView,
    load_ns: f64,
    hash_ns: f64,
}

fn key(scattered: bool, n: usize) -> i64 {
    // Every other number is a key.
    if scattered { (hash_u64(n as u64) >> 1) as i64 } else { 2 * n as i64 }
}

impl Subject {
    fn new(segments: usize, scattered: bool, hash_from: f64) -> Subject {
        let files = Arc::new(MemoryStore::new());
        let options = StoreOptions {
            segment_rows: ROWS,
            merge_from: usize::MAX,
            hash_from,
            cache_bytes: 1 << 30,
            snapshot_bytes: u64::MAX,
            ..StoreOptions::default()
        };
        let store = Store::open(host(files.clone()), options).expect("a store");
        let index = IndexSchema {
            id: 0,
            name: "k".into(),
            columns: vec![1],
            unique: false,
            kind: IndexKind::Hash,
        };
        let column = column(1, "k", DataType::Int64, false);
        let mut schema =
            TableSchema { name: "t".into(), columns: vec![column], ..TableSchema::default() };
        let id = schema.take_index_id();
        schema.indexes.push(IndexSchema { id, ..index });
        let table = store.create_table(schema).expect("a table");
        let started = Instant::now();
        for segment in 0..segments {
            let keys = (segment * ROWS..(segment + 1) * ROWS).map(|n| key(scattered, n)).collect();
            let vector = Arc::new(Vector::new(DataType::Int64, Values::I64(keys), None));
            let mut load = store.bulk_load(&table, OnDuplicate::Error);
            load.append(&Batch::new(vec![vector], ROWS)).expect("rows");
            load.finish().expect("a load");
        }
        let load_ns = started.elapsed().as_nanos() as f64;
        let started = Instant::now();
        while store.maintain().expect("maintenance") {}
        let hash_ns = started.elapsed().as_nanos() as f64;
        let transaction = store.begin().expect("a transaction");
        let view = transaction.view(&table);
        assert_eq!(view.segments().count(), segments);
        Subject { files, store, table, transaction, view, load_ns, hash_ns }
    }

    fn bytes(&self, prefix: &str) -> f64 {
        let names = self.files.list().expect("names");
        let length = |name: &String| {
            self.files.open(name).and_then(|file| file.len()).expect("a file") as f64
        };
        names.iter().filter(|name| name.starts_with(prefix)).map(length).sum()
    }

    /// Looks up keys that are present, or absent keys next to them.
    fn looks(&self, name: &str, scattered: bool, present: bool, as_range: bool) -> Work<'_> {
        let mut random = Random::new(11);
        let rows = (self.view.segments().count() * ROWS) as u64;
        let id = self.table.schema().indexes[0].id;
        let ranges: Vec<KeyRange> = (0..PROBES)
            .map(|_| {
                let n = random.below(rows) as usize;
                let absent =
                    if scattered { key(true, n + rows as usize) } else { key(false, n) + 1 };
                let key = Value::Int(if present { key(scattered, n) } else { absent });
                match as_range {
                    true => KeyRange {
                        prefix: vec![],
                        low: Bound::Included(key.clone()),
                        high: Bound::Included(key),
                    },
                    false => KeyRange::equal(vec![key]),
                }
            })
            .collect();
        let work = move || {
            for range in &ranges {
                let probe = self.view.probe_index(id, range).expect("a look");
                assert_eq!(probe.runs.len(), usize::from(present));
                black_box(&probe);
            }
            PROBES
        };
        (name.to_string(), Box::new(work))
    }
}

pub fn run() {
    println!(
        "{:<10} {:>8} {:>6} {:>10} {:>10} {:>10} {:>8} {:>11} {:>11} {:>11} {:>11}",
        "keys",
        "segments",
        "look",
        "filters",
        "tables",
        "searched",
        "ratio",
        "B/row seg",
        "B/row hash",
        "load ns/row",
        "hash ns/row"
    );
    let mut figures = String::new();
    for scattered in [false, true] {
        for segments in [1, 10, 100, 1_000] {
            let filtered = Subject::new(segments, scattered, f64::MAX);
            // The hidden row numbers ascend in both tables and must have hash tables in neither.
            let from = if scattered && segments > 1 { 1.5 } else { 0.0 };
            let hashed = Subject::new(segments, scattered, from);
            let table_sets = if from > 0.0 { 1.0 } else { 2.0 };
            let works = [true, false].into_iter().flat_map(|present| {
                [
                    filtered.looks("filters", scattered, present, false),
                    hashed.looks("tables", scattered, present, false),
                    filtered.looks("searched", scattered, present, true),
                ]
            });
            let times = interleaved(works.collect());
            let rows = (segments * ROWS) as f64;
            for (present, times) in [(true, &times[..3]), (false, &times[3..])] {
                let ratio = times[0].1 / times[1].1;
                println!(
                    "{:<10} {segments:>8} {:>6} {:>7.0} ns {:>7.0} ns {:>7.0} ns {ratio:>8.2} {:>11.2} {:>11.2} {:>11.0} {:>11.0}",
                    if scattered { "scattered" } else { "ascending" },
                    if present { "hit" } else { "miss" },
                    times[0].1,
                    times[1].1,
                    times[2].1,
                    hashed.bytes("seg-") / rows,
                    hashed.bytes("hsh-") / rows / table_sets,
                    hashed.load_ns / rows,
                    hashed.hash_ns / rows / table_sets,
                );
                let keys = if scattered { "scattered" } else { "ascending" };
                let look = if present { "hit" } else { "miss" };
                figures.push_str(&format!(" {keys}_{segments}_{look}={ratio:.2}"));
            }
            for subject in [filtered, hashed] {
                subject.transaction.rollback();
                drop(subject.view);
                subject.store.close().expect("closed");
            }
        }
    }
    println!("index-probe:{figures}");
}
