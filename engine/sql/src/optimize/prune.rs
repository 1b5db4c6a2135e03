//! Projection pruning: every node outputs only columns that a node above reads. Projections that
//! only reorder columns disappear; a map tells the parent where its columns went.

use crate::analysis::columns::{mark, moved};
use crate::expr::{Expr, ExprKind};
use crate::plan::{ColumnMap, Field, Plan, Pruning};
use nacre_types::invariant::broken;

/// Prunes below the root, whose fields stay as they are.
pub(crate) fn prune_root(plan: Plan) -> Plan {
    let fields = plan.fields();
    let (plan, map) = prune(plan, vec![true; fields.len()]);
    let now = plan.fields();
    let same = now.len() == fields.len()
        && map.iter().enumerate().all(|(at, to)| *to == Some(at))
        && now.iter().zip(&fields).all(|(a, b)| a.name == b.name);
    if same {
        return plan;
    }
    let exprs: Vec<Expr> = fields
        .iter()
        .zip(&map)
        .enumerate()
        .map(|(at, (f, to))| match to {
            Some(to) => Expr::column(*to, f.data_type),
            None => broken(format_args!("output column {at} was pruned")),
        })
        .collect();
    project(plan, exprs, fields)
}

/// Builds a projection, merged with the one below unless an expression would then be computed
/// twice.
fn project(input: Plan, mut exprs: Vec<Expr>, fields: Vec<Field>) -> Plan {
    match input {
        Plan::Project { input: inner, exprs: below, .. }
            if exprs.iter().all(is_column) && once(&exprs, &below) =>
        {
            exprs.iter_mut().for_each(|e| crate::analysis::columns::substitute(e, &below));
            Plan::Project { input: inner, exprs, fields }
        }
        input => Plan::Project { input: Box::new(input), exprs, fields },
    }
}

fn is_column(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Column(_))
}

/// Whether merging computes every lower expression at most once.
fn once(exprs: &[Expr], below: &[Expr]) -> bool {
    let mut seen = vec![false; below.len()];
    exprs.iter().all(|e| match e.kind {
        ExprKind::Column(at) => {
            let cheap = below
                .get(at)
                .is_some_and(|b| is_column(b) || matches!(b.kind, ExprKind::Literal(_)));
            cheap || seen.get_mut(at).is_some_and(|s| !std::mem::replace(s, true))
        }
        _ => false,
    })
}

/// The map that packs the kept columns together in order.
fn packed(needed: &[bool]) -> ColumnMap {
    let mut next = 0;
    needed
        .iter()
        .map(|n| {
            n.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}

/// Prunes to exactly the needed columns, packed in order.
fn prune_to(plan: Plan, needed: &[bool]) -> Plan {
    let fields: Vec<Field> =
        plan.fields().into_iter().zip(needed).filter(|(_, n)| **n).map(|(f, _)| f).collect();
    let (plan, map) = prune(plan, needed.to_vec());
    let kept: Vec<usize> =
        map.iter().zip(needed).filter(|(_, n)| **n).filter_map(|(to, _)| *to).collect();
    if kept.iter().copied().eq(0..plan.fields().len()) {
        return plan;
    }
    let exprs = kept.iter().zip(&fields).map(|(at, f)| Expr::column(*at, f.data_type)).collect();
    project(plan, exprs, fields)
}

/// Prunes the input of a node that copies rows. Columns that only a scan's filters read are
/// projected away, so they are not copied.
fn prune_copied(plan: Plan, needed: Vec<bool>) -> (Plan, ColumnMap) {
    let (plan, map) = prune(plan, needed.clone());
    let fields = plan.fields();
    let mut wanted = vec![false; fields.len()];
    for at in map.iter().zip(&needed).filter_map(|(to, needed)| to.filter(|_| *needed)) {
        if let Some(slot) = wanted.get_mut(at) {
            *slot = true;
        }
    }
    let left_out = wanted.iter().any(|wanted| !wanted);
    if !matches!(plan, Plan::Scan { .. }) || !left_out || !wanted.contains(&true) {
        return (plan, map);
    }
    let places = packed(&wanted);
    let kept = || fields.iter().enumerate().filter(|(at, _)| wanted[*at]);
    let exprs = kept().map(|(at, field)| Expr::column(at, field.data_type)).collect();
    let fields = kept().map(|(_, field)| field.clone()).collect();
    let map =
        map.into_iter().map(|to| to.and_then(|at| places.get(at).copied().flatten())).collect();
    (Plan::Project { input: Box::new(plan), exprs, fields }, map)
}

fn prune(plan: Plan, mut needed: Vec<bool>) -> (Plan, ColumnMap) {
    match plan {
        Plan::Scan { table, mut projection, mut paths, mut filters, keys } => {
            filters.iter().for_each(|f| mark(f, &mut needed));
            let map = packed(&needed);
            let mut kept = needed.iter();
            projection.retain(|_| kept.next() == Some(&true));
            paths.retain(|_| kept.next() == Some(&true));
            filters.iter_mut().for_each(|f| moved(f, &map));
            debug_assert!(keys.is_empty(), "keys are named before columns are pruned");
            (Plan::Scan { table, projection, paths, filters, keys }, map)
        }
        Plan::Values { .. } => {
            let map = (0..needed.len()).map(Some).collect();
            (plan, map)
        }
        Plan::Filter { input, mut predicate } => {
            mark(&predicate, &mut needed);
            let (input, map) = prune(*input, needed);
            moved(&mut predicate, &map);
            (Plan::Filter { input: Box::new(input), predicate }, map)
        }
        Plan::Project { input, exprs, fields } => {
            let mut below = vec![false; input.fields().len()];
            for (expr, _) in exprs.iter().zip(&needed).filter(|(_, n)| **n) {
                mark(expr, &mut below);
            }
            let (input, input_map) = prune(*input, below);
            let keep = |at: usize| needed[at];
            if exprs.iter().enumerate().all(|(at, e)| !keep(at) || is_column(e)) {
                let to = |(at, e): (usize, &Expr)| match e.kind {
                    ExprKind::Column(column) if keep(at) => {
                        input_map.get(column).copied().flatten()
                    }
                    _ => None,
                };
                let map = exprs.iter().enumerate().map(to).collect();
                return (input, map);
            }
            let map = packed(&needed);
            let (mut new_exprs, mut new_fields) = (Vec::new(), Vec::new());
            for (at, (mut expr, field)) in exprs.into_iter().zip(fields).enumerate() {
                if keep(at) {
                    moved(&mut expr, &input_map);
                    new_exprs.push(expr);
                    new_fields.push(field);
                }
            }
            (project(input, new_exprs, new_fields), map)
        }
        Plan::Aggregate { input, mut groups, aggregates, fields } => {
            // Group keys determine the rows and must stay; unread aggregates can go.
            for slot in needed.iter_mut().take(groups.len()) {
                *slot = true;
            }
            let map = packed(&needed);
            let mut below = vec![false; input.fields().len()];
            groups.iter().for_each(|g| mark(g, &mut below));
            let kept =
                aggregates.into_iter().zip(needed.iter().skip(groups.len())).filter(|(_, n)| **n);
            let mut aggregates: Vec<_> = kept.map(|(a, _)| a).collect();
            for aggregate in &aggregates {
                aggregate.exprs().for_each(|e| mark(e, &mut below));
            }
            let (input, input_map) = prune(*input, below);
            groups.iter_mut().for_each(|g| moved(g, &input_map));
            for aggregate in &mut aggregates {
                aggregate.exprs_mut().for_each(|e| moved(e, &input_map));
            }
            let fields =
                fields.into_iter().zip(&needed).filter(|(_, n)| **n).map(|(f, _)| f).collect();
            (Plan::Aggregate { input: Box::new(input), groups, aggregates, fields }, map)
        }
        Plan::Join { left, right, kind, mut keys, mut residual } => {
            let width = left.fields().len();
            let right_width = right.fields().len();
            let (keeps_left, keeps_right) = kind.sides();
            let mut need_left = match (keeps_left, keeps_right) {
                (false, _) => vec![false; width],
                (true, _) => needed.iter().copied().take(width).collect(),
            };
            match (keeps_left, keeps_right) {
                (true, true) => need_left.extend(needed.iter().skip(width)),
                (false, _) => need_left.extend(&needed),
                (true, false) => {}
            }
            need_left.resize(width + right_width, false);
            if let Some(residual) = &residual {
                mark(residual, &mut need_left);
            }
            let mut need_right = need_left.split_off(width);
            for (l, r) in &keys {
                mark(l, &mut need_left);
                mark(r, &mut need_right);
            }
            let (left, left_map) = prune_copied(*left, need_left);
            let (right, right_map) = prune_copied(*right, need_right);
            for (l, r) in &mut keys {
                moved(l, &left_map);
                moved(r, &right_map);
            }
            let new_width = left.fields().len();
            let mut map = left_map;
            let shifted = right_map.into_iter().map(|to| to.map(|at| at + new_width));
            map.extend(shifted);
            if let Some(residual) = &mut residual {
                moved(residual, &map);
            }
            match (keeps_left, keeps_right) {
                (true, true) => {}
                (true, false) => {
                    map.truncate(width);
                    if kind.marks() {
                        map.push(Some(new_width));
                    }
                }
                (false, _) => {
                    map = map
                        .split_off(width)
                        .into_iter()
                        .map(|to| to.map(|at| at - new_width))
                        .collect()
                }
            }
            (Plan::Join { left: Box::new(left), right: Box::new(right), kind, keys, residual }, map)
        }
        Plan::Node(mut node) => {
            let pruning = Pruning { keep: prune, keep_exactly: prune_to };
            match node.prune(needed, &pruning) {
                (Some(other), map) => (other, map),
                (None, map) => (Plan::Node(node), map),
            }
        }
        Plan::Union { inputs, fields } => {
            let inputs = inputs.into_iter().map(|input| prune_to(input, &needed)).collect();
            let fields =
                fields.into_iter().zip(&needed).filter(|(_, n)| **n).map(|(f, _)| f).collect();
            (Plan::Union { inputs, fields }, packed(&needed))
        }
        Plan::Sort { input, mut keys, limit } => {
            keys.iter().for_each(|k| mark(&k.expr, &mut needed));
            let (input, map) = prune(*input, needed);
            keys.iter_mut().for_each(|k| moved(&mut k.expr, &map));
            (Plan::Sort { input: Box::new(input), keys, limit }, map)
        }
        Plan::Limit { input, offset, limit } => {
            let (input, map) = prune(*input, needed);
            (Plan::Limit { input: Box::new(input), offset, limit }, map)
        }
        Plan::Recursive { id, base, step, distinct, fields } => {
            let every = vec![true; fields.len()];
            let (base, step) =
                (Box::new(prune_to(*base, &every)), Box::new(prune_to(*step, &every)));
            let map = (0..fields.len()).map(Some).collect();
            (Plan::Recursive { id, base, step, distinct, fields }, map)
        }
        // Other consumers read the same input.
        Plan::Shared { .. } | Plan::Given { .. } => {
            let map = (0..needed.len()).map(Some).collect();
            (plan, map)
        }
    }
}
