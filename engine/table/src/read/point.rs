//! Finds the row of one key.

use crate::commit::snapshots::Snapshots;
use crate::read::reader::{Reader, read_newest};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_rowstore::{Node, Row, Visible};
use nacre_types::{Result, Value};
use std::sync::Arc;

/// The location of a key's row.
pub(crate) enum Found {
    Memory(Arc<Node>, Row),
    Segment(Arc<SegmentState>, u32),
}

/// Finds the row of a key in its partition. `encoded` is the key's encoding.
pub(crate) fn find(
    table: &Table,
    partition: &Partition,
    key: &[Value],
    encoded: &[u8],
    reader: &Reader<'_>,
) -> Result<Option<Found>> {
    debug_assert!(
        std::ptr::eq(table.partition_of(encoded), partition),
        "a key is looked up in partition {}, which does not have it",
        partition.number()
    );
    if let Some(node) = partition.rowstore().get(encoded) {
        match reader.visible(&node) {
            Visible::Row(row) => {
                return Ok(Some(Found::Memory(node, table.layout().upgrade(row)?)));
            }
            Visible::Deleted => return Ok(None),
            Visible::Elsewhere => {}
        }
    }
    let list = reader.segments(table, partition);
    for candidate in list.of_key(table.layout(), encoded)?.newest_first() {
        let state = &list[candidate.place];
        if state.exists_at(reader.at)
            && let Some(row) = candidate.find(table.layout(), state, key)?
            && !state.is_deleted_at(row, reader.at)
            && !(reader.hides)(state.id(), row)
        {
            return Ok(Some(Found::Segment(state.clone(), row)));
        }
    }
    Ok(None)
}

/// The newest committed row of a key, projected. `conflict` if this is not the newest version of
/// the table.
pub(crate) fn newest(
    snapshots: &Arc<Snapshots>,
    table: &Table,
    key: &[Value],
    projection: &[usize],
) -> Result<Option<Vec<Value>>> {
    let encoded = table.layout().encode_wanted_key(key)?;
    read_newest(snapshots, |reader| {
        if !table.serves(reader.at) {
            return Err(table.superseded());
        }
        match find(table, table.partition_of(&encoded), key, &encoded, reader)? {
            Some(found) => found.values(table, projection).map(Some),
            None => Ok(None),
        }
    })
}

impl Found {
    /// Values of the row, projected.
    pub fn values(&self, table: &Table, projection: &[usize]) -> Result<Vec<Value>> {
        let layout = table.layout();
        debug_assert!(
            projection.iter().all(|at| *at < layout.schema().columns.len()),
            "columns {projection:?} of table {}",
            layout.schema().name
        );
        match self {
            Found::Memory(_, row) => {
                Ok(projection.iter().map(|c| layout.rows().value(row, *c)).collect())
            }
            Found::Segment(state, row) => layout.segment_row(&state.segment, *row, projection),
        }
    }
}
