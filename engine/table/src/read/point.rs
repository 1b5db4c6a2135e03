//! Finding the row of one key.

use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Node, Owner, Row, Visible};
use nacre_types::{Result, Timestamp, Value};
use std::sync::Arc;

/// Reads without a snapshot that are tried before one is taken.
const OPTIMISTIC_ATTEMPTS: usize = 3;

/// Where the row of a key is.
pub(crate) enum Found {
    Memory(Arc<Node>, Row),
    Segment(Arc<SegmentState>, u32),
}

/// The row of a key, also `encoded`, in its partition, as seen at `at` by `owner`, whose own changes count. `hidden`
/// tells which rows of segments the reader itself has replaced.
pub(crate) fn find(
    table: &Table,
    partition: &Partition,
    key: &[Value],
    encoded: &[u8],
    at: Timestamp,
    owner: Option<&Arc<Owner>>,
    hidden: &dyn Fn(u64, u32) -> bool,
) -> Result<Option<Found>> {
    if let Some(node) = partition.rowstore.get(encoded) {
        match node.visible(at, owner) {
            Visible::Row(row) => return Ok(Some(Found::Memory(node, table.upgrade(row)?))),
            Visible::Deleted => return Ok(None),
            Visible::Elsewhere => {}
        }
    }
    let list = partition.segments();
    for candidate in list.of_key(table, encoded)?.newest_first() {
        let state = &list[candidate.place];
        if state.exists_at(at)
            && let Some(row) = table.find_candidate(state, candidate, key)?
            && !state.is_deleted_at(row, at)
            && !hidden(state.segment.id(), row)
        {
            return Ok(Some(Found::Segment(state.clone(), row)));
        }
    }
    Ok(None)
}

impl Store {
    /// The newest committed row of a key, projected; `conflict` when this is not the newest version of the table.
    ///
    /// Without registering a snapshot: what the newest visible timestamp needs is not collected as long as it is the
    /// newest, so a read is right if that has not changed by its end. Otherwise it is done again, at last with a
    /// snapshot that is registered.
    pub fn get(
        self: &Arc<Self>,
        table: &Arc<Table>,
        key: &[Value],
        projection: &[usize],
    ) -> Result<Option<Vec<Value>>> {
        self.check_open()?;
        let encoded = table.encode_wanted_key(key)?;
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let at = self.visible();
            let row = read(table, key, &encoded, at, projection);
            if self.visible() == at {
                return row;
            }
        }
        let guard = self.snapshot();
        read(table, key, &encoded, guard.at(), projection)
    }
}

fn read(
    table: &Table,
    key: &[Value],
    encoded: &[u8],
    at: Timestamp,
    projection: &[usize],
) -> Result<Option<Vec<Value>>> {
    if !table.serves(at) {
        return Err(table.superseded());
    }
    Ok(match find(table, table.partition_of(encoded), key, encoded, at, None, &|_, _| false)? {
        Some(Found::Memory(_, row)) => {
            Some(projection.iter().map(|c| table.layout().value(&row, *c)).collect())
        }
        Some(Found::Segment(state, row)) => Some(table.segment_row(&state, row, projection)?),
        None => None,
    })
}
