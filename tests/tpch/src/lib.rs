//! The tables of TPC-H, generated, and the texts of the 22 queries: what the command and the tests
//! share.

#[path = "../../../bindings/server/src/tpch/tables.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod tables;

use nacre_native::block_on;
use nacredb::{Error, OnDuplicate, Result, Session};
use std::path::Path;

/// How many queries there are.
pub const QUERIES: u32 = 22;

/// Names of the tables and the statements that make them.
pub fn tables() -> Vec<(&'static str, &'static str)> {
    tables::all(0.01).into_iter().map(|table| (table.name, table.ddl)).collect()
}

/// Makes the tables and fills them.
pub fn generate(session: &mut Session, scale: f64) -> Result<()> {
    for table in tables::all(scale) {
        block_on(session.execute(table.ddl, &[]))?;
        let mut appender = block_on(session.appender(table.name, OnDuplicate::Error))?;
        let types: Vec<_> = appender.schema().types();
        let mut batches = table.batches;
        while let Some(produced) = batches.next_batch(&types) {
            appender.append(&produced.batch)?;
        }
        block_on(appender.finish())?;
    }
    Ok(())
}

/// The same at scale 0.01, each table in one segment.
pub fn generate_small(session: &mut Session) -> Result<()> {
    generate(session, 0.01)?;
    for (name, _) in tables() {
        block_on(session.execute(&format!("optimize table {name} full"), &[]))?;
    }
    Ok(())
}

/// The numbers of the queries and their texts.
pub fn queries() -> Result<Vec<(u32, String)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("queries");
    (1..=QUERIES)
        .map(|query| Ok((query, read(&folder.join(format!("q{query:02}.sql")))?)))
        .collect()
}

/// A text file.
pub fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| Error::not_found(format!("{}: {e}", path.display())))
}
