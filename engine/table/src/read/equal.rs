//! Finds a few rows by the values of some columns through indexes, as point statements need,
//! without a view of the whole table.
//!
//! In each segment, the index with the fewest matching rows leads. Its row numbers are read, and
//! rows that are deleted or do not have the values are dropped. The result is exactly the matching
//! rows that the reader sees; other columns are read only on request.

use crate::commit::snapshots::Snapshots;
use crate::index::candidates::{Candidate, Candidates};
use crate::index::definition::Index;
use crate::index::entries::each_entry;
use crate::index::lookup::{positions, rows_of, run_at};
use crate::index::range::{KeyRange, successor};
use crate::layout::rows;
use crate::read::reader::{Reader, read_newest};
use crate::read::view::RowLocator;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::table::partition::Partition;
use crate::table::version::Table;
use nacre_column::{Batch, Vector};
use nacre_host::fetched::Misses;
use nacre_rowstore::{Row, Visible};
use nacre_types::hash::hash_bytes;
use nacre_types::{Column, IndexId, Result, Value, key};
use std::sync::Arc;

/// Row numbers of another index that can be read at the cost of one row's values.
const NUMBERS_A_ROW: usize = 32;
/// Up to this many rows are checked directly instead of being narrowed by another index.
const FEW_ROWS: usize = 4;

/// Values that rows must have in some columns: not null, and of the column's type.
pub struct Equal<'a> {
    /// Columns of the table, each once, and their values.
    pub values: &'a [(usize, Value)],
    /// Indexes, each with the number of its leading columns among these.
    pub indexes: &'a [(IndexId, usize)],
    /// Whether at most one row can have the values.
    pub unique: bool,
    /// A scan is cheaper if more rows match.
    pub most: usize,
}

/// Rows found in one rowstore or one segment, in order.
pub struct FoundRows {
    table: Arc<Table>,
    partition: u32,
    source: Source,
}

enum Source {
    /// Keys and rows.
    Memory(Vec<(Arc<[u8]>, Row)>),
    /// Row numbers, ascending.
    Segment(Arc<SegmentState>, Vec<u32>),
}

/// A key or key prefix of one index.
struct Key<'a> {
    index: &'a Index,
    range: KeyRange,
    encoded: Vec<u8>,
    /// The hash, if the key is whole.
    hash: Option<u64>,
}

/// Keys, and the position of one of them in a segment if known.
struct Keys<'a> {
    keys: &'a [Key<'a>],
    /// Index of the key, and its position in the part.
    at: Option<(usize, u32)>,
}

impl FoundRows {
    /// Number of rows, at least one.
    pub fn count(&self) -> usize {
        match &self.source {
            Source::Memory(rows) => rows.len(),
            Source::Segment(_, rows) => rows.len(),
        }
    }

    /// Some columns of all rows.
    pub fn batch(&self, columns: &[usize]) -> Result<Batch> {
        let (state, rows) = match &self.source {
            Source::Memory(found) => {
                let found: Vec<Row> = found.iter().map(|(_, row)| row.clone()).collect();
                return rows::to_batch(self.table.layout().rows(), &found, columns);
            }
            Source::Segment(state, rows) => (state, rows),
        };
        let column = |at: &usize| {
            let column = &self.table.schema().columns[*at];
            let vector = match state.segment.column_index(column.id) {
                Some(position) => state.segment.take(position, rows)?.with_type(column.data_type),
                None => Vector::constant(column.data_type, &column.default, rows.len()),
            };
            debug_assert!(
                vector.len() == rows.len(),
                "{} values of column {} in {} rows",
                vector.len(),
                column.name,
                rows.len()
            );
            Ok(Arc::new(vector))
        };
        let mut vectors = Vec::with_capacity(columns.len());
        Misses::each(columns, |at| column(at).map(|vector| vectors.push(vector)))?;
        Ok(Batch::new(vectors, rows.len()))
    }

    /// One row, projected.
    pub fn row(&self, at: usize, columns: &[usize]) -> Result<Vec<Value>> {
        debug_assert!(at < self.count(), "row {at} of {}", self.count());
        match &self.source {
            Source::Memory(rows) => Ok(columns
                .iter()
                .map(|c| self.table.layout().rows().value(&rows[at].1, *c))
                .collect()),
            Source::Segment(state, rows) => {
                self.table.layout().segment_row(&state.segment, rows[at], columns)
            }
        }
    }

    /// The location of one row.
    pub fn locator(&self, at: usize) -> RowLocator {
        debug_assert!(at < self.count(), "row {at} of {}", self.count());
        let partition = self.partition;
        match &self.source {
            Source::Memory(rows) => RowLocator::Memory { partition, key: rows[at].0.clone() },
            Source::Segment(state, rows) => {
                RowLocator::Segment { partition, segment: state.id(), row: rows[at] }
            }
        }
    }

    /// Keeps the rows at these ascending positions.
    pub fn keep(&mut self, positions: &[u32]) {
        debug_assert!(
            positions.is_sorted()
                && positions.last().is_none_or(|at| (*at as usize) < self.count()),
            "rows {positions:?} of {} are kept",
            self.count()
        );
        match &mut self.source {
            Source::Memory(rows) => {
                *rows = positions.iter().map(|at| rows[*at as usize].clone()).collect()
            }
            Source::Segment(_, rows) => {
                *rows = positions.iter().map(|at| rows[*at as usize]).collect()
            }
        }
    }
}

/// Finds the newest committed rows with some values and passes them to `read`, which may be called
/// again. `conflict` if this is not the newest version of the table. Returns `false` if there are
/// too many rows.
pub(crate) fn newest(
    snapshots: &Arc<Snapshots>,
    table: &Arc<Table>,
    equal: &Equal<'_>,
    read: &mut dyn FnMut(Vec<FoundRows>) -> Result<()>,
) -> Result<bool> {
    read_newest(snapshots, |reader| {
        if !table.serves(reader.at) {
            return Err(table.superseded());
        }
        match find(table, equal, reader)? {
            Some(rows) => read(rows).map(|()| true),
            None => Ok(false),
        }
    })
}

/// For each partition, the rows in segments, oldest first, then the rows in memory; `None` if there
/// are too many.
pub(crate) fn find(
    table: &Arc<Table>,
    equal: &Equal<'_>,
    reader: &Reader<'_>,
) -> Result<Option<Vec<FoundRows>>> {
    debug_assert!(
        (1..equal.values.len()).all(|at| {
            equal.values[..at].iter().all(|(column, _)| *column != equal.values[at].0)
        }),
        "a column is to have two values"
    );
    debug_assert!(
        equal.values.iter().all(|(_, value)| !value.is_null()),
        "a column is to have the value null"
    );
    let keys = equal
        .indexes
        .iter()
        .map(|index| key_of(table, equal, *index))
        .collect::<Result<Vec<_>>>()?;
    let (mut found, mut left) = (Vec::new(), equal.most);
    for partition in table.partitions() {
        // Search memory before the segments: a row flushed in between is in a segment that the
        // reader's timestamp does not see.
        let memory = in_memory(table, partition, equal, &keys, reader)?;
        let number = partition.number();
        let rows = |source| FoundRows { table: table.clone(), partition: number, source };
        if !equal.unique || memory.is_empty() {
            let list = reader.segments(table, partition);
            // A whole key determines the candidate segments, and possibly its position in them.
            let whole = keys.iter().position(|key| key.hash.is_some());
            let candidates = match (whole.and_then(|at| keys.get(at)), keys.first()) {
                (Some(key), _) => list.of_index(key.index).candidates(&key.encoded)?,
                (None, Some(key)) => {
                    Candidates::of_places(list.of_index(key.index).overlapping(&key.range)?)
                }
                (None, None) => Candidates::of_places(0..list.len()),
            };
            let mut candidates: Vec<Candidate> = candidates.newest_first().collect();
            candidates.reverse();
            debug_assert!(
                candidates.is_sorted_by_key(|candidate| candidate.place),
                "segments are not looked at oldest first"
            );
            let mut misses = Misses::default();
            for candidate in candidates {
                let state = &list[candidate.place];
                if !state.exists_at(reader.at) {
                    continue;
                }
                if misses.is_full() {
                    break;
                }
                let keys = Keys { keys: &keys, at: whole.zip(candidate.position) };
                let read = in_segment(table, state, equal, &keys, reader, left);
                let Some(numbers) = misses.note(read)? else { continue };
                let Some(numbers) = numbers else { return Ok(None) };
                debug_assert!(
                    numbers.len() <= left,
                    "{} rows where {left} are allowed",
                    numbers.len()
                );
                left -= numbers.len();
                if !numbers.is_empty() {
                    found.push(rows(Source::Segment(state.clone(), numbers)));
                    if equal.unique {
                        break;
                    }
                }
            }
            misses.end()?;
        }
        if memory.len() > left {
            return Ok(None);
        }
        left -= memory.len();
        if !memory.is_empty() {
            found.push(rows(Source::Memory(memory)));
        }
        if equal.unique && !found.is_empty() {
            break;
        }
    }
    debug_assert!(
        found.iter().all(|rows| rows.count() > 0)
            && found.iter().map(FoundRows::count).sum::<usize>() <= equal.most,
        "more than {} rows are found, or no row of a partition",
        equal.most
    );
    Ok(Some(found))
}

fn key_of<'a>(
    table: &'a Table,
    equal: &Equal<'_>,
    (index, columns): (IndexId, usize),
) -> Result<Key<'a>> {
    let index = table.index(index)?;
    let value = |column: &usize| {
        equal.values.iter().find(|(at, _)| at == column).map(|(_, value)| value.clone())
    };
    let prefix: Vec<Value> = index.columns().iter().take(columns).map_while(value).collect();
    debug_assert!(
        prefix.len() == columns,
        "{} of {columns} values of a key of index {}",
        prefix.len(),
        index.name()
    );
    let encoded = index.encode(&prefix)?;
    let hash = (prefix.len() == index.columns().len()).then(|| hash_bytes(&encoded));
    Ok(Key { index, range: KeyRange::equal(prefix), encoded, hash })
}

/// The matching rows in a partition's memory, in key order.
fn in_memory(
    table: &Table,
    partition: &Partition,
    equal: &Equal<'_>,
    keys: &[Key<'_>],
    reader: &Reader<'_>,
) -> Result<Vec<(Arc<[u8]>, Row)>> {
    let mut found = Vec::new();
    let Some(key) = keys.first() else { return Ok(found) };
    let layout = table.layout();
    each_entry(
        key.index,
        partition.number(),
        &key.encoded,
        successor(key.encoded.clone()).as_deref(),
        |entry| {
            let Some(node) = partition.rowstore().get(entry.row_key()) else { return Ok(()) };
            let Visible::Row(row) = reader.visible(&node) else { return Ok(()) };
            let row = layout.upgrade(row)?;
            // The entry may belong to an older version of the row.
            if key.index.key_of(layout, &row)? == entry.index_key()
                && (key.range.prefix.len() == equal.values.len()
                    || has_values(table, &row, equal.values)?)
            {
                found.push((node.key().clone(), row));
            }
            Ok(())
        },
    )?;
    if key.hash.is_none() {
        found.sort_by(|a, b| a.0.cmp(&b.0));
    }
    debug_assert!(found.is_sorted_by(|a, b| a.0 < b.0), "rows in memory are out of order");
    Ok(found)
}

fn has_values(table: &Table, row: &Row, wanted: &[(usize, Value)]) -> Result<bool> {
    let positions: Vec<usize> = wanted.iter().map(|(column, _)| *column).collect();
    let own = table.layout().key_values_of(&positions, row)?;
    let is = |((column, value), own): (&(usize, Value), &Value)| {
        is_alike(table.schema().key_column(*column), own, value)
    };
    Ok(wanted.iter().zip(&own).all(is))
}

/// Whether two values of a column are equal as keys; zeros of either sign are.
fn is_alike(column: &Column, own: &Value, other: &Value) -> bool {
    let encode = |value: &Value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, column.data_type, value).ok().map(|()| bytes)
    };
    matches!((encode(own), encode(other)), (Some(own), Some(other)) if own == other)
}

/// The matching rows of a segment, ascending; `None` if there are more than `most`.
fn in_segment(
    table: &Table,
    state: &SegmentState,
    equal: &Equal<'_>,
    Keys { keys, at }: &Keys<'_>,
    reader: &Reader<'_>,
    most: usize,
) -> Result<Option<Vec<u32>>> {
    // The positions of each key in its index part, if there is one.
    let mut runs: Vec<(&Key<'_>, Arc<Part>, (usize, usize))> = Vec::with_capacity(keys.len());
    for (number, key) in keys.iter().enumerate() {
        if let Some(part) = state.part(key.index.id()) {
            let run = match at {
                Some((known, position)) if *known == number => {
                    run_at(&part, &key.range.prefix, *position)?
                }
                _ => positions(&part, &key.range, key.hash)?,
            };
            debug_assert!(
                run.0 <= run.1 && run.1 <= part.file().rows(),
                "keys {run:?} of a part of {}",
                part.file().rows()
            );
            if run.0 == run.1 {
                return Ok(Some(Vec::new()));
            }
            runs.push((key, part, run));
        }
    }
    runs.sort_by_key(|(_, _, (start, end))| end - start);
    let mut verified: Vec<usize> = Vec::new();
    let mut rows = match (runs.first(), keys.first()) {
        (Some((_, _, (start, end))), _) if end - start > most.saturating_mul(NUMBERS_A_ROW) => {
            return Ok(None);
        }
        (Some((key, part, (start, end))), _) => {
            verified.extend(key.columns());
            key.ascending(part.rows(*start, end - start)?, part)?
        }
        (None, Some(key)) => {
            verified.extend(key.columns());
            let mut rows = rows_of(table.layout(), key.index, state, &key.range, key.hash)?;
            rows.sort_unstable();
            rows
        }
        (None, None) => return Ok(None),
    };
    for (key, part, (start, end)) in runs.iter().skip(1) {
        if rows.len() > FEW_ROWS && end - start < rows.len().saturating_mul(NUMBERS_A_ROW) {
            let others = key.ascending(part.rows(*start, end - start)?, part)?;
            intersect(&mut rows, &others);
            verified.extend(key.columns());
        }
    }
    debug_assert!(rows.is_sorted(), "rows of a segment are out of order");
    let deleted = state.deleted_at(reader.at);
    let id = state.id();
    rows.retain(|row| {
        deleted.as_ref().is_none_or(|deleted| !deleted.contains(*row)) && !(reader.hides)(id, *row)
    });
    for (column, value) in equal.values.iter().filter(|(column, _)| !verified.contains(column)) {
        if rows.is_empty() {
            break;
        }
        let at = *column;
        let column = table.schema().key_column(at);
        if at >= table.schema().columns.len() {
            let mut kept = Vec::with_capacity(rows.len());
            for row in rows {
                let own = table.layout().segment_key(&state.segment, row, &[at])?;
                if is_alike(column, &own[0], value) {
                    kept.push(row);
                }
            }
            rows = kept;
            continue;
        }
        match state.segment.column_index(column.id) {
            Some(position) => state.segment.retain_equal(position, value, &mut rows)?,
            None if is_alike(column, &column.default, value) => {}
            None => rows.clear(),
        }
    }
    Ok((rows.len() <= most).then_some(rows))
}

impl Key<'_> {
    /// The table columns that the key covers.
    fn columns(&self) -> impl Iterator<Item = usize> {
        self.index.columns().iter().take(self.range.prefix.len()).copied()
    }

    /// Sorts row numbers that are in index key order. Those of a whole key ascend already.
    fn ascending(&self, mut rows: Vec<u32>, part: &Part) -> Result<Vec<u32>> {
        if self.hash.is_none() {
            rows.sort_unstable();
        }
        part.check_ascending(&rows).map(|()| rows)
    }
}

/// Intersects two ascending lists.
fn intersect(rows: &mut Vec<u32>, others: &[u32]) {
    debug_assert!(rows.is_sorted() && others.is_sorted(), "lists of rows do not ascend");
    let mut others = others.iter().peekable();
    rows.retain(|row| {
        while others.next_if(|other| *other < row).is_some() {}
        others.peek() == Some(&row)
    });
}
