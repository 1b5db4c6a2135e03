//! What joins can tell of their keys, and which way that goes down a plan: from the output column of a node to the
//! columns of its inputs that hold the same values, as long as leaving out rows there leaves out nothing else above.
//!
//! What is told is the executor's affair (`exec/join_filter`); `EXPLAIN` shows where it arrives.

use crate::access::{fixed_columns, joined_key};
use crate::expr::{Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_types::hash::{Map, Set};
use nacre_types::{DataType, PhysicalType};

/// The filters that may be applied to a node's output, with the column they are about.
#[derive(Clone)]
pub struct Wanted<F>(pub Vec<(usize, F)>);

impl<F> Default for Wanted<F> {
    fn default() -> Self {
        Wanted(Vec::new())
    }
}

/// What can be said of a key of a join's right side.
#[derive(Clone, Copy, Debug)]
pub struct KeyUse {
    /// Its values are integers, of which a summary is made that any scan can use.
    pub is_integer: bool,
    /// Its values can be looked up one by one: equal ones are one and the same.
    pub is_exact: bool,
}

/// What the left side of a join could use of a key.
pub fn key_use(kind: JoinKind, left: &Expr, right: &Expr) -> Option<KeyUse> {
    use JoinKind::{Inner, Right, RightAnti, RightSemi, Semi};
    // Where a left row without a partner is of use, it must come.
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
    /// Each filter where `to` says.
    fn moved(&self, to: impl Fn(usize) -> Option<usize>) -> Wanted<F> {
        Wanted(self.0.iter().filter_map(|(at, filter)| Some((to(*at)?, filter.clone()))).collect())
    }

    /// For the one input of a node.
    pub fn below(&self, node: &Plan) -> Wanted<F> {
        if self.0.is_empty() {
            return Wanted::default();
        }
        match node {
            Plan::Filter { .. } | Plan::Union { .. } | Plan::Sort { limit: None, .. } => {
                self.clone()
            }
            Plan::Project { exprs, .. } => self.moved(|at| exprs.get(at).and_then(column)),
            // Groups come and go as a whole.
            Plan::Aggregate { groups, .. } => self.moved(|at| groups.get(at).and_then(column)),
            _ => Wanted::default(),
        }
    }

    /// For the sides of a join whose left side has `width` columns. `own` are the filters that the join itself fills.
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
        // A row of the other side whose key does not pass has no partner that is kept.
        let (from_left, from_right) = (left.clone(), right.clone());
        for (l, r) in keys
            .iter()
            .filter_map(|(l, r)| (l.data_type == r.data_type).then_some((column(l)?, column(r)?)))
        {
            let to = |from: &Wanted<F>, key: usize, other: usize| {
                from.moved(|at| (at == key).then_some(other))
            };
            left.0.append(&mut to(&from_right, r, l).0);
            // A second partner in a scalar subquery is an error even if the row is filtered out above.
            right.0.append(&mut to(&from_left, l, r).0);
        }
        for ((l, _), filter) in keys.iter().zip(own) {
            left.0.extend(column(l).zip(filter.clone()));
        }
        (left, right)
    }
}

/// Which joins of a plan tell which scans of their keys.
#[derive(Default)]
pub(crate) struct Told {
    /// Scans, by where they are, with the joins and the columns.
    scans: Map<usize, Vec<(usize, usize)>>,
    /// Numbers of joins, once they are asked for.
    numbers: Map<usize, usize>,
    /// What is shared and was looked at.
    shared: Set<u32>,
}

/// A key that is told: its join, by where it is, and whether every scan can use it.
#[derive(Clone)]
struct Key {
    join: usize,
    is_integer: bool,
}

fn place(plan: &Plan) -> usize {
    std::ptr::from_ref(plan).addr()
}

impl Told {
    /// Looks at a whole plan.
    pub fn look(&mut self, plan: &Plan) {
        self.walk(plan, &Wanted::default());
    }

    /// As the executor hands filters down when it builds the operators of a plan.
    fn walk(&mut self, plan: &Plan, wanted: &Wanted<Key>) {
        match plan {
            Plan::Scan { table, projection, filters } => {
                let fixed = fixed_columns(table, projection, filters);
                let is_told = |at: usize| {
                    wanted.0.iter().any(|(column, _)| projection.get(*column) == Some(&at))
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
            // Nothing comes from above, so it is walked once.
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

    /// The number of a join that tells a scan of its keys. Joins are numbered in the order they are asked for.
    pub fn of_join(&mut self, join: &Plan) -> Option<usize> {
        let place = place(join);
        if !self.scans.values().flatten().any(|(told, _)| *told == place) {
            return None;
        }
        let next = self.numbers.len() + 1;
        Some(*self.numbers.entry(place).or_insert(next))
    }

    /// The joins that tell a scan of their keys, and the columns they are about.
    pub fn of_scan(&self, scan: &Plan) -> Vec<(usize, usize)> {
        let told = self.scans.get(&place(scan)).into_iter().flatten();
        told.filter_map(|(join, column)| Some((*self.numbers.get(join)?, *column))).collect()
    }
}
