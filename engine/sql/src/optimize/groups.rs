//! Removes group keys that other group keys determine: grouping by a customer's key and name need
//! not compare names. A determined text key becomes the minimum over the group's rows, which all
//! have the same text.

use crate::expr::{Aggregate, Expr, ExprKind};
use crate::plan::{Field, JoinKind, Plan};
use nacre_function::aggregate::extreme::MIN;
use nacre_types::{DataType, PhysicalType};

/// Removes determined text keys from all groupings of a plan.
pub(super) fn reduce(plan: &mut Plan) {
    plan.for_each_own_input_mut(&mut reduce);
    let Plan::Aggregate { input, groups, aggregates, fields } = plan else { return };
    let text = |e: &Expr| matches!(e.data_type, DataType::Text { .. }) && column(e).is_some();
    if groups.len() < 2 || !groups.iter().any(text) {
        return;
    }
    let width = input.fields().len();
    let mut kept: Vec<bool> = vec![true; groups.len()];
    for at in (0..groups.len()).filter(|at| text(&groups[*at])) {
        let mut fixed = vec![false; width];
        let others = groups.iter().enumerate().filter(|(other, _)| *other != at && kept[*other]);
        others.filter_map(|(_, e)| column(e)).for_each(|c| fixed[c] = true);
        determine(input, &mut fixed);
        kept[at] = !column(&groups[at]).is_some_and(|c| fixed[c]);
    }
    if kept.iter().all(|kept| *kept) {
        return;
    }
    let old = std::mem::take(fields);
    let (mut new_groups, mut least) = (Vec::new(), Vec::new());
    let (mut group_fields, mut least_fields): (Vec<Field>, Vec<Field>) = (Vec::new(), Vec::new());
    // Where each old column went: the index of a kept group, or an offset after the other
    // aggregates.
    let mut places: Vec<(bool, usize)> = Vec::new();
    for ((group, kept), field) in std::mem::take(groups).into_iter().zip(&kept).zip(&old) {
        if *kept {
            places.push((true, new_groups.len()));
            new_groups.push(group);
            group_fields.push(field.clone());
        } else {
            places.push((false, least.len()));
            let (function, data_type) = (&MIN, group.data_type);
            least.push(Aggregate {
                function: function.into(),
                args: vec![group],
                order: Vec::new(),
                distinct: false,
                filter: None,
                data_type,
            });
            least_fields.push(field.clone());
        }
    }
    let (count, first) = (new_groups.len(), new_groups.len() + aggregates.len());
    let mut exprs: Vec<Expr> = Vec::with_capacity(old.len());
    for (place, field) in places.iter().zip(&old) {
        exprs.push(Expr::column(if place.0 { place.1 } else { first + place.1 }, field.data_type));
    }
    let others = &old[places.len()..];
    exprs.extend(
        others.iter().enumerate().map(|(at, field)| Expr::column(count + at, field.data_type)),
    );
    let mut fields = group_fields;
    fields.extend(others.iter().cloned());
    fields.extend(least_fields);
    let mut aggregates = std::mem::take(aggregates);
    aggregates.extend(least);
    let input = std::mem::replace(&mut **input, Plan::nothing());
    let aggregate =
        Plan::Aggregate { input: Box::new(input), groups: new_groups, aggregates, fields };
    *plan = Plan::Project { input: Box::new(aggregate), exprs, fields: old };
}

fn column(expr: &Expr) -> Option<usize> {
    match expr.kind {
        ExprKind::Column(at) => Some(at),
        _ => None,
    }
}

/// Adds to `fixed` the output columns that the `fixed` columns determine.
fn determine(plan: &Plan, fixed: &mut [bool]) {
    match plan {
        Plan::Scan { table, projection, .. } => {
            let is_fixed =
                |c: &usize| projection.iter().zip(&*fixed).any(|(p, fixed)| p == c && *fixed);
            if table.unique_sets(true).any(|set| set.iter().all(is_fixed)) {
                fixed.fill(true);
            }
        }
        Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => {
            determine(input, fixed)
        }
        Plan::Project { input, exprs, .. } => {
            let mut below = vec![false; input.fields().len()];
            let columns = || exprs.iter().map(column);
            columns()
                .zip(&*fixed)
                .filter(|(_, fixed)| **fixed)
                .filter_map(|(c, _)| c)
                .for_each(|c| below[c] = true);
            determine(input, &mut below);
            columns().zip(fixed).for_each(|(c, fixed)| *fixed |= c.is_some_and(|c| below[c]));
        }
        Plan::Join { left, kind: JoinKind::Semi | JoinKind::Anti, .. } => determine(left, fixed),
        Plan::Join { right, kind: JoinKind::RightSemi | JoinKind::RightAnti, .. } => {
            determine(right, fixed)
        }
        Plan::Join { left, right, kind: JoinKind::Inner, keys, .. } => {
            let (l, r) = fixed.split_at_mut(left.fields().len());
            // Only for integers and texts do equal values have one representation, so that equality
            // carries over.
            let exact = |e: &Expr| {
                matches!(e.data_type.physical(), PhysicalType::I64 | PhysicalType::Bytes)
            };
            let pairs = keys.iter().filter(|(a, b)| exact(a) && a.data_type == b.data_type);
            let pairs: Vec<(usize, usize)> =
                pairs.filter_map(|(a, b)| column(a).zip(column(b))).collect();
            loop {
                determine(left, l);
                determine(right, r);
                let mut grew = false;
                for (a, b) in &pairs {
                    grew |= l[*a] != r[*b];
                    (l[*a], r[*b]) = (l[*a] | r[*b], l[*a] | r[*b]);
                }
                if !grew {
                    return;
                }
            }
        }
        _ => {}
    }
}
