//! Access to a table: the scan over segments and rowstore, and the point read that replaces it when the
//! filters fix the whole primary key.

use super::index::{self, Found, Lookup};
use super::point::{LocatingPoint, PointRead, only_partition, point_key};
use super::source::{Origin, Source};
use super::{by_index, ordered, source};
use crate::context::Context;
use crate::join_filter::Wanted;
use crate::operator::protocol::{LocatingOperator, Operator};
use crate::parallel::Morsel;
use crate::sort::Sort;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_sql::plan::Plan;
use nacre_sql::{KeyOrder, index_access};
use nacre_table::{RowLocator, Table, TableView};
use nacre_types::{DataType, Result, TableSchema};
use std::sync::Arc;

/// Rows picked one by one take as long as so many times more that are read together.
const PICKED_ROWS: usize = 16;

/// The operator of `Plan::Scan`. With `readers`, only the output columns that these expressions look at are
/// filled; the others hold nulls. Rows that do not pass the `wanted` filters may be left out.
pub(crate) fn build(
    schema: &Arc<TableSchema>,
    projection: &[usize],
    filters: &[Expr],
    readers: Option<&[&Expr]>,
    wanted: &Wanted,
    context: &Context<'_>,
) -> Result<Box<dyn Operator>> {
    let mut source = match context.morsel {
        Some(morsel) => Source::of_morsel(schema, morsel, projection, filters, context),
        None => {
            let table = context.table_of(schema)?;
            if let Some(key) = point_key(schema, projection, filters, context) {
                return Ok(Box::new(PointRead::new(table, key, projection, filters)));
            }
            let view = view(&table, projection, filters, context);
            if index::may_help(schema, projection, filters, wanted) {
                let mut source =
                    Source::new(schema, view.share(), projection, filters, false, context);
                source.look_up_later(view);
                source
            } else {
                source(schema, view, projection, filters, false, context)?
            }
        }
    };
    if let Some(readers) = readers {
        let mut needed = vec![false; projection.len()];
        readers.iter().for_each(|expr| source::mark_columns(expr, &mut needed));
        source.need_only(needed);
    }
    source.want(wanted.clone());
    Ok(Box::new(Scan(source)))
}

/// An order that a scan could give its rows in.
pub(crate) enum Order<'a> {
    /// That of the sort key or the primary key.
    Kept(&'a KeyOrder),
    /// That of an index, by its position.
    Index(usize, &'a KeyOrder),
}

impl Order<'_> {
    fn keys(&self) -> &KeyOrder {
        match self {
            Order::Kept(keys) | Order::Index(_, keys) => keys,
        }
    }
}

/// The rows of a scan in an order, about so many of them; none when they should rather be sorted.
pub(crate) fn build_ordered(
    scan: &Plan,
    order: &Order<'_>,
    limit: Option<u64>,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let Plan::Scan { table: schema, projection, filters } = scan else { return Ok(None) };
    let table = context.table_of(schema)?;
    if point_key(schema, projection, filters, context).is_some() {
        return Ok(None);
    }
    let view = view(&table, projection, filters, context);
    let by_index = |only_if_alone: bool| -> Result<Option<Box<dyn Operator>>> {
        let (Order::Index(index, keys), Some(limit)) = (order, limit) else { return Ok(None) };
        let access = index_access(schema, projection, filters);
        if by_index::is_alone(access.as_ref(), *index) != only_if_alone {
            return Ok(None);
        }
        let built =
            by_index::build(&Lookup::new(schema, &view, context), *index, keys, limit, scan)?;
        Ok(built.map(|operator| Box::new(operator) as Box<dyn Operator>))
    };
    if let Some(operator) = by_index(true)? {
        return Ok(Some(operator));
    }
    if let Some(found) =
        index::find(schema, &view, projection, filters, &Wanted::default(), context)?
    {
        let mut source = Source::new(schema, view, projection, filters, false, context);
        source.only(found);
        let types: Vec<DataType> =
            projection.iter().map(|at| schema.columns[*at].data_type).collect();
        let keys = order.keys().sort_keys(&types);
        return Ok(Some(Box::new(Sort::new(Box::new(Scan(source)), &types, keys, limit))));
    }
    if let Some(operator) = by_index(false)? {
        return Ok(Some(operator));
    }
    match order {
        Order::Kept(keys) => {
            ordered::build(schema, projection, filters, keys, limit, view, context)
        }
        Order::Index(..) => Ok(None),
    }
}

/// What a scan has to read, cut for several threads.
pub(crate) struct Cut {
    /// In the scan's order.
    pub morsels: Vec<Morsel>,
    /// What indexes may be asked about when the joins above know their keys ([`Cut::look_up`]).
    later: Option<TableView>,
    /// Indexes have found the rows: they are worth it however few they are.
    pub is_found: bool,
}

impl Cut {
    fn found(found: Found, context: &Context<'_>) -> Cut {
        // Rows that are picked one by one take longer than those beside each other.
        let rows = context.threads.morsel_rows.div_ceil(PICKED_ROWS);
        let mut morsels = found.morsels(rows);
        if morsels.is_empty() {
            morsels.push(Morsel::Batches(Vec::new()));
        }
        Cut { morsels, later: None, is_found: true }
    }

    /// Asks the indexes of the scan again, for which the joins above want these rows: what they find is to be read.
    pub fn look_up(
        &mut self,
        schema: &TableSchema,
        projection: &[usize],
        filters: &[Expr],
        wanted: &Wanted,
        context: &Context<'_>,
    ) -> Result<()> {
        if let Some(view) = self.later.take()
            && let Some(found) = index::find(schema, &view, projection, filters, wanted, context)?
        {
            *self = Cut::found(found, context);
        }
        Ok(())
    }
}

/// Cuts what a scan has to read. `None` when it is not worth it. `under_joins`: joins above will want only rows of their
/// keys, so indexes are asked later.
pub(crate) fn morsels(
    schema: &Arc<TableSchema>,
    projection: &[usize],
    filters: &[Expr],
    under_joins: bool,
    context: &Context<'_>,
) -> Result<Option<Cut>> {
    let table = context.table_of(schema)?;
    // One row by its key, or nothing but a number of rows, which is known without reading them.
    if point_key(schema, projection, filters, context).is_some()
        || (projection.is_empty() && filters.is_empty())
    {
        return Ok(None);
    }
    let view_once = view(&table, projection, filters, context);
    let mut later = None;
    if under_joins {
        later = Some(view_once.share());
    } else if let Some(found) =
        index::find(schema, &view_once, projection, filters, &Wanted::default(), context)?
    {
        return Ok(Some(Cut::found(found, context)));
    }
    let source = Source::new(schema, view_once.share(), projection, filters, false, context);
    let morsels = source.morsels(view_once, context.threads.morsel_rows, context);
    Ok(Some(Cut { morsels, later, is_found: false }))
}

/// Like [`build`], with a locator for each row.
pub(crate) fn build_locating(
    schema: &Arc<TableSchema>,
    projection: &[usize],
    filters: &[Expr],
    context: &Context<'_>,
) -> Result<Box<dyn LocatingOperator>> {
    let table = context.table_of(schema)?;
    if let Some(key) = point_key(schema, projection, filters, context) {
        return Ok(Box::new(LocatingPoint(PointRead::new(table, key, projection, filters))));
    }
    let view = view(&table, projection, filters, context);
    Ok(Box::new(LocatingScan(source(schema, view, projection, filters, true, context)?)))
}

/// The rows of a view that pass the filters: those that indexes find, or all.
fn source(
    schema: &Arc<TableSchema>,
    view: TableView,
    projection: &[usize],
    filters: &[Expr],
    locators: bool,
    context: &Context<'_>,
) -> Result<Source> {
    let found = index::find(schema, &view, projection, filters, &Wanted::default(), context)?;
    let mut source = Source::new(schema, view, projection, filters, locators, context);
    if let Some(found) = found {
        source.only(found);
    }
    Ok(source)
}

/// What has to be looked at of a table: one partition only when the filters fix the shard key.
fn view(
    table: &Arc<Table>,
    projection: &[usize],
    filters: &[Expr],
    context: &Context<'_>,
) -> TableView {
    let mut view = context.transaction.view(table);
    if let Some(partition) = only_partition(table, projection, filters, context) {
        view.only_partition(partition);
        context.statistics.partitions_skipped.add(table.partitions().len() - 1);
    }
    view
}

struct Scan(Source);

impl Operator for Scan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        Ok(self.0.next(context)?.map(|(batch, _)| batch))
    }
}

struct LocatingScan(Source);

impl LocatingOperator for LocatingScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<(Batch, Vec<RowLocator>)>> {
        let Some((batch, origin)) = self.0.next(context)? else { return Ok(None) };
        let at = |row: u32| match &origin {
            Origin::Segment { partition, segment, start } => RowLocator::Segment {
                partition: *partition,
                segment: *segment,
                row: *start as u32 + row,
            },
            Origin::SegmentRows { partition, segment, rows } => RowLocator::Segment {
                partition: *partition,
                segment: *segment,
                row: rows[row as usize],
            },
            Origin::Memory(locators) => locators[row as usize].clone(),
        };
        let locators = match &batch.selection {
            Some(selection) => selection.iter().map(|row| at(*row)).collect(),
            None => (0..batch.rows as u32).map(at).collect(),
        };
        Ok(Some((batch.compact(), locators)))
    }
}
