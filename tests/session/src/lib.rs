//! Helpers for the session tests: opening databases, running statements, comparing rows as text.

use nacre_native::{ThreadPool, block_on, memory_host, open_folder};
pub use nacre_testing::Random;
use nacredb::{Database, ErrorKind, Options, QueryResult, Result, Session, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Opens a database in memory.
pub fn memory() -> Result<Database> {
    block_on(Database::open(memory_host(), options()))
}

/// Opens a database in memory whose statements use `options.threads` threads even for few rows.
pub fn threaded(options: Options) -> Result<Database> {
    let mut host = memory_host();
    host.parallelism = Arc::new(ThreadPool::new(options.threads));
    block_on(Database::open(host, Options { morsel_rows: 1, ..options }))
}

/// Opens a database in a folder.
pub fn folder(path: &Path) -> Result<Database> {
    block_on(Database::open(open_folder(path)?, options()))
}

/// Options with a short lock timeout.
pub fn options() -> Options {
    Options { lock_timeout_ms: 150, ..Options::default() }
}

/// Runs statements.
pub fn run(session: &mut Session, sql: &str) -> Result<QueryResult> {
    block_on(session.execute(sql, &[]))
}

/// Runs a statement with parameters.
pub fn run_with(session: &mut Session, sql: &str, parameters: &[Value]) -> Result<QueryResult> {
    block_on(session.execute(sql, parameters))
}

/// Rows as text, columns separated by `|`.
pub fn rows(session: &mut Session, sql: &str) -> Result<Vec<String>> {
    let rows = run(session, sql)?.to_rows();
    Ok(rows
        .iter()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"))
        .collect())
}

/// The error kind of a statement that must fail.
pub fn kind(session: &mut Session, sql: &str) -> Option<ErrorKind> {
    run(session, sql).err().map(|e| e.kind())
}

/// A temporary folder for one test, removed on drop.
pub struct Folder(PathBuf);

impl Folder {
    /// Reserves a folder that does not exist yet.
    pub fn new(name: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique =
            format!("nacre-{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        std::fs::remove_dir_all(&path).ok();
        Folder(path)
    }

    /// The path; opening a database creates the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Files whose names have this prefix.
    pub fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.0).into_iter().flatten().flatten();
        let named = |path: &PathBuf| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix))
        };
        let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(named).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
