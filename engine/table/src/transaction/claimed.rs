//! Rows of one segment that a transaction deletes together: one bit each instead of a copy of the
//! row in memory.
//!
//! The rows are locked by a claim on the segment ([`Claims`](crate::segments::claims::Claims)),
//! hidden from the transaction itself, and deleted by one operation of its record.

use crate::record;
use crate::segments::state::SegmentState;
use crate::table::agenda::Work;
use crate::table::version::Table;
use crate::transaction::hidden::HiddenRows;
use nacre_rowstore::Owner;
use nacre_types::{Result, Timestamp, invariant};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Claimed rows of a segment.
pub(super) struct ClaimedRows {
    pub table: Arc<Table>,
    pub partition: u32,
    /// The segment that has the rows now.
    pub state: Arc<SegmentState>,
    pub rows: RoaringBitmap,
    /// The segment in which the transaction's snapshot has them, and where.
    pub seen_in: u64,
    pub seen: RoaringBitmap,
}

impl ClaimedRows {
    /// Hides the rows from the transaction.
    pub fn hide(&self, hidden: &mut HiddenRows) {
        debug_assert!(
            self.seen.len() == self.rows.len(),
            "{} rows are hidden for {} that are claimed",
            self.seen.len(),
            self.rows.len()
        );
        hidden.insert_all(&self.table, self.seen_in, &self.seen);
    }

    /// Gives the claim back, and shows the rows again.
    pub fn undo(&self, owner: &Arc<Owner>, hidden: &mut HiddenRows) {
        hidden.remove_all(&self.table, self.seen_in, &self.seen);
        self.release(owner);
    }

    /// Appends the deletion to a record.
    pub fn log(&self, payload: &mut Vec<u8>) -> Result<()> {
        let place = self.table.place(self.table.partition(self.partition));
        record::delete_rows(payload, place, self.state.id(), &self.rows)
    }

    /// Deletes the rows. Must be called under the commit lock.
    pub fn stamp(&self, commit: Timestamp, oldest: Timestamp) {
        invariant!(
            self.state.is_current() && self.state.all_deleted().is_disjoint(&self.rows),
            "claimed rows of segment {} have left it",
            self.state.id()
        );
        self.table.set_changed(commit);
        self.state.delete(commit, self.rows.clone(), oldest);
        self.table.partition(self.partition).consider(Work::Deltas);
    }

    /// Gives the claim back. Merges left the segment alone meanwhile.
    pub fn release(&self, owner: &Arc<Owner>) {
        self.state.claims().release(owner, &self.rows);
        let partition = self.table.partition(self.partition);
        partition.consider(Work::Merge);
        partition.consider(Work::Deltas);
    }
}
