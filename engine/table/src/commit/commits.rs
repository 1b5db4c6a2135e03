//! The commit pipeline. Under the commit lock: take the next timestamp, append the record, stamp
//! what was written. Outside it: wait for the sync, then make the timestamp visible.
//!
//! Log order is timestamp order and a sync covers everything before it, so a committer whose sync
//! has returned may make its own timestamp visible regardless of other commits.

use crate::commit::snapshots::Snapshots;
use crate::options::Durability;
use crate::record;
use core::time::Duration;
use nacre_host::Clock;
use nacre_log::{Log, Lsn};
use nacre_types::{Error, Result, Timestamp, invariant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The log, the commit lock and the order of commits.
pub(crate) struct Commits {
    log: Arc<Log>,
    clock: Arc<dyn Clock>,
    durability: Durability,
    snapshots: Arc<Snapshots>,
    /// The commit lock. It protects the last assigned timestamp and all changes of segment lists,
    /// delete bitmaps, table versions and the catalog.
    last: Mutex<Timestamp>,
    /// When the newest sync that covered everything before it began.
    last_sync_ns: AtomicU64,
    closed: AtomicBool,
}

/// A commit whose record is in the log, synced or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committed {
    pub commit: Timestamp,
    /// The position to sync to.
    pub lsn: Lsn,
}

/// Held commit lock.
pub(crate) struct CommitTurn<'a> {
    commits: &'a Commits,
    last: MutexGuard<'a, Timestamp>,
}

impl CommitTurn<'_> {
    /// The last assigned timestamp.
    pub fn last(&self) -> Timestamp {
        *self.last
    }

    /// Marks all commits up to one as assigned.
    #[cfg(test)]
    pub fn set_last(&mut self, commit: Timestamp) {
        *self.last = commit;
    }

    /// The timestamp of the next record appended.
    pub fn next(&self) -> Timestamp {
        invariant!(*self.last < Timestamp::MAX - 1, "no timestamp is left");
        *self.last + 1
    }

    /// Notes a commit of the writer that this instance follows, whose log has been read up to a
    /// position.
    pub fn followed(&mut self, commit: Timestamp, position: Lsn) {
        invariant!(commit > *self.last, "commit {commit} is followed after commit {}", *self.last);
        self.commits.log.follow_to(position);
        *self.last = commit;
    }

    /// Takes the next timestamp for a commit that no record has: it ends with the process.
    pub fn unrecorded(&mut self) -> Committed {
        let commit = self.next();
        debug_assert!(
            commit > self.commits.snapshots.visible(),
            "commit {commit} is visible before it is made"
        );
        *self.last = commit;
        Committed { commit, lsn: self.commits.log.position() }
    }

    /// Appends a record stamped with [`CommitTurn::next`]. Anything that may fail must be checked
    /// before: afterwards the record is in the log.
    pub fn append(&mut self, payload: &[u8]) -> Result<Committed> {
        let commit = self.next();
        invariant!(
            record::timestamp(payload) == Some(commit),
            "the record of commit {commit} is stamped {:?}",
            record::timestamp(payload)
        );
        debug_assert!(
            commit > self.commits.snapshots.visible(),
            "commit {commit} is visible before it is in the log"
        );
        debug_assert!(record::decode(payload).is_ok(), "commit {commit} cannot be decoded");
        let lsn = self.commits.log.append(payload)?;
        *self.last = commit;
        Ok(Committed { commit, lsn })
    }
}

impl Commits {
    /// Continues after the last commit of a recovered log.
    pub fn new(
        log: Arc<Log>,
        clock: Arc<dyn Clock>,
        durability: Durability,
        last: Timestamp,
    ) -> Commits {
        debug_assert!(
            log.durable() == log.position(),
            "a recovered log is durable up to {} of {}",
            log.durable(),
            log.position()
        );
        Commits {
            log,
            clock,
            durability,
            snapshots: Snapshots::new(last),
            last: Mutex::new(last),
            last_sync_ns: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// The registry of snapshots.
    pub fn snapshots(&self) -> &Arc<Snapshots> {
        &self.snapshots
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Takes the commit lock.
    pub fn lock(&self) -> CommitTurn<'_> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(
            *last >= self.snapshots.visible(),
            "commit {} is visible and was not given out",
            self.snapshots.visible()
        );
        CommitTurn { commits: self, last }
    }

    /// Takes the commit lock unless a commit is in progress.
    pub fn try_lock(&self) -> Option<CommitTurn<'_>> {
        let last = match self.last.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(panicked)) => panicked.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(CommitTurn { commits: self, last })
    }

    /// Waits until no commit is in progress, and returns the last one. A committer that lists a
    /// segment holds the lock until it has either committed or removed the segment from the list.
    pub fn settled(&self) -> Timestamp {
        self.lock().last()
    }

    /// `closed` once the database is closed.
    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            Err(Error::closed("the database is closed"))
        } else {
            Ok(())
        }
    }

    /// `closed` once the database is closed, `unsupported` if it was opened only to be read.
    pub fn check_writable(&self) -> Result<()> {
        self.check_open()?;
        if self.is_read_only() { Err(Error::read_only()) } else { Ok(()) }
    }

    /// Whether the database was opened only to be read.
    pub fn is_read_only(&self) -> bool {
        self.log.is_read_only()
    }

    /// Rejects further commits. On return no commit is in progress: any that passed its check
    /// before is in the log.
    pub fn refuse_more(&self) {
        self.closed.store(true, Ordering::Release);
        self.settled();
    }

    /// Makes everything committed visible, after waiting for its sync if necessary.
    pub fn catch_up(&self) -> Result<()> {
        let (last, lsn) = {
            let turn = self.lock();
            (turn.last(), self.log.position())
        };
        if last > self.snapshots.visible() {
            self.settle_strictly(Committed { commit: last, lsn })?;
        }
        debug_assert!(last <= self.snapshots.visible(), "commit {last} is not visible");
        Ok(())
    }

    /// Waits until a commit is durable, regardless of the durability level, and makes it visible.
    /// If the sync fails, it is unknown until the next start whether the record is in the log:
    /// files that the record names must not be removed.
    pub fn settle_strictly(&self, committed: Committed) -> Result<()> {
        self.sync_to(committed.lsn)?;
        self.snapshots.make_visible(committed.commit);
        Ok(())
    }

    /// Waits until a commit is as durable as the options require, and makes it visible.
    pub fn settle(&self, committed: Committed) -> Result<()> {
        match self.durability {
            Durability::Strict => self.log.sync(committed.lsn)?,
            Durability::Relaxed { .. } if self.sync_is_due() => self.sync_log()?,
            // What will never be durable is not acknowledged.
            Durability::Relaxed { .. } => self.log.check_usable()?,
        }
        invariant!(
            self.durability != Durability::Strict || self.log.durable() >= committed.lsn,
            "commit {} is acknowledged before it is durable",
            committed.commit
        );
        self.snapshots.make_visible(committed.commit);
        Ok(())
    }

    /// Whether acknowledged commits have been unsynced for the configured interval.
    pub fn sync_is_due(&self) -> bool {
        self.sync_due_in().is_some_and(|time| time.is_zero())
    }

    /// Time until acknowledged commits will have been unsynced for the configured interval; `None`
    /// if there are none, or if they cannot be synced any more because the log has failed.
    pub fn sync_due_in(&self) -> Option<Duration> {
        let Durability::Relaxed { interval_ms } = self.durability else { return None };
        if self.log.durable() >= self.log.position() || self.log.check_usable().is_err() {
            return None;
        }
        let last_sync = self.last_sync_ns.load(Ordering::Relaxed);
        let since = self.clock.monotonic_ns().saturating_sub(last_sync);
        let interval = Duration::from_millis(u64::from(interval_ms));
        Some(interval.saturating_sub(Duration::from_nanos(since)))
    }

    /// Makes everything committed so far durable, regardless of the durability level.
    pub fn sync_log(&self) -> Result<()> {
        self.sync_to(self.log.position())
    }

    /// Makes everything before a position durable. Restarts the interval of relaxed durability:
    /// what the sync does not cover was acknowledged after it began.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        let began = self.clock.monotonic_ns();
        debug_assert!(lsn <= self.log.position(), "position {lsn} is beyond the log");
        self.log.sync(lsn)?;
        debug_assert!(
            self.log.durable() >= lsn,
            "the log is durable up to {} after a sync to {lsn}",
            self.log.durable()
        );
        self.last_sync_ns.fetch_max(began, Ordering::Relaxed);
        Ok(())
    }
}
