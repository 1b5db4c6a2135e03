//! The seams between the engine and the world. Nothing in `engine/` reaches a file, a clock, a random
//! number or a thread except through a [`Host`]; no default implementation quietly uses the real
//! thing. [`memory`] is the store of `memory://`, which needs no disk.
//!
//! Contract: every implementation passes the suite in `tests/contract`.

pub mod memory;

/// The errors of every seam, re-exported so that an implementation needs no other crate.
pub use nacre_types::{Error, ErrorKind, Result};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Everything that a database needs from its environment.
#[derive(Clone)]
pub struct Host {
    /// Files of this database, already locked for this process or tab.
    pub store: Arc<dyn LocalStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Threads, where there are any.
    pub parallelism: Arc<dyn Parallelism>,
}

/// The name under which a host may keep its own lock beside a database's files.
pub const LOCK_FILE: &str = "LOCK";

/// Checks the name of a file of a database: see [`LocalStore`]. Every store calls this first.
pub fn check_file_name(name: &str) -> Result<()> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty()
        || name.len() > 64
        || name.starts_with('.')
        || name == LOCK_FILE
        || !name.bytes().all(plain)
    {
        return Err(Error::io(format!("{name:?} is not a possible file name")));
    }
    Ok(())
}

/// The name of a numbered file: its kind and 16 lower-case hex digits.
pub fn numbered_file_name(kind: &str, number: u64) -> String {
    format!("{kind}{number:016x}")
}

/// The number in a name from [`numbered_file_name`]; `None` for any other name. A folder may hold
/// foreign files.
pub fn number_of_file(kind: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(kind)?;
    let exact =
        digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if exact { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// A flat folder of files. Names are ASCII letters, digits, `-`, `_` and `.`, at most 64 bytes, do not
/// start with a dot, and are not [`LOCK_FILE`]; any other name is an `io` error.
///
/// All calls are synchronous. In a browser opening a file is asynchronous; that host keeps spare
/// handles open ahead of need (see [`LocalStore::prepare`]).
pub trait LocalStore: Send + Sync {
    /// Names of all files, in no particular order. A file that was created and never synced may
    /// be missing after a crash.
    fn list(&self) -> Result<Vec<String>>;
    /// Opens an existing file; `not_found` otherwise.
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>>;
    /// Creates an empty file; `already_exists` when there is one of that name, `limit`, with nothing
    /// changed, when the store can hold no further file. The name itself is durable once the file is
    /// synced with [`LocalFile::sync`].
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>>;
    /// Removes a file; `not_found` when it is missing. Reads through a handle that is still open may
    /// fail afterwards. A crash may undo the removal.
    fn remove(&self, name: &str) -> Result<()>;
    /// Whether files are kept in memory: then spilling to temporary files would save none.
    fn is_in_memory(&self) -> bool {
        false
    }
    /// Lets the host open handles ahead of need. Called between statements; must be quick when there is
    /// nothing to do.
    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Whether [`LocalStore::create`] failed with `limit` since the last [`LocalStore::prepare`] only
    /// because it ran out of prepared handles: the next call prepares more.
    fn ran_short(&self) -> bool {
        false
    }
}

/// One range of a batched read: `offset` in the file and the buffer to fill completely.
pub struct ReadRange<'a> {
    /// Byte offset in the file.
    pub offset: u64,
    /// Filled completely, or the read fails.
    pub buffer: &'a mut [u8],
}

/// An open file. Shared between threads; calls on one file may run concurrently.
pub trait LocalFile: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Reads many ranges in one call. A range past the end is `corrupt`: the file is shorter than it was
    /// when it was written. A failed read is `io`.
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()>;
    /// Writes at an offset, extending the file if needed (a hole reads as zeroes; an empty write extends
    /// nothing). Not durable until [`LocalFile::sync`].
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Shortens or extends (with zeroes) the file.
    fn truncate(&self, len: u64) -> Result<()>;
    /// Makes all completed writes, the length and the name durable. After a failed sync nothing may be
    /// assumed about earlier writes.
    fn sync(&self) -> Result<()>;
    /// Writes and then syncs: [`LocalFile::write`] and [`LocalFile::sync`] in one call, for hosts that
    /// can do both faster. After a failure nothing may be assumed about this write or earlier ones.
    fn write_synced(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.write(offset, bytes)?;
        self.sync()
    }
}

/// Time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since an arbitrary origin; never decreases.
    fn monotonic_ns(&self) -> u64;
    /// Microseconds since 1970-01-01 UTC; may jump either way.
    fn wall_us(&self) -> i64;
    /// Completes at or after a monotonic time.
    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// Threads, where there are any.
pub trait Parallelism: Send + Sync {
    /// Number of tasks that can run at once; 1 without threads.
    fn width(&self) -> usize;
    /// Runs `task(0)`, …, `task(count - 1)`, each once, possibly concurrently; returns when all have
    /// ended.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}
