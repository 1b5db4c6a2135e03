//! The plans of the 22 queries over the generated tables at scale 0.01, as `EXPLAIN` prints them.
//! What they are chosen by, numbers of rows, bounds and distinct values, follows from the rows
//! alone, so they are the same everywhere.
//!
//! `NACRE_BLESS=1 cargo test -p nacre-tpch` writes them anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nacre_native::{block_on, memory_host};
use nacredb::{Database, Options};
use std::path::Path;

#[test]
fn plans_are_the_committed_ones() {
    let database = block_on(Database::open(memory_host(), Options::default())).unwrap();
    let mut session = database.session();
    nacre_tpch::generate_small(&mut session).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut changed = Vec::new();
    for (query, sql) in nacre_tpch::queries().unwrap() {
        let result = block_on(session.execute(&format!("explain {sql}"), &[])).unwrap();
        let lines: Vec<String> = result.to_rows().iter().map(|row| row[0].to_string()).collect();
        let plan = lines.join("\n") + "\n";
        let path = folder.join(format!("plans/q{query:02}.txt"));
        if std::env::var_os("NACRE_BLESS").is_some() {
            std::fs::write(&path, &plan).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if committed.replace('\r', "") != plan {
            changed.push(format!("q{query:02}\n--- now\n{plan}--- committed\n{committed}"));
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
