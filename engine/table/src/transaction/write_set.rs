//! The locks and writes of a transaction, in order, so that they can be undone step by step, logged
//! and stamped.

use crate::load::bulk_update::BulkUpdate;
use crate::record;
use crate::table::journal::TakenLock;
use crate::table::partition::Partition;
use crate::table::reference_locks::HeldReferences;
use crate::table::version::Table;
use crate::transaction::catalog_changes::{CatalogChange, CatalogChanges};
use crate::transaction::claimed::ClaimedRows;
use crate::transaction::hidden::{HiddenRows, SegmentRow};
use crate::transaction::own_segments::OwnSegments;
use crate::transaction::step::{Rekeyed, Step, Undo, Written, places, writes};
use crate::transaction::written_partitions::Partitions;
use nacre_rowstore::{Blocker, Change, LockError, Node, Owner};
use nacre_types::hash::Set;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, ErrorKind, Result, TableId, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A row locked for writing.
#[derive(Clone)]
pub(super) struct LockedRow {
    pub partition: u32,
    pub node: Arc<Node>,
    /// Whether this write took the lock.
    pub fresh: bool,
    /// The row's location in a segment, if it was seen there.
    pub hides: Option<SegmentRow>,
}

/// The locks and writes of a transaction.
pub(super) struct WriteSet {
    owner: Arc<Owner>,
    undo: Vec<Step>,
    /// Number of undo steps whose rowstores have been counted since.
    counted: usize,
    hidden: HiddenRows,
    /// Segments of updates.
    own: OwnSegments,
    catalog: CatalogChanges,
    /// The holder of the lock on which the last write failed.
    blocker: Option<Blocker>,
}

impl WriteSet {
    /// Creates an empty set whose locks belong to `owner`.
    pub fn new(owner: Arc<Owner>) -> WriteSet {
        WriteSet {
            owner,
            undo: Vec::new(),
            counted: 0,
            hidden: HiddenRows::default(),
            own: OwnSegments::default(),
            catalog: CatalogChanges::default(),
            blocker: None,
        }
    }

    /// The lock owner.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether nothing is changed or locked.
    pub fn is_empty(&self) -> bool {
        self.undo.is_empty()
    }

    /// Number of undo steps.
    pub fn len(&self) -> usize {
        self.undo.len()
    }

    /// Segment rows that were replaced or deleted.
    pub fn hidden(&self) -> &HiddenRows {
        &self.hidden
    }

    /// The segments that were written, if there are any.
    pub fn own_segments(&self) -> Option<&OwnSegments> {
        (!self.own.is_empty()).then_some(&self.own)
    }

    /// The changes of the catalog.
    pub fn catalog(&self) -> &CatalogChanges {
        &self.catalog
    }

    /// Notes the commit up to which the rows of others satisfy a table that was altered.
    pub fn note_verified(&mut self, table: TableId, at: Timestamp) {
        self.catalog.note_verified(table, at);
    }

    /// Adds a change of the catalog.
    pub fn change_catalog(&mut self, change: CatalogChange) {
        self.catalog.push(change);
        self.undo.push(Step::Catalog);
    }

    /// The steps after the first ones.
    pub fn steps_from(&self, first: usize) -> &[Step] {
        debug_assert!(first <= self.undo.len(), "{first} of {} steps", self.undo.len());
        &self.undo[first.min(self.undo.len())..]
    }

    /// Keeps locks of keys that rows refer to.
    pub fn hold(&mut self, references: HeldReferences) {
        self.undo.push(Step::References(references));
    }

    /// Notes rows that have got other keys.
    pub fn note_rekeyed(&mut self, table: TableId, rows: Vec<Rekeyed>) {
        debug_assert!(!rows.is_empty(), "no row of table {table} has got another key");
        debug_assert!(
            rows.iter().all(|row| row.old.len() == row.new.len()),
            "a row of table {table} has got other columns"
        );
        self.undo.push(Step::Rekeyed { table, rows });
    }

    /// Takes the holder of the lock on which the last write failed.
    pub fn take_blocker(&mut self) -> Option<Blocker> {
        self.blocker.take()
    }

    /// Records the holder of a lock, and returns the error for it.
    pub fn blocked_by(&mut self, holder: Blocker, message: String) -> Error {
        invariant!(
            !Arc::ptr_eq(holder.owner(), &self.owner),
            "a transaction waits for a lock that it holds"
        );
        self.blocker = Some(holder);
        Error::new(ErrorKind::LockTimeout, message)
    }

    /// Locks the node of a key.
    pub fn lock_node(
        &mut self,
        table: &Table,
        partition: &Partition,
        key: &[u8],
    ) -> Result<LockedRow> {
        debug_assert!(
            std::ptr::eq(table.partition_of(key), partition),
            "a key is locked in partition {}, which does not have it",
            partition.number()
        );
        loop {
            let node = partition.rowstore().get_or_insert(key);
            match node.lock(&self.owner) {
                Ok(fresh) => {
                    debug_assert!(
                        !fresh || node.pending().is_none(),
                        "a row that was not locked has a change"
                    );
                    let partition = partition.number();
                    if fresh {
                        table.journals().note(|| TakenLock::Row { partition, node: node.clone() });
                    }
                    return Ok(LockedRow { partition, node, fresh, hides: None });
                }
                Err(LockError::Dead) => std::hint::spin_loop(),
                Err(LockError::Held(holder)) => {
                    let table = &table.schema().name;
                    let message =
                        format!("a row of table {table} is locked by another transaction");
                    return Err(self.blocked_by(holder, message));
                }
            }
        }
    }

    /// Claims a value of the unique index at a position, for a row of a partition.
    pub fn lock_claim(
        &mut self,
        table: &Arc<Table>,
        partition: u32,
        index_at: usize,
        index_key: &[u8],
    ) -> Result<()> {
        let index = &table.indexes()[index_at];
        debug_assert!(index.is_unique(), "a value of index {} is claimed", index.name());
        loop {
            let node = index.claims().get_or_insert(index_key);
            match node.lock(&self.owner) {
                Ok(true) => {
                    debug_assert!(node.newest().is_none(), "a claimed value has a row");
                    let index = index.id();
                    table.journals().note(|| TakenLock::Value { index, node: node.clone() });
                    self.undo.push(Step::Write(Undo {
                        table: table.clone(),
                        partition,
                        node,
                        previous: None,
                        locked: true,
                        hidden: None,
                        claim: Some(index_at),
                    }));
                    return Ok(());
                }
                Ok(false) => return Ok(()),
                Err(LockError::Dead) => std::hint::spin_loop(),
                Err(LockError::Held(holder)) => {
                    let (table, index) = (&table.schema().name, index.name());
                    let message = format!(
                        "a value of index {index} of table {table} is locked by another transaction"
                    );
                    return Err(self.blocked_by(holder, message));
                }
            }
        }
    }

    /// Writes a change to a locked row.
    pub fn write(&mut self, table: &Arc<Table>, row: LockedRow, change: Change) {
        let LockedRow { partition, node, fresh, hides } = row;
        debug_assert!(node.is_locked_by(&self.owner), "a row is written without its lock");
        debug_assert!(
            !matches!(change, Change::Flushed),
            "a transaction writes that a row was flushed"
        );
        let hidden = hides.filter(|row| self.hidden.insert(table, *row));
        let previous = node.set_pending(Some(change));
        invariant!(!fresh || previous.is_none(), "a row had a change before it was locked");
        self.undo.push(Step::Write(Undo {
            table: table.clone(),
            partition,
            node,
            previous,
            locked: fresh,
            hidden,
            claim: None,
        }));
    }

    /// Keeps a lock without a change, until the statement or the transaction releases it.
    pub fn keep_lock(&mut self, table: &Arc<Table>, row: LockedRow) {
        let LockedRow { partition, node, fresh: locked, .. } = row;
        debug_assert!(node.is_locked_by(&self.owner), "a lock is kept that is not held");
        if locked {
            self.undo.push(Step::Write(Undo {
                table: table.clone(),
                partition,
                node,
                previous: None,
                locked,
                hidden: None,
                claim: None,
            }));
        }
    }

    /// Deletes rows of a segment that this owner has just claimed.
    pub fn leave(&mut self, claimed: ClaimedRows) {
        debug_assert!(
            claimed.state.claims().has_all(&self.owner, &claimed.rows),
            "rows of segment {} are deleted without their locks",
            claimed.state.id()
        );
        claimed.hide(&mut self.hidden);
        self.undo.push(Step::Claim(claimed));
    }

    /// Adds the new rows of an update whose old rows this owner has claimed.
    pub fn add(&mut self, update: BulkUpdate) {
        debug_assert!(
            update.rekeys() == update.has_reserved(),
            "an update changes keys that it has not reserved"
        );
        self.own.add(update.own_segments());
        self.undo.push(Step::Update(Box::new(update)));
    }

    /// Hides rows of a segment that this transaction has written.
    pub fn hide(&mut self, table: &Arc<Table>, segment: u64, rows: RoaringBitmap) {
        invariant!(self.own.has(segment), "rows of segment {segment} are hidden without a claim");
        self.hidden.insert_all(table, segment, &rows);
        self.undo.push(Step::Hide { table: table.clone(), segment, rows });
    }

    /// Releases a lock without a change under it, unless it was held before. Returns whether it
    /// did; the caller must then call [`WriteSet::wake_waiters`].
    pub fn release(&self, table: &Table, locked: &LockedRow) -> bool {
        debug_assert!(locked.node.is_locked_by(&self.owner), "a lock is released that is not held");
        if locked.fresh {
            invariant!(locked.node.pending().is_none(), "the lock of a changed row is released");
            locked.node.unlock();
            table.partition(locked.partition).note_released();
            if locked.node.newest().is_none() {
                table.collect_row(table.partition(locked.partition), &locked.node, 0);
            }
        }
        locked.fresh
    }

    /// Wakes transactions that wait for locks released early. Does nothing if this transaction is
    /// about to block: two waiters would wake each other forever.
    pub fn wake_waiters(&self) {
        if self.blocker.is_none() {
            self.owner.gave_back();
        }
    }

    /// Counts the rowstores of what was written since the last call.
    pub fn count(&mut self) {
        debug_assert!(self.counted <= self.undo.len(), "{} steps are counted", self.counted);
        Partitions::of(places(writes(&self.undo[self.counted..]))).recount();
        self.counted = self.undo.len();
    }

    /// Undoes all but the first `kept` steps and releases the locks they took.
    pub fn roll_back_to(&mut self, kept: usize) {
        debug_assert!(kept <= self.undo.len(), "{kept} of {} steps are kept", self.undo.len());
        let is_undone = self.undo.len() > kept;
        let mut released = false;
        let undone = Partitions::of(places(writes(&self.undo[kept..])));
        while self.undo.len() > kept {
            match self.undo.pop() {
                Some(Step::Write(undo)) => released |= self.undo_one(undo),
                Some(Step::Claim(claimed)) => {
                    claimed.undo(&self.owner, &mut self.hidden);
                    released = true;
                }
                // Its files are removed.
                Some(Step::Update(update)) => {
                    self.own.remove(update.files());
                    released |= update.has_reserved();
                }
                Some(Step::Hide { table, segment, rows }) => {
                    self.hidden.remove_all(&table, segment, &rows);
                    // Keys that the statement had reserved have been given back.
                    released = true;
                }
                Some(Step::Catalog) => self.catalog.pop(),
                Some(Step::References(held)) => {
                    drop(held);
                    released = true;
                }
                Some(Step::Rekeyed { .. }) => {}
                None => break,
            }
        }
        self.counted = self.counted.min(kept);
        undone.note_released();
        undone.recount();
        if released {
            self.wake_waiters();
        }
        debug_assert!(
            kept > 0 || !is_undone || self.hidden.is_empty(),
            "a transaction without changes hides rows of segments"
        );
        debug_assert!(
            kept > 0 || self.catalog.is_empty(),
            "a transaction without changes has changed the catalog"
        );
    }

    /// Returns whether a lock was released.
    fn undo_one(&mut self, undo: Undo) -> bool {
        debug_assert!(undo.node.is_locked_by(&self.owner), "a write is undone without its lock");
        if let Some(hidden) = undo.hidden {
            self.hidden.remove(&undo.table, hidden);
        }
        let undone = undo.node.set_pending(undo.previous.clone());
        debug_assert!(undo.claim.is_none() || undone.is_none(), "a claimed value had a change");
        if !undo.table.indexes().is_empty() {
            let (before, undone) = (undo.previous.as_ref(), undone.as_ref());
            undo.table.take_back(undo.partition, &undo.node, before, undone);
        }
        if undo.locked {
            undo.node.unlock();
            // Remove a node created for this write, unless another transaction has just locked it.
            if undo.node.newest().is_none() {
                undo.collect(0);
            }
        }
        undo.locked
    }

    /// Appends the changes to a record and returns their number.
    pub fn log(&mut self, payload: &mut Vec<u8>) -> Result<usize> {
        debug_assert!(record::timestamp(payload).is_some(), "a record has no room for its commit");
        let mut operations = self.catalog.log_tables(payload)?;
        for claimed in self.claimed() {
            operations += 1;
            if !plant::is(Bug::HalfHugeUpdate) || operations % 2 == 1 {
                claimed.log(payload)?;
            }
        }
        for step in &mut self.undo {
            if let Step::Update(update) = step
                && self.catalog.keeps_rows_of(update.table())
            {
                operations += update.log(&self.hidden, payload)?;
            }
        }
        let recorded =
            |undo: &&Undo| !undo.table.is_temporary() && self.catalog.keeps_rows_of(&undo.table);
        for undo in self.written().filter(recorded) {
            debug_assert!(undo.node.is_locked_by(&self.owner), "a row is logged without its lock");
            let place = undo.table.place(undo.table.partition(undo.partition));
            match undo.node.pending() {
                Some(Change::Put(row)) => record::put(payload, place, undo.node.key(), &row),
                Some(Change::Delete) => record::delete(payload, place, undo.node.key()),
                Some(Change::Flushed) | None => continue,
            }
            invariant!(undo.claim.is_none(), "a claimed value has a change to be logged");
            operations += 1;
        }
        self.log_counters(payload);
        self.catalog.log_rest(payload);
        Ok(operations)
    }

    /// Whether something is changed that no record has, because its table is temporary.
    pub fn has_temporary(&self) -> bool {
        self.catalog.changes_temporary()
            || self.written().any(|undo| undo.table.is_temporary() && undo.node.pending().is_some())
    }

    /// Whether rows are deleted together.
    pub fn has_claims(&self) -> bool {
        self.claimed().next().is_some()
    }

    /// The tables that rows were written to, in any version, some of them several times.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.undo.iter().filter_map(Step::table)
    }

    /// Appends how far the counters have come of tables that rows were written to.
    fn log_counters(&self, payload: &mut Vec<u8>) {
        let mut counted: Set<TableId> = Set::default();
        let updated = self.updates().map(BulkUpdate::table);
        let written = self.written().map(|undo| &undo.table).chain(updated);
        let written = written.filter(|table| !table.is_temporary());
        for table in written.filter(|table| self.catalog.keeps_rows_of(table)) {
            if table.schema().identity_column().is_some() && counted.insert(table.id()) {
                record::advance(payload, table.id(), table.next_identity());
            }
        }
    }

    /// The rows that are deleted together, of tables that are left.
    fn claimed(&self) -> impl Iterator<Item = &ClaimedRows> {
        self.undo.iter().filter_map(|step| match step {
            Step::Claim(claimed) if self.catalog.keeps_rows_of(&claimed.table) => Some(claimed),
            _ => None,
        })
    }

    /// The updates of many rows.
    fn updates(&self) -> impl Iterator<Item = &BulkUpdate> {
        self.undo.iter().filter_map(|step| match step {
            Step::Update(update) => Some(&**update),
            _ => None,
        })
    }

    /// The writes that took the locks of their nodes.
    fn written(&self) -> impl Iterator<Item = &Undo> {
        self.undo.iter().filter_map(|step| match step {
            Step::Write(undo) if undo.locked => Some(undo),
            _ => None,
        })
    }

    /// Fails if a table was dropped, altered or truncated since it was written to, or has no room for
    /// new segments. Adds the rows to indexes that were created since. Must be called under the commit lock.
    pub fn check_tables(&self, newest: impl Fn(TableId) -> Option<Arc<Table>>) -> Result<()> {
        self.updates().try_for_each(BulkUpdate::check_room)?;
        // All tables before any row: what is undone leaves the version it was written to, no later one.
        let mut entered = Vec::new();
        for step in &self.undo {
            let Some(table) = step.table().filter(|table| !table.is_newest()) else { continue };
            debug_assert!(!table.is_temporary(), "a temporary table is changed by another session");
            let newest = newest(table.id()).filter(|newest| newest.takes_rows_of(table));
            let newest = newest.ok_or_else(|| table.superseded())?;
            if let Step::Write(undo) = step
                && let Some(Change::Put(row)) = undo.node.pending()
            {
                entered.push((newest, undo, row));
            }
        }
        entered.iter().try_for_each(|(newest, undo, row)| {
            debug_assert!(undo.claim.is_none(), "a claimed value has a row");
            newest.enter(undo.partition, undo.node.key(), row)
        })
    }

    /// Turns the changes into versions of a commit, keeping the row locks. Must be called under the
    /// commit lock. `oldest` is the oldest snapshot.
    pub fn stamp(&mut self, commit: Timestamp, oldest: Timestamp) {
        debug_assert!(oldest < commit, "commit {commit} is stamped after snapshot {oldest}");
        // New rows before old ones: a writer that looks for a key finds one or the other.
        for step in &mut self.undo {
            if let Step::Update(update) = step
                && self.catalog.keeps_rows_of(update.table())
            {
                update.stamp(commit);
            }
        }
        let mut cleared: Set<TableId> = Set::default();
        for claimed in self.claimed() {
            if cleared.insert(claimed.table.id()) {
                claimed.table.set_cleared(commit);
            }
            claimed.stamp(commit, oldest);
        }
        for undo in self.written() {
            debug_assert!(
                undo.node.is_locked_by(&self.owner),
                "a row is committed without its lock"
            );
            // Set first, so that a reader that sees the change also knows that it may be too new.
            debug_assert!(
                undo.node.newest().is_none_or(|newest| newest.commit < commit),
                "commit {commit} is older than what it replaces"
            );
            undo.table.set_changed(commit);
            undo.node.commit_pending(commit);
        }
    }

    /// Releases all locks after a commit.
    pub fn unlock(&mut self) -> Written {
        let mut written = Vec::new();
        self.counted = 0;
        self.own.clear();
        self.catalog = CatalogChanges::default();
        for step in self.undo.drain(..) {
            match step {
                Step::Write(undo) if undo.locked => written.push(undo),
                Step::Write(_) | Step::Update(_) | Step::Hide { .. } | Step::Catalog => {}
                Step::References(_) | Step::Rekeyed { .. } => {}
                Step::Claim(claimed) => claimed.release(&self.owner),
            }
        }
        debug_assert!(
            written.iter().all(|undo| undo.node.pending().is_none()),
            "a committed row has a pending change"
        );
        written.iter().for_each(|undo| undo.node.unlock());
        Written(written)
    }
}
