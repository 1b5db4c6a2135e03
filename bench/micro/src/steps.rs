//! How long single steps of background work take: the flush, the snapshot and the merges after a
//! transaction that inserts many rows, and the build of an index over the merged rows; then those
//! of a bulk load of as many rows, out of the order of their keys. Everything is in memory and on
//! one thread. Another number of rows may follow.

use crate::measure::cpu_ns;
use nacre_host::memory::MemoryStore;
use nacre_table::{LoadStep, OnDuplicate, Store, StoreOptions, Table};
use nacre_testing::column;
use nacre_types::{DataType, IndexKind, IndexSchema, KeyColumns, TableSchema};
use nacredb::{Batch, VectorBuilder};
use std::sync::Arc;

const TYPES: [DataType; 5] =
    [DataType::Int64, DataType::TEXT, DataType::Int32, DataType::Float64, DataType::TEXT];

fn batch(ids: impl ExactSizeIterator<Item = u64>) -> Batch {
    let count = ids.len();
    let mut columns: Vec<VectorBuilder> = TYPES.iter().map(|t| VectorBuilder::new(*t)).collect();
    for id in ids {
        columns[0].push_i64(id as i64);
        columns[1].push_bytes(format!("name {}", nacredb::hash::hash_u64(id) % 100_000).as_bytes());
        columns[2].push_i64((id % 97) as i64);
        columns[3].push_f64((id % 1013) as f64 + 0.5);
        columns[4].push_bytes(format!("a note of some length about row {id}").as_bytes());
    }
    Batch::new(columns.into_iter().map(|c| Arc::new(c.finish())).collect(), count)
}

/// Steps until nothing is left to do, and prints their times; returns the longest, in milliseconds.
fn step(what: &str, mut next: impl FnMut() -> bool) -> f64 {
    let mut times = Vec::new();
    loop {
        let began = cpu_ns();
        let more = next();
        times.push((cpu_ns() - began) as f64 / 1e6);
        if !more {
            break;
        }
    }
    let mut slowest: Vec<(usize, f64)> = times.iter().copied().enumerate().collect();
    slowest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let over = times.iter().filter(|ms| **ms > 8.0).count();
    let sum: f64 = times.iter().sum();
    println!("{what}: {} steps, {sum:.0} ms, {over} over 8 ms", times.len());
    for (at, ms) in slowest.iter().take(8) {
        println!("  step {at}: {ms:.1} ms");
    }
    slowest.first().map_or(0.0, |(_, ms)| *ms)
}

/// Loads rows; returns the longest step.
fn load(store: &Store, table: &Arc<Table>, rows: u64) -> f64 {
    let mut load = store.bulk_load(table, OnDuplicate::Error);
    let mut given = (0..rows).step_by(2_048);
    let written = step("rows of a load", || match load.write(false).expect("a write") {
        true => true,
        false => match given.next() {
            Some(start) => {
                let ids = start as usize..(start + 2_048).min(rows) as usize;
                let ids = ids.map(|at| (at as u64 * 7_919) % rows);
                load.append(&batch(ids)).expect("rows");
                true
            }
            None => false,
        },
    });
    let ended = step("end of a load", || match load.step().expect("a step") {
        LoadStep::Done(loaded) => {
            assert_eq!(loaded, rows, "rows are loaded");
            false
        }
        LoadStep::More => true,
        LoadStep::Blocked(_) => unreachable!("the load is alone"),
    });
    written.max(ended)
}

pub fn run() {
    let rows = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let store =
        Store::open(nacre_testing::host(Arc::new(MemoryStore::new())), StoreOptions::default())
            .expect("a store in memory");
    let names = ["id", "name", "n", "price", "note"];
    let schema = TableSchema {
        id: 0,
        name: "t".into(),
        columns: (1..).zip(names).zip(TYPES).map(|((id, n), t)| column(id, n, t, false)).collect(),
        primary_key: Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] }),
        ..TableSchema::default()
    };
    let table = store.create_table(schema.clone()).expect("a table");
    let mut transaction = store.begin().expect("a transaction");
    for start in (0..rows).step_by(8_192) {
        let end = (start + 8_192).min(rows);
        let part = batch((start as usize..end as usize).map(|id| id as u64));
        transaction.insert(&table, &part).expect("rows");
    }
    transaction.commit().expect("a commit");
    let maintain = || store.maintain().expect("maintenance");
    let flushed = step("flush, snapshot and merges", maintain);
    store.merge_all(&table).expect("one segment");
    let columns = vec![table.schema().columns[1].id];
    let index =
        IndexSchema { id: 0, name: "i".into(), columns, unique: false, kind: IndexKind::BTree };
    store.create_index(&table, index).expect("an index");
    let built = step("index", maintain);
    let name = "loaded".into();
    let into = store.create_table(TableSchema { name, ..schema }).expect("a second table");
    let loaded = load(&store, &into, rows);
    let merged = step("merges of the loaded rows", maintain).max(flushed);
    println!("steps: flush_max_ms={merged:.1} index_max_ms={built:.1} load_max_ms={loaded:.1}");
}
