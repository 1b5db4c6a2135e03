//! Move transactions: copy segment rows to the rowstore in a separate commit that is invisible to
//! readers. Source: Prout et al., *Cloud-Native Transactions and Analytics in SingleStore*, SIGMOD
//! 2022, section 4.2.
//!
//! Moves that wait for the commit lock at the same time share one record, up to a size limit: the
//! first thread to get the lock commits all of them. A move is prepared without a lock, so before
//! it commits, a merge may replace its segment or a bulk load its row. Then nothing is done, and
//! the caller looks the row up again in its new location.

use crate::commit::commits::Commits;
use crate::record;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::version::Table;
use nacre_rowstore::{Node, Row};
use nacre_types::hash::Map;
use nacre_types::{Error, Result, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows to move. The caller holds the locks of their nodes, so no other transaction moves them and
/// flushes skip them.
pub(crate) struct Move {
    table: Arc<Table>,
    /// Encoded operations for a log record.
    operations: Vec<u8>,
    /// Rows to delete from segments, by segment.
    leaving: Map<u64, Leaving>,
    copies: Vec<Copied>,
    /// Set once the move was committed or rejected.
    outcome: Mutex<Option<Outcome>>,
}

/// Rows to delete from one segment.
struct Leaving {
    partition: u32,
    state: Arc<SegmentState>,
    rows: RoaringBitmap,
}

/// A row's node, the commit of its content, and the row.
struct Copied {
    node: Arc<Node>,
    content: Timestamp,
    row: Row,
}

#[derive(Clone)]
enum Outcome {
    Moved,
    /// A row is no longer where it was.
    Overtaken,
    /// The table was changed, or the log rejected the record.
    Failed(Error),
}

/// A segment row to move.
pub(crate) struct MovedRow {
    pub partition: u32,
    pub state: Arc<SegmentState>,
    pub row: u32,
    pub node: Arc<Node>,
    pub copy: Row,
}

impl Move {
    /// Creates a move without rows.
    pub fn new(table: &Arc<Table>) -> Move {
        Move {
            table: table.clone(),
            operations: Vec::new(),
            leaving: Map::default(),
            copies: Vec::new(),
            outcome: Mutex::default(),
        }
    }

    /// Adds a segment row.
    pub fn add(&mut self, moved: MovedRow) {
        let MovedRow { partition, state, row, node, copy } = moved;
        debug_assert!(node.is_locked(), "a row is moved that is not locked");
        debug_assert!(
            self.table.partition_of(node.key()).number() == partition,
            "a row is moved into partition {partition}, which does not have it"
        );
        let place = self.table.place(self.table.partition(partition));
        record::move_row(&mut self.operations, place, state.id(), row, node.key(), &copy);
        self.copies.push(Copied { node, content: state.content(), row: copy });
        let leaving = self.leaving.entry(state.id()).or_insert_with(|| Leaving {
            partition,
            state,
            rows: RoaringBitmap::new(),
        });
        let is_new = leaving.rows.insert(row);
        debug_assert!(is_new, "row {row} of segment {} is moved twice", leaving.state.id());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Whether it can be committed. Must be called under the commit lock.
    fn check(&self) -> Outcome {
        debug_assert!(
            self.operations.is_empty() == self.copies.is_empty(),
            "{} rows are moved and others logged",
            self.copies.len()
        );
        if let Err(error) = self.table.check_writes() {
            return Outcome::Failed(error);
        }
        // The rows lack entries of an index that was created meanwhile.
        if !self.table.is_newest() {
            return Outcome::Overtaken;
        }
        // A merge may have replaced the segment, or a bulk load the row, or another transaction may
        // be about to delete it.
        let there = |leaving: &Leaving| {
            leaving.state.is_current()
                && leaving.state.all_deleted().is_disjoint(&leaving.rows)
                && !leaving.state.claims().has_any(&leaving.rows)
        };
        if self.leaving.values().all(there) { Outcome::Moved } else { Outcome::Overtaken }
    }

    fn settle(&self, outcome: Outcome) {
        let before = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).replace(outcome);
        debug_assert!(before.is_none(), "a move is settled twice");
    }

    fn outcome(&self) -> Option<Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The queue of moves waiting for the commit lock.
pub(crate) struct Moves {
    commits: Arc<Commits>,
    waiting: Mutex<VecDeque<Arc<Move>>>,
    /// A record of this many bytes takes no more moves.
    record_bytes: usize,
}

impl Moves {
    /// An empty queue.
    pub fn new(commits: Arc<Commits>, record_bytes: usize) -> Moves {
        Moves { commits, waiting: Mutex::default(), record_bytes }
    }

    /// Number of moves that wait for the commit lock.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether a move is large enough to be committed on its own.
    pub fn is_full(&self, one: &Move) -> bool {
        one.operations.len() >= self.record_bytes
    }

    /// Commits a move together with others that are waiting. Returns `false` if a row was no longer
    /// where it was and nothing was done. Does not sync: the move itself changes no content, and
    /// the commit that depends on it comes later in the log.
    pub fn commit(&self, asked: Move) -> Result<bool> {
        debug_assert!(!asked.is_empty(), "a move of no rows");
        let asked = Arc::new(asked);
        // Held for each move in the queue, whichever thread commits it.
        let _passing = asked.table.gate().pass();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(asked.clone());
        let mut turn = self.commits.lock();
        // The previous lock holder may have committed it.
        while asked.outcome().is_none() {
            let commit = turn.next();
            let mut payload = record::begin(commit);
            let moved = self.take(&mut payload);
            debug_assert!(
                moved.iter().all(|one| one.outcome().is_none()),
                "a move is to be committed that is settled"
            );
            if moved.is_empty() {
                continue;
            }
            match turn.append(&payload) {
                Ok(committed) => self.apply(committed.commit, &moved),
                Err(error) => {
                    moved.iter().for_each(|one| one.settle(Outcome::Failed(error.clone())))
                }
            }
        }
        drop(turn);
        match asked.outcome() {
            Some(Outcome::Moved) => Ok(true),
            Some(Outcome::Overtaken) => Ok(false),
            Some(Outcome::Failed(error)) => Err(error),
            None => {
                invariant!(false, "a move left the queue without an outcome");
                Err(Error::conflict("a move was lost").with_hint("retry the transaction"))
            }
        }
    }

    /// Takes the moves for one record from the queue, at least one if any can be committed, and
    /// appends their operations. Moves that cannot be committed are settled; moves that do not fit
    /// wait for the next record.
    fn take(&self, payload: &mut Vec<u8>) -> Vec<Arc<Move>> {
        let mut moved = Vec::new();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(one) = waiting.front()
            && (moved.is_empty() || payload.len() + one.operations.len() <= self.record_bytes)
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
        moved
    }

    fn apply(&self, commit: Timestamp, moves: &[Arc<Move>]) {
        let oldest = self.commits.snapshots().oldest();
        for one in moves {
            debug_assert!(
                one.copies.len() as u64
                    == one.leaving.values().map(|one| one.rows.len()).sum::<u64>(),
                "{} rows come and others leave",
                one.copies.len()
            );
            for copied in &one.copies {
                debug_assert!(
                    copied.node.is_locked() && copied.content <= commit,
                    "a row of commit {} is moved by commit {commit}, or is not locked",
                    copied.content
                );
                copied.node.push_moved_in(commit, copied.content, copied.row.clone());
            }
            for Leaving { partition, state, rows } in one.leaving.values() {
                state.delete(commit, rows.clone(), oldest);
                let partition = one.table.partition(*partition);
                partition.consider(Work::Deltas);
                if state.is_mostly_deleted() {
                    partition.consider(Work::Merge);
                }
            }
            one.table.set_changed(commit);
            one.settle(Outcome::Moved);
        }
    }
}
