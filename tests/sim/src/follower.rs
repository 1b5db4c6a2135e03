//! A database that is only read follows the database under test: it applies the log between calls of
//! the disk, at fixed intervals, whatever the writer is doing.

use crate::background::Inline;
use crate::disk::{Beside, Call, Class, Disk};
use crate::hook::Hook;
use crate::now::now;
use nacredb::{Database, Error, ErrorKind, Host, Options};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Long calls of the disk between two refreshes.
const EVERY: u64 = 23;

/// A reader beside the writer.
pub struct Follower {
    host: Host,
    options: Options,
    database: RefCell<Option<Database>>,
    failure: RefCell<Option<Error>>,
    calls: Cell<u64>,
    /// Refreshes that went on from the one before.
    refreshed: Cell<u64>,
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
                now(Database::open(self.host.clone(), self.options.clone()))
            }
            Some(followed) => {
                self.refreshed.set(self.refreshed.get() + 1);
                followed
            }
        };
        match &refreshed {
            Ok(database) => *self.database.borrow_mut() = Some(database.clone()),
            Err(error) => *self.failure.borrow_mut() = Some(error.clone()),
        }
        refreshed
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
            self.follower.refresh().ok();
        }
        self.inner.before(call, class);
    }

    fn log_synced(&self) {
        self.inner.log_synced();
    }
}
