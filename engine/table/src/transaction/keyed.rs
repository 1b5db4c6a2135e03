//! Writing rows under primary keys that may be taken: lock first, then look, each once for a whole batch.
//!
//! Under the lock of its key a row stays what it is: nobody else changes it, and whoever moves it between memory and
//! segments passes locked keys over. So what is found then is still right when it is written, and a key that is free
//! needs no second look.

use crate::layout::rows;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::locking::LockedRow;
use crate::transaction::state::{Later, SegmentRow, Transaction};
use nacre_rowstore::{Change, Visible};
use nacre_types::hash::hash_bytes;
use nacre_types::plant::{self, Bug};
use nacre_types::{Reason, Result, Value};
use std::sync::Arc;

/// The primary key of a row.
pub struct RowKey {
    values: Vec<Value>,
    encoded: Vec<u8>,
}

impl RowKey {
    /// Equal for equal keys.
    pub fn hash(&self) -> u64 {
        hash_bytes(&self.encoded)
    }
}

impl Table {
    /// The primary key of a row to come, given in table order, which is checked; of a table that has one.
    pub fn row_key(&self, row: &[Value]) -> Result<RowKey> {
        self.schema().check_row(row)?;
        let values = rows::key_of(self.key_columns().unwrap_or_default(), row);
        Ok(RowKey { encoded: self.encode_key(&values)?, values })
    }
}

/// A locked key; the row that has it comes from `olds`.
struct Met {
    locked: LockedRow,
    old: Option<Vec<Value>>,
}

impl Transaction {
    /// Writes rows under some primary keys, no two the same. `decide` is given the rows that have the keys, and answers
    /// the row that each key shall have: for a free one the row that the key was made of, for another one any row with
    /// that key; none for one that stays as it is, whose lock is given back. A change of another transaction that this one does not see is a `conflict`.
    pub fn write_keys(
        &mut self,
        table: &Arc<Table>,
        keys: &[RowKey],
        decide: impl FnOnce(&Transaction, &[Option<Vec<Value>>]) -> Result<Vec<Option<Vec<Value>>>>,
    ) -> Result<()> {
        table.check_newest()?;
        let mut locked = Vec::with_capacity(keys.len());
        let mut olds: Vec<Option<Vec<Value>>> = vec![None; keys.len()];
        let decided =
            self.lock_keys(table, keys, &mut locked, &mut olds).and_then(|()| decide(self, &olds));
        // From here on every lock goes to the undo list, or back.
        let mut failed = decided.as_ref().map(|_| ()).map_err(Clone::clone);
        let mut news = decided.unwrap_or_default();
        news.resize(keys.len(), None);
        let (mut fresh, mut taken) = (Vec::new(), Vec::new());
        let mut gave_back = false;
        for (at, locked) in locked {
            match (news[at].take(), olds[at].take()) {
                (Some(new), old @ Some(_)) => taken.push((Met { locked, old }, new)),
                (Some(new), None) => fresh.push((locked, new)),
                (None, _) if failed.is_ok() => gave_back |= self.give_back(table, &locked),
                (None, _) => self.write_nothing(table, locked),
            }
        }
        for (locked, new) in fresh {
            match failed {
                Ok(()) => failed = self.insert_locked(table, locked, &new),
                Err(_) => self.write_nothing(table, locked),
            }
        }
        if failed.is_ok() {
            failed = self.check_and_move(table, &taken);
        }
        let mut later = Later::default();
        for (Met { locked, .. }, new) in taken {
            match failed {
                Ok(()) => failed = self.update_one(table, locked, new, &mut later),
                Err(_) => self.write_nothing(table, locked),
            }
        }
        let written = failed.and_then(|()| self.write_later(table, later));
        // Who is about to wait himself wakes nobody: two who wait for each other would do so for ever.
        if gave_back && self.blocker.is_none() {
            self.owner.gave_back();
        }
        written
    }

    /// In the order of the keys: neighbours are found near each other, and two batches with the same keys do not each
    /// wait for the other.
    fn lock_keys(
        &mut self,
        table: &Arc<Table>,
        keys: &[RowKey],
        locked: &mut Vec<(usize, LockedRow)>,
        olds: &mut [Option<Vec<Value>>],
    ) -> Result<()> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|a, b| keys[*a].encoded.cmp(&keys[*b].encoded));
        let all: Vec<usize> = (0..table.schema().columns.len()).collect();
        for at in order {
            let partition = table.partition_of(&keys[at].encoded);
            let row = self.lock_node(table, partition, &keys[at].encoded)?;
            locked.push((at, row.clone()));
            let (old, hides) = self.meet_key(table, partition, &keys[at], &row, &all)?;
            olds[at] = old;
            if let Some((_, row)) = locked.last_mut() {
                row.hides = hides;
            }
        }
        Ok(())
    }

    /// The row that has a locked key, and where in a segment the snapshot sees it.
    fn meet_key(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        key: &RowKey,
        locked: &LockedRow,
        all: &[usize],
    ) -> Result<(Option<Vec<Value>>, Option<SegmentRow>)> {
        let (at, node) = (self.guard.at(), &locked.node);
        let is_newer = locked.fresh && node.newest().is_some_and(|newest| newest.content > at);
        if is_newer && !plant::is(Bug::LostUpdate) {
            return Err(self.conflict(table));
        }
        match node.visible(at, Some(&self.owner)) {
            Visible::Row(row) => Ok((Some(table.layout().decode(&table.upgrade(row)?)), None)),
            Visible::Deleted => Ok((None, None)),
            Visible::Elsewhere => match self.probe_key(table, partition, key)? {
                Some((state, row)) => Ok((
                    Some(table.segment_row(&state, row, all)?),
                    Some((state.segment.id(), row)),
                )),
                None => Ok((None, None)),
            },
        }
    }

    /// Where in segments the snapshot sees a key, and for one that it does not see, that nobody has put it there since.
    fn probe_key(
        &self,
        table: &Arc<Table>,
        partition: &Partition,
        key: &RowKey,
    ) -> Result<Option<(Arc<SegmentState>, u32)>> {
        let at = self.guard.at();
        loop {
            let list = partition.segments();
            let (mut left_out, mut is_newer) = (false, false);
            for candidate in list.of_key(table, &key.encoded)?.newest_first() {
                let state = &list[candidate.place];
                let (is_seen, is_current) = (state.exists_at(at), state.is_current());
                left_out |= !is_current;
                if !is_seen && !is_current {
                    continue;
                }
                let Some(row) = table.find_candidate(state, candidate, &key.values)? else {
                    continue;
                };
                if is_seen
                    && !state.is_deleted_at(row, at)
                    && !self.is_hidden(table, (state.segment.id(), row))
                {
                    return Ok(Some((state.clone(), row)));
                }
                is_newer |= is_current && !state.is_deleted(row);
            }
            if is_newer {
                return Err(self.conflict(table));
            }
            // What a merge has replaced since the list was read is in segments that the list may not have.
            if !left_out || Arc::ptr_eq(&list, &partition.segments()) {
                return Ok(None);
            }
        }
    }

    /// Gives back a lock under which nothing was changed, unless it was held before.
    fn give_back(&self, table: &Table, locked: &LockedRow) -> bool {
        if locked.fresh {
            locked.node.unlock();
            if locked.node.newest().is_none() {
                table.collect_row(table.partition(locked.partition), &locked.node, 0);
            }
        }
        locked.fresh
    }

    /// Inserts a row under a locked key that is free. Other unique values may be taken.
    fn insert_locked(
        &mut self,
        table: &Arc<Table>,
        locked: LockedRow,
        values: &[Value],
    ) -> Result<()> {
        let row = match table.encode_row(values) {
            Ok(row) => row,
            Err(error) => {
                self.write_nothing(table, locked);
                return Err(error);
            }
        };
        match self.write_row(table, locked, row) {
            Err(error) if error.reason() == Some(Reason::DuplicateKey) => {
                Err(self.explain_duplicate(table, values, error)?)
            }
            done => done,
        }
    }

    /// Checks new rows, and moves those they replace into memory that are not there.
    fn check_and_move(&mut self, table: &Arc<Table>, taken: &[(Met, Vec<Value>)]) -> Result<()> {
        let mut moves = Vec::new();
        for (Met { locked, old }, new) in taken {
            table.schema().check_row(new)?;
            let is_here = || matches!(locked.node.newest(), Some(newest) if matches!(newest.change, Change::Put(_)));
            if locked.node.pending().is_none() && !is_here() {
                moves.push((locked.clone(), old.as_deref()));
            }
        }
        self.move_all(table, &moves)
    }
}
