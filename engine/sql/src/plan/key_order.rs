//! Sorts whose order is one that a table's rows are kept in, so that a scan can give it.
//!
//! Rows of a segment are in the order of the `SORT KEY`, then of the primary key. A sort by the first columns of that
//! order, all in one direction, needs no sorting; columns that a filter fixes to one value may be left out, and what
//! comes after the whole primary key decides nothing.

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Plan, SortKey};
use nacre_types::{DataType, TableSchema};

/// The order in which a scan has to give its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyOrder {
    /// Positions in the scan's output that rows are ordered by, most significant first. Nulls are the smallest.
    pub columns: Vec<usize>,
    /// All of them descending.
    pub descending: bool,
    /// The columns are the first of the order that the rows are kept in: none before them is fixed by a filter.
    pub leading: bool,
}

impl KeyOrder {
    /// The same as the keys of a sort over columns of these types.
    pub fn sort_keys(&self, types: &[DataType]) -> Vec<SortKey> {
        let key = |at: &usize| SortKey {
            expr: Expr::column(*at, types[*at]),
            descending: self.descending,
            nulls_first: !self.descending,
        };
        self.columns.iter().map(key).collect()
    }
}

/// The order that a sort's input, a scan perhaps under projections, has to give for the sort to be left out.
pub fn key_order(input: &Plan, keys: &[SortKey]) -> Option<KeyOrder> {
    let (table, projection, filters, columns) = sorted_scan(input, keys)?;
    let (kept, unique) = kept_order(table)?;
    order_of(table, projection, filters, &columns, keys, &kept, unique)
}

/// The same for the order of a secondary index: its position, and the order. The first index that gives it.
pub fn index_order(input: &Plan, keys: &[SortKey]) -> Option<(usize, KeyOrder)> {
    let (table, projection, filters, columns) = sorted_scan(input, keys)?;
    table.indexes.iter().enumerate().find_map(|(at, index)| {
        let kept = table.index_positions(index)?;
        let unique = index.unique && !kept.iter().any(|position| table.columns[*position].nullable);
        Some((at, order_of(table, projection, filters, &columns, keys, &kept, unique)?))
    })
}

/// The name of that index.
pub(crate) fn index_order_name<'p>(input: &'p Plan, keys: &[SortKey]) -> Option<&'p str> {
    let (at, _) = index_order(input, keys)?;
    let (table, ..) = sorted_scan(input, keys)?;
    table.indexes.get(at).map(|index| index.name.as_str())
}

type SortedScan<'p> = (&'p TableSchema, &'p [usize], &'p [Expr], Vec<usize>);

/// The scan under a sort and the output columns of it that the sort is by.
fn sorted_scan<'p>(input: &'p Plan, keys: &[SortKey]) -> Option<SortedScan<'p>> {
    let mut columns: Vec<usize> =
        keys.iter().map(|key| column(&key.expr)).collect::<Option<_>>()?;
    let mut plan = input;
    while let Plan::Project { input, exprs, .. } = plan {
        columns = columns.iter().map(|at| column(exprs.get(*at)?)).collect::<Option<_>>()?;
        plan = input;
    }
    let Plan::Scan { table, projection, filters } = plan else { return None };
    Some((table, projection, filters, columns))
}

/// The order, if rows that are in the order of the `kept` columns, `unique` or not, are in that of the sort.
fn order_of(
    table: &TableSchema,
    projection: &[usize],
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
    let is_fixed = |position: &usize| fixed.iter().any(|at| projection.get(*at) == Some(position));
    'keys: for (key, at) in keys.iter().zip(columns) {
        let position = projection.get(*at)?;
        if fixed.contains(at) || order.columns.iter().any(|known| projection[*known] == *position) {
            continue;
        }
        if unique && !order.columns.is_empty() && kept.as_slice().iter().all(is_fixed) {
            // No two rows are left to tell apart.
            break;
        }
        let field = table.columns.get(*position)?;
        // Zone maps of floats say nothing about NaN.
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

/// Table positions of the columns that rows of a segment are in the order of, and whether they are unique.
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

/// Whether rows that are kept by primary key alone, as those in memory are, have the order that segments have.
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

/// Columns that have one value in all rows that pass.
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
