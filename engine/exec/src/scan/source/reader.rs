//! Selects the rows of segments that pass all filters, and reads their values.
//!
//! Within a range of a block, the clauses run first (`narrow`), in the order and by the strategies
//! that the scan has learned to be best; then the filters that may fail, on the columns they need.
//! The remaining columns are read only for the rows that are left.

use super::columns::StoredColumns;
use super::narrow::{Narrow, batch_of};
use super::origin::Origin;
use super::range::RangeColumns;
use super::watch::Watch;
use crate::scan::filter::adaptive::decision::Deciding;
use crate::scan::filter::clauses::{Clauses, ordered};
use crate::scan::spec::ScanSpec;
use nacre_column::{Batch, Bitmap, Selection, Vector};
use nacre_operator::context::Context;
use nacre_operator::expr::{self, ActiveRows};
use nacre_operator::join_filter::RuntimeFilters;
use nacre_sql::expr::Expr;
use nacre_table::{Misses, RoaringBitmap, SegmentView, Span};
use nacre_types::{Error, Result, limits};
use std::ops::Range;
use std::sync::Arc;

/// Number of segments whose absent bytes are fetched at once.
const SEGMENTS: usize = 64;

/// Reads rows of segments that pass the filters of a scan.
pub(in crate::scan) struct SegmentReader {
    columns: StoredColumns,
    /// All filters; those that may fail come last.
    filters: Vec<Expr>,
    clauses: Clauses,
    /// Which output columns the filters read.
    filtered: Vec<bool>,
    /// Output columns read by filters that may fail.
    needed_by_rest: Vec<bool>,
    /// Which output columns the parent reads; the others hold nulls.
    needed: Vec<bool>,
    /// Filters of joins above, on output columns. Not applied to rows in memory, which are few.
    runtime: RuntimeFilters,
}

/// The columns of rows that are read so far, by output column.
type Decoded = Vec<Option<Arc<Vector>>>;

impl SegmentReader {
    /// A reader for a scan.
    pub fn new(spec: ScanSpec<'_>, context: &Context<'_>) -> SegmentReader {
        let clauses = Clauses::of(spec.filters, context);
        SegmentReader {
            columns: StoredColumns::new(spec),
            filters: ordered(spec.filters, context),
            filtered: spec.columns_of(spec.filters),
            needed_by_rest: spec.columns_of(&clauses.rest),
            clauses,
            needed: vec![true; spec.width()],
            runtime: RuntimeFilters::default(),
        }
    }

    /// Reads only these output columns for the parent.
    pub fn need_only(&mut self, needed: Vec<bool>) {
        debug_assert_eq!(needed.len(), self.columns.len(), "one mark for each output column");
        self.needed = needed;
    }

    /// Drops rows that do not pass the filters of joins above.
    pub fn apply(&mut self, filters: RuntimeFilters) {
        debug_assert!(self.runtime.0.is_empty(), "the filters of joins are applied once");
        for (at, (column, filter)) in filters.0.iter().enumerate() {
            match filter.is_bound() {
                true => self.clauses.add_bound(at, *column),
                false => self.clauses.add_joined(at, *column),
            }
        }
        self.runtime = filters;
    }

    /// The output columns.
    pub(in crate::scan) fn columns(&self) -> &StoredColumns {
        &self.columns
    }

    /// The filters of the scan.
    pub(in crate::scan) fn filters(&self) -> &[Expr] {
        &self.filters
    }

    /// The filters of joins above.
    pub(in crate::scan) fn runtime(&self) -> &RuntimeFilters {
        &self.runtime
    }

    /// Whether the zones of a block allow a row that passes the filters of joins above.
    pub(in crate::scan) fn may_match(&self, view: &SegmentView, block: usize) -> Result<bool> {
        for (column, filter) in &self.runtime.0 {
            let zone = self.columns.zone(view, *column, Span::Block(block))?;
            if zone.is_some_and(|zone| !filter.may_match(&zone)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads the columns of a block that will certainly be decoded into the cache, in one read.
    pub(in crate::scan) fn prefetch(&self, view: &SegmentView, block: usize) -> Result<()> {
        self.columns.prefetch(view, self.wanted(self.reads_all()), block)
    }

    /// Whether every row of a block is read that is not deleted.
    fn reads_all(&self) -> bool {
        self.filters.is_empty() && !self.runtime.0.iter().any(|(_, filter)| filter.is_bound())
    }

    /// The columns that are read of a block, also those that are read if rows pass.
    fn wanted(&self, rows_pass: bool) -> impl Iterator<Item = usize> {
        (0..self.columns.len())
            .filter(move |column| self.filtered[*column] || (rows_pass && self.needed[*column]))
    }

    /// The blocks of the file that a block of the scan takes, as (column, block), if its zones allow a row that
    /// passes the filters of joins above.
    pub(super) fn blocks(
        &self,
        view: &SegmentView,
        block: usize,
        rows_pass: bool,
    ) -> Result<Vec<(usize, usize)>> {
        match self.may_match(view, block)? {
            true => self.columns.blocks(view, self.wanted(rows_pass || self.reads_all()), block),
            false => Ok(Vec::new()),
        }
    }

    /// Decides how the ranges of the next block are filtered.
    pub(in crate::scan) fn begin_block(&self, view: &SegmentView, watch: &mut Watch) {
        if !self.clauses.leaves.is_empty() {
            let deciding = Deciding { clauses: &self.clauses, needed: &self.needed };
            watch.begin_block(view.segment.id(), deciding);
        }
    }

    /// The rows of a range inside a block that pass, or `None` if no row does.
    pub(in crate::scan) fn read(
        &self,
        view: &SegmentView,
        range: Range<usize>,
        watch: &mut Watch,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        if !watch.times_ranges() {
            return self.read_range(view, range, watch, context);
        }
        let (rows, from) = (range.len(), context.now_ns());
        let read = self.read_range(view, range, watch, context)?;
        watch.note_range(rows, context.now_ns().saturating_sub(from));
        Ok(read)
    }

    fn read_range(
        &self,
        view: &SegmentView,
        range: Range<usize>,
        watch: &mut Watch,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let len = range.len();
        let alive = alive(view.deleted.as_deref(), &range);
        let mut rows = ActiveRows { len, selection: alive.as_deref() };
        if rows.is_empty() {
            return Ok(None);
        }
        let reads_all = self.filters.is_empty();
        if self.columns.len() > 0 && (!reads_all || rows.is_dense()) {
            context.statistics.rows_read.add(len);
        }
        let start = range.start;
        let mut columns = RangeColumns::new(&self.columns, view, range, context);
        let narrowed = self.narrow(&mut columns, rows, watch)?;
        if let Some(narrowed) = &narrowed {
            rows = rows.narrowed(narrowed);
            if rows.is_empty() {
                return Ok(None);
            }
        }
        let rest = (0..self.columns.len()).filter(|column| self.needed_by_rest[*column]);
        let needed = (0..self.columns.len()).filter(|column| self.needed[*column]);
        let is_compact = match self.clauses.rest.is_empty() {
            true => columns.is_compact(rows.count(), needed.clone())?,
            false => columns.is_compact(rows.count(), rest.clone())?,
        };
        if is_compact {
            if reads_all && self.columns.len() > 0 && !rows.is_dense() {
                context.statistics.rows_read.add(rows.count());
            }
            return self.pick_filtered(columns, rows.to_selection());
        }
        let passed: Selection;
        if !self.clauses.rest.is_empty() {
            let mut vectors = vec![None; self.columns.len()];
            Misses::each(rest, |column| {
                vectors[column] = Some(columns.decode(column)?);
                Ok(())
            })?;
            passed =
                expr::filter_rows(&self.clauses.rest, &batch_of(&vectors, len), rows, context)?;
            rows = rows.narrowed(&passed);
            if passed.is_empty() {
                return Ok(None);
            }
            if columns.is_compact(passed.len(), needed)? {
                return self.pick(columns, passed);
            }
        }
        let columns =
            self.vectors(|column| match self.needed[column] || columns.is_decoded(column) {
                true => columns.decode(column),
                false => Ok(self.columns.stand_in(column, len)),
            })?;
        let selection = (rows.count() < len).then(|| rows.to_selection());
        let batch = Batch { columns, rows: len, selection };
        Ok(Some((batch, Origin::Segment { view: view.clone(), start })))
    }

    /// The rows that pass the clauses; `None` if all do.
    fn narrow(
        &self,
        columns: &mut RangeColumns<'_>,
        rows: ActiveRows<'_>,
        watch: &mut Watch,
    ) -> Result<Option<Selection>> {
        let Some((learned, decision, seen)) = watch.parts() else { return Ok(None) };
        let mut alive = Bitmap::filled(rows.len, rows.selection.is_none());
        rows.selection.into_iter().flatten().for_each(|row| alive.set(*row as usize, true));
        let (clauses, runtime, group) = (&self.clauses, &self.runtime, decision.group);
        let mut narrow = Narrow { clauses, runtime, learned, decision, seen, columns, group };
        let passed = narrow.run(&alive)?;
        Ok((passed.count_ones() < rows.count()).then(|| passed.ones()))
    }

    /// Each output column. What several of them miss is fetched at once.
    fn vectors(
        &self,
        mut read: impl FnMut(usize) -> Result<Arc<Vector>>,
    ) -> Result<Vec<Arc<Vector>>> {
        let mut vectors = Vec::with_capacity(self.columns.len());
        Misses::each(0..self.columns.len(), |column| read(column).map(|read| vectors.push(read)))?;
        Ok(vectors)
    }

    /// Like [`SegmentReader::pick`], for rows on which the filters that may fail have not been
    /// evaluated yet.
    fn pick_filtered(
        &self,
        mut columns: RangeColumns<'_>,
        mut selection: Selection,
    ) -> Result<Option<(Batch, Origin)>> {
        if !self.clauses.rest.is_empty() {
            let mut vectors = vec![None; self.columns.len()];
            let needed = (0..vectors.len()).filter(|column| self.needed_by_rest[*column]);
            Misses::each(needed, |column| {
                vectors[column] = Some(columns.at(column, &selection)?);
                Ok(())
            })?;
            let (batch, rows) =
                (batch_of(&vectors, selection.len()), ActiveRows::all(selection.len()));
            let passed = expr::filter_rows(&self.clauses.rest, &batch, rows, columns.context)?;
            if passed.is_empty() {
                return Ok(None);
            }
            if passed.len() < selection.len() {
                selection = passed.iter().map(|at| selection[*at as usize]).collect();
            }
        }
        self.pick(columns, selection)
    }

    /// Fetches the selected rows of a range.
    fn pick(
        &self,
        mut columns: RangeColumns<'_>,
        selection: Selection,
    ) -> Result<Option<(Batch, Origin)>> {
        let vectors = self.vectors(|column| match self.needed[column] {
            true => columns.at(column, &selection),
            false => Ok(self.columns.stand_in(column, selection.len())),
        })?;
        Ok(Some(segment_rows(columns.view, vectors, columns.rows_of(&selection))))
    }

    /// Reads the rows of a segment that indexes found, and keeps those that pass all filters.
    pub fn read_found(
        &self,
        view: &SegmentView,
        mut rows: Vec<u32>,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let mut columns: Decoded = vec![None; self.columns.len()];
        Misses::each(columns.iter_mut().enumerate(), |(column, slot)| {
            if self.filtered[column] {
                *slot = Some(self.columns.take(view, column, &rows, context)?);
            }
            Ok(())
        })?;
        let (batch, all) = (batch_of(&columns, rows.len()), ActiveRows::all(rows.len()));
        let passed = expr::filter_rows(&self.filters, &batch, all, context)?;
        let passed = self.apply_runtime_to_found(view, &rows, passed, &columns, context)?;
        if passed.is_empty() {
            return Ok(None);
        }
        if passed.len() < rows.len() {
            rows = passed.iter().map(|at| rows[*at as usize]).collect();
            keep(&mut columns, &passed);
        }
        let mut vectors = Vec::with_capacity(columns.len());
        Misses::each(columns.into_iter().enumerate(), |(column, have)| {
            vectors.push(match have {
                Some(vector) => vector,
                None if !self.needed[column] => self.columns.stand_in(column, rows.len()),
                None => self.columns.take(view, column, &rows, context)?,
            });
            Ok(())
        })?;
        Ok(Some(segment_rows(view, vectors, rows)))
    }

    /// Fails with the absent bytes of the blocks that have rows of a segment, and are not cached.
    pub(super) fn check_rows_there(&self, view: &SegmentView, rows: &[u32]) -> Result<()> {
        debug_assert!(rows.is_sorted(), "rows of a segment ascend");
        let mut blocks: Vec<usize> =
            rows.iter().map(|row| *row as usize / limits::BLOCK_ROWS).collect();
        blocks.dedup();
        let mut stored = Vec::new();
        for block in blocks {
            stored.extend(self.blocks(view, block, true)?);
        }
        view.segment.check_there(&stored)
    }

    /// Adds to what was missed of a segment what rows that indexes found miss in others, the last of which is read
    /// next.
    #[cold]
    pub(super) fn with_others(&self, error: Error, others: &[(SegmentView, Vec<u32>)]) -> Error {
        if error.missing().is_none() {
            return error;
        }
        let others = others.iter().rev().take(SEGMENTS);
        let absent = others.filter_map(|(view, rows)| self.check_rows_there(view, rows).err());
        absent.fold(error, |all, error| all.and_missing(&error))
    }

    /// The `passed` rows that may have a partner in the joins above.
    fn apply_runtime_to_found(
        &self,
        view: &SegmentView,
        rows: &[u32],
        mut passed: Selection,
        columns: &Decoded,
        context: &Context<'_>,
    ) -> Result<Selection> {
        for (column, filter) in self.runtime.0.iter().filter(|(_, filter)| filter.is_worth_it()) {
            if passed.is_empty() {
                break;
            }
            passed = match &columns[*column] {
                Some(vector) => {
                    let left = Bitmap::of_ones(passed.iter().copied(), rows.len());
                    filter.passing(vector, &left).ones()
                }
                None => {
                    let left: Vec<u32> = passed.iter().map(|at| rows[*at as usize]).collect();
                    let vector = self.columns.take(view, *column, &left, context)?;
                    let passing = filter.passing(&vector, &Bitmap::filled(left.len(), true));
                    passing.ones().iter().map(|at| passed[*at as usize]).collect()
                }
            };
        }
        Ok(passed)
    }
}

/// Reduces the columns read so far to these rows.
fn keep(columns: &mut Decoded, rows: &[u32]) {
    columns.iter_mut().flatten().for_each(|vector| *vector = Arc::new(vector.take(rows)));
}

/// A batch of single rows of a segment.
fn segment_rows(view: &SegmentView, columns: Vec<Arc<Vector>>, rows: Vec<u32>) -> (Batch, Origin) {
    let batch = Batch::new(columns, rows.len());
    (batch, Origin::SegmentRows { view: view.clone(), rows })
}

/// Positions of live rows in a range; `None` if none is deleted.
fn alive(deleted: Option<&RoaringBitmap>, range: &Range<usize>) -> Option<Vec<u32>> {
    let (from, to) = (range.start as u32, range.end as u32);
    let mut gone = deleted?.range(from..to).peekable();
    gone.peek()?;
    Some((from..to).filter(|row| gone.next_if_eq(row).is_none()).map(|row| row - from).collect())
}
