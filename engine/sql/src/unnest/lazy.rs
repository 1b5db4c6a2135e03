//! Subqueries that only some rows evaluate: in the branches of a `CASE`, and after the first
//! argument of `AND`, `OR` and `COALESCE`. An error in the subquery must not surface for a row that
//! does not evaluate it.
//!
//! `reached` is the list of conditions, over the plan's columns, under which a row evaluates the
//! subquery. If the subquery may fail, its join gets keys that are null for all other rows, so
//! those find no partner, and the executor does not build the other side until a row with a key
//! arrives. A subquery computed over a domain sees only the arguments of rows that reach it. If
//! nothing can fail, none of this is added.
//!
//! Not guaranteed: rows of the subquery's own tables that no outer row asks for may still raise an
//! error.

use super::dependent::Dependent;
use super::tools::is_true;
use super::tools::one_empty_row;
use super::unnester::Unnester;
use crate::analysis::columns::{all, shift_columns};
use crate::analysis::conditions::{filter, key};
use crate::analysis::equality::{compare, is_null};
use crate::analysis::may_fail::expr_may_fail;
use crate::analysis::subqueries::has_subquery;
use crate::expr::{Aggregate, BinaryOp, Expr, ExprKind};
use crate::plan::{JoinKind, Plan};
use nacre_builtin::scalar::any::COALESCE;
use nacre_types::{DataType, Result, Value};

impl Unnester<'_> {
    /// Replaces the subqueries of an expression over the plan's rows by columns added to the plan.
    pub(super) fn extract(&mut self, plan: &mut Plan, expr: &mut Expr) -> Result<()> {
        self.extract_where(plan, expr, &[])
    }

    /// Like [`Unnester::extract`], for an expression that only rows satisfying `reached` evaluate.
    fn extract_where(&mut self, plan: &mut Plan, expr: &mut Expr, reached: &[Expr]) -> Result<()> {
        if !has_subquery(expr) {
            return Ok(());
        }
        let mut beyond = reached.to_vec();
        match &mut expr.kind {
            ExprKind::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    self.extract_where(plan, condition, &beyond)?;
                    beyond.push(is_true(condition.clone()));
                    self.extract_where(plan, result, &beyond)?;
                    beyond.pop();
                    beyond.push(is_not(condition.clone(), true));
                }
                if let Some(otherwise) = otherwise {
                    self.extract_where(plan, otherwise, &beyond)?;
                }
            }
            ExprKind::And(list) => {
                for part in list {
                    self.extract_where(plan, part, &beyond)?;
                    beyond.push(is_not(part.clone(), false));
                }
            }
            ExprKind::Or(list) => {
                for part in list {
                    self.extract_where(plan, part, &beyond)?;
                    beyond.push(is_not(part.clone(), true));
                }
            }
            ExprKind::Function { function, args } if *function == COALESCE => {
                for arg in args {
                    self.extract_where(plan, arg, &beyond)?;
                    beyond.push(is_null(arg.clone(), false));
                }
            }
            _ => {
                let mut result = Ok(());
                expr.for_each_child_mut(&mut |e| {
                    if result.is_ok() {
                        result = self.extract_where(plan, e, reached);
                    }
                });
                result?;
            }
        }
        if let ExprKind::Subquery(_) = &expr.kind
            && let ExprKind::Subquery(sub) =
                std::mem::replace(&mut expr.kind, ExprKind::Literal(Value::Null))
        {
            let input = std::mem::replace(plan, one_empty_row());
            (*plan, *expr) = self.value(input, *sub, reached)?;
        }
        Ok(())
    }
}

/// `expr IS NOT TRUE`, or `IS NOT FALSE`.
fn is_not(expr: Expr, value: bool) -> Expr {
    Expr {
        kind: ExprKind::IsBoolean { arg: Box::new(expr), value, negated: true },
        data_type: DataType::Boolean,
    }
}

/// The expression for rows that satisfy `reached`, null for others.
fn when(reached: &[Expr], expr: Expr) -> Expr {
    let data_type = expr.data_type;
    Expr {
        kind: ExprKind::Case { branches: vec![(all(reached.to_vec()), expr)], otherwise: None },
        data_type,
    }
}

/// Filters a plan to the rows that satisfy `reached`.
pub(super) fn arriving(plan: Plan, reached: &[Expr]) -> Plan {
    if reached.is_empty() {
        return plan;
    }
    // One condition, because the first conjuncts may protect the others.
    filter(plan, vec![arrival(reached).0])
}

/// A pair of join keys that match only for left rows that satisfy `reached`.
fn arrival(reached: &[Expr]) -> (Expr, Expr) {
    let yes = || Expr::literal(Value::Boolean(true), DataType::Boolean);
    (when(reached, yes()), yes())
}

/// Makes a join that may fail skip rows that do not satisfy `reached`. `comparisons` are further
/// join conditions.
pub(super) fn guard(
    dependent: &mut Dependent,
    comparisons: &mut [Expr],
    kind: JoinKind,
    reached: &[Expr],
) {
    if reached.is_empty() || !may_fail_as(dependent, comparisons, kind) {
        return;
    }
    let width = dependent.left.fields().len();
    let mut any_key = false;
    for condition in dependent.conditions.iter_mut().chain(comparisons) {
        let old = std::mem::replace(condition, Expr::literal(Value::Null, DataType::Boolean));
        *condition = match key(old, width) {
            Ok((left, mut right)) => {
                any_key = true;
                shift_columns(&mut right, width as isize);
                compare(BinaryOp::Equal, when(reached, left), right)
            }
            Err(other) => when(reached, other),
        };
    }
    // `IN` also compares null keys with the right side, so a nulled key does not exclude the row.
    if !any_key || kind == JoinKind::MarkIn {
        dependent.keys.push(arrival(reached));
    }
}

fn may_fail_as(dependent: &Dependent, comparisons: &[Expr], kind: JoinKind) -> bool {
    kind == JoinKind::Single
        || may_fail(&dependent.right)
        || dependent.conditions.iter().chain(comparisons).any(expr_may_fail)
}

/// Whether evaluating the plan may raise an error.
pub(super) fn may_fail(plan: &Plan) -> bool {
    plan.any_node(&mut node_may_fail)
}

fn node_may_fail(node: &Plan) -> bool {
    let mut found = match node {
        Plan::Join { kind: JoinKind::Single, .. } | Plan::Recursive { .. } => true,
        Plan::Node(node) => node.may_fail(),
        Plan::Aggregate { aggregates, .. } => aggregates.iter().any(aggregate_may_fail),
        Plan::Limit { offset, limit, .. } => {
            offset.iter().chain(limit).any(|e| !matches!(e.kind, ExprKind::Literal(_)))
        }
        _ => false,
    };
    node.for_each_expr(&mut |e| found = found || expr_may_fail(e));
    found
}

fn aggregate_may_fail(aggregate: &Aggregate) -> bool {
    let types: Vec<DataType> = aggregate.args.iter().map(|arg| arg.data_type).collect();
    aggregate.function.may_fail(&types)
}
