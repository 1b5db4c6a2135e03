//! The general way to free a subquery from its enclosing row: the distinct arguments, the domain, are joined in
//! at the lowest places that look at them, and every node above carries them along as further columns, so that
//! the subquery is computed for all arguments at once.

use super::tools::is_true;
use super::tools::{columns_of, compare, empty_value, or_else, same};
use super::unnester::Unnester;
use crate::analysis::columns::{all, shift_columns};
use crate::analysis::subqueries::{correlated, is_outer, replace_outer};
use crate::expr::{BinaryOp, Expr, ExprKind};
use crate::plan::{Field, JoinKind, Plan};
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

/// The arguments a plan is computed for.
struct Domain<'d> {
    /// Its own number.
    id: u32,
    frame: u32,
    /// Which arguments of the frame, ascending: the domain's columns.
    used: &'d [usize],
    /// Their distinct combinations.
    plan: Plan,
    fields: Vec<Field>,
}

impl Domain<'_> {
    /// Replaces what refers to the enclosing row by the domain's columns, which start at `base`.
    fn settle(&self, expr: &mut Expr, base: usize) {
        let column = |index: usize| {
            let at = self.used.iter().position(|u| *u == index)?;
            Some(Expr::column(base + at, self.fields.get(at)?.data_type))
        };
        replace_outer(expr, self.frame, &column);
    }

    /// The domain's columns, which start at `base`.
    fn columns(&self, base: usize) -> Vec<Expr> {
        self.fields.iter().enumerate().map(|(at, f)| Expr::column(base + at, f.data_type)).collect()
    }

    /// That two copies of the domain's columns are the same.
    fn same(&self, left: usize, right: usize) -> Vec<Expr> {
        let mut out = Vec::new();
        for ((l, r), f) in self.columns(left).into_iter().zip(self.columns(right)).zip(&self.fields)
        {
            same(l, r, f.nullable, &mut out);
        }
        out
    }
}

impl Unnester<'_> {
    /// The plan computed for all arguments: its columns, then those of the domain.
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
        let domain = Domain { id, frame, used, fields: domain.fields(), plan: domain };
        self.spread(plan, &domain)
    }

    fn spread(&mut self, plan: Plan, d: &Domain<'_>) -> Result<Plan> {
        if !correlated(&plan, d.frame) {
            return Ok(super::tools::cross(plan, d.plan.clone()));
        }
        let width = plan.fields().len();
        Ok(match plan {
            Plan::Filter { input, mut predicate } => {
                d.settle(&mut predicate, width);
                Plan::Filter { input: Box::new(self.spread(*input, d)?), predicate }
            }
            Plan::Project { input, mut exprs, mut fields } => {
                let base = input.fields().len();
                exprs.iter_mut().for_each(|e| d.settle(e, base));
                exprs.extend(d.columns(base));
                fields.extend(d.fields.iter().cloned());
                Plan::Project { input: Box::new(self.spread(*input, d)?), exprs, fields }
            }
            Plan::Sort { input, mut keys, limit: None } => {
                keys.iter_mut().for_each(|k| d.settle(&mut k.expr, width));
                Plan::Sort { input: Box::new(self.spread(*input, d)?), keys, limit: None }
            }
            Plan::Limit { input, offset, limit } => {
                let input = Box::new(self.spread(*input, d)?);
                Plan::LimitBy { input, keys: d.columns(width), offset, limit }
            }
            Plan::LimitBy { input, mut keys, offset, limit } => {
                keys.iter_mut().for_each(|k| d.settle(k, width));
                keys.extend(d.columns(width));
                Plan::LimitBy { input: Box::new(self.spread(*input, d)?), keys, offset, limit }
            }
            Plan::Union { inputs, mut fields } => {
                fields.extend(d.fields.iter().cloned());
                let inputs =
                    inputs.into_iter().map(|input| self.spread(input, d)).collect::<Result<_>>()?;
                Plan::Union { inputs, fields }
            }
            Plan::SetOperation { left, right, except, all, mut fields } => {
                fields.extend(d.fields.iter().cloned());
                let (left, right) =
                    (Box::new(self.spread(*left, d)?), Box::new(self.spread(*right, d)?));
                Plan::SetOperation { left, right, except, all, fields }
            }
            Plan::Values { fields, rows } => self.spread_values(fields, rows, d),
            Plan::Aggregate { .. } => self.spread_aggregate(plan, d)?,
            Plan::Window { .. } => self.spread_window(plan, d)?,
            Plan::Join { .. } => self.spread_join(plan, d)?,
            Plan::Shared { id, input } => {
                // All places of it were the same, and stay so: over one domain. A subquery that was bound once and
                // stands twice has the same frame in both places, and may be asked for other rows.
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

    fn spread_values(
        &mut self,
        fields: Vec<Field>,
        mut rows: Vec<Vec<Expr>>,
        d: &Domain<'_>,
    ) -> Plan {
        let numbers = Plan::Values {
            fields: vec![Field { name: "row".into(), data_type: DataType::Int64, nullable: false }],
            rows: (0..rows.len())
                .map(|n| vec![Expr::literal(Value::Int(n as i64), DataType::Int64)])
                .collect(),
        };
        let input = super::tools::cross(numbers, d.plan.clone());
        rows.iter_mut().flatten().for_each(|e| d.settle(e, 1));
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
        exprs.extend(d.columns(1));
        let fields = fields.into_iter().chain(d.fields.iter().cloned()).collect();
        Plan::Project { input: Box::new(input), exprs, fields }
    }

    fn spread_aggregate(&mut self, plan: Plan, d: &Domain<'_>) -> Result<Plan> {
        let Plan::Aggregate { input, mut groups, mut aggregates, fields } = plan else {
            return Ok(plan);
        };
        let base = input.fields().len();
        let input = Box::new(self.spread(*input, d)?);
        let parts = aggregates.iter_mut().flat_map(|a| a.arg.iter_mut().chain(&mut a.filter));
        groups.iter_mut().chain(parts).for_each(|e| d.settle(e, base));
        let (count, added) = (groups.len(), d.fields.len());
        groups.extend(d.columns(base));
        let mut new_fields = fields.clone();
        new_fields.splice(count..count, d.fields.iter().cloned());
        let all_fields: Vec<Field> = fields.into_iter().chain(d.fields.iter().cloned()).collect();
        let empty: Vec<Expr> = aggregates.iter().map(empty_value).collect();
        let grouped = Plan::Aggregate { input, groups, aggregates, fields: new_fields.clone() };
        if count > 0 {
            let mut exprs = columns_of(&new_fields);
            exprs[count..].rotate_left(added);
            return Ok(Plan::Project { input: Box::new(grouped), exprs, fields: all_fields });
        }
        // Without groups there is a row for every argument, even of nothing.
        let residual = Some(all(d.same(0, added)));
        let (left, right) = (Box::new(d.plan.clone()), Box::new(grouped));
        let joined = Plan::Join { left, right, kind: JoinKind::Left, keys: Vec::new(), residual };
        let mut exprs = Vec::with_capacity(all_fields.len());
        for (at, empty) in empty.into_iter().enumerate() {
            let column = Expr::column(added * 2 + at, empty.data_type);
            let is_null = matches!(empty.kind, ExprKind::Literal(Value::Null));
            exprs.push(if is_null { column } else { or_else(column, empty) });
        }
        exprs.extend(d.columns(0));
        Ok(Plan::Project { input: Box::new(joined), exprs, fields: all_fields })
    }

    /// Partitions are of one argument each.
    fn spread_window(&mut self, mut plan: Plan, d: &Domain<'_>) -> Result<Plan> {
        let all_fields: Vec<Field> =
            plan.fields().into_iter().chain(d.fields.iter().cloned()).collect();
        let Plan::Window { input, .. } = &plan else { return Ok(plan) };
        let base = input.fields().len();
        plan.for_each_expr_mut(&mut |e| d.settle(e, base));
        let Plan::Window { input, mut partition, order, calls, mut fields } = plan else {
            return Ok(plan);
        };
        partition.extend(d.columns(base));
        fields.splice(base..base, d.fields.iter().cloned());
        let mut exprs = columns_of(&fields);
        exprs[base..].rotate_left(d.fields.len());
        let input = Box::new(self.spread(*input, d)?);
        let window = Plan::Window { input, partition, order, calls, fields };
        Ok(Plan::Project { input: Box::new(window), exprs, fields: all_fields })
    }

    fn spread_join(&mut self, plan: Plan, d: &Domain<'_>) -> Result<Plan> {
        let fields = plan.fields();
        let Plan::Join { left, right, kind, mut keys, residual } = plan else { return Ok(plan) };
        let (l, r) = (left.fields().len(), right.fields().len());
        let mut conditions: Vec<Expr> = residual.into_iter().collect();
        if keys.iter().any(|(a, b)| is_outer(a, d.frame) || is_outer(b, d.frame))
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
        let in_condition = conditions.iter().any(|c| is_outer(c, d.frame));
        let (on_left, on_right) = (correlated(&left, d.frame), correlated(&right, d.frame));
        // Whose rows are kept needs the domain; else whoever looks at it does.
        let (to_left, to_right) = match kind {
            JoinKind::Inner => (on_left || (in_condition && !on_right), on_right),
            JoinKind::Right => (on_left, true),
            JoinKind::Full => (true, true),
            _ => (true, on_right),
        };
        let left = if to_left { self.spread(*left, d)? } else { *left };
        let right = if to_right { self.spread(*right, d)? } else { *right };
        let k = d.fields.len();
        let right_start = if to_left { l + k } else { l };
        let own = if to_left { l } else { right_start + r };
        for condition in &mut conditions {
            crate::analysis::columns::remap(condition, &|at| {
                if at < l { at } else { at - l + right_start }
            });
            d.settle(condition, own);
        }
        if to_left && to_right {
            conditions.extend(d.same(l, right_start + r));
        }
        let residual = (!conditions.is_empty()).then(|| all(conditions));
        let joined =
            Plan::Join { left: Box::new(left), right: Box::new(right), kind, keys, residual };
        let types: Vec<DataType> = fields.iter().map(|f| f.data_type).collect();
        let column = |at: usize, to: usize| {
            Expr::column(to, types.get(at).copied().unwrap_or(DataType::Null))
        };
        let mut exprs: Vec<Expr> = (0..l).map(|at| column(at, at)).collect();
        match kind.sides() {
            (true, true) => {
                exprs.extend((0..r).map(|at| column(l + at, right_start + at)));
                let kept = if kind == JoinKind::Right { right_start + r } else { own };
                let mut domain = d.columns(kept);
                if kind == JoinKind::Full {
                    let others = d.columns(right_start + r);
                    domain = domain.into_iter().zip(others).map(|(a, b)| or_else(a, b)).collect();
                }
                exprs.extend(domain);
            }
            _ if kind.marks() => {
                exprs.push(column(l, l + k));
                exprs.extend(d.columns(l));
            }
            _ => return Ok(joined),
        }
        let fields = fields.into_iter().chain(d.fields.iter().cloned()).collect();
        Ok(Plan::Project { input: Box::new(joined), exprs, fields })
    }
}
