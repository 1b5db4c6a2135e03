//! sqllogictest: scripts of statements and queries with expected results.
//!
//! The format and its parser are those of the `sqllogictest` crate; values are printed, sorted and
//! hashed as in SQLite's original, so that its corpus runs too. Each script gets a database of its
//! own in memory. A script can be run in ten [`Mode`]s with the same results, which tests
//! segments, recovery, parallel execution, files that lack bytes and each strategy of scans against
//! the rowstore on one thread.

mod database;
pub mod duckdb;
mod format;
mod reasons;
mod script;
mod skip;

pub use database::Mode;
pub use reasons::Reasons;
pub use script::{CORPUS_NAMES, ENGINE, Failure, Report, Settings, run_script};

use std::path::{Path, PathBuf};

/// Files with these extensions below a path, or the path itself, sorted by name.
pub fn find_scripts(path: &Path, extensions: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(find_scripts(&path, extensions)?);
        } else if path.extension().is_some_and(|e| extensions.iter().any(|known| *known == e)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a file lists one value per line, as SQLite's corpus does, instead of one row.
pub fn is_value_wise(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "test")
}
