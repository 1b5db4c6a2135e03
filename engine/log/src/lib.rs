//! The log: the only thing a commit must write. Redo records in chunk files, group commit, snapshots, recovery.
//!
//! Invariants:
//! - A position ([`Lsn`]) counts record bytes since the database was made; it never goes back and is never reused
//!   for something that was once durable.
//! - A chunk starts only after everything before it is durable, so every chunk but the last is complete.
//! - A snapshot is started only after the log is durable up to its position, and nothing it replaces is removed
//!   before it is durable itself.
//! - After a write or sync has failed, nothing is written any more and no later commit is reported as durable.
//!
//! Deliberately absent: what a record or snapshot means (payloads are opaque), when to sync or to snapshot (the
//! caller decides), timers and threads. Calls block for as long as the host's file calls do.

mod format;
#[cfg(test)]
#[cfg(feature = "loom")]
mod models;
mod reader;
mod recovery;
mod snapshot;
mod sync;
#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;
mod turns;
mod writer;

pub use format::{MAX_RECORD_BYTES, has_log};

use format::{RECORD_HEADER_BYTES, RecordHeader};
use nacre_host::LocalStore;
use nacre_types::checksum::checksum;
use nacre_types::{Error, Result};
use snapshot::Snapshots;
use std::sync::{Arc, PoisonError};
use sync::{AtomicU64, Mutex, MutexGuard, Ordering};
use turns::{Lead, Turns};
use writer::Writer;

/// A byte position in the logical log. Positions that callers see are always the end of a record (or zero).
pub type Lsn = u64;

/// Appends beyond this many buffered bytes are handed to the file without waiting for a sync. Small in this crate's
/// tests, so that small logs take that path too.
const WRITE_OUT_BYTES: usize = if cfg!(test) { 120 } else { 1 << 20 };

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// A chunk that has this many bytes of records is sealed and the next one started.
    pub chunk_bytes: u64,
    /// Identity given to a database that this call makes (take it from the host's entropy). An existing
    /// database keeps its own. It tells files of different databases apart.
    pub database_id: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { chunk_bytes: 64 << 20, database_id: 0 }
    }
}

/// An open log. Shared between threads.
pub struct Log {
    store: Arc<dyn LocalStore>,
    database_id: u64,
    is_new: bool,
    /// Who syncs; taken before any of the locks.
    turns: Turns,
    // Lock order: snapshots, writer, pending.
    snapshots: Mutex<Snapshots>,
    writer: Mutex<Writer>,
    pending: Mutex<Pending>,
    durable: AtomicU64,
    snapshot_at: AtomicU64,
}

/// What was appended and not yet handed to the file.
struct Pending {
    /// Whole records with unsealed headers; they end at `position`.
    buffer: Vec<u8>,
    position: Lsn,
    /// End of the last mark, when nothing was appended since.
    marked: Lsn,
    /// The first failure; from then on everything is refused.
    failure: Option<Error>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Recovers: finds the newest valid snapshot and hands its payload to `snapshot` (at most once), then hands
    /// every record after it to `record` with its end position, in order. Makes an empty log where there is none.
    ///
    /// A torn tail is cut off. Damage that cannot be a torn tail is `corrupt` and names file and byte; a format
    /// version this build does not know is `unsupported`. What was handed out is durable once this returns `Ok`,
    /// and must be thrown away when it does not.
    pub fn open(
        store: Arc<dyn LocalStore>,
        options: LogOptions,
        snapshot: &mut dyn FnMut(&[u8]) -> Result<()>,
        record: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Log> {
        let recovered = recovery::recover(store.as_ref(), options.database_id, snapshot, record)?;
        let mut snapshots = recovered.snapshots;
        snapshots.remove_garbage(store.as_ref());
        Ok(Log {
            database_id: recovered.database_id,
            is_new: recovered.is_new,
            durable: AtomicU64::new(recovered.end),
            snapshot_at: AtomicU64::new(snapshots.newest.unwrap_or(0)),
            turns: Turns::default(),
            pending: Mutex::new(Pending {
                buffer: Vec::new(),
                position: recovered.end,
                marked: recovered.marked,
                failure: None,
            }),
            writer: Mutex::new(Writer::new(
                recovered.active,
                recovered.chunks,
                recovered.end,
                options.chunk_bytes,
                recovered.database_id,
            )),
            snapshots: Mutex::new(snapshots),
            store,
        })
    }

    /// Whether [`Log::open`] found no log and made one. Other files of a database beside a new log mean that the
    /// log was lost.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The identity in all files of this log.
    pub fn database_id(&self) -> u64 {
        self.database_id
    }

    /// Fails when nothing can be appended any more, because a write or a sync has failed. What was appended last may or
    /// may not be found at the next start.
    pub fn check_usable(&self) -> Result<()> {
        lock(&self.pending).check()
    }

    /// Adds a record after all earlier ones and answers with its end position. Not durable, and after a crash
    /// possibly gone, until [`Log::sync`] of that position. A payload past [`MAX_RECORD_BYTES`] is `limit`.
    pub fn append(&self, payload: &[u8]) -> Result<Lsn> {
        self.append_record(payload, false)
    }

    /// Returns once everything up to `lsn` is durable. Callers that arrive while another one syncs are served
    /// together by the next sync. A failure poisons the log: every later append, and every later sync of
    /// something that did not become durable before, is an `io` error.
    pub fn sync(&self, lsn: Lsn) -> Result<()> {
        if self.durable() >= lsn {
            return Ok(());
        }
        let durable = || self.durable();
        let Some(mut lead) = self.turns.wait(lsn, &durable) else { return Ok(()) };
        self.write_out(&mut lock(&self.writer), Some(&mut lead))?;
        if self.durable() < lsn {
            return Err(Error::io(format!("log position {lsn} was never appended")));
        }
        Ok(())
    }

    /// Everything before this position survives a crash.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// End of the last appended record.
    pub fn position(&self) -> Lsn {
        lock(&self.pending).position
    }

    /// Bytes of records after the newest snapshot: what recovery would replay.
    pub fn bytes_since_snapshot(&self) -> u64 {
        self.position().saturating_sub(self.snapshot_at.load(Ordering::Acquire))
    }

    /// Makes a snapshot that stands for everything up to `at`, which must be a position that `append` or
    /// `position` answered with. First makes the log durable up to `at`, then writes and syncs the snapshot in a
    /// file of its own, then removes the chunks and snapshots that are no longer needed (what cannot be removed
    /// is tried again next time). Appends and syncs go on meanwhile. When there is a snapshot at or after `at`
    /// already, does nothing.
    ///
    /// A failure leaves earlier snapshots and the log as they were; it poisons the log only if the log itself
    /// could not be synced.
    pub fn write_snapshot(&self, at: Lsn, payload: &[u8]) -> Result<()> {
        self.sync(at)?;
        let mut snapshots = lock(&self.snapshots);
        if snapshots.newest.is_some_and(|newest| newest >= at) {
            return Ok(());
        }
        snapshots.write(self.store.as_ref(), self.database_id, at, payload)?;
        self.snapshot_at.store(at, Ordering::Release);
        let sealed = lock(&self.writer).forget_before(at);
        snapshots.discard_chunks(sealed);
        snapshots.remove_garbage(self.store.as_ref());
        Ok(())
    }

    /// Makes everything durable and leaves a mark behind it, so that damage to the last records of a log that
    /// was closed is told from a torn tail. The log stays usable. Without it nothing durable is lost.
    pub fn close(&self) -> Result<()> {
        let position = self.position();
        self.sync(position)?;
        {
            let pending = lock(&self.pending);
            pending.check()?;
            if pending.marked == pending.position {
                return Ok(());
            }
        }
        let lsn = self.append_record(&[], true)?;
        self.sync(lsn)
    }

    fn append_record(&self, payload: &[u8], mark: bool) -> Result<Lsn> {
        check_length(payload.len())?;
        let header = RecordHeader {
            length: payload.len() as u32,
            mark,
            unsynced: u32::MAX,
            payload_checksum: checksum(payload),
        };
        let header = header.encode_unsealed();
        let (position, buffered) = {
            let mut pending = lock(&self.pending);
            pending.check()?;
            pending.buffer.extend_from_slice(&header);
            pending.buffer.extend_from_slice(payload);
            pending.position += (RECORD_HEADER_BYTES + payload.len()) as u64;
            if mark {
                pending.marked = pending.position;
            }
            (pending.position, pending.buffer.len())
        };
        if buffered >= WRITE_OUT_BYTES {
            self.write_out(&mut lock(&self.writer), None)?;
        }
        Ok(position)
    }

    /// Hands what is pending to the file, and syncs for who leads. Any failure poisons the log.
    fn write_out(&self, writer: &mut Writer, lead: Option<&mut Lead<'_>>) -> Result<()> {
        let mut buffer = {
            let mut pending = lock(&self.pending);
            pending.check()?;
            std::mem::replace(&mut pending.buffer, writer.take_spare())
        };
        let sync = lead.is_some();
        if let Some(lead) = lead {
            lead.taken();
        }
        let result = writer.write(self.store.as_ref(), &mut buffer, &self.durable, sync);
        writer.recycle(buffer);
        if let Err(error) = &result {
            lock(&self.pending).failure.get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// `limit` for a record of more bytes than [`MAX_RECORD_BYTES`].
pub fn check_length(bytes: usize) -> Result<()> {
    match bytes > MAX_RECORD_BYTES {
        true => Err(Error::limit(format!(
            "a log record of {bytes} bytes; at most {MAX_RECORD_BYTES} are possible"
        ))),
        false => Ok(()),
    }
}

impl Pending {
    fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(first) => Err(Error::io(format!(
                "nothing more can be committed until the database is reopened, because a write to the log failed: {}",
                first.message()
            ))),
        }
    }
}
