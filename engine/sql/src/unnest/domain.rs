//! Decorrelates any subquery: joins the domain (the distinct arguments) in at the lowest nodes that
//! read it and carries its columns through every node above, so that the subquery is computed for
//! all arguments at once.

use super::tools::is_true;
use super::tools::{columns_of, empty_value, is_one_empty_row};
use super::unnester::Unnester;
use crate::analysis::columns::{all, shift_columns};
use crate::analysis::equality::{compare, or_else, same};
use crate::analysis::subqueries::{correlated, is_outer};
use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind};
use crate::plan::node::limit_by::LimitBy;
use crate::plan::{Domain, Field, JoinKind, Plan, PlanNode};
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

/// A domain during the rewrite of one plan.
struct Spread {
    /// Number of the domain's shared plan.
    id: u32,
    /// The domain's columns.
    domain: Domain,
    /// The distinct combinations of arguments, as a plan.
    plan: Plan,
}

impl Spread {
    /// Conditions that make two copies of the domain's columns equal.
    fn same(&self, left: usize, right: usize) -> Vec<Expr> {
        let mut out = Vec::new();
        for ((l, r), f) in self
            .domain
            .columns(left)
            .into_iter()
            .zip(self.domain.columns(right))
            .zip(&self.domain.fields)
        {
            same(l, r, f.nullable, &mut out);
        }
        out
    }
}

impl Unnester<'_> {
    /// Computes the plan for all arguments. Outputs the plan's columns, then the domain's.
    pub(super) fn over_domain(
        &mut self,
        plan: Plan,
        frame: u32,
        used: &[usize],
        domain: Plan,
    ) -> Result<Plan> {
        let id = match &domain {
            Plan::Shared { id, .. } => *id,
            _ => self.number(),
        };
        let columns = Domain { frame, used: used.to_vec(), fields: domain.fields() };
        self.spread(plan, &Spread { id, domain: columns, plan: domain })
    }

    fn spread(&mut self, plan: Plan, d: &Spread) -> Result<Plan> {
        if !correlated(&plan, d.domain.frame) {
            return Ok(match is_one_empty_row(&plan) {
                true => d.plan.clone(),
                false => super::tools::cross(plan, d.plan.clone()),
            });
        }
        let width = plan.fields().len();
        Ok(match plan {
            Plan::Filter { input, mut predicate } => {
                d.domain.settle(&mut predicate, width);
                Plan::Filter { input: Box::new(self.spread(*input, d)?), predicate }
            }
            Plan::Project { input, mut exprs, mut fields } => {
                let base = input.fields().len();
                exprs.iter_mut().for_each(|e| d.domain.settle(e, base));
                exprs.extend(d.domain.columns(base));
                fields.extend(d.domain.fields.iter().cloned());
                Plan::Project { input: Box::new(self.spread(*input, d)?), exprs, fields }
            }
            Plan::Sort { input, mut keys, limit: None } => {
                keys.iter_mut().for_each(|k| d.domain.settle(&mut k.expr, width));
                Plan::Sort { input: Box::new(self.spread(*input, d)?), keys, limit: None }
            }
            Plan::Limit { input, offset, limit } => {
                let input = self.spread(*input, d)?;
                let keys = d.domain.columns(width);
                Plan::Node(Box::new(LimitBy { input, keys, offset, limit }))
            }
            Plan::Union { inputs, mut fields } => {
                fields.extend(d.domain.fields.iter().cloned());
                let inputs =
                    inputs.into_iter().map(|input| self.spread(input, d)).collect::<Result<_>>()?;
                Plan::Union { inputs, fields }
            }
            Plan::Values { fields, rows } => self.spread_values(fields, rows, d),
            Plan::Aggregate { .. } => self.spread_aggregate(plan, d)?,
            Plan::Node(node) => self.spread_node(node, d)?,
            Plan::Join { .. } => self.spread_join(plan, d)?,
            Plan::Shared { id, input } => {
                // All uses of a shared plan over one domain stay the same plan. Over another domain
                // it is rewritten again: a subquery that was bound once and appears twice has the
                // same frame in both places but may receive other arguments.
                let known =
                    self.spreads.iter().find(|(old, domain, ..)| (*old, *domain) == (id, d.id));
                let (id, input) = match known {
                    Some((_, _, id, input)) => (*id, input.clone()),
                    None => {
                        let new = Arc::new(self.spread((*input).clone(), d)?);
                        let number = self.number();
                        self.spreads.push((id, d.id, number, new.clone()));
                        (number, new)
                    }
                };
                Plan::Shared { id, input }
            }
            Plan::Recursive { .. } => {
                return Err(Error::unsupported("a recursive WITH that refers to an enclosing row"));
            }
            Plan::Scan { .. } | Plan::Given { .. } | Plan::Sort { .. } => {
                return Err(Error::unsupported("a correlated subquery of this form"));
            }
        })
    }

    fn spread_values(&mut self, fields: Vec<Field>, mut rows: Vec<Vec<Expr>>, d: &Spread) -> Plan {
        let numbers = Plan::Values {
            fields: vec![Field { name: "row".into(), data_type: DataType::Int64, nullable: false }],
            rows: (0..rows.len())
                .map(|n| vec![Expr::literal(Value::Int(n as i64), DataType::Int64)])
                .collect(),
        };
        let input = super::tools::cross(numbers, d.plan.clone());
        rows.iter_mut().flatten().for_each(|e| d.domain.settle(e, 1));
        let mut columns: Vec<Vec<(Expr, Expr)>> = fields.iter().map(|_| Vec::new()).collect();
        for (n, row) in rows.into_iter().enumerate() {
            let number = Expr::literal(Value::Int(n as i64), DataType::Int64);
            let is_row = compare(BinaryOp::Equal, Expr::column(0, DataType::Int64), number);
            for (column, expr) in columns.iter_mut().zip(row) {
                column.push((is_row.clone(), expr));
            }
        }
        let case = |(branches, field): (_, &Field)| Expr {
            kind: ExprKind::Case { branches, otherwise: None },
            data_type: field.data_type,
        };
        let mut exprs: Vec<Expr> = columns.into_iter().zip(&fields).map(case).collect();
        exprs.extend(d.domain.columns(1));
        let fields = fields.into_iter().chain(d.domain.fields.iter().cloned()).collect();
        Plan::Project { input: Box::new(input), exprs, fields }
    }

    fn spread_aggregate(&mut self, plan: Plan, d: &Spread) -> Result<Plan> {
        let Plan::Aggregate { input, mut groups, mut aggregates, fields } = plan else {
            return Ok(plan);
        };
        let base = input.fields().len();
        let input = Box::new(self.spread(*input, d)?);
        let parts = aggregates.iter_mut().flat_map(Aggregate::exprs_mut);
        groups.iter_mut().chain(parts).for_each(|e| d.domain.settle(e, base));
        let (count, added) = (groups.len(), d.domain.fields.len());
        groups.extend(d.domain.columns(base));
        let mut new_fields = fields.clone();
        new_fields.splice(count..count, d.domain.fields.iter().cloned());
        let all_fields: Vec<Field> =
            fields.into_iter().chain(d.domain.fields.iter().cloned()).collect();
        let empty: Vec<Expr> = aggregates.iter().map(empty_value).collect();
        let grouped = Plan::Aggregate { input, groups, aggregates, fields: new_fields.clone() };
        if count > 0 {
            let mut exprs = columns_of(&new_fields);
            exprs[count..].rotate_left(added);
            return Ok(Plan::Project { input: Box::new(grouped), exprs, fields: all_fields });
        }
        // An aggregate without groups returns a row for every argument, even over empty input.
        let residual = Some(all(d.same(0, added)));
        let (left, right) = (Box::new(d.plan.clone()), Box::new(grouped));
        let joined = Plan::Join { left, right, kind: JoinKind::Left, keys: Vec::new(), residual };
        let mut exprs = Vec::with_capacity(all_fields.len());
        for (at, empty) in empty.into_iter().enumerate() {
            let column = Expr::column(added * 2 + at, empty.data_type);
            let is_null = matches!(empty.kind, ExprKind::Literal(Value::Null));
            exprs.push(if is_null { column } else { or_else(column, empty) });
        }
        exprs.extend(d.domain.columns(0));
        Ok(Plan::Project { input: Box::new(joined), exprs, fields: all_fields })
    }

    fn spread_node(&mut self, mut node: Box<dyn PlanNode>, d: &Spread) -> Result<Plan> {
        let at = node.spread(&d.domain, &mut |input| {
            let old = std::mem::replace(input, Plan::nothing());
            *input = self.spread(old, d)?;
            Ok(())
        })?;
        let mut fields = node.fields();
        let mut exprs = columns_of(&fields);
        let added = d.domain.fields.len();
        if at + added == fields.len() {
            return Ok(Plan::Node(node));
        }
        fields[at..].rotate_left(added);
        exprs[at..].rotate_left(added);
        Ok(Plan::Project { input: Box::new(Plan::Node(node)), exprs, fields })
    }

    fn spread_join(&mut self, plan: Plan, d: &Spread) -> Result<Plan> {
        let fields = plan.fields();
        let Plan::Join { left, right, kind, mut keys, residual } = plan else { return Ok(plan) };
        let (l, r) = (left.fields().len(), right.fields().len());
        let mut conditions: Vec<Expr> = residual.into_iter().collect();
        if keys.iter().any(|(a, b)| is_outer(a, d.domain.frame) || is_outer(b, d.domain.frame))
            || kind == JoinKind::MarkIn
        {
            let only_key = kind == JoinKind::MarkIn && conditions.is_empty();
            for (a, mut b) in std::mem::take(&mut keys) {
                shift_columns(&mut b, l as isize);
                let equal = compare(BinaryOp::Equal, a, b);
                conditions.push(if kind == JoinKind::MarkIn && !only_key {
                    is_true(equal)
                } else {
                    equal
                });
            }
        }
        let in_condition = conditions.iter().any(|c| is_outer(c, d.domain.frame));
        let (on_left, on_right) =
            (correlated(&left, d.domain.frame), correlated(&right, d.domain.frame));
        // The domain joins the side whose rows are preserved, otherwise the side that refers to it.
        let (to_left, to_right) = match kind {
            JoinKind::Inner => (on_left || (in_condition && !on_right), on_right),
            JoinKind::Right => (on_left, true),
            JoinKind::Full => (true, true),
            _ => (true, on_right),
        };
        let left = if to_left { self.spread(*left, d)? } else { *left };
        let right = if to_right { self.spread(*right, d)? } else { *right };
        let k = d.domain.fields.len();
        let right_start = if to_left { l + k } else { l };
        let own = if to_left { l } else { right_start + r };
        for condition in &mut conditions {
            crate::analysis::columns::remap(condition, &|at| {
                if at < l { at } else { at - l + right_start }
            });
            d.domain.settle(condition, own);
        }
        if to_left && to_right {
            conditions.extend(d.same(l, right_start + r));
        }
        let residual = (!conditions.is_empty()).then(|| all(conditions));
        let joined =
            Plan::Join { left: Box::new(left), right: Box::new(right), kind, keys, residual };
        let types: Vec<DataType> = fields.iter().map(|f| f.data_type).collect();
        let column = |at: usize, to: usize| Expr::column(to, types[at]);
        let mut exprs: Vec<Expr> = (0..l).map(|at| column(at, at)).collect();
        match kind.sides() {
            (true, true) => {
                exprs.extend((0..r).map(|at| column(l + at, right_start + at)));
                let kept = if kind == JoinKind::Right { right_start + r } else { own };
                let mut domain = d.domain.columns(kept);
                if kind == JoinKind::Full {
                    let others = d.domain.columns(right_start + r);
                    domain = domain.into_iter().zip(others).map(|(a, b)| or_else(a, b)).collect();
                }
                exprs.extend(domain);
            }
            _ if kind.marks() => {
                exprs.push(column(l, l + k));
                exprs.extend(d.domain.columns(l));
            }
            _ => return Ok(joined),
        }
        let fields = fields.into_iter().chain(d.domain.fields.iter().cloned()).collect();
        Ok(Plan::Project { input: Box::new(joined), exprs, fields })
    }
}
