//! House-keeping, stepped from outside: when what is due, one piece at a time, and removing what nobody needs any more.
//! What a piece does is the affair of whoever does it: `flush.rs`, `merge.rs`, `snapshot.rs`, `index/`.

use crate::index::build::Build;
use crate::index::hash::build::HashBuild;
use crate::merge::{Merge, Progress};
use crate::store::Store;
use crate::table::Table;
use nacre_segment::Segment;
use nacre_types::Result;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

/// House-keeping that goes on from step to step.
#[derive(Default)]
pub(crate) struct Maintenance {
    merge: Option<Merge>,
    build: Option<Build>,
    hash: Option<HashBuild>,
}

impl Store {
    /// Whether [`Store::maintain`] has something to do.
    pub fn needs_maintenance(&self) -> bool {
        let wants = |table: &Arc<Table>| {
            table.wanting_flush(self.options.flush_bytes).is_some()
                || table.partitions().iter().any(|p| p.may_merge().load(Ordering::Relaxed))
                || Store::may_build(table)
                || Store::may_hash(table)
        };
        self.tables().iter().any(wants)
            || self.merging.load(Ordering::Relaxed)
            || self.log.bytes_since_snapshot() > self.options.snapshot_bytes
            || self.sync_is_due()
    }

    /// Does one piece of house-keeping: a due sync, a snapshot, a flush, a step of a merge, or removing files nobody
    /// needs.
    /// Answers whether there may be more to do.
    pub fn maintain(self: &Arc<Self>) -> Result<bool> {
        let Ok(mut maintenance) = self.maintenance.try_lock() else { return Ok(false) };
        self.check_open()?;
        if self.sync_is_due() {
            self.sync_log()?;
        }
        // Snapshots first: they are rare, and a table that always wants flushing must not keep them out.
        if self.log.bytes_since_snapshot() > self.options.snapshot_bytes {
            self.write_snapshot()?;
            return Ok(true);
        }
        for table in self.tables() {
            if let Some(partition) = table.wanting_flush(self.options.flush_bytes) {
                self.flush_partition(&table, partition)?;
                return Ok(true);
            }
        }
        if maintenance.merge.is_none() {
            maintenance.merge = self.find_merge()?;
        }
        if maintenance.merge.is_none() && maintenance.build.is_none() {
            maintenance.build = self.tables().iter().find_map(|table| self.start_build(table));
        }
        if maintenance.merge.is_none() && maintenance.build.is_none() && maintenance.hash.is_none() {
            maintenance.hash = self.find_hash()?;
        }
        let step = match &mut *maintenance {
            Maintenance { merge: Some(merge), .. } => merge.step(self),
            Maintenance { build: Some(build), .. } => build.step(self),
            Maintenance { hash: Some(hash), .. } => hash.step(self),
            _ => return self.collect_garbage(),
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
                self.abandon(&mut maintenance);
                return Err(error);
            }
        }
        Ok(true)
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

    /// Gives up the house-keeping that is under way, if there is any.
    pub(crate) fn abandon(&self, maintenance: &mut Maintenance) {
        if let Some(mut merge) = maintenance.merge.take() {
            merge.abandon(self);
        }
        if let Some(mut build) = maintenance.build.take() {
            build.abandon(self);
        }
        if let Some(mut hash) = maintenance.hash.take() {
            hash.abandon(self);
        }
        self.merging.store(false, Ordering::Relaxed);
    }

    /// Moves a table's committed rows from the rowstore into segments.
    pub fn flush(self: &Arc<Self>, table: &Arc<Table>) -> Result<()> {
        let _one_at_a_time = self.lock_maintenance();
        self.check_open()?;
        self.flush_table(table)?;
        self.collect_garbage()?;
        Ok(())
    }

    /// Flushes, merges and snapshots run one at a time.
    pub(crate) fn lock_maintenance(&self) -> MutexGuard<'_, Maintenance> {
        self.maintenance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes files of dropped segments and folds delete bitmaps, as far as no snapshot needs them.
    pub(crate) fn collect_garbage(&self) -> Result<bool> {
        let oldest = self.oldest_snapshot();
        self.forget_versions(oldest);
        let ready: Vec<_> = {
            let mut garbage = self.garbage.lock().unwrap_or_else(PoisonError::into_inner);
            let (ready, kept) = garbage.drain(..).partition(|s| s.dropped_at() <= oldest);
            *garbage = kept;
            ready
        };
        if !ready.is_empty() {
            let gone: Vec<u64> = ready.iter().map(|s| s.segment.id()).collect();
            self.bitmaps.forget(&gone);
            // Under the commit lock, like every change of a table's segments.
            let _commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
            for table in self.tables() {
                for partition in table.partitions() {
                    partition.update_segments(|list| list.retain(|s| !gone.contains(&s.segment.id())));
                }
            }
        }
        let mut files: Vec<Arc<Segment>> = ready.iter().map(|state| state.segment.clone()).collect();
        files.extend(ready.iter().flat_map(|state| state.part_files()));
        {
            let mut gone = self.gone_parts.lock().unwrap_or_else(PoisonError::into_inner);
            files.extend(gone.extract_if(.., |(commit, _)| *commit <= oldest).map(|(_, file)| file));
        }
        for file in &files {
            self.cache.forget(file.id());
            match self.host.store.remove(file.name()) {
                Err(e) if e.kind() != nacre_types::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        for table in self.tables() {
            table.segments().iter().for_each(|s| s.fold(oldest));
        }
        Ok(!ready.is_empty())
    }
}
