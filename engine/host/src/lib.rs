//! The interfaces between the engine and its environment. Nothing in `engine/` uses a file, a
//! clock, a random number or a thread except through a [`Host`]; no default implementation falls
//! back to the real one. [`memory`] is the store of `memory://`, which needs no disk.
//!
//! Contract: every implementation passes the suite in `tests/contract`.

mod blobs;
mod cancelling;
pub mod fetched;
pub mod memory;
mod residency;
mod uploads;
pub mod waits;

pub use blobs::{Answer, BlobInfo, BlobStore, Tag, WriteIf, check_blob_name, is_blob_name};
pub use cancelling::cancelling;
use core::time::Duration;
/// The error types of every interface, re-exported so that an implementation needs no other crate.
pub use nacre_types::{Error, ErrorKind, Missing, Reason, Result};
pub use residency::{Ahead, Fetch, Resident};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
pub use uploads::{BlobReads, Lag, LeaseState, Uploads, Warming};

/// Everything that a database needs from its environment.
#[derive(Clone)]
pub struct Host {
    /// Files of this database, already locked for this process or tab.
    pub store: Arc<dyn LocalStore>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Threads, if the environment has any.
    pub parallelism: Arc<dyn Parallelism>,
}

/// Name of the lock file that a host may keep in the folder of a database.
pub const LOCK_FILE: &str = "LOCK";

/// Checks a file name against the rules of [`LocalStore`]. Every store calls this before it uses a
/// name.
pub fn check_file_name(name: &str) -> Result<()> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if name.is_empty()
        || name.len() > 64
        || name.starts_with('.')
        || name == LOCK_FILE
        || !name.bytes().all(plain)
    {
        return Err(Error::io(format!("{name:?} is not a valid file name")));
    }
    Ok(())
}

/// Returns the name of a numbered file: its kind and 16 lower-case hex digits.
pub fn numbered_file_name(kind: &str, number: u64) -> String {
    // Opening a database names each of its files.
    let mut name = String::with_capacity(kind.len() + 16);
    name.push_str(kind);
    let digits = (0..16).rev().map(|at| (number >> (4 * at)) as u32 & 0xf);
    name.extend(digits.filter_map(|digit| char::from_digit(digit, 16)));
    debug_assert!(
        number_of_file(kind, &name) == Some(number),
        "{name} does not name file {number}"
    );
    name
}

/// Returns the number in a name from [`numbered_file_name`]; `None` for any other name, because a
/// folder may contain foreign files.
pub fn number_of_file(kind: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(kind)?;
    let exact =
        digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if exact { u64::from_str_radix(digits, 16).ok() } else { None }
}

/// A flat folder of files. Names are ASCII letters, digits, `-`, `_` and `.`, at most 64 bytes, do
/// not start with a dot, and are not [`LOCK_FILE`]; any other name is an `io` error.
///
/// All calls are synchronous. In a browser opening a file is asynchronous; that host keeps spare
/// handles open ahead of need (see [`LocalStore::prepare`]).
pub trait LocalStore: Send + Sync {
    /// Names of all files, in no particular order. A file that was created and never synced may
    /// be missing after a crash.
    fn list(&self) -> Result<Vec<String>>;
    /// Opens a file. Returns `not_found` if it does not exist.
    fn open(&self, name: &str) -> Result<Arc<dyn LocalFile>>;
    /// Creates an empty file. Returns `already_exists` if there is one of that name, and
    /// [`Error::no_file`], with nothing changed, if the store cannot hold another file. The name is
    /// durable once the file has been synced with [`LocalFile::sync`].
    fn create(&self, name: &str) -> Result<Arc<dyn LocalFile>>;
    /// Removes a file. Returns `not_found` if it does not exist. Reads through a handle that is
    /// still open may fail afterwards. A crash may undo the removal.
    fn remove(&self, name: &str) -> Result<()>;
    /// Whether files are kept in memory, so that spilling to temporary files would not free any.
    fn is_in_memory(&self) -> bool {
        false
    }
    /// Lets the host open handles ahead of need. Called between statements; must be fast if there
    /// is nothing to do.
    fn prepare(&self) -> Pin<Box<dyn Future<Output = Result<()>> + '_>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Whether [`LocalStore::create`] failed with `limit` since the last [`LocalStore::prepare`]
    /// only because it ran out of prepared handles: the next call prepares more.
    fn ran_short(&self) -> bool {
        false
    }
    /// Notes that the log may name a file from here on, so that its bytes may leave this machine. Before,
    /// all bytes of a file that was created here are there: what writes it reads it again. Of a snapshot, that
    /// it stands for the log before it. Must be fast.
    fn note_named(&self, name: &str) {
        let _ = name;
    }
    /// Whether a statement may begin to write. Must be fast.
    ///
    /// Errors: `unavailable` while too much waits to leave this machine.
    fn admit_write(&self) -> Result<()> {
        Ok(())
    }
    /// Makes ranges of files resident, coalesced as the store sees fit, and keeps them so until the
    /// guard is dropped. Called for what reads missed ([`Error::missing`]), hence never if all bytes
    /// are there. A range may reach beyond the end of its file, where there is nothing to fetch.
    fn fetch<'a>(&'a self, missing: &'a [Missing]) -> Fetch<'a> {
        let file = missing.first().map_or("", |missing| &*missing.file);
        let error = Error::io(format!("the store of {file} cannot fetch"));
        Box::pin(std::future::ready(Err(error)))
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
    /// Reads many ranges in one call. A range past the end is a `corrupt` error: the file is
    /// shorter than it was when it was written. A failed read is an `io` error. A read of bytes that
    /// are not there is [`Error::not_resident`] with all of them, and nothing is read.
    fn read(&self, ranges: &mut [ReadRange<'_>]) -> Result<()>;
    /// Notes that ranges will probably be read soon, so that the store begins to fetch those that are not
    /// there. Never waits; what cannot be fetched is missed by the read.
    fn read_ahead(&self, ranges: &[Range<u64>]) -> Ahead {
        let _ = ranges;
        Ahead::Nothing
    }
    /// The parts of ranges that are not there, in their order. Must be fast.
    fn absent(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let _ = ranges;
        Vec::new()
    }
    /// Writes at an offset, extending the file if needed (a hole reads as zeroes; an empty write
    /// extends nothing). Not durable until [`LocalFile::sync`].
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Shortens or extends (with zeroes) the file.
    fn truncate(&self, len: u64) -> Result<()>;
    /// Makes all completed writes, the length and the name durable. After a failed sync nothing may
    /// be assumed about earlier writes.
    fn sync(&self) -> Result<()>;
    /// Notes that all of the file is durable, which its reader knows without a sync.
    ///
    /// Errors: as those of a sync, for stores that keep an account.
    fn note_durable(&self) -> Result<()> {
        Ok(())
    }
    /// Writes and then syncs: [`LocalFile::write`] and [`LocalFile::sync`] in one call, for hosts
    /// that can do both faster. After a failure nothing may be assumed about this write or earlier
    /// ones.
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
    fn sleep_until(&self, monotonic_ns: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Randomness.
pub trait Entropy: Send + Sync {
    /// 64 random bits.
    fn next_u64(&self) -> u64;
}

/// Threads, if the environment has any.
pub trait Parallelism: Send + Sync {
    /// Number of tasks that can run concurrently; 1 without threads.
    fn width(&self) -> usize;
    /// Runs `task(0)`, …, `task(count - 1)`, each once, possibly concurrently. Returns when all
    /// have finished.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
    /// Waits for a fetch, blocking the thread; `None` where threads must not block, unless it is
    /// ready at once.
    fn wait(&self, fetch: Fetch<'_>) -> Option<Result<Resident>> {
        residency::without_waiting(fetch)
    }
    /// Longest time, in nanoseconds, that a statement computes before it lets other work of its
    /// thread run; `None` where threads are preempted.
    fn time_slice_ns(&self) -> Option<u64> {
        None
    }
    /// Lets other work of the thread run.
    fn give_way(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(std::future::ready(()))
    }
    /// Starts a task that runs beside its callers each time it is woken. `None` if the host cannot
    /// do that: callers then run background work themselves.
    fn background(&self, task: BackgroundTask) -> Option<Box<dyn Background>> {
        drop(task);
        None
    }
}

/// A task that does a little work per call, and answers when it wants to be called again.
pub type BackgroundTask = Box<dyn FnMut() -> Rest + Send>;

/// How long a background task rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It has more to do.
    No,
    /// This long, unless it is woken before.
    For(Duration),
    /// Until it is woken.
    UntilWoken,
}

/// A background task. Dropping it waits until the task rests, and ends it.
pub trait Background: Send + Sync {
    /// Makes the task run soon. Returns `false` if nothing will run it, because the host was refused
    /// a thread: callers then run background work themselves.
    fn wake(&self) -> bool;
}
