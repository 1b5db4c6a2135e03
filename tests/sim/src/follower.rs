//! A database that is only read follows the database under test: it applies the log between calls of
//! the disk, at fixed intervals, whatever the writer is doing.

use crate::background::Inline;
use crate::disk::{Beside, Call, Class, Disk};
use crate::hook::Hook;
use crate::model::verdict::Answer;
use crate::now::now;
use crate::world::elsewhere;
use nacredb::{Database, Error, ErrorKind, Host, Options, QueryResult, Session, Value};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Long calls of the disk between two refreshes.
const EVERY: u64 = 23;

/// Refreshes that a transaction of the follower stays open for.
const OPEN_FOR: u64 = 8;

/// Such transactions of a phase. The last one stays open until its end.
const READERS: u64 = 24;

/// Most rows of a table that such a transaction reads: it is read often.
const MOST_ROWS: i64 = 1_000;

/// A transaction that stays open across refreshes, and the tables that it saw at first.
struct Reader {
    session: Session,
    tables: Vec<(String, QueryResult)>,
}

/// A reader beside the writer.
pub struct Follower {
    host: Host,
    options: Options,
    database: RefCell<Option<Database>>,
    failure: RefCell<Option<Error>>,
    calls: Cell<u64>,
    /// Refreshes that went on from the one before.
    refreshed: Cell<u64>,
    reader: RefCell<Option<Reader>>,
}

impl Follower {
    /// A follower of the database on a disk, which is opened when it is first refreshed.
    pub fn new(disk: &Disk, host: &Host, options: &Options) -> Rc<Follower> {
        // The session for background work is the writer's.
        let parallelism = Arc::new(Inline::default());
        Rc::new(Follower {
            host: Host { store: Arc::new(Beside(disk.clone())), parallelism, ..host.clone() },
            options: Options { read_only: true, accept_loss: false, ..options.clone() },
            database: RefCell::default(),
            failure: RefCell::default(),
            calls: Cell::new(0),
            refreshed: Cell::new(0),
            reader: RefCell::default(),
        })
    }

    /// Applies everything that was written. Opens the database again if it has fallen behind.
    pub fn refresh(&self) -> Result<Database, Error> {
        if let Some(error) = &*self.failure.borrow() {
            return Err(error.clone());
        }
        let known = self.database.borrow().clone();
        let followed = known.map(|database| database.refresh().map(|_| database));
        let refreshed = match followed {
            // The part of the log that comes next was removed.
            None => now(Database::open(self.host.clone(), self.options.clone())),
            Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
                *self.reader.borrow_mut() = None;
                now(Database::open(self.host.clone(), self.options.clone()))
            }
            Some(followed) => {
                self.refreshed.set(self.refreshed.get() + 1);
                followed
            }
        };
        let read = refreshed.and_then(|database| {
            let refreshed = self.refreshed.get();
            if refreshed.is_multiple_of(OPEN_FOR) && refreshed < READERS * OPEN_FOR {
                self.read_again()?;
                *self.reader.borrow_mut() = Reader::begin(&database);
            }
            Ok(database)
        });
        match &read {
            Ok(database) => *self.database.borrow_mut() = Some(database.clone()),
            Err(error) => *self.failure.borrow_mut() = Some(error.clone()),
        }
        read
    }

    /// Verifies that the transaction which is open still sees what it saw at first.
    pub fn read_again(&self) -> Result<(), Error> {
        match &mut *self.reader.borrow_mut() {
            Some(reader) => reader.read_again(),
            None => Ok(()),
        }
    }
}

impl Reader {
    /// Begins a transaction and reads all tables but large ones. `None` if the writer has removed what it reads.
    fn begin(database: &Database) -> Option<Reader> {
        let mut session = database.session();
        now(session.execute("begin", &[])).ok()?;
        let names = now(session.execute("show tables", &[])).ok()?;
        let names = names.to_rows().into_iter().flatten().map(|name| name.to_string());
        let mut tables = Vec::new();
        for name in names {
            let count = format!("select count(*) from {name}");
            let count = now(session.execute(&count, &[])).ok()?.to_rows();
            if matches!(count[0][0], Value::Int(rows) if rows <= MOST_ROWS) {
                let rows = now(session.execute(&format!("select * from {name}"), &[])).ok()?;
                tables.push((name, rows));
            }
        }
        Some(Reader { session, tables })
    }

    /// Reads all tables again, and some of their rows by key.
    fn read_again(&mut self) -> Result<(), Error> {
        let Reader { session, tables } = self;
        for (name, seen) in tables {
            let all = format!("select * from {name}");
            agrees(session, &all, Answer::of(seen))?;
            let Some(key) = seen.columns.iter().position(|field| field.name == "k") else {
                continue;
            };
            let rows = seen.to_rows();
            for row in rows.iter().step_by((rows.len() / 4).max(1)) {
                let alike = rows.iter().filter(|other| other[key] == row[key]);
                let mut alike: Vec<Vec<String>> =
                    alike.map(|row| row.iter().map(ToString::to_string).collect()).collect();
                alike.sort();
                agrees(session, &format!("{all} where k = {}", row[key]), Answer::Rows(alike))?;
            }
        }
        Ok(())
    }
}

/// An error if a transaction sees something else than it did, unless it cannot read any more.
fn agrees(session: &mut Session, sql: &str, seen: Answer) -> Result<(), Error> {
    match now(session.execute(sql, &[])).map(|result| Answer::of(&result)) {
        Ok(found) if found != seen => {
            Err(Error::corrupt(format!("{sql}: {found:?}, and before it was {seen:?}")))
        }
        // The writer removes files without asking its readers.
        Err(error) if !matches!(error.kind(), ErrorKind::Io | ErrorKind::NotFound) => Err(error),
        _ => Ok(()),
    }
}

/// Refreshes a follower between calls, then passes them on.
pub struct Followed {
    /// The hook of the writer.
    pub inner: Rc<dyn Hook>,
    /// The follower.
    pub follower: Rc<Follower>,
}

impl Hook for Followed {
    fn before(&self, call: Call, class: Class) {
        let calls = self.follower.calls.get() + 1;
        self.follower.calls.set(calls);
        if calls.is_multiple_of(EVERY) {
            // A failure is kept for the end of the stage.
            elsewhere(|| self.follower.refresh().ok());
        }
        self.inner.before(call, class);
    }

    fn log_synced(&self) {
        self.inner.log_synced();
    }
}
