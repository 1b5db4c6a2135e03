//! From a URL to an open database.

use crate::failure::{Failure, Outcome};
use arrow_array::RecordBatch;
use nacre_native::block_on;
use nacredb::{Batch, Budget, Database, Error, Options, QueryResult, Rows, Session, Value};
use std::ops::Deref;

/// What to do when there is no database at a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make one.
    Create,
    /// `not_found`
    Refuse,
}

/// A database that a command has opened.
pub struct Opened {
    database: Database,
    /// Whether it is in a folder, and stays.
    stays: bool,
    /// Where the log ended when it was opened.
    began: u64,
}

impl Deref for Opened {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}

impl Opened {
    /// Does the house-keeping that the command's writes have made due: many short commands would leave as many small
    /// segments behind. What of it fails is not the command's failure.
    pub fn tidy(&self) {
        if self.stays && self.log_position() != self.began {
            while matches!(self.maintain(Budget { steps: 16 }), Ok(true)) {}
        }
    }
}

/// Opens a database.
pub fn open(url: &str, missing: Missing) -> Outcome<Opened> {
    let folder = nacre_native::folder_of(url)?;
    // Opening would make one.
    if let Some(folder) = &folder
        && missing == Missing::Refuse
        && !nacre_native::has_database(folder)?
    {
        return Err(Error::not_found(format!("{url}: no database there"))
            .with_hint("`nacre sql` makes one")
            .into());
    }
    let database = block_on(Database::open(nacre_native::open_url(url)?, Options::default()))?;
    Ok(Opened { stays: folder.is_some(), began: database.log_position(), database })
}

/// Ends orderly: what is buffered is written before the process exits. An earlier failure wins.
pub fn close<T>(database: &Opened, outcome: Outcome<T>) -> Outcome<T> {
    // Also what has failed may have left something to be done: rows that were to be changed are in memory, and in the log.
    database.tidy();
    let closed = block_on(database.close());
    let value = outcome?;
    closed?;
    Ok(value)
}

/// Runs statements; an error carries its text, for the caret.
pub fn execute(session: &mut Session, sql: &str, parameters: &[Value]) -> Outcome<QueryResult> {
    block_on(session.execute(sql, parameters)).map_err(|error| Failure::in_sql(error, sql))
}

/// The rows of the last of some statements, as they come. An error carries the text, for the caret.
pub struct Stream {
    rows: Rows,
    sql: String,
}

impl Stream {
    /// Runs statements and begins to answer the last one.
    pub fn open(session: &mut Session, sql: &str, parameters: &[Value]) -> Outcome<Stream> {
        match block_on(session.stream(sql, parameters)) {
            Ok(rows) => Ok(Stream { rows, sql: sql.to_owned() }),
            Err(error) => Err(Failure::in_sql(error, sql)),
        }
    }

    /// What is known beside the rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The next rows; none at the end.
    pub fn next(&mut self) -> Outcome<Option<Batch>> {
        block_on(self.rows.next()).map_err(|error| Failure::in_sql(error, &self.sql))
    }

    /// So many of the next rows, about; none at the end.
    pub fn next_record_batch(&mut self, rows: usize) -> Outcome<Option<RecordBatch>> {
        block_on(self.rows.next_record_batch(rows))
            .map_err(|error| Failure::in_sql(error, &self.sql))
    }
}

/// A name as it is written in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
