//! Background work that moves local bytes to a blob store, a step at a time.

use crate::{Answer, Missing, Rest, Result};
use core::time::Duration;

/// Names the absent bytes that are to be brought next; `None` at the end. A miss of its own is brought first, and
/// then it is called again.
pub type Warming = Box<dyn FnMut() -> Result<Option<Vec<Missing>>> + Send>;

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
    /// Brings bytes to the local disk before they are needed, in the steps that have nothing else to do.
    fn warm(&self, next: Warming);
    /// Position of the log up to which the loss of the local disk loses nothing.
    fn position(&self) -> u64;
    /// Of files that are only read: makes those of the newest upload readable beside those of before, and the
    /// log up to there, for a reader of the log that stands at a position. Returns whether there was a newer
    /// one. Only one call may be in progress. Of files that are written here it does nothing.
    ///
    /// Errors: `unavailable`; `corrupt` if the blobs are damaged, or those of another database. What could be read
    /// before still can.
    fn advance(&self, from: u64) -> Answer<'_, bool>;
    /// Of files that are only read: notes that nothing reads what was there before a position of the log any more.
    fn note_reads(&self, from: u64) {
        let _ = from;
    }
    /// Ends: uploads what is left, as [`Uploads::finish`] does, or gives up what was held to be read.
    ///
    /// Errors: as for [`Uploads::finish`].
    fn close(&self) -> Answer<'_, ()> {
        self.finish()
    }
    /// What is known of the newest upload.
    fn lag(&self) -> Lag;
    /// What was read of files whose bytes were not on the local disk, since the store was opened.
    fn reads(&self) -> BlobReads;
}

/// Reads of files whose bytes are not on the local disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobReads {
    /// Requests to the blob store, those that failed too.
    pub requests: u64,
    /// Bytes that have come.
    pub bytes: u64,
    /// Bytes of these that were read ahead of a scan.
    pub bytes_ahead: u64,
    /// Bytes that were brought before anything asked for them; the other counts do without them.
    pub bytes_warmed: u64,
    /// Times that something waited for requests, with several in progress or one.
    pub waits: u64,
    /// Reads that found all of their bytes among those fetched before.
    pub hits: u64,
}

/// What is known of the newest upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Position of the log that it reaches.
    pub position: u64,
    /// When it was written, by the clock of its writer, in microseconds since 1970-01-01 UTC.
    pub written_us: i64,
    /// How long ago it was known to be the newest; zero for the writer.
    pub since_looked: Duration,
    /// Whether what is shown is kept from being removed.
    pub lease: LeaseState,
    /// Why the last attempt to upload has failed, unless a later one has not.
    pub failure: Option<String>,
}

/// Whether a database that only reads blobs holds those that it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseState {
    /// There is no lease: it was not taken yet, is not wanted, or the database is not only read. The writer keeps
    /// blobs for the retention.
    #[default]
    None,
    /// It is held: nothing that is shown is removed.
    Held,
    /// It was held, and was not renewed in time: blobs may be missing until the next refresh.
    Lost,
    /// The blob store refuses it, as without the right to write. The writer keeps blobs for the retention.
    Refused,
}

impl LeaseState {
    /// Its name in `SHOW LAG`.
    pub fn name(self) -> &'static str {
        match self {
            LeaseState::None => "none",
            LeaseState::Held => "held",
            LeaseState::Lost => "lost",
            LeaseState::Refused => "refused",
        }
    }
}
