//! TPC-H data for the workloads: the tables and generator of the `nacre tpch` command, loaded into
//! Nacre and DuckDB.

#[allow(dead_code, reason = "the command shows progress, the workloads do not")]
#[path = "../../../bindings/server/src/tpch/tables.rs"]
mod tables;

use crate::duckdb;
use crate::measure::Outcome;
use nacre_native::block_on;
use nacredb::{Batch, DataType, OnDuplicate, Session};
use tables::{Table, all};

/// One table of the eight, by name.
pub fn table(name: &str, scale: f64) -> Outcome<Table> {
    all(scale)
        .into_iter()
        .find(|t| t.name == name)
        .ok_or_else(|| format!("TPC-H has no table {name}").into())
}

/// Returns the table without its primary key, for a peer that stores a separate index for it.
pub fn ddl_without_key(ddl: &str) -> String {
    match ddl.find(",\n  primary key") {
        Some(at) => format!("{})", &ddl[..at]),
        None => ddl.to_string(),
    }
}

/// Passes every batch of a table to `take`, in the generator's order. Returns the number of rows.
pub fn each_batch(
    table: Table,
    types: &[DataType],
    mut take: impl FnMut(&Batch) -> Outcome<()>,
) -> Outcome<u64> {
    let mut batches = table.batches;
    let mut rows = 0;
    while let Some(produced) = batches.next_batch(types) {
        take(&produced.batch)?;
        rows += produced.batch.rows as u64;
    }
    Ok(rows)
}

/// Creates all eight tables in Nacre and, from the same batches but without keys, in DuckDB.
/// Returns their names and numbers of rows.
pub fn load_both(
    scale: f64,
    session: &mut Session,
    connection: &duckdb::Connection,
) -> Outcome<Vec<(&'static str, u64)>> {
    let mut loaded = Vec::new();
    for table in all(scale) {
        let name = table.name;
        block_on(session.execute(table.ddl, &[]))?;
        connection.execute(&ddl_without_key(table.ddl))?;
        let mut ours = block_on(session.appender(name, OnDuplicate::Error))?;
        let types = ours.schema().types();
        let mut theirs = connection.appender(name, &types)?;
        let rows = each_batch(table, &types, |batch| {
            ours.append(batch)?;
            theirs.append(batch)
        })?;
        block_on(ours.finish())?;
        theirs.finish()?;
        loaded.push((name, rows));
    }
    Ok(loaded)
}
