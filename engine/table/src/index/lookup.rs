//! Finds rows of one segment by an index: in the segment's index part, or by scanning the segment
//! if there is none. The caller handles snapshots and deletions.

use crate::index::candidates::Candidate;
use crate::index::definition::Index;
use crate::index::range::{KeyRange, successor};
use crate::layout::table_layout::TableLayout;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use nacre_column::{Batch, Vector};
use nacre_types::{Result, Value, key, limits};
use std::sync::Arc;

/// The rows of a candidate segment with the single key of a range, in index key order, including
/// deleted rows. `hash` is the range's hash.
pub(crate) fn rows_of_candidate(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    range: &KeyRange,
    hash: Option<u64>,
    candidate: Candidate,
) -> Result<Vec<u32>> {
    debug_assert!(
        range.prefix.len() == index.types().len(),
        "candidates are for one key, not for {} of its columns",
        range.prefix.len()
    );
    match (candidate.position, state.part(index.id())) {
        (Some(position), Some(part)) => {
            let (start, end) = run_at(&part, &range.prefix, position)?;
            part.rows(start, end - start)
        }
        _ => rows_of(layout, index, state, range, hash),
    }
}

/// Positions in a part of a whole key that, if present, begins at `position`.
pub(crate) fn run_at(part: &Part, values: &[Value], position: u32) -> Result<(usize, usize)> {
    let start = position as usize;
    debug_assert!(
        values.len() == part.keys().len(),
        "{} values of a key of {} columns",
        values.len(),
        part.keys().len()
    );
    match part.file().is_key(start, part.keys(), values)? {
        true => {
            let end = part.upper(values, start)?;
            debug_assert!(start < end, "the key at {start} has no rows");
            Ok((start, end))
        }
        false => Ok((start, start)),
    }
}

/// The rows of a segment with keys in a range, in index key order, including deleted rows. `hash`
/// is the range's hash.
pub(crate) fn rows_of(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    range: &KeyRange,
    hash: Option<u64>,
) -> Result<Vec<u32>> {
    match state.part(index.id()) {
        Some(part) => {
            let (start, end) = positions(&part, range, hash)?;
            part.rows(start, end - start)
        }
        None => scan(layout, index, state, range),
    }
}

/// Positions in a part of the keys in a range: the first, and the one after the last. `hash` is the
/// range's hash.
pub(crate) fn positions(
    part: &Part,
    range: &KeyRange,
    hash: Option<u64>,
) -> Result<(usize, usize)> {
    if let Some(hash) = hash
        && !part.may_have(&range.prefix, hash)?
    {
        return Ok((0, 0));
    }
    if !range.is_bounded() && !range.prefix.is_empty() {
        return part.equal(&range.prefix);
    }
    let begin = range.begin();
    let mut start = part.lower(&begin.prefix)?;
    if begin.after_all {
        start = part.upper(&begin.prefix, start)?;
    }
    let end = range.end();
    let end = match end.after_all {
        true => part.upper(&end.prefix, start)?,
        false => part.lower(&end.prefix)?,
    };
    debug_assert!(
        start <= part.file().rows() && end <= part.file().rows(),
        "keys {start}..{end} of a part of {}",
        part.file().rows()
    );
    Ok((start, end.max(start)))
}

/// The rows of a segment with keys in a range, in index key order, found by scanning the segment.
pub(crate) fn scan(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    range: &KeyRange,
) -> Result<Vec<u32>> {
    let (from, to) = range.encode(index)?;
    let is_inside = |key: &[u8]| key >= &from[..] && to.as_ref().is_none_or(|to| key < &to[..]);
    let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
    for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
        if !block_may_have(layout, index, state, start / limits::BLOCK_ROWS, &from, to.as_deref())?
        {
            continue;
        }
        let keys = block_keys(layout, index, state, start)?;
        let inside = keys.into_iter().zip(start as u32..).filter(|(key, _)| is_inside(key));
        found.extend(inside);
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// Whether a block may have keys from `from` up to `to`, according to the zone map of the index's
/// first column.
fn block_may_have(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    block: usize,
    from: &[u8],
    to: Option<&[u8]>,
) -> Result<bool> {
    let column = layout.schema().key_column(index.columns()[0]);
    let Some(position) = state.segment.column_index(column.id) else { return Ok(true) };
    let zone = state.segment.zone(position, block)?;
    if zone.null_count > 0 {
        return Ok(true);
    }
    let mut low = Vec::new();
    key::append(&mut low, column.data_type, &zone.min)?;
    let mut high = Vec::new();
    key::append(&mut high, column.data_type, &zone.max)?;
    let below = successor(high).is_some_and(|above| above[..] <= *from);
    Ok(!below && to.is_none_or(|to| low[..] < *to))
}

/// The index keys of a block's rows, including deleted rows.
pub(crate) fn block_keys(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    start: usize,
) -> Result<Vec<Vec<u8>>> {
    debug_assert!(
        start < state.segment.rows() && start.is_multiple_of(limits::BLOCK_ROWS),
        "a block at row {start} of {}",
        state.segment.rows()
    );
    let count = limits::BLOCK_ROWS.min(state.segment.rows() - start);
    index.encode_rows(&block_columns(layout, index, state, start, count)?)
}

/// The columns of an index, in its order, for `count` rows of one block.
pub(crate) fn block_columns(
    layout: &TableLayout,
    index: &Index,
    state: &SegmentState,
    start: usize,
    count: usize,
) -> Result<Batch> {
    debug_assert!(
        start % limits::BLOCK_ROWS + count <= limits::BLOCK_ROWS,
        "{count} rows from row {start} are in several blocks"
    );
    let column = |at: &usize| {
        let column = &layout.schema().columns[*at];
        match state.segment.column_index(column.id) {
            Some(position) => state.segment.decode(position, start, count).map(Arc::new),
            None => Ok(Arc::new(Vector::constant(column.data_type, &column.default, count))),
        }
    };
    let read =
        |wanted: &[usize]| Ok(Batch::new(wanted.iter().map(column).collect::<Result<_>>()?, count));
    layout.key_columns_of(index.columns(), &read)
}
