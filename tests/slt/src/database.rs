//! The database a script runs on, and what is done to it behind the script's back.

use nacre_native::block_on;
use nacredb::{Database, Host, Options, QueryResult, Result, Session};
use std::collections::HashMap;

/// What happens before every statement and query. The script must not notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: rows are where the engine puts them.
    Plain,
    /// Every table is flushed: rows are read from, updated and deleted in segments.
    Flush,
    /// The database is closed and opened again: everything comes from the log and its snapshots.
    Reopen,
}

impl Mode {
    /// All of them.
    pub const ALL: [Mode; 3] = [Mode::Plain, Mode::Flush, Mode::Reopen];

    /// As it is named on the command line and in test names.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Flush => "flush",
            Mode::Reopen => "reopen",
        }
    }
}

/// A database in memory with the sessions that a script names.
pub struct TestDatabase {
    host: Host,
    database: Database,
    sessions: HashMap<String, Session>,
    mode: Mode,
}

/// Tables with a `SHARD KEY` have several partitions whatever the machine.
fn options() -> Options {
    Options { partitions: 3, ..Options::default() }
}

impl TestDatabase {
    /// An empty one.
    pub fn new(mode: Mode) -> Result<TestDatabase> {
        let host = nacre_native::memory_host();
        let database = block_on(Database::open(host.clone(), options()))?;
        Ok(TestDatabase { host, database, sessions: HashMap::new(), mode })
    }

    /// Runs a statement in a named session.
    pub fn run(&mut self, session: &str, sql: &str) -> Result<QueryResult> {
        self.disturb()?;
        let database = &self.database;
        let session = self.sessions.entry(session.to_owned()).or_insert_with(|| database.session());
        block_on(session.execute(sql, &[]))
    }

    fn disturb(&mut self) -> Result<()> {
        // Neither may happen in the middle of somebody's transaction.
        if self.sessions.values().any(Session::in_transaction) {
            return Ok(());
        }
        match self.mode {
            Mode::Plain => Ok(()),
            Mode::Flush => self.flush(),
            Mode::Reopen => self.reopen(),
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
        self.database = block_on(Database::open(self.host.clone(), options()))?;
        Ok(())
    }
}
