//! The projected columns of a table, as its segments store them.
//!
//! A segment older than a column does not store it: all its rows have the column's default.

use crate::context::Context;
use crate::scan::spec::ScanSpec;
use nacre_column::kernel::{self, Pattern, Predicate};
use nacre_column::{Bitmap, Vector};
use nacre_table::{SegmentView, Span, Zone};
use nacre_types::{Column, DataType, Result, TableSchema, Value};
use std::ops::Range;
use std::sync::Arc;

/// What [`StoredColumns::seek_one_in`] answers for a column that a segment does not store.
const DEFAULT_ONE_IN: usize = 16;

/// Columns of a table by their position in the output.
pub(in crate::scan) struct StoredColumns {
    schema: Arc<TableSchema>,
    /// Positions in the table.
    projection: Vec<usize>,
}

impl StoredColumns {
    /// The output columns of a scan.
    pub fn new(spec: ScanSpec<'_>) -> StoredColumns {
        StoredColumns { schema: spec.schema.clone(), projection: spec.projection.to_vec() }
    }

    /// The table.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Positions of the output columns in the table.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Number of output columns.
    pub fn len(&self) -> usize {
        self.projection.len()
    }

    fn declared(&self, column: usize) -> &Column {
        &self.schema.columns[self.projection[column]]
    }

    /// The type of a column.
    pub fn data_type(&self, column: usize) -> DataType {
        self.declared(column).data_type
    }

    /// Where a segment stores a column; `None` in a segment older than the column.
    pub fn position(&self, view: &SegmentView, column: usize) -> Option<usize> {
        view.columns.get(self.projection[column]).copied().flatten()
    }

    /// The zone of a column in some blocks.
    pub fn zone(&self, view: &SegmentView, column: usize, span: Span) -> Result<Zone> {
        match self.position(view, column) {
            Some(stored) => view.segment.zone_of(stored, span),
            None => {
                let value = self.declared(column).default.clone();
                let rows = view.segment.rows_of(span) as u32;
                let null_count = if value.is_null() { rows } else { 0 };
                Ok(Zone { min: value.clone(), max: value, null_count, exact: true })
            }
        }
    }

    /// Evaluates a test on these rows of a segment, on the encoded column.
    pub fn filter(
        &self,
        view: &SegmentView,
        column: usize,
        predicate: &Predicate,
        rows: Range<usize>,
        context: &Context<'_>,
    ) -> Result<Bitmap> {
        let bitmap = match self.position(view, column) {
            Some(stored) => {
                count_bytes(view, stored, rows.len(), context);
                view.segment.filter(stored, predicate, rows.start, rows.len())?
            }
            None => kernel::filter(&self.default(column, rows.len()), predicate),
        };
        debug_assert_eq!(bitmap.len(), rows.len(), "a filter answers for every row");
        Ok(bitmap)
    }

    /// Those of `rows`, whose first bit is row `start` of a segment, that pass a pattern; `None` if
    /// their encoding tests decoded text only.
    pub fn matches(
        &self,
        view: &SegmentView,
        column: usize,
        pattern: &Pattern,
        start: usize,
        rows: &Bitmap,
        context: &Context<'_>,
    ) -> Result<Option<Bitmap>> {
        match self.position(view, column) {
            Some(stored) => {
                let passed = view.segment.matches(stored, pattern, start, rows)?;
                if passed.is_some() {
                    count_bytes(view, stored, rows.count_ones(), context);
                }
                Ok(passed)
            }
            None => Ok(None),
        }
    }

    /// The values of these rows of a segment.
    pub fn decode(
        &self,
        view: &SegmentView,
        column: usize,
        rows: Range<usize>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.position(view, column) {
            Some(stored) => {
                count_bytes(view, stored, rows.len(), context);
                view.segment.decode(stored, rows.start, rows.len()).map(Arc::new)
            }
            None => Ok(self.default(column, rows.len())),
        }
    }

    /// The values of single rows that an index found in a segment.
    pub fn take(
        &self,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.stored(view, column, rows, context) {
            Some(stored) => view.segment.take(stored, rows).map(Arc::new),
            None => Ok(self.default(column, rows.len())),
        }
    }

    /// The values of single rows that a scan of a segment left over.
    pub fn take_in_scan(
        &self,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.stored(view, column, rows, context) {
            Some(stored) => view.segment.take_in_scan(stored, rows).map(Arc::new),
            None => Ok(self.default(column, rows.len())),
        }
    }

    /// Where a segment stores a column of which these rows are read.
    fn stored(
        &self,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Option<usize> {
        debug_assert!(rows.is_sorted(), "rows of a segment are taken in their order");
        let stored = self.position(view, column)?;
        count_bytes(view, stored, rows.len(), context);
        Some(stored)
    }

    /// Rows of a block are fetched one by one if at most one in this many is wanted.
    pub fn seek_one_in(&self, view: &SegmentView, column: usize, block: usize) -> Result<usize> {
        match self.position(view, column) {
            Some(stored) => view.segment.seek_one_in(stored, block),
            // Every row has the default, which is as fast either way.
            None => Ok(DEFAULT_ONE_IN),
        }
    }

    /// Loads blocks that will certainly be decoded into the cache, in one read.
    pub fn prefetch(
        &self,
        view: &SegmentView,
        columns: impl Iterator<Item = usize>,
        block: usize,
    ) -> Result<()> {
        let stored: Vec<(usize, usize)> = columns
            .filter_map(|column| self.position(view, column))
            .map(|stored| (stored, block))
            .collect();
        if stored.len() > 1 { view.segment.load(&stored) } else { Ok(()) }
    }

    /// A placeholder for a column that no expression reads.
    pub fn stand_in(&self, column: usize, len: usize) -> Arc<Vector> {
        Arc::new(Vector::constant(self.declared(column).data_type, &Value::Null, len))
    }

    fn default(&self, column: usize, len: usize) -> Arc<Vector> {
        let declared = self.declared(column);
        Arc::new(Vector::constant(declared.data_type, &declared.default, len))
    }
}

/// Counts the average share of a column's bytes for this many rows.
fn count_bytes(view: &SegmentView, stored: usize, rows: usize, context: &Context<'_>) {
    // The read that follows reports a footer that cannot be read.
    let Ok(columns) = view.segment.columns() else { return };
    let (bytes, total) = (columns[stored].bytes, view.segment.rows().max(1));
    context.statistics.bytes_read.add((bytes as u128 * rows as u128 / total as u128) as usize);
}
