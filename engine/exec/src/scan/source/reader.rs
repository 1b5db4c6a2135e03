//! Selects the rows of segments that pass all filters, and reads their values.
//!
//! Within a range of a block, tests of single columns run first, on the encoded columns; then the
//! filters of joins above the scan; then the other filters, on the columns they need. The remaining
//! columns are read only for the rows that are left.

use super::columns::StoredColumns;
use super::origin::Origin;
use crate::context::Context;
use crate::expr::{self, ActiveRows};
use crate::join_filter::RuntimeFilters;
use crate::scan::filter::clauses::Clauses;
use crate::scan::spec::ScanSpec;
use nacre_column::{Batch, Bitmap, Selection, Vector, kernel};
use nacre_sql::expr::Expr;
use nacre_table::{RoaringBitmap, SegmentView, Span};
use nacre_types::{DataType, Result, Value};
use std::ops::Range;
use std::sync::Arc;

/// Rows are fetched one by one if at most one in this many is left; otherwise the range is decoded.
const TAKE_ONE_IN: usize = 8;

/// Reads rows of segments that pass the filters of a scan.
pub(in crate::scan) struct SegmentReader {
    columns: StoredColumns,
    filters: Vec<Expr>,
    clauses: Clauses,
    /// Which output columns the filters read.
    filtered: Vec<bool>,
    /// Output columns read by filters that are not tests of one column.
    needed_by_rest: Vec<bool>,
    /// Which output columns the parent reads; the others hold nulls.
    needed: Vec<bool>,
    /// Filters of joins above, on output columns. Not applied to rows in memory, which are few.
    runtime: RuntimeFilters,
}

/// The columns of a range that are decoded so far, by output column.
type Decoded = Vec<Option<Arc<Vector>>>;

impl SegmentReader {
    /// A reader for a scan.
    pub fn new(spec: ScanSpec<'_>, context: &Context<'_>) -> SegmentReader {
        let clauses = Clauses::of(spec.filters, context);
        SegmentReader {
            columns: StoredColumns::new(spec),
            filters: spec.filters.to_vec(),
            filtered: spec.columns_of(spec.filters),
            needed_by_rest: spec.columns_of(&clauses.rest),
            clauses,
            needed: vec![true; spec.projection.len()],
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
            if !filter.may_match(&self.columns.zone(view, *column, Span::Block(block))?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads the columns of a block that will certainly be decoded into the cache, in one read.
    pub(in crate::scan) fn prefetch(&self, view: &SegmentView, block: usize) -> Result<()> {
        let surely = |column: &usize| self.filters.is_empty() || self.filtered[*column];
        self.columns.prefetch(view, (0..self.columns.len()).filter(surely), block)
    }

    /// The rows of a range inside a block that pass, or `None` if no row does.
    pub(in crate::scan) fn read(
        &self,
        view: &SegmentView,
        range: Range<usize>,
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
        let tested = self.test(view, &range, rows, context)?;
        if let Some(tested) = &tested {
            rows = rows.narrowed(tested);
            if rows.is_empty() {
                return Ok(None);
            }
        }
        let mut columns: Decoded = vec![None; self.columns.len()];
        let joined = self.apply_runtime(view, &range, rows, &mut columns, context)?;
        if let Some(joined) = &joined {
            rows = rows.narrowed(joined);
            if rows.is_empty() {
                return Ok(None);
            }
        }
        let few = |rows: ActiveRows<'_>| rows.count() * TAKE_ONE_IN <= len;
        if few(rows) {
            if reads_all && self.columns.len() > 0 && !rows.is_dense() {
                context.statistics.rows_read.add(rows.count());
            }
            return self.pick_filtered(view, range, rows.to_selection(), columns, context);
        }
        let passed: Selection;
        if !self.clauses.rest.is_empty() {
            for (column, slot) in columns.iter_mut().enumerate() {
                if self.needed_by_rest[column] && slot.is_none() {
                    *slot = Some(self.columns.decode(view, column, range.clone(), context)?);
                }
            }
            passed = filter(&self.clauses.rest, &columns, rows, context)?;
            rows = rows.narrowed(&passed);
            if passed.is_empty() {
                return Ok(None);
            }
            if few(rows) {
                let taken = vec![None; columns.len()];
                return self.pick(
                    view,
                    range,
                    passed,
                    Columns { decoded: columns, taken },
                    context,
                );
            }
        }
        let columns = (columns.into_iter().enumerate())
            .map(|(column, have)| match have {
                Some(vector) => Ok(vector),
                None if !self.needed[column] => Ok(self.columns.stand_in(column, len)),
                None => self.columns.decode(view, column, range.clone(), context),
            })
            .collect::<Result<Vec<_>>>()?;
        let (partition, segment) = (view.partition, view.segment.id());
        let selection = (rows.count() < len).then(|| rows.to_selection());
        Ok(Some((
            Batch { columns, rows: len, selection },
            Origin::Segment { partition, segment, start: range.start },
        )))
    }

    /// Like [`SegmentReader::pick`], for rows on which the filters that are not tests have not been
    /// evaluated yet.
    fn pick_filtered(
        &self,
        view: &SegmentView,
        range: Range<usize>,
        mut selection: Selection,
        decoded: Decoded,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let mut taken: Decoded = vec![None; decoded.len()];
        if !self.clauses.rest.is_empty() {
            let rows = rows_of(&range, &selection);
            for (column, slot) in taken.iter_mut().enumerate() {
                if self.needed_by_rest[column] {
                    *slot = Some(match &decoded[column] {
                        Some(decoded) => Arc::new(decoded.take(&selection)),
                        None => self.columns.take_in_scan(view, column, &rows, context)?,
                    });
                }
            }
            let passed = filter(&self.clauses.rest, &taken, ActiveRows::all(rows.len()), context)?;
            if passed.is_empty() {
                return Ok(None);
            }
            if passed.len() < rows.len() {
                selection = passed.iter().map(|at| selection[*at as usize]).collect();
                keep(&mut taken, &passed);
            }
        }
        self.pick(view, range, selection, Columns { decoded, taken }, context)
    }

    /// Fetches the selected rows of a range, each column by seek unless it is already decoded.
    fn pick(
        &self,
        view: &SegmentView,
        range: Range<usize>,
        selection: Selection,
        columns: Columns,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let rows = rows_of(&range, &selection);
        let columns = (columns.decoded.into_iter().zip(columns.taken).enumerate())
            .map(|(column, have)| match have {
                (_, Some(vector)) => Ok(vector),
                (Some(vector), None) => Ok(Arc::new(vector.take(&selection))),
                (None, None) if !self.needed[column] => {
                    Ok(self.columns.stand_in(column, rows.len()))
                }
                (None, None) => self.columns.take_in_scan(view, column, &rows, context),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(segment_rows(view, columns, rows)))
    }

    /// The rows that may have a partner in the joins above; `None` if all may. Keeps columns
    /// decoded on the way.
    fn apply_runtime(
        &self,
        view: &SegmentView,
        range: &Range<usize>,
        rows: ActiveRows<'_>,
        columns: &mut Decoded,
        context: &Context<'_>,
    ) -> Result<Option<Selection>> {
        let mut kept: Option<Selection> = None;
        for (column, filter) in self.runtime.0.iter().filter(|(_, filter)| filter.is_worth_it()) {
            let left = ActiveRows { selection: kept.as_deref().or(rows.selection), ..rows };
            if left.is_empty() {
                break;
            }
            kept = Some(if left.count() * TAKE_ONE_IN > left.len || columns[*column].is_some() {
                let vector = match &columns[*column] {
                    Some(vector) => vector.clone(),
                    None => columns[*column]
                        .insert(self.columns.decode(view, *column, range.clone(), context)?)
                        .clone(),
                };
                filter.select(&vector, left)
            } else {
                let positions = left.to_selection();
                let picked = rows_of(range, &positions);
                let vector = self.columns.take_in_scan(view, *column, &picked, context)?;
                let passed = filter.select(&vector, ActiveRows::all(picked.len()));
                passed.into_iter().map(|at| positions[at as usize]).collect()
            });
        }
        let kept = kept.filter(|kept| kept.len() < rows.count());
        if let Some(kept) = &kept {
            context.statistics.join_filtered.add(rows.count() - kept.len());
        }
        Ok(kept)
    }

    /// The rows that pass the tests of single columns; `None` if all do. A test runs on the encoded
    /// column while many rows are left, and on the values of the remaining rows when few are.
    fn test(
        &self,
        view: &SegmentView,
        range: &Range<usize>,
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
                let (column, predicate) = (test.column, &test.predicate);
                let passes =
                    self.columns.filter(view, column, predicate, range.clone(), context)?;
                left = left.and(&passes);
            } else {
                let positions = left.ones();
                let picked = rows_of(range, &positions);
                let vector = self.columns.take_in_scan(view, test.column, &picked, context)?;
                let passes = kernel::filter(&vector, &test.predicate);
                let failed = positions.iter().enumerate().filter(|(at, _)| !passes.get(*at));
                failed.for_each(|(_, row)| left.set(*row as usize, false));
            }
            many = left.count_ones();
        }
        Ok((many < rows.count()).then(|| left.ones()))
    }

    /// Reads the rows of a segment that indexes found, and keeps those that pass all filters.
    pub fn read_found(
        &self,
        view: &SegmentView,
        mut rows: Vec<u32>,
        context: &Context<'_>,
    ) -> Result<Option<(Batch, Origin)>> {
        let mut columns: Decoded = vec![None; self.columns.len()];
        for (column, slot) in columns.iter_mut().enumerate() {
            if self.filtered[column] {
                *slot = Some(self.columns.take(view, column, &rows, context)?);
            }
        }
        let passed = filter(&self.filters, &columns, ActiveRows::all(rows.len()), context)?;
        let passed = self.apply_runtime_to_found(view, &rows, passed, &columns, context)?;
        if passed.is_empty() {
            return Ok(None);
        }
        if passed.len() < rows.len() {
            rows = passed.iter().map(|at| rows[*at as usize]).collect();
            keep(&mut columns, &passed);
        }
        let columns = (columns.into_iter().enumerate())
            .map(|(column, have)| match have {
                Some(vector) => Ok(vector),
                None if !self.needed[column] => Ok(self.columns.stand_in(column, rows.len())),
                None => self.columns.take(view, column, &rows, context),
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(segment_rows(view, columns, rows)))
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
                    filter.select(vector, ActiveRows { len: rows.len(), selection: Some(&passed) })
                }
                None => {
                    let left: Vec<u32> = passed.iter().map(|at| rows[*at as usize]).collect();
                    let vector = self.columns.take(view, *column, &left, context)?;
                    filter
                        .select(&vector, ActiveRows::all(left.len()))
                        .iter()
                        .map(|at| passed[*at as usize])
                        .collect()
                }
            };
        }
        Ok(passed)
    }
}

/// The columns of a range read so far: decoded as a whole, or fetched for the selected rows.
struct Columns {
    decoded: Decoded,
    taken: Decoded,
}

/// Converts positions in a range to row numbers of the segment.
fn rows_of(range: &Range<usize>, positions: &[u32]) -> Vec<u32> {
    positions.iter().map(|at| range.start as u32 + at).collect()
}

/// Reduces the columns read so far to these rows.
fn keep(columns: &mut Decoded, rows: &[u32]) {
    columns.iter_mut().flatten().for_each(|vector| *vector = Arc::new(vector.take(rows)));
}

/// A batch of single rows of a segment.
fn segment_rows(view: &SegmentView, columns: Vec<Arc<Vector>>, rows: Vec<u32>) -> (Batch, Origin) {
    let batch = Batch::new(columns, rows.len());
    (batch, Origin::SegmentRows { partition: view.partition, segment: view.segment.id(), rows })
}

/// The rows that pass the filters. Columns that no filter reads may be missing.
fn filter(
    filters: &[Expr],
    columns: &Decoded,
    rows: ActiveRows<'_>,
    context: &Context<'_>,
) -> Result<Selection> {
    // Placeholders keep the other columns at their positions.
    let stand_in = Arc::new(Vector::constant(DataType::Null, &Value::Null, rows.len));
    let columns = columns.iter().map(|c| c.clone().unwrap_or_else(|| stand_in.clone())).collect();
    let batch = Batch { columns, rows: rows.len, selection: None };
    expr::filter_rows(filters, &batch, rows, context)
}

/// Positions of live rows in a range; `None` if none is deleted.
fn alive(deleted: Option<&RoaringBitmap>, range: &Range<usize>) -> Option<Vec<u32>> {
    let (from, to) = (range.start as u32, range.end as u32);
    let mut gone = deleted?.range(from..to).peekable();
    gone.peek()?;
    Some((from..to).filter(|row| gone.next_if_eq(row).is_none()).map(|row| row - from).collect())
}
