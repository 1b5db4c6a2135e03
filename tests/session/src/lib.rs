//! Helpers for the session tests: opening databases, running statements, comparing rows as text.

mod far;

pub use far::{Far, blob_reads, cold, far_options, upload};
use nacre_native::{ThreadPool, block_on};
pub use nacre_testing::Random;
use nacre_testing::without_background;
use nacredb::{Database, ErrorKind, Host, Options, QueryResult, Result, Session, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A host in memory, without a background thread.
pub fn memory_host() -> Host {
    without_background(lacking(nacre_native::memory_host()))
}

/// A host on a folder, without a background thread.
pub fn open_folder(path: &Path) -> Result<Host> {
    nacre_native::open_folder(path).map(lacking).map(without_background)
}

/// The host, or one whose files lack parts of their bytes if `NACRE_ABSENT` is set, to a seed.
pub fn lacking(host: Host) -> Host {
    match std::env::var("NACRE_ABSENT").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => nacre_testing::lacking(host, seed).0,
        None => host,
    }
}

/// Opens a database in memory.
pub fn memory() -> Result<Database> {
    block_on(Database::open(memory_host(), options()))
}

/// Opens a database in memory whose statements use `options.threads` threads even for few rows.
pub fn threaded(options: Options) -> Result<Database> {
    let mut host = nacre_native::memory_host();
    host.parallelism = Arc::new(ThreadPool::new(options.threads));
    let host = without_background(lacking(host));
    block_on(Database::open(host, Options { morsel_rows: 1, ..options }))
}

/// Opens a database in memory with three partitions, whose statements use `threads` threads.
pub fn partitioned(threads: usize) -> Result<Database> {
    threaded(Options { partitions: 3, threads, ..Options::default() })
}

/// Opens a database in memory with a table `a` of two accounts of 100: `id`, `n`.
pub fn accounts() -> Result<Database> {
    let db = memory()?;
    run(
        &mut db.session(),
        "create table a (id int primary key, n int); insert into a values (1, 100), (2, 100)",
    )?;
    Ok(db)
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

/// Runs a statement that must wait until `unblock` has run; returns the rows it affected, or the
/// kind of its error.
pub fn blocked(
    session: &mut Session,
    sql: &str,
    unblock: impl FnOnce(),
) -> std::result::Result<u64, ErrorKind> {
    std::thread::scope(|scope| {
        let waiter =
            scope.spawn(|| run(session, sql).map(|r| r.rows_affected).map_err(|e| e.kind()));
        std::thread::sleep(Duration::from_millis(40));
        assert!(!waiter.is_finished(), "{sql} did not wait");
        unblock();
        waiter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Tables with the same rows: `t` has indexes, `p` has none, so that `p` is always scanned.
pub const TWINS: [&str; 2] = ["t", "p"];

/// Runs a statement on both twins, whose name stands for `{}`.
pub fn run_twins(session: &mut Session, sql: &str) -> Result<()> {
    TWINS.iter().try_for_each(|table| run(session, &sql.replace("{}", table)).map(drop))
}

/// Inserts rows with the ids from 0 on into both twins, in `parts` parts of `part_rows` rows each.
/// All parts but the last are flushed to segments.
pub fn fill_twins(
    session: &mut Session,
    parts: u64,
    part_rows: u64,
    mut row: impl FnMut(u64) -> String,
) -> Result<()> {
    for part in 0..parts {
        let first = part * part_rows;
        let rows: Vec<String> = (first..first + part_rows).map(&mut row).collect();
        run_twins(session, &format!("insert into {{}} values {}", rows.join(", ")))?;
        if part + 1 < parts {
            run_twins(session, "optimize table {} flush")?;
        }
    }
    Ok(())
}

/// Asserts that a query returns the same rows from both twins, whose name stands for `{t}`.
pub fn assert_twins_agree(session: &mut Session, sql: &str, when: &str) -> Result<()> {
    let mut of = |table| rows(session, &sql.replace("{t}", table));
    assert_eq!(of("t")?, of("p")?, "{sql} {when}");
    Ok(())
}

/// What `PROFILE` says about the access of each plan node.
pub struct Access(Vec<String>);

/// Profiles a statement.
pub fn access(session: &mut Session, sql: &str) -> Result<Access> {
    let result = run(session, &format!("profile {sql}"))?;
    Ok(Access(result.to_rows().iter().map(|row| row[3].to_string()).collect()))
}

impl Access {
    fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .flat_map(|text| text.split(' '))
            .filter_map(move |word| word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')))
    }

    /// Returns the names of the indexes that were used, in the order of the plan.
    pub fn indexes(&self) -> Vec<&str> {
        self.words("index").flat_map(|names| names.split(',')).collect()
    }

    /// Returns the sum of a counter over all nodes.
    pub fn sum(&self, counter: &str) -> u64 {
        self.words(counter).filter_map(|count| count.parse::<u64>().ok()).sum()
    }
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
