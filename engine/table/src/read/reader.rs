//! The reader of a table: its timestamp, and which uncommitted changes it sees.

use crate::commit::snapshots::Snapshots;
use crate::table::partition::Partition;
use crate::table::segment_list::SegmentList;
use crate::table::version::Table;
use crate::transaction::own_segments::OwnSegments;
use nacre_rowstore::{Node, Owner, Visible};
use nacre_types::{Result, Timestamp};
use std::sync::Arc;

/// Attempts to read without a snapshot before one is registered.
const OPTIMISTIC_ATTEMPTS: usize = 3;

/// What a read may see.
pub(crate) struct Reader<'a> {
    pub at: Timestamp,
    /// The transaction whose own changes are visible.
    pub owner: Option<&'a Arc<Owner>>,
    /// Whether the transaction itself has replaced a segment row, given its segment and row number.
    pub hides: &'a dyn Fn(u64, u32) -> bool,
    /// The segments that the transaction has written.
    pub own: Option<&'a OwnSegments>,
}

impl Reader<'_> {
    /// The version of a row in memory that the reader sees.
    pub fn visible(&self, node: &Node) -> Visible {
        node.visible(self.at, self.owner)
    }

    /// The segments of a partition that the reader may see.
    pub fn segments(&self, table: &Table, partition: &Partition) -> Arc<SegmentList> {
        self.own.map_or_else(|| partition.segments(), |own| own.list(table, partition))
    }
}

/// Reads the newest visible committed data, without changes of a transaction. `read` may be called
/// several times; the last call counts.
///
/// At first, no snapshot is registered: versions needed at the newest visible timestamp are not
/// collected while it is the newest, so a read is valid if the timestamp has not changed by its
/// end. Otherwise the read is repeated, finally with a registered snapshot.
pub(crate) fn read_newest<T>(
    snapshots: &Arc<Snapshots>,
    mut read: impl FnMut(&Reader<'_>) -> Result<T>,
) -> Result<T> {
    let mut read_at = |at| read(&Reader { at, owner: None, hides: &|_, _| false, own: None });
    for _ in 0..OPTIMISTIC_ATTEMPTS {
        let at = snapshots.visible();
        let outcome = read_at(at);
        let now = snapshots.visible();
        debug_assert!(now >= at, "commit {at} was visible, and only {now} is now");
        if now == at {
            return outcome;
        }
    }
    let guard = snapshots.take();
    read_at(guard.at())
}
