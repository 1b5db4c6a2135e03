//! Estimates how many rows a plan returns, from table sizes and column statistics (bounds, nulls,
//! distinct counts), with fixed selectivities where nothing is known. Only ratios matter, and only
//! for join order and build sides.

use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Catalog, JoinKind, Plan};
use nacre_types::hash::Map;
use nacre_types::{TableSchema, Value, key};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Estimated statistics of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnEstimate {
    /// Number of distinct values, or 0 if unknown.
    pub distinct: f64,
    /// Least and greatest value, for numeric types.
    pub bounds: Option<(f64, f64)>,
    /// Fraction of nulls.
    pub nulls: f64,
}

/// Looks up the estimate of an input column.
pub(crate) type Columns<'a> = &'a dyn Fn(usize) -> Option<ColumnEstimate>;

/// Selectivity of an equality about which nothing is known.
const EQUAL: f64 = 0.05;
/// Selectivity of an inequality about which nothing is known.
const RANGE: f64 = 0.3;
/// Selectivity of a comparison with an aggregate.
const HAVING: f64 = 0.1;

/// The estimated output of a plan.
#[derive(Clone)]
pub(crate) struct Estimate {
    /// Number of rows.
    pub rows: f64,
    /// Rows before conditions, to which the distinct counts refer.
    pub base_rows: f64,
    /// Whether conditions on the output are conditions on groups.
    over_aggregate: bool,
    /// Where each output column comes from, if known. Shorter than the output if nothing is known
    /// of the rest.
    origins: Rc<[Option<Origin>]>,
}

/// Where a column comes from. The catalog is consulted only when the column is looked up.
#[derive(Clone)]
struct Origin {
    /// A stored column: the table and the position.
    stored: Option<(Arc<TableSchema>, usize)>,
    /// Number of distinct values, if a node determines it.
    distinct: Option<f64>,
}

/// Estimates plans in one pass, and each shared plan once: without the cache, shared plans nested
/// in shared plans would take exponential time.
pub(crate) struct Estimates<'c> {
    catalog: &'c dyn Catalog,
    shared: RefCell<Map<u32, Estimate>>,
}

impl<'c> Estimates<'c> {
    /// Creates the estimates of one statement.
    pub fn new(catalog: &'c dyn Catalog) -> Estimates<'c> {
        Estimates { catalog, shared: RefCell::default() }
    }

    /// What is known about an output column of an estimated plan.
    pub fn column(&self, of: &Estimate, at: usize) -> Option<ColumnEstimate> {
        let origin = of.origins.get(at)?.as_ref()?;
        let mut known =
            origin.stored.as_ref().map_or(NOTHING, |(table, column)| self.stored(table, *column));
        known.distinct = origin.distinct.unwrap_or(known.distinct);
        Some(known)
    }

    fn stored(&self, table: &TableSchema, column: usize) -> ColumnEstimate {
        let rows = self.catalog.row_count(table) as f64;
        let known = self.catalog.column_statistics(table, column);
        let unique = table.unique_sets(false).any(|set| set == [column]);
        let bounds = known.as_ref().and_then(|k| number(&k.min).zip(number(&k.max)));
        let nulls = known.as_ref().map_or(0.0, |k| k.nulls);
        let distinct = if unique {
            rows * (1.0 - nulls)
        } else {
            known.as_ref().map_or(0.0, |k| k.distinct).min(rows)
        };
        ColumnEstimate { distinct, bounds, nulls }
    }

    /// Estimates a plan.
    pub fn of(&self, plan: &Plan) -> Estimate {
        let unknown = |rows: f64| Estimate::new(rows, Rc::default());
        match plan {
            Plan::Scan { table, projection, filters, .. } => self.scan(table, projection, filters),
            Plan::Values { rows, .. } => unknown(rows.len() as f64),
            Plan::Filter { input, predicate } => {
                let input = self.of(input);
                let share = match input.over_aggregate {
                    true => HAVING,
                    false => selectivity(predicate, &|column| self.column(&input, column)),
                };
                let base_rows = input.base_rows;
                Estimate { base_rows, ..Estimate::new(input.rows * share, input.origins) }
            }
            Plan::Project { input, exprs, .. } => {
                let input = self.of(input);
                Estimate { origins: exprs.iter().map(|e| input.origin(e)).collect(), ..input }
            }
            Plan::Sort { input, .. } => {
                let input = self.of(input);
                Estimate::new(input.rows, input.origins)
            }
            Plan::Aggregate { groups, .. } if groups.is_empty() => {
                Estimate { over_aggregate: true, ..unknown(1.0) }
            }
            Plan::Aggregate { input, groups, .. } => self.groups(&self.of(input), groups),
            Plan::Join { left, right, kind, keys, residual } => self.join(
                &self.of(left),
                &self.of(right),
                *kind,
                (keys, residual.is_some()),
                left.fields().len(),
            ),
            Plan::Union { inputs, .. } => {
                unknown(inputs.iter().map(|input| self.of(input).rows).sum())
            }
            Plan::Limit { input, limit, .. } => {
                let input = self.of(input);
                let rows = match limit.as_ref().map(|l| &l.kind) {
                    Some(ExprKind::Literal(Value::Int(n))) => input.rows.min(*n as f64),
                    _ => input.rows,
                };
                Estimate::new(rows, input.origins)
            }
            Plan::Node(node) => {
                let mut inputs: Vec<Estimate> = Vec::new();
                node.for_each_input(&mut |input| inputs.push(self.of(input)));
                let rows: Vec<f64> = inputs.iter().map(|input| input.rows).collect();
                let origins = match inputs.into_iter().next() {
                    Some(first) if node.keeps_statistics() => first.origins,
                    _ => Rc::default(),
                };
                Estimate::new(node.estimate_rows(&rows), origins)
            }
            Plan::Given { .. } => unknown(1_000.0),
            Plan::Recursive { base, .. } => unknown(10.0 * self.of(base).rows),
            Plan::Shared { id, input } => {
                let known = self.shared.borrow().get(id).cloned();
                known.unwrap_or_else(|| {
                    let input = self.of(input);
                    let new = Estimate::new(input.rows, input.origins);
                    self.shared.borrow_mut().insert(*id, new.clone());
                    new
                })
            }
        }
    }

    fn scan(&self, table: &Arc<TableSchema>, projection: &[usize], filters: &[Expr]) -> Estimate {
        let stored = |column: &usize| {
            Some(Origin { stored: Some((table.clone(), *column)), distinct: None })
        };
        let base_rows = self.catalog.row_count(table) as f64;
        let all = Estimate::new(base_rows, projection.iter().map(stored).collect());
        let equal = |column: usize| filters.iter().any(|f| is_equal_to_constant(f, column));
        let is_equal = |c: &usize| projection.iter().position(|p| p == c).is_some_and(equal);
        let rows = match table.unique_sets(false).any(|set| set.iter().all(is_equal)) {
            true => 1.0,
            false => base_rows * conjunction(filters, &|column| self.column(&all, column)),
        };
        Estimate { rows: rows.max(1.0), ..all }
    }

    fn groups(&self, input: &Estimate, groups: &[Expr]) -> Estimate {
        let distinct = |group: &Expr| match group.kind {
            ExprKind::Column(at) => {
                self.column(input, at).map(|known| known.distinct).filter(|d| *d > 0.0)
            }
            _ => None,
        };
        let combinations: f64 =
            groups.iter().map(|g| distinct(g).unwrap_or(input.rows.sqrt())).product();
        let rows = combinations.min(input.rows * 0.9).max(1.0);
        let origins = match groups {
            [group] => {
                let stored = input.origin(group).and_then(|origin| origin.stored);
                [Some(Origin { stored, distinct: Some(rows) })].into()
            }
            groups => groups.iter().map(|group| input.origin(group)).collect(),
        };
        Estimate { over_aggregate: true, ..Estimate::new(rows, origins) }
    }

    /// Estimates a join. `on` holds the keys and whether there is another condition; `width` is the
    /// number of left columns.
    fn join(
        &self,
        left: &Estimate,
        right: &Estimate,
        kind: JoinKind,
        on: (&[(Expr, Expr)], bool),
        width: usize,
    ) -> Estimate {
        let (l, r, (keys, residual)) = (left.rows, right.rows, on);
        let share = if residual { 0.8 } else { 1.0 };
        let rows = match kind {
            JoinKind::Semi | JoinKind::Anti => l / 2.0 * share,
            JoinKind::RightSemi | JoinKind::RightAnti => r / 2.0 * share,
            JoinKind::Mark | JoinKind::MarkIn | JoinKind::Single => l,
            _ if keys.is_empty() => l * r,
            JoinKind::Inner => {
                let matches = |(a, b): &(Expr, Expr)| {
                    let known = |e: &Expr, side: &Estimate| match e.kind {
                        ExprKind::Column(at) => {
                            self.column(side, at).map_or(0.0, |known| known.distinct)
                        }
                        _ => 0.0,
                    };
                    known(a, left).max(known(b, right))
                };
                let most = keys.iter().map(matches).fold(0.0, f64::max);
                if most > 0.0 { l * r / most } else { l.max(r) }
            }
            _ => l.max(r),
        };
        let origins: Rc<[Option<Origin>]> = match kind.sides() {
            (true, false) => left.origins.clone(),
            (false, _) => right.origins.clone(),
            (true, true) => {
                let nothing = width.saturating_sub(left.origins.len());
                let left = left
                    .origins
                    .iter()
                    .take(width)
                    .cloned()
                    .chain(std::iter::repeat_n(None, nothing));
                left.chain(right.origins.iter().cloned()).collect()
            }
        };
        let mut joined = Estimate::new(rows, origins);
        match kind {
            JoinKind::Semi | JoinKind::Anti => joined.base_rows = left.base_rows,
            JoinKind::RightSemi | JoinKind::RightAnti => joined.base_rows = right.base_rows,
            _ => {}
        }
        joined
    }
}

impl Estimate {
    fn new(rows: f64, origins: Rc<[Option<Origin>]>) -> Estimate {
        let rows = rows.max(1.0);
        Estimate { rows, base_rows: rows, over_aggregate: false, origins }
    }

    /// The origin of an expression's value, if it is a column.
    fn origin(&self, expr: &Expr) -> Option<Origin> {
        match expr.kind {
            ExprKind::Column(at) => self.origins.get(at)?.clone(),
            _ => None,
        }
    }
}

const NOTHING: ColumnEstimate = ColumnEstimate { distinct: 0.0, bounds: None, nulls: 0.0 };

fn is_equal_to_constant(filter: &Expr, column: usize) -> bool {
    match &filter.kind {
        ExprKind::Binary { op: BinaryOp::Equal, left, right } => {
            matches!(left.kind, ExprKind::Column(at) if at == column)
                && matches!(right.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
        }
        _ => false,
    }
}

/// Maps a value to a number that preserves the order of its type.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Decimal { unscaled, scale } => Some(*unscaled as f64 / 10f64.powi(*scale as i32)),
        Value::Float(v) => Some(*v).filter(|v| v.is_finite()),
        Value::Interval(_) => None,
        other => key::integer(other).map(|v| v as f64),
    }
}

/// Matches `column op constant`, mirrored if necessary so that the column is on the left.
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

/// Combined selectivity of all conditions. Several bounds on one column are merged into one range.
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

/// Selectivity of one condition.
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
                _ if comparison(condition).is_some_and(|(at, _, v)| {
                    v.is_some() && stats(at).is_some_and(|k| k.bounds.is_some())
                }) =>
                {
                    conjunction(std::slice::from_ref(condition), stats)
                }
                _ if matches!(
                    (&left.kind, &right.kind),
                    (ExprKind::Column(_), ExprKind::Column(_))
                ) =>
                {
                    0.5
                }
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
