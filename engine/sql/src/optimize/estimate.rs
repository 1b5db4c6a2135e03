//! How many rows a plan yields, roughly: from table sizes and what the storage knows of columns (bounds, nulls,
//! numbers of distinct values); where it knows nothing, fixed shares. Only ratios matter, and only for join order
//! and build sides.

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Catalog, JoinKind, Plan};
use nacre_types::hash::Map;
use nacre_types::{Value, key};

/// What is believed of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnEstimate {
    /// Number of its distinct values; 0 when unknown.
    pub distinct: f64,
    /// Least and greatest value, where it is a number of some kind.
    pub bounds: Option<(f64, f64)>,
    /// Share of nulls.
    pub nulls: f64,
}

/// Estimates of an expression's columns.
pub(crate) type Columns<'a> = &'a dyn Fn(usize) -> Option<ColumnEstimate>;

/// Share of rows that are equal to something of which nothing is known.
const EQUAL: f64 = 0.05;
/// Share of rows on one side of something.
const RANGE: f64 = 0.3;
/// Of groups, of which an aggregate is compared with something.
const HAVING: f64 = 0.1;

/// Rows of a plan's output.
pub(crate) fn rows(plan: &Plan, catalog: &dyn Catalog) -> f64 {
    let stats = |column: usize| column_of_inputs(plan, column, catalog);
    let rows = match plan {
        Plan::Scan { table, projection, filters } => {
            let equal = |column: usize| filters.iter().any(|f| is_equal_to_constant(f, column));
            let is_equal = |c: &usize| projection.iter().position(|p| p == c).is_some_and(equal);
            if table.unique_sets(false).any(|set| set.iter().all(is_equal)) {
                return 1.0;
            }
            let own = |column: usize| self::column(plan, column, catalog);
            catalog.row_count(table) as f64 * conjunction(filters, &own)
        }
        Plan::Values { rows, .. } => rows.len() as f64,
        Plan::Filter { input, predicate } => {
            let share = match over_aggregate(input) {
                true => HAVING,
                false => selectivity(predicate, &stats),
            };
            rows(input, catalog) * share
        }
        Plan::Project { input, .. } | Plan::Sort { input, .. } | Plan::Window { input, .. } => rows(input, catalog),
        Plan::Aggregate { groups, .. } if groups.is_empty() => 1.0,
        Plan::Aggregate { input, groups, .. } => {
            let input = rows(input, catalog);
            let distinct = |group: &Expr| match group.kind {
                ExprKind::Column(at) => stats(at).map(|known| known.distinct).filter(|d| *d > 0.0),
                _ => None,
            };
            let combinations: f64 = groups.iter().map(|g| distinct(g).unwrap_or(input.sqrt())).product();
            combinations.min(input * 0.9)
        }
        Plan::Join { left, right, kind, keys, residual } => {
            let (l, r) = (rows(left, catalog), rows(right, catalog));
            let share = residual.as_ref().map_or(1.0, |_| 0.8);
            match kind {
                JoinKind::Semi | JoinKind::Anti => l / 2.0 * share,
                JoinKind::RightSemi | JoinKind::RightAnti => r / 2.0 * share,
                JoinKind::Mark | JoinKind::MarkIn | JoinKind::Single => l,
                _ if keys.is_empty() => l * r,
                JoinKind::Inner => {
                    let matches = |(a, b): &(Expr, Expr)| {
                        let known = |e: &Expr, side: &Plan| match e.kind {
                            ExprKind::Column(at) => column(side, at, catalog).map_or(0.0, |known| known.distinct),
                            _ => 0.0,
                        };
                        known(a, left).max(known(b, right))
                    };
                    let most = keys.iter().map(matches).fold(0.0, f64::max);
                    if most > 0.0 { l * r / most } else { l.max(r) }
                }
                _ => l.max(r),
            }
        }
        Plan::Union { inputs, .. } => inputs.iter().map(|input| rows(input, catalog)).sum(),
        Plan::SetOperation { left, .. } => rows(left, catalog) / 2.0,
        Plan::Limit { input, limit, .. } => match limit.as_ref().map(|l| &l.kind) {
            Some(ExprKind::Literal(Value::Int(n))) => rows(input, catalog).min(*n as f64),
            _ => rows(input, catalog),
        },
        Plan::LimitBy { input, .. } => rows(input, catalog) / 2.0,
        Plan::Given { .. } => 1_000.0,
        Plan::Recursive { base, .. } => 10.0 * rows(base, catalog),
        Plan::Shared { input, .. } => rows(input, catalog),
    };
    rows.max(1.0)
}

/// Rows before conditions: what the numbers of distinct values are about.
pub(crate) fn base_rows(plan: &Plan, catalog: &dyn Catalog) -> f64 {
    match plan {
        Plan::Scan { table, .. } => (catalog.row_count(table) as f64).max(1.0),
        Plan::Filter { input, .. } | Plan::Project { input, .. } => base_rows(input, catalog),
        Plan::Join { left, kind: JoinKind::Semi | JoinKind::Anti, .. } => base_rows(left, catalog),
        Plan::Join { right, kind: JoinKind::RightSemi | JoinKind::RightAnti, .. } => base_rows(right, catalog),
        _ => rows(plan, catalog),
    }
}

/// Whether conditions on a plan are conditions on groups.
fn over_aggregate(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { .. } => true,
        Plan::Project { input, .. } => over_aggregate(input),
        _ => false,
    }
}

/// What is known of an output column.
pub(crate) fn column(plan: &Plan, at: usize, catalog: &dyn Catalog) -> Option<ColumnEstimate> {
    match plan {
        Plan::Scan { table, projection, .. } => {
            let position = *projection.get(at)?;
            let rows = catalog.row_count(table) as f64;
            let known = catalog.column_statistics(table, position);
            let unique = table.unique_sets(false).any(|set| set == [position]);
            let bounds = known.as_ref().and_then(|k| number(&k.min).zip(number(&k.max)));
            let nulls = known.as_ref().map_or(0.0, |k| k.nulls);
            let distinct =
                if unique { rows * (1.0 - nulls) } else { known.as_ref().map_or(0.0, |k| k.distinct).min(rows) };
            Some(ColumnEstimate { distinct, bounds, nulls })
        }
        Plan::Project { exprs, .. } => match exprs.get(at)?.kind {
            ExprKind::Column(below) => column_of_inputs(plan, below, catalog),
            _ => None,
        },
        Plan::Aggregate { groups, .. } => {
            let group = groups.get(at)?;
            let mut known = match group.kind {
                ExprKind::Column(below) => column_of_inputs(plan, below, catalog),
                _ => None,
            };
            if groups.len() == 1 {
                let distinct = rows(plan, catalog);
                known = Some(ColumnEstimate { distinct, ..known.unwrap_or(NOTHING) });
            }
            known
        }
        Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => column(input, at, catalog),
        Plan::LimitBy { input, .. } => column(input, at, catalog),
        Plan::Shared { input, .. } => column(input, at, catalog),
        Plan::Join { kind, .. } if kind.sides() == (false, true) => {
            let Plan::Join { right, .. } = plan else { return None };
            column(right, at, catalog)
        }
        Plan::Join { .. } => column_of_inputs(plan, at, catalog),
        _ => None,
    }
}

const NOTHING: ColumnEstimate = ColumnEstimate { distinct: 0.0, bounds: None, nulls: 0.0 };

/// What is known of a column of a node's inputs, of a join's left then right ones.
fn column_of_inputs(plan: &Plan, at: usize, catalog: &dyn Catalog) -> Option<ColumnEstimate> {
    match plan {
        Plan::Filter { input, .. } | Plan::Project { input, .. } | Plan::Aggregate { input, .. } => {
            column(input, at, catalog)
        }
        Plan::Join { left, right, .. } => {
            let width = left.fields().len();
            if at < width { column(left, at, catalog) } else { column(right, at - width, catalog) }
        }
        _ => None,
    }
}

fn is_equal_to_constant(filter: &Expr, column: usize) -> bool {
    match &filter.kind {
        ExprKind::Binary { op: BinaryOp::Equal, left, right } => {
            matches!(left.kind, ExprKind::Column(at) if at == column)
                && matches!(right.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
        }
        _ => false,
    }
}

/// A value as a place on the line of its type.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Decimal { unscaled, scale } => Some(*unscaled as f64 / 10f64.powi(*scale as i32)),
        Value::Float(v) => Some(*v).filter(|v| v.is_finite()),
        Value::Interval(_) => None,
        other => key::integer(other).map(|v| v as f64),
    }
}

/// `column op constant`, turned so that the column is on the left.
fn comparison(expr: &Expr) -> Option<(usize, BinaryOp, Option<f64>)> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return None };
    let constant = |e: &Expr| match &e.kind {
        ExprKind::Literal(value) => Some(number(value)),
        ExprKind::Parameter(_) => Some(None),
        _ => None,
    };
    match (&left.kind, &right.kind) {
        (ExprKind::Column(at), _) => Some((*at, *op, constant(right)?)),
        (_, ExprKind::Column(at)) => Some((*at, op.turned(), constant(left)?)),
        _ => None,
    }
}

/// Share of rows that all conditions let through. The bounds that several set to one column are one range.
pub(crate) fn conjunction(conditions: &[Expr], stats: Columns<'_>) -> f64 {
    let mut ranges: Map<usize, (f64, f64)> = Map::default();
    let mut order = Vec::new();
    let mut share = 1.0;
    for condition in conditions {
        let bound = comparison(condition).and_then(|(at, op, value)| {
            let (low, high) = stats(at)?.bounds?;
            Some((at, op, value?, low, high))
        });
        let Some((at, op, value, low, high)) = bound else {
            share *= selectivity(condition, stats);
            continue;
        };
        use BinaryOp::{Greater, GreaterOrEqual, Less, LessOrEqual};
        if !matches!(op, Less | LessOrEqual | Greater | GreaterOrEqual) {
            share *= selectivity(condition, stats);
            continue;
        }
        let range = ranges.entry(at).or_insert_with(|| {
            order.push(at);
            (low, high)
        });
        match op {
            Less | LessOrEqual => range.1 = range.1.min(value),
            _ => range.0 = range.0.max(value),
        }
    }
    for at in order {
        let Some((range, known)) = ranges.get(&at).zip(stats(at)) else { continue };
        let (low, high) = known.bounds.unwrap_or(*range);
        let least = if known.distinct > 0.0 { 1.0 / known.distinct } else { 0.0005 };
        let part = (range.1 - range.0) / (high - low).max(f64::MIN_POSITIVE);
        share *= part.clamp(least.min(1.0), 1.0) * (1.0 - known.nulls);
    }
    share
}

/// Share of rows a condition lets through.
pub(crate) fn selectivity(condition: &Expr, stats: Columns<'_>) -> f64 {
    let one_of = |at: usize| match stats(at) {
        Some(known) if known.distinct > 0.0 => (1.0 - known.nulls) / known.distinct,
        _ => EQUAL,
    };
    match &condition.kind {
        ExprKind::Binary { op, left, right } => {
            let equal = match (&left.kind, &right.kind) {
                (ExprKind::Column(a), ExprKind::Column(b)) => one_of(*a).min(one_of(*b)),
                (ExprKind::Column(at), _) | (_, ExprKind::Column(at)) => one_of(*at),
                _ => EQUAL,
            };
            match op {
                BinaryOp::Equal | BinaryOp::NotDistinct => equal,
                BinaryOp::NotEqual | BinaryOp::Distinct => 1.0 - equal,
                _ if comparison(condition)
                    .is_some_and(|(at, _, v)| v.is_some() && stats(at).is_some_and(|k| k.bounds.is_some())) =>
                {
                    conjunction(std::slice::from_ref(condition), stats)
                }
                _ if matches!((&left.kind, &right.kind), (ExprKind::Column(_), ExprKind::Column(_))) => 0.5,
                _ => RANGE,
            }
        }
        ExprKind::And(list) => conjunction(list, stats),
        ExprKind::Or(list) => {
            let none: f64 = list.iter().map(|e| 1.0 - selectivity(e, stats)).product();
            1.0 - none
        }
        ExprKind::InList { arg, list, negated } => {
            let one = match arg.kind {
                ExprKind::Column(at) => one_of(at),
                _ => EQUAL,
            };
            let share = (one * list.len() as f64).min(0.9);
            if *negated { 1.0 - share } else { share }
        }
        ExprKind::Like { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        ExprKind::IsNull { arg, negated } => {
            let nulls = match arg.kind {
                ExprKind::Column(at) => stats(at).map_or(0.05, |known| known.nulls),
                _ => 0.05,
            };
            if *negated { 1.0 - nulls } else { nulls }
        }
        ExprKind::Not(arg) => 1.0 - selectivity(arg, stats),
        ExprKind::Literal(Value::Boolean(false) | Value::Null) => 0.0001,
        _ => 0.5,
    }
}
