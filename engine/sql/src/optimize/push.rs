//! Predicate push-down. Conditions travel as a list of conjuncts over a node's output; each node
//! passes down what its inputs can decide and keeps the rest above itself.

use super::estimate::Estimates;
use super::{join, sides};
use crate::analysis::columns::{all, conjuncts, only, shift_columns, substitute};
use crate::analysis::conditions::{filter, key, key_pairs};
use crate::analysis::equal_values::tells_equals_apart;
use crate::analysis::may_fail::expr_may_fail;
use crate::analysis::size::grows;
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_types::Value;

/// Pushes `conditions`, which are over the plan's output, and the plan's own conditions down as far
/// as they go.
pub(crate) fn push(plan: Plan, mut conditions: Vec<Expr>, estimates: &Estimates<'_>) -> Plan {
    match plan {
        Plan::Scan { table, projection, paths, mut filters, keys } => {
            for condition in conditions {
                // Long lists rarely repeat a condition, and the check is quadratic.
                if filters.len() > 64 || !filters.contains(&condition) {
                    filters.push(condition);
                }
            }
            filters.sort_by_cached_key(expr_may_fail);
            Plan::Scan { table, projection, paths, filters, keys }
        }
        Plan::Values { .. } | Plan::Shared { .. } | Plan::Given { .. } => filter(plan, conditions),
        // A row that fails the condition may still lead to rows that pass it.
        Plan::Recursive { id, base, step, distinct, fields } => {
            let base = Box::new(push(*base, Vec::new(), estimates));
            let step = Box::new(push(*step, Vec::new(), estimates));
            filter(Plan::Recursive { id, base, step, distinct, fields }, conditions)
        }
        Plan::Filter { input, predicate } => {
            let mut list = Vec::new();
            conjuncts(predicate, &mut list);
            list.append(&mut conditions);
            push(*input, list, estimates)
        }
        Plan::Project { input, exprs, fields } => {
            let (down, above) = through(conditions, &exprs);
            filter(
                Plan::Project { input: Box::new(push(*input, down, estimates)), exprs, fields },
                above,
            )
        }
        Plan::Aggregate { input, groups, aggregates, fields } => {
            // An aggregate without groups returns a row even for empty input, so nothing may be
            // filtered below it. A condition must drop whole groups.
            let below = |c: &Expr| {
                !groups.is_empty() && only(c, &|at| at < groups.len()) && !tells_equals_apart(c)
            };
            let (down, mut keep): (Vec<_>, Vec<_>) = conditions.into_iter().partition(below);
            let (down, mut large) = through(down, &groups);
            keep.append(&mut large);
            let input = Box::new(push(*input, down, estimates));
            filter(Plan::Aggregate { input, groups, aggregates, fields }, keep)
        }
        // The condition reads one row only, so every input can evaluate it.
        Plan::Union { inputs, fields } => {
            let inputs = inputs
                .into_iter()
                .map(|input| push(input, conditions.clone(), estimates))
                .collect();
            Plan::Union { inputs, fields }
        }
        Plan::Node(mut node) => {
            let above = node.push_filters(conditions, &mut |input, below| {
                *input = push(std::mem::replace(input, Plan::nothing()), below, estimates);
            });
            filter(Plan::Node(node), above)
        }
        Plan::Sort { input, keys, limit: None } => {
            Plan::Sort { input: Box::new(push(*input, conditions, estimates)), keys, limit: None }
        }
        Plan::Sort { input, keys, limit } => {
            let input = Box::new(push(*input, Vec::new(), estimates));
            filter(Plan::Sort { input, keys, limit }, conditions)
        }
        Plan::Limit { input, offset, limit } => {
            let mut input = push(*input, Vec::new(), estimates);
            if let (Some(limit), Some(offset)) =
                (rows(limit.as_ref()), rows(offset.as_ref().or(Some(&ZERO))))
            {
                limit_sort(&mut input, limit.saturating_add(offset));
            }
            filter(Plan::Limit { input: Box::new(input), offset, limit }, conditions)
        }
        Plan::Join { kind: JoinKind::Inner, .. } => join::order(plan, conditions, estimates, push),
        Plan::Join { left, right, kind, keys, residual } => {
            let mut on = Vec::new();
            if let Some(residual) = residual {
                conjuncts(residual, &mut on);
            }
            // The residual is three-valued, and the keys were extracted when the join was built.
            if kind == JoinKind::MarkIn {
                let width = left.fields().len();
                let (down, above): (Vec<_>, Vec<_>) =
                    conditions.into_iter().partition(|c| only(c, &|at| at < width));
                let (left, right) =
                    (push(*left, down, estimates), push(*right, Vec::new(), estimates));
                let residual = (!on.is_empty()).then(|| all(on));
                let (left, right) = (Box::new(left), Box::new(right));
                return filter(Plan::Join { left, right, kind, keys, residual }, above);
            }
            let (kind, conditions) = simplify(kind, left.fields().len(), conditions);
            if kind == JoinKind::Semi && keys.is_empty() && is_lookup(&left, &right, &on) {
                let residual = if on.is_empty() { None } else { Some(all(on)) };
                let fields = left.fields();
                let exprs = fields
                    .iter()
                    .enumerate()
                    .map(|(at, f)| Expr::column(at, f.data_type))
                    .collect();
                let join = Plan::Join { left, right, kind: JoinKind::Inner, keys, residual };
                return Plan::Project {
                    input: Box::new(push(join, conditions, estimates)),
                    exprs,
                    fields,
                };
            }
            if kind == JoinKind::Inner && keys.is_empty() {
                let residual = if on.is_empty() { None } else { Some(all(on)) };
                return push(
                    Plan::Join { left, right, kind, keys, residual },
                    conditions,
                    estimates,
                );
            }
            outer(*left, *right, kind, keys, on, conditions, estimates)
        }
    }
}

/// Rewrites conditions over columns into conditions over the expressions those columns stand for.
/// The second list stays above: conditions that would grow too large, and those that may fail and
/// follow such a condition, which may protect them.
fn through(conditions: Vec<Expr>, exprs: &[Expr]) -> (Vec<Expr>, Vec<Expr>) {
    let (mut down, mut above) = (Vec::with_capacity(conditions.len()), Vec::new());
    for mut condition in conditions {
        if grows(&condition, exprs) || (!above.is_empty() && expr_may_fail(&condition)) {
            above.push(condition);
        } else {
            substitute(&mut condition, exprs);
            down.push(condition);
        }
    }
    (down, above)
}

/// Whether a semi join finds at most one partner, so that it may be ordered among inner joins.
fn is_lookup(left: &Plan, right: &Plan, on: &[Expr]) -> bool {
    let width = left.fields().len();
    let mut fixed = Vec::new();
    for condition in on {
        if let Ok((_, r)) = key(condition.clone(), width)
            && let ExprKind::Column(at) = r.kind
        {
            fixed.push(at);
        }
    }
    !fixed.is_empty()
        && crate::analysis::unique::unique_among_equal(right, &|at| fixed.contains(&at))
}

const ZERO: Expr =
    Expr { kind: ExprKind::Literal(Value::Int(0)), data_type: nacre_types::DataType::Int64 };

fn rows(expr: Option<&Expr>) -> Option<u64> {
    match expr.map(|e| &e.kind) {
        Some(ExprKind::Literal(Value::Int(v))) => u64::try_from(*v).ok(),
        _ => None,
    }
}

/// Passes to a sort below a limit how many rows matter.
fn limit_sort(plan: &mut Plan, count: u64) {
    match plan {
        Plan::Sort { limit, .. } => *limit = Some(limit.map_or(count, |l| l.min(count))),
        Plan::Project { input, .. } => limit_sort(input, count),
        _ => {}
    }
}

/// Simplifies an outer join when the conditions above reject its padded rows.
fn simplify(kind: JoinKind, width: usize, conditions: Vec<Expr>) -> (JoinKind, Vec<Expr>) {
    let rejects =
        |right: bool| conditions.iter().any(|c| rejects_null(c, &|at| (at >= width) == right));
    let kind = match kind {
        JoinKind::Left if rejects(true) => JoinKind::Inner,
        JoinKind::Right if rejects(false) => JoinKind::Inner,
        JoinKind::Full => match (rejects(false), rejects(true)) {
            (true, true) => JoinKind::Inner,
            (true, false) => JoinKind::Left,
            (false, true) => JoinKind::Right,
            (false, false) => JoinKind::Full,
        },
        other => other,
    };
    (kind, conditions)
}

/// Whether a condition cannot be true when the columns of `side` are all null.
fn rejects_null(condition: &Expr, side: &dyn Fn(usize) -> bool) -> bool {
    match &condition.kind {
        ExprKind::Binary { op, left, right } if op.is_comparison() => {
            !matches!(op, BinaryOp::Distinct | BinaryOp::NotDistinct)
                && (null_of_null(left, side) || null_of_null(right, side))
        }
        ExprKind::Like { arg, .. } | ExprKind::InList { arg, .. } => null_of_null(arg, side),
        ExprKind::IsNull { arg, negated: true } => null_of_null(arg, side),
        ExprKind::And(list) => list.iter().any(|e| rejects_null(e, side)),
        ExprKind::Or(list) => list.iter().all(|e| rejects_null(e, side)),
        _ => false,
    }
}

/// Whether an expression is certainly null when the columns of `side` are null.
fn null_of_null(expr: &Expr, side: &dyn Fn(usize) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Column(at) => side(*at),
        ExprKind::Cast(arg) | ExprKind::Negate(arg) => null_of_null(arg, side),
        ExprKind::Binary { op, left, right } if !op.is_comparison() => {
            null_of_null(left, side) || null_of_null(right, side)
        }
        _ => false,
    }
}

/// Outer, semi and anti joins: pushes each side's conditions where that preserves the meaning.
fn outer(
    left: Plan,
    right: Plan,
    kind: JoinKind,
    mut keys: Vec<(Expr, Expr)>,
    on: Vec<Expr>,
    conditions: Vec<Expr>,
    estimates: &Estimates<'_>,
) -> Plan {
    let width = left.fields().len();
    let (mut to_left, mut to_right, mut above, mut residual) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let is_left = |c: &Expr| only(c, &|at| at < width);
    let is_right = |c: &Expr| only(c, &|at| at >= width);
    for condition in conditions {
        let left_only = is_left(&condition);
        match kind {
            JoinKind::Left
            | JoinKind::Semi
            | JoinKind::Anti
            | JoinKind::Mark
            | JoinKind::Single
                if left_only =>
            {
                to_left.push(condition)
            }
            JoinKind::Right if is_right(&condition) => to_right.push(condition),
            _ => above.push(condition),
        }
    }
    for condition in on {
        match kind {
            // A join condition on the side that may be padded can be evaluated on that side.
            JoinKind::Left
            | JoinKind::Semi
            | JoinKind::Anti
            | JoinKind::Mark
            | JoinKind::Single
                if is_right(&condition) =>
            {
                to_right.push(condition)
            }
            JoinKind::Right | JoinKind::Semi if is_left(&condition) => to_left.push(condition),
            _ => match key_pairs(condition, width) {
                Ok(pairs) => keys.extend(pairs),
                Err(condition) => residual.push(condition),
            },
        }
    }
    to_right.iter_mut().for_each(|c| shift_columns(c, -(width as isize)));
    let left = Box::new(push(left, to_left, estimates));
    let right = Box::new(push(right, to_right, estimates));
    let residual = if residual.is_empty() { None } else { Some(all(residual)) };
    filter(sides::choose(Plan::Join { left, right, kind, keys, residual }, estimates), above)
}
