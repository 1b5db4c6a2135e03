//! The operator of a scan: by key, by index, or block by block.

use super::index;
use super::morsel::Morsel;
use super::point::{LocatingPoint, PointRead, point_key};
use super::source::{Locators, Origin, RowSource};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::operator::protocol::{LocatedColumns, LocatingOperator, Operator};
use nacre_sql::expr::Expr;
use nacre_table::{RowLocator, TableView};
use nacre_types::Result;

/// Requirements on a scan beyond its plan.
pub(crate) struct ScanRequest<'a> {
    /// The expressions that read the output, if known: columns that none of them reads hold nulls.
    pub readers: Option<&'a [&'a Expr]>,
    /// Rows that do not pass these may be dropped.
    pub filters: &'a RuntimeFilters,
    /// The part to read on one of several threads; `None` for the whole table.
    pub morsel: Option<&'a Morsel>,
}

/// The operator of a scan.
pub(crate) fn build(
    spec: ScanSpec<'_>,
    request: &ScanRequest<'_>,
    context: &Context<'_>,
) -> Result<Box<dyn Operator>> {
    let mut source = match request.morsel {
        Some(morsel) => RowSource::of_morsel(spec, morsel, context),
        None => {
            let table = context.table_of(spec.schema)?;
            if let Some(key) = point_key(spec, context) {
                let point = PointRead::new(table, key, spec.projection, spec.filters);
                return Ok(Box::new(point));
            }
            let view = view_of(&table, spec, context);
            if index::may_help(spec, request.filters) {
                // The joins above know their keys only when the first row is read.
                let mut source = RowSource::new(spec, view.clone(), Locators::Leave, context);
                source.look_up_later(view);
                source
            } else {
                source_of(spec, view, Locators::Leave, context)?
            }
        }
    };
    if let Some(readers) = request.readers {
        source.need_only(spec.columns_of(readers.iter().copied()));
    }
    source.apply(request.filters.clone());
    Ok(Box::new(Scan(source)))
}

/// Like [`build`], with a locator for each row.
pub(crate) fn build_locating(
    spec: ScanSpec<'_>,
    rows: LocatedColumns,
    context: &Context<'_>,
) -> Result<Box<dyn LocatingOperator>> {
    let table = context.table_of(spec.schema)?;
    if let Some(key) = point_key(spec, context) {
        let point = PointRead::new(table, key, spec.projection, spec.filters);
        return Ok(Box::new(LocatingPoint(point)));
    }
    let view = view_of(&table, spec, context);
    let mut source = source_of(spec, view, Locators::Make, context)?;
    // Parts of documents serve the filters only.
    let width = spec.projection.len();
    let is_needed = |at: usize| at < width && rows == LocatedColumns::All;
    source.need_only((0..spec.width()).map(is_needed).collect());
    Ok(Box::new(LocatingScan { source, width }))
}

/// The rows of a view that pass the filters: those that indexes find, or all.
pub(super) fn source_of(
    spec: ScanSpec<'_>,
    view: TableView,
    locators: Locators,
    context: &Context<'_>,
) -> Result<RowSource> {
    let found = index::find(spec, &view, &RuntimeFilters::default(), context)?;
    let mut source = RowSource::new(spec, view, locators, context);
    if let Some(found) = found {
        source.read_only(found);
    }
    Ok(source)
}

/// Rows in the order of the table.
struct Scan(RowSource);

impl Operator for Scan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        Ok(self.0.next(context)?.map(|(batch, _)| batch))
    }
}

/// Rows in the order of the table, with their locators.
struct LocatingScan {
    source: RowSource,
    /// Number of columns to return.
    width: usize,
}

impl LocatingOperator for LocatingScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let Some((mut batch, origin)) = self.source.next(context)? else { return Ok(None) };
        batch.columns.truncate(self.width);
        let at = |row: u32| match &origin {
            Origin::Segment { view, start } => RowLocator::Segment {
                partition: view.partition,
                segment: view.segment.id(),
                row: *start as u32 + row,
            },
            Origin::SegmentRows { view, rows } => RowLocator::Segment {
                partition: view.partition,
                segment: view.segment.id(),
                row: rows[row as usize],
            },
            Origin::Memory(locators) => locators[row as usize].clone(),
        };
        let locators: Vec<RowLocator> = match &batch.selection {
            Some(selection) => selection.iter().map(|row| at(*row)).collect(),
            None => (0..batch.rows as u32).map(at).collect(),
        };
        let batch = batch.compact();
        debug_assert_eq!(batch.rows, locators.len(), "every row has a locator");
        Ok(Some((batch, locators)))
    }
}
