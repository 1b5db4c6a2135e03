//! The join graph: relations, equivalence classes of columns, other conditions, and the estimated
//! number of rows of any set of relations.
//!
//! Columns tied by equations form one class. Joining two sets of relations equates one column per
//! side and class, because the columns of a class within one side are already equal. So an order
//! may use an implied equation that was never written, and checks no equation twice.

use super::estimate::{ColumnEstimate, Estimate, Estimates, selectivity};
use crate::analysis::columns::{columns, shift_columns};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::Plan;
use nacre_types::DataType;

/// The most constants of one class that are copied to all its columns.
const MAX_CONSTANTS: usize = 16;

/// A relation of the join graph.
pub(super) struct Relation {
    /// Position of its first column among all columns.
    pub start: usize,
    pub width: usize,
    /// Estimated rows, after its own conditions.
    pub rows: f64,
    /// Estimated rows, before its own conditions.
    base_rows: f64,
}

/// A column of a class.
struct Member {
    column: usize,
    relation: usize,
    distinct: f64,
}

/// Columns equal to each other, at most one per relation.
struct Class {
    relations: u64,
    members: Vec<Member>,
}

/// Any other condition on more than one relation.
pub(super) struct Condition {
    pub expr: Expr,
    pub relations: u64,
    selectivity: f64,
}

/// A set of relations in which one relation's rows are unique on the columns that the others are
/// compared with. The product of the classes' selectivities is too small by `factor`.
struct Composite {
    relations: u64,
    factor: f64,
}

/// The join graph of one tree of inner joins.
pub(super) struct Graph {
    pub relations: Vec<Relation>,
    classes: Vec<Class>,
    pub conditions: Vec<Condition>,
    composites: Vec<Composite>,
}

/// Groups the columns of equations into classes. Columns are numbered over all relations.
pub(super) fn classes(equations: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for (a, b) in equations {
        let of = |column: &usize, classes: &[Vec<usize>]| {
            classes.iter().position(|c| c.contains(column))
        };
        match (of(a, &classes), of(b, &classes)) {
            (Some(i), Some(j)) if i == j => {}
            (Some(i), Some(j)) => {
                let mut other = classes.remove(i.max(j));
                classes[i.min(j)].append(&mut other);
            }
            (Some(i), None) => classes[i].push(*b),
            (None, Some(j)) => classes[j].push(*a),
            (None, None) => classes.push(vec![*a, *b]),
        }
    }
    classes
}

/// The two columns of `column = column`, if equality of their type is transitive.
pub(super) fn equation(expr: &Expr) -> Option<(usize, usize)> {
    let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &expr.kind else { return None };
    let (ExprKind::Column(a), ExprKind::Column(b)) = (&left.kind, &right.kind) else { return None };
    let (l, r) = (left.data_type, right.data_type);
    // Equal intervals may be different keys.
    if l == DataType::Interval {
        return None;
    }
    (l == r || (l.is_integer() && r.is_integer() && l != DataType::UInt64 && r != DataType::UInt64))
        .then_some((*a, *b))
}

impl Graph {
    /// `starts` are the relations' first columns; `classes` hold columns numbered over all
    /// relations.
    pub fn new(
        plans: &[Plan],
        starts: &[usize],
        classes: Vec<Vec<usize>>,
        conditions: Vec<(Expr, u64)>,
        estimates: &Estimates<'_>,
    ) -> Graph {
        let known: Vec<Estimate> = plans.iter().map(|plan| estimates.of(plan)).collect();
        let relation = |((plan, known), start): ((&Plan, &Estimate), &usize)| {
            let width = plan.fields().len();
            Relation {
                start: *start,
                width,
                rows: known.rows,
                base_rows: known.base_rows.max(known.rows),
            }
        };
        let relations: Vec<Relation> = plans.iter().zip(&known).zip(starts).map(relation).collect();
        let mut list: Vec<Class> = Vec::with_capacity(classes.len());
        for class in classes {
            let mut new = Class { relations: 0, members: Vec::new() };
            for column in class {
                let Some(at) = relations.iter().position(|r| r.owns(column)) else { continue };
                if new.relations & (1 << at) == 0 {
                    new.relations |= 1 << at;
                    let column_known = estimates.column(&known[at], column - relations[at].start);
                    let distinct = distinct(column_known, &relations[at]);
                    new.members.push(Member { column, relation: at, distinct });
                }
            }
            list.push(new);
        }
        let condition = |(expr, mask): (Expr, u64)| {
            let stats = |column: usize| {
                let at = relations.iter().position(|r| r.owns(column))?;
                estimates.column(&known[at], column - relations[at].start)
            };
            let selectivity = selectivity(&expr, &stats);
            Condition { expr, relations: mask, selectivity }
        };
        let conditions = conditions.into_iter().map(condition).collect();
        let composites = composites(plans, &relations, &list);
        Graph { relations, classes: list, conditions, composites }
    }

    /// Estimated number of rows of a set of relations, joined.
    pub fn rows(&self, set: u64) -> f64 {
        let mut rows = 1.0;
        for (at, relation) in self.relations.iter().enumerate() {
            if set & (1 << at) != 0 {
                rows *= relation.rows;
            }
        }
        for class in &self.classes {
            let inside = class.members.iter().filter(|m| set & (1 << m.relation) != 0);
            let (mut product, mut least) = (1.0, f64::INFINITY);
            for member in inside {
                product *= member.distinct;
                least = least.min(member.distinct);
            }
            if least.is_finite() {
                rows /= product / least;
            }
        }
        let within = |relations: u64| relations & !set == 0;
        for condition in self.conditions.iter().filter(|c| within(c.relations)) {
            rows *= condition.selectivity;
        }
        for composite in self.composites.iter().filter(|c| within(c.relations)) {
            rows *= composite.factor;
        }
        rows.max(1.0)
    }

    /// Whether a class or condition connects two sets.
    pub fn connected(&self, a: u64, b: u64) -> bool {
        self.classes.iter().any(|c| c.relations & a != 0 && c.relations & b != 0)
            || self.conditions.iter().any(|c| {
                c.relations & !(a | b) == 0 && c.relations & a != 0 && c.relations & b != 0
            })
    }

    /// Whether a condition reads more than two relations, so that reaching it may take a cross
    /// product.
    pub fn has_wide_conditions(&self) -> bool {
        self.conditions.iter().any(|c| c.relations.count_ones() > 2)
    }

    /// The columns of each side that a join of two sets equates, left then right.
    pub fn keys(&self, left: u64, right: u64) -> Vec<(usize, usize)> {
        let member = |class: &Class, set: u64| {
            class.members.iter().find(|m| set & (1 << m.relation) != 0).map(|member| member.column)
        };
        self.classes
            .iter()
            .filter_map(|class| member(class, left).zip(member(class, right)))
            .collect()
    }
}

impl Relation {
    fn owns(&self, column: usize) -> bool {
        column >= self.start && column < self.start + self.width
    }
}

fn distinct(known: Option<ColumnEstimate>, relation: &Relation) -> f64 {
    match known {
        Some(known) if known.distinct > 0.0 => known.distinct.min(relation.base_rows).max(1.0),
        _ => relation.base_rows.sqrt().max(1.0),
    }
}

fn composites(plans: &[Plan], relations: &[Relation], classes: &[Class]) -> Vec<Composite> {
    let mut out = Vec::new();
    for (a, plan) in plans.iter().enumerate() {
        for b in (0..plans.len()).filter(|b| *b != a) {
            let pair = 1 << a | 1 << b;
            let shared: Vec<&Class> =
                classes.iter().filter(|c| c.relations & pair == pair).collect();
            if shared.len() < 2 {
                continue;
            }
            let of = |class: &Class, r: usize| {
                class.members.iter().find(|m| m.relation == r).map(|m| (m.column, m.distinct))
            };
            let fixed = |at: usize| {
                shared
                    .iter()
                    .any(|c| of(c, a).is_some_and(|(column, _)| column - relations[a].start == at))
            };
            if !crate::analysis::unique::unique_among_equal(plan, &fixed) {
                continue;
            }
            let both =
                |c: &&Class| of(c, a).map_or(1.0, |(_, d)| d).max(of(c, b).map_or(1.0, |(_, d)| d));
            let product: f64 = shared.iter().map(both).product();
            let factor = (product / relations[a].base_rows).max(1.0);
            match out.iter_mut().find(|c: &&mut Composite| c.relations == pair) {
                Some(known) => known.factor = known.factor.max(factor),
                None => out.push(Composite { relations: pair, factor }),
            }
        }
    }
    out
}

/// Adds what the classes imply about a single relation: that two of its columns are equal, and that
/// a column equals a constant that another column of its class equals. `own` are the relations'
/// conditions, over their own columns.
pub(super) fn implied_by_classes(
    classes: &[Vec<usize>],
    starts: &[(usize, usize)],
    types: &[DataType],
    own: &mut [Vec<Expr>],
) {
    let owner = |column: usize| {
        starts.iter().position(|(start, width)| column >= *start && column < start + width)
    };
    for class in classes {
        // One constant is enough. Several contradict each other and leave no rows, so a few
        // suffice.
        let mut constants: Vec<Expr> = Vec::new();
        for (at, (start, _)) in starts.iter().enumerate() {
            for condition in &own[at] {
                if constants.len() < MAX_CONSTANTS
                    && let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &condition.kind
                    && let ExprKind::Column(column) = left.kind
                    && class.contains(&(column + start))
                    && matches!(right.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
                    && !constants.contains(right)
                {
                    constants.push((**right).clone());
                }
            }
        }
        let mut first: Vec<Option<usize>> = vec![None; starts.len()];
        for column in class {
            let Some(at) = owner(*column) else { continue };
            let equals = |to: Expr| {
                let mut left = Expr::column(*column, types[*column]);
                shift_columns(&mut left, -(starts[at].0 as isize));
                let kind = ExprKind::Binary {
                    op: BinaryOp::Equal,
                    left: Box::new(left),
                    right: Box::new(to),
                };
                Expr { kind, data_type: DataType::Boolean }
            };
            for constant in &constants {
                let condition = equals(constant.clone());
                if constant.data_type == types[*column] && !own[at].contains(&condition) {
                    own[at].push(condition);
                }
            }
            match first[at] {
                None => first[at] = Some(*column),
                Some(other) => {
                    own[at].push(equals(Expr::column(other - starts[at].0, types[other])))
                }
            }
        }
    }
}

/// The set of relations that an expression reads.
pub(super) fn relations_of(expr: &Expr, starts: &[(usize, usize)]) -> u64 {
    let mut mask = 0u64;
    columns(expr, &mut |at| {
        let owner = starts.iter().position(|(start, width)| at >= *start && at < start + width);
        mask |= owner.map_or(0, |r| 1 << r);
    });
    mask
}
