//! A transaction's snapshot, write set and commit, on which the write statements are built.

use crate::catalog::tables;
use crate::catalog::to_verify::{ToVerify, VerifiedRows};
use crate::catalog::verify;
use crate::commit::commits::Commits;
use crate::commit::snapshots::SnapshotGuard;
use crate::read::point::{self, Found};
use crate::read::reader::Reader;
use crate::record;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::gate::Gates;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use crate::transaction::manager::TransactionManager;
use crate::transaction::temporary_tables::TemporaryTables;
use crate::transaction::write_set::WriteSet;
use nacre_rowstore::{Node, Row, Visible};
use nacre_types::plant::{self, Bug};
use nacre_types::walked::{self, Path};
use nacre_types::{Error, Result, TableId, Timestamp, Value, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A transaction's snapshot and write set. Dropping it rolls back.
pub(super) struct Core {
    manager: Arc<TransactionManager>,
    guard: Arc<SnapshotGuard>,
    writes: WriteSet,
    /// Those of its session.
    temporary: Arc<TemporaryTables>,
    /// Of the tables that it writes to and alters, if it has verified them for its commit.
    gates: Option<Gates>,
}

impl Core {
    /// Begins at the newest visible commit.
    pub fn begin(manager: &Arc<TransactionManager>) -> Core {
        walked::walk(Path::Begin);
        Core {
            guard: manager.commits().snapshots().take(),
            writes: WriteSet::new(manager.new_owner()),
            manager: manager.clone(),
            temporary: Arc::default(),
            gates: None,
        }
    }

    /// Fails with a `conflict` if the transaction cannot write rows of a table: another one has replaced this
    /// version, or the version from which this transaction has made its own.
    pub fn check_writes(&self, table: &Table) -> Result<()> {
        table.check_writes()?;
        match self.writes.catalog().found(table.id()) {
            Some(found) => found.check_newest(),
            None => Ok(()),
        }
    }

    /// Begins a second transaction on the same snapshot, which it also keeps alive.
    pub fn reader(&self) -> Core {
        Core {
            manager: self.manager.clone(),
            guard: self.guard.clone(),
            writes: WriteSet::new(self.manager.new_owner()),
            temporary: self.temporary.clone(),
            gates: None,
        }
    }

    /// The temporary tables of its session.
    pub fn temporary(&self) -> &Arc<TemporaryTables> {
        &self.temporary
    }

    /// Sets the temporary tables of its session.
    pub fn set_temporary(&mut self, temporary: Arc<TemporaryTables>) {
        debug_assert!(self.writes.is_empty(), "a transaction that has written changes its session");
        self.temporary = temporary;
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
            self.read(table, |reader| point::find(table, partition, key, encoded, &[], reader))?;
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
        let is_recorded = self.writes.log(&mut payload)? > 0;
        let has_temporary = self.writes.has_temporary();
        if !is_recorded && !has_temporary {
            return Ok(());
        }
        let manager = self.manager.clone();
        let commits = manager.commits();
        commits.check_writable()?;
        let changes_catalog = !self.writes.catalog().is_own();
        let committed = {
            let _gates = match self.gates.take() {
                Some(gates) => gates,
                None => self.verified_gates()?,
            };
            let mut turn = commits.lock();
            // Checked again: a commit after closing the database would not be synced.
            commits.check_open()?;
            let catalog = manager.catalog();
            self.writes.check_tables(|table| catalog.table_by_id(table).ok())?;
            if changes_catalog {
                self.announce_catalog(payload.len(), turn.next())?;
            }
            let committed = match is_recorded {
                true => {
                    record::stamp(&mut payload, turn.next());
                    turn.append(&payload)?
                }
                false => turn.unrecorded(),
            };
            debug_assert!(
                committed.commit > self.at(),
                "commit {} at snapshot {}",
                committed.commit,
                self.at()
            );
            // New versions of tables before segments that have their columns: a merge takes segments
            // and then looks whether the table is still that of its columns.
            if changes_catalog {
                self.change_catalog(committed.commit);
            }
            if has_temporary {
                self.writes.catalog().apply_temporary(&self.temporary, committed.commit);
            }
            self.writes.stamp(committed.commit, commits.snapshots().oldest());
            committed
        };
        // Locks are kept until the commit is durable, so that no other transaction depends on a
        // change that could still be lost.
        let settled = match self.writes.catalog().is_own() {
            true => commits.settle(committed),
            // DDL is always strict.
            false => commits.settle_strictly(committed),
        };
        let written = self.writes.unlock();
        debug_assert!(self.writes.is_empty(), "a committed transaction has changes left");
        drop(self);
        written.collect(commits.snapshots().oldest());
        settled
    }

    /// Checks that the transaction can change the catalog, and notes that its commit does. Nothing
    /// fails after the record is in the log.
    fn announce_catalog(&self, record_bytes: usize, commit: Timestamp) -> Result<()> {
        let catalog = self.manager.catalog();
        debug_assert!(
            commit > self.at(),
            "commit {commit} is that of its snapshot {} or older",
            self.at()
        );
        nacre_log::check_length(record_bytes)?;
        self.commits().log().check_usable()?;
        catalog.read(|contents| self.writes.catalog().check(contents))?;
        catalog.announce(commit);
        Ok(())
    }

    /// Passes the gates of the tables that it has written to, and closes those of tables whose last
    /// change must satisfy what the transaction makes of them. To be held until the commit is stamped.
    fn take_gates(&self) -> Gates {
        let asked = self.writes.catalog().to_verify();
        let asked = asked.filter(|(found, left, _)| {
            verify::asks_more(left, found) || verify::changes_references(left, found)
        });
        let closed: Vec<_> = asked.map(|(found, ..)| found.gate()).collect();
        debug_assert!(
            closed.is_empty() || !self.writes.catalog().is_own(),
            "a transaction that changes no table verifies one"
        );
        Gates::take(self.writes.tables().map(|table| table.gate()), &closed)
    }

    /// Takes the gates, and verifies what others have committed to altered tables since they were
    /// verified.
    fn verified_gates(&self) -> Result<Gates> {
        let gates = self.take_gates();
        self.check_references()?;
        for (found, left, verified) in self.behind() {
            self.verify_rows(found, left, View::Newest, verified)?;
        }
        Ok(gates)
    }

    /// Fails with a `conflict` if others have written, since the snapshot, rows that new foreign keys were not
    /// checked for. The gates of their tables must be closed.
    fn check_references(&self) -> Result<()> {
        let changes = self.writes.catalog();
        debug_assert!(
            changes.to_verify().all(|(found, left, _)| found.id() == left.id()),
            "a table is compared with another"
        );
        let is_written = |id| self.writes.tables().any(|table| table.id() == id);
        // The rows of a table that has just been created refer to nothing if there are none.
        let has_rows = |id: &TableId| !changes.has_created(*id) || is_written(*id);
        for (found, left, _) in changes.to_verify() {
            let (now, before) = (left.schema(), found.schema());
            let is_new = |id: &&TableId| !before.referenced_by.contains(*id);
            let is_referred = now.referenced_by.iter().filter(is_new).any(has_rows);
            let refers = now.foreign_keys.iter().any(|key| !before.foreign_keys.contains(key));
            if (is_referred || refers) && found.changed() > self.at() {
                return Err(self.conflict(found));
            }
        }
        Ok(())
    }

    /// Tables as they were found, and as they are left, that others have changed since they were verified.
    fn behind(&self) -> impl Iterator<Item = (&Table, &Table, Timestamp)> {
        let all = self.writes.catalog().to_verify();
        // A table that is no longer this one is a conflict of the commit.
        let behind = all.filter(|(found, _, at)| found.changed() > *at && found.is_newest());
        behind
            .filter(|_| !plant::is(Bug::DdlUnverified))
            .map(|(found, left, at)| (&**found, &**left, at))
    }

    /// Changes the catalog. Must be called under the commit lock, once the record is in the log.
    fn change_catalog(&self, commit: Timestamp) {
        let catalog = self.manager.catalog();
        let changes = self.writes.catalog();
        let changed =
            catalog.change(commit, |contents| changes.apply(contents, catalog.garbage(), commit));
        invariant!(
            changed.is_ok(),
            "commit {commit} does not change the catalog as checked: {changed:?}"
        );
    }

    /// Verifies the rows of a table in a new version of it, which only this transaction knows, and adds
    /// them to new indexes. Returns the commit up to which those of others satisfy it: what is
    /// committed until this transaction is must be verified then.
    pub fn verify(&self, old: &Table, new: &Table) -> Result<Timestamp> {
        let settled = self.commits().settled();
        self.verify_rows(old, new, View::Newest, 0)?;
        // The newest rows may be others than those that this transaction sees, or have become so meanwhile.
        if tables::settled_change(self.manager.catalog(), old) > self.at() {
            self.verify_rows(old, new, View::Own, 0)?;
        }
        if verify::adds_index(new, old) {
            new.consider(Work::IndexParts);
            new.recount_all();
        }
        Ok(settled)
    }

    /// Verifies the tables that others have changed since they were verified: first without their
    /// gates, so that little is left, and hardly any bytes to wait for, while the gates are closed.
    /// They stay so until the commit.
    pub fn verify_changed(&mut self) -> Result<()> {
        let mut verified = Vec::new();
        for (found, left, before) in self.behind() {
            let settled = self.commits().settled();
            self.verify_rows(found, left, View::Newest, before)?;
            verified.push((left.id(), settled));
        }
        for (table, settled) in verified {
            self.writes.note_verified(table, settled);
        }
        if !self.writes.catalog().is_own() {
            self.gates = Some(self.verified_gates()?);
        }
        Ok(())
    }

    /// Verifies the rows committed after a commit, all of them after commit 0.
    fn verify_rows(&self, old: &Table, new: &Table, view: View, since: Timestamp) -> Result<()> {
        debug_assert!(
            new.shares_partitions(old),
            "rows of table {} are verified in another",
            old.schema().name
        );
        let rows = SeenRows { core: self, table: new, view };
        let memory = self.manager.environment().statement_memory();
        let to_verify = ToVerify { rows: &rows, since, memory };
        if verify::adds_index(new, old) {
            new.enter_rows(&|node| to_verify.has_node(node).then(|| rows.row(node)).flatten())?;
        }
        verify::verify(new, old, to_verify).map(drop)
    }
}

/// Which rows of others are verified beside those of a transaction.
#[derive(Clone, Copy, PartialEq)]
enum View {
    /// Those of the newest commit.
    Newest,
    /// Those that the transaction sees.
    Own,
}

/// The rows of a table with the changes of a transaction.
struct SeenRows<'a> {
    core: &'a Core,
    table: &'a Table,
    view: View,
}

impl VerifiedRows for SeenRows<'_> {
    fn row(&self, node: &Node) -> Option<Row> {
        let owner = self.core.writes.owner();
        let at = match self.view {
            View::Newest => Timestamp::MAX,
            View::Own => self.core.at(),
        };
        match node.visible(at, Some(owner)) {
            Visible::Row(row) => Some(row),
            Visible::Deleted | Visible::Elsewhere => None,
        }
    }

    fn segments(&self, partition: &Partition) -> Arc<SegmentList> {
        debug_assert!(
            std::ptr::eq(self.table.partition(partition.number()), partition),
            "segments in a partition of another table are verified"
        );
        match self.core.writes.own_segments() {
            Some(own) => own.list(self.table, partition),
            None => partition.segments(),
        }
    }

    fn has(&self, state: &SegmentState) -> bool {
        match self.view {
            View::Newest => state.is_current(),
            View::Own => state.exists_at(self.core.at()),
        }
    }

    fn deleted(&self, state: &SegmentState) -> Arc<RoaringBitmap> {
        let deleted = match self.view {
            View::Newest => Some(state.all_deleted()),
            View::Own => state.deleted_at(self.core.at()),
        };
        match (deleted, self.core.writes.hidden().of_segment(self.table, state.id())) {
            (Some(deleted), Some(hidden)) => Arc::new(&*deleted | hidden),
            (None, Some(hidden)) => Arc::new(hidden.clone()),
            (deleted, None) => deleted.unwrap_or_default(),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.writes.roll_back_to(0);
        debug_assert!(self.writes.is_empty(), "a transaction ends with writes");
        debug_assert!(
            self.writes.catalog().is_empty(),
            "a transaction ends with a changed catalog"
        );
        self.writes.owner().end();
    }
}
