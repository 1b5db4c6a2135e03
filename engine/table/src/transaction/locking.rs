//! Locking rows for a write: those in memory by their node, those in segments after they have been moved there.

use crate::layout::rows;
use crate::read::view::RowLocator;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::moves::Move;
use crate::transaction::state::{SegmentRow, Transaction};
use nacre_rowstore::{Change, LockError, Node, Row};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, ErrorKind, Result, Value};
use std::sync::Arc;

/// Merges that may overtake one move before it gives up. Each takes far longer than an attempt.
const MOVE_ATTEMPTS: usize = 8;

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

impl Transaction {
    /// Locks the node of a key.
    pub(super) fn lock_node(
        &mut self,
        table: &Arc<Table>,
        partition: &Partition,
        key: &[u8],
    ) -> Result<LockedRow> {
        loop {
            let node = partition.rowstore.get_or_insert(key);
            match node.lock(&self.owner) {
                Ok(fresh) => {
                    return Ok(LockedRow {
                        partition: partition.number(),
                        node,
                        fresh,
                        hides: None,
                    });
                }
                Err(LockError::Dead) => std::hint::spin_loop(),
                Err(LockError::Held(holder)) => {
                    self.blocker = Some(holder);
                    return Err(Error::new(
                        ErrorKind::LockTimeout,
                        format!(
                            "a row of table {} is locked by another transaction",
                            table.schema().name
                        ),
                    ));
                }
            }
        }
    }

    /// Locks rows this transaction has seen, moving those that live in segments into the rowstore. `seen` is what it has
    /// seen of them, or empty.
    pub(super) fn lock_rows(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        seen: &[&[Value]],
    ) -> Result<Vec<LockedRow>> {
        let mut locked = Vec::with_capacity(locators.len());
        let outcome = self.lock_each(table, locators, seen, &mut locked);
        if let Err(error) = outcome {
            for row in locked {
                self.write_nothing(table, row);
            }
            return Err(error);
        }
        Ok(locked)
    }

    fn lock_each(
        &mut self,
        table: &Arc<Table>,
        locators: &[RowLocator],
        seen: &[&[Value]],
        locked: &mut Vec<LockedRow>,
    ) -> Result<()> {
        let mut moves = Vec::new();
        for (at, locator) in locators.iter().enumerate() {
            let seen = seen.get(at).copied();
            let row = match locator {
                RowLocator::Memory { partition, key } => {
                    self.lock_node(table, table.partition(*partition), key)?
                }
                RowLocator::Segment { partition, segment, row } => {
                    let partition = table.partition(*partition);
                    let state = partition.segment(*segment).ok_or_else(|| self.conflict(table))?;
                    let key = match (seen, table.key_columns()) {
                        (Some(seen), Some(columns)) => rows::key_of(columns, seen),
                        _ => table.key_of_segment_row(&state, *row)?,
                    };
                    let key = table.encode_key(&key)?;
                    LockedRow {
                        hides: Some((*segment, *row)),
                        ..self.lock_node(table, partition, &key)?
                    }
                }
            };
            locked.push(row.clone());
            if !row.fresh {
                continue;
            }
            match row.node.newest() {
                Some(newest) if newest.content > self.guard.at() && !plant::is(Bug::LostUpdate) => {
                    return Err(self.conflict(table));
                }
                Some(newest) if matches!(newest.change, Change::Put(_)) => {}
                Some(newest) if matches!(newest.change, Change::Delete) => {
                    return Err(self.conflict(table));
                }
                _ => moves.push((row, seen)),
            }
        }
        self.move_all(table, &moves)
    }

    /// Moves rows from segments into the rowstore, wherever merges take them meanwhile.
    pub(super) fn move_all(
        &self,
        table: &Arc<Table>,
        moves: &[(LockedRow, Option<&[Value]>)],
    ) -> Result<()> {
        for _ in 0..MOVE_ATTEMPTS {
            if self.move_rows(table, moves)? {
                return Ok(());
            }
        }
        Err(self.conflict(table))
    }

    /// Moves rows from segments into the rowstore. The nodes are locked by this transaction, so nobody else moves them;
    /// flushes skip them. Answers `false` when a merge replaced one of the segments meanwhile: then some may have been
    /// moved.
    fn move_rows(
        &self,
        table: &Arc<Table>,
        moves: &[(LockedRow, Option<&[Value]>)],
    ) -> Result<bool> {
        let all: Vec<usize> = (0..table.schema().columns.len()).collect();
        let mut move_of = Move::new(table);
        for (LockedRow { partition, node, hides: hint, .. }, seen) in moves {
            if node.newest().is_some_and(|newest| matches!(newest.change, Change::Put(_))) {
                // An earlier attempt moved it.
                continue;
            }
            let partition = table.partition(*partition);
            let hinted = hint.and_then(|(segment, row)| {
                partition
                    .segment(segment)
                    .filter(|s| s.is_current() && !s.is_deleted(row))
                    .map(|s| (s, row))
            });
            let (state, row, seen) = match hinted {
                Some((state, row)) => (state, row, *seen),
                None => {
                    let key = nacre_types::key::decode(node.key(), &table.key_types())?;
                    let found =
                        table.find_newest(partition, &key)?.ok_or_else(|| self.conflict(table))?;
                    // The row is not where it was seen. If only moves, flushes and merges did that, its content
                    // is the same; a bulk load may have replaced it.
                    if found.0.content() > self.guard.at() {
                        return Err(self.conflict(table));
                    }
                    (found.0, found.1, None)
                }
            };
            let data: Row = match seen {
                // Rows of segments never change.
                Some(values) => table.layout().encode(values)?.into(),
                None => table.layout().encode(&table.segment_row(&state, row, &all)?)?.into(),
            };
            if !plant::is(Bug::IndexEntry) {
                table.enter(partition.number(), node.key(), &data)?;
            }
            move_of.add(partition.number(), state, row, node.clone(), data);
            if move_of.is_large(&self.store.options) {
                // They change no content, so that they may be several.
                let large = std::mem::replace(&mut move_of, Move::new(table));
                if !self.store.commit_move(large)? {
                    return Ok(false);
                }
            }
        }
        if move_of.is_empty() { Ok(true) } else { self.store.commit_move(move_of) }
    }
}
