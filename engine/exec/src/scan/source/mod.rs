//! The rows of a table view that pass the filters of a scan, batch by batch: first the blocks of
//! segments that zone maps leave, or the rows that indexes found; then the rowstores.

mod bounds;
mod columns;
mod narrow;
mod origin;
mod paths;
mod range;
mod reader;
mod unread;
mod watch;

pub(in crate::scan) use columns::StoredColumns;
pub(in crate::scan) use origin::Origin;
pub(in crate::scan) use paths::{PathColumn, PathsInMemory, Stored, is_existence};
pub(in crate::scan) use reader::SegmentReader;

use super::filter::adaptive::learned::Learned;
use super::filter::prune::Prune;
use super::index::{self, Found};
use super::morsel::Morsel;
use super::spec::ScanSpec;
use nacre_column::{Batch, Vector};
use nacre_operator::context::Context;
use nacre_operator::expr::{self, ActiveRows};
use nacre_operator::join_filter::RuntimeFilters;
use nacre_table::{
    MemoryScan, Misses, PathRows, RowLocator, Segment, SegmentView, Span, TableView,
};
use nacre_types::plant::{self, Bug};
use nacre_types::{Error, Result, Value, limits};
use std::sync::Arc;
use unread::Unread;
use watch::Watch;

/// The cost of fetching one row, in rows that are scanned.
const PICKED_ROWS: usize = 16;

/// Whether to create locators for rows in memory. Those of segments follow from row numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::scan) enum Locators {
    Make,
    Leave,
}

/// How many segments are planned at once to be read ahead.
const FURTHER: usize = 8;

/// The order in which blocks, and ranges inside a block, are read. Rows inside a batch ascend
/// always.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FirstToLast,
    LastToFirst,
}

/// The segment being read.
struct Current {
    view: SegmentView,
    /// Blocks that may match, in reverse order of reading.
    blocks: Vec<usize>,
    /// The rest of the current block.
    at: usize,
    end: usize,
    watch: Watch,
    /// Whether a row of the block has passed, once it is read.
    has_passed: Option<bool>,
}

/// The rows of a scan.
pub(in crate::scan) struct RowSource {
    reader: SegmentReader,
    /// What the scan has learned about its clauses.
    learned: Arc<Learned>,
    prune: Prune,
    /// No column, filter or locator is needed: rows are counted without being read.
    counts_only: bool,
    /// Counted segment rows not returned yet.
    counted: u64,
    unread: Option<Unread>,
    current: Option<Current>,
    memory: Option<MemoryScan>,
    in_memory: PathsInMemory,
    /// Rows that indexes found in segments not read yet, in reverse order of reading.
    found: Vec<(SegmentView, Vec<u32>)>,
    /// Rows in memory that indexes found.
    found_memory: std::vec::IntoIter<(Batch, Vec<RowLocator>)>,
    /// The view to search by index before the first row is read.
    later: Option<TableView>,
    /// The most rows of the next range: grows to `VECTOR_ROWS`.
    vector_rows: usize,
    direction: Direction,
}

impl RowSource {
    /// The rows of a view.
    pub fn new(
        spec: ScanSpec<'_>,
        view: TableView,
        locators: Locators,
        context: &Context<'_>,
    ) -> RowSource {
        let makes = locators == Locators::Make;
        let counts_only = spec.width() == 0 && spec.filters.is_empty() && !makes;
        let source = RowSource::without_rows(spec, Learned::new(spec, context), context);
        RowSource {
            memory: Some(view.memory(&source.in_memory.read, makes)),
            unread: Some(Unread::new(view)),
            counts_only,
            ..source
        }
    }

    /// The rows of a morsel.
    pub fn of_morsel(spec: ScanSpec<'_>, morsel: &Morsel, context: &Context<'_>) -> RowSource {
        let learned = match morsel {
            Morsel::Blocks { learned, .. } => learned.clone(),
            _ => Learned::new(spec, context),
        };
        let mut source = RowSource::without_rows(spec, learned, context);
        match morsel {
            // Blocks were chosen when the scan was split.
            Morsel::Blocks { view, blocks, learned } => {
                let blocks = blocks.iter().rev().copied().collect();
                let watch = Watch::new(learned.clone());
                source.current = Some(Current::new(view.clone(), blocks, watch));
            }
            Morsel::Memory(view) => {
                source.memory = Some(view.memory(&source.in_memory.read, false));
            }
            Morsel::Rows { view, rows } => source.found = vec![(view.clone(), rows.clone())],
            Morsel::Batches(batches) => source.found_memory = batches.clone().into_iter(),
        }
        source
    }

    fn without_rows(spec: ScanSpec<'_>, learned: Arc<Learned>, context: &Context<'_>) -> RowSource {
        RowSource {
            reader: SegmentReader::new(spec, context),
            learned,
            prune: Prune::of(spec.filters, context),
            counts_only: false,
            counted: 0,
            memory: None,
            in_memory: PathsInMemory::new(spec),
            unread: None,
            current: None,
            found: Vec::new(),
            found_memory: Vec::new().into_iter(),
            later: None,
            vector_rows: limits::VECTOR_ROWS,
            direction: Direction::FirstToLast,
        }
    }

    /// Reads only these output columns; the others hold nulls.
    pub fn need_only(&mut self, needed: Vec<bool>) {
        self.reader.need_only(needed);
    }

    /// Drops rows that do not pass the filters of joins above.
    pub fn apply(&mut self, filters: RuntimeFilters) {
        self.reader.apply(filters);
    }

    /// Reads only what indexes found. Must be called before the first row is read.
    pub fn read_only(&mut self, found: Found) {
        debug_assert!(self.current.is_none(), "no segment has been opened");
        let unread = self.unread.take();
        self.unread =
            unread.map(|unread| Unread::of_segments(unread.view().clone(), found.scanned));
        self.found = found.segments.into_iter().rev().collect();
        if let Some(memory) = found.memory {
            self.found_memory = memory.into_iter();
            self.memory = None;
        }
        self.counts_only = false;
    }

    /// Defers the index lookup until the first row is read, when the joins above know their keys.
    pub fn look_up_later(&mut self, view: TableView) {
        self.later = Some(view);
    }

    /// Reads rows of a segment of one output column, whether it is needed or not.
    pub fn read_column(
        &self,
        column: usize,
        view: &SegmentView,
        rows: &PathRows<'_>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match rows {
            PathRows::Range(rows) => {
                self.reader.columns().decode(view, column, rows.clone(), context)
            }
            PathRows::Single(rows) => {
                self.reader.columns().take_in_scan(view, column, rows, context)
            }
        }
    }

    /// Starts with small ranges, because few rows may be enough.
    pub fn start_small(&mut self, rows: usize) {
        self.vector_rows = rows.clamp(1, limits::VECTOR_ROWS);
    }

    /// Reads blocks and ranges from last to first. Must be called before the first row is read.
    pub fn read_backwards(&mut self) {
        self.direction = Direction::LastToFirst;
        self.unread.iter_mut().for_each(Unread::read_backwards);
        if let Some(current) = &mut self.current {
            current.blocks.reverse();
        }
    }

    /// The least and the greatest value of a column in these blocks; see [`bounds::bounds`].
    pub fn bounds(
        &self,
        view: &SegmentView,
        blocks: &[usize],
        column: usize,
    ) -> Result<Option<(Value, Value)>> {
        bounds::bounds(self.reader.columns(), view, blocks, column)
    }

    /// Divides the segments into runs, each of which is in the order of the table and reads its
    /// segments one after the other, and the rowstores.
    pub fn by_run(
        self,
        spec: ScanSpec<'_>,
        context: &Context<'_>,
    ) -> Result<(Vec<RowSource>, Vec<Morsel>)> {
        let Some(unread) = &self.unread else { return Ok(Default::default()) };
        let view = unread.view();
        let source = |walk| RowSource {
            unread: Some(Unread::of_walk(view.clone(), walk)),
            ..RowSource::without_rows(spec, self.learned.clone(), context)
        };
        let runs = unread.by_run(self.reader.columns(), &self.prune)?;
        let memories = view.memories().into_iter().map(Morsel::Memory).collect();
        Ok((runs.into_iter().map(source).collect(), memories))
    }

    /// Opens the first segment that may have matching rows, and returns the least and the greatest
    /// value of a column in its blocks; `None` if there is no such segment.
    pub fn open_first(
        &mut self,
        column: usize,
        context: &Context<'_>,
    ) -> Result<Option<(Value, Value)>> {
        while self.current.is_none() {
            if !self.open_next(context)? {
                return Ok(None);
            }
        }
        let Some(current) = &self.current else { return Ok(None) };
        bounds::bounds(self.reader.columns(), &current.view, &current.blocks, column)
    }

    /// Divides the input into morsels of about `rows` rows, in scan order.
    pub fn morsels(mut self, rows: usize, context: &Context<'_>) -> Result<Vec<Morsel>> {
        let at_once = rows.div_ceil(limits::BLOCK_ROWS).max(1);
        let mut morsels = Vec::new();
        let Some(mut unread) = self.unread.take() else { return Ok(morsels) };
        while let Some(segment) = unread.peek(self.reader.columns(), &self.prune, context)? {
            let current = self.open(&segment, context);
            let current = current.map_err(|error| self.with_next(error, &unread))?;
            unread.advance();
            let Some(mut current) = current else { continue };
            current.blocks.reverse();
            self.learned.upcoming.add(&segment, &current.blocks);
            morsels.extend(current.blocks.chunks(at_once).map(|blocks| Morsel::Blocks {
                view: segment.clone(),
                blocks: blocks.to_vec(),
                learned: self.learned.clone(),
            }));
        }
        // The threads would wait for them one by one.
        Misses::each(&self.found, |(view, rows)| self.reader.check_rows_there(view, rows))?;
        let few = rows.div_ceil(PICKED_ROWS).max(1);
        for (view, found) in self.found.into_iter().rev() {
            let cut = found.chunks(few);
            morsels
                .extend(cut.map(|rows| Morsel::Rows { view: view.clone(), rows: rows.to_vec() }));
        }
        let found: Vec<_> = self.found_memory.collect();
        if self.memory.is_some() {
            morsels.extend(unread.view().memories().into_iter().map(Morsel::Memory));
        } else if !found.is_empty() {
            morsels.push(Morsel::Batches(found));
        }
        Ok(morsels)
    }

    /// The next rows that pass, with a selection if other rows of the range do not.
    pub fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        self.look_up(context)?;
        loop {
            context.give_way()?;
            if self.current.is_some() && self.learned.upcoming.is_short() {
                self.plan_further();
            }
            if let Some(current) = &mut self.current {
                let (reader, rows) = (&self.reader, self.vector_rows);
                let read = current.read_range(reader, rows, self.direction, context);
                // The first rows may be enough.
                if rows == limits::VECTOR_ROWS
                    && let Err(error) = &read
                    && error.missing().is_some()
                {
                    self.learned.upcoming.note_miss();
                }
                if plant::is(Bug::LostResidency) && read.is_err() {
                    self.current = None;
                    return read;
                }
                let read = read?;
                self.vector_rows = (self.vector_rows * 2).min(limits::VECTOR_ROWS);
                if current.is_at_end() {
                    self.current = None;
                }
                if read.is_some() {
                    return Ok(read);
                }
                continue;
            }
            if self.counted > 0 {
                let rows = self.counted.min(limits::VECTOR_ROWS as u64) as usize;
                self.counted -= rows as u64;
                return Ok(Some((Batch::new(Vec::new(), rows), Origin::Memory(Vec::new()))));
            }
            if self.open_next(context)? {
                continue;
            }
            match self.next_found(context)? {
                None => return self.next_memory(context),
                found => return Ok(found),
            }
        }
    }

    /// Plans what is read ahead of the segments after this one, as far as their footers are there.
    fn plan_further(&mut self) {
        for _ in 0..FURTHER {
            let Some(view) = self.unread.as_mut().and_then(Unread::peek_further) else { break };
            match self.choose(&view, &|| ()) {
                Ok(mut blocks) => {
                    if self.direction == Direction::LastToFirst {
                        blocks.reverse();
                    }
                    self.learned.upcoming.add_unknown(&view, &blocks);
                }
                Err(error) if error.missing().is_some() => break,
                // Whatever is wrong is found when the segment is read.
                Err(_) => {}
            }
            self.unread.iter_mut().for_each(Unread::advance_further);
        }
    }

    /// Opens the next segment, or counts its rows. Returns `false` if there is none.
    fn open_next(&mut self, context: &Context<'_>) -> Result<bool> {
        let next = match &mut self.unread {
            Some(unread) => unread.peek(self.reader.columns(), &self.prune, context)?,
            None => None,
        };
        let Some(view) = next else { return Ok(false) };
        if self.counts_only {
            let rows = view.segment.rows() as u64;
            let deleted = view.deleted.as_ref().map_or(0, |rows| rows.len());
            debug_assert!(deleted <= rows, "{deleted} of {rows} rows are deleted");
            self.counted = rows.saturating_sub(deleted);
            context.statistics.segments_read.add(1);
        } else {
            let opened = context.counted(|context| self.open(&view, context));
            self.current = opened.map_err(|error| match &self.unread {
                // The first rows may be enough.
                Some(unread) if self.vector_rows == limits::VECTOR_ROWS => {
                    self.with_next(error, unread)
                }
                _ => error,
            })?;
            if let Some(current) = &mut self.current
                && self.direction == Direction::LastToFirst
            {
                current.blocks.reverse();
            }
        }
        // Only once the segment is opened: bytes of it may be absent.
        self.unread.iter_mut().for_each(Unread::advance);
        Ok(true)
    }

    /// Runs a deferred index lookup: see [`RowSource::look_up_later`].
    fn look_up(&mut self, context: &Context<'_>) -> Result<()> {
        let Some(view) = &self.later else { return Ok(()) };
        let spec = self.reader.columns().spec(self.reader.filters());
        let found = index::find(spec, view, self.reader.runtime(), context)?;
        self.later = None;
        if let Some(found) = found {
            self.read_only(found);
        }
        Ok(())
    }

    /// Chooses the blocks of a segment to read; `None` if there are none.
    fn open(&self, view: &SegmentView, context: &Context<'_>) -> Result<Option<Current>> {
        let segment = &*view.segment;
        if plant::is(Bug::LostOpen) && segment.ensure_opened().is_err() {
            return Ok(None);
        }
        let total = segment.blocks();
        let statistics = context.statistics;
        let mut blocks = self.choose(view, &|| statistics.zones_tested.add(1))?;
        statistics.blocks_skipped.add(total - blocks.len());
        if blocks.is_empty() {
            statistics.segments_skipped.add(1);
            return Ok(None);
        }
        statistics.segments_read.add(1);
        self.learned.expect(blocks.len());
        blocks.reverse();
        let (view, watch) = (view.clone(), Watch::new(self.learned.clone()));
        Ok(Some(Current::new(view, blocks, watch)))
    }

    /// The blocks of a segment that may match, ascending. Calls `note_test` for each test of a zone.
    fn choose(&self, view: &SegmentView, note_test: &dyn Fn()) -> Result<Vec<usize>> {
        let (segment, columns) = (&*view.segment, self.reader.columns());
        if !self.prune.is_open() && !segment.is_opened() {
            let described = |column| columns.described_zone(view, column);
            if !self.prune.may_match(segment.rows(), &described)? {
                return Ok(Vec::new());
            }
        }
        let may_match = |span| {
            note_test();
            self.prune.may_match(segment.rows_of(span), &|column| columns.zone(view, column, span))
        };
        match self.prune.is_open() {
            true => {
                // Those of several segments are missed together, before the first block of each.
                segment.ensure_opened()?;
                Ok((0..segment.blocks()).collect())
            }
            false => matching_blocks(segment, may_match),
        }
    }

    /// Adds the absent footers of the next segments to what was missed of one.
    fn with_next(&self, error: Error, unread: &Unread) -> Error {
        unread.with_next(error, &|view| self.choose(view, &|| ()))
    }

    /// The next of the rows that indexes found in segments.
    fn next_found(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        while let Some(((view, rows), others)) = self.found.split_last_mut() {
            context.give_way()?;
            let now = rows.len().min(limits::VECTOR_ROWS);
            let (reader, wanted) = (&self.reader, rows[..now].to_vec());
            let found = context.counted(|context| reader.read_found(view, wanted, context));
            let found = found.map_err(|error| reader.with_others(error, others))?;
            context.statistics.rows_read.add(now);
            rows.drain(..now);
            if rows.is_empty() {
                self.found.pop();
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The next rows in memory.
    fn next_memory(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        loop {
            context.give_way()?;
            let next = match &mut self.memory {
                Some(memory) => memory.next(self.vector_rows)?,
                None => self.found_memory.next(),
            };
            let Some((batch, locators)) = next else { return Ok(None) };
            let mut batch = self.in_memory.complete(batch, context)?;
            self.vector_rows = (self.vector_rows * 2).min(limits::VECTOR_ROWS);
            context.statistics.rows_read.add(batch.rows);
            context.statistics.memory_rows.add(batch.rows);
            let filters = self.reader.filters();
            if !filters.is_empty() {
                let rows = ActiveRows::all(batch.rows);
                let passed = expr::filter_rows(filters, &batch, rows, context)?;
                if passed.is_empty() {
                    continue;
                }
                batch.selection = (passed.len() < batch.rows).then_some(passed);
            }
            return Ok(Some((batch, Origin::Memory(locators))));
        }
    }
}

impl Current {
    /// A segment of which these blocks are read, the last one first.
    fn new(view: SegmentView, blocks: Vec<usize>, watch: Watch) -> Current {
        Current { view, blocks, at: 0, end: 0, watch, has_passed: None }
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.end && self.blocks.is_empty()
    }

    /// Reads the next range of a block, of at most `rows` rows; `None` when none of its rows
    /// passes. After an error the next call reads the same range.
    fn read_range(
        &mut self,
        reader: &SegmentReader,
        rows: usize,
        direction: Direction,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        if self.at >= self.end {
            let Some(&block) = self.blocks.last() else { return Ok(None) };
            if self.watch.upcoming().is_active() {
                let passed = self.has_passed.take();
                self.watch.upcoming().begin(
                    &self.view,
                    &self.blocks,
                    passed,
                    &|view, block, pass| reader.blocks(view, block, pass),
                );
            }
            if !reader.may_match(&self.view, block)? {
                self.blocks.pop();
                context.statistics.blocks_skipped.add(1);
                return Ok(None);
            }
            reader.prefetch(&self.view, block)?;
            self.blocks.pop();
            reader.begin_block(&self.view, &mut self.watch);
            self.at = block * limits::BLOCK_ROWS;
            self.end = self.at + self.view.segment.block_rows(block);
            context.statistics.blocks_read.add(1);
        }
        let len = (self.end - self.at).min(rows);
        debug_assert!(len > 0, "an empty range of a block");
        let range = match direction {
            Direction::FirstToLast => self.at..self.at + len,
            Direction::LastToFirst => self.end - len..self.end,
        };
        let watch = &mut self.watch;
        let read = context.counted(|context| reader.read(&self.view, range, watch, context))?;
        let passed = self.has_passed.unwrap_or(false);
        self.has_passed = Some(passed || read.is_some());
        match direction {
            Direction::FirstToLast => self.at += len,
            Direction::LastToFirst => self.end -= len,
        }
        Ok(read)
    }
}

/// The blocks of a segment whose zones match: those of the segment and of groups of blocks are
/// tested first, because most segments, and most groups of others, usually do not.
fn matching_blocks(
    segment: &Segment,
    may_match: impl Fn(Span) -> Result<bool>,
) -> Result<Vec<usize>> {
    let (total, groups) = (segment.blocks(), segment.groups());
    let mut matching = Vec::new();
    if total == 0 || total > 1 && !may_match(Span::Segment)? {
        return Ok(matching);
    }
    for group in 0..groups {
        if groups > 1 && !may_match(Span::Group(group))? {
            continue;
        }
        for block in segment.blocks_of(Span::Group(group)) {
            if may_match(Span::Block(block))? {
                matching.push(block);
            }
        }
    }
    Ok(matching)
}
