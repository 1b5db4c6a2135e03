//! The cost that an index adds to a bulk load, and of creating it on a full table: an index over
//! text that ten rows share, over an integer, and over a double; everything in memory. `none` is
//! the load without an index.

use crate::measure::cpu_ns;
use nacre_native::{block_on, memory_host};
use nacredb::{Batch, Budget, DataType, Database, OnDuplicate, Options, VectorBuilder};
use std::sync::Arc;

const TYPES: [DataType; 5] =
    [DataType::Int64, DataType::TEXT, DataType::Int32, DataType::Float64, DataType::TEXT];

fn batch(ids: std::ops::Range<u64>, rows: u64) -> Batch {
    let count = (ids.end - ids.start) as usize;
    let mut columns: Vec<VectorBuilder> = TYPES.iter().map(|t| VectorBuilder::new(*t)).collect();
    for id in ids {
        columns[0].push_i64(id as i64);
        columns[1].push_bytes(
            format!("name {}", nacredb::hash::hash_u64(id) % (rows / 10).max(1)).as_bytes(),
        );
        columns[2].push_i64((id % 97) as i64);
        columns[3].push_f64((id % 1013) as f64 + 0.5);
        columns[4].push_bytes(format!("a note of some length about row {id}").as_bytes());
    }
    Batch::new(columns.into_iter().map(|c| Arc::new(c.finish())).collect(), count)
}

fn spent(run: impl FnOnce()) -> f64 {
    let started = cpu_ns();
    run();
    (cpu_ns() - started) as f64
}

pub fn run() {
    let number = |at: usize, default: u64| {
        std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let (rows, rounds) = (number(2, 1_000_000), number(3, 3));
    let batches: Vec<Batch> = (0..rows)
        .step_by(8_192)
        .map(|start| batch(start..(start + 8_192).min(rows), rows))
        .collect();
    let mut figures = String::new();
    let mut none = 0.0;
    for (what, column) in
        [("none", ""), ("text", "name"), ("integer", "n"), ("double", "price"), ("unique", "id, n")]
    {
        let (mut loads, mut makes) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let db = block_on(Database::open(memory_host(), Options::default()))
                .expect("a database in memory");
            let mut session = db.session();
            let unique = if what == "unique" { "unique " } else { "" };
            let keys = if column.is_empty() {
                String::new()
            } else {
                format!(", {unique}key i ({column})")
            };
            let columns = "id bigint primary key, name text, n int, price double, note text";
            block_on(session.execute(&format!("create table t ({columns}{keys})"), &[]))
                .expect("a table");
            loads.push(spent(|| {
                let mut appender =
                    block_on(session.appender("t", OnDuplicate::Error)).expect("an appender");
                batches.iter().for_each(|batch| appender.append(batch).expect("rows"));
                block_on(appender.finish()).expect("a load");
            }));
            if !column.is_empty() {
                block_on(session.execute("drop index i on t", &[])).expect("no index");
                let make = format!("create {unique}index i on t ({column})");
                makes
                    .push(spent(|| drop(block_on(session.execute(&make, &[])).expect("an index"))));
                // Include the maintenance that runs later.
                if let Some(last) = makes.last_mut() {
                    *last +=
                        spent(|| while db.maintain(Budget::Steps(64)).expect("maintenance") {});
                }
            }
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).map_or(0.0, |ns| ns / rows as f64)
        };
        let (load, make) = (median(&mut loads), median(&mut makes));
        if column.is_empty() {
            none = load;
            println!("{what:<10} load {load:>8.0} ns/row");
            figures.push_str(&format!(" none={load:.0}"));
        } else {
            println!("{what:<10} adds {:>8.0} ns/row, made later {make:>8.0} ns/row", load - none);
            figures.push_str(&format!(" {what}_adds={:.0} {what}_made={make:.0}", load - none));
        }
    }
    println!("load-indexed:{figures}");
}
