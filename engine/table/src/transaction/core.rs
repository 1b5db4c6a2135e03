//! A transaction's snapshot, write set and commit, on which the write statements are built.

use crate::commit::commits::Commits;
use crate::commit::snapshots::SnapshotGuard;
use crate::read::point::{self, Found};
use crate::read::reader::Reader;
use crate::record;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::manager::TransactionManager;
use crate::transaction::write_set::WriteSet;
use nacre_types::walked::{self, Path};
use nacre_types::{Error, Result, Timestamp, Value};
use std::sync::Arc;

/// A transaction's snapshot and write set. Dropping it rolls back.
pub(super) struct Core {
    manager: Arc<TransactionManager>,
    guard: Arc<SnapshotGuard>,
    writes: WriteSet,
}

impl Core {
    /// Begins at the newest visible commit.
    pub fn begin(manager: &Arc<TransactionManager>) -> Core {
        Core {
            guard: manager.commits().snapshots().take(),
            writes: WriteSet::new(manager.new_owner()),
            manager: manager.clone(),
        }
    }

    /// Begins a second transaction on the same snapshot, which it also keeps alive.
    pub fn reader(&self) -> Core {
        Core {
            manager: self.manager.clone(),
            guard: self.guard.clone(),
            writes: WriteSet::new(self.manager.new_owner()),
        }
    }

    /// State shared with other transactions.
    pub fn manager(&self) -> &TransactionManager {
        &self.manager
    }

    /// State shared with other transactions, beside changes of this one.
    pub fn shared_manager(&self) -> Arc<TransactionManager> {
        self.manager.clone()
    }

    /// The commit pipeline.
    pub fn commits(&self) -> &Commits {
        self.manager.commits()
    }

    /// Its snapshot.
    pub fn guard(&self) -> &Arc<SnapshotGuard> {
        &self.guard
    }

    /// The timestamp of its snapshot.
    pub fn at(&self) -> Timestamp {
        self.guard.at()
    }

    /// Its locks and writes.
    pub fn writes(&self) -> &WriteSet {
        &self.writes
    }

    /// Its locks and writes, mutably.
    pub fn writes_mut(&mut self) -> &mut WriteSet {
        &mut self.writes
    }

    /// Reads a table as this transaction sees it.
    pub fn read<T>(&self, table: &Table, read: impl FnOnce(&Reader<'_>) -> Result<T>) -> Result<T> {
        let hides = |segment, row| self.writes.hidden().contains(table, segment, row);
        let own = self.writes.own_segments();
        read(&Reader { at: self.at(), owner: Some(self.writes.owner()), hides: &hides, own })
    }

    /// The visible row of a key, and its partition. `encoded` is the key's encoding.
    pub fn find<'t>(
        &self,
        table: &'t Table,
        key: &[Value],
        encoded: &[u8],
    ) -> Result<Option<(&'t Partition, Found)>> {
        debug_assert!(
            table.layout().encode_wanted_key(key).is_ok_and(|known| known == encoded),
            "a key and its encoding differ"
        );
        let partition = table.partition_of(encoded);
        let found =
            self.read(table, |reader| point::find(table, partition, key, encoded, reader))?;
        Ok(found.map(|found| (partition, found)))
    }

    /// The row with a key in a segment that this transaction has written.
    pub fn own_row(
        &self,
        table: &Table,
        partition: &Partition,
        key: &[Value],
    ) -> Result<Option<(Arc<SegmentState>, u32)>> {
        match self.writes.own_segments() {
            Some(own) => {
                let hides = |segment, row| self.writes.hidden().contains(table, segment, row);
                own.row(table, partition, key, &hides)
            }
            None => Ok(None),
        }
    }

    /// A segment that this transaction has written.
    pub fn own_segment(&self, segment: u64) -> Option<Arc<SegmentState>> {
        self.writes.own_segments().and_then(|own| own.segment(segment).cloned())
    }

    /// The error for a row that another transaction changed after this transaction's snapshot.
    pub fn conflict(&self, table: &Table) -> Error {
        let name = &table.schema().name;
        Error::conflict(format!("a row of table {name} was changed by another transaction"))
            .with_table(name.clone())
            .with_hint("retry the transaction")
    }

    /// Makes all changes durable and visible, or none. After an `io` error the log is poisoned and
    /// the outcome is unknown until the database is opened again.
    pub fn commit(mut self) -> Result<()> {
        debug_assert!(
            self.at() <= self.commits().snapshots().visible(),
            "a transaction at commit {}, which is not visible",
            self.at()
        );
        let deletes_many = walked::IS_COUNTED && self.writes.has_claims();
        let _within = deletes_many.then(|| walked::within(Path::ManyCommitted));
        let mut payload = record::begin(0);
        if self.writes.log(&mut payload)? == 0 {
            return Ok(());
        }
        let manager = self.manager.clone();
        let commits = manager.commits();
        commits.check_writable()?;
        let committed = {
            let mut turn = commits.lock();
            // Checked again: a commit after closing the database would not be synced.
            commits.check_open()?;
            self.writes.check_tables()?;
            record::stamp(&mut payload, turn.next());
            let committed = turn.append(&payload)?;
            debug_assert!(
                committed.commit > self.at(),
                "commit {} at snapshot {}",
                committed.commit,
                self.at()
            );
            self.writes.stamp(committed.commit, commits.snapshots().oldest());
            committed
        };
        // Locks are kept until the commit is durable, so that no other transaction depends on a
        // change that could still be lost.
        let settled = commits.settle(committed);
        let written = self.writes.unlock();
        debug_assert!(self.writes.is_empty(), "a committed transaction has changes left");
        drop(self);
        written.collect(commits.snapshots().oldest());
        settled
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.writes.roll_back_to(0);
        self.writes.owner().end();
    }
}
