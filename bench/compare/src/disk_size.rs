//! Bytes on disk of the eight TPC-H tables, compared with DuckDB's file of the same rows, written
//! in the same run.
//!
//! Nacre: segment files after `OPTIMIZE TABLE … FULL` of each table, with their primary keys; the
//! total is the whole folder, log and snapshot included. DuckDB: the file after `CHECKPOINT`,
//! tables without primary keys, because DuckDB stores an index for each and the target is its file
//! without them.

use crate::duckdb::{self, DuckDb};
use crate::measure::{Folder, Outcome, check, folder_bytes, open};
use crate::options::Options;
use crate::tpch_data::load_both;
use nacre_native::block_on;
use std::collections::BTreeMap;

pub fn run(options: &Options) -> Outcome<()> {
    let scale: f64 = options.get("scale", 1.0)?;
    let folder = Folder::new("disk-size")?;
    let db = open(&folder.join("nacre"), nacredb::Options::default())?;
    let mut session = db.session();
    let path = folder.join("duckdb.db");
    println!("loading TPC-H at scale {scale} into Nacre and DuckDB {}", duckdb::version()?);
    let loaded;
    let per_table;
    {
        let peer = DuckDb::open(&path, 2)?;
        let connection = peer.connect()?;
        loaded = load_both(scale, &mut session, &connection)?;
        for (name, _) in &loaded {
            block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
        }
        connection.execute("checkpoint")?;
        per_table = duckdb_blocks(&connection, &loaded)?;
    }
    // Take a snapshot, after which the log is truncated.
    db.flush()?;
    while db.maintain(nacredb::Budget::Steps(16))? {}
    check(&db)?;
    let reports = db.inspect()?;
    println!(
        "{:10} {:>12} {:>15} {:>15} {:>7}",
        "table", "rows", "nacre bytes", "duckdb bytes", "ratio"
    );
    for (name, rows) in &loaded {
        let ours: u64 = reports
            .iter()
            .filter(|r| r.name == *name)
            .flat_map(|r| &r.segments)
            .map(|s| s.bytes)
            .sum();
        let theirs = per_table.get(name).copied().unwrap_or(0);
        println!(
            "{name:10} {rows:>12} {ours:>15} {theirs:>15} {:>7.2}",
            ours as f64 / theirs as f64
        );
    }
    let segments: u64 = reports.iter().flat_map(|r| &r.segments).map(|s| s.bytes).sum();
    let theirs = std::fs::metadata(&path)?.len();
    block_on(db.close())?;
    let ours = folder_bytes(&folder.join("nacre"))?;
    println!("total: nacre {ours} ({segments} in segments), duckdb {theirs}");
    println!("disk-size: ratio={:.3}", ours as f64 / theirs as f64);
    Ok(())
}

/// Returns the bytes of the blocks used by each table's columns, as reported by DuckDB. Small
/// tables share a block.
fn duckdb_blocks(
    connection: &duckdb::Connection,
    tables: &[(&'static str, u64)],
) -> Outcome<BTreeMap<&'static str, u64>> {
    let mut bytes = BTreeMap::new();
    for (name, _) in tables {
        let rows = connection.rows(&format!(
            "select count(distinct block_id) * 262144 from (select block_id from pragma_storage_info('{name}') \
             union select unnest(additional_block_ids) from pragma_storage_info('{name}')) where block_id >= 0"
        ))?;
        let value = rows.first().and_then(|r| r.first()).and_then(|v| v.as_deref()).unwrap_or("0");
        bytes.insert(*name, value.parse()?);
    }
    Ok(bytes)
}
