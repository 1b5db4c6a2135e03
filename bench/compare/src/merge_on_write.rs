//! `lineitem` in 100 parts, three times over, so that every row is replaced twice; then `count(*)`
//! and a sum. Once with the engine, which finds the rows that a load replaces while it writes,
//! marks them in delete bitmaps and lets its maintenance merge as always; once with
//! [`MergeOnRead`], which keeps all three versions of every row until it reads. Warm: both have
//! everything in their block caches.

use crate::measure::{Folder, Outcome, check, median, open, timed};
use crate::merge_on_read::{Answer, MergeOnRead};
use crate::options::Options;
use crate::tpch_data;
use nacre_native::block_on;
use nacredb::{Batch, Database, OnDuplicate, Session, Value, Vector, VectorBuilder};
use std::sync::Arc;

const PARTS: usize = 100;
const TIMES: i64 = 3;
/// Order key, line number and quantity: the columns that the queries read, and all that
/// merge-on-read stores.
const NEEDED: [usize; 3] = [0, 3, QUANTITY];
/// The summed column, which every replacement changes.
const QUANTITY: usize = 4;
const COUNT: &str = "select count(*) from lineitem";
const SUM: &str = "select sum(l_quantity) from lineitem";

pub fn run(options: &Options) -> Outcome<()> {
    let scale: f64 = options.get("scale", 1.0)?;
    let rounds: usize = options.get("rounds", 5)?;
    let folder = Folder::new("merge-on-write")?;
    let settings = nacredb::Options { cache_bytes: 2 << 30, ..nacredb::Options::default() };
    let db = open(&folder.join("nacre"), settings.clone())?;
    println!("loading lineitem at scale {scale} in {PARTS} parts, {TIMES} times over");
    let store = nacre_native::open_folder(&folder.join("merge-on-read"))?.store;
    let mut other = MergeOnRead::new(store, settings.cache_bytes);
    let rows = load(&db, &mut other, scale)?;
    check(&db)?;
    let mut session = db.session();
    let segments: u64 = db.inspect()?.iter().flat_map(|t| &t.segments).map(|s| s.rows).sum();
    println!(
        "{rows} rows; {segments} versions in the engine's segments, {} for merge-on-read",
        other.versions()
    );
    let mut times: [Vec<f64>; 4] = Default::default();
    for round in 0..=rounds {
        let (our_count, seconds0) = timed(|| Ok(block_on(session.execute(COUNT, &[]))?.row(0)))?;
        let (our_sum, seconds1) = timed(|| Ok(block_on(session.execute(SUM, &[]))?.row(0)))?;
        let (count, seconds2) = timed(|| other.aggregate(false))?;
        let (sum, seconds3) = timed(|| other.aggregate(true))?;
        let expected = [Value::Int(rows as i64).to_string(), decimal(sum.sum)];
        let got: Vec<String> = our_count.iter().chain(&our_sum).map(Value::to_string).collect();
        if got != expected || count != (Answer { rows, sum: 0 }) || sum.rows != rows {
            return Err(format!(
                "answers differ: {got:?}, {count:?}, {sum:?}; {rows} rows were loaded"
            )
            .into());
        }
        // The first round fills the caches.
        if round > 0 {
            let measured = [seconds0, seconds1, seconds2, seconds3];
            times.iter_mut().zip(measured).for_each(|(times, measured)| times.push(measured));
        }
    }
    let [count, sum, other_count, other_sum] = times.map(|mut times| median(&mut times) * 1e3);
    println!("{:24} {:>14} {:>14} {:>9}", "warm, ms", "merge-on-write", "merge-on-read", "speedup");
    println!("{:24} {count:>14.3} {other_count:>14.1} {:>9.1}", "count(*)", other_count / count);
    println!("{:24} {sum:>14.3} {other_sum:>14.1} {:>9.1}", "sum(l_quantity)", other_sum / sum);
    println!("merge-on-write: speedup={:.1}", (other_count + other_sum) / (count + sum));
    Ok(())
}

/// Formats hundredths as the engine prints them.
fn decimal(hundredths: i128) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Loads the parts several times, each time with every quantity increased by one. Returns the
/// number of rows.
fn load(db: &Database, other: &mut MergeOnRead, scale: f64) -> Outcome<u64> {
    let mut session = db.session();
    let mut rows = 0;
    for time in 0..TIMES {
        let table = tpch_data::table("lineitem", scale)?;
        if time == 0 {
            block_on(session.execute(table.ddl, &[]))?;
        }
        let part_rows = table.units as usize / PARTS;
        let types = block_on(session.appender("lineitem", OnDuplicate::Replace))?.schema().types();
        let mut batches = table.batches;
        let (mut part, mut in_part, mut loaded, mut parts) = (Vec::new(), 0, 0, 1);
        while let Some(produced) = batches.next_batch(&types) {
            in_part += produced.batch.rows;
            loaded += produced.batch.rows as u64;
            part.push(more(&produced.batch, time * 100));
            if in_part >= part_rows && parts < PARTS {
                load_part(&mut session, other, &std::mem::take(&mut part))?;
                (in_part, parts) = (0, parts + 1);
            }
        }
        load_part(&mut session, other, &part)?;
        rows = loaded;
    }
    // Run the maintenance that is due, which would otherwise run between the measurements.
    while db.maintain(nacredb::Budget::Steps(16))? {}
    Ok(rows)
}

/// Loads the same rows into both. The generator yields them in key order.
fn load_part(session: &mut Session, other: &mut MergeOnRead, part: &[Batch]) -> Outcome<()> {
    let mut appender = block_on(session.appender("lineitem", OnDuplicate::Replace))?;
    part.iter().try_for_each(|batch| appender.append(batch))?;
    block_on(appender.finish())?;
    let needed =
        |batch: &Batch| Batch::new(NEEDED.map(|at| batch.columns[at].clone()).to_vec(), batch.rows);
    other.load(&part.iter().map(needed).collect::<Vec<_>>())
}

/// Returns the batch with this many hundredths added to every quantity.
fn more(batch: &Batch, hundredths: i64) -> Batch {
    let quantity = &batch.columns[QUANTITY];
    let mut builder = VectorBuilder::new(quantity.data_type());
    if let nacredb::Values::I64(values) = quantity.flat().as_ref() {
        values.iter().for_each(|value| builder.push_i64(value + hundredths));
    }
    let mut columns: Vec<Arc<Vector>> = batch.columns.clone();
    columns[QUANTITY] = Arc::new(builder.finish());
    Batch::new(columns, batch.rows)
}
