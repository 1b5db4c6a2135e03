//! Decides what a sort with a limit tells the scans below it.

use crate::scan::{ScanSpec, build_ahead};
use nacre_operator::context::Context;
use nacre_operator::join_filter::{Descending, KeyFilter, RuntimeFilters};
use nacre_operator::sort::{FirstKey, Sort, SortedAhead};
use nacre_sql::expr::{Expr, ExprKind};
use nacre_sql::expr_may_fail;
use nacre_sql::plan::{JoinKind, Plan, SortKey};
use nacre_types::Result;

/// Up to this many rows are looked for ahead of the input.
const MOST_AHEAD: u64 = 4096;

/// The first key of a sort; `None` if there is no limit, or if the key is no column or of a type that
/// is not bounded. Adds it to the filters of the input where scans can use it.
pub(super) fn first_key(
    input: &Plan,
    keys: &[SortKey],
    limit: Option<u64>,
    filters: &mut RuntimeFilters,
    context: &Context<'_>,
) -> Result<Option<FirstKey>> {
    let (Some(limit), Some(key)) = (limit, keys.first()) else { return Ok(None) };
    let Some(column) = column(&key.expr) else { return Ok(None) };
    let order = Descending(key.descending);
    let Some(filter) = KeyFilter::of_sort(key.expr.data_type, order, key.nulls_first) else {
        return Ok(None);
    };
    let mut first = FirstKey { column, is_only: keys.len() == 1, filter, ahead: None };
    match below(input, column) {
        Below::Nothing => return Ok(Some(first)),
        Below::Filtered => {}
        Below::Scanned(spec, at) if limit <= MOST_AHEAD => {
            let rows = build_ahead(spec, at, key, limit as usize, context)?;
            first.ahead = rows.map(|rows| {
                let data_type = key.expr.data_type;
                let key = SortKey { expr: Expr::column(0, data_type), ..key.clone() };
                SortedAhead::new(Box::new(Sort::new(
                    rows,
                    &[data_type],
                    vec![key],
                    Some(limit),
                    None,
                )))
            });
        }
        Below::Scanned(..) => {}
    }
    filters.0.push((column, first.filter.clone()));
    Ok(Some(first))
}

/// Where the values of a column come from.
enum Below<'p> {
    /// Not from a scan, or rows that are left out could fail.
    Nothing,
    /// From a scan, some of whose rows are filtered out or multiplied.
    Filtered,
    /// From this scan, every row of it.
    Scanned(ScanSpec<'p>, usize),
}

/// Where a column of a plan comes from.
///
/// A row that is left out cannot raise an error, and which rows are left out depends on where they
/// are stored; so no expression on the way may fail.
fn below(plan: &Plan, at: usize) -> Below<'_> {
    let filtered = |below| match below {
        Below::Scanned(..) => Below::Filtered,
        other => other,
    };
    match plan {
        Plan::Scan { filters, .. } if !filters.iter().any(expr_may_fail) => {
            ScanSpec::of(plan).map_or(Below::Nothing, |spec| Below::Scanned(spec, at))
        }
        Plan::Project { input, exprs, .. } if !exprs.iter().any(expr_may_fail) => {
            exprs.get(at).and_then(column).map_or(Below::Nothing, |at| below(input, at))
        }
        Plan::Filter { input, predicate } if !expr_may_fail(predicate) => {
            filtered(below(input, at))
        }
        Plan::Join { left, kind, keys, residual, .. }
            if matches!(
                kind,
                JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti
            ) && at < left.fields().len()
                && !keys
                    .iter()
                    .any(|(left, right)| expr_may_fail(left) || expr_may_fail(right))
                && !residual.iter().any(expr_may_fail) =>
        {
            filtered(below(left, at))
        }
        _ => Below::Nothing,
    }
}

fn column(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    }
}
