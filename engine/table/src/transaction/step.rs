//! The steps of a transaction's writes, as they are undone.

use crate::load::bulk_update::BulkUpdate;
use crate::table::reference_locks::HeldReferences;
use crate::table::version::Table;
use crate::transaction::claimed::ClaimedRows;
use crate::transaction::hidden::SegmentRow;
use crate::transaction::written_partitions::Partitions;
use nacre_rowstore::{Change, Node};
use nacre_types::{TableId, Timestamp, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// An undo step.
pub(super) enum Step {
    /// One write to a node.
    Write(Undo),
    /// Rows of one segment that are deleted together.
    Claim(ClaimedRows),
    /// New segments with rows in place of claimed ones.
    Update(Box<BulkUpdate>),
    /// Rows of such a segment that are replaced or deleted together.
    Hide { table: Arc<Table>, segment: u64, rows: RoaringBitmap },
    /// The last change of the catalog.
    Catalog,
    /// Keys that rows refer to, locked.
    References(HeldReferences),
    /// Rows of a table that have got other keys.
    Rekeyed { table: TableId, rows: Vec<Rekeyed> },
}

/// A row before and after it got another key.
pub struct Rekeyed {
    /// Its old values.
    pub old: Vec<Value>,
    /// Its new values.
    pub new: Vec<Value>,
}

impl Step {
    /// The table of the rows that it writes.
    pub fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Step::Write(undo) => Some(&undo.table),
            Step::Claim(claimed) => Some(&claimed.table),
            Step::Update(update) => Some(update.table()),
            Step::Hide { table, .. } => Some(table),
            Step::Catalog | Step::References(_) | Step::Rekeyed { .. } => None,
        }
    }
}

/// One write to a node.
pub(super) struct Undo {
    pub table: Arc<Table>,
    pub partition: u32,
    pub node: Arc<Node>,
    pub previous: Option<Change>,
    /// Whether this write took the lock.
    pub locked: bool,
    /// The segment row that this write hides from the transaction's own snapshot.
    pub hidden: Option<SegmentRow>,
    /// If set, the node is a claimed value of the index at this position, not a row.
    pub claim: Option<usize>,
}

impl Undo {
    /// Frees node versions that no snapshot from `oldest` on needs. The lock must be released.
    pub fn collect(&self, oldest: Timestamp) {
        match self.claim.map(|at| &self.table.indexes()[at]) {
            Some(index) => index.claims().collect(&self.node, oldest),
            None => {
                self.table.collect_row(self.table.partition(self.partition), &self.node, oldest)
            }
        }
    }
}

/// The tables and partitions of writes.
pub(super) fn places<'a>(
    writes: impl Iterator<Item = &'a Undo>,
) -> impl Iterator<Item = (&'a Arc<Table>, u32)> {
    writes.map(|undo| (&undo.table, undo.partition))
}

/// The writes to nodes among undo steps.
pub(super) fn writes(steps: &[Step]) -> impl Iterator<Item = &Undo> {
    steps.iter().filter_map(|step| match step {
        Step::Write(undo) => Some(undo),
        _ => None,
    })
}

/// The rows written by a commit.
pub(super) struct Written(pub Vec<Undo>);

impl Written {
    /// Frees row versions that no snapshot from `oldest` on sees.
    pub fn collect(&self, oldest: Timestamp) {
        self.0.iter().for_each(|undo| undo.collect(oldest));
        Partitions::of(places(self.0.iter())).recount();
    }
}
