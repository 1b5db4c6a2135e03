//! Looking into an index: what an access path asks, and what it gets.
//!
//! [`TableView::probe_index`] takes a range of keys and answers with a [`IndexProbe`]: the rows in memory, looked up and
//! verified, and for each segment that may have any an [`IndexRun`], which reads nothing but what is asked of it. Both
//! show exactly the rows that the view shows and whose key is in the range; nothing is left to be verified.

use crate::index::definition::Index;
use crate::index::directory::Candidate;
use crate::index::hash::table::KeySet;
use crate::layout::rows;
use crate::read::view::{RowLocator, TableView};
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::Row;
use nacre_types::hash::hash_bytes;
use nacre_types::{Error, IndexId, Result, Value, key, limits};
use roaring::RoaringBitmap;
use std::ops::Bound;
use std::sync::Arc;

/// Keys of an index: all that begin with some values, and whose next column is between bounds. Values must be of their
/// column's type. A null in the prefix finds nulls; a bound finds none.
#[derive(Clone, Debug)]
pub struct KeyRange {
    /// Values of the first columns, none to all of them.
    pub prefix: Vec<Value>,
    /// Lower bound of the column after them.
    pub low: Bound<Value>,
    /// Upper bound of the column after them.
    pub high: Bound<Value>,
}

impl KeyRange {
    /// All keys that begin with these values.
    pub fn equal(prefix: Vec<Value>) -> KeyRange {
        KeyRange { prefix, low: Bound::Unbounded, high: Bound::Unbounded }
    }

    /// The whole index, nulls first.
    pub fn all() -> KeyRange {
        KeyRange::equal(Vec::new())
    }

    /// The hash of the one key that it is, if it is one without nulls.
    pub(crate) fn hash(&self, index: &Index) -> Result<Option<u64>> {
        let is_one =
            self.prefix.len() == index.types.len() && !self.prefix.iter().any(Value::is_null);
        if is_one {
            index.encode(&self.prefix).map(|bytes| Some(hash_bytes(&bytes)))
        } else {
            Ok(None)
        }
    }

    fn is_bounded(&self) -> bool {
        !matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded))
    }

    fn with(&self, value: &Value) -> Vec<Value> {
        let mut values = self.prefix.clone();
        values.push(value.clone());
        values
    }

    /// Where it begins: at the first key with this prefix, or after the last one.
    fn begin(&self) -> (Vec<Value>, bool) {
        match &self.low {
            Bound::Included(value) => (self.with(value), false),
            Bound::Excluded(value) => (self.with(value), true),
            Bound::Unbounded if self.is_bounded() => (self.with(&Value::Null), true),
            Bound::Unbounded => (self.prefix.clone(), false),
        }
    }

    /// Where it ends: after the last key with this prefix, or before the first one.
    fn end(&self) -> (Vec<Value>, bool) {
        match &self.high {
            Bound::Included(value) => (self.with(value), true),
            Bound::Excluded(value) => (self.with(value), false),
            Bound::Unbounded => (self.prefix.clone(), true),
        }
    }

    /// The same as encoded keys: from the first, to before the second.
    pub(crate) fn encode(&self, index: &Index) -> Result<(Vec<u8>, Option<Vec<u8>>)> {
        let bound = |(values, after): (Vec<Value>, bool)| -> Result<Option<Vec<u8>>> {
            let bytes = index.encode(&values)?;
            Ok(if after { successor(bytes) } else { Some(bytes) })
        };
        let from = bound(self.begin())?;
        let to = bound(self.end())?;
        // Nothing comes after what has no successor.
        Ok(match from {
            Some(from) => (from, to),
            None => (Vec::new(), Some(Vec::new())),
        })
    }
}

/// The least bytes above all that begin with these.
pub(crate) fn successor(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes);
        }
    }
    None
}

/// What an index knows about a range of keys, as one view sees it.
pub struct IndexProbe {
    /// Runs of segments that have candidates, oldest segment first.
    pub runs: Vec<IndexRun>,
    /// Segments that have none.
    pub segments_skipped: usize,
    /// Segments that had to be read as a whole, because they have no part of the index.
    pub segments_read: usize,
    /// Hash tables that were asked which segments have the key.
    pub tables_probed: usize,
    pub(super) table: Arc<Table>,
    /// Rows in memory in index key order, with their keys.
    pub(super) memory: Vec<(Vec<u8>, RowLocator, Row)>,
}

/// The rows of one segment whose keys are in a range, in index key order, and of equal keys by row number.
pub struct IndexRun {
    /// Position of the segment in [`TableView::segments`].
    pub segment: usize,
    pub(super) source: Source,
    /// One key: row numbers ascend.
    pub(super) ascends: bool,
    pub(super) deleted: Option<Arc<RoaringBitmap>>,
}

pub(super) enum Source {
    Part {
        part: Arc<Part>,
        start: usize,
        end: usize,
    },
    /// Neighbours.
    Range {
        start: u32,
        end: u32,
    },
    Rows(Vec<u32>),
}

impl IndexProbe {
    /// Number of rows in memory.
    pub fn memory_rows(&self) -> usize {
        self.memory.len()
    }

    /// At most so many rows are there altogether: what the range costs.
    pub fn len(&self) -> usize {
        self.memory.len() + self.runs.iter().map(IndexRun::len).sum::<usize>()
    }

    /// Whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index key of a row in memory.
    pub fn memory_key(&self, at: usize) -> &[u8] {
        &self.memory[at].0
    }

    /// Rows in memory, in index key order, projected: those at positions `start..end`.
    pub fn memory(
        &self,
        start: usize,
        end: usize,
        projection: &[usize],
    ) -> Result<(Batch, Vec<RowLocator>)> {
        let part = &self.memory[start..end];
        let found: Vec<Row> = part.iter().map(|(_, _, row)| row.clone()).collect();
        let locators = part.iter().map(|(_, locator, _)| locator.clone()).collect();
        Ok((rows::to_batch(self.table.layout(), &found, projection)?, locators))
    }
}

impl IndexRun {
    /// At most so many rows it has: deleted ones are counted. Costs nothing.
    pub fn len(&self) -> usize {
        match &self.source {
            Source::Part { start, end, .. } => end - start,
            Source::Range { start, end } => (end - start) as usize,
            Source::Rows(rows) => rows.len(),
        }
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows at `count` positions of the run from `start` on, in index key order; fewer where some are deleted.
    pub fn in_key_order(&self, start: usize, count: usize) -> Result<Vec<u32>> {
        let end = start.saturating_add(count).min(self.len());
        let mut rows = self.read(start.min(end), end)?;
        if let Some(deleted) = &self.deleted {
            rows.retain(|row| !deleted.contains(*row));
        }
        Ok(rows)
    }

    /// The value of a column of the index at a position of the run, where the segment has its part of it.
    pub fn key_value(&self, at: usize, column: usize) -> Result<Value> {
        match &self.source {
            Source::Part { part, start, .. } => part.file.get(part.keys[column], start + at),
            _ => Err(Error::unsupported("keys of a segment without a part of the index")),
        }
    }

    /// Whether its rows ascend by number as they come, so that [`IndexRun::cursor`] need not read all of them.
    pub fn is_ascending(&self) -> bool {
        self.ascends
    }

    /// All rows, ascending by number.
    pub fn ascending(&self) -> Result<Vec<u32>> {
        let mut rows = self.in_key_order(0, self.len())?;
        if !self.ascends {
            rows.sort_unstable();
        }
        Ok(rows)
    }

    /// The rows ascending by number, one after the other, with forward seeking: a run of one key reads only what it
    /// must.
    pub fn cursor(&self) -> Result<RowCursor<'_>> {
        let sorted = if self.ascends { None } else { Some(self.ascending()?) };
        Ok(RowCursor { run: self, sorted, at: 0 })
    }

    fn read(&self, start: usize, end: usize) -> Result<Vec<u32>> {
        match &self.source {
            Source::Part { part, start: first, .. } => part.rows(first + start, end - start),
            Source::Range { start: first, .. } => {
                Ok((first + start as u32..first + end as u32).collect())
            }
            Source::Rows(rows) => Ok(rows[start..end].to_vec()),
        }
    }
}

/// See [`IndexRun::cursor`].
pub struct RowCursor<'a> {
    run: &'a IndexRun,
    sorted: Option<Vec<u32>>,
    at: usize,
}

impl RowCursor<'_> {
    fn len(&self) -> usize {
        self.sorted.as_ref().map_or(self.run.len(), Vec::len)
    }

    fn peek(&self, at: usize) -> Result<u32> {
        match (&self.sorted, &self.run.source) {
            (Some(rows), _) | (None, Source::Rows(rows)) => Ok(rows[at]),
            (None, Source::Part { part, start, .. }) => part.row(start + at),
            (None, Source::Range { start, .. }) => Ok(start + at as u32),
        }
    }

    /// The next row that is not below `row`, and steps behind it.
    pub fn advance_to(&mut self, row: u32) -> Result<Option<u32>> {
        // Gallop: steps that double, then a binary search inside the last.
        let (mut low, mut high, mut step) = (self.at, self.len(), 1);
        while low < high {
            let middle = if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
            if self.peek(middle)? >= row {
                (high, step) = (middle, 0);
            } else {
                (low, step) = (middle + 1, step * 2);
            }
        }
        self.at = low;
        self.next_row()
    }

    /// The next row.
    pub fn next_row(&mut self) -> Result<Option<u32>> {
        while self.at < self.len() {
            let row = self.peek(self.at)?;
            self.at += 1;
            if self.run.deleted.as_ref().is_none_or(|deleted| !deleted.contains(row)) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

impl TableView {
    /// Rows of segments that have no part of an index yet, which are read as a whole for each look.
    pub fn unindexed_rows(&self, index: IndexId) -> u64 {
        let unindexed = self.segments.iter().filter(|view| view.state.part(index).is_none());
        unindexed.map(|view| view.segment.rows() as u64).sum()
    }

    /// Looks a range of keys up in an index of this view's table. `not_found` when this version of the table does not
    /// have the index.
    pub fn probe_index(&self, index: IndexId, range: &KeyRange) -> Result<IndexProbe> {
        let table = self.table().clone();
        let index = table.index(index)?;
        let mut probe = IndexProbe {
            runs: Vec::new(),
            segments_skipped: 0,
            segments_read: 0,
            tables_probed: 0,
            memory: self.probe_memory(index, range)?,
            table: table.clone(),
        };
        let hash = range.hash(index)?;
        for (at, position) in self.candidates(index, range, hash)? {
            let view = &self.segments[at];
            let (source, ascends) = match view.state.part(index.schema.id) {
                Some(part) => {
                    let (start, end) = match position {
                        Some(position) => run_at(&part, &range.prefix, position)?,
                        None => positions(&part, range, hash)?,
                    };
                    (Source::Part { part, start, end }, range.prefix.len() == index.types.len())
                }
                None => {
                    probe.segments_read += 1;
                    (Source::Rows(scan(&table, index, &view.state, range)?), false)
                }
            };
            let run = IndexRun { segment: at, source, ascends, deleted: view.deleted.clone() };
            if !run.is_empty() {
                probe.runs.push(run);
            }
        }
        if hash.is_some() {
            let keys = KeySet::Index(index.schema.id);
            probe.tables_probed =
                self.lists.iter().map(|(_, list)| list.tables_of(keys).count()).sum();
        }
        probe.segments_skipped = self.segments.len() - probe.runs.len();
        Ok(probe)
    }

    /// The position among its segments of one of a partition's list; `None` when it does not see it.
    pub(super) fn position_of(&self, partition: u32, place: usize) -> Option<usize> {
        self.segments
            .binary_search_by_key(&(partition, place), |view| (view.partition, view.place))
            .ok()
    }

    /// Positions of the segments that may hold keys of a range, ascending, and where in them the one key is, as far as
    /// that is known.
    fn candidates(
        &self,
        index: &Index,
        range: &KeyRange,
        hash: Option<u64>,
    ) -> Result<Vec<(usize, Option<u32>)>> {
        let mut found = Vec::new();
        if hash.is_none() {
            for (partition, list) in &self.lists {
                let places = list.of_index(index).overlapping(range)?.into_iter();
                found.extend(
                    places
                        .filter_map(|place| self.position_of(*partition, place))
                        .map(|at| (at, None)),
                );
            }
            return Ok(found);
        }
        let key = index.encode(&range.prefix)?;
        for (partition, list) in &self.lists {
            for Candidate { place, position, .. } in
                list.of_index(index).candidates(&key)?.newest_first()
            {
                found.extend(self.position_of(*partition, place).map(|at| (at, position)));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

/// Rows of a segment that may have the one key of a range, in index key order, deleted ones too. `hash` is the range's,
/// and the candidate one for its key.
pub(crate) fn rows_of_candidate(
    table: &Table,
    index: &Index,
    state: &SegmentState,
    range: &KeyRange,
    hash: Option<u64>,
    candidate: Candidate,
) -> Result<Vec<u32>> {
    match (candidate.position, state.part(index.schema.id)) {
        (Some(position), Some(part)) => {
            let (start, end) = run_at(&part, &range.prefix, position)?;
            part.rows(start, end - start)
        }
        _ => rows_of(table, index, state, range, hash),
    }
}

/// Positions in a part of a whole key that begins at a position, if it is there at all.
pub(crate) fn run_at(part: &Part, values: &[Value], position: u32) -> Result<(usize, usize)> {
    let start = position as usize;
    match part.file.is_key(start, &part.keys, values)? {
        true => Ok((start, part.upper(values, start)?)),
        false => Ok((start, start)),
    }
}

/// Rows of a segment whose keys are in a range, in index key order, deleted ones too.
/// `hash` is the range's.
pub(crate) fn rows_of(
    table: &Table,
    index: &Index,
    state: &SegmentState,
    range: &KeyRange,
    hash: Option<u64>,
) -> Result<Vec<u32>> {
    match state.part(index.schema.id) {
        Some(part) => {
            let (start, end) = positions(&part, range, hash)?;
            part.rows(start, end - start)
        }
        None => scan(table, index, state, range),
    }
}

/// Positions of a range of keys, with its hash, in a part.
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
    let (begin, after_all) = range.begin();
    let mut start = part.lower(&begin)?;
    if after_all {
        start = part.upper(&begin, start)?;
    }
    let (end, after_all) = range.end();
    let end = match after_all {
        true => part.upper(&end, start)?,
        false => part.lower(&end)?,
    };
    Ok((start, end.max(start)))
}

/// Rows of a segment whose keys are in a range, in index key order, found by reading it.
fn scan(table: &Table, index: &Index, state: &SegmentState, range: &KeyRange) -> Result<Vec<u32>> {
    let (from, to) = range.encode(index)?;
    let is_inside = |key: &[u8]| key >= &from[..] && to.as_ref().is_none_or(|to| key < &to[..]);
    let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
    for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
        if !block_may_have(table, index, state, start / limits::BLOCK_ROWS, &from, to.as_deref())? {
            continue;
        }
        let keys = block_keys(table, index, state, start)?;
        let inside = keys.into_iter().zip(start as u32..).filter(|(key, _)| is_inside(key));
        found.extend(inside);
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// The index keys of a segment's rows that are not deleted, ascending.
pub(crate) fn live_keys(
    table: &Table,
    index: &Index,
    state: &SegmentState,
) -> Result<Vec<Vec<u8>>> {
    let deleted = state.all_deleted();
    let mut all = Vec::new();
    for start in (0..state.segment.rows()).step_by(limits::BLOCK_ROWS) {
        let keys = block_keys(table, index, state, start)?;
        all.extend(
            keys.into_iter()
                .zip(start as u32..)
                .filter(|(_, row)| !deleted.contains(*row))
                .map(|(key, _)| key),
        );
    }
    all.sort_unstable();
    Ok(all)
}

/// Whether the zone map of the first column leaves it open that a block has keys between these.
fn block_may_have(
    table: &Table,
    index: &Index,
    state: &SegmentState,
    block: usize,
    from: &[u8],
    to: Option<&[u8]>,
) -> Result<bool> {
    let column = &table.schema().columns[index.columns[0]];
    let Some(position) = state.segment.column_index(column.id) else { return Ok(true) };
    let zone = state.segment.zone(position, block);
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

/// The index keys of a block's rows, deleted ones too.
pub(crate) fn block_keys(
    table: &Table,
    index: &Index,
    state: &SegmentState,
    start: usize,
) -> Result<Vec<Vec<u8>>> {
    let count = limits::BLOCK_ROWS.min(state.segment.rows() - start);
    index.encode_rows(&block_columns(table, index, state, start, count)?)
}

/// The columns of an index, in its order, of some rows of one block.
pub(crate) fn block_columns(
    table: &Table,
    index: &Index,
    state: &SegmentState,
    start: usize,
    count: usize,
) -> Result<Batch> {
    let column = |at: &usize| {
        let column = &table.schema().columns[*at];
        match state.segment.column_index(column.id) {
            Some(position) => state.segment.decode(position, start, count).map(Arc::new),
            None => Ok(Arc::new(nacre_column::Vector::constant(
                column.data_type,
                &column.default,
                count,
            ))),
        }
    };
    Ok(Batch::new(index.columns.iter().map(column).collect::<Result<_>>()?, count))
}
