//! What a probe of an index answers: rows in memory, looked up and verified, and for each segment with
//! candidates a run of rows, which reads nothing until asked.

use crate::layout::rows;
use crate::read::view::{RowLocator, TableView};
use crate::segments::part::Part;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::Row;
use nacre_types::{Error, Result, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// What an index knows of a range of keys, as one view sees it.
pub struct IndexProbe {
    /// Runs of the segments that have candidates, oldest segment first.
    pub runs: Vec<IndexRun>,
    /// Segments without candidates.
    pub segments_skipped: usize,
    /// Segments that had to be read whole because they have no part of the index.
    pub segments_read: usize,
    /// Hash tables that were asked which segments have the key.
    pub tables_probed: usize,
    table: Arc<Table>,
    /// In index key order.
    memory: Vec<MemoryRow>,
}

/// A row in memory that an index has found.
pub(super) struct MemoryRow {
    pub index_key: Vec<u8>,
    pub locator: RowLocator,
    pub row: Row,
}

/// The rows of one segment whose keys are in a range, in index key order, and by row number among
/// equal keys.
pub struct IndexRun {
    /// Position of the segment in [`TableView::segments`].
    pub segment: usize,
    source: Source,
    /// Row numbers ascend, as those of a single key do.
    ascends: bool,
    deleted: Option<Arc<RoaringBitmap>>,
}

/// Where the rows of a run are read from.
pub(super) enum Source {
    /// Positions of an index part.
    Part { part: Arc<Part>, start: usize, end: usize },
    /// Neighbouring rows.
    Range { start: u32, end: u32 },
    /// Rows that were found by reading the segment.
    Rows(Vec<u32>),
}

impl IndexProbe {
    /// A probe that has found these rows in memory and nothing else.
    pub(super) fn new(table: &Arc<Table>, memory: Vec<MemoryRow>) -> IndexProbe {
        IndexProbe {
            runs: Vec::new(),
            segments_skipped: 0,
            segments_read: 0,
            tables_probed: 0,
            memory,
            table: table.clone(),
        }
    }

    /// Number of rows in memory.
    pub fn memory_rows(&self) -> usize {
        self.memory.len()
    }

    /// An upper bound of the number of rows: what the range costs.
    pub fn len(&self) -> usize {
        self.memory.len() + self.runs.iter().map(IndexRun::len).sum::<usize>()
    }

    /// Whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index key of a row in memory.
    pub fn memory_key(&self, at: usize) -> &[u8] {
        &self.memory[at].index_key
    }

    /// The rows in memory at positions `start..end` in index key order, projected.
    pub fn memory(
        &self,
        start: usize,
        end: usize,
        projection: &[usize],
    ) -> Result<(Batch, Vec<RowLocator>)> {
        let part = &self.memory[start..end];
        let found: Vec<Row> = part.iter().map(|one| one.row.clone()).collect();
        let locators = part.iter().map(|one| one.locator.clone()).collect();
        Ok((rows::to_batch(self.table.layout().rows(), &found, projection)?, locators))
    }
}

impl IndexRun {
    /// A run of a view's segment. `ascends` says that row numbers ascend in index key order.
    pub(super) fn new(view: &TableView, segment: usize, source: Source, ascends: bool) -> IndexRun {
        let state = view.segments[segment].state();
        debug_assert!(
            match &source {
                Source::Part { part, start, end } => start <= end && *end <= part.file().rows(),
                Source::Range { start, end } => {
                    start <= end && *end as usize <= state.segment.rows()
                }
                Source::Rows(rows) => {
                    rows.iter().all(|row| (*row as usize) < state.segment.rows())
                }
            },
            "a run has rows that segment {} does not have",
            state.id()
        );
        let deleted = view.segments[segment].deleted.clone();
        IndexRun { segment, source, ascends, deleted }
    }

    /// Number of rows, deleted ones included. Reads nothing.
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

    /// The rows at `count` positions of the run from `start` on, in index key order, without deleted
    /// rows.
    pub fn in_key_order(&self, start: usize, count: usize) -> Result<Vec<u32>> {
        let end = start.saturating_add(count).min(self.len());
        let mut rows = self.read(start.min(end), end)?;
        if let Some(deleted) = &self.deleted {
            rows.retain(|row| !deleted.contains(*row));
        }
        Ok(rows)
    }

    /// The value of a column of the index at a position of the run, if the segment has its part.
    pub fn key_value(&self, at: usize, column: usize) -> Result<Value> {
        match &self.source {
            Source::Part { part, start, .. } => part.file().get(part.keys()[column], start + at),
            _ => Err(Error::unsupported("keys of a segment without a part of the index")),
        }
    }

    /// Whether its rows ascend by number in index key order, so that [`IndexRun::cursor`] need not read
    /// all of them.
    pub fn is_ascending(&self) -> bool {
        self.ascends
    }

    /// All rows, ascending by number.
    pub fn ascending(&self) -> Result<Vec<u32>> {
        let mut rows = self.in_key_order(0, self.len())?;
        if !self.ascends {
            rows.sort_unstable();
        }
        debug_assert!(rows.is_sorted(), "rows of one key are out of order");
        Ok(rows)
    }

    /// The rows ascending by number, one by one, with forward seeking. A run of one key reads only what
    /// it must.
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

    /// The next row that is not below `row`; steps behind it.
    pub fn advance_to(&mut self, row: u32) -> Result<Option<u32>> {
        // Gallops: steps that double, then a binary search inside the last one.
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
