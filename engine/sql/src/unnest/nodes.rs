//! Unnests each node: its inputs first, then the subqueries in its own expressions.

use super::tools::{columns_of, cross, first_columns, one_empty_row};
use super::unnester::Unnester;
use crate::analysis::columns::{conjuncts, remap};
use crate::analysis::conditions::filter;
use crate::analysis::equality::compare;
use crate::analysis::subqueries::has_subquery;
use crate::expr::{BinaryOp, Expr, ExprKind, Subquery, SubqueryKind};
use crate::plan::{Field, JoinKind, Plan};
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

impl Unnester<'_> {
    pub(super) fn plan(&mut self, plan: Plan) -> Result<Plan> {
        Ok(match plan {
            Plan::Scan { .. } | Plan::Given { .. } => plan,
            Plan::Recursive { id, base, step, distinct, fields } => {
                let (base, step) = (Box::new(self.plan(*base)?), Box::new(self.plan(*step)?));
                Plan::Recursive { id, base, step, distinct, fields }
            }
            Plan::Values { fields, rows } if rows.iter().flatten().any(has_subquery) => {
                self.values(fields, rows)?
            }
            Plan::Values { .. } => plan,
            Plan::Filter { input, predicate } => {
                let input = self.plan(*input)?;
                self.filter(input, predicate)?
            }
            Plan::Project { input, mut exprs, fields } => {
                let mut input = self.plan(*input)?;
                for expr in &mut exprs {
                    self.extract(&mut input, expr)?;
                }
                Plan::Project { input: Box::new(input), exprs, fields }
            }
            Plan::Aggregate { input, mut groups, mut aggregates, fields } => {
                let mut input = self.plan(*input)?;
                for expr in &mut groups {
                    self.extract(&mut input, expr)?;
                }
                for aggregate in &mut aggregates {
                    for expr in aggregate.exprs_mut() {
                        self.extract(&mut input, expr)?;
                    }
                }
                Plan::Aggregate { input: Box::new(input), groups, aggregates, fields }
            }
            Plan::Join { left, right, kind, keys, residual } => {
                let (left, right) = (self.plan(*left)?, self.plan(*right)?);
                match residual {
                    Some(condition) if has_subquery(&condition) => {
                        self.join_on(left, right, kind, condition)?
                    }
                    residual => Plan::Join {
                        left: Box::new(left),
                        right: Box::new(right),
                        kind,
                        keys,
                        residual,
                    },
                }
            }
            Plan::Sort { input, mut keys, limit } => {
                let mut input = self.plan(*input)?;
                let width = input.fields().len();
                for key in &mut keys {
                    self.extract(&mut input, &mut key.expr)?;
                }
                first_columns(Plan::Sort { input: Box::new(input), keys, limit }, width)
            }
            Plan::Union { inputs, fields } => {
                let inputs =
                    inputs.into_iter().map(|input| self.plan(input)).collect::<Result<_>>()?;
                Plan::Union { inputs, fields }
            }
            Plan::Limit { input, offset, limit } => {
                Plan::Limit { input: Box::new(self.plan(*input)?), offset, limit }
            }
            Plan::Node(mut node) => {
                let mut nested = false;
                node.for_each_expr(&mut |e| nested |= has_subquery(e));
                if nested {
                    let inside = format!("a subquery inside {}", node.title());
                    return Err(Error::unsupported(inside));
                }
                let mut result = Ok(());
                node.for_each_input_mut(&mut |input| {
                    let old = std::mem::replace(input, Plan::nothing());
                    match self.plan(old) {
                        Ok(new) => *input = new,
                        Err(error) => result = Err(error),
                    }
                });
                result?;
                Plan::Node(node)
            }
            Plan::Shared { id, input } => {
                let input = match self.shared.get(&id) {
                    Some(known) => known.clone(),
                    None => {
                        let new = Arc::new(self.plan((*input).clone())?);
                        self.shared.insert(id, new.clone());
                        new
                    }
                };
                Plan::Shared { id, input }
            }
        })
    }

    /// Unnests `VALUES` with subqueries: computes all expressions over one row, then splits them
    /// into rows.
    fn values(&mut self, fields: Vec<Field>, mut rows: Vec<Vec<Expr>>) -> Result<Plan> {
        let mut input = one_empty_row();
        for expr in rows.iter_mut().flatten() {
            self.extract(&mut input, expr)?;
        }
        if rows.len() == 1 {
            let exprs = rows.remove(0);
            return Ok(Plan::Project { input: Box::new(input), exprs, fields });
        }
        let at = input.fields().len();
        let number = |n: usize| Expr::literal(Value::Int(n as i64), DataType::Int64);
        let row = Field { name: "row".into(), data_type: DataType::Int64, nullable: false };
        let numbers = Plan::Values {
            fields: vec![row],
            rows: (0..rows.len()).map(|n| vec![number(n)]).collect(),
        };
        let input = cross(input, numbers);
        let is_row =
            |n: usize| compare(BinaryOp::Equal, Expr::column(at, DataType::Int64), number(n));
        let mut columns: Vec<Vec<(Expr, Expr)>> = fields.iter().map(|_| Vec::new()).collect();
        for (n, row) in rows.into_iter().enumerate() {
            for (column, expr) in columns.iter_mut().zip(row) {
                column.push((is_row(n), expr));
            }
        }
        let case = |(branches, field): (_, &Field)| Expr {
            kind: ExprKind::Case { branches, otherwise: None },
            data_type: field.data_type,
        };
        let exprs = columns.into_iter().zip(&fields).map(case).collect();
        Ok(Plan::Project { input: Box::new(input), exprs, fields })
    }

    /// Unnests a filter whose condition has subqueries.
    fn filter(&mut self, input: Plan, predicate: Expr) -> Result<Plan> {
        if !has_subquery(&predicate) {
            return Ok(Plan::Filter { input: Box::new(input), predicate });
        }
        let mut list = Vec::new();
        conjuncts(predicate, &mut list);
        let (nested, plain): (Vec<_>, Vec<_>) = list.into_iter().partition(has_subquery);
        let width = input.fields().len();
        let mut plan = filter(input, plain);
        for mut condition in nested {
            let (negated, sub) = match condition.kind {
                ExprKind::Subquery(sub) if sub.kind != SubqueryKind::Scalar => (false, sub),
                ExprKind::Not(inner) => match inner.kind {
                    ExprKind::Subquery(sub) if sub.kind != SubqueryKind::Scalar => (true, sub),
                    kind => {
                        let inner = Box::new(Expr { kind, data_type: inner.data_type });
                        condition.kind = ExprKind::Not(inner);
                        plan = self.filter_by_value(plan, condition)?;
                        continue;
                    }
                },
                kind => {
                    condition.kind = kind;
                    plan = self.filter_by_value(plan, condition)?;
                    continue;
                }
            };
            plan = first_columns(self.semi(plan, *sub, negated)?, width);
        }
        Ok(first_columns(plan, width))
    }

    fn filter_by_value(&mut self, mut plan: Plan, mut condition: Expr) -> Result<Plan> {
        self.extract(&mut plan, &mut condition)?;
        Ok(filter(plan, vec![condition]))
    }

    /// Adds columns to the plan and returns the subquery's value over them. `reached` restricts it
    /// to rows that evaluate the subquery ([`lazy`]).
    pub(super) fn value(
        &mut self,
        plan: Plan,
        mut sub: Subquery,
        reached: &[Expr],
    ) -> Result<(Plan, Expr)> {
        sub.plan = self.plan(sub.plan)?;
        match sub.kind {
            SubqueryKind::Scalar => {
                let (plan, mut values) =
                    self.single(plan, sub.plan, (sub.frame, &sub.args), reached)?;
                Ok((plan, values.swap_remove(0)))
            }
            _ => self.mark(plan, sub, reached),
        }
    }

    /// Unnests a join whose condition has subqueries.
    fn join_on(
        &mut self,
        left: Plan,
        right: Plan,
        kind: JoinKind,
        condition: Expr,
    ) -> Result<Plan> {
        match kind {
            JoinKind::Inner => self.filter(cross(left, right), condition),
            // The condition moves to the right side, which becomes correlated with the left row.
            JoinKind::Left => {
                let frame = self.number();
                let width = left.fields().len();
                let args = columns_of(&left.fields());
                let mut condition = condition;
                lower(&mut condition, width, frame);
                let right = self.filter(right, condition)?;
                self.lateral(left, right, kind, (frame, args), None)
            }
            JoinKind::Right => {
                let (l, r) = (left.fields().len(), right.fields().len());
                let mut condition = condition;
                remap(&mut condition, &|at| if at < l { at + r } else { at - l });
                let swapped = self.join_on(right, left, JoinKind::Left, condition)?;
                let mut fields = swapped.fields();
                let mut exprs = columns_of(&fields);
                fields.rotate_left(r);
                exprs.rotate_left(r);
                Ok(Plan::Project { input: Box::new(swapped), exprs, fields })
            }
            _ => Err(Error::unsupported("a subquery in the condition of a FULL JOIN")),
        }
    }
}

/// Rewrites a condition over both sides into one over the right side, inside the frame of the left
/// row.
fn lower(expr: &mut Expr, width: usize, frame: u32) {
    match &mut expr.kind {
        ExprKind::Column(at) if *at < width => expr.kind = ExprKind::Outer { frame, index: *at },
        ExprKind::Column(at) => *at -= width,
        _ => expr.for_each_child_mut(&mut |e| lower(e, width, frame)),
    }
}
