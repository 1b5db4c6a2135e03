//! What a transaction has locked and written, in order, so that it can be undone step by step, logged
//! and stamped.

use crate::record;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::hidden::{HiddenRows, SegmentRow};
use nacre_rowstore::{Blocker, Change, LockError, Node, Owner};
use nacre_types::{Error, ErrorKind, Result, Timestamp, invariant};
use std::sync::Arc;

/// A row locked for writing.
#[derive(Clone)]
pub(super) struct LockedRow {
    pub partition: u32,
    pub node: Arc<Node>,
    /// The lock was not held before.
    pub fresh: bool,
    /// Where the row was seen, if in a segment.
    pub hides: Option<SegmentRow>,
}

/// One step back: what a write did to a node.
struct Undo {
    table: Arc<Table>,
    partition: u32,
    node: Arc<Node>,
    previous: Option<Change>,
    /// The lock was taken by this write.
    locked: bool,
    /// The segment row that this write hides from the transaction's own snapshot.
    hidden: Option<SegmentRow>,
    /// The node is not a row but a claimed value of the index at this position.
    claim: Option<usize>,
}

impl Undo {
    /// Frees what no snapshot from `oldest` on needs of the node. Its lock is not held any more.
    fn collect(&self, oldest: Timestamp) {
        match self.claim.and_then(|at| self.table.indexes().get(at)) {
            Some(index) => index.claims().collect(&self.node, oldest),
            None => {
                self.table.collect_row(self.table.partition(self.partition), &self.node, oldest)
            }
        }
    }
}

/// See the module.
pub(super) struct WriteSet {
    owner: Arc<Owner>,
    undo: Vec<Undo>,
    hidden: HiddenRows,
    /// The holder of the lock that made the last write fail.
    blocker: Option<Blocker>,
}

impl WriteSet {
    /// An empty set. Locks belong to `owner`.
    pub fn new(owner: Arc<Owner>) -> WriteSet {
        WriteSet { owner, undo: Vec::new(), hidden: HiddenRows::default(), blocker: None }
    }

    /// The owner of the locks.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether nothing was changed or locked.
    pub fn is_empty(&self) -> bool {
        self.undo.is_empty()
    }

    /// Number of steps that can be undone.
    pub fn len(&self) -> usize {
        self.undo.len()
    }

    /// Rows of segments that were replaced or deleted.
    pub fn hidden(&self) -> &HiddenRows {
        &self.hidden
    }

    /// Takes the holder of the lock that made the last write fail.
    pub fn take_blocker(&mut self) -> Option<Blocker> {
        self.blocker.take()
    }

    /// The error for a lock that another transaction holds; remembers the holder.
    pub fn blocked_by(&mut self, holder: Blocker, message: String) -> Error {
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
        loop {
            let node = partition.rowstore().get_or_insert(key);
            match node.lock(&self.owner) {
                Ok(fresh) => {
                    let partition = partition.number();
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
                    self.undo.push(Undo {
                        table: table.clone(),
                        partition,
                        node,
                        previous: None,
                        locked: true,
                        hidden: None,
                        claim: Some(index_at),
                    });
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
        let hidden = hides.filter(|row| self.hidden.insert(table, *row));
        let previous = node.set_pending(Some(change));
        self.undo.push(Undo {
            table: table.clone(),
            partition,
            node,
            previous,
            locked: fresh,
            hidden,
            claim: None,
        });
    }

    /// Keeps a lock without a change, to be released with the statement or the transaction.
    pub fn keep_lock(&mut self, table: &Arc<Table>, row: LockedRow) {
        let LockedRow { partition, node, fresh: locked, .. } = row;
        if locked {
            self.undo.push(Undo {
                table: table.clone(),
                partition,
                node,
                previous: None,
                locked,
                hidden: None,
                claim: None,
            });
        }
    }

    /// Releases a lock under which nothing was changed, unless it was held before. Returns whether it
    /// did; the caller then calls [`WriteSet::wake_waiters`].
    pub fn release(&self, table: &Table, locked: &LockedRow) -> bool {
        if locked.fresh {
            locked.node.unlock();
            if locked.node.newest().is_none() {
                table.collect_row(table.partition(locked.partition), &locked.node, 0);
            }
        }
        locked.fresh
    }

    /// Wakes transactions that wait for locks released before the end. Not if this one is about to
    /// wait itself: two waiters would wake each other forever.
    pub fn wake_waiters(&self) {
        if self.blocker.is_none() {
            self.owner.gave_back();
        }
    }

    /// Undoes all but the first `kept` steps, and releases the locks that they took.
    pub fn roll_back_to(&mut self, kept: usize) {
        debug_assert!(kept <= self.undo.len(), "{kept} of {} steps are kept", self.undo.len());
        let mut released = false;
        while self.undo.len() > kept {
            let Some(undo) = self.undo.pop() else { break };
            released |= self.undo_one(undo);
        }
        if released {
            self.wake_waiters();
        }
    }

    /// Returns whether a lock was released.
    fn undo_one(&mut self, undo: Undo) -> bool {
        debug_assert!(undo.node.is_locked_by(&self.owner), "a write is undone without its lock");
        if let Some(hidden) = undo.hidden {
            self.hidden.remove(&undo.table, hidden);
        }
        let undone = undo.node.set_pending(undo.previous.clone());
        if !undo.table.indexes().is_empty() {
            let (before, undone) = (undo.previous.as_ref(), undone.as_ref());
            undo.table.take_back(undo.partition, &undo.node, before, undone);
        }
        if undo.locked {
            undo.node.unlock();
            // A node that was made for this write is removed, unless another transaction just locked it.
            if undo.node.newest().is_none() {
                undo.collect(0);
            }
        }
        undo.locked
    }

    /// Appends the operations of the changes to a record; returns how many there are.
    pub fn log(&self, payload: &mut Vec<u8>) -> usize {
        let mut operations = 0;
        for undo in self.undo.iter().filter(|undo| undo.locked) {
            let place = undo.table.place(undo.table.partition(undo.partition));
            match undo.node.pending() {
                Some(Change::Put(row)) => record::put(payload, place, undo.node.key(), &row),
                Some(Change::Delete) => record::delete(payload, place, undo.node.key()),
                Some(Change::Flushed) | None => continue,
            }
            invariant!(undo.claim.is_none(), "a claimed value has a change to be logged");
            operations += 1;
        }
        operations
    }

    /// Fails if a table was dropped, altered or emptied since it was written to. Under the commit lock.
    pub fn check_tables(&self) -> Result<()> {
        match self.undo.iter().find(|undo| !undo.table.is_newest()) {
            Some(undo) if undo.table.is_dropped() => {
                let name = &undo.table.schema().name;
                Err(Error::conflict(format!("table {name} was dropped")))
            }
            Some(undo) => Err(undo.table.superseded()),
            None => Ok(()),
        }
    }

    /// Turns the changes into versions of a commit. Under the commit lock; the row locks are kept.
    pub fn stamp(&self, commit: Timestamp) {
        for undo in self.undo.iter().filter(|undo| undo.locked) {
            debug_assert!(
                undo.node.is_locked_by(&self.owner),
                "a row is committed without its lock"
            );
            // Set first, so that a reader that meets the change knows that it may be too new for it.
            undo.table.set_changed(commit);
            undo.node.commit_pending(commit);
        }
    }

    /// Releases all locks after a commit.
    pub fn unlock(&mut self) -> Written {
        let written: Vec<Undo> = self.undo.drain(..).filter(|undo| undo.locked).collect();
        debug_assert!(
            written.iter().all(|undo| undo.node.pending().is_none()),
            "a committed row has a pending change"
        );
        written.iter().for_each(|undo| undo.node.unlock());
        Written(written)
    }
}

/// The rows that a commit has written.
pub(super) struct Written(Vec<Undo>);

impl Written {
    /// Frees the versions of these rows that no snapshot from `oldest` on sees.
    pub fn collect(&self, oldest: Timestamp) {
        self.0.iter().for_each(|undo| undo.collect(oldest));
    }
}
