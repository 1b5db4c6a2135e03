//! Background work that moves local bytes to a blob store, a step at a time.

use crate::{Answer, Rest};
use core::time::Duration;

/// Uploads of one database. Dropping an answer gives its call up; the next one goes on.
pub trait Uploads: Send + Sync {
    /// Does a piece of work, with one call of the blob store or two, and says when to call again. Failures are
    /// retried by later steps.
    fn step(&self) -> Answer<'_, Rest>;
    /// Uploads everything that is durable now, without waiting for more.
    ///
    /// Errors: `unavailable` if the blob store is away for long; `in_use` if another writer has the blobs now.
    fn finish(&self) -> Answer<'_, ()>;
    /// Uploads what is durable up to a position of the log at least.
    ///
    /// Errors: as for [`Uploads::finish`].
    fn reach(&self, position: u64) -> Answer<'_, ()>;
    /// Whether a commit is acknowledged only once it is uploaded.
    fn holds_commits(&self) -> bool;
    /// Sets what is called when a step that rested until it is woken is due. It must be fast, and not call
    /// back.
    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>);
    /// Position of the log up to which the loss of the local disk loses nothing.
    fn position(&self) -> u64;
    /// Of files that are only read: makes those of the newest upload readable beside those of before, and the
    /// log up to there, for a reader of the log that stands at a position. Returns whether there was a newer
    /// one. Only one call may be in progress. Of files that are written here it does nothing.
    ///
    /// Errors: `unavailable`; `corrupt` if the blobs are damaged, or those of another database. What could be read
    /// before still can.
    fn advance(&self, from: u64) -> Answer<'_, bool>;
    /// What is known of the newest upload.
    fn lag(&self) -> Lag;
}

/// What is known of the newest upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Position of the log that it reaches.
    pub position: u64,
    /// When it was written, by the clock of its writer, in microseconds since 1970-01-01 UTC.
    pub written_us: i64,
    /// How long ago it was known to be the newest; zero for the writer.
    pub since_looked: Duration,
}
