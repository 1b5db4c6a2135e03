//! A user transaction under snapshot isolation: reads at its snapshot plus its own changes, writes with
//! row locks, first committer wins.
//!
//! Rows that live in segments are first moved into the rowstore by a commit of its own that changes
//! nothing a reader can tell (paper, 4.2); then the copy is locked and changed like any other row.

use crate::layout::rows;
use crate::read::point::{self, Found};
use crate::read::view::{RowLocator, TableView};
use crate::record;
use crate::segments::state::SegmentState;
use crate::store::{SnapshotGuard, Store};
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::locking::LockedRow;
use nacre_column::Batch;
use nacre_rowstore::{Blocker, Change, Node, Owner, Row};
use nacre_types::hash::Map;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Reason, Result, TableId, Timestamp, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Segment id and row number.
pub(super) type SegmentRow = (u64, u32);

/// One step back: what a write did to a node.
pub(super) struct Undo {
    pub(super) table: Arc<Table>,
    pub(super) partition: u32,
    pub(super) node: Arc<Node>,
    pub(super) previous: Option<Change>,
    /// The lock was taken by this write.
    pub(super) locked: bool,
    /// The segment row that this write hides from the transaction's own snapshot.
    pub(super) hidden: Option<SegmentRow>,
    /// The node is no row but a unique value of the index at this place.
    pub(super) value: Option<usize>,
}

impl Undo {
    /// Frees what nobody needs of the node any more. Its lock is given back.
    fn collect(&self, oldest: Timestamp) {
        match self.value.and_then(|at| self.table.indexes().get(at)) {
            Some(index) => index.memory.given.collect(&self.node, oldest),
            None => {
                self.table.collect_row(self.table.partition(self.partition), &self.node, oldest)
            }
        }
    }
}

/// A point inside a transaction to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint(usize);

/// A transaction. Dropping it rolls it back.
pub struct Transaction {
    pub(super) store: Arc<Store>,
    pub(super) owner: Arc<Owner>,
    pub(super) guard: Arc<SnapshotGuard>,
    pub(super) undo: Vec<Undo>,
    /// Rows of segments this transaction has changed: its snapshot must not show them any more.
    pub(super) hidden: Map<(TableId, u64), RoaringBitmap>,
    pub(super) blocker: Option<Blocker>,
    pub(super) finished: bool,
}

impl Transaction {
    pub(crate) fn new(store: Arc<Store>, owner: Arc<Owner>) -> Transaction {
        Transaction {
            guard: store.snapshot(),
            owner,
            store,
            undo: Vec::new(),
            hidden: Map::default(),
            blocker: None,
            finished: false,
        }
    }

    /// The storage this transaction works on.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Its snapshot.
    pub fn snapshot(&self) -> Timestamp {
        self.guard.at()
    }

    /// Itself, as the owner of row locks.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether it has changed or locked anything.
    pub fn has_writes(&self) -> bool {
        !self.undo.is_empty()
    }

    /// The holder of the row lock that made the last write fail with
    /// [`LockTimeout`](nacre_types::ErrorKind::LockTimeout).
    pub fn take_blocker(&mut self) -> Option<Blocker> {
        self.blocker.take()
    }

    /// What this transaction sees of a table.
    pub fn view(&self, table: &Arc<Table>) -> TableView {
        TableView::new(table, &self.owner, &self.guard, |segment| {
            self.hidden.get(&(table.id(), segment)).cloned()
        })
    }

    /// The row of a key, projected; `None` when there is none. `key` holds the primary key's values in key order.
    pub fn get(
        &self,
        table: &Arc<Table>,
        key: &[Value],
        projection: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        let encoded = table.encode_wanted_key(key)?;
        match self.find(table, table.partition_of(&encoded), key, &encoded)? {
            Some(Found::Memory(_, row)) => {
                Ok(Some(projection.iter().map(|c| table.layout().value(&row, *c)).collect()))
            }
            Some(Found::Segment(state, row)) => {
                Ok(Some(table.segment_row(&state, row, projection)?))
            }
            None => Ok(None),
        }
    }

    /// Where the row of a key is, and the whole row.
    pub fn locate(
        &self,
        table: &Arc<Table>,
        key: &[Value],
    ) -> Result<Option<(RowLocator, Vec<Value>)>> {
        let encoded = table.encode_wanted_key(key)?;
        let partition = table.partition_of(&encoded);
        match self.find(table, partition, key, &encoded)? {
            Some(Found::Memory(node, row)) => {
                let locator =
                    RowLocator::Memory { partition: partition.number(), key: node.key().clone() };
                Ok(Some((locator, table.layout().decode(&row))))
            }
            Some(Found::Segment(state, row)) => {
                let all: Vec<usize> = (0..table.schema().columns.len()).collect();
                let locator = RowLocator::Segment {
                    partition: partition.number(),
                    segment: state.segment.id(),
                    row,
                };
                Ok(Some((locator, table.segment_row(&state, row, &all)?)))
            }
            None => Ok(None),
        }
    }

    pub(super) fn find(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        key: &[Value],
        encoded: &[u8],
    ) -> Result<Option<Found>> {
        let hidden = |segment: u64, row: u32| {
            self.hidden.get(&(table.id(), segment)).is_some_and(|h| h.contains(row))
        };
        point::find(table, partition, key, encoded, self.guard.at(), Some(&self.owner), &hidden)
    }

    /// Inserts rows given in table order. Fails on the first key that exists; the caller then goes back to
    /// its savepoint.
    pub fn insert(&mut self, table: &Arc<Table>, batch: &Batch) -> Result<u64> {
        let compact;
        let batch = if batch.selection.is_some() {
            compact = batch.clone().compact();
            &compact
        } else {
            batch
        };
        table.check_newest()?;
        table.check_batch(batch)?;
        for row in 0..batch.rows {
            let values = rows::values_of(batch, row);
            self.insert_values(table, &values)?;
        }
        Ok(batch.rows as u64)
    }

    fn insert_values(&mut self, table: &Arc<Table>, values: &[Value]) -> Result<()> {
        let encoded = table.encode_row(values)?;
        match table.key_columns() {
            None => self.insert_numbered(table, values, encoded),
            Some(columns) => self.insert_unique(table, &rows::key_of(columns, values), encoded),
        }
    }

    /// Inserts a row of a table without a primary key under a new number.
    fn insert_numbered(&mut self, table: &Arc<Table>, values: &[Value], row: Row) -> Result<()> {
        let partition = table.partition_for(values)?;
        for number in partition.reserve_row_numbers(1) {
            let locked = self.lock_node(table, partition, &Table::encode_row_number(number))?;
            self.write_row(table, locked, row.clone())?;
        }
        Ok(())
    }

    pub(super) fn insert_unique(
        &mut self,
        table: &Arc<Table>,
        key: &[Value],
        row: Row,
    ) -> Result<()> {
        let encoded = table.encode_key(key)?;
        let partition = table.partition_of(&encoded);
        let locked = self.lock_node(table, partition, &encoded)?;
        let probed = match (locked.node.pending(), locked.node.newest()) {
            (Some(change), _) => Ok(matches!(change, Change::Put(_))),
            (None, Some(newest)) => match newest.change {
                Change::Put(_) => Ok(true),
                Change::Delete if newest.content > self.guard.at() => Err(self.conflict(table)),
                Change::Delete => Ok(false),
                Change::Flushed => self.is_in_segments(table, partition, key),
            },
            (None, None) => self.is_in_segments(table, partition, key),
        };
        let refused = match probed {
            Ok(false) => return self.write_row(table, locked, row),
            Ok(true) => table.duplicate(key),
            Err(error) => error,
        };
        self.write_nothing(table, locked);
        Err(refused)
    }

    /// Whether some segment has the row of a key as of now, whose lock this transaction holds.
    fn is_in_segments(&self, table: &Table, partition: &Partition, key: &[Value]) -> Result<bool> {
        let mut before: Option<Arc<SegmentState>> = None;
        loop {
            let Some((state, _)) = table.find_newest(partition, key)? else { return Ok(false) };
            let again = before.is_some_and(|before| Arc::ptr_eq(&before, &state));
            if again || state.created() <= self.store.visible() {
                return Ok(true);
            }
            // A commit that is under way has listed it, and may be refused, or leave the row out.
            self.store.settled();
            before = Some(state);
        }
    }

    /// Inserts one row given in table order.
    pub fn insert_row(&mut self, table: &Arc<Table>, values: &[Value]) -> Result<()> {
        table.check_newest()?;
        table.schema().check_row(values)?;
        self.insert_values(table, values)
    }

    /// Inserts one row whose key this transaction sees free. If it is taken all the same, another transaction was
    /// faster: a `conflict`, which a retry resolves. The same goes for unique values that it does not see.
    pub fn insert_absent(&mut self, table: &Arc<Table>, values: &[Value]) -> Result<()> {
        match self.insert_row(table, values) {
            Err(error) if error.reason() == Some(Reason::DuplicateKey) => {
                Err(self.explain_duplicate(table, values, error)?)
            }
            done => done,
        }
    }

    /// Replaces one row by another with the same key, given in table order.
    pub fn update_row(
        &mut self,
        table: &Arc<Table>,
        locator: &RowLocator,
        values: &[Value],
    ) -> Result<()> {
        table.check_newest()?;
        table.schema().check_row(values)?;
        let row = table.encode_row(values)?;
        self.lock_rows(table, std::slice::from_ref(locator), &[])?
            .into_iter()
            .try_for_each(|locked| self.write_row(table, locked, row.clone()))
    }

    /// Replaces rows. `new_rows` holds whole rows in table order, one for each locator. A row's key may change,
    /// and its partition.
    pub fn update(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        new_rows: &Batch,
    ) -> Result<u64> {
        debug_assert!(new_rows.selection.is_none() && new_rows.rows == locators.len());
        table.check_newest()?;
        table.check_batch(new_rows)?;
        let nodes = self.lock_rows(table, locators, &[])?;
        self.update_locked(
            table,
            nodes,
            &mut (0..new_rows.rows).map(|row| rows::values_of(new_rows, row)),
        )
    }

    /// The same for rows whose present content the caller has read in this transaction, so that it need not be read
    /// again to be moved.
    pub fn update_seen(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        seen: &[&[Value]],
        new_rows: Vec<Vec<Value>>,
    ) -> Result<u64> {
        debug_assert!(seen.len() == locators.len() && new_rows.len() == locators.len());
        table.check_newest()?;
        new_rows.iter().try_for_each(|row| table.schema().check_row(row))?;
        let nodes = self.lock_rows(table, locators, seen)?;
        self.update_locked(table, nodes, &mut new_rows.into_iter())
    }

    /// Gives locked rows their new values.
    fn update_locked(
        &mut self,
        table: &Arc<Table>,
        nodes: Vec<LockedRow>,
        new_rows: &mut dyn Iterator<Item = Vec<Value>>,
    ) -> Result<u64> {
        let count = nodes.len() as u64;
        let mut later = Later::default();
        let mut failed = Ok(());
        for (locked, values) in nodes.into_iter().zip(new_rows) {
            match failed {
                Ok(()) => failed = self.update_one(table, locked, values, &mut later),
                // The lock is given back with the others.
                Err(_) => self.write_nothing(table, locked),
            }
        }
        failed?;
        self.write_later(table, later)?;
        Ok(count)
    }

    pub(super) fn write_later(&mut self, table: &Arc<Table>, later: Later) -> Result<()> {
        for (key, row) in later.rekeyed {
            self.insert_unique(table, &key, row)?;
        }
        for (values, row) in later.renumbered {
            self.insert_numbered(table, &values, row)?;
        }
        for (locked, row) in later.staying {
            self.write_row(table, locked, row)?;
        }
        Ok(())
    }

    /// Gives a locked row its new values, or takes the old ones away and leaves the rest for later. On an error its
    /// lock is registered all the same.
    pub(super) fn update_one(
        &mut self,
        table: &Arc<Table>,
        locked: LockedRow,
        values: Vec<Value>,
        later: &mut Later,
    ) -> Result<()> {
        match self.plan_update(table, &locked, values, later) {
            Ok(Some(row)) => self.write_row(table, locked, row),
            Ok(None) => {
                // All old keys go before any new one comes, so that `set id = id + 1` works.
                self.write(table, locked, Change::Delete);
                Ok(())
            }
            Err(error) => {
                self.write_nothing(table, locked);
                Err(error)
            }
        }
    }

    /// The row to write at once; nothing when it goes first and comes later.
    fn plan_update(
        &self,
        table: &Arc<Table>,
        locked: &LockedRow,
        values: Vec<Value>,
        later: &mut Later,
    ) -> Result<Option<Row>> {
        let row = table.encode_row(&values)?;
        if let Some(columns) = table.key_columns() {
            let key = rows::key_of(columns, &values);
            if table.encode_key(&key)? != **locked.node.key() {
                later.rekeyed.push((key, row));
                return Ok(None);
            }
        } else if !table.may_stay(locked.partition, &values)? {
            later.renumbered.push((values, row));
            return Ok(None);
        }
        if self.changes_unique(table, &locked.node, &row)? {
            let again = LockedRow { fresh: false, hides: None, ..locked.clone() };
            later.staying.push((again, row));
            return Ok(None);
        }
        Ok(Some(row))
    }

    /// Deletes rows.
    pub fn delete(&mut self, table: &Arc<Table>, locators: &[RowLocator]) -> Result<u64> {
        table.check_newest()?;
        for locked in self.lock_rows(table, locators, &[])? {
            self.write(table, locked, Change::Delete);
        }
        Ok(locators.len() as u64)
    }

    /// Locks rows until the transaction ends, without changing them. Rows in segments are moved as for an update,
    /// so that everybody who wants to change them meets the lock.
    pub fn lock(&mut self, table: &Arc<Table>, locators: &[RowLocator]) -> Result<()> {
        table.check_newest()?;
        if plant::is(Bug::WriteSkewAllowed) {
            return Ok(());
        }
        for locked in self.lock_rows(table, locators, &[])? {
            self.write_nothing(table, locked);
        }
        Ok(())
    }

    pub(super) fn conflict(&self, table: &Arc<Table>) -> Error {
        Error::conflict(format!(
            "a row of table {} was changed by another transaction",
            table.schema().name
        ))
        .with_table(table.schema().name.clone())
        .with_hint("retry the transaction")
    }

    pub(super) fn write(&mut self, table: &Arc<Table>, row: LockedRow, change: Change) {
        let LockedRow { partition, node, fresh, hides } = row;
        let hidden = hides.filter(|(segment, row)| {
            self.hidden.entry((table.id(), *segment)).or_default().insert(*row)
        });
        let previous = node.set_pending(Some(change));
        self.undo.push(Undo {
            table: table.clone(),
            partition,
            node,
            previous,
            locked: fresh,
            hidden,
            value: None,
        });
    }

    /// Registers a lock without a change, to be given back with the statement or the transaction.
    pub(super) fn write_nothing(&mut self, table: &Arc<Table>, row: LockedRow) {
        let LockedRow { partition, node, fresh: locked, .. } = row;
        if locked {
            let table = table.clone();
            self.undo.push(Undo {
                table,
                partition,
                node,
                previous: None,
                locked,
                hidden: None,
                value: None,
            });
        }
    }

    /// A point to go back to.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint(self.undo.len())
    }

    /// Takes back every write since the savepoint and gives back the locks they took.
    pub fn rollback_to(&mut self, savepoint: Savepoint) {
        let mut gave_back = false;
        while self.undo.len() > savepoint.0 {
            let Some(undo) = self.undo.pop() else { break };
            if let Some((segment, row)) = undo.hidden
                && let Some(hidden) = self.hidden.get_mut(&(undo.table.id(), segment))
            {
                hidden.remove(row);
                if hidden.is_empty() {
                    self.hidden.remove(&(undo.table.id(), segment));
                }
            }
            let undone = undo.node.set_pending(undo.previous.clone());
            if !undo.table.indexes().is_empty() {
                undo.table.take_back(
                    undo.partition,
                    &undo.node,
                    undo.previous.as_ref(),
                    undone.as_ref(),
                );
            }
            if undo.locked {
                undo.node.unlock();
                gave_back = true;
                // A node that was made for this write goes. Whoever fills it just now keeps it.
                if undo.node.newest().is_none() {
                    undo.collect(0);
                }
            }
        }
        // Who is about to wait himself wakes nobody: two who wait for each other would do so for ever.
        if gave_back && self.blocker.is_none() {
            self.owner.gave_back();
        }
    }

    /// Makes the changes durable and visible to others, or none of them. After an `io` error the outcome is
    /// unknown until the database is opened again: the log is poisoned.
    pub fn commit(self) -> Result<()> {
        self.commit_as(false)
    }

    /// The same, durable before it is visible whatever the durability level.
    pub(crate) fn commit_strictly(self) -> Result<()> {
        self.commit_as(true)
    }

    fn commit_as(mut self, strict: bool) -> Result<()> {
        let mut payload = record::begin(0);
        let mut operations = 0usize;
        for undo in self.undo.iter().filter(|u| u.locked) {
            let place = undo.table.place(undo.table.partition(undo.partition));
            match undo.node.pending() {
                Some(Change::Put(row)) => record::put(&mut payload, place, undo.node.key(), &row),
                Some(Change::Delete) => record::delete(&mut payload, place, undo.node.key()),
                Some(Change::Flushed) | None => continue,
            }
            operations += 1;
        }
        if operations == 0 {
            return Ok(());
        }
        self.store.check_open()?;
        let undo = &self.undo;
        let check = |_| {
            // Once more, as nobody looks for what comes after the close.
            self.store.check_open()?;
            match undo.iter().find(|u| !u.table.is_newest()) {
                Some(u) if u.table.is_dropped() => {
                    Err(Error::conflict(format!("table {} was dropped", u.table.schema().name)))
                }
                Some(u) => Err(u.table.superseded()),
                None => Ok(()),
            }
        };
        let (commit, lsn) = self.store.commit_record(&mut payload, check, |commit, ()| {
            for undo in undo.iter().filter(|u| u.locked) {
                // First, so that whoever meets the change knows that it may be too new for him.
                undo.table.set_changed(commit);
                undo.node.commit_pending(commit);
            }
        })?;
        // Locks are kept until the commit is durable: nobody may build on what could still be lost.
        let settled = if strict { self.store.sync_to(lsn) } else { self.store.settle(lsn) };
        if settled.is_ok() {
            self.store.make_visible(commit);
        }
        let written: Vec<Undo> = self.undo.drain(..).filter(|u| u.locked).collect();
        written.iter().for_each(|u| u.node.unlock());
        self.finish();
        let store = self.store.clone();
        drop(self);
        let oldest = store.oldest_snapshot();
        written.iter().for_each(|undo| undo.collect(oldest));
        settled
    }

    /// Takes back everything.
    pub fn rollback(self) {
        drop(self);
    }

    fn finish(&mut self) {
        if !self.finished {
            self.finished = true;
            self.owner.end();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.rollback_to(Savepoint(0));
        self.finish();
    }
}

/// Rows of an update that went and have to come again.
#[derive(Default)]
pub(super) struct Later {
    /// Under another key: the key's values and the row.
    pub(super) rekeyed: Vec<(Vec<Value>, Row)>,
    /// Without a primary key, in another partition: values and row.
    pub(super) renumbered: Vec<(Vec<Value>, Row)>,
    /// With other unique values.
    pub(super) staying: Vec<(LockedRow, Row)>,
}
