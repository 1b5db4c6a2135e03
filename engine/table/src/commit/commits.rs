//! The commit pipeline. Under the commit lock: take the next timestamp, append the record, stamp what
//! was written. Outside it: wait for the sync, then make the timestamp visible.
//!
//! Because log order is timestamp order and a sync covers everything before it, whoever's sync
//! returns may make its own timestamp visible without looking at others'.

use crate::record;
use crate::store::{CatalogState, Store};
use nacre_log::Lsn;
use nacre_types::{Result, Timestamp};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// What the commit lock protects, beside the order of things.
pub(crate) struct CommitState {
    /// The last timestamp given out.
    pub last: Timestamp,
}

impl Store {
    /// Appends a prepared record under the commit lock. `check` may still refuse; `stamp` must not fail:
    /// the record is in the log by then. Returns the timestamp and the position to sync to.
    pub(crate) fn commit_record<T>(
        &self,
        payload: &mut [u8],
        check: impl FnOnce(Timestamp) -> Result<T>,
        stamp: impl FnOnce(Timestamp, T),
    ) -> Result<(Timestamp, Lsn)> {
        let mut state = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let commit = state.last + 1;
        let checked = check(commit)?;
        record::stamp(payload, commit);
        let lsn = self.log.append(payload)?;
        state.last = commit;
        stamp(commit, checked);
        Ok((commit, lsn))
    }

    /// The last commit, when none is in the middle of it: whoever lists a segment for a commit to come holds the lock
    /// until it is there, or takes it out again.
    pub(crate) fn settled(&self) -> Timestamp {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Makes everything that is committed visible. It waits for its sync, where that is not only a matter of time.
    pub fn catch_up(&self) -> Result<()> {
        let (last, lsn) = {
            let state = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
            (state.last, self.log.position())
        };
        if last > self.visible() {
            self.sync_to(lsn)?;
            self.make_visible(last);
        }
        Ok(())
    }

    /// Makes what the catalog has, or has not any more, durable: before somebody is answered that it is so.
    pub fn settle_catalog(&self) -> Result<()> {
        self.log.check_usable()?;
        self.sync_log()
    }

    /// Waits until house-keeping's commit is durable and makes it visible. When the sync fails, whether the record
    /// is in the log is open until the next start: nothing that it names may be removed.
    pub(crate) fn settle_strictly(&self, (commit, lsn): (Timestamp, Lsn)) -> Result<()> {
        self.sync_to(lsn)?;
        self.make_visible(commit);
        Ok(())
    }

    /// Commits a change of the catalog and waits until it is durable. DDL is always strict.
    pub(crate) fn commit_ddl(
        &self,
        payload: Vec<u8>,
        apply: impl FnOnce(&mut CatalogState, Timestamp) -> Result<()>,
    ) -> Result<()> {
        self.commit_prepared_ddl(payload, |_| Ok(()), |catalog, commit, ()| apply(catalog, commit))
    }

    /// The same; what takes long is done by `prepare`, under the commit lock, which keeps the catalog as it is, while
    /// others may look things up in it.
    pub(crate) fn commit_prepared_ddl<T>(
        &self,
        mut payload: Vec<u8>,
        prepare: impl FnOnce(Timestamp) -> Result<T>,
        apply: impl FnOnce(&mut CatalogState, Timestamp, T) -> Result<()>,
    ) -> Result<()> {
        // The catalog is changed before the append. What that would refuse is refused before, so that what can still be
        // read stays readable, and nobody sees a version that no record has.
        nacre_log::check_length(payload.len())?;
        let check = |commit| {
            self.log.check_usable()?;
            let prepared = prepare(commit)?;
            // First, so that whoever meets the change knows that it may be too new for him.
            self.last_ddl.store(commit, Ordering::Release);
            apply(
                &mut self.catalog.write().unwrap_or_else(PoisonError::into_inner),
                commit,
                prepared,
            )
        };
        let committed = self.commit_record(&mut payload, check, |_, ()| {})?;
        self.settle_strictly(committed)
    }
}
