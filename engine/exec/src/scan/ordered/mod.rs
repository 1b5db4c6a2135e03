//! Ordered scans, where they are cheaper than sorting.

mod by_index;
mod by_key;

use super::index::{self, Lookup};
use super::point::point_key;
use super::source::{Locators, RowSource};
use super::spec::ScanSpec;
use super::view::view_of;
use nacre_column::Batch;
use nacre_operator::context::Context;
use nacre_operator::join_filter::RuntimeFilters;
use nacre_operator::operator::protocol::{Operator, Rebuild};
use nacre_operator::sort::Sort;
use nacre_sql::plan::Plan;
use nacre_sql::{KeyOrder, index_access};
use nacre_types::Result;

/// An order in which a scan could return its rows.
pub(crate) enum Order<'a> {
    /// The order of the sort key or the primary key.
    Kept(&'a KeyOrder),
    /// The order of an index, by its position.
    Index(usize, &'a KeyOrder),
}

impl Order<'_> {
    fn keys(&self) -> &KeyOrder {
        match self {
            Order::Kept(keys) | Order::Index(_, keys) => keys,
        }
    }
}

/// Builds an ordered scan of about `limit` rows; `None` if they should be sorted instead. `rebuild`
/// builds the operator of the scan without an order, if that turns out to be cheaper.
pub(crate) fn build(
    scan: &Plan,
    order: &Order<'_>,
    limit: Option<u64>,
    rebuild: fn(Plan) -> Rebuild,
    context: &Context<'_>,
) -> Result<Option<Box<dyn Operator>>> {
    let Some(spec) = ScanSpec::of(scan) else { return Ok(None) };
    let table = context.table_of(spec.schema)?;
    if point_key(spec, context).is_some() {
        return Ok(None);
    }
    let view = view_of(&table, spec, context);
    let access = index_access(spec.output(), spec.filters);
    let by_index = match (order, limit) {
        (Order::Index(index, keys), Some(limit)) => {
            Some(by_index::Request { index: *index, order: keys, limit })
        }
        _ => None,
    };
    // Try other indexes that can serve the filters first: they may find fewer rows.
    let is_alone = |request: &by_index::Request<'_>| by_index::is_alone(access.as_ref(), request);
    let build_by_index = |request: &by_index::Request<'_>| {
        context.counted(|context| {
            let lookup = Lookup::new(spec.schema, &view, context);
            by_index::build(spec, &lookup, request, || rebuild(scan.clone()))
        })
    };
    if let Some(request) = by_index.as_ref().filter(|request| is_alone(request))
        && let Some(operator) = build_by_index(request)?
    {
        return Ok(Some(Box::new(operator)));
    }
    if let Some(found) = index::find(spec, &view, &RuntimeFilters::default(), context)? {
        let types = spec.types();
        let keys = order.keys().sort_keys(&types);
        let mut source = RowSource::new(spec, view, Locators::Leave, context);
        source.read_only(found);
        return Ok(Some(Box::new(Sort::new(Box::new(Found(source)), &types, keys, limit, None))));
    }
    if let Some(request) = by_index.as_ref().filter(|request| !is_alone(request))
        && let Some(operator) = build_by_index(request)?
    {
        return Ok(Some(Box::new(operator)));
    }
    match order {
        Order::Kept(keys) => by_key::build(spec, keys, limit, view, context),
        Order::Index(..) => Ok(None),
    }
}

/// The rows that indexes found, in no order.
struct Found(RowSource);

impl Operator for Found {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        Ok(self.0.next(context)?.map(|(batch, _)| batch))
    }
}
