//! Finds the row of one key.

use crate::commit::snapshots::Snapshots;
use crate::index::candidates::Candidate;
use crate::read::reader::{Reader, read_newest};
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_host::fetched::Misses;
use nacre_rowstore::{Node, Row, Visible};
use nacre_types::{Error, Result, Value, limits};
use std::sync::Arc;

/// The location of a key's row.
pub(crate) enum Found {
    Memory(Arc<Node>, Row),
    Segment(Arc<SegmentState>, u32),
}

/// Finds the row of a key in its partition. `encoded` is the key's encoding, `projection` the columns that are
/// read next.
pub(crate) fn find(
    table: &Table,
    partition: &Partition,
    key: &[Value],
    encoded: &[u8],
    projection: &[usize],
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
    let mut misses = Misses::default();
    let candidates = list.of_key(table.layout(), encoded)?;
    for candidate in candidates.newest_first() {
        let state = &list[candidate.place];
        if !state.exists_at(reader.at) {
            continue;
        }
        let mut found = candidate.find(table.layout(), state, key);
        if found.as_ref().is_err_and(|error| error.missing().is_some()) {
            let is_only = candidates.newest_first().count() == 1;
            found =
                found.map_err(|error| match row_to_read(table, &candidate, state, key, is_only) {
                    Some(row) => with_row(error, table, state, row, projection),
                    None => error,
                });
        }
        // What is older is of no use before the newer segments were searched.
        if let Some(Some(row)) = misses.note(found)?
            && misses.is_empty()
            && !state.is_deleted_at(row, reader.at)
            && !(reader.hides)(state.id(), row)
        {
            return Ok(Some(Found::Segment(state.clone(), row)));
        }
    }
    misses.end().map(|()| None)
}

/// A row in the block that probably has a key, of a segment in which the search for the key missed bytes.
#[cold]
fn row_to_read(
    table: &Table,
    candidate: &Candidate,
    state: &SegmentState,
    key: &[Value],
    is_only: bool,
) -> Option<u32> {
    if candidate.position.is_some() {
        return candidate.position;
    }
    let is_probable = is_only || state.has_key_filter() && candidate.hash.is_some();
    if !is_probable || !state.may_have(candidate.hash).ok()? {
        return None;
    }
    let layout = table.layout();
    if layout.key_order(&state.segment).ok()?.is_some() {
        return None;
    }
    let block = state.segment.block_of(&layout.key_positions(&state.segment).ok()?, key).ok()??;
    Some((block * limits::BLOCK_ROWS) as u32)
}

/// Adds the values in the block of a row to what the search for it has missed.
#[cold]
fn with_row(
    error: Error,
    table: &Table,
    state: &SegmentState,
    row: u32,
    projection: &[usize],
) -> Error {
    debug_assert!((row as usize) < state.segment.rows(), "row {row} of a segment");
    let block = row as usize / limits::BLOCK_ROWS;
    let column = |at: &usize| state.segment.column_index(table.schema().columns[*at].id);
    let wanted: Vec<_> = projection.iter().filter_map(column).map(|at| (at, block)).collect();
    match state.segment.check_there(&wanted) {
        Err(row) => error.and_missing(&row),
        Ok(()) => error,
    }
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
        match find(table, table.partition_of(&encoded), key, &encoded, projection, reader)? {
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
