//! The open log: appends, group commit and snapshots over the file at its end.
//!
//! Locks are taken in the order snapshots, followers, writer, pending, reach. Any failed write or
//! sync poisons the log.

use crate::followers::Followers;
use crate::format::{FileKind, MAX_RECORD_BYTES, RECORD_HEADER_BYTES, RecordHeader};
use crate::options::LogOptions;
use crate::position::{Lsn, gone};
use crate::reach::{Reach, ReachFile};
use crate::recovery;
use crate::snapshot::{NewSnapshot, Snapshots};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, lock, try_lock};
use crate::turns::{Lead, Turns};
use crate::writer::{Place, Writer};
use nacre_host::LocalStore;
use nacre_types::checksum::checksum;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Reason, Result, invariant};
use std::sync::Arc;

/// Appended bytes beyond this number are written to the file without waiting for a sync, unless one
/// is in progress. Small in this crate's tests, so that small logs take that path too.
const WRITE_OUT_BYTES: usize = if cfg!(test) { 120 } else { 1 << 20 };

/// An open log. Shared between threads.
pub struct Log {
    store: Arc<dyn LocalStore>,
    database_id: u64,
    is_new: bool,
    /// Decides which caller syncs; taken before any of the locks.
    pub(crate) turns: Turns,
    /// What recovery gave up.
    losses: Vec<Error>,
    // Lock order: snapshots, followers, writer, pending, reach.
    snapshots: Mutex<Snapshots>,
    followers: Mutex<Followers>,
    /// `None` if the log is only read.
    writer: Option<Mutex<Writer>>,
    pending: Mutex<Pending>,
    reach: Mutex<ReachFile>,
    durable: AtomicU64,
    snapshot_at: AtomicU64,
    snapshot_bytes: AtomicU64,
}

/// Records that were appended and not yet written to the file.
struct Pending {
    /// Whole records with unsealed headers, ending at `position`.
    buffer: Vec<u8>,
    position: Lsn,
    /// End of the last mark; equals `position` if nothing was appended since.
    marked: Lsn,
    /// The first failure; every later operation fails.
    failure: Option<Error>,
}

impl Log {
    /// Opens a log and recovers it: passes the payload of the newest valid snapshot to `snapshot`
    /// (at most once), then every later record with its end position to `record`, in order. Creates
    /// an empty log if none exists.
    ///
    /// Cuts off a torn tail. Everything passed to the callbacks is durable once this returns `Ok`,
    /// and must be discarded if it fails.
    ///
    /// # Errors
    /// `corrupt` for damage that cannot be a torn tail, naming file and byte; `unsupported` for a
    /// format version that this build does not know; the errors of the host's files and of the two
    /// callbacks.
    pub fn open(
        store: Arc<dyn LocalStore>,
        options: LogOptions,
        snapshot: &mut dyn FnMut(&[u8]) -> Result<()>,
        record: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Log> {
        let names = store.list()?;
        Log::open_listed(store, &names, options, snapshot, record)
    }

    /// Like [`Log::open`], for a caller that has listed the files of the store.
    pub fn open_listed(
        store: Arc<dyn LocalStore>,
        names: &[String],
        options: LogOptions,
        snapshot: &mut dyn FnMut(&[u8]) -> Result<()>,
        record: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Log> {
        let recovered = recovery::recover(store.as_ref(), names, &options, snapshot, record)?;
        let mut snapshots = recovered.snapshots;
        debug_assert!(
            snapshots.newest.is_none_or(|newest| newest <= recovered.end),
            "a snapshot at {:?} of a log that ends at {}",
            snapshots.newest,
            recovered.end
        );
        snapshots.remove_garbage(store.as_ref());
        if let Some(newest) = snapshots.newest {
            store.note_named(&FileKind::Snapshot.name(newest));
        }
        let writer = Writer::new(
            recovered.active,
            recovered.chunks,
            recovered.end,
            options.chunk_bytes,
            recovered.database_id,
        );
        let mut reach = recovered.reach;
        let first = Reach { chunk: writer.start(), position: writer.start() };
        reach.promise(store.as_ref(), recovered.database_id, first);
        Ok(Log {
            database_id: recovered.database_id,
            is_new: recovered.is_new,
            durable: AtomicU64::new(recovered.end),
            snapshot_at: AtomicU64::new(snapshots.newest.unwrap_or(0)),
            snapshot_bytes: AtomicU64::new(recovered.snapshot_bytes),
            turns: Turns::default(),
            pending: Mutex::new(Pending {
                buffer: Vec::new(),
                position: recovered.end,
                marked: recovered.marked,
                failure: None,
            }),
            writer: Some(Mutex::new(writer)),
            reach: Mutex::new(reach),
            losses: recovered.losses,
            followers: Mutex::default(),
            snapshots: Mutex::new(snapshots),
            store,
        })
    }

    /// The log of a database that another instance may be writing: its end is where this instance
    /// has read it, and nothing can be appended.
    pub fn read_only(store: Arc<dyn LocalStore>, database_id: u64, position: Lsn) -> Log {
        Log {
            database_id,
            is_new: false,
            durable: AtomicU64::new(position),
            snapshot_at: AtomicU64::new(position),
            snapshot_bytes: AtomicU64::new(0),
            turns: Turns::default(),
            pending: Mutex::new(Pending {
                buffer: Vec::new(),
                position,
                marked: position,
                failure: None,
            }),
            writer: None,
            reach: Mutex::default(),
            losses: Vec::new(),
            followers: Mutex::default(),
            snapshots: Mutex::new(Snapshots::new(Some(position))),
            store,
        }
    }

    /// Whether the log is only read.
    pub fn is_read_only(&self) -> bool {
        self.writer.is_none()
    }

    /// Notes how far a log that is only read has been read.
    pub fn follow_to(&self, position: Lsn) {
        invariant!(self.is_read_only(), "a log that is written here is followed to {position}");
        let mut pending = lock(&self.pending);
        debug_assert!(pending.position <= position, "the log goes back to {position}");
        (pending.position, pending.marked) = (position, position);
        self.durable.store(position, Ordering::Release);
        self.snapshot_at.store(position, Ordering::Release);
    }

    /// The writer, for which the caller waits.
    pub(crate) fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        self.writer.as_ref().map(lock).ok_or_else(Error::read_only)
    }

    /// Whether [`Log::open`] created this log. Other files of a database next to a new log mean
    /// that the log was lost.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The identity in all files of this log.
    pub fn database_id(&self) -> u64 {
        self.database_id
    }

    /// What [`LogOptions::accept_loss`] has given up; empty if nothing was missing.
    pub fn losses(&self) -> &[Error] {
        &self.losses
    }

    /// Fails if a write or a sync has failed, so that nothing can be appended any more. Recovery
    /// may or may not find the last appended records.
    ///
    /// # Errors
    /// `io`, with the first failure.
    pub fn check_usable(&self) -> Result<()> {
        lock(&self.pending).check()
    }

    /// Appends a record and returns its end position. The record is not durable, and a crash may
    /// lose it, until [`Log::sync`] of that position.
    ///
    /// # Errors
    /// `limit` for a payload of more than [`MAX_RECORD_BYTES`]; `io` after a failed write or sync.
    pub fn append(&self, payload: &[u8]) -> Result<Lsn> {
        self.append_record(payload, false)
    }

    /// Returns once everything up to `lsn` is durable. Callers that arrive during a sync share the
    /// next one.
    ///
    /// # Errors
    /// `io` if the sync fails, which poisons the log: every later append fails, and so does every
    /// later sync of a position that is not durable yet.
    pub fn sync(&self, lsn: Lsn) -> Result<()> {
        if self.durable() >= lsn {
            return Ok(());
        }
        let durable = || self.durable();
        let Some(mut lead) = self.turns.wait(lsn, &durable) else { return Ok(()) };
        self.write_out(&mut *self.writer()?, Some(&mut lead))?;
        debug_assert!(self.durable() <= self.position(), "durable beyond the end of the log");
        if self.durable() < lsn {
            return Err(Error::io(format!("log position {lsn} was never appended")));
        }
        Ok(())
    }

    /// The position up to which everything survives a crash.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// End of the last appended record.
    pub fn position(&self) -> Lsn {
        lock(&self.pending).position
    }

    /// Bytes of records after the newest snapshot, which recovery would replay.
    pub fn bytes_since_snapshot(&self) -> u64 {
        self.position().saturating_sub(self.snapshot_at.load(Ordering::Acquire))
    }

    /// Bytes of the newest snapshot, which recovery reads before; 0 if there is none.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes.load(Ordering::Acquire)
    }

    /// Starts a snapshot that represents everything up to `at`, a position returned by `append` or
    /// `position`. It makes the log durable up to `at`, and creates a file. The caller writes the
    /// payload, then calls [`Log::publish_snapshot`] or [`Log::abandon_snapshot`]. Appends and syncs
    /// proceed meanwhile. `None` if a snapshot at or after `at` exists. Only one snapshot is written
    /// at a time.
    ///
    /// # Errors
    /// A failure leaves earlier snapshots and the log unchanged. It poisons the log only if the log
    /// itself could not be synced.
    pub fn begin_snapshot(&self, at: Lsn) -> Result<Option<NewSnapshot>> {
        self.sync(at)?;
        invariant!(self.durable() >= at, "a snapshot at {at}, before the log is durable there");
        lock(&self.snapshots).begin(self.store.as_ref(), at)
    }

    /// Completes and syncs a snapshot, and then removes the chunks and snapshots that are no longer
    /// needed (the next call retries a failed removal).
    ///
    /// # Errors
    /// As [`Log::begin_snapshot`]. The snapshot is then abandoned.
    pub fn publish_snapshot(&self, snapshot: NewSnapshot) -> Result<()> {
        if let Err(error) = snapshot.complete(self.database_id) {
            self.abandon_snapshot(snapshot);
            return Err(error);
        }
        let at = snapshot.at;
        invariant!(self.durable() >= at, "the snapshot at {at} is published before its log");
        let mut snapshots = lock(&self.snapshots);
        snapshots.publish(at);
        self.store.note_named(&FileKind::Snapshot.name(at));
        self.snapshot_at.store(at, Ordering::Release);
        self.snapshot_bytes.store(snapshot.bytes, Ordering::Release);
        let chunk = self.release_chunks(&mut snapshots)?;
        self.promise_reach(chunk);
        snapshots.remove_garbage(self.store.as_ref());
        Ok(())
    }

    /// Discards the chunks that neither recovery nor a follower needs. Returns the start of the
    /// chunk being written.
    fn release_chunks(&self, snapshots: &mut Snapshots) -> Result<Lsn> {
        let at = snapshots.newest.unwrap_or(0);
        // Held until the chunks are forgotten: no follower may count on one in between.
        let mut followers = lock(&self.followers);
        let mut writer = self.writer()?;
        let sealed = writer.forget_before(followers.keep_from(at));
        debug_assert!(
            sealed.iter().all(|start| *start < at),
            "recovery from {at} on needs one of the chunks at {sealed:?}"
        );
        snapshots.discard_chunks(sealed);
        Ok(writer.start())
    }

    /// The files of the log.
    pub(crate) fn store(&self) -> &Arc<dyn LocalStore> {
        &self.store
    }

    /// Holds the log from a position on for the follower with this name, so that it can be read
    /// although a snapshot stands for it. At most `max_bytes` before a new snapshot are held: a
    /// follower that needs more is given up, and reads [`Reason::LogGone`]. What was held under the
    /// same name before is replaced. Nothing is held after a restart.
    ///
    /// # Errors
    /// `not_found` with [`Reason::LogGone`] if the position is not in the log any more.
    ///
    /// [`Reason::LogGone`]: nacre_types::Reason::LogGone
    pub fn hold(&self, name: &str, from: Lsn, max_bytes: u64) -> Result<()> {
        let mut followers = lock(&self.followers);
        if from > self.durable() || self.place_of(from).is_none() {
            return Err(gone(from));
        }
        followers.hold(name, from, max_bytes);
        Ok(())
    }

    /// Notes that a follower needs nothing before a position. The chunks before it are removed with
    /// the next snapshot.
    ///
    /// # Errors
    /// `not_found` with [`Reason::LogGone`] if nothing is held for the follower any more.
    ///
    /// [`Reason::LogGone`]: nacre_types::Reason::LogGone
    pub fn confirm(&self, name: &str, position: Lsn) -> Result<()> {
        invariant!(position <= self.durable(), "{name} confirms {position}, which is not durable");
        match lock(&self.followers).confirm(name, position) {
            true => Ok(()),
            false => Err(gone(position)),
        }
    }

    /// Holds nothing for a follower any more, and removes the chunks that only it needed.
    pub fn release(&self, name: &str) {
        lock(&self.followers).remove(name);
        let mut snapshots = lock(&self.snapshots);
        if self.release_chunks(&mut snapshots).is_ok() {
            snapshots.remove_garbage(self.store.as_ref());
        }
    }

    /// The followers for which the log is held, and the positions that they have confirmed.
    pub fn followers(&self) -> Vec<(String, Lsn)> {
        lock(&self.followers).list()
    }

    /// The chunk with the record at a position, if it still exists.
    pub(crate) fn place_of(&self, position: Lsn) -> Option<Place> {
        self.writer().ok()?.place_of(position)
    }

    /// Removes what was written of a snapshot.
    pub fn abandon_snapshot(&self, snapshot: NewSnapshot) {
        let NewSnapshot { name, .. } = snapshot;
        lock(&self.snapshots).abandon(self.store.as_ref(), name);
    }

    /// Writes a snapshot whose payload is in memory. Does nothing if one at or after `at` exists.
    ///
    /// # Errors
    /// As [`Log::begin_snapshot`].
    pub fn write_snapshot(&self, at: Lsn, payload: &[u8]) -> Result<()> {
        let Some(mut snapshot) = self.begin_snapshot(at)? else { return Ok(()) };
        if let Err(error) = snapshot.write(payload) {
            self.abandon_snapshot(snapshot);
            return Err(error);
        }
        self.publish_snapshot(snapshot)
    }

    /// Makes everything durable and appends a mark, which distinguishes damage to the last records
    /// of a closed log from a torn tail. The log stays usable. Omitting this call loses no durable
    /// data.
    pub fn close(&self) -> Result<()> {
        if self.is_read_only() {
            return Ok(());
        }
        let position = self.position();
        self.sync(position)?;
        debug_assert!(self.durable() >= position, "a log is closed before {position} is durable");
        {
            let pending = lock(&self.pending);
            pending.check()?;
            if pending.marked < pending.position {
                drop(pending);
                let lsn = self.append_record(&[], true)?;
                self.sync(lsn)?;
            }
        }
        let chunk = self.writer()?.start();
        self.promise_reach(chunk);
        Ok(())
    }

    /// Records how far the log reaches: to the durable position, with a chunk that exists.
    fn promise_reach(&self, chunk: Lsn) {
        let position = match plant::is(Bug::ReachEarly) {
            true => self.position(),
            false => self.durable(),
        };
        let reach = Reach { chunk, position };
        lock(&self.reach).promise(self.store.as_ref(), self.database_id, reach);
    }

    fn append_record(&self, payload: &[u8], mark: bool) -> Result<Lsn> {
        check_length(payload.len())?;
        if self.is_read_only() {
            return Err(Error::read_only());
        }
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
            let end = pending.position + (RECORD_HEADER_BYTES + payload.len()) as u64;
            invariant!(end > pending.position, "log position {} overflows", pending.position);
            pending.position = end;
            if mark {
                pending.marked = pending.position;
            }
            debug_assert!(
                pending.marked <= end && pending.buffer.len() as u64 <= end,
                "{} bytes are pending at {end}, which is marked up to {}",
                pending.buffer.len(),
                pending.marked
            );
            (pending.position, pending.buffer.len())
        };
        // All commits wait for an append, so it does not wait for a sync in progress: the next sync or
        // append writes the record.
        if buffered >= WRITE_OUT_BYTES
            && let Some(mut writer) = self.writer.as_ref().and_then(try_lock)
        {
            self.write_out(&mut writer, None)?;
        }
        Ok(position)
    }

    /// Writes pending records to the file and, for a leader, syncs. Any failure poisons the log.
    fn write_out(&self, writer: &mut Writer, lead: Option<&mut Lead<'_>>) -> Result<()> {
        let mut buffer = {
            let mut pending = lock(&self.pending);
            pending.check()?;
            // A record is bound to its position: at another position it would not be read.
            let start = pending.position - pending.buffer.len() as u64;
            let written = writer.written();
            invariant!(start == written, "records from {start} on are written at {written}");
            std::mem::replace(&mut pending.buffer, writer.take_spare())
        };
        let sync = lead.is_some();
        if let Some(lead) = lead {
            lead.taken();
        }
        let chunk = writer.start();
        if plant::is(Bug::ReachEarly) {
            self.promise_reach(chunk);
        }
        let result = writer.write(self.store.as_ref(), &mut buffer, &self.durable, sync);
        writer.recycle(buffer);
        debug_assert!(
            result.is_err() || !sync || self.durable() == writer.written(),
            "a sync of {} bytes makes {} durable",
            writer.written(),
            self.durable()
        );
        if result.is_ok() && writer.start() != chunk {
            self.promise_reach(writer.start());
        }
        if let Err(error) = &result {
            lock(&self.pending).failure.get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// Checks the length of a record's payload.
///
/// # Errors
/// `limit` for more than [`MAX_RECORD_BYTES`].
pub fn check_length(bytes: usize) -> Result<()> {
    match bytes > MAX_RECORD_BYTES {
        true => Err(Error::limit(format!(
            "a log record of {bytes} bytes exceeds the limit of {MAX_RECORD_BYTES}"
        ))),
        false => Ok(()),
    }
}

impl Pending {
    fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(first) if first.reason() == Some(Reason::Fenced) => Err(first.clone()),
            Some(first) => Err(Error::io(format!(
                "no commit is possible until the database is reopened, because a write to the log failed: {}",
                first.message()
            ))),
        }
    }
}
