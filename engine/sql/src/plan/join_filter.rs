//! How join filters travel down a plan: from a node's output column to the input columns that hold
//! the same values, as long as dropping rows there changes nothing else above.
//!
//! The executor decides what a filter contains (`exec/join_filter`); `EXPLAIN` shows where it
//! arrives.

use crate::access::{ScanOutput, fixed_columns, joined_key};
use crate::expr::{Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_types::hash::{Map, Set};
use nacre_types::{DataType, PhysicalType};

/// The filters that may be applied to a node's output, each with its column.
#[derive(Clone)]
pub struct Wanted<F>(pub Vec<(usize, F)>);

impl<F> Default for Wanted<F> {
    fn default() -> Self {
        Wanted(Vec::new())
    }
}

/// How a key of a join's right side can be used as a filter.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// Whether its values are integers, whose summary any scan can use.
    pub is_integer: bool,
    /// Whether its values can be looked up one by one: equal values have one representation.
    pub is_exact: bool,
}

/// How the left side of a join can use a key as a filter, if at all.
pub fn key_use(kind: JoinKind, left: &Expr, right: &Expr) -> Option<KeyUse> {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    // These kinds never output a left row without a partner; the others must keep such rows.
    if !matches!(kind, Inner | Semi | Right | RightSemi | RightAnti)
        || !matches!(left.kind, ExprKind::Column(_))
    {
        return None;
    }
    let (l, r) = (left.data_type, right.data_type);
    let is_integer =
        [l, r].iter().all(|t| t.physical() == PhysicalType::I64 && *t != DataType::UInt64);
    let is_exact = match (l, r) {
        (
            DataType::Float32
            | DataType::Float64
            | DataType::Boolean
            | DataType::Interval
            | DataType::Json,
            _,
        ) => false,
        (DataType::Text { .. }, DataType::Text { .. })
        | (DataType::Binary { .. }, DataType::Binary { .. }) => true,
        _ => l == r || (l.is_integer() && r.is_integer() && is_integer),
    };
    (is_integer || is_exact).then_some(KeyUse { is_integer, is_exact })
}

fn column(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    }
}

impl<F: Clone> Wanted<F> {
    /// Moves each filter to the column that `to` returns, and drops it where there is none.
    fn moved(&self, to: impl Fn(usize) -> Option<usize>) -> Wanted<F> {
        Wanted(self.0.iter().filter_map(|(at, filter)| Some((to(*at)?, filter.clone()))).collect())
    }

    /// Moves the filters to the only input of a node.
    pub fn below(&self, node: &Plan) -> Wanted<F> {
        if self.0.is_empty() {
            return Wanted::default();
        }
        match node {
            Plan::Filter { .. } | Plan::Union { .. } | Plan::Sort { limit: None, .. } => {
                self.clone()
            }
            Plan::Project { exprs, .. } => self.moved(|at| exprs.get(at).and_then(column)),
            // A filter on a group key keeps or drops whole groups.
            Plan::Aggregate { groups, .. } => self.moved(|at| groups.get(at).and_then(column)),
            _ => Wanted::default(),
        }
    }

    /// Moves the filters to both sides of a join whose left side has `width` columns. `own` are the
    /// filters that the join itself fills.
    pub fn sides(
        &self,
        kind: JoinKind,
        keys: &[(Expr, Expr)],
        width: usize,
        own: &[Option<F>],
    ) -> (Wanted<F>, Wanted<F>) {
        use JoinKind::{Anti, Inner, Left, Mark, Right, RightAnti, RightSemi, Semi, Single};
        let (mut left, mut right) = match kind {
            Inner => (
                self.moved(|at| (at < width).then_some(at)),
                self.moved(|at| at.checked_sub(width)),
            ),
            Left | Single | Semi | Anti | Mark => {
                (self.moved(|at| (at < width).then_some(at)), Wanted::default())
            }
            Right => (Wanted::default(), self.moved(|at| at.checked_sub(width))),
            RightSemi | RightAnti => (Wanted::default(), self.clone()),
            JoinKind::Full | JoinKind::MarkIn => Default::default(),
        };
        // A row whose key fails the other side's filter has no partner that is kept.
        let (from_left, from_right) = (left.clone(), right.clone());
        for (l, r) in keys
            .iter()
            .filter_map(|(l, r)| (l.data_type == r.data_type).then_some((column(l)?, column(r)?)))
        {
            let to = |from: &Wanted<F>, key: usize, other: usize| {
                from.moved(|at| (at == key).then_some(other))
            };
            left.0.append(&mut to(&from_right, r, l).0);
            // The reverse holds for a scalar subquery too: a second partner is an error even if the
            // row is filtered out above.
            right.0.append(&mut to(&from_left, l, r).0);
        }
        for ((l, _), filter) in keys.iter().zip(own) {
            left.0.extend(column(l).zip(filter.clone()));
        }
        (left, right)
    }
}

/// Maps each join that filters scans to those scans.
#[derive(Default)]
pub(crate) struct Told {
    /// For each scan (by address), the joins that filter it and the filtered columns.
    scans: Map<usize, Vec<(usize, usize)>>,
    /// Join numbers, assigned on first use.
    numbers: Map<usize, usize>,
    /// Shared plans already visited.
    shared: Set<u32>,
}

/// A join key used as a filter: the join's address, and whether every scan can use it.
#[derive(Clone)]
struct Key {
    join: usize,
    is_integer: bool,
}

fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl Told {
    /// Collects the filters of a whole plan.
    pub fn look(&mut self, plan: &Plan) {
        self.walk(plan, &Wanted::default());
    }

    /// Mirrors how the executor hands filters down while it builds operators.
    fn walk(&mut self, plan: &Plan, wanted: &Wanted<Key>) {
        match plan {
            Plan::Scan { table, projection, filters, keys, .. } => {
                let output = ScanOutput { table, projection, keys };
                let fixed = fixed_columns(output, filters);
                let is_told = |at: usize| {
                    wanted.0.iter().any(|(column, _)| output.column(*column) == Some(at))
                };
                let in_index = joined_key(table, &is_told, &|at| fixed[at].is_some()).is_some();
                let of_use = wanted.0.iter().filter(|(_, key)| key.is_integer || in_index);
                self.scans
                    .insert(place(plan), of_use.map(|(column, key)| (key.join, *column)).collect());
            }
            Plan::Join { left, right, kind, keys, .. } => {
                let key = |(l, r): &(Expr, Expr)| {
                    key_use(*kind, l, r)
                        .map(|u| Key { join: place(plan), is_integer: u.is_integer })
                };
                let own: Vec<Option<Key>> = keys.iter().map(key).collect();
                let (to_left, to_right) = wanted.sides(*kind, keys, left.fields().len(), &own);
                self.walk(left, &to_left);
                self.walk(right, &to_right);
            }
            // Filters do not enter shared plans from above, so one visit is enough.
            Plan::Shared { id, input } => {
                if self.shared.insert(*id) {
                    self.walk(input, &Wanted::default());
                }
            }
            _ => {
                let below = wanted.below(plan);
                plan.for_each_input(&mut |input| self.walk(input, &below));
            }
        }
    }

    /// The number of a join, if it filters a scan. Joins are numbered in the order of these calls.
    pub fn of_join(&mut self, join: &Plan) -> Option<usize> {
        let place = place(join);
        if !self.scans.values().flatten().any(|(told, _)| *told == place) {
            return None;
        }
        let next = self.numbers.len() + 1;
        Some(*self.numbers.entry(place).or_insert(next))
    }

    /// The joins that filter a scan, and the filtered columns.
    pub fn of_scan(&self, scan: &Plan) -> Vec<(usize, usize)> {
        let told = self.scans.get(&place(scan)).into_iter().flatten();
        told.filter_map(|(join, column)| Some((*self.numbers.get(join)?, *column))).collect()
    }
}
