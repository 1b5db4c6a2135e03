//! The result of an index probe: rows in memory, looked up and verified, and a run of rows for each
//! segment with candidates, which is read on demand.

use crate::layout::rows;
use crate::read::segment_view::SegmentPlace;
use crate::read::view::{RowLocator, TableView};
use crate::segments::part::Part;
use crate::table::version::Table;
use nacre_column::Batch;
use nacre_rowstore::Row;
use nacre_types::{Error, Result, Value};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// The rows of a key range that an index finds for one view.
pub struct IndexProbe {
    /// Runs of the segments that have candidates, oldest segment first.
    pub runs: Vec<IndexRun>,
    /// Segments that had to be read whole because they have no part of the index.
    pub segments_read: usize,
    /// Hash tables searched for the segments of the key.
    pub tables_probed: usize,
    table: Arc<Table>,
    /// In index key order.
    memory: Vec<MemoryRow>,
}

/// A row in memory found by an index.
pub(super) struct MemoryRow {
    pub index_key: Vec<u8>,
    pub locator: RowLocator,
    pub row: Row,
}

/// The rows of one segment whose keys are in a range, in index key order, then by row number.
pub struct IndexRun {
    /// The segment in the view.
    pub segment: SegmentPlace,
    source: Source,
    /// Whether row numbers ascend, as they do for a single key.
    ascends: bool,
    /// Rows that the view does not see.
    unseen: [Option<Arc<RoaringBitmap>>; 2],
}

/// Where a run's rows are read from.
pub(super) enum Source {
    /// Positions of an index part.
    Part { part: Arc<Part>, start: usize, end: usize },
    /// Neighbouring rows.
    Range { start: u32, end: u32 },
    /// Rows that were found by reading the segment.
    Rows(Vec<u32>),
}

impl IndexProbe {
    /// A probe with these rows in memory and no runs.
    pub(super) fn new(table: &Arc<Table>, memory: Vec<MemoryRow>) -> IndexProbe {
        IndexProbe {
            runs: Vec::new(),
            segments_read: 0,
            tables_probed: 0,
            memory,
            table: table.clone(),
        }
    }

    /// `corrupt` if a segment has two runs: each has a key's rows in one place, so a hash table that
    /// names two is damaged.
    pub(super) fn check_runs(&self, view: &TableView) -> Result<()> {
        debug_assert!(
            self.runs.is_sorted_by_key(|run| run.segment),
            "runs of segments are not oldest first"
        );
        if let Some(pair) = self.runs.windows(2).find(|pair| pair[0].segment == pair[1].segment) {
            let name = view.state(pair[0].segment).segment.name();
            return Err(Error::corrupt(format!("segment {name}: a key is in two places")));
        }
        Ok(())
    }

    /// Number of rows in memory.
    pub fn memory_rows(&self) -> usize {
        self.memory.len()
    }

    /// Upper bound on the number of rows: the cost of reading them.
    pub fn len(&self) -> usize {
        self.memory.len() + self.runs.iter().map(IndexRun::len).sum::<usize>()
    }

    /// Whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index key of a row in memory.
    pub fn memory_key(&self, at: usize) -> &[u8] {
        debug_assert!(at < self.memory.len(), "row {at} of {} in memory", self.memory.len());
        &self.memory[at].index_key
    }

    /// The rows in memory at positions `start..end` in index key order, projected.
    pub fn memory(
        &self,
        start: usize,
        end: usize,
        projection: &[usize],
    ) -> Result<(Batch, Vec<RowLocator>)> {
        debug_assert!(
            start <= end && end <= self.memory.len(),
            "rows {start} to {end} of {} in memory",
            self.memory.len()
        );
        let part = &self.memory[start..end];
        let found: Vec<Row> = part.iter().map(|one| one.row.clone()).collect();
        let locators: Vec<RowLocator> = part.iter().map(|one| one.locator.clone()).collect();
        let batch = rows::to_batch(self.table.layout().rows(), &found, projection)?;
        debug_assert!(
            batch.rows == locators.len(),
            "{} rows and {} locators",
            batch.rows,
            locators.len()
        );
        Ok((batch, locators))
    }
}

impl IndexRun {
    /// A run of a view's segment. `ascends`: row numbers ascend in index key order.
    pub(super) fn new(
        view: &TableView,
        segment: SegmentPlace,
        source: Source,
        ascends: bool,
    ) -> IndexRun {
        let state = view.state(segment);
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
        IndexRun { segment, source, ascends, unseen: view.unseen_rows(segment) }
    }

    /// Whether the view sees a row.
    fn has(&self, row: u32) -> bool {
        !self.unseen.iter().flatten().any(|rows| rows.contains(row))
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

    /// The rows at `count` positions of the run from `start` on, in index key order, without
    /// deleted rows.
    pub fn in_key_order(&self, start: usize, count: usize) -> Result<Vec<u32>> {
        let end = start.saturating_add(count).min(self.len());
        let mut rows = self.read(start.min(end), end)?;
        rows.retain(|row| self.has(*row));
        Ok(rows)
    }

    /// The value of a column of the index at a position of the run, if the segment has its part.
    pub fn key_value(&self, at: usize, column: usize) -> Result<Value> {
        debug_assert!(at < self.len(), "key {at} of {}", self.len());
        match &self.source {
            Source::Part { part, start, .. } => part.file().get(part.keys()[column], start + at),
            _ => Err(Error::unsupported("reading keys of a segment without an index part")),
        }
    }

    /// Whether row numbers ascend in index key order, so that [`IndexRun::cursor`] need not read
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
        if let Source::Part { part, .. } = &self.source {
            part.check_ascending(&rows)?;
        }
        debug_assert!(rows.is_sorted(), "rows of one key are out of order");
        Ok(rows)
    }

    /// Iterates over the rows by ascending number, with forward seeking. A run of one key is read
    /// only as needed.
    pub fn cursor(&self) -> Result<RowCursor<'_>> {
        let sorted = if self.ascends { None } else { Some(self.ascending()?) };
        debug_assert!(
            sorted.as_ref().is_none_or(|rows| rows.len() <= self.len()),
            "a cursor has more rows than its run of {}",
            self.len()
        );
        Ok(RowCursor { run: self, sorted, at: 0 })
    }

    fn read(&self, start: usize, end: usize) -> Result<Vec<u32>> {
        debug_assert!(start <= end && end <= self.len(), "rows {start} to {end} of {}", self.len());
        match &self.source {
            Source::Part { part, start: first, .. } => part.rows(first + start, end - start),
            Source::Range { start: first, .. } => {
                Ok((first + start as u32..first + end as u32).collect())
            }
            Source::Rows(rows) => Ok(rows[start..end].to_vec()),
        }
    }
}

/// Iterator returned by [`IndexRun::cursor`].
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
        debug_assert!(at < self.len(), "row {at} of {}", self.len());
        match (&self.sorted, &self.run.source) {
            (Some(rows), _) | (None, Source::Rows(rows)) => Ok(rows[at]),
            (None, Source::Part { part, start, .. }) => part.row(start + at),
            (None, Source::Range { start, .. }) => Ok(start + at as u32),
        }
    }

    /// Returns the next row not below `row` and moves past it.
    pub fn advance_to(&mut self, row: u32) -> Result<Option<u32>> {
        // Galloping search: doubling steps, then a binary search within the last one.
        let (mut low, mut high, mut step) = (self.at, self.len(), 1);
        while low < high {
            let middle = if step > 0 { (low + step - 1).min(high - 1) } else { low.midpoint(high) };
            if self.peek(middle)? >= row {
                (high, step) = (middle, 0);
            } else {
                (low, step) = (middle + 1, step * 2);
            }
        }
        debug_assert!(low >= self.at, "a cursor at {} goes back to {low}", self.at);
        self.at = low;
        self.next_row()
    }

    /// The next row.
    pub fn next_row(&mut self) -> Result<Option<u32>> {
        debug_assert!(self.at <= self.len(), "a cursor is at {} of {}", self.at, self.len());
        while self.at < self.len() {
            let row = self.peek(self.at)?;
            self.at += 1;
            if self.run.has(row) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
