//! Rows that have the least and the greatest value of every column of a table, for `MIN` and `MAX`
//! alone: the bounds of segments and blocks of which no row is deleted, and all other rows.

use super::morsel::Morsel;
use super::source::{Locators, RowSource, StoredColumns};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::{Batch, VectorBuilder};
use nacre_function::aggregate::extreme::{MAX, MIN};
use nacre_operator::context::Context;
use nacre_operator::operator::protocol::Operator;
use nacre_sql::expr::{Aggregate, ExprKind};
use nacre_sql::plan::Plan;
use nacre_table::{SegmentView, Span, TableView, Zone};
use nacre_types::{Result, TableSchema, Value, limits};
use std::sync::Arc;

/// The scan below an aggregation that only needs the least and the greatest values of its columns.
pub(crate) fn extremes_of(plan: &Plan) -> Option<ScanSpec<'_>> {
    let Plan::Aggregate { input, groups, aggregates, .. } = plan else { return None };
    let is_extreme = |aggregate: &Aggregate| {
        let is_listed = aggregate.function == (&MIN).into() || aggregate.function == (&MAX).into();
        // The least of several doubles that are equal is not the first of them.
        let is_column = |arg: &nacre_sql::expr::Expr| {
            matches!(arg.kind, ExprKind::Column(_)) && !arg.data_type.is_float()
        };
        is_listed && aggregate.filter.is_none() && aggregate.args.iter().all(is_column)
    };
    let spec =
        ScanSpec::of(input).filter(|spec| spec.filters.is_empty() && spec.paths.is_empty())?;
    (groups.is_empty() && !aggregates.is_empty() && aggregates.iter().all(is_extreme))
        .then_some(spec)
}

/// Rows that have the extreme values of a scan without filters.
pub(crate) fn build_extremes(
    spec: ScanSpec<'_>,
    context: &Context<'_>,
) -> Result<Box<dyn Operator>> {
    let view = view_of(&context.table_of(spec.schema)?, spec, context);
    let (schema, projection) = (spec.schema.clone(), spec.projection.to_vec());
    let unread = Some(view);
    let (rows, zones, current) = (Vec::new(), Vec::new(), None);
    Ok(Box::new(Extremes { schema, projection, unread, zones, rows, current }))
}

struct Extremes {
    schema: Arc<TableSchema>,
    projection: Vec<usize>,
    /// Until it is divided.
    unread: Option<TableView>,
    /// Rows of bounds, by column, that are not returned yet.
    zones: Vec<Vec<Value>>,
    /// Rows that have to be read, in reverse order.
    rows: Vec<Morsel>,
    current: Option<RowSource>,
}

impl Extremes {
    fn spec(&self) -> ScanSpec<'_> {
        let (schema, projection) = (&self.schema, &self.projection[..]);
        ScanSpec { schema, projection, paths: &[], filters: &[], keys: &[] }
    }

    /// Divides a view into rows of bounds, and morsels.
    fn divide(
        &self,
        view: &TableView,
        context: &Context<'_>,
    ) -> Result<(Vec<Vec<Value>>, Vec<Morsel>)> {
        let columns = StoredColumns::new(self.spec());
        let source = RowSource::new(self.spec(), view.clone(), Locators::Leave, context);
        let (mut zones, mut rows) = (Vec::new(), Vec::new());
        for morsel in source.morsels(limits::MAX_SEGMENT_ROWS, context)? {
            let Morsel::Blocks { view, blocks, learned } = morsel else {
                rows.push(morsel);
                continue;
            };
            let is_whole = blocks.len() == view.segment.blocks();
            if is_whole
                && view.deleted.as_ref().is_none_or(|deleted| deleted.is_empty())
                && self.take_bounds(&columns, &view, Span::Segment, &mut zones)?
            {
                context.statistics.blocks_skipped.add(blocks.len());
                continue;
            }
            let mut left = Vec::new();
            for block in blocks {
                let from = (block * limits::BLOCK_ROWS) as u32;
                let rows = from..from + view.segment.block_rows(block) as u32;
                let is_untouched =
                    view.deleted.as_ref().is_none_or(|gone| gone.range_cardinality(rows) == 0);
                if is_untouched
                    && self.take_bounds(&columns, &view, Span::Block(block), &mut zones)?
                {
                    context.statistics.blocks_skipped.add(1);
                } else {
                    left.push(block);
                }
            }
            if !left.is_empty() {
                rows.push(Morsel::Blocks { view, blocks: left, learned });
            }
        }
        rows.reverse();
        Ok((zones, rows))
    }

    /// Adds two rows of the bounds of all columns, if each is a value of a row. Returns whether it did.
    fn take_bounds(
        &self,
        columns: &StoredColumns,
        view: &SegmentView,
        span: Span,
        zones: &mut Vec<Vec<Value>>,
    ) -> Result<bool> {
        let bounds = (0..columns.len()).map(|column| columns.zone(view, column, span));
        let Some(bounds) = bounds.collect::<Result<Option<Vec<Zone>>>>()? else { return Ok(false) };
        let is_exact = bounds.iter().all(|zone| zone.exact);
        if is_exact {
            zones.push(bounds.iter().map(|zone| zone.min.clone()).collect());
            zones.push(bounds.into_iter().map(|zone| zone.max).collect());
        }
        Ok(is_exact)
    }

    /// The next rows of bounds.
    fn next_bounds(&mut self) -> Option<Batch> {
        let rest = self.zones.len().saturating_sub(limits::VECTOR_ROWS);
        let rows = self.zones.split_off(rest);
        let vector = |column: usize| {
            let data_type = self.schema.columns[self.projection[column]].data_type;
            let mut builder = VectorBuilder::new(data_type);
            rows.iter().for_each(|row| builder.push(&row[column]));
            Arc::new(builder.finish())
        };
        let columns = (0..self.projection.len()).map(vector).collect();
        (!rows.is_empty()).then(|| Batch::new(columns, rows.len()))
    }
}

impl Operator for Extremes {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        if let Some(view) = &self.unread {
            (self.zones, self.rows) = context.counted(|context| self.divide(view, context))?;
            self.unread = None;
        }
        if let Some(batch) = self.next_bounds() {
            return Ok(Some(batch));
        }
        loop {
            if let Some(source) = &mut self.current {
                if let Some((batch, _)) = source.next(context)? {
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(morsel) = self.rows.pop() else { return Ok(None) };
            self.current = Some(RowSource::of_morsel(self.spec(), &morsel, context));
        }
    }
}
