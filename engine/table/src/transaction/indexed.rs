//! Writing rows of tables with indexes: their entries, and the values that only one row may have.
//!
//! A transaction that gives a row a unique value holds that value's lock to its end; then it looks for another row that
//! has the value now. Who takes a value away from a row holds no lock on the value: he holds the row's, and whoever
//! wants the value finds the row and waits for him. So each way there is somebody to wait for.

use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::layout::rows;
use crate::read::probe::{KeyRange, rows_of_candidate, successor};
use crate::read::view::RowLocator;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::locking::LockedRow;
use crate::transaction::state::{SegmentRow, Transaction, Undo};
use nacre_rowstore::{Blocker, Change, LockError, Node, Row, Visible};
use nacre_types::hash::hash_bytes;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, ErrorKind, IndexId, Result, Value, key};
use std::sync::Arc;

/// The row that is being written, by its partition and key.
type Own<'a> = (u32, &'a [u8]);

impl Transaction {
    /// Gives a locked row its new content. On an error the lock is kept and registered, to be given back with the
    /// statement.
    pub(super) fn write_row(
        &mut self,
        table: &Arc<Table>,
        locked: LockedRow,
        row: Row,
    ) -> Result<()> {
        if !table.indexes().is_empty()
            && let Err(error) = self.index_row(table, &locked, &row)
        {
            // Some of its entries may be there.
            table.leave(locked.partition, &locked.node, &row);
            self.write_nothing(table, locked);
            return Err(error);
        }
        self.write(table, locked, Change::Put(row));
        Ok(())
    }

    /// Claims a row's unique values and puts its entries in.
    fn index_row(&mut self, table: &Arc<Table>, locked: &LockedRow, row: &Row) -> Result<()> {
        let own = (locked.partition, &**locked.node.key());
        for (at, index) in table.indexes().iter().enumerate() {
            let index_key = index.key_of(table, row)?;
            if !index.may_repeat(&index_key) && !has_now(table, index, &locked.node, &index_key)? {
                self.claim(table, at, &index_key, own)?;
            }
            if let Some(entries) = index.memory.entries.get(locked.partition as usize) {
                entries.insert(&index_key, locked.node.key())?;
            }
        }
        Ok(())
    }

    /// Whether a row's unique values change with its content: then its old ones go before anybody's new ones come.
    pub(super) fn changes_unique(
        &self,
        table: &Arc<Table>,
        node: &Node,
        row: &Row,
    ) -> Result<bool> {
        for index in table.indexes().iter().filter(|index| index.schema.unique) {
            if !has_now(table, index, node, &index.key_of(table, row)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the lock of a unique value and makes sure that no other row has it.
    fn claim(
        &mut self,
        table: &Arc<Table>,
        at: usize,
        index_key: &[u8],
        own: Own<'_>,
    ) -> Result<()> {
        let index = &table.indexes()[at];
        let node = loop {
            let node = index.memory.given.get_or_insert(index_key);
            match node.lock(&self.owner) {
                Ok(true) => break Some(node),
                Ok(false) => break None,
                Err(LockError::Dead) => std::hint::spin_loop(),
                Err(LockError::Held(holder)) => return Err(self.blocked_by(table, index, holder)),
            }
        };
        if let Some(node) = node {
            let (table, partition) = (table.clone(), own.0);
            self.undo.push(Undo {
                table,
                partition,
                node,
                previous: None,
                locked: true,
                hidden: None,
                value: Some(at),
            });
        }
        let values = key::decode(index_key, &index.types)?;
        for partition in table.partitions() {
            self.probe(table, index, partition, index_key, &values, own)?;
        }
        // Nobody has it now. In this transaction's snapshot somebody may: two rows would have it there.
        if table.changed() > self.guard.at()
            && self.find_unique(table, index, index_key, &values, Some(own))?.is_some()
        {
            return Err(self.conflict(table));
        }
        Ok(())
    }

    fn blocked_by(&mut self, table: &Table, index: &Index, holder: Blocker) -> Error {
        self.blocker = Some(holder);
        let (table, index) = (&table.schema().name, &index.schema.name);
        let message =
            format!("a value of index {index} of table {table} is locked by another transaction");
        Error::new(ErrorKind::LockTimeout, message)
    }

    /// Fails when a row of a partition has a unique value as of now, or may have it because somebody else's change of
    /// it is not committed. Rows go from memory to segments and back meanwhile: first memory is looked at, then
    /// segments, and for each row that has left one of them, where it went.
    fn probe(
        &mut self,
        table: &Table,
        index: &Index,
        partition: &Partition,
        index_key: &[u8],
        values: &[Value],
        own: Own<'_>,
    ) -> Result<()> {
        let mut row_keys: Vec<Vec<u8>> = Vec::new();
        each_entry(
            index,
            partition,
            index_key,
            successor(index_key.to_vec()).as_deref(),
            |entry| {
                row_keys.push(entry.row_key().to_vec());
                Ok(())
            },
        )?;
        for row_key in row_keys.iter().filter(|row| (partition.number(), row.as_slice()) != own) {
            if let Some(node) = partition.rowstore.get(row_key) {
                self.meet(table, index, index_key, &node)?;
            }
        }
        if plant::is(Bug::UniqueSkip) {
            return Ok(());
        }
        let range = KeyRange::equal(values.to_vec());
        let hash = Some(hash_bytes(index_key));
        loop {
            let list = partition.segments();
            for candidate in list.of_index(index).candidates(index_key)?.newest_first() {
                let state = &list[candidate.place];
                if !state.is_current() {
                    continue;
                }
                for row in rows_of_candidate(table, index, state, &range, hash, candidate)? {
                    self.meet_in_segment(table, index, partition, state, row, index_key, own)?;
                }
            }
            // What was merged, or moved and flushed, since the list was read is in segments that it may not have.
            if Arc::ptr_eq(&list, &partition.segments()) {
                return Ok(());
            }
        }
    }

    /// Fails when a row in memory has a unique value.
    fn meet(&mut self, table: &Table, index: &Index, index_key: &[u8], node: &Node) -> Result<()> {
        let own = node.is_locked_by(&self.owner);
        let change = if own { node.pending() } else { None };
        let Some(Change::Put(row)) = change.or_else(|| node.newest().map(|version| version.change))
        else {
            return Ok(());
        };
        if !index.has_key(table, &row, index_key)? {
            return Ok(());
        }
        match node.blocker().filter(|_| !own) {
            Some(holder) => Err(self.blocked_by(table, index, holder)),
            None => Err(index.duplicate(table, index_key)),
        }
    }

    /// Fails when a row of a segment, whose index key is a unique value, is there, or has gone to memory and still has
    /// it.
    #[allow(clippy::too_many_arguments)]
    fn meet_in_segment(
        &mut self,
        table: &Table,
        index: &Index,
        partition: &Partition,
        state: &Arc<SegmentState>,
        row: u32,
        index_key: &[u8],
        own: Own<'_>,
    ) -> Result<()> {
        let row_key = table.encode_key(&table.key_of_segment_row(state, row)?)?;
        if (partition.number(), row_key.as_slice()) == own {
            return Ok(());
        }
        // While a flush or a load commits, its segments are listed with rows that are still in memory, or not any more.
        let is_here = |node: &Arc<Node>| {
            node.is_locked_by(&self.owner) && node.pending().is_some()
                || matches!(
                    node.newest().map(|version| version.change),
                    Some(Change::Put(_) | Change::Delete)
                )
        };
        let mut settled = state.created() <= self.store.visible();
        loop {
            let is_deleted = state.is_deleted(row);
            match partition.rowstore.get(&row_key) {
                Some(node) if is_deleted || is_here(&node) => {
                    return self.meet(table, index, index_key, &node);
                }
                None if is_deleted => return Ok(()),
                node => {
                    let blocker = node.and_then(|node| node.blocker());
                    if let Some(holder) =
                        blocker.filter(|blocker| !Arc::ptr_eq(blocker.owner(), &self.owner))
                    {
                        return Err(self.blocked_by(table, index, holder));
                    }
                }
            }
            if settled {
                return Err(index.duplicate(table, index_key));
            }
            // The commit that has listed it may be refused, or leave the row out.
            self.store.settled();
            settled = true;
            if !partition.segments().iter().any(|listed| Arc::ptr_eq(listed, state)) {
                return Ok(());
            }
        }
    }

    /// The row that this transaction sees with some values in all columns of an index, where it is and the whole row;
    /// the first there is, if the index is not unique. Nulls find nothing.
    pub fn locate_unique(
        &self,
        table: &Arc<Table>,
        index: IndexId,
        values: &[Value],
    ) -> Result<Option<(RowLocator, Vec<Value>)>> {
        let index = table.index(index)?;
        if values.len() != index.types.len() {
            return Err(Error::type_error("key has a wrong number of values"));
        }
        if values.iter().any(Value::is_null) {
            return Ok(None);
        }
        self.find_unique(table, index, &index.encode(values)?, values, None)
    }

    /// Deletes the rows that this transaction sees with the primary key of a row to come, or one of its unique values.
    /// Answers how many.
    pub fn delete_conflicting(&mut self, table: &Arc<Table>, row: &[Value]) -> Result<u64> {
        let mut deleted = 0;
        if let Some(columns) = table.key_columns()
            && let Some((locator, _)) = self.locate(table, &rows::key_of(columns, row))?
        {
            deleted += self.delete(table, &[locator])?;
        }
        for index in table.indexes().iter().filter(|index| index.schema.unique) {
            let values = rows::key_of(&index.columns, row);
            if let Some((locator, _)) = self.locate_unique(table, index.schema.id, &values)? {
                deleted += self.delete(table, &[locator])?;
            }
        }
        Ok(deleted)
    }

    /// See [`Transaction::locate_unique`]; any row but the one that is being written.
    fn find_unique(
        &self,
        table: &Table,
        index: &Index,
        index_key: &[u8],
        values: &[Value],
        own: Option<Own<'_>>,
    ) -> Result<Option<(RowLocator, Vec<Value>)>> {
        let at = self.guard.at();
        let range = KeyRange::equal(values.to_vec());
        let hash = Some(hash_bytes(index_key));
        let end = successor(index_key.to_vec());
        for partition in table.partitions() {
            let number = partition.number();
            let mut found = None;
            each_entry(index, partition, index_key, end.as_deref(), |entry| {
                if found.is_some() || own == Some((number, entry.row_key())) {
                    return Ok(());
                }
                let Some(node) = partition.rowstore.get(entry.row_key()) else { return Ok(()) };
                if let Visible::Row(row) = node.visible(at, Some(&self.owner))
                    && index.has_key(table, &row, index_key)?
                {
                    let locator = RowLocator::Memory { partition: number, key: node.key().clone() };
                    found = Some((locator, table.layout().decode(&table.upgrade(row)?)));
                }
                Ok(())
            })?;
            if found.is_some() {
                return Ok(found);
            }
            let list = partition.segments();
            let candidates = list.of_index(index).candidates(index_key)?;
            for candidate in candidates.newest_first() {
                let state = &list[candidate.place];
                if !state.exists_at(at) {
                    continue;
                }
                let id = state.segment.id();
                for row in rows_of_candidate(table, index, state, &range, hash, candidate)? {
                    if state.is_deleted_at(row, at) || self.is_hidden(table, (id, row)) {
                        continue;
                    }
                    if let Some(own) = own
                        && own
                            == (
                                number,
                                table
                                    .encode_key(&table.key_of_segment_row(state, row)?)?
                                    .as_slice(),
                            )
                    {
                        continue;
                    }
                    let all: Vec<usize> = (0..table.schema().columns.len()).collect();
                    let locator = RowLocator::Segment { partition: number, segment: id, row };
                    return Ok(Some((locator, table.segment_row(state, row, &all)?)));
                }
            }
        }
        Ok(None)
    }

    /// The error for a row that is not unique, though this transaction may not see why: then it is a `conflict`.
    pub(super) fn explain_duplicate(
        &self,
        table: &Arc<Table>,
        row: &[Value],
        error: Error,
    ) -> Result<Error> {
        let is_named = |index: &&Index| error.key() == Some(index.schema.name.as_str());
        let Some(index) = table.indexes().iter().find(is_named) else {
            return Ok(self.conflict(table));
        };
        let seen =
            self.locate_unique(table, index.schema.id, &rows::key_of(&index.columns, row))?;
        Ok(if seen.is_some() { error } else { self.conflict(table) })
    }

    pub(crate) fn is_hidden(&self, table: &Table, (segment, row): SegmentRow) -> bool {
        self.hidden.get(&(table.id(), segment)).is_some_and(|hidden| hidden.contains(row))
    }
}

/// Whether a row, locked by who asks, has an index key already.
fn has_now(table: &Table, index: &Index, node: &Node, index_key: &[u8]) -> Result<bool> {
    match node.pending().or_else(|| node.newest().map(|version| version.change)) {
        Some(Change::Put(row)) => index.has_key(table, &row, index_key),
        _ => Ok(false),
    }
}
