//! Opens and closes the database of a command, and runs statements in it.

use crate::args::DatabaseOptions;
use crate::blob_args::{BlobClient, BlobSettings, is_blob_url};
use crate::failure::{Failure, Outcome};
use crate::scratch;
use arrow_array::RecordBatch;
use nacre_native::block_on;
use nacredb::{Batch, Budget, Database, Error, Options, QueryResult, Rows, Session, Value};
use std::ops::Deref;
use std::path::PathBuf;

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
    /// Dropped last.
    _cache: Option<CacheFolder>,
}

/// A folder for what is fetched of a database that is only read. It is removed in the end.
struct CacheFolder(PathBuf);

impl CacheFolder {
    fn new() -> Outcome<CacheFolder> {
        Ok(CacheFolder(scratch::create_folder("nacre-cache").map_err(|error| {
            Error::io(format!("cannot create a folder for what is fetched: {error}"))
        })?))
    }
}

impl Drop for CacheFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
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
    let read_only = read_only || options.read_only || options.as_of.is_some();
    let missing = if read_only { Missing::Refuse } else { missing };
    open(url, missing, Options { read_only, ..options })
}

/// The engine's options for a database at a URL with those of the command line. A URL of blobs names a database that
/// is only read.
pub fn options_of(url: &str, given: &DatabaseOptions) -> Outcome<Options> {
    let default = Options::default();
    let memory_bytes = given.memory.unwrap_or(default.memory_bytes);
    let is_of_blobs = is_blob_url(url);
    let place = match (is_of_blobs, given.blobs.as_deref()) {
        (true, None) => Some(url),
        (true, Some(_)) => {
            let message =
                "--blobs beside a database that a URL of blobs names: name a folder to write it";
            return Err(Failure::Usage(message.into()));
        }
        (false, place) => place,
    };
    let mut blobs = place.map(|place| given.client.at(place)).transpose()?;
    match &mut blobs {
        Some(blobs) => given.settings.apply(blobs),
        None if given.client != BlobClient::default()
            || given.settings != BlobSettings::default() =>
        {
            let message = "options of a blob store without one: name it with --blobs URL";
            return Err(Failure::Usage(message.into()));
        }
        None => {}
    }
    Ok(Options { memory_bytes, blobs, as_of: given.as_of, read_only: is_of_blobs, ..default })
}

/// Opens the database at a URL with some options.
pub fn open(url: &str, missing: Missing, mut options: Options) -> Outcome<Opened> {
    if let Some(blobs) = options.blobs.as_mut().filter(|_| is_blob_url(url)) {
        let cache = CacheFolder::new()?;
        blobs.cache = Some(nacre_native::open_folder(&cache.0)?.store);
        let database = block_on(Database::open(nacre_native::memory_host(), options))?;
        let opened_at = database.log_position();
        return Ok(Opened { persistent: false, opened_at, database, _cache: Some(cache) });
    }
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
    let opened_at = database.log_position();
    Ok(Opened { persistent: folder.is_some(), opened_at, database, _cache: None })
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
