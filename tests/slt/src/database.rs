//! The database that a script runs on, and interference that the script must not notice.

use nacre_native::{ThreadPool, block_on};
use nacre_testing::{Absent, Slicing};
use nacredb::{Database, Host, Options, QueryResult, Result, Session};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Interference before every statement and query. Results must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None: rows stay where the engine stores them.
    Plain,
    /// Flushes every table, so that rows are read, updated and deleted in segments. Results are
    /// streamed.
    Flush,
    /// Closes and reopens the database, so that everything is recovered from the log and snapshots.
    Reopen,
    /// Flushes all tables every other time, and runs queries on several threads even for small
    /// tables. Results are streamed.
    Threads,
    /// Flushes every table, in files that lack parts of their bytes: each read may have to be
    /// repeated once they were fetched. Every other result is streamed.
    Absent,
    /// Flushes every table every other time. Statements give way after a few rows, and every other
    /// result is streamed.
    Slices,
    /// Flushes every table, and fixes how scans filter.
    Regular,
    /// The same.
    Encoded,
    /// The same.
    Group,
    /// The same.
    Index,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 10] = [
        Mode::Plain,
        Mode::Flush,
        Mode::Reopen,
        Mode::Threads,
        Mode::Absent,
        Mode::Slices,
        Mode::Regular,
        Mode::Encoded,
        Mode::Group,
        Mode::Index,
    ];

    /// Its name on the command line and in test names.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Flush => "flush",
            Mode::Reopen => "reopen",
            Mode::Threads => "threads",
            Mode::Absent => "absent",
            Mode::Slices => "slices",
            Mode::Regular => "regular",
            Mode::Encoded => "encoded",
            Mode::Group => "group",
            Mode::Index => "index",
        }
    }

    /// Whether it only fixes how scans filter.
    fn is_strategy(self) -> bool {
        matches!(self, Mode::Regular | Mode::Encoded | Mode::Group | Mode::Index)
    }
}

fn stream(session: &mut Session, sql: &str) -> Result<QueryResult> {
    block_on(async { session.stream(sql, &[]).await?.collect().await })
}

/// A database in memory with the sessions named by a script.
pub struct TestDatabase {
    host: Host,
    database: Database,
    sessions: HashMap<String, Session>,
    mode: Mode,
    /// The files that lack bytes.
    absent: Option<Arc<Absent>>,
    /// The thread that statements give way on.
    slicing: Option<Arc<Slicing>>,
    /// Whether the last statement followed a flush, or was streamed.
    is_odd: bool,
}

/// Options: several partitions for tables with a `SHARD KEY` on any machine, and one thread for
/// queries, or three in the mode with threads.
fn options(mode: Mode) -> Options {
    let options = Options { partitions: 3, threads: 1, ..Options::default() };
    match mode {
        Mode::Threads => Options { threads: 3, morsel_rows: 1, ..options },
        // Hardly any block is found in the cache.
        Mode::Absent => Options { cache_bytes: 1, ..options },
        _ => options,
    }
}

impl TestDatabase {
    /// Opens an empty database.
    pub fn new(mode: Mode) -> Result<TestDatabase> {
        let mut host = nacre_native::memory_host();
        let mut absent = None;
        if mode == Mode::Threads {
            host.parallelism = Arc::new(ThreadPool::new(3));
        }
        if mode == Mode::Absent {
            let (lacking, files) = nacre_testing::lacking(nacre_testing::reluctant(host), 1);
            (host, absent) = (lacking, Some(files));
        }
        let mut slicing = None;
        if mode == Mode::Slices {
            let (sliced, thread) = nacre_testing::slicing(host, 1);
            (host, slicing) = (sliced, Some(thread));
        }
        let database = block_on(Database::open(host.clone(), options(mode)))?;
        let sessions = HashMap::new();
        Ok(TestDatabase { host, database, sessions, mode, absent, slicing, is_odd: false })
    }

    /// Runs a statement in a named session.
    pub fn run(&mut self, session: &str, sql: &str) -> Result<QueryResult> {
        self.disturb()?;
        let session = match self.sessions.entry(session.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut session = self.database.session();
                if self.mode.is_strategy() {
                    let sql = format!("set scan_strategy = '{}'", self.mode.name());
                    block_on(session.execute(&sql, &[]))?;
                }
                place.insert(session)
            }
        };
        match self.mode {
            // Both ways of reading must return the same rows.
            Mode::Flush | Mode::Threads => stream(session, sql),
            Mode::Absent | Mode::Slices if self.is_odd => stream(session, sql),
            _ => block_on(session.execute(sql, &[])),
        }
    }

    /// How many reads met absent bytes, or how often statements gave way.
    pub fn pauses(&self) -> u64 {
        let misses = self.absent.as_ref().map_or(0, |files| files.misses());
        misses + self.slicing.as_ref().map_or(0, |thread| thread.given_way())
    }

    fn disturb(&mut self) -> Result<()> {
        // Neither is allowed while a session has an open transaction.
        if self.sessions.values().any(Session::in_transaction) {
            return Ok(());
        }
        match self.mode {
            Mode::Plain => Ok(()),
            Mode::Flush | Mode::Regular | Mode::Encoded | Mode::Group | Mode::Index => self.flush(),
            Mode::Absent => {
                self.is_odd = !self.is_odd;
                self.flush()
            }
            Mode::Reopen => self.reopen(),
            Mode::Threads | Mode::Slices => {
                self.is_odd = !self.is_odd;
                if self.is_odd { self.flush() } else { Ok(()) }
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        let mut session = self.database.session();
        let tables = block_on(session.execute("show tables", &[]))?;
        for row in 0..tables.rows() {
            let Some(name) = tables.row(row).first().map(ToString::to_string) else { continue };
            let sql = format!("optimize table \"{}\" flush", name.replace('"', "\"\""));
            block_on(session.execute(&sql, &[])).map_err(|e| e.context(sql))?;
        }
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.sessions.clear();
        block_on(self.database.close())?;
        self.database = block_on(Database::open(self.host.clone(), options(self.mode)))?;
        Ok(())
    }
}
