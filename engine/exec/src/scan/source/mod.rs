//! The rows of a table view, vector by vector: blocks that zone maps leave; of these the rows that pass
//! tests on encoded columns, then the other filters on the columns they need; the columns left only for
//! rows that survived; then the rowstore.

mod found;
mod order;

use super::clauses::{Clauses, ColumnTest};
use super::prune::Prune;
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::join_filter::Wanted;
use crate::parallel::Morsel;
use nacre_column::{Batch, Bitmap, Selection, Vector, kernel};
use nacre_sql::expr::{Expr, ExprKind};
use nacre_table::{MemoryScan, RoaringBitmap, RowLocator, SegmentView, TableView, Zone};
use nacre_types::{Result, TableSchema, Value, limits};
use std::sync::Arc;

/// Survivors are picked one by one when they are at most one in so many, else the block is decoded.
const TAKE_ONE_IN: usize = 8;

/// Where the rows of a batch are.
pub(super) enum Origin {
    /// Vector row `i` is row `start + i` of this segment.
    Segment { partition: u32, segment: u64, start: usize },
    /// Vector row `i` is row `rows[i]` of this segment.
    SegmentRows { partition: u32, segment: u64, rows: Vec<u32> },
    /// One locator a vector row, when asked for.
    Memory(Vec<RowLocator>),
}

/// The segment being read.
struct Current {
    view: SegmentView,
    /// Blocks that may match, last first.
    blocks: Vec<usize>,
    /// Next row, inside a block that was taken from `blocks`.
    at: usize,
    end: usize,
}

/// See the module.
pub(super) struct Source {
    schema: Arc<TableSchema>,
    projection: Vec<usize>,
    filters: Vec<Expr>,
    prune: Prune,
    clauses: Clauses,
    /// Which output columns filters look at, and which those that are no test of one column.
    filtered: Vec<bool>,
    needed_by_rest: Vec<bool>,
    /// Which output columns somebody looks at; stand-ins are made for the others.
    needed: Vec<bool>,
    /// Filters of joins above, on output columns. They say little of rows in memory, which are few.
    wanted: Wanted,
    /// Nobody asks for a column, a filter or a place: rows are only counted.
    counts_only: bool,
    /// Rows of segments counted and not handed out yet.
    counted: u64,
    segments: std::vec::IntoIter<SegmentView>,
    current: Option<Current>,
    memory: Option<MemoryScan>,
    /// Rows that indexes found, in segments not read yet, the last first, and in memory.
    found: Vec<(SegmentView, Vec<u32>)>,
    found_memory: std::vec::IntoIter<(Batch, Vec<RowLocator>)>,
    /// What indexes are asked about before the first rows.
    later: Option<TableView>,
    /// Rows looked at next, at most: grows to `VECTOR_ROWS`.
    vector_rows: usize,
    /// Blocks and vectors come last first, rows inside a vector do not.
    turned: bool,
}

/// Marks the columns an expression looks at.
pub(super) fn mark_columns(expr: &Expr, marks: &mut [bool]) {
    if let ExprKind::Column(column) = expr.kind
        && let Some(mark) = marks.get_mut(column)
    {
        *mark = true;
    }
    expr.for_each_child(&mut |child| mark_columns(child, marks));
}

impl Source {
    /// The rows of a view that pass the filters, projected.
    pub fn new(
        schema: &Arc<TableSchema>,
        view: TableView,
        projection: &[usize],
        filters: &[Expr],
        locators: bool,
        context: &Context<'_>,
    ) -> Source {
        let mut source = Source::without_rows(schema, projection, filters, context);
        source.memory = Some(view.memory(projection, locators));
        source.segments = view.segments.into_iter();
        source.counts_only = projection.is_empty() && filters.is_empty() && !locators;
        source
    }

    fn without_rows(
        schema: &Arc<TableSchema>,
        projection: &[usize],
        filters: &[Expr],
        context: &Context<'_>,
    ) -> Source {
        let mut filtered = vec![false; projection.len()];
        filters.iter().for_each(|f| mark_columns(f, &mut filtered));
        let clauses = Clauses::of(filters, context);
        let mut needed_by_rest = vec![false; projection.len()];
        clauses.rest.iter().for_each(|f| mark_columns(f, &mut needed_by_rest));
        Source {
            schema: schema.clone(),
            projection: projection.to_vec(),
            prune: Prune::of(filters, context),
            filters: filters.to_vec(),
            clauses,
            filtered,
            needed_by_rest,
            needed: vec![true; projection.len()],
            wanted: Wanted::default(),
            counts_only: false,
            counted: 0,
            memory: None,
            segments: Vec::new().into_iter(),
            current: None,
            found: Vec::new(),
            found_memory: Vec::new().into_iter(),
            later: None,
            vector_rows: limits::VECTOR_ROWS,
            turned: false,
        }
    }

    /// Says that only these output columns are looked at.
    pub fn need_only(&mut self, needed: Vec<bool>) {
        debug_assert_eq!(needed.len(), self.projection.len());
        self.needed = needed;
    }

    /// Rows that do not pass these need not come.
    pub fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// The rows of a morsel that pass the filters, projected.
    pub fn of_morsel(
        schema: &Arc<TableSchema>,
        morsel: &Morsel,
        projection: &[usize],
        filters: &[Expr],
        context: &Context<'_>,
    ) -> Source {
        let mut source = Source::without_rows(schema, projection, filters, context);
        match morsel {
            // Blocks were chosen when the morsels were made.
            Morsel::Blocks { view, blocks } => {
                let blocks = blocks.iter().rev().copied().collect();
                source.current = Some(Current { view: view.clone(), blocks, at: 0, end: 0 });
            }
            Morsel::Memory(view) => source.memory = Some(view.memory(projection, false)),
            Morsel::Rows { view, rows } => source.found = vec![(view.clone(), rows.clone())],
            Morsel::Batches(batches) => source.found_memory = batches.clone().into_iter(),
        }
        source
    }

    /// Cuts what is to be read into morsels of about so many rows, in the order of a scan.
    pub fn morsels(self, view: TableView, rows: usize, context: &Context<'_>) -> Vec<Morsel> {
        let at_once = rows.div_ceil(limits::BLOCK_ROWS).max(1);
        let mut morsels = Vec::new();
        for segment in &view.segments {
            let Some(mut current) = self.open(segment.clone(), context) else { continue };
            current.blocks.reverse();
            let cut = current.blocks.chunks(at_once);
            morsels.extend(
                cut.map(|blocks| Morsel::Blocks { view: segment.clone(), blocks: blocks.to_vec() }),
            );
        }
        morsels.extend(view.memories().into_iter().map(Morsel::Memory));
        morsels
    }

    /// The next rows that pass, with a selection where not all of the vectors do.
    pub fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        self.look_up(context)?;
        loop {
            context.check_cancelled()?;
            if let Some(mut current) = self.current.take() {
                let found = self.next_vector(&mut current, context)?;
                self.vector_rows = (self.vector_rows * 2).min(limits::VECTOR_ROWS);
                if current.at < current.end || !current.blocks.is_empty() {
                    self.current = Some(current);
                }
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            if self.counted > 0 {
                let rows = self.counted.min(limits::VECTOR_ROWS as u64) as usize;
                self.counted -= rows as u64;
                return Ok(Some((Batch::new(Vec::new(), rows), Origin::Memory(Vec::new()))));
            }
            match self.segments.next() {
                Some(view) if self.counts_only => {
                    let deleted = view.deleted.map_or(0, |deleted| deleted.len());
                    self.counted = (view.segment.rows() as u64).saturating_sub(deleted);
                    context.statistics.segments_read.add(1);
                }
                Some(view) => self.current = self.open(view, context),
                None => match self.next_found(context)? {
                    None => return self.next_memory(context),
                    found => return Ok(found),
                },
            }
        }
    }

    /// Chooses the blocks of a segment; `None` when there are none to read.
    fn open(&self, view: SegmentView, context: &Context<'_>) -> Option<Current> {
        let segment = &view.segment;
        let total = segment.blocks();
        let mut blocks: Vec<usize> = (0..total)
            .filter(|block| {
                let rows = segment.block_rows(*block);
                self.prune.may_match(rows, &|column| self.zone(&view, column, *block, rows))
            })
            .collect();
        let statistics = context.statistics;
        statistics.blocks_skipped.add(total - blocks.len());
        if blocks.is_empty() {
            statistics.segments_skipped.add(1);
            return None;
        }
        statistics.segments_read.add(1);
        blocks.reverse();
        Some(Current { view, blocks, at: 0, end: 0 })
    }

    fn zone(&self, view: &SegmentView, column: usize, block: usize, rows: usize) -> Zone {
        match self.segment_column(view, column) {
            Some(stored) => view.segment.zone(stored, block),
            None => {
                let value = self.default(column);
                let null_count = if value.is_null() { rows as u32 } else { 0 };
                Zone { min: value.clone(), max: value, null_count, exact: true }
            }
        }
    }

    fn segment_column(&self, view: &SegmentView, column: usize) -> Option<usize> {
        view.columns.get(*self.projection.get(column)?).copied().flatten()
    }

    fn default(&self, column: usize) -> Value {
        let declared = self.projection.get(column).and_then(|at| self.schema.columns.get(*at));
        declared.map_or(Value::Null, |c| c.default.clone())
    }

    fn next_vector(
        &self,
        current: &mut Current,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        if current.at >= current.end {
            let Some(block) = current.blocks.pop() else { return Ok(None) };
            let rows = current.view.segment.block_rows(block);
            let zone = |column| self.zone(&current.view, column, block, rows);
            if !self.wanted.0.iter().all(|(column, filter)| filter.may_match(&zone(*column))) {
                context.statistics.blocks_skipped.add(1);
                return Ok(None);
            }
            current.at = block * limits::BLOCK_ROWS;
            current.end = current.at + rows;
            context.statistics.blocks_read.add(1);
            self.prefetch(&current.view, block)?;
        }
        let len = (current.end - current.at).min(self.vector_rows);
        let start = if self.turned { current.end - len } else { current.at };
        if self.turned {
            current.end -= len
        } else {
            current.at += len
        }
        let view = &current.view;

        let alive = alive(view.deleted.as_deref(), start, len);
        let mut rows = ActiveRows { len, selection: alive.as_deref() };
        if rows.is_empty() {
            return Ok(None);
        }
        let reads_all = self.filters.is_empty();
        if !self.projection.is_empty() && (!reads_all || rows.is_dense()) {
            context.statistics.rows_read.add(len);
        }
        let tested = self.test(view, start, rows, context)?;
        if let Some(tested) = &tested {
            rows = rows.narrowed(tested);
            if rows.is_empty() {
                return Ok(None);
            }
        }
        let mut columns: Vec<Option<Arc<Vector>>> = vec![None; self.projection.len()];
        let wanted = self.join_filters(view, start, rows, &mut columns, context)?;
        if let Some(wanted) = &wanted {
            rows = rows.narrowed(wanted);
            if rows.is_empty() {
                return Ok(None);
            }
        }
        let few = |rows: ActiveRows<'_>| rows.count() * TAKE_ONE_IN <= len;
        if few(rows) {
            let selection = rows.to_selection();
            if reads_all && !self.projection.is_empty() && !rows.is_dense() {
                context.statistics.rows_read.add(selection.len());
            }
            return self.pick(view, start, selection, columns, false, context);
        }
        let passed: Selection;
        if !self.clauses.rest.is_empty() {
            for (column, slot) in columns.iter_mut().enumerate() {
                if self.needed_by_rest[column] && slot.is_none() {
                    *slot = Some(self.decode(view, column, start, len, context)?);
                }
            }
            passed = self.filter(&self.clauses.rest, &columns, rows, context)?;
            rows = rows.narrowed(&passed);
            if passed.is_empty() {
                return Ok(None);
            }
            if few(rows) {
                return self.pick(view, start, passed, columns, true, context);
            }
        }
        let columns = (columns.into_iter().enumerate())
            .map(|(column, have)| match have {
                Some(vector) => Ok(vector),
                None if !self.needed[column] => Ok(self.stand_in(column, len)),
                None => self.decode(view, column, start, len, context),
            })
            .collect::<Result<Vec<_>>>()?;
        let (partition, segment) = (view.partition, view.segment.id());
        let selection = (rows.count() < len).then(|| rows.to_selection());
        Ok(Some((
            Batch { columns, rows: len, selection },
            Origin::Segment { partition, segment, start },
        )))
    }

    /// A batch of few rows of a vector, each column by seek unless it is decoded already. The filters that are no
    /// tests run here unless they have.
    fn pick(
        &self,
        view: &SegmentView,
        start: usize,
        mut selection: Selection,
        columns: Vec<Option<Arc<Vector>>>,
        filtered: bool,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let mut rows: Vec<u32> = selection.iter().map(|row| start as u32 + row).collect();
        let mut taken: Vec<Option<Arc<Vector>>> = vec![None; columns.len()];
        if !filtered && !self.clauses.rest.is_empty() {
            for (column, slot) in taken.iter_mut().enumerate() {
                if self.needed_by_rest[column] {
                    *slot = Some(match &columns[column] {
                        Some(decoded) => Arc::new(decoded.take(&selection)),
                        None => self.take(view, column, &rows, context)?,
                    });
                }
            }
            let passed =
                self.filter(&self.clauses.rest, &taken, ActiveRows::all(rows.len()), context)?;
            if passed.is_empty() {
                return Ok(None);
            }
            if passed.len() < rows.len() {
                rows = passed.iter().map(|at| rows[*at as usize]).collect();
                selection = passed.iter().map(|at| selection[*at as usize]).collect();
                taken
                    .iter_mut()
                    .flatten()
                    .for_each(|vector| *vector = Arc::new(vector.take(&passed)));
            }
        }
        let columns = (columns.into_iter().zip(taken).enumerate())
            .map(|(column, have)| match have {
                (_, Some(vector)) => Ok(vector),
                (Some(vector), None) => Ok(Arc::new(vector.take(&selection))),
                (None, None) if !self.needed[column] => Ok(self.stand_in(column, rows.len())),
                (None, None) => self.take(view, column, &rows, context),
            })
            .collect::<Result<Vec<_>>>()?;
        let batch = Batch::new(columns, rows.len());
        Ok(Some((
            batch,
            Origin::SegmentRows { partition: view.partition, segment: view.segment.id(), rows },
        )))
    }

    /// Those of `rows` that joins above may have a use for; `None` when all do. Columns decoded for it are kept.
    fn join_filters(
        &self,
        view: &SegmentView,
        start: usize,
        rows: ActiveRows<'_>,
        columns: &mut [Option<Arc<Vector>>],
        context: &Context<'_>,
    ) -> Result<Option<Selection>> {
        let mut kept: Option<Selection> = None;
        for (column, filter) in self.wanted.0.iter().filter(|(_, filter)| filter.is_worth_it()) {
            let left = ActiveRows { selection: kept.as_deref().or(rows.selection), ..rows };
            if left.is_empty() {
                break;
            }
            kept = Some(if left.count() * TAKE_ONE_IN > left.len || columns[*column].is_some() {
                let vector = match &columns[*column] {
                    Some(vector) => vector.clone(),
                    None => columns[*column]
                        .insert(self.decode(view, *column, start, left.len, context)?)
                        .clone(),
                };
                filter.select(&vector, left)
            } else {
                let picked: Vec<u32> = left.iter().map(|row| (start + row) as u32).collect();
                let vector = self.take(view, *column, &picked, context)?;
                let passed = filter.select(&vector, ActiveRows::all(picked.len()));
                passed.into_iter().map(|at| picked[at as usize] - start as u32).collect()
            });
        }
        let kept = kept.filter(|kept| kept.len() < rows.count());
        if let Some(kept) = &kept {
            context.statistics.join_filtered.add(rows.count() - kept.len());
        }
        Ok(kept)
    }

    /// Those of `rows` that pass the tests of single columns; `None` when all do. While many are left a
    /// test runs on the encoded column, else on the values of those that are left.
    fn test(
        &self,
        view: &SegmentView,
        start: usize,
        rows: ActiveRows<'_>,
        context: &Context<'_>,
    ) -> Result<Option<Selection>> {
        if self.clauses.tests.is_empty() {
            return Ok(None);
        }
        let len = rows.len;
        let mut left = Bitmap::filled(len, rows.selection.is_none());
        rows.selection.into_iter().flatten().for_each(|row| left.set(*row as usize, true));
        let mut many = rows.count();
        for test in &self.clauses.tests {
            if many == 0 {
                break;
            }
            if many * TAKE_ONE_IN > len {
                left = left.and(&self.encoded_filter(view, test, start, len, context)?);
            } else {
                let picked: Vec<u32> =
                    left.ones().into_iter().map(|row| start as u32 + row).collect();
                let passes = kernel::filter(
                    &*self.take(view, test.column, &picked, context)?,
                    &test.predicate,
                );
                let failed = picked.iter().enumerate().filter(|(at, _)| !passes.get(*at));
                failed.for_each(|(_, row)| left.set(*row as usize - start, false));
            }
            many = left.count_ones();
        }
        Ok((many < rows.count()).then(|| left.ones()))
    }

    /// The rows of a vector that pass a test, read from the encoded column.
    fn encoded_filter(
        &self,
        view: &SegmentView,
        test: &ColumnTest,
        start: usize,
        len: usize,
        context: &Context<'_>,
    ) -> Result<Bitmap> {
        match self.segment_column(view, test.column) {
            Some(stored) => {
                self.count_bytes(view, stored, len, context);
                view.segment.filter(stored, &test.predicate, start, len)
            }
            None => Ok(kernel::filter(&self.default_vector(test.column, len), &test.predicate)),
        }
    }

    /// In the place of a column nobody looks at.
    fn stand_in(&self, column: usize, len: usize) -> Arc<Vector> {
        Arc::new(Vector::constant(self.data_type(column), &Value::Null, len))
    }

    /// Brings what will surely be decoded into the cache in one read.
    fn prefetch(&self, view: &SegmentView, block: usize) -> Result<()> {
        let wanted: Vec<(usize, usize)> = (0..self.projection.len())
            .filter(|column| self.filters.is_empty() || self.filtered[*column])
            .filter_map(|column| self.segment_column(view, column))
            .map(|stored| (stored, block))
            .collect();
        if wanted.len() > 1 { view.segment.load(&wanted) } else { Ok(()) }
    }

    fn filter(
        &self,
        filters: &[Expr],
        columns: &[Option<Arc<Vector>>],
        rows: ActiveRows<'_>,
        context: &Context<'_>,
    ) -> Result<Selection> {
        // Columns no filter looks at are stood in for, so that positions hold.
        let stand_in =
            Arc::new(Vector::constant(nacre_types::DataType::Null, &Value::Null, rows.len));
        let columns =
            columns.iter().map(|c| c.clone().unwrap_or_else(|| stand_in.clone())).collect();
        let batch = Batch { columns, rows: rows.len, selection: None };
        expr::filter_rows(filters, &batch, rows, context)
    }

    fn data_type(&self, column: usize) -> nacre_types::DataType {
        let declared = self.projection.get(column).and_then(|at| self.schema.columns.get(*at));
        declared.map_or(nacre_types::DataType::Null, |c| c.data_type)
    }

    fn decode(
        &self,
        view: &SegmentView,
        column: usize,
        start: usize,
        len: usize,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.segment_column(view, column) {
            Some(stored) => {
                self.count_bytes(view, stored, len, context);
                view.segment.decode(stored, start, len).map(Arc::new)
            }
            None => Ok(self.default_vector(column, len)),
        }
    }

    fn take(
        &self,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.segment_column(view, column) {
            Some(stored) => {
                self.count_bytes(view, stored, rows.len(), context);
                view.segment.take(stored, rows).map(Arc::new)
            }
            None => Ok(self.default_vector(column, rows.len())),
        }
    }

    fn default_vector(&self, column: usize, len: usize) -> Arc<Vector> {
        Arc::new(Vector::constant(self.data_type(column), &self.default(column), len))
    }

    /// The share of a column's bytes that so many rows have on average.
    fn count_bytes(&self, view: &SegmentView, stored: usize, rows: usize, context: &Context<'_>) {
        let (bytes, total) = (view.segment.columns()[stored].bytes, view.segment.rows().max(1));
        context.statistics.bytes_read.add((bytes as u128 * rows as u128 / total as u128) as usize);
    }

    fn next_memory(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Origin)>> {
        loop {
            context.check_cancelled()?;
            let next = match &mut self.memory {
                Some(memory) => memory.next(self.vector_rows)?,
                None => self.found_memory.next(),
            };
            let Some((mut batch, locators)) = next else { return Ok(None) };
            self.vector_rows = (self.vector_rows * 2).min(limits::VECTOR_ROWS);
            context.statistics.rows_read.add(batch.rows);
            context.statistics.memory_rows.add(batch.rows);
            if !self.filters.is_empty() {
                let passed =
                    expr::filter_rows(&self.filters, &batch, ActiveRows::all(batch.rows), context)?;
                if passed.is_empty() {
                    continue;
                }
                batch.selection = (passed.len() < batch.rows).then_some(passed);
            }
            return Ok(Some((batch, Origin::Memory(locators))));
        }
    }
}

/// Positions that are not deleted among `len` rows from `start`; `None` when all are there.
fn alive(deleted: Option<&RoaringBitmap>, start: usize, len: usize) -> Option<Vec<u32>> {
    let deleted = deleted?;
    let (from, to) = (start as u32, (start + len) as u32);
    let mut gone = deleted.range(from..to).peekable();
    gone.peek()?;
    Some((from..to).filter(|row| gone.next_if_eq(row).is_none()).map(|row| row - from).collect())
}
