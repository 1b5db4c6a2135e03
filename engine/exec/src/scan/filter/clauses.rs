//! The filters of a scan as a tree of clauses that cannot fail, and the rest.
//!
//! Clauses may be evaluated in any order and on any rows. Filters that may fail run last, in the
//! order written, on the rows that passed all clauses, so whether a statement fails does not depend
//! on measurements. A clause that compares one column with constants is a set of values, which
//! encodings can test without decoding.

use super::prune::{comparison, constant};
use nacre_column::kernel::{Comparison, Pattern, Predicate};
use nacre_operator::context::Context;
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_sql::expr_may_fail;
use nacre_types::{DataType, Value};

/// A tree over the leaves of [`Clauses`], by their number.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::scan) enum Clause {
    Leaf(usize),
    All(Vec<Clause>),
    Any(Vec<Clause>),
}

/// What a leaf tests.
#[derive(Debug)]
pub(in crate::scan) enum Test {
    /// That the value of a column is in a set.
    Values { column: usize, set: Predicate },
    /// That a column is null.
    Null { column: usize },
    /// That an expression is true.
    Expr(Expr),
    /// That the filter of a join above, by its number, keeps the value of a column.
    Joined { column: usize, filter: usize },
}

/// A clause without clauses of its own.
#[derive(Debug)]
pub(in crate::scan) struct Leaf {
    pub test: Test,
    /// The output columns that it reads.
    pub columns: Vec<usize>,
    /// The number of the filter of a sort above on its only column, if it tests a set of values.
    pub bound: Option<usize>,
    /// The texts of its only column for which its expression is true, where they have a pattern.
    pub pattern: Option<Pattern>,
}

/// The filters of a scan.
#[derive(Debug)]
pub(in crate::scan) struct Clauses {
    /// The filters that cannot fail, all of which a row must pass; leaves are numbered in the
    /// order written.
    pub tree: Clause,
    pub leaves: Vec<Leaf>,
    /// Filters that may fail, in the order written.
    pub rest: Vec<Expr>,
}

impl Clauses {
    /// Splits filters over the scan's output.
    pub fn of(filters: &[Expr], context: &Context<'_>) -> Clauses {
        let mut tree = Vec::new();
        let mut rest = Vec::new();
        conjuncts(filters, &mut |filter| match part(filter, context) {
            Some(part) => add(&mut tree, part, true),
            None => rest.push(filter.clone()),
        });
        let mut leaves = Vec::new();
        let tree = Clause::All(tree.into_iter().map(|part| part.number(&mut leaves)).collect());
        for leaf in &mut leaves {
            if let Test::Expr(expr) = &leaf.test {
                leaf.pattern = pattern_of(expr, context);
            }
        }
        Clauses { tree, leaves, rest }
    }

    /// Adds the filter with a number of a sort above, on a column: to a test of the same column that
    /// every row must pass, if there is one.
    pub fn add_bound(&mut self, filter: usize, column: usize) {
        let of_column =
            |leaf: &Leaf| matches!(leaf.test, Test::Values { column: c, .. } if c == column);
        let is_own = |clause: &Clause| match clause {
            Clause::Leaf(at) if of_column(&self.leaves[*at]) => Some(*at),
            _ => None,
        };
        let known = match &self.tree {
            Clause::All(list) => list.iter().find_map(is_own),
            _ => None,
        };
        match known {
            Some(at) => self.leaves[at].bound = Some(filter),
            None => self.add_joined(filter, column),
        }
    }

    /// Adds the filter with a number of a join above, on a column.
    pub fn add_joined(&mut self, filter: usize, column: usize) {
        let at = self.leaves.len();
        let (test, columns) = (Test::Joined { column, filter }, vec![column]);
        self.leaves.push(Leaf { test, columns, bound: None, pattern: None });
        if let Clause::All(list) = &mut self.tree {
            list.push(Clause::Leaf(at));
        }
    }
}

/// The filters with conjunctions taken apart.
fn conjuncts<'e>(filters: &'e [Expr], each: &mut dyn FnMut(&'e Expr)) {
    for filter in filters {
        match &filter.kind {
            ExprKind::And(list) => conjuncts(list, each),
            _ => each(filter),
        }
    }
}

/// Moves filters that cannot fail to the front, as [`Clauses`] does.
pub(in crate::scan) fn ordered(filters: &[Expr], context: &Context<'_>) -> Vec<Expr> {
    let mut list = Vec::new();
    conjuncts(filters, &mut |filter| list.push(filter.clone()));
    list.sort_by_cached_key(|filter| part(filter, context).is_none());
    list
}

/// A clause whose leaves have no numbers yet.
enum Part {
    Leaf(Test),
    All(Vec<Part>),
    Any(Vec<Part>),
}

impl Part {
    fn number(self, leaves: &mut Vec<Leaf>) -> Clause {
        match self {
            Part::Leaf(test) => {
                let mut columns = Vec::new();
                match &test {
                    Test::Values { column, .. }
                    | Test::Null { column }
                    | Test::Joined { column, .. } => columns.push(*column),
                    Test::Expr(expr) => columns_of(expr, &mut columns),
                }
                leaves.push(Leaf { test, columns, bound: None, pattern: None });
                Clause::Leaf(leaves.len() - 1)
            }
            Part::All(list) => Clause::All(list.into_iter().map(|p| p.number(leaves)).collect()),
            Part::Any(list) => Clause::Any(list.into_iter().map(|p| p.number(leaves)).collect()),
        }
    }
}

/// Adds a part to a conjunction or disjunction: sets of values of one column become one set.
fn add(list: &mut Vec<Part>, part: Part, is_all: bool) {
    let Part::Leaf(Test::Values { column, set }) = part else { return list.push(part) };
    let known = list.iter_mut().find_map(|known| match known {
        Part::Leaf(Test::Values { column: other, set }) if *other == column => Some(set),
        _ => None,
    });
    match known {
        Some(known) if is_all => *known = known.clone().and(&set),
        Some(known) => *known = known.clone().or(&set),
        None => list.push(Part::Leaf(Test::Values { column, set })),
    }
}

/// A filter as a clause; `None` if it may fail.
fn part(filter: &Expr, context: &Context<'_>) -> Option<Part> {
    let (list, is_all) = match &filter.kind {
        ExprKind::And(list) => (list, true),
        ExprKind::Or(list) => (list, false),
        _ => {
            let test = column_test(filter, context);
            return test
                .or_else(|| (!expr_may_fail(filter)).then(|| Test::Expr(filter.clone())))
                .map(Part::Leaf);
        }
    };
    let mut parts = Vec::with_capacity(list.len());
    for filter in list {
        add(&mut parts, part(filter, context)?, is_all);
    }
    if parts.len() == 1 {
        return parts.pop();
    }
    let mut columns = Vec::new();
    columns_of(filter, &mut columns);
    Some(match (&columns[..], is_all) {
        // Of one column, it is evaluated as a whole once per entry of a dictionary.
        ([_], _) if !expr_may_fail(filter) => Part::Leaf(Test::Expr(filter.clone())),
        (_, true) => Part::All(parts),
        (_, false) => Part::Any(parts),
    })
}

/// The columns that an expression reads, each once.
fn columns_of(expr: &Expr, columns: &mut Vec<usize>) {
    if let ExprKind::Column(column) = expr.kind
        && !columns.contains(&column)
    {
        columns.push(column);
    }
    expr.for_each_child(&mut |child| columns_of(child, columns));
}

fn kernel_comparison(op: BinaryOp) -> Option<Comparison> {
    Some(match op {
        BinaryOp::Equal => Comparison::Equal,
        BinaryOp::NotEqual => Comparison::NotEqual,
        BinaryOp::Less => Comparison::Less,
        BinaryOp::LessOrEqual => Comparison::LessOrEqual,
        BinaryOp::Greater => Comparison::Greater,
        BinaryOp::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// Whether a constant is comparable with a column of this type by its stored number or text alone.
pub(in crate::scan) fn same_family(data_type: DataType, value: &Value) -> bool {
    match (data_type, value) {
        (_, Value::Null) => true,
        (DataType::Decimal { scale, .. }, Value::Decimal { scale: other, .. }) => scale == *other,
        (DataType::Decimal { .. }, _) | (_, Value::Decimal { .. }) | (DataType::Interval, _) => {
            false
        }
        (data_type, value) => {
            let natural = value.natural_type();
            let integers = |t: DataType| t.is_integer();
            data_type == natural
                || (integers(data_type) && integers(natural))
                || (data_type.is_float() && natural.is_float())
                || matches!((data_type, value), (DataType::Text { .. }, Value::Text(_)))
                || matches!((data_type, value), (DataType::Binary { .. }, Value::Binary(_)))
        }
    }
}

/// A filter as a test of one column against constants.
fn column_test(filter: &Expr, context: &Context<'_>) -> Option<Test> {
    match &filter.kind {
        ExprKind::Binary { op, left, right } => {
            let data_type = if matches!(left.kind, ExprKind::Column(_)) {
                left.data_type
            } else {
                right.data_type
            };
            let (column, turned, value) = comparison(filter, context)?;
            if !same_family(data_type, &value) {
                return None;
            }
            let physical = data_type.physical();
            let set = match op {
                // Never null; with a constant that is not null, it is true where the values are
                // equal.
                BinaryOp::NotDistinct if !value.is_null() => {
                    Predicate::compare(physical, Comparison::Equal, &value)?
                }
                _ => Predicate::compare(physical, kernel_comparison(turned)?, &value)?,
            };
            Some(Test::Values { column, set })
        }
        ExprKind::InList { arg, list, negated } => {
            let ExprKind::Column(column) = arg.kind else { return None };
            let values = list.iter().map(|e| constant(e, context)).collect::<Option<Vec<_>>>()?;
            if !values.iter().all(|value| same_family(arg.data_type, value)) {
                return None;
            }
            let physical = arg.data_type.physical();
            let among = Predicate::any_of(physical, &values)?;
            let set = match negated {
                false => among,
                // Not equal to null is never true.
                true if values.iter().any(Value::is_null) => Predicate::nothing(physical),
                true => among.not(),
            };
            Some(Test::Values { column, set })
        }
        ExprKind::IsNull { arg, negated } => {
            let ExprKind::Column(column) = arg.kind else { return None };
            Some(match negated {
                true => {
                    let set = Predicate::nothing(arg.data_type.physical()).not();
                    Test::Values { column, set }
                }
                false => Test::Null { column },
            })
        }
        ExprKind::Like { .. } => {
            let Like { column, pattern, negated } = like(filter, context)?;
            let set = like_set(&pattern)?;
            Some(Test::Values { column, set: if negated { set.not() } else { set } })
        }
        _ => None,
    }
}

/// A column `LIKE` a constant pattern without escapes.
struct Like {
    column: usize,
    pattern: String,
    negated: bool,
}

fn like(filter: &Expr, context: &Context<'_>) -> Option<Like> {
    let ExprKind::Like { arg, pattern, escape, negated, case_insensitive: false } = &filter.kind
    else {
        return None;
    };
    let (ExprKind::Column(column), DataType::Text { .. }) = (&arg.kind, arg.data_type) else {
        return None;
    };
    let Some(Value::Text(pattern)) = constant(pattern, context) else { return None };
    let has_escapes = pattern.contains(escape.unwrap_or('\\'));
    let like = Like { column: *column, pattern: pattern.to_string(), negated: *negated };
    (!has_escapes).then_some(like)
}

/// The texts for which a `LIKE` is true, if its only wildcard is `%`.
fn pattern_of(filter: &Expr, context: &Context<'_>) -> Option<Pattern> {
    let Like { pattern, negated, .. } = like(filter, context)?;
    let literals: Vec<&[u8]> = pattern.split('%').map(str::as_bytes).collect();
    if pattern.contains('_') { None } else { Pattern::new(&literals, negated) }
}

/// The texts that match a `LIKE` pattern, if they are one text or all texts with one beginning.
fn like_set(pattern: &str) -> Option<Predicate> {
    let fixed = pattern.find(['%', '_']).unwrap_or(pattern.len());
    let (fixed, rest) = pattern.split_at(fixed);
    if !rest.chars().all(|c| c == '%') {
        return None;
    }
    if rest.is_empty() {
        let text = Value::Text(fixed.into());
        return Predicate::compare(DataType::TEXT.physical(), Comparison::Equal, &text);
    }
    Some(Predicate::starts_with(fixed.as_bytes()))
}
