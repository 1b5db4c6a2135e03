//! Few rows by the values of some columns, through indexes: what a point statement looks at, without a view of the whole
//! table.
//!
//! Of each segment the index that has the fewest rows with these values leads, its row numbers are read, and those that
//! are deleted, or do not have all the values, are left out. What is answered are exactly the rows that the reader sees
//! and that have the values; nothing of them is read until somebody asks for it.

use crate::index::definition::Index;
use crate::index::directory::{Candidate, Candidates};
use crate::index::entries::each_entry;
use crate::layout::rows;
use crate::read::probe::{KeyRange, positions, rows_of, run_at, successor};
use crate::read::view::RowLocator;
use crate::segments::part::Part;
use crate::segments::state::SegmentState;
use crate::store::Store;
use crate::table::partition::Partition;
use crate::table::version::Table;
use crate::transaction::state::Transaction;
use nacre_column::{Batch, Vector};
use nacre_rowstore::{Owner, Row, Visible};
use nacre_types::hash::hash_bytes;
use nacre_types::{Column, IndexId, Result, Timestamp, Value, key};
use std::sync::Arc;

/// Reads without a snapshot that are tried before one is taken.
const OPTIMISTIC_ATTEMPTS: usize = 3;
/// Reading so many row numbers of another index costs less than looking at one row's values.
const NUMBERS_A_ROW: usize = 32;
/// So few rows are looked at rather than narrowed by another index.
const FEW_ROWS: usize = 4;

/// Values that rows must have in some columns, none of them null and each of its column's type.
pub struct Equal<'a> {
    /// Column of the table, and its value; a column once.
    pub values: &'a [(usize, Value)],
    /// Indexes of which so many of the first columns are among these.
    pub indexes: &'a [(IndexId, usize)],
    /// There is at most one such row.
    pub unique: bool,
    /// More rows than this are better found by a scan.
    pub most: usize,
}

/// Rows of one place, in order.
pub struct Rows {
    table: Arc<Table>,
    partition: u32,
    place: Place,
}

enum Place {
    Memory(Vec<(Arc<[u8]>, Row)>),
    Segment(Arc<SegmentState>, Vec<u32>),
}

/// Who looks.
struct Reader<'a> {
    at: Timestamp,
    owner: Option<&'a Arc<Owner>>,
    /// Rows of segments that the reader itself has replaced.
    hidden: &'a dyn Fn(u64, u32) -> bool,
}

/// A key of one index.
struct Key<'a> {
    index: &'a Index,
    range: KeyRange,
    encoded: Vec<u8>,
    /// Of a whole key.
    hash: Option<u64>,
}

/// Keys, and where in a segment one of them begins, if that is known.
struct Keys<'a> {
    keys: &'a [Key<'a>],
    /// Number of the key, position in its part.
    at: Option<(usize, u32)>,
}

impl Rows {
    /// How many there are; never none.
    pub fn count(&self) -> usize {
        match &self.place {
            Place::Memory(rows) => rows.len(),
            Place::Segment(_, rows) => rows.len(),
        }
    }

    /// Some columns of them.
    pub fn batch(&self, columns: &[usize]) -> Result<Batch> {
        let (state, rows) = match &self.place {
            Place::Memory(found) => {
                let found: Vec<Row> = found.iter().map(|(_, row)| row.clone()).collect();
                return rows::to_batch(self.table.layout(), &found, columns);
            }
            Place::Segment(state, rows) => (state, rows),
        };
        let column = |at: &usize| {
            let column = &self.table.schema().columns[*at];
            let vector = match state.segment.column_index(column.id) {
                Some(position) => state.segment.take(position, rows)?.with_type(column.data_type),
                None => Vector::constant(column.data_type, &column.default, rows.len()),
            };
            Ok(Arc::new(vector))
        };
        Ok(Batch::new(columns.iter().map(column).collect::<Result<_>>()?, rows.len()))
    }

    /// One of them, projected.
    pub fn row(&self, at: usize, columns: &[usize]) -> Result<Vec<Value>> {
        match &self.place {
            Place::Memory(rows) => {
                Ok(columns.iter().map(|c| self.table.layout().value(&rows[at].1, *c)).collect())
            }
            Place::Segment(state, rows) => self.table.segment_row(state, rows[at], columns),
        }
    }

    /// Where one of them is.
    pub fn locator(&self, at: usize) -> RowLocator {
        let partition = self.partition;
        match &self.place {
            Place::Memory(rows) => RowLocator::Memory { partition, key: rows[at].0.clone() },
            Place::Segment(state, rows) => {
                RowLocator::Segment { partition, segment: state.segment.id(), row: rows[at] }
            }
        }
    }

    /// Leaves those at some positions, which ascend.
    pub fn keep(&mut self, positions: &[u32]) {
        match &mut self.place {
            Place::Memory(rows) => {
                *rows = positions.iter().map(|at| rows[*at as usize].clone()).collect()
            }
            Place::Segment(_, rows) => {
                *rows = positions.iter().map(|at| rows[*at as usize]).collect()
            }
        }
    }
}

impl Store {
    /// The newest committed rows with some values, given to `read`, which may be called again. `conflict` when this is
    /// not the newest version of the table. Answers whether there were not too many of them.
    ///
    /// Without registering a snapshot, as [`Store::get`] does.
    pub fn with_equal(
        self: &Arc<Self>,
        table: &Arc<Table>,
        equal: &Equal<'_>,
        read: &mut dyn FnMut(Vec<Rows>) -> Result<()>,
    ) -> Result<bool> {
        self.check_open()?;
        let mut go = |at: Timestamp| -> Result<bool> {
            if !table.serves(at) {
                return Err(table.superseded());
            }
            match find(table, equal, &Reader { at, owner: None, hidden: &|_, _| false })? {
                Some(rows) => read(rows).map(|()| true),
                None => Ok(false),
            }
        };
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            let at = self.visible();
            let done = go(at);
            if self.visible() == at {
                return done;
            }
        }
        let guard = self.snapshot();
        go(guard.at())
    }
}

impl Transaction {
    /// The rows with some values that this transaction sees; none when there are too many.
    pub fn equal(&self, table: &Arc<Table>, equal: &Equal<'_>) -> Result<Option<Vec<Rows>>> {
        let hidden = |segment: u64, row: u32| self.is_hidden(table, (segment, row));
        find(
            table,
            equal,
            &Reader { at: self.snapshot(), owner: Some(self.owner()), hidden: &hidden },
        )
    }
}

/// Rows in segments, oldest first, then rows in memory, by partition; none when there are too many.
fn find(table: &Arc<Table>, equal: &Equal<'_>, reader: &Reader<'_>) -> Result<Option<Vec<Rows>>> {
    let keys = equal
        .indexes
        .iter()
        .map(|index| key_of(table, equal, *index))
        .collect::<Result<Vec<_>>>()?;
    let (mut found, mut left) = (Vec::new(), equal.most);
    for partition in table.partitions() {
        // Before the segments: a row that goes to one meanwhile does so later than the reader sees.
        let memory = in_memory(table, partition, equal, &keys, reader)?;
        let rows = |place| Rows { table: table.clone(), partition: partition.number(), place };
        if !equal.unique || memory.is_empty() {
            let list = partition.segments();
            // The whole key that says which segments there are, and perhaps where in them.
            let whole = keys.iter().position(|key| key.hash.is_some());
            let candidates = match whole.and_then(|at| keys.get(at)) {
                Some(key) => list.of_index(key.index).candidates(&key.encoded)?,
                None => Candidates::all(list.len()),
            };
            let mut candidates: Vec<Candidate> = candidates.newest_first().collect();
            candidates.reverse();
            for candidate in candidates {
                let state = &list[candidate.place];
                if !state.exists_at(reader.at) {
                    continue;
                }
                let keys = Keys { keys: &keys, at: whole.zip(candidate.position) };
                let Some(numbers) = in_segment(table, state, equal, &keys, reader, left)? else {
                    return Ok(None);
                };
                left -= numbers.len();
                if !numbers.is_empty() {
                    found.push(rows(Place::Segment(state.clone(), numbers)));
                    if equal.unique {
                        break;
                    }
                }
            }
        }
        if memory.len() > left {
            return Ok(None);
        }
        left -= memory.len();
        if !memory.is_empty() {
            found.push(rows(Place::Memory(memory)));
        }
        if equal.unique && !found.is_empty() {
            break;
        }
    }
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
    let prefix: Vec<Value> = index.columns.iter().take(columns).map_while(value).collect();
    let encoded = index.encode(&prefix)?;
    let hash = (prefix.len() == index.columns.len()).then(|| hash_bytes(&encoded));
    Ok(Key { index, range: KeyRange::equal(prefix), encoded, hash })
}

/// Rows of a partition's memory, in the order of their keys.
fn in_memory(
    table: &Table,
    partition: &Partition,
    equal: &Equal<'_>,
    keys: &[Key<'_>],
    reader: &Reader<'_>,
) -> Result<Vec<(Arc<[u8]>, Row)>> {
    let mut found = Vec::new();
    let Some(key) = keys.first() else { return Ok(found) };
    each_entry(
        key.index,
        partition,
        &key.encoded,
        successor(key.encoded.clone()).as_deref(),
        |entry| {
            let Some(node) = partition.rowstore.get(entry.row_key()) else { return Ok(()) };
            let Visible::Row(row) = node.visible(reader.at, reader.owner) else { return Ok(()) };
            let row = table.upgrade(row)?;
            // The entry may be an older version's.
            if key.index.key_of(table, &row)? == entry.index_key()
                && equal.values.iter().all(|(column, value)| {
                    key.range.prefix.len() == equal.values.len()
                        || has_value(table, &row, *column, value)
                })
            {
                found.push((node.key().clone(), row));
            }
            Ok(())
        },
    )?;
    if key.hash.is_none() {
        found.sort_by(|a, b| a.0.cmp(&b.0));
    }
    Ok(found)
}

fn has_value(table: &Table, row: &Row, column: usize, value: &Value) -> bool {
    is_alike(&table.schema().columns[column], &table.layout().value(row, column), value)
}

/// Whether two values of a column are alike to keys: zeroes of both signs, for one.
fn is_alike(column: &Column, own: &Value, other: &Value) -> bool {
    let encode = |value: &Value| {
        let mut bytes = Vec::new();
        key::append(&mut bytes, column.data_type, value).ok().map(|()| bytes)
    };
    matches!((encode(own), encode(other)), (Some(own), Some(other)) if own == other)
}

/// Rows of a segment, ascending; none when there are more than `most`.
fn in_segment(
    table: &Table,
    state: &SegmentState,
    equal: &Equal<'_>,
    Keys { keys, at }: &Keys<'_>,
    reader: &Reader<'_>,
    most: usize,
) -> Result<Option<Vec<u32>>> {
    // Positions of each key in its part, where there is one.
    let mut runs: Vec<(&Key<'_>, Arc<Part>, (usize, usize))> = Vec::with_capacity(keys.len());
    for (number, key) in keys.iter().enumerate() {
        if let Some(part) = state.part(key.index.schema.id) {
            let run = match at {
                Some((known, position)) if *known == number => {
                    run_at(&part, &key.range.prefix, *position)?
                }
                _ => positions(&part, &key.range, key.hash)?,
            };
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
            key.ascending(part.rows(*start, end - start)?)
        }
        (None, Some(key)) => {
            verified.extend(key.columns());
            let mut rows = rows_of(table, key.index, state, &key.range, key.hash)?;
            rows.sort_unstable();
            rows
        }
        (None, None) => return Ok(None),
    };
    for (key, part, (start, end)) in runs.iter().skip(1) {
        if rows.len() > FEW_ROWS && end - start < rows.len().saturating_mul(NUMBERS_A_ROW) {
            let others = key.ascending(part.rows(*start, end - start)?);
            intersect(&mut rows, &others);
            verified.extend(key.columns());
        }
    }
    let deleted = state.deleted_at(reader.at);
    let id = state.segment.id();
    rows.retain(|row| {
        deleted.as_ref().is_none_or(|deleted| !deleted.contains(*row)) && !(reader.hidden)(id, *row)
    });
    for (column, value) in equal.values.iter().filter(|(column, _)| !verified.contains(column)) {
        if rows.is_empty() {
            break;
        }
        let column = &table.schema().columns[*column];
        match state.segment.column_index(column.id) {
            Some(position) => state.segment.retain_equal(position, value, &mut rows)?,
            None if is_alike(column, &column.default, value) => {}
            None => rows.clear(),
        }
    }
    Ok((rows.len() <= most).then_some(rows))
}

impl Key<'_> {
    /// Columns of the table that it has values of.
    fn columns(&self) -> impl Iterator<Item = usize> {
        self.index.columns.iter().take(self.range.prefix.len()).copied()
    }

    /// Row numbers as a part has them: ascending among equal keys.
    fn ascending(&self, mut rows: Vec<u32>) -> Vec<u32> {
        if self.hash.is_none() {
            rows.sort_unstable();
        }
        rows
    }
}

/// Leaves what is in both; both ascend.
fn intersect(rows: &mut Vec<u32>, others: &[u32]) {
    let mut others = others.iter().peekable();
    rows.retain(|row| {
        while others.next_if(|other| *other < row).is_some() {}
        others.peek() == Some(&row)
    });
}
