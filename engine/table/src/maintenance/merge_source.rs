//! What a slice of a merge reads: the live rows of one run in order, segment by segment and a block
//! at a time, and how far it came.

use crate::layout::table_layout::TableLayout;
use crate::segments::state::SegmentState;
use crate::table::run::Run;
use nacre_column::{Batch, Vector};
use nacre_segment::ColumnSpec;
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Timestamp, Value, invariant, limits};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// A run that is read in order, without its deleted rows.
pub(super) struct Source {
    run: Arc<Run>,
    /// Positions in the run of the segments that are not opened yet, in reverse order.
    rest: Vec<usize>,
    /// Segments read from their beginning. The last one is being read.
    opened: Vec<Opened>,
    /// Bytes of rows to decode together.
    share: usize,
    batch: Batch,
    /// The batch's first row in its segment.
    start: usize,
    /// Bytes of the batch's longest row.
    longest_row: usize,
    /// Order keys and row numbers of the batch's live rows, ascending. They stay until the next block
    /// is decoded, which comes after them.
    keys: Vec<(Vec<u8>, u32)>,
    at: usize,
}

/// A segment that a slice has read from its beginning.
pub(super) struct Opened {
    pub state: Arc<SegmentState>,
    /// Deleted rows that were skipped or have been remapped.
    pub deleted: RoaringBitmap,
    /// Rows decoded.
    next_row: usize,
    /// Rows taken, and deleted rows before them.
    taken: usize,
}

impl Opened {
    fn new(state: &Arc<SegmentState>) -> Opened {
        let deleted = state.all_deleted().as_ref().clone();
        Opened { state: state.clone(), deleted, next_row: 0, taken: 0 }
    }

    /// No row that is left of it is newer than this: 0, which is older than any, if none is left.
    pub fn content(&self) -> Timestamp {
        let rows = self.state.segment.rows() as u64;
        debug_assert!(self.deleted.len() <= rows, "more than {rows} rows are deleted");
        if self.deleted.len() < rows { self.state.content() } else { 0 }
    }

    /// Rows taken, and deleted rows before them. Final once the slice has read everything.
    pub fn taken(&self) -> u32 {
        debug_assert!(
            self.taken <= self.next_row,
            "{} rows of segment {} are taken, {} are decoded",
            self.taken,
            self.state.id(),
            self.next_row
        );
        self.taken as u32
    }

    /// Rows taken that were deleted since, and are not remapped yet.
    pub fn new_deletes(&self) -> RoaringBitmap {
        let all = self.state.all_deleted();
        debug_assert!(
            self.deleted.is_subset(&all),
            "deleted rows of segment {} came back",
            self.state.id()
        );
        let mut new = &*all - &self.deleted;
        new.remove_range(self.taken()..);
        new
    }

    /// Rows taken that are not deleted.
    pub fn live_taken(&self) -> u64 {
        let deleted = self.state.all_deleted().range_cardinality(..self.taken());
        u64::from(self.taken()) - deleted
    }

    /// Whether every row is taken or deleted.
    pub fn is_consumed(&self) -> bool {
        let rows = self.state.segment.rows() as u64;
        rows - u64::from(self.taken()) == self.state.all_deleted().range_cardinality(self.taken()..)
    }

    /// Rows taken that must be deleted now.
    pub fn leaving(&self) -> RoaringBitmap {
        let mut leaving = RoaringBitmap::new();
        leaving.insert_range(..self.taken());
        leaving -= &*self.state.all_deleted();
        leaving.optimize();
        leaving
    }
}

impl Source {
    /// The current segments of a run, or only one of them. Nothing is read before
    /// [`Source::fill`]. Of each block, about `share` bytes are in memory.
    pub fn new(run: &Arc<Run>, only: Option<u64>, share: usize) -> Source {
        invariant!(
            only.is_none_or(|only| run.position(only).is_some()),
            "segment {only:?} is read as one of run {}",
            run.place().number
        );
        let states = run.states();
        let is_read = |at: &usize| {
            states[*at].is_current() && only.is_none_or(|only| only == states[*at].id())
        };
        Source {
            rest: (0..states.len()).rev().filter(is_read).collect(),
            run: run.clone(),
            opened: Vec::new(),
            share,
            batch: Batch::default(),
            start: 0,
            longest_row: 0,
            keys: Vec::new(),
            at: 0,
        }
    }

    /// The segments read so far.
    pub fn opened(&self) -> &[Opened] {
        &self.opened
    }

    /// The segments read so far.
    pub fn opened_mut(&mut self) -> &mut [Opened] {
        &mut self.opened
    }

    /// The current block.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Bytes of the longest row of the current block.
    pub fn longest_row(&self) -> usize {
        self.longest_row
    }

    /// The order key of the next row; `None` at the end of the run.
    pub fn key(&self) -> Option<&[u8]> {
        self.keys.get(self.at).map(|(key, _)| key.as_slice())
    }

    /// Whether all rows of the current block are taken.
    pub fn is_block_taken(&self) -> bool {
        self.at == self.keys.len()
    }

    /// The segment that the next row is in, if no row of it is taken.
    pub fn untouched(&self) -> Option<&Arc<SegmentState>> {
        let opened = self.opened.last()?;
        (self.at == 0 && opened.taken == 0 && self.key().is_some()).then_some(&opened.state)
    }

    /// Takes a segment of which no row is taken. The source must be filled next.
    pub fn take_untouched(&mut self) -> Option<Arc<SegmentState>> {
        let untouched = self.untouched().cloned();
        invariant!(untouched.is_some(), "a segment is skipped of which rows are taken");
        self.opened.pop();
        self.keys.clear();
        untouched
    }

    /// How many rows of the current block come before a key, at most `most`.
    pub fn rows_before(&self, bound: Option<&[u8]>, most: usize) -> usize {
        let keys = &self.keys[self.at..];
        let keys = &keys[..most.min(keys.len())];
        let Some(bound) = bound else { return keys.len() };
        // Doubling steps, then a binary search within the last one: few rows come at a time if the
        // runs are alike, many if they hardly overlap.
        let mut step = 1;
        while step < keys.len() && keys[step - 1].0.as_slice() < bound {
            step *= 2;
        }
        let from = step / 2;
        let to = step.min(keys.len());
        let rows = from + keys[from..to].partition_point(|(key, _)| key.as_slice() < bound);
        debug_assert!(
            rows == 0 || keys[rows - 1].0.as_slice() < bound,
            "row {rows} of a block does not come before the other runs"
        );
        debug_assert!(
            keys.get(rows).is_none_or(|(key, _)| key.as_slice() >= bound),
            "the row after {rows} of a block comes before the other runs"
        );
        rows
    }

    /// Takes the next row of the current block; returns its number in the block.
    pub fn take(&mut self) -> u32 {
        debug_assert!(!self.is_block_taken(), "a row is taken after the last one of its block");
        let row = self.keys[self.at].1;
        self.at += 1;
        let next_row = match self.keys.get(self.at) {
            Some((_, next)) => Some(self.start + *next as usize),
            None => None,
        };
        if let Some(opened) = self.opened.last_mut() {
            opened.taken = next_row.unwrap_or(opened.next_row);
            debug_assert!(
                opened.taken > self.start + row as usize,
                "row {} is taken, but only {} rows are",
                self.start + row as usize,
                opened.taken
            );
        }
        row
    }

    /// Decodes the next block with live rows, of the next segment if necessary. Can be called again
    /// after an error.
    pub fn fill(&mut self, layout: &TableLayout, columns: &[ColumnSpec]) -> Result<()> {
        invariant!(
            self.is_block_taken(),
            "{} rows of run {} are replaced before they are merged",
            self.keys.len() - self.at,
            self.run.place().number
        );
        loop {
            while let Some(opened) = self.opened.last()
                && opened.next_row < opened.state.segment.rows()
            {
                self.decode(layout, columns)?;
                if !self.is_block_taken() {
                    return Ok(());
                }
            }
            let Some(next) = self.rest.pop() else { return Ok(()) };
            self.opened.push(Opened::new(&self.run.states()[next]));
        }
    }

    /// Decodes the next rows of the current segment, unless all of them are deleted. Changes nothing
    /// if a read fails.
    fn decode(&mut self, layout: &TableLayout, columns: &[ColumnSpec]) -> Result<()> {
        let Some(opened) = self.opened.last_mut() else { return Ok(()) };
        let segment = opened.state.segment.clone();
        let row_bytes = (segment.raw_bytes() / segment.rows().max(1) as u64).max(1);
        let at_once = ((self.share as u64 / row_bytes) as usize).clamp(1, limits::BLOCK_ROWS);
        let start = opened.next_row;
        let count = at_once
            .min(limits::BLOCK_ROWS - start % limits::BLOCK_ROWS)
            .min(segment.rows() - start);
        debug_assert!(
            count > 0 && start / limits::BLOCK_ROWS == (start + count - 1) / limits::BLOCK_ROWS,
            "{count} rows from row {start} on are not in one block"
        );
        let rows = start as u32..(start + count) as u32;
        if opened.deleted.range_cardinality(rows.clone()) == count as u64 {
            opened.next_row += count;
            opened.taken = if opened.taken == start { opened.next_row } else { opened.taken };
            return Ok(());
        }
        if plant::is(Bug::LostStep) {
            opened.next_row = start + count;
        }
        let live = rows.filter(|row| !opened.deleted.contains(*row)).map(|row| row - start as u32);
        let live: Vec<u32> = live.collect();
        let vectors = columns
            .iter()
            .map(|column| match segment.column_index(column.id) {
                Some(index) => segment.decode(index, start, count).map(Arc::new),
                None => Ok(Arc::new(Vector::constant(
                    column.data_type,
                    &layout.default_of(column.id),
                    count,
                ))),
            })
            .collect::<Result<Vec<_>>>()?;
        let order = layout.order_columns(&segment)?;
        let ordered: Vec<Vector> =
            order.iter().map(|c| segment.decode(*c, start, count)).collect::<Result<_>>()?;
        // Those of the block before are all taken.
        let (last, mut keys) = (self.keys.last(), Vec::<(Vec<u8>, u32)>::with_capacity(live.len()));
        for row in live {
            let values: Vec<Value> = ordered.iter().map(|v| v.value(row as usize)).collect();
            let key = layout.encode_order(&values)?;
            let before = keys.last().or(last).map(|(key, _)| key.as_slice());
            if before.is_some_and(|before| before >= key.as_slice()) {
                return Err(Error::corrupt(format!(
                    "segment {}: row {} is out of order",
                    segment.name(),
                    start + row as usize
                )));
            }
            keys.push((key, row));
        }
        debug_assert!(!keys.is_empty(), "a block without live rows is decoded");
        opened.next_row = start + count;
        (self.keys, self.at) = (keys, 0);
        self.batch = Batch::new(vectors, count);
        self.start = start;
        self.longest_row = self.batch.longest_row();
        Ok(())
    }
}

/// A heap of sources by their next key. Empty sources are not in it.
pub(super) struct Order(Vec<u32>);

impl Order {
    /// No sources.
    pub fn empty() -> Order {
        Order(Vec::new())
    }

    /// Orders these sources.
    pub fn new(sources: &[Source]) -> Order {
        let filled = (0..sources.len() as u32).filter(|at| sources[*at as usize].key().is_some());
        let mut order = Order(filled.collect());
        (0..order.0.len() / 2).rev().for_each(|at| order.sift(at, sources));
        debug_assert!(order.has_least_first(sources), "a merge starts with a source in between");
        order
    }

    /// The source with the least key.
    pub fn least(&self) -> Option<usize> {
        self.0.first().map(|at| *at as usize)
    }

    /// The least key of the other sources.
    pub fn bound<'a>(&self, sources: &'a [Source]) -> Option<&'a [u8]> {
        self.0.iter().skip(1).take(2).filter_map(|at| sources[*at as usize].key()).min()
    }

    /// Restores the order after the least source has gone on.
    pub fn advanced(&mut self, sources: &[Source]) {
        if self.least().is_some_and(|least| sources[least].key().is_none()) {
            self.0.swap_remove(0);
        }
        self.sift(0, sources);
        debug_assert!(self.has_least_first(sources), "a merge goes on with a source in between");
    }

    /// Whether no other source has a lesser key than the first one. For assertions.
    fn has_least_first(&self, sources: &[Source]) -> bool {
        let key = |at: &u32| sources[*at as usize].key();
        self.0.first().is_none_or(|first| self.0.iter().all(|at| key(first) <= key(at)))
    }

    fn sift(&mut self, mut at: usize, sources: &[Source]) {
        let key = |heap: &[u32], at: usize| heap.get(at).and_then(|s| sources[*s as usize].key());
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(left_key) = key(&self.0, left) else { return };
            let is_right = key(&self.0, right).is_some_and(|right| right < left_key);
            let least = if is_right { right } else { left };
            if key(&self.0, at) <= key(&self.0, least) {
                return;
            }
            self.0.swap(at, least);
            at = least;
        }
    }
}
