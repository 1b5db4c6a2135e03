//! The cost of a bulk load into a table with a primary key that already has segments, and of
//! finding rows by that key: scattered or ascending keys, all new or half of them present, in small
//! loads and loads of a segment's size.
//!
//! Everything is in memory. `build` is a load into an empty table; the cost above it is that of
//! looking up the keys. Keys of segments are scattered over all 64 bits, so that a key is in the
//! range of every segment.

use crate::measure::cpu_ns;
use nacre_column::{Batch, Values, Vector};
use nacre_host::memory::MemoryStore;
use nacre_table::{OnDuplicate, Store, StoreOptions, Table};
use nacre_testing::{Random, column, host};
use nacre_types::hash::hash_u64;
use nacre_types::{DataType, KeyColumns, TableSchema, Value};
use std::hint::black_box;
use std::sync::Arc;

const ROUNDS: usize = 5;
const LOOKS: usize = 20_000;

/// Returns the `n`th scattered key.
fn scattered(n: usize) -> i64 {
    hash_u64(n as u64) as i64
}

fn table_in(store: &Arc<Store>, name: &str, text: bool) -> Arc<Table> {
    let data_type = if text { DataType::TEXT } else { DataType::Int64 };
    let columns = vec![column(1, "k", data_type, false), column(2, "v", DataType::Int64, false)];
    let primary_key = Some(KeyColumns { name: "PRIMARY".into(), columns: vec![0] });
    let schema = TableSchema { name: name.into(), columns, primary_key, ..TableSchema::default() };
    store.create_table(schema).expect("a table")
}

fn value(key: i64, text: bool) -> Value {
    if text { Value::Text(format!("key-{key:020}")) } else { Value::Int(key) }
}

fn batches(keys: &[i64], text: bool) -> Vec<Batch> {
    let batch = |keys: &[i64]| {
        let first = if text {
            let values: Vec<Value> = keys.iter().map(|key| value(*key, true)).collect();
            Vector::from_values(DataType::TEXT, &values)
        } else {
            Vector::new(DataType::Int64, Values::I64(keys.to_vec()), None)
        };
        let values = Vector::new(
            DataType::Int64,
            Values::I64(keys.iter().map(|key| key >> 7).collect()),
            None,
        );
        Batch::new(vec![Arc::new(first), Arc::new(values)], keys.len())
    };
    keys.chunks(8_192).map(batch).collect()
}

/// Loads rows and returns the nanoseconds taken.
#[inline(never)]
fn measured_load(
    store: &Arc<Store>,
    table: &Arc<Table>,
    batches: &[Batch],
    on_duplicate: OnDuplicate,
) -> f64 {
    let started = cpu_ns();
    let mut load = store.bulk_load(table, on_duplicate);
    batches.iter().for_each(|batch| load.append(batch).expect("rows"));
    load.finish().expect("a load");
    (cpu_ns() - started) as f64
}

#[inline(never)]
fn measured_looks(store: &Arc<Store>, table: &Arc<Table>, keys: &[Value], present: bool) -> f64 {
    let started = cpu_ns();
    for key in keys {
        let row = store.get(table, std::slice::from_ref(key), &[1]).expect("a look");
        assert_eq!(black_box(row).is_some(), present);
    }
    (cpu_ns() - started) as f64
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Measures a table of `segments` segments with `rows` rows each.
fn measure(
    name: &str,
    rows: usize,
    segments: usize,
    text: bool,
    hash_from: f64,
    rounds: usize,
) -> String {
    let options = StoreOptions {
        segment_rows: rows,
        merge_from: usize::MAX,
        hash_from,
        cache_bytes: 4 << 30,
        snapshot_bytes: u64::MAX,
        ..StoreOptions::default()
    };
    let store = Store::open(host(Arc::new(MemoryStore::new())), options).expect("a store");
    let made = |name: &str| {
        let table = table_in(&store, name, text);
        for segment in 0..segments {
            let keys: Vec<i64> = (segment * rows..(segment + 1) * rows).map(scattered).collect();
            measured_load(&store, &table, &batches(&keys, text), OnDuplicate::Error);
        }
        table
    };
    let table = made("t");
    if hash_from < f64::MAX {
        while store.maintain().expect("maintenance") {}
    }
    // Each round loads new keys, which stay for the next round: one more segment beside twelve.
    let mut next = segments * rows;
    let mut fresh = |count: usize| -> Vec<i64> {
        next += count;
        (next - count..next).map(scattered).collect()
    };
    let mut figures = String::new();
    let mut say = |what: &str, times: &mut [f64], each: usize| {
        let ns = median(times) / each as f64;
        println!("{name:<28} {what:<28} {ns:>9.0} ns");
        figures.push_str(&format!(" {what}={ns:.0}"));
    };
    let mut random = Random::new(3);
    let mut looks = |present: bool| -> Vec<Value> {
        let of = |n: u64| {
            scattered(if present {
                n as usize % (segments * rows)
            } else {
                usize::MAX - n as usize
            })
        };
        (0..LOOKS).map(|_| value(of(random.below(1 << 40)), text)).collect()
    };
    let times = |run: &mut dyn FnMut(usize) -> f64| -> Vec<f64> { (0..rounds).map(run).collect() };
    for present in [true, false] {
        let keys = looks(present);
        let what = if present { "find" } else { "miss" };
        say(what, &mut times(&mut |_| measured_looks(&store, &table, &keys, present)), LOOKS);
    }
    let mut load = |what: &str,
                    keys: &mut dyn FnMut(usize) -> Vec<i64>,
                    on_duplicate: OnDuplicate,
                    each: usize| {
        let mut run = |round: usize| {
            let batches = batches(&keys(round), text);
            measured_load(&store, &table, &batches, on_duplicate)
        };
        say(what, &mut times(&mut run), each);
    };
    load("load_small", &mut |_| fresh(1_000), OnDuplicate::Error, 1_000);
    load("load_scattered", &mut |_| fresh(rows), OnDuplicate::Error, rows);
    let ascending =
        |round: usize| (0..rows).map(|n| ((round + 1) * 1_000_000_000 + n) as i64).collect();
    load("load_ascending", &mut { ascending }, OnDuplicate::Error, rows);
    let replacing = |round: usize| {
        let old = (0..rows / 2).map(|n| scattered((n * 7 + round) % (segments * rows)));
        old.chain(fresh(rows / 2)).collect()
    };
    load("load_replacing", &mut { replacing }, OnDuplicate::Replace, rows);
    let mut build = |round: usize| {
        let keys: Vec<i64> = (0..rows).map(scattered).collect();
        let table = table_in(&store, &format!("empty{round}"), text);
        measured_load(&store, &table, &batches(&keys, text), OnDuplicate::Error)
    };
    say("build", &mut times(&mut build), rows);
    store.close().expect("closed");
    figures
}

pub fn run() {
    let number = |at: usize, default: usize| {
        std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let (rows, segments, rounds) = (number(2, 131_072), number(3, 12), number(4, ROUNDS));
    let mut figures = String::new();
    for (name, text, hash_from) in [
        ("integers", false, f64::MAX),
        ("texts", true, f64::MAX),
        ("integers, hash tables", false, 2.0),
    ] {
        let these = measure(name, rows, segments, text, hash_from, rounds);
        let prefix = name.replace(", ", "_").replace(' ', "_");
        these
            .split_whitespace()
            .for_each(|figure| figures.push_str(&format!(" {prefix}_{figure}")));
    }
    println!("load-over:{figures}");
}
