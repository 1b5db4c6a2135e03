//! The projected columns of a table and parts of documents, as its segments store them.
//!
//! A segment older than a column does not store it: all its rows have the column's default.

use super::paths::{PathColumn, Stored};
use crate::scan::spec::ScanSpec;
use nacre_column::kernel::{self, Pattern, Predicate};
use nacre_column::{Bitmap, Vector};
use nacre_operator::context::Context;
use nacre_sql::expr::Expr;
use nacre_table::{PathPlace, PathRows, Segment, SegmentView, Span, Zone};
use nacre_types::{Column, DataType, Result, TableSchema, Value};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// What [`StoredColumns::seek_one_in`] answers for values that are in no column of their own.
const DEFAULT_ONE_IN: usize = 16;

/// Columns of a table, and parts of documents, by their position in the output.
pub(in crate::scan) struct StoredColumns {
    schema: Arc<TableSchema>,
    /// Positions in the table.
    projection: Vec<usize>,
    /// Expressions over the table, and what they compute: columns after those of the table.
    exprs: Vec<Expr>,
    paths: Vec<PathColumn>,
    keys: Vec<(usize, Expr)>,
    /// Documents that were decoded last, which several parts may need.
    documents: RefCell<Option<(DocumentRows, Arc<Vector>)>>,
}

/// Documents that are decoded: the segment, the column, and the rows.
type DocumentRows = (u64, usize, Range<usize>);

impl StoredColumns {
    /// The output columns of a scan.
    pub fn new(spec: ScanSpec<'_>) -> StoredColumns {
        StoredColumns {
            schema: spec.schema.clone(),
            projection: spec.projection.to_vec(),
            exprs: spec.paths.to_vec(),
            keys: spec.keys.to_vec(),
            paths: spec.paths.iter().map(PathColumn::new).collect(),
            documents: RefCell::default(),
        }
    }

    /// The scan, with some filters.
    pub fn spec<'a>(&'a self, filters: &'a [Expr]) -> ScanSpec<'a> {
        let StoredColumns { schema, projection, exprs, keys, .. } = self;
        ScanSpec { schema, projection, paths: exprs, filters, keys }
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
        self.projection.len() + self.paths.len()
    }

    /// The declaration of a column, or of the document that it is a part of.
    fn declared(&self, column: usize) -> &Column {
        let at = match self.path(column) {
            Some(path) => path.document,
            None => self.projection[column],
        };
        &self.schema.columns[at]
    }

    fn path(&self, column: usize) -> Option<&PathColumn> {
        column.checked_sub(self.projection.len()).map(|at| &self.paths[at])
    }

    /// The type of a column.
    pub fn data_type(&self, column: usize) -> DataType {
        self.path(column).map_or_else(|| self.declared(column).data_type, PathColumn::data_type)
    }

    /// Where a segment stores a column.
    fn stored(&self, view: &SegmentView, column: usize) -> Result<Place> {
        let path = self.path(column);
        let at = path.map_or_else(|| self.projection[column], |path| path.document);
        let Some(stored) = view.columns.get(at).copied().flatten() else {
            return Ok(Place::Default);
        };
        Ok(match path {
            None => Place::Column(stored),
            Some(path) => match path.stored(view, stored)? {
                Stored::Column(column) => Place::Column(column),
                Stored::Nowhere => Place::Null,
                Stored::Path(place) => Place::Path(place),
                Stored::Text => Place::Text(stored),
            },
        })
    }

    /// The zone of a column in a whole segment, without its footer; `None` if that may say more.
    pub fn described_zone(&self, view: &SegmentView, column: usize) -> Result<Option<Zone>> {
        let at = self.projection.get(column);
        let Some(stored) = at.and_then(|at| view.columns.get(*at).copied().flatten()) else {
            return Ok(None);
        };
        view.described_zone(stored, self.data_type(column))
    }

    /// The zone of a column in some blocks; `None` if nothing is known.
    pub fn zone(&self, view: &SegmentView, column: usize, span: Span) -> Result<Option<Zone>> {
        let value = match (self.stored(view, column)?, self.path(column)) {
            (Place::Column(stored), _) => return view.segment.zone_of(stored, span).map(Some),
            (Place::Path(place), Some(path)) => return path.zone(view, &place, span),
            (Place::Null, _) => Value::Null,
            (Place::Default, None) => self.declared(column).default.clone(),
            _ => return Ok(None),
        };
        let rows = view.segment.rows_of(span) as u32;
        let null_count = if value.is_null() { rows } else { 0 };
        Ok(Some(Zone { min: value.clone(), max: value, null_count, exact: true }))
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
        let len = rows.len();
        let bitmap = match self.stored(view, column)? {
            Place::Column(stored) => {
                count_bytes(view, stored, len, context);
                view.segment.filter(stored, predicate, rows.start, len)?
            }
            place => {
                let found = match (&place, self.path(column)) {
                    (Place::Path(place), Some(path)) => {
                        path.filter(view, place, predicate, rows.clone())?
                    }
                    _ => None,
                };
                match found {
                    Some(found) => found,
                    None => kernel::filter(&*self.decode(view, column, rows, context)?, predicate),
                }
            }
        };
        debug_assert_eq!(bitmap.len(), len, "a filter answers for every row");
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
        let Place::Column(stored) = self.stored(view, column)? else { return Ok(None) };
        let passed = view.segment.matches(stored, pattern, start, rows)?;
        if passed.is_some() {
            count_bytes(view, stored, rows.count_ones(), context);
        }
        Ok(passed)
    }

    /// The values of these rows of a segment.
    pub fn decode(
        &self,
        view: &SegmentView,
        column: usize,
        rows: Range<usize>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.stored(view, column)? {
            Place::Column(stored) if self.is_document(column) => {
                self.document(view, stored, rows, context)
            }
            Place::Column(stored) => {
                count_bytes(view, stored, rows.len(), context);
                let decoded = view.segment.decode(stored, rows.start, rows.len())?;
                Ok(Arc::new(decoded.with_type(self.data_type(column))))
            }
            Place::Text(stored) => {
                let documents = self.document(view, stored, rows, context)?;
                self.computed(column, &documents, context)
            }
            place => {
                let len = rows.len();
                self.elsewhere(view, column, (place, len), &PathRows::Range(rows), context)
            }
        }
    }

    /// Whether several columns may need the documents of a column.
    fn is_document(&self, column: usize) -> bool {
        !self.paths.is_empty()
            && column < self.projection.len()
            && self.declared(column).data_type == DataType::Json
    }

    /// Decodes documents, unless that was done last.
    fn document(
        &self,
        view: &SegmentView,
        stored: usize,
        rows: Range<usize>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        let which = (view.segment.id(), stored, rows.clone());
        let mut last = self.documents.borrow_mut();
        if let Some((known, vector)) = &*last
            && *known == which
        {
            return Ok(vector.clone());
        }
        count_bytes(view, stored, rows.len(), context);
        let vector = Arc::new(view.segment.decode(stored, rows.start, rows.len())?);
        *last = Some((which, vector.clone()));
        Ok(vector)
    }

    fn computed(
        &self,
        column: usize,
        documents: &Arc<Vector>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match self.path(column) {
            Some(path) => path.compute(documents, context),
            None => Ok(documents.clone()),
        }
    }

    /// Values that are in no column of their own, in a number of rows.
    fn elsewhere(
        &self,
        view: &SegmentView,
        column: usize,
        (place, len): (Place, usize),
        rows: &PathRows<'_>,
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        match (place, self.path(column)) {
            (Place::Path(place), Some(path)) => {
                count_share(view, place.bytes(), len, context);
                path.read(view, &place, rows, context)
            }
            (Place::Null, _) => Ok(self.stand_in(column, len)),
            _ => {
                let declared = self.declared(column);
                let all = Arc::new(Vector::constant(declared.data_type, &declared.default, len));
                self.computed(column, &all, context)
            }
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
        self.take_by(Segment::take, view, column, rows, context)
    }

    /// The values of single rows that a scan of a segment left over.
    pub fn take_in_scan(
        &self,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        self.take_by(Segment::take_in_scan, view, column, rows, context)
    }

    fn take_by(
        &self,
        take: fn(&Segment, usize, &[u32]) -> Result<Vector>,
        view: &SegmentView,
        column: usize,
        rows: &[u32],
        context: &Context<'_>,
    ) -> Result<Arc<Vector>> {
        debug_assert!(rows.is_sorted(), "rows of a segment are taken in their order");
        match self.stored(view, column)? {
            Place::Column(stored) | Place::Text(stored) => {
                count_bytes(view, stored, rows.len(), context);
                let taken = take(&view.segment, stored, rows)?;
                match self.stored(view, column)? {
                    Place::Text(_) => self.computed(column, &Arc::new(taken), context),
                    _ => Ok(Arc::new(taken.with_type(self.data_type(column)))),
                }
            }
            place => {
                let rows_of = PathRows::Single(rows);
                self.elsewhere(view, column, (place, rows.len()), &rows_of, context)
            }
        }
    }

    /// Rows of a block are fetched one by one if at most one in this many is wanted.
    pub fn seek_one_in(&self, view: &SegmentView, column: usize, block: usize) -> Result<usize> {
        match self.stored(view, column)? {
            Place::Column(stored) | Place::Text(stored) => view.segment.seek_one_in(stored, block),
            // Every row has the same value, which is as fast either way, or several columns are
            // read.
            Place::Default | Place::Null | Place::Path(_) => Ok(DEFAULT_ONE_IN),
        }
    }

    /// Loads blocks that will certainly be decoded into the cache, in one read.
    pub fn prefetch(
        &self,
        view: &SegmentView,
        columns: impl Iterator<Item = usize>,
        block: usize,
    ) -> Result<()> {
        let stored = self.blocks(view, columns, block)?;
        if stored.len() > 1 { view.segment.load(&stored) } else { Ok(()) }
    }

    /// The blocks of a segment that hold the same block of some columns, as (column of the file, block).
    pub fn blocks(
        &self,
        view: &SegmentView,
        columns: impl Iterator<Item = usize>,
        block: usize,
    ) -> Result<Vec<(usize, usize)>> {
        let mut stored: Vec<(usize, usize)> = Vec::new();
        for column in columns {
            match self.stored(view, column)? {
                Place::Column(at) | Place::Text(at) => stored.push((at, block)),
                Place::Path(place) => {
                    stored.extend(place.block_columns().iter().map(|at| (*at, block)));
                }
                Place::Default | Place::Null => {}
            }
        }
        stored.sort_unstable();
        stored.dedup();
        Ok(stored)
    }

    /// A placeholder for a column that no expression reads.
    pub fn stand_in(&self, column: usize, len: usize) -> Arc<Vector> {
        Arc::new(Vector::constant(self.data_type(column), &Value::Null, len))
    }
}

/// Where a segment has a column.
enum Place {
    /// In a column of the file.
    Column(usize),
    /// In documents that are text, in a column of the file.
    Text(usize),
    /// In parts of documents.
    Path(Arc<PathPlace>),
    /// Nowhere: the segment is older than the column, and all its rows have the column's default.
    Default,
    /// Nowhere: no document has it.
    Null,
}

/// Counts the average share of a column's bytes for this many rows.
fn count_bytes(view: &SegmentView, stored: usize, rows: usize, context: &Context<'_>) {
    // The read that follows reports a footer that cannot be read.
    let Ok(bytes) = view.segment.column_bytes(stored) else { return };
    count_share(view, bytes, rows, context);
}

/// Counts the average share of some bytes of a segment for this many rows.
fn count_share(view: &SegmentView, bytes: u64, rows: usize, context: &Context<'_>) {
    let total = view.segment.rows().max(1);
    context.statistics.bytes_read.add((bytes as u128 * rows as u128 / total as u128) as usize);
}
