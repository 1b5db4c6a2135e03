//! Rows per second inserted into a new table with a primary key, in random key order and durable at
//! the end: Nacre's appender, DuckDB's appender, and SQLite with a prepared statement in one
//! transaction.

use crate::duckdb::{self, DuckDb};
use crate::measure::{Folder, Outcome, check, folder_bytes, median, open, open_sqlite, seconds};
use crate::options::Options;
use crate::people;
use nacre_native::block_on;
use nacredb::{Batch, OnDuplicate, Value};

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 1_000_000)?;
    let rounds: usize = options.get("rounds", 3)?;
    println!("{rows} rows into Nacre, DuckDB {} and SQLite, {rounds} rounds", duckdb::version()?);
    let ids: Vec<i64> = shuffled(rows);
    // Generate the rows once, outside the measured time.
    let batches: Vec<Batch> = ids
        .chunks(8_192)
        .map(|ids| people::batch(ids.iter().copied(), rows, &people::TYPES))
        .collect();
    let (mut ours, mut duck, mut lite) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let folder = Folder::new("bulk-insert")?;
        let db = open(&folder.join("nacre"), nacredb::Options::default())?;
        let mut session = db.session();
        block_on(session.execute(people::CREATE, &[]))?;
        ours.push(
            rows as f64
                / seconds(|| {
                    let mut appender = block_on(session.appender("t", OnDuplicate::Error))?;
                    batches.iter().try_for_each(|batch| appender.append(batch))?;
                    block_on(appender.finish())?;
                    Ok(())
                })?,
        );
        let counted = block_on(session.execute("select count(*) from t", &[]))?.row(0);
        if counted != [Value::Int(rows)] {
            return Err(format!("{rows} rows were inserted, there are {counted:?}").into());
        }
        check(&db)?;

        let peer = DuckDb::open(&folder.join("duckdb.db"), 2)?;
        let connection = peer.connect()?;
        connection.execute(people::CREATE)?;
        duck.push(
            rows as f64
                / seconds(|| {
                    let mut appender = connection.appender("t", &people::TYPES)?;
                    batches.iter().try_for_each(|batch| appender.append(batch))?;
                    appender.finish()
                })?,
        );

        let mut sqlite = open_sqlite(&folder.join("sqlite.db"))?;
        sqlite.execute(people::CREATE_SQLITE, [])?;
        lite.push(
            rows as f64
                / seconds(|| people::insert_sqlite(&mut sqlite, ids.iter().copied(), rows))?,
        );
        println!(
            "round {round}: nacre {:>9.0}/s   duckdb {:>9.0}/s   sqlite {:>9.0}/s   ({} bytes in Nacre's folder)",
            ours[round],
            duck[round],
            lite[round],
            folder_bytes(&folder.join("nacre"))?
        );
    }
    let (ours, duck, lite) = (median(&mut ours), median(&mut duck), median(&mut lite));
    println!("bulk-insert: ratio_duckdb={:.2} ratio_sqlite={:.2}", ours / duck, ours / lite);
    Ok(())
}

/// Returns all ids in a scattered order that is the same in every run.
pub fn shuffled(rows: i64) -> Vec<i64> {
    let mut ids: Vec<i64> = (0..rows).collect();
    ids.sort_by_cached_key(|id| nacredb::hash::hash_u64(*id as u64));
    ids
}
