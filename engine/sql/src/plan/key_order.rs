//! Detects sorts that a scan can satisfy because the table stores its rows in that order.
//!
//! Rows of a segment are ordered by the `SORT KEY`, then by the primary key. A sort by a prefix of
//! that order, all in one direction, needs no work. Columns that a filter fixes to one value may be
//! skipped, and sort columns after the whole primary key have no effect.

use crate::access::ScanOutput;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Plan, SortKey};
use nacre_types::{DataType, TableSchema};

/// The order in which a scan must return its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// Positions in the scan's output, most significant first. Nulls sort smallest.
    pub columns: Vec<usize>,
    /// Whether all of them are descending.
    pub descending: bool,
    /// Whether the columns are a prefix of the storage order, with no fixed column skipped before
    /// them.
    pub leading: bool,
}

impl KeyOrder {
    /// Returns the equivalent sort keys, given the types of the scan's output columns.
    pub fn sort_keys(&self, types: &[DataType]) -> Vec<SortKey> {
        let key = |at: &usize| SortKey {
            expr: Expr::column(*at, types[*at]),
            descending: self.descending,
            nulls_first: !self.descending,
        };
        self.columns.iter().map(key).collect()
    }
}

/// The order the scan under `input` (a scan, possibly below projections) must return so that the
/// sort can be dropped.
pub fn key_order(input: &Plan, keys: &[SortKey]) -> Option<KeyOrder> {
    let (output, filters, columns) = sorted_scan(input, keys)?;
    let (kept, unique) = kept_order(output.table)?;
    order_of(output, filters, &columns, keys, &kept, unique)
}

/// Like [`key_order`], for secondary indexes: the position of the first index that provides the
/// order, and the order.
pub fn index_order(input: &Plan, keys: &[SortKey]) -> Option<(usize, KeyOrder)> {
    let (output, filters, columns) = sorted_scan(input, keys)?;
    let table = output.table;
    table.indexes.iter().enumerate().find_map(|(at, index)| {
        let kept = table.index_positions(index)?;
        let nullable = |position: &usize| table.key_column(*position).nullable;
        let unique = index.unique && !kept.iter().any(nullable);
        Some((at, order_of(output, filters, &columns, keys, &kept, unique)?))
    })
}

/// The name of the index that [`index_order`] chooses.
pub(crate) fn index_order_name<'p>(input: &'p Plan, keys: &[SortKey]) -> Option<&'p str> {
    let (at, _) = index_order(input, keys)?;
    let (output, ..) = sorted_scan(input, keys)?;
    output.table.indexes.get(at).map(|index| index.name.as_str())
}

type SortedScan<'p> = (ScanOutput<'p>, &'p [Expr], Vec<usize>);

/// Finds the scan under a sort and the scan's output columns that the sort keys read.
fn sorted_scan<'p>(input: &'p Plan, keys: &[SortKey]) -> Option<SortedScan<'p>> {
    let mut columns: Vec<usize> =
        keys.iter().map(|key| column(&key.expr)).collect::<Option<_>>()?;
    let mut plan = input;
    while let Plan::Project { input, exprs, .. } = plan {
        columns = columns.iter().map(|at| column(exprs.get(*at)?)).collect::<Option<_>>()?;
        plan = input;
    }
    let Plan::Scan { filters, .. } = plan else { return None };
    Some((ScanOutput::of(plan)?, filters, columns))
}

/// The scan order, if rows stored by the `kept` columns (`unique` or not) satisfy the sort.
fn order_of(
    output: ScanOutput<'_>,
    filters: &[Expr],
    columns: &[usize],
    keys: &[SortKey],
    kept: &[usize],
    unique: bool,
) -> Option<KeyOrder> {
    let descending = keys.first()?.descending;
    let mut fixed = Vec::new();
    filters.iter().for_each(|filter| fixed_columns(filter, &mut fixed));
    let mut order = KeyOrder { columns: Vec::new(), descending, leading: true };
    let mut kept = kept.iter();
    let is_fixed = |position: &usize| fixed.iter().any(|at| output.column(*at) == Some(*position));
    'keys: for (key, at) in keys.iter().zip(columns) {
        let position = &output.column(*at)?;
        let is_known = |known: &usize| output.column(*known) == Some(*position);
        if fixed.contains(at) || order.columns.iter().any(is_known) {
            continue;
        }
        if unique && !order.columns.is_empty() && kept.as_slice().iter().all(is_fixed) {
            // The skipped keys cannot break ties: the key prefix is already unique.
            break;
        }
        let field = output.table.key_column(*position);
        // Zone maps of floats do not cover NaN.
        if key.descending != descending
            || field.data_type.is_float()
            || (field.nullable && key.nulls_first == descending)
        {
            return None;
        }
        for next in kept.by_ref() {
            if next == position {
                order.columns.push(*at);
                continue 'keys;
            }
            if !is_fixed(next) {
                return None;
            }
            order.leading &= !order.columns.is_empty();
        }
        return None;
    }
    (!order.columns.is_empty()).then_some(order)
}

/// Table positions of the columns that order the rows of a segment, and whether they are unique.
fn kept_order(table: &TableSchema) -> Option<(Vec<usize>, bool)> {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice());
    let mut columns = table.sort_key.as_ref().map(|sort| sort.columns.clone()).unwrap_or_default();
    for at in key.unwrap_or_default() {
        if !columns.contains(at) {
            columns.push(*at);
        }
    }
    (!columns.is_empty()).then_some((columns, key.is_some()))
}

/// Whether rows ordered by primary key alone, as in memory, are also in segment order.
pub fn kept_by_key(table: &TableSchema) -> bool {
    let key = table.primary_key.as_ref();
    key.is_some_and(|key| {
        table.sort_key.as_ref().is_none_or(|sort| key.columns.starts_with(&sort.columns))
    })
}

fn column(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    }
}

/// Collects the columns that have a single value in all rows passing the filter.
fn fixed_columns(filter: &Expr, fixed: &mut Vec<usize>) {
    fn constant(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Parameter(_) => true,
            ExprKind::Cast(inner) => constant(inner),
            _ => false,
        }
    }
    match &filter.kind {
        ExprKind::And(list) => list.iter().for_each(|filter| fixed_columns(filter, fixed)),
        ExprKind::Binary { op: BinaryOp::Equal, left, right } => match (&left.kind, &right.kind) {
            (ExprKind::Column(at), _) if constant(right) => fixed.push(*at),
            (_, ExprKind::Column(at)) if constant(left) => fixed.push(*at),
            _ => {}
        },
        _ => {}
    }
}
