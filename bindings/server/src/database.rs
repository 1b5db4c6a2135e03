//! Opens and closes the database of a command, and runs statements in it.

use crate::args::DatabaseOptions;
use crate::failure::{Failure, Outcome};
use arrow_array::RecordBatch;
use nacre_blobs::{BlobOptions, EncryptionKey, open_blobs};
use nacre_native::block_on;
use nacredb::{Batch, Blobs, Budget, Database, Error, Options, QueryResult, Rows, Session};
use nacredb::{TierOptions, Value};
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

/// What to do when a URL names no database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Create one.
    Create,
    /// Fail with `not_found`.
    Refuse,
}

/// A database opened by a command.
pub struct Opened {
    database: Database,
    /// Whether the database is stored in a folder rather than in memory.
    persistent: bool,
    /// Log position when the database was opened.
    opened_at: u64,
}

impl Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Opened {
    /// Runs the flushes and merges that the command's writes have made due. Without this, a series
    /// of short commands would leave one small segment each. An error ends the maintenance but does
    /// not fail the command.
    pub fn run_maintenance(&self) {
        if self.persistent && self.log_position() != self.opened_at {
            while matches!(self.maintain(Budget::Steps(16)), Ok(true)) {}
        }
    }
}

/// Opens the database at a URL, beside a process that may be writing it if it is only read. Then it
/// must exist.
pub fn open_to(url: &str, missing: Missing, read_only: bool, options: Options) -> Outcome<Opened> {
    let read_only = read_only || options.as_of.is_some();
    let missing = if read_only { Missing::Refuse } else { missing };
    open(url, missing, Options { read_only, ..options })
}

/// How long the client of a blob store repeats a call by itself: the engine repeats it as well.
const RETRY_FOR: Duration = Duration::from_secs(1);

/// The engine's options for those of the command line.
pub fn options_of(options: &DatabaseOptions) -> Outcome<Options> {
    let default = Options::default();
    let memory_bytes = options.memory.unwrap_or(default.memory_bytes);
    let blobs = match &options.blobs {
        Some(url) => {
            let blobs = blobs_at(url, options.blob_key.as_deref())?;
            let tiers = blobs.options.clone();
            let disk_limit = options.disk_limit.map_or(tiers.disk_limit, |bytes| bytes as u64);
            let holds_commits = options.hold_commits;
            Some(Blobs { options: TierOptions { disk_limit, holds_commits, ..tiers }, ..blobs })
        }
        None => None,
    };
    Ok(Options { memory_bytes, blobs, as_of: options.as_of, ..default })
}

/// The blobs at a URL, encrypted with the key in a file, if there is one.
pub fn blobs_at(url: &str, key: Option<&Path>) -> Outcome<Blobs> {
    let encryption_key = key.map(key_in).transpose()?;
    let client = BlobOptions { retry_for: RETRY_FOR, encryption_key, ..BlobOptions::default() };
    Ok(Blobs::new(open_blobs(url, &client)?))
}

fn key_in(file: &Path) -> Outcome<EncryptionKey> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Error::io(format!("cannot read the key in {}: {error}", file.display()))
    })?;
    Ok(EncryptionKey::from_hex(&text)?)
}

/// Opens the database at a URL with some options.
pub fn open(url: &str, missing: Missing, options: Options) -> Outcome<Opened> {
    let folder = nacre_native::folder_of(url)?;
    // `Database::open` creates a missing database.
    if let Some(folder) = &folder
        && missing == Missing::Refuse
        && options.blobs.is_none()
        && !nacre_native::has_database(folder)?
    {
        return Err(Error::not_found(format!("{url}: no such database"))
            .with_hint("`nacre sql` creates a database")
            .into());
    }
    let host = match &folder {
        Some(folder) if options.read_only => nacre_native::open_folder_beside(folder)?,
        _ => nacre_native::open_url(url)?,
    };
    let database = block_on(Database::open(host, options))?;
    Ok(Opened { persistent: folder.is_some(), opened_at: database.log_position(), database })
}

/// Writes what is buffered and closes the database. An earlier failure takes precedence over an
/// error on close.
pub fn close<T>(database: &Opened, outcome: Outcome<T>) -> Outcome<T> {
    // A failed command needs maintenance too: the rows it tried to change are in the rowstore and
    // in the log.
    database.run_maintenance();
    let closed = block_on(database.close());
    let value = outcome?;
    closed?;
    Ok(value)
}

/// Runs statements. An error carries the SQL text, to print a caret under the error position.
pub fn execute(session: &mut Session, sql: &str, parameters: &[Value]) -> Outcome<QueryResult> {
    block_on(session.execute(sql, parameters)).map_err(|error| Failure::in_sql(error, sql))
}

/// Streams the rows of the last of several statements. An error carries the SQL text, to print a
/// caret under the error position.
pub struct Stream {
    rows: Rows,
    sql: String,
}

impl Stream {
    /// Runs all statements but the last and starts the last one.
    pub fn open(session: &mut Session, sql: &str, parameters: &[Value]) -> Outcome<Stream> {
        match block_on(session.stream(sql, parameters)) {
            Ok(rows) => Ok(Stream { rows, sql: sql.to_owned() }),
            Err(error) => Err(Failure::in_sql(error, sql)),
        }
    }

    /// Columns, statistics and kind of the result.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Returns the next batch, or `None` at the end.
    pub fn next(&mut self) -> Outcome<Option<Batch>> {
        block_on(self.rows.next()).map_err(|error| Failure::in_sql(error, &self.sql))
    }

    /// Returns about `rows` of the next rows as an Arrow batch, or `None` at the end.
    pub fn next_record_batch(&mut self, rows: usize) -> Outcome<Option<RecordBatch>> {
        block_on(self.rows.next_record_batch(rows))
            .map_err(|error| Failure::in_sql(error, &self.sql))
    }
}

/// Quotes an identifier for SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
