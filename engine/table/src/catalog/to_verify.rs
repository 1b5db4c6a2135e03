//! The rows that a change of a table's schema verifies.

use crate::segments::state::SegmentState;
use crate::statement_memory::StatementMemory;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use nacre_rowstore::{Node, Row};
use nacre_types::Timestamp;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Which rows of a table are verified.
pub(crate) trait VerifiedRows {
    /// The row of a node, if it is one of them.
    fn row(&self, node: &Node) -> Option<Row>;

    /// The segments of a partition.
    fn segments(&self, partition: &Partition) -> Arc<SegmentList>;

    /// Whether the rows of a listed segment are among them.
    fn has(&self, state: &SegmentState) -> bool {
        state.is_current()
    }

    /// The rows of a segment that are not among them.
    fn deleted(&self, state: &SegmentState) -> Arc<RoaringBitmap>;
}

/// Rows to verify.
#[derive(Clone, Copy)]
pub(crate) struct ToVerify<'a> {
    pub rows: &'a dyn VerifiedRows,
    /// Those committed up to here satisfy what is verified: all are looked at if this is 0.
    pub since: Timestamp,
    /// Memory for what is compared.
    pub memory: &'a StatementMemory,
}

impl ToVerify<'_> {
    /// Whether it is all rows, not only some since a commit.
    pub fn is_all(&self) -> bool {
        self.since == 0
    }

    /// Whether the row of a node is one of them.
    pub fn has_node(&self, node: &Node) -> bool {
        self.is_all() || node.newest().is_some_and(|newest| newest.commit > self.since)
    }

    /// Whether the rows of a segment are among them.
    pub fn has_segment(&self, state: &SegmentState) -> bool {
        self.rows.has(state) && (self.is_all() || state.created() > self.since)
    }
}

/// The rows of the newest commit.
pub(crate) struct Committed;

impl VerifiedRows for Committed {
    fn row(&self, node: &Node) -> Option<Row> {
        node.newest().and_then(|version| version.change.into_row())
    }

    fn segments(&self, partition: &Partition) -> Arc<SegmentList> {
        partition.segments()
    }

    fn deleted(&self, state: &SegmentState) -> Arc<RoaringBitmap> {
        state.all_deleted()
    }
}
