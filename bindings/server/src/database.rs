//! From a URL to an open database.

use crate::failure::{Failure, Outcome};
use nacre_native::block_on;
use nacredb::{Database, Error, Options, QueryResult, Session, Value};

/// What to do when there is no database at a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make one.
    Create,
    /// `not_found`
    Refuse,
}

/// Opens a database.
pub fn open(url: &str, missing: Missing) -> Outcome<Database> {
    let absent = || Error::not_found(format!("{url}: no database there")).with_hint("`nacre sql` makes one");
    let refuses = missing == Missing::Refuse;
    // Opening would make the folder.
    if let Some(folder) = nacre_native::folder_of(url)?
        && refuses
        && !folder.is_dir()
    {
        return Err(absent().into());
    }
    let host = nacre_native::open_url(url)?;
    if refuses && url != "memory://" && host.store.list()?.is_empty() {
        return Err(absent().into());
    }
    Ok(block_on(Database::open(host, Options::default()))?)
}

/// Ends orderly: what is buffered is written before the process exits. An earlier failure wins.
pub fn close<T>(database: &Database, outcome: Outcome<T>) -> Outcome<T> {
    let closed = block_on(database.close());
    let value = outcome?;
    closed?;
    Ok(value)
}

/// Runs statements; an error carries its text, for the caret.
pub fn execute(session: &mut Session, sql: &str, parameters: &[Value]) -> Outcome<QueryResult> {
    block_on(session.execute(sql, parameters)).map_err(|error| Failure::in_sql(error, sql))
}

/// A name as it is written in SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
