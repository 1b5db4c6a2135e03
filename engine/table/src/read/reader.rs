//! The reader of a table: its timestamp, and which changes besides committed ones it sees.

use crate::commit::snapshots::Snapshots;
use nacre_rowstore::{Node, Owner, Visible};
use nacre_types::{Result, Timestamp};
use std::sync::Arc;

/// Reads without a snapshot that are tried before one is taken.
const OPTIMISTIC_ATTEMPTS: usize = 3;

/// See the module.
pub(crate) struct Reader<'a> {
    pub at: Timestamp,
    /// The transaction whose own changes are seen.
    pub owner: Option<&'a Arc<Owner>>,
    /// Whether the transaction itself has replaced a row of a segment.
    pub hides: &'a dyn Fn(u64, u32) -> bool,
}

impl Reader<'_> {
    /// What it sees of a row in memory.
    pub fn visible(&self, node: &Node) -> Visible {
        node.visible(self.at, self.owner)
    }
}

/// Reads what is committed and visible now, by a reader without changes of its own. `read` may be
/// called several times; the last call counts.
///
/// No snapshot is registered at first: what the newest visible timestamp needs is not collected while
/// it is the newest, so a read is right if the timestamp has not changed by its end. Otherwise it is
/// repeated, at last with a registered snapshot.
pub(crate) fn read_newest<T>(
    snapshots: &Arc<Snapshots>,
    mut read: impl FnMut(&Reader<'_>) -> Result<T>,
) -> Result<T> {
    let mut read_at = |at| read(&Reader { at, owner: None, hides: &|_, _| false });
    for _ in 0..OPTIMISTIC_ATTEMPTS {
        let at = snapshots.visible();
        let outcome = read_at(at);
        if snapshots.visible() == at {
            return outcome;
        }
    }
    let guard = snapshots.take();
    read_at(guard.at())
}
