//! Move transactions: rows of segments go into the rowstore, in a commit of their own that changes nothing a reader
//! can tell (paper, 4.2).
//!
//! Moves that wait for the commit lock at the same time go into one record, as far as it does not become too long:
//! whoever gets the lock first commits all of them. A move is prepared without a lock, so a merge may replace its
//! segment, or a bulk load its row, before it is committed. Then nothing is done, and the row is looked for again where
//! it is now: that is how the bits of a move follow a merge.

use crate::layout::gather::gather_bytes;
use crate::record;
use crate::segments::state::SegmentState;
use crate::store::{Store, StoreOptions};
use crate::table::version::Table;
use nacre_rowstore::{Node, Row};
use nacre_types::hash::Map;
use nacre_types::{Error, Result, Timestamp};
use roaring::RoaringBitmap;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows to be moved. Their nodes are locked by who asks, so nobody else moves them, and flushes skip them.
pub(crate) struct Move {
    table: Arc<Table>,
    /// Operations of a record.
    operations: Vec<u8>,
    /// Rows that leave segments: partition, segment, rows.
    leaving: Map<u64, (u32, Arc<SegmentState>, RoaringBitmap)>,
    /// Nodes, how new the content of their segment is, and copies.
    copies: Vec<(Arc<Node>, Timestamp, Row)>,
    /// What became of it, once somebody has tried.
    outcome: Mutex<Option<Outcome>>,
}

#[derive(Clone)]
enum Outcome {
    Moved,
    /// A row is not where it was.
    Overtaken,
    /// The table is another one now, or the log refused.
    Failed(Error),
}

impl Move {
    pub fn new(table: &Arc<Table>) -> Move {
        Move {
            table: table.clone(),
            operations: Vec::new(),
            leaving: Map::default(),
            copies: Vec::new(),
            outcome: Mutex::default(),
        }
    }

    /// Adds a row of a segment, and its copy.
    pub fn add(
        &mut self,
        partition: u32,
        state: Arc<SegmentState>,
        row: u32,
        node: Arc<Node>,
        copy: Row,
    ) {
        let place = self.table.place(self.table.partition(partition));
        record::move_row(&mut self.operations, place, state.segment.id(), row, node.key(), &copy);
        self.copies.push((node, state.content(), copy));
        let entry = self.leaving.entry(state.segment.id());
        entry.or_insert_with(|| (partition, state, RoaringBitmap::new())).2.insert(row);
    }

    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Whether its record should take no more rows.
    pub fn is_large(&self, options: &StoreOptions) -> bool {
        self.operations.len() >= gather_bytes(options)
    }

    /// Whether it can be committed; under the commit lock.
    fn check(&self) -> Outcome {
        if let Err(error) = self.table.check_newest() {
            return Outcome::Failed(error);
        }
        // A merge replaces the segment, a bulk load the row.
        let there = |(_, state, rows): &(u32, Arc<SegmentState>, RoaringBitmap)| {
            state.is_current() && !rows.iter().any(|row| state.is_deleted(row))
        };
        if self.leaving.values().all(there) { Outcome::Moved } else { Outcome::Overtaken }
    }

    fn settle(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Store {
    /// Commits a move, together with those of others that are waiting. Answers `false` when a row was not where it was
    /// any more, and nothing was done. Not synced: a move changes nothing by itself, and the commit that needs it comes
    /// later in the log.
    pub(crate) fn commit_move(&self, asked: Move) -> Result<bool> {
        let asked = Arc::new(asked);
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).push_back(asked.clone());
        let mut state = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever had the lock before may have done it.
        while asked.outcome().is_none() {
            let commit = state.last + 1;
            let mut payload = record::begin(commit);
            let mut moved = Vec::new();
            {
                let mut waiting = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
                // Those that do not fit are of the next record.
                while let Some(one) = waiting.front()
                    && (moved.is_empty()
                        || payload.len() + one.operations.len() <= gather_bytes(&self.options))
                    && let Some(one) = waiting.pop_front()
                {
                    match one.check() {
                        Outcome::Moved => {
                            payload.extend_from_slice(&one.operations);
                            moved.push(one);
                        }
                        other => one.settle(other),
                    }
                }
            }
            if moved.is_empty() {
                continue;
            }
            match self.log.append(&payload) {
                Ok(_) => {
                    state.last = commit;
                    self.apply_moves(commit, &moved);
                }
                Err(error) => {
                    moved.iter().for_each(|one| one.settle(Outcome::Failed(error.clone())))
                }
            }
        }
        drop(state);
        match asked.outcome() {
            Some(Outcome::Moved) => Ok(true),
            Some(Outcome::Overtaken) => Ok(false),
            Some(Outcome::Failed(error)) => Err(error),
            None => Err(Error::conflict("a move was lost").with_hint("retry the transaction")),
        }
    }

    fn apply_moves(&self, commit: u64, moves: &[Arc<Move>]) {
        let oldest = self.oldest_snapshot();
        for one in moves {
            for (node, content, copy) in &one.copies {
                node.push_moved_in(commit, *content, copy.clone());
            }
            for (partition, state, rows) in one.leaving.values() {
                state.delete(commit, rows.clone(), oldest);
                if state.is_mostly_deleted() {
                    one.table.partition(*partition).consider_merging();
                }
            }
            one.table.set_changed(commit);
            one.settle(Outcome::Moved);
        }
    }
}
