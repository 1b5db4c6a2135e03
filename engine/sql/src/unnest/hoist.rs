//! Hoists a subquery's references to its enclosing row to the subquery's top, as far as that
//! preserves its meaning.

use super::tools::{columns_of, empty_value, one_empty_row, over_one_row};
use super::unnester::Unnester;
use crate::analysis::columns::{conjuncts, shift_columns, substitute};
use crate::analysis::conditions::filter;
use crate::analysis::equality::compare;
use crate::analysis::subqueries::{correlated, has_column, is_outer};
use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind};
use crate::plan::node::limit_by::LimitBy;
use crate::plan::{Field, JoinKind, Plan, SortKey};

/// A plan and what was hoisted out of it. Expressions are over the plan's row and enclosing rows.
pub(super) struct Hoisted {
    pub plan: Plan,
    /// The columns of the original plan.
    pub outputs: Vec<Expr>,
    /// Conditions its rows must satisfy.
    pub conditions: Vec<Expr>,
    /// Outputs of the one row returned when no row satisfies the conditions. `None` if no row is
    /// returned then.
    pub missing: Option<Vec<Expr>>,
}

impl Hoisted {
    /// Wraps a plan from which nothing was hoisted.
    pub(super) fn plain(plan: Plan) -> Hoisted {
        Hoisted { outputs: columns_of(&plan.fields()), plan, conditions: Vec::new(), missing: None }
    }

    fn keeps_outputs_inside(&self, frame: u32) -> bool {
        !self.outputs.iter().any(|e| is_outer(e, frame))
    }
}

/// Matches `inner = outer`, where the inner side reads only the plan's row and the outer side does
/// not read it.
fn inner_key(condition: &Expr, frame: u32) -> Option<Expr> {
    let ExprKind::Binary { op: BinaryOp::Equal, left, right } = &condition.kind else {
        return None;
    };
    // Equal intervals may belong to different groups.
    if left.data_type == nacre_types::DataType::Interval {
        return None;
    }
    match (is_outer(left, frame), is_outer(right, frame)) {
        (false, true) if !has_column(right) => Some((**left).clone()),
        (true, false) if !has_column(left) => Some((**right).clone()),
        _ => None,
    }
}

/// Replaces the inner side of an [`inner_key`] condition.
fn with_inner(condition: &Expr, frame: u32, inner: Expr) -> Expr {
    match &condition.kind {
        ExprKind::Binary { left, .. } if is_outer(left, frame) => {
            compare(BinaryOp::Equal, (**left).clone(), inner)
        }
        ExprKind::Binary { right, .. } => compare(BinaryOp::Equal, inner, (**right).clone()),
        _ => condition.clone(),
    }
}

impl Unnester<'_> {
    pub(super) fn hoist(&mut self, plan: Plan, frame: u32) -> Hoisted {
        if !correlated(&plan, frame) {
            return Hoisted::plain(plan);
        }
        match plan {
            Plan::Filter { input, predicate } if !over_one_row(&input) => {
                let mut h = self.hoist(*input, frame);
                self.condition(predicate, frame, &mut h);
                h
            }
            Plan::Project { input, mut exprs, .. } => {
                let mut h = self.hoist(*input, frame);
                if let Some(missing) = &mut h.missing {
                    let mut list = exprs.clone();
                    list.iter_mut().for_each(|e| substitute(e, missing));
                    *missing = list;
                }
                exprs.iter_mut().for_each(|e| substitute(e, &h.outputs));
                h.outputs = exprs;
                h
            }
            Plan::Values { mut rows, .. } if rows.len() == 1 => Hoisted {
                plan: one_empty_row(),
                outputs: rows.remove(0),
                conditions: Vec::new(),
                missing: None,
            },
            Plan::Sort { input, limit: None, .. } => self.hoist(*input, frame),
            Plan::Join { left, right, kind, keys, residual } => {
                self.hoist_join(*left, *right, kind, keys, residual, frame)
            }
            Plan::Aggregate { .. } => self.hoist_aggregate(plan, frame),
            Plan::Limit { .. } | Plan::Node(_) => self.hoist_limit(plan, frame),
            other => Hoisted::plain(other),
        }
    }

    /// Adds a condition over the original columns: below, if it reads only the plan's own row,
    /// otherwise hoisted.
    fn condition(&mut self, condition: Expr, frame: u32, h: &mut Hoisted) {
        let mut condition = condition;
        substitute(&mut condition, &h.outputs);
        let mut list = Vec::new();
        conjuncts(condition, &mut list);
        let (up, here): (Vec<_>, Vec<_>) = list.into_iter().partition(|c| is_outer(c, frame));
        let plan = std::mem::replace(&mut h.plan, one_empty_row());
        h.plan = filter(plan, here);
        h.conditions.extend(up);
    }

    fn hoist_join(
        &mut self,
        left: Plan,
        right: Plan,
        kind: JoinKind,
        mut keys: Vec<(Expr, Expr)>,
        mut residual: Option<Expr>,
        frame: u32,
    ) -> Hoisted {
        let whole = |left: Plan, right, keys, residual| {
            Hoisted::plain(Plan::Join {
                left: Box::new(left),
                right: Box::new(right),
                kind,
                keys,
                residual,
            })
        };
        let mut h = match kind {
            JoinKind::Inner
            | JoinKind::Left
            | JoinKind::Single
            | JoinKind::Semi
            | JoinKind::Anti
            | JoinKind::Mark
            | JoinKind::MarkIn => {
                if over_one_row(&left) {
                    Hoisted::plain(left)
                } else {
                    self.hoist(left, frame)
                }
            }
            _ => return whole(left, right, keys, residual),
        };
        let width = h.plan.fields().len();
        let mut r = if kind == JoinKind::Inner && !over_one_row(&right) {
            self.hoist(right, frame)
        } else {
            Hoisted::plain(right)
        };
        let shift = |e: &mut Expr| shift_columns(e, width as isize);
        r.outputs.iter_mut().chain(&mut r.conditions).for_each(shift);
        keys.iter_mut().for_each(|(l, k)| {
            substitute(l, &h.outputs);
            // Right keys read the right row alone.
            let mut by = r.outputs.clone();
            by.iter_mut().for_each(|e| shift_columns(e, -(width as isize)));
            substitute(k, &by);
        });
        let both: Vec<Expr> = h.outputs.iter().chain(&r.outputs).cloned().collect();
        if let Some(residual) = &mut residual {
            substitute(residual, &both);
        }
        if kind == JoinKind::Inner {
            let left = Box::new(h.plan);
            let plan = Plan::Join { left, right: Box::new(r.plan), kind, keys, residual: None };
            h.conditions.append(&mut r.conditions);
            let mut h = Hoisted { plan, outputs: both, conditions: h.conditions, missing: None };
            if let Some(residual) = residual {
                // The residual is already over the new row.
                let outputs = std::mem::take(&mut h.outputs);
                h.outputs = columns_of(&h.plan.fields());
                self.condition(residual, frame, &mut h);
                h.outputs = outputs;
            }
            return h;
        }
        let outputs = match (kind.sides(), kind.marks()) {
            ((true, true), _) => both,
            (_, true) => {
                h.outputs.push(Expr::column(width, nacre_types::DataType::Boolean));
                h.outputs
            }
            _ => h.outputs,
        };
        let plan =
            Plan::Join { left: Box::new(h.plan), right: Box::new(r.plan), kind, keys, residual };
        Hoisted { plan, outputs, conditions: h.conditions, missing: None }
    }

    /// Turns conditions that equate an input expression with the enclosing row into group keys.
    /// References to other enclosing rows stay below.
    fn hoist_aggregate(&mut self, plan: Plan, frame: u32) -> Hoisted {
        let Plan::Aggregate { input, mut groups, mut aggregates, fields } = plan else {
            return Hoisted::plain(plan);
        };
        if over_one_row(&input) {
            return Hoisted::plain(Plan::Aggregate { input, groups, aggregates, fields });
        }
        let h = self.hoist(*input, frame);
        let (up, below): (Vec<_>, Vec<_>) = h
            .conditions
            .iter()
            .cloned()
            .partition(|c| inner_key(c, frame).is_some() && h.keeps_outputs_inside(frame));
        let input = Box::new(filter(h.plan, below));
        let parts = aggregates.iter_mut().flat_map(Aggregate::exprs_mut);
        groups.iter_mut().chain(parts).for_each(|e| substitute(e, &h.outputs));
        let (count, total) = (groups.len(), groups.len() + aggregates.len());
        let mut new_fields = fields;
        let mut conditions = Vec::with_capacity(up.len());
        for condition in up {
            let Some(inner) = inner_key(&condition, frame) else { continue };
            let at = groups.iter().position(|g| *g == inner).unwrap_or_else(|| {
                let field =
                    Field { name: "key".into(), data_type: inner.data_type, nullable: true };
                new_fields.insert(groups.len(), field);
                groups.push(inner.clone());
                groups.len() - 1
            });
            conditions.push(with_inner(&condition, frame, Expr::column(at, inner.data_type)));
        }
        let added = groups.len() - count;
        let position = |at: usize| if at < count { at } else { at + added };
        let outputs: Vec<Expr> = (0..total)
            .map(|at| {
                Expr::column(
                    position(at),
                    new_fields
                        .get(position(at))
                        .map_or(nacre_types::DataType::Null, |f| f.data_type),
                )
            })
            .collect();
        let missing =
            (count == 0 && added > 0).then(|| aggregates.iter().map(empty_value).collect());
        let plan = Plan::Aggregate { input, groups, aggregates, fields: new_fields };
        Hoisted { plan, outputs, conditions, missing }
    }

    /// Turns a limit per enclosing row into a limit per combination of keys.
    fn hoist_limit(&mut self, plan: Plan, frame: u32) -> Hoisted {
        let (input, mut keys, offset, limit) = match (&plan, plan.as_node::<LimitBy>()) {
            (Plan::Limit { input, offset, limit }, _) => (&**input, Vec::new(), offset, limit),
            (_, Some(LimitBy { input, keys, offset, limit })) => {
                (input, keys.clone(), offset, limit)
            }
            _ => return Hoisted::plain(plan),
        };
        if over_one_row(input) {
            return Hoisted::plain(plan);
        }
        let Some(mut h) = self.hoist_sorted(input.clone(), frame) else {
            return Hoisted::plain(plan);
        };
        let inner: Option<Vec<Expr>> = h.conditions.iter().map(|c| inner_key(c, frame)).collect();
        let Some(inner) = inner else { return Hoisted::plain(plan) };
        keys.iter_mut().for_each(|k| substitute(k, &h.outputs));
        if h.missing.is_some() || keys.iter().any(|k| is_outer(k, frame)) {
            return Hoisted::plain(plan);
        }
        keys.extend(inner);
        let (offset, limit) = (offset.clone(), limit.clone());
        h.plan = Plan::Node(Box::new(LimitBy { input: h.plan, keys, offset, limit }));
        h
    }

    /// Like [`Unnester::hoist`], but preserves row order; `None` if that is impossible.
    fn hoist_sorted(&mut self, plan: Plan, frame: u32) -> Option<Hoisted> {
        match plan {
            Plan::Project { input, mut exprs, .. } => {
                let mut h = self.hoist_sorted(*input, frame)?;
                exprs.iter_mut().for_each(|e| substitute(e, &h.outputs));
                h.outputs = exprs;
                h.missing.is_none().then_some(h)
            }
            Plan::Sort { input, keys, limit: None } => {
                let mut h = self.hoist(*input, frame);
                let key = |mut key: SortKey| {
                    substitute(&mut key.expr, &h.outputs);
                    key
                };
                let keys: Vec<SortKey> = keys.into_iter().map(key).collect();
                if keys.iter().any(|k| is_outer(&k.expr, frame)) {
                    return None;
                }
                h.plan = Plan::Sort { input: Box::new(h.plan), keys, limit: None };
                Some(h)
            }
            other => Some(self.hoist(other, frame)),
        }
    }
}
