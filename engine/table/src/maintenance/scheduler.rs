//! House-keeping, stepped from outside: when what is due, one piece at a time, and removing what nobody needs any more.
//! What a piece does is the affair of whoever does it: `flush.rs`, `merge.rs`, `snapshot.rs`, `index/`.

use crate::maintenance::hash_build::HashBuild;
use crate::maintenance::merge::{Merge, Progress};
use crate::maintenance::part_build::{Build, PartId};
use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_segment::Segment;
use nacre_types::hash::Set;
use nacre_types::{ErrorKind, Result, Timestamp};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The rowstores of all tables together may have so many times the bytes that one may have.
const FULL_ROWSTORES: usize = 4;

/// House-keeping that goes on from step to step.
#[derive(Default)]
pub(crate) struct Maintenance {
    merge: Option<Merge>,
    build: Option<Build>,
    hash: Option<HashBuild>,
    /// Parts that could not be built. They have their turn again when something else has been done.
    failed: Set<PartId>,
}

impl Store {
    /// Whether [`Store::maintain`] has something to do.
    pub fn needs_maintenance(&self) -> bool {
        let wants = |table: &Arc<Table>| {
            table.wanting_flush(self).is_some()
                || table.partitions().iter().any(|p| p.may_merge().load(Ordering::Relaxed))
                || Store::may_build(table)
                || Store::may_hash(table)
        };
        let tables = self.tables();
        tables.iter().any(wants)
            || self.fullest(&tables).is_some()
            || self.merging.load(Ordering::Relaxed)
            || self.log.bytes_since_snapshot() > self.options.snapshot_bytes
            || self.sync_is_due()
    }

    /// Does one piece of house-keeping: a due sync, a snapshot, a flush, a step of a merge, or removing files nobody
    /// needs.
    /// Answers whether there may be more to do.
    pub fn maintain(self: &Arc<Self>) -> Result<bool> {
        let mut maintenance = match self.maintenance.try_lock() {
            Ok(maintenance) => maintenance,
            Err(TryLockError::Poisoned(panicked)) => panicked.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        self.check_open()?;
        let done = self.do_next(&mut maintenance);
        if done.is_err() {
            // What fails comes first again the next time. Where there is no room to write, this makes some.
            self.collect_garbage().ok();
        }
        done
    }

    fn do_next(self: &Arc<Self>, maintenance: &mut Maintenance) -> Result<bool> {
        let urgent = self.do_urgent();
        match &urgent {
            Ok(true) => {
                maintenance.failed.clear();
                return Ok(true);
            }
            Err(_) if self.log.check_usable().is_err() => return urgent,
            _ => {}
        }
        if maintenance.merge.is_none() {
            maintenance.merge = self.find_merge()?;
        }
        if maintenance.merge.is_none() && maintenance.build.is_none() {
            maintenance.build =
                self.tables().iter().find_map(|table| self.start_build(table, &maintenance.failed));
        }
        if maintenance.merge.is_none() && maintenance.build.is_none() && maintenance.hash.is_none()
        {
            maintenance.hash = self.find_hash()?;
        }
        let more = match self.step(maintenance)? {
            true => true,
            false => self.collect_garbage()?,
        };
        // What cannot be done now is told, but keeps nothing else from being done.
        urgent.map(|_| more)
    }

    /// What keeps the log and memory small: a snapshot or a flush that is due. Answers whether there was one.
    fn do_urgent(self: &Arc<Self>) -> Result<bool> {
        if self.sync_is_due() {
            self.sync_log()?;
        }
        // Snapshots first: they are rare, and a table that always wants flushing must not keep them out.
        let mut failed = Ok(());
        if self.log.bytes_since_snapshot() > self.options.snapshot_bytes {
            failed = self.write_snapshot();
            if failed.is_ok() {
                return Ok(true);
            }
        }
        // What fails, for want of room perhaps, must not keep others from being done.
        for table in self.tables() {
            if let Some(partition) = table.wanting_flush(self) {
                match self.flush_partition(&table, partition) {
                    Ok(_) => return failed.map(|()| true),
                    Err(error) => failed = failed.and(Err(error)),
                }
            }
        }
        failed?;
        match self.fullest(&self.tables()) {
            Some((table, partition)) => self.flush_partition(table, partition).map(|_| true),
            None => Ok(false),
        }
    }

    /// The partition with most bytes to be flushed, if those of all tables are too many.
    fn fullest<'a>(&self, tables: &'a [Arc<Table>]) -> Option<(&'a Arc<Table>, &'a Partition)> {
        let (mut sum, mut most) = (0usize, 0);
        let mut fullest = None;
        for table in tables {
            for partition in table.partitions() {
                let bytes = partition.unflushed(table.entry_bytes(partition.number()));
                sum = sum.saturating_add(bytes);
                if bytes > most {
                    most = bytes;
                    fullest = Some((table, partition));
                }
            }
        }
        fullest.filter(|_| sum > self.options.flush_bytes.saturating_mul(FULL_ROWSTORES))
    }

    /// Goes on with what is under way. Answers whether there was something.
    fn step(&self, maintenance: &mut Maintenance) -> Result<bool> {
        let step = match maintenance {
            Maintenance { merge: Some(merge), .. } => merge.step(self),
            Maintenance { build: Some(build), .. } => build.step(self),
            Maintenance { hash: Some(hash), .. } => hash.step(self),
            _ => return Ok(false),
        };
        match step {
            Ok(Progress::More) => self.merging.store(true, Ordering::Relaxed),
            Ok(Progress::Done) => {
                // Only the first of these has been stepped.
                if maintenance.merge.take().is_none() && maintenance.build.take().is_none() {
                    maintenance.hash = None;
                }
                let goes_on = maintenance.build.is_some() || maintenance.hash.is_some();
                self.merging.store(goes_on, Ordering::Relaxed);
            }
            Err(error) => {
                // A merge that fails is not begun again before its partition changes.
                if let Some(mut merge) = maintenance.merge.take() {
                    merge.abandon(self);
                }
                if let (None, Some(build)) = (&maintenance.merge, &maintenance.build) {
                    maintenance.failed.insert(build.part());
                }
                self.abandon(maintenance);
                return Err(error);
            }
        }
        Ok(true)
    }

    /// Merges the segments of each partition of a table into one sorted run. This is done in steps, between which flushes,
    /// snapshots and the steps of others have their turn.
    pub fn merge_all(self: &Arc<Self>, table: &Arc<Table>) -> Result<()> {
        let _one_at_a_time = locked(&self.merging_all);
        self.flush(table)?;
        (0..table.partitions().len())
            .try_for_each(|number| self.merge_partition(table, number as u32))?;
        let _maintenance = self.lock_maintenance();
        self.check_open()?;
        self.collect_garbage()?;
        Ok(())
    }

    fn merge_partition(self: &Arc<Self>, table: &Arc<Table>, number: u32) -> Result<()> {
        let mut sources: Vec<Arc<SegmentState>> = Vec::new();
        let mut urgent = true;
        loop {
            let mut maintenance = self.lock_maintenance();
            self.check_open()?;
            if !maintenance.merge.as_ref().is_some_and(|merge| merge.is_of(&sources)) {
                if !sources.is_empty() && !sources.iter().any(|state| state.is_current()) {
                    return Ok(());
                }
                self.abandon_merge(&mut maintenance);
                // It may have been altered since.
                let table = self.newest(table)?;
                maintenance.merge = self.start_merge_of_all(&table, table.partition(number))?;
                match &maintenance.merge {
                    Some(merge) => sources = merge.states().cloned().collect(),
                    None if table.is_newest() => return Ok(()),
                    None => continue,
                }
            }
            self.step(&mut maintenance)?;
            // What fails here fails again in the house-keeping of others, and is told there.
            urgent = urgent && self.do_urgent().is_ok();
        }
    }

    fn find_merge(&self) -> Result<Option<Merge>> {
        for table in self.tables() {
            for partition in table.partitions() {
                if let Some(merge) = self.start_merge(&table, partition)? {
                    return Ok(Some(merge));
                }
            }
        }
        Ok(None)
    }

    fn find_hash(&self) -> Result<Option<HashBuild>> {
        for table in self.tables() {
            if let Some(build) = self.start_hash(&table)? {
                return Ok(Some(build));
            }
        }
        Ok(None)
    }

    /// Gives up the house-keeping that is under way, if there is any. It begins anew when its turn comes.
    pub(crate) fn abandon(&self, maintenance: &mut Maintenance) {
        self.abandon_merge(maintenance);
        if let Some(mut build) = maintenance.build.take() {
            build.abandon(self);
        }
        if let Some(mut hash) = maintenance.hash.take() {
            hash.abandon(self);
        }
        self.merging.store(false, Ordering::Relaxed);
    }

    fn abandon_merge(&self, maintenance: &mut Maintenance) {
        if let Some(mut merge) = maintenance.merge.take() {
            merge.abandon(self);
            merge.partition().consider_merging();
        }
    }

    /// Moves a table's committed rows from the rowstore into segments.
    pub fn flush(self: &Arc<Self>, table: &Arc<Table>) -> Result<()> {
        let _one_at_a_time = self.lock_maintenance();
        self.check_open()?;
        self.flush_table(table)?;
        self.collect_garbage()?;
        Ok(())
    }

    /// Flushes, merges and snapshots run one at a time, whoever waits first before whoever takes the lock again.
    pub(crate) fn lock_maintenance(&self) -> MutexGuard<'_, Maintenance> {
        let _next = locked(&self.next_maintenance);
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes files of dropped segments and folds delete bitmaps, as far as no snapshot needs them.
    pub(crate) fn collect_garbage(&self) -> Result<bool> {
        let oldest = self.oldest_snapshot();
        self.forget_versions(oldest);
        let has_garbage = locked(&self.garbage).iter().any(|state| state.dropped_at() <= oldest)
            || locked(&self.gone_parts).iter().any(|(commit, _)| *commit <= oldest);
        if has_garbage {
            // Commits of relaxed durability are visible before they are durable, and with them the one before that
            // dropped a file: a crash could bring it back.
            self.sync_log()?;
            self.remove_garbage(oldest)?;
        }
        for table in self.tables() {
            table.segments().iter().for_each(|s| s.fold(oldest));
        }
        Ok(has_garbage)
    }

    fn remove_garbage(&self, oldest: Timestamp) -> Result<()> {
        let gone: Vec<_> =
            locked(&self.garbage).extract_if(.., |state| state.dropped_at() <= oldest).collect();
        let parts: Vec<_> =
            locked(&self.gone_parts).extract_if(.., |(commit, _)| *commit <= oldest).collect();
        let mut files: Vec<Arc<Segment>> = parts.into_iter().map(|(_, file)| file).collect();
        let gone_files: Set<u64> = files.iter().map(|file| file.id()).collect();
        let gone_segments: Set<u64> = gone.iter().map(|state| state.segment.id()).collect();
        self.bitmaps.forget(&gone_segments);
        {
            // Under the commit lock, like every change of a table's segments.
            let _commit = locked(&self.commit);
            let is_gone = |state: &Arc<SegmentState>| gone_segments.contains(&state.segment.id());
            for table in self.tables() {
                for partition in table.partitions() {
                    let list = partition.segments();
                    list.iter().for_each(|state| state.forget_parts(&gone_files));
                    if list.iter().any(is_gone) {
                        partition.update_segments(|list| list.retain(|state| !is_gone(state)));
                    }
                }
            }
        }
        files.extend(gone.iter().map(|state| state.segment.clone()));
        files.extend(gone.iter().flat_map(|state| state.part_files(|_| true)));
        // One that cannot be removed does not keep the others; the next start finds it.
        let mut outcome = Ok(());
        for file in &files {
            self.cache.forget(file.id());
            match self.host.store.remove(file.name()) {
                Err(e) if e.kind() != ErrorKind::NotFound => outcome = Err(e),
                _ => {}
            }
        }
        outcome
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
