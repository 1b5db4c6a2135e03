//! Keeps the log for those who follow it.

use crate::database::Database;
use nacre_types::{Error, Result};

impl Database {
    /// Keeps the log from a position on for a follower, in place of what was kept under this name before. A
    /// follower is an instance with [`Options::read_only`](crate::Options::read_only) on the same files, and the
    /// position its [`Database::log_position`]: its next refresh goes on there, instead of loading a snapshot.
    /// At most `max_bytes` of log that a snapshot stands for are kept; a follower that needs more is given up.
    /// Followers are known to this instance only: when it ends, nothing is kept for them any more.
    ///
    /// # Errors
    /// `not_found` if the position is not in the log, or not any more; `unsupported` if this instance only reads.
    ///
    /// ```
    /// # use nacre_native::{block_on, memory_host};
    /// # use nacredb::{Database, Options};
    /// # block_on(async {
    /// let db = Database::open(memory_host(), Options::default()).await?;
    /// db.keep_log("replica", db.log_position(), 64 << 20)?;
    /// db.session().execute("create table t (id bigint primary key)", &[]).await?;
    /// assert_eq!(db.log_followers().len(), 1);
    ///
    /// db.confirm_log("replica", db.log_position())?;
    /// db.release_log("replica");
    /// assert!(db.log_followers().is_empty());
    /// # Ok::<(), nacredb::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn keep_log(&self, follower: &str, position: u64, max_bytes: u64) -> Result<()> {
        let store = self.engine().store();
        store.check_writable()?;
        store.log().hold(follower, position, max_bytes)
    }

    /// Notes that a follower needs nothing before a position. What only it needed is removed with the next
    /// snapshot.
    ///
    /// # Errors
    /// `not_found` if nothing is kept for the follower, because it was given up or was never named, or if the
    /// position is past the end of the durable log.
    pub fn confirm_log(&self, follower: &str, position: u64) -> Result<()> {
        let log = self.engine().store().log();
        if position > log.durable() {
            return Err(Error::not_found(format!(
                "the log does not reach position {position} yet"
            )));
        }
        log.confirm(follower, position)
    }

    /// Keeps nothing for a follower any more, and removes what only it needed.
    pub fn release_log(&self, follower: &str) {
        self.engine().store().log().release(follower);
    }

    /// The followers for which the log is kept, with the position that each has confirmed.
    pub fn log_followers(&self) -> Vec<(String, u64)> {
        self.engine().store().log().followers()
    }
}
