//! Builds the joins that replace subqueries.

use super::dependent::Dependent;
use super::hoist::Hoisted;
use super::lazy;
use super::size::hoisting_grows;
use super::tools::is_true;
use super::tools::{columns_of, exactly_one_row, null_of_null};
use super::unnester::Unnester;
use crate::analysis::columns::replace_outer;
use crate::analysis::columns::{all, only, shift_columns};
use crate::analysis::conditions::{filter, key};
use crate::analysis::equal_values::tells_arguments_apart;
use crate::analysis::equality::{compare, is_null, or_else, same, text_of};
use crate::analysis::may_fail::expr_may_fail;
use crate::analysis::nullable::nullable;
use crate::analysis::subqueries::{correlated, used_args};
use crate::analysis::unique::unique_on;
use crate::expr::{Expr, ExprKind, Subquery, SubqueryKind};
use crate::plan::{Field, JoinKind, Plan};
use nacre_types::{DataType, Error, Result, Value};
use std::sync::Arc;

impl Unnester<'_> {
    /// Decorrelates the right side from the left row's frame. Only rows that satisfy `reached` need
    /// partners ([`super::lazy`]).
    fn dependent(
        &mut self,
        left: Plan,
        right: Plan,
        (frame, args): (u32, &[Expr]),
        reached: &[Expr],
    ) -> Result<Dependent> {
        let fields = left.fields();
        let width = fields.len();
        let shifted = |mut e: Expr| {
            shift_columns(&mut e, width as isize);
            e
        };
        if !correlated(&right, frame) {
            let outputs = columns_of(&right.fields()).into_iter().map(shifted).collect();
            return Ok(Dependent {
                left,
                right,
                conditions: Vec::new(),
                outputs,
                missing: None,
                keys: Vec::new(),
            });
        }
        let hoisted = match hoisting_grows(&right, frame) {
            true => Hoisted::plain(right),
            false => {
                let hoisted = self.hoist(right.clone(), frame);
                // What may fail must be computed only for rows that need it. And if any reference
                // to the left row cannot be hoisted, none is: the keys among them limit which inner
                // rows each left row meets.
                let stays = correlated(&hoisted.plan, frame);
                if stays || !reached.is_empty() && lazy::may_fail(&hoisted.plan) {
                    Hoisted::plain(right)
                } else {
                    hoisted
                }
            }
        };
        let over_both = |e: Expr| {
            let mut e = shifted(e);
            replace_outer(&mut e, frame, &|index, _| args.get(index).cloned());
            e
        };
        let mut conditions: Vec<Expr> = hoisted.conditions.into_iter().map(over_both).collect();
        let outputs = hoisted.outputs.into_iter().map(over_both).collect();
        let missing = hoisted.missing.map(|list| list.into_iter().map(over_both).collect());
        if !correlated(&hoisted.plan, frame) {
            return Ok(Dependent {
                left,
                right: hoisted.plan,
                conditions,
                outputs,
                missing,
                keys: Vec::new(),
            });
        }
        let mut used = Vec::new();
        used_args(&hoisted.plan, frame, &mut used);
        // A domain holds equal values once.
        let key = |index: &usize| {
            let arg = args.get(*index)?.clone();
            let apart = tells_arguments_apart(&hoisted.plan, frame, *index);
            Some(if apart { text_of(arg) } else { arg })
        };
        let keys: Vec<Expr> = used.iter().filter_map(key).collect();
        let is_null = |at: usize| fields.get(at).is_none_or(|f| f.nullable);
        let key_fields: Vec<Field> = keys
            .iter()
            .map(|k| Field {
                name: "key".into(),
                data_type: k.data_type,
                nullable: nullable(k, &is_null),
            })
            .collect();
        let left = Plan::Shared { id: self.number(), input: Arc::new(left) };
        let domain = Plan::Aggregate {
            input: Box::new(lazy::arriving(left.clone(), reached)),
            groups: keys.clone(),
            aggregates: Vec::new(),
            fields: key_fields.clone(),
        };
        let domain = Plan::Shared { id: self.number(), input: Arc::new(domain) };
        let right_width = hoisted.plan.fields().len();
        let right = self.over_domain(hoisted.plan, frame, &used, domain)?;
        for (at, (key, field)) in keys.into_iter().zip(&key_fields).enumerate() {
            let column = Expr::column(width + right_width + at, field.data_type);
            same(key, column, field.nullable, &mut conditions);
        }
        Ok(Dependent { left, right, conditions, outputs, missing, keys: Vec::new() })
    }

    /// Keeps the rows for which the subquery (`EXISTS` or a comparison) is true or, negated, false.
    /// More columns may follow the plan's own.
    pub(super) fn semi(
        &mut self,
        mut plan: Plan,
        mut sub: Subquery,
        negated: bool,
    ) -> Result<Plan> {
        for operand in &mut sub.operands {
            self.extract(&mut plan, operand)?;
        }
        sub.plan = self.plan(sub.plan)?;
        let fields = plan.fields();
        let dependent = match self.existence(plan, &mut sub, &[])? {
            Existence::Certain(plan) => return Ok(if negated { nothing(plan) } else { plan }),
            Existence::Value(plan, value) => {
                let value = if negated { not(value) } else { value };
                return Ok(filter(plan, vec![value]));
            }
            Existence::Join(dependent) => *dependent,
        };
        let comparisons = comparisons(&sub, &dependent);
        if negated && !two_valued(&comparisons, &dependent, &fields) {
            let width = fields.len();
            let plan = mark_join(dependent, comparisons, JoinKind::MarkIn);
            return Ok(filter(plan, vec![not(Expr::column(width, DataType::Boolean))]));
        }
        let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
        Ok(mark_join(dependent, comparisons, kind))
    }

    /// Adds columns to the plan and returns the truth value of `EXISTS` or a comparison over them.
    pub(super) fn mark(
        &mut self,
        plan: Plan,
        mut sub: Subquery,
        reached: &[Expr],
    ) -> Result<(Plan, Expr)> {
        let fields = plan.fields();
        let mut dependent = match self.existence(plan, &mut sub, reached)? {
            Existence::Certain(plan) => return Ok((plan, truth(true))),
            Existence::Value(plan, value) => return Ok((plan, value)),
            Existence::Join(dependent) => *dependent,
        };
        let mut comparisons = comparisons(&sub, &dependent);
        let kind = if two_valued(&comparisons, &dependent, &fields) {
            JoinKind::Mark
        } else {
            JoinKind::MarkIn
        };
        lazy::guard(&mut dependent, &mut comparisons, kind, reached);
        let plan = mark_join(dependent, comparisons, kind);
        Ok((plan, Expr::column(fields.len(), DataType::Boolean)))
    }

    fn existence(&mut self, plan: Plan, sub: &mut Subquery, reached: &[Expr]) -> Result<Existence> {
        let mut right = std::mem::replace(&mut sub.plan, super::tools::one_empty_row());
        if sub.kind == SubqueryKind::Exists {
            right = rows_only(right);
        }
        let mut dependent = self.dependent(plan, right, (sub.frame, &sub.args), reached)?;
        if dependent.missing.is_none() {
            return Ok(Existence::Join(Box::new(dependent)));
        }
        if sub.kind == SubqueryKind::Exists {
            return Ok(Existence::Certain(dependent.left));
        }
        let SubqueryKind::Any(op) = sub.kind else { return Ok(Existence::Certain(dependent.left)) };
        lazy::guard(&mut dependent, &mut [], JoinKind::Left, reached);
        let (plan, values) = values(dependent, None, None, reached);
        let pairs = sub.operands.iter().cloned().zip(values);
        Ok(Existence::Value(plan, all(pairs.map(|(l, r)| compare(op, l, r)).collect())))
    }

    /// Adds columns to the plan and returns the columns of the subquery's one row over them, null
    /// if there is none.
    pub(super) fn single(
        &mut self,
        plan: Plan,
        right: Plan,
        row: (u32, &[Expr]),
        reached: &[Expr],
    ) -> Result<(Plan, Vec<Expr>)> {
        let mut dependent = self.dependent(plan, right, row, reached)?;
        let width = dependent.left.fields().len();
        let is_one = dependent.conditions.is_empty() && exactly_one_row(&dependent.right);
        if is_one && (reached.is_empty() || !lazy::may_fail(&dependent.right)) {
            let plan = super::tools::cross(dependent.left, dependent.right);
            return Ok((plan, dependent.outputs));
        }
        let mut fixed = Vec::new();
        for condition in &dependent.conditions {
            if let Ok((_, ExprKind::Column(at))) =
                key(condition.clone(), width).map(|(l, r)| (l, r.kind))
            {
                fixed.push(at);
            }
        }
        let one = is_one
            || dependent.missing.is_some()
            || unique_on(&dependent.right, &|at| fixed.contains(&at));
        let kind = if one { JoinKind::Left } else { JoinKind::Single };
        lazy::guard(&mut dependent, &mut [], kind, reached);
        Ok(values(dependent, None, Some(kind), reached))
    }

    /// See [`super::lateral`].
    pub(super) fn lateral(
        &mut self,
        left: Plan,
        right: Plan,
        kind: JoinKind,
        (frame, args): (u32, Vec<Expr>),
        condition: Option<Expr>,
    ) -> Result<Plan> {
        let mut fields = left.fields();
        let mut outputs = columns_of(&fields);
        let mut right_fields = right.fields();
        let mut dependent = self.dependent(left, right, (frame, &args), &[])?;
        let over_outputs = |mut e: Expr, values: &[Expr]| {
            let by: Vec<Expr> = columns_of(&fields).iter().chain(values).cloned().collect();
            crate::analysis::columns::substitute(&mut e, &by);
            e
        };
        let plan;
        match kind {
            JoinKind::Inner if dependent.missing.is_none() => {
                if let Some(condition) = condition {
                    dependent.conditions.push(over_outputs(condition, &dependent.outputs));
                }
                outputs.extend(dependent.outputs);
                let residual =
                    (!dependent.conditions.is_empty()).then(|| all(dependent.conditions));
                let (left, right) = (Box::new(dependent.left), Box::new(dependent.right));
                plan = Plan::Join { left, right, kind, keys: Vec::new(), residual };
            }
            JoinKind::Inner => {
                let (input, values) = values(dependent, None, None, &[]);
                let condition = condition.map(|c| over_outputs(c, &values));
                outputs.extend(values);
                plan = filter(input, condition.into_iter().collect());
            }
            JoinKind::Left if dependent.missing.is_none() => {
                let condition = condition.map(|c| over_outputs(c, &dependent.outputs));
                let (input, values) = values(dependent, condition, None, &[]);
                outputs.extend(values);
                plan = input;
                right_fields.iter_mut().for_each(|f| f.nullable = true);
            }
            JoinKind::Left => {
                // A row always exists, so the condition can be evaluated on it.
                let (input, values) = values(dependent, None, None, &[]);
                let condition = condition.map(|c| over_outputs(c, &values));
                outputs.extend(values.into_iter().map(|value| match &condition {
                    Some(condition) => {
                        let data_type = value.data_type;
                        let branches = vec![(condition.clone(), value)];
                        Expr { kind: ExprKind::Case { branches, otherwise: None }, data_type }
                    }
                    None => value,
                }));
                plan = input;
                right_fields.iter_mut().for_each(|f| f.nullable = true);
            }
            _ => return Err(Error::unsupported("LATERAL on the right of a RIGHT or FULL JOIN")),
        }
        fields.append(&mut right_fields);
        Ok(Plan::Project { input: Box::new(plan), exprs: outputs, fields })
    }
}

/// What an existence test reduces to.
enum Existence {
    /// A row exists for every left row.
    Certain(Plan),
    /// A row exists for every left row; the expression is the truth value.
    Value(Plan, Expr),
    /// A join must decide.
    Join(Box<Dependent>),
}

fn truth(value: bool) -> Expr {
    Expr::literal(Value::Boolean(value), DataType::Boolean)
}

fn not(expr: Expr) -> Expr {
    Expr { kind: ExprKind::Not(Box::new(expr)), data_type: DataType::Boolean }
}

/// An empty plan with the plan's columns.
fn nothing(plan: Plan) -> Plan {
    Plan::Values { fields: plan.fields(), rows: Vec::new() }
}

/// Drops what does not affect whether rows exist.
fn rows_only(plan: Plan) -> Plan {
    match plan {
        Plan::Project { input, .. } | Plan::Sort { input, limit: None, .. } => rows_only(*input),
        Plan::Aggregate { input, groups, .. } if !groups.is_empty() => rows_only(*input),
        Plan::Limit { input, offset: None, limit: Some(limit) } if matches!(limit.kind, ExprKind::Literal(Value::Int(n)) if n > 0) => {
            rows_only(*input)
        }
        other => other,
    }
}

fn comparisons(sub: &Subquery, dependent: &Dependent) -> Vec<Expr> {
    let SubqueryKind::Any(op) = sub.kind else { return Vec::new() };
    let pairs = sub.operands.iter().cloned().zip(dependent.outputs.iter().cloned());
    pairs.map(|(l, r)| compare(op, l, r)).collect()
}

/// Whether the comparisons can never be null.
fn two_valued(comparisons: &[Expr], dependent: &Dependent, left: &[Field]) -> bool {
    let right = dependent.right.fields();
    let is_null = |at: usize| match at.checked_sub(left.len()) {
        None => left[at].nullable,
        Some(at) => right.get(at).is_none_or(|f| f.nullable),
    };
    comparisons.iter().all(|c| !nullable(c, &is_null))
}

fn mark_join(dependent: Dependent, mut comparisons: Vec<Expr>, kind: JoinKind) -> Plan {
    let Dependent { left, right, mut conditions, mut keys, .. } = dependent;
    let width = left.fields().len();
    let (left, right) = (Box::new(left), Box::new(right));
    if kind != JoinKind::MarkIn {
        conditions.append(&mut comparisons);
        let residual = (!conditions.is_empty()).then(|| all(conditions));
        return Plan::Join { left, right, kind, keys, residual };
    }
    if conditions.is_empty()
        && let [_] = comparisons.as_slice()
        && let Some(Ok(pair)) = comparisons.first().cloned().map(|c| key(c, width))
    {
        keys.insert(0, pair);
        return Plan::Join { left, right, kind, keys, residual: None };
    }
    let mut residual = Vec::new();
    for condition in conditions {
        match key(condition, width) {
            Ok(pair) => keys.push(pair),
            // The mark only asks whether the condition is true.
            Err(condition) => residual.push(is_true(condition)),
        }
    }
    residual.append(&mut comparisons);
    Plan::Join { left, right, kind, keys, residual: Some(all(residual)) }
}

/// Pairs every left row with its matching right row, at most one unless called for `LATERAL`. A
/// left row without a match gets the outputs of the missing row, or nulls. `condition` is an
/// additional join condition over both sides; it must be `None` if a row is never missing. The join
/// is a left join unless `kind` is given.
///
/// If only some rows satisfy `reached`, expressions that may fail are not computed on right rows
/// without a left row.
fn values(
    dependent: Dependent,
    condition: Option<Expr>,
    kind: Option<JoinKind>,
    reached: &[Expr],
) -> (Plan, Vec<Expr>) {
    let Dependent { left, mut right, conditions, outputs, missing, keys } = dependent;
    let width = left.fields().len();
    let is_right = |at: usize| at >= width;
    let mut right_fields = right.fields();
    let right_width = right_fields.len();
    let mut right_exprs = columns_of(&right_fields);
    let mut on = conditions;
    on.extend(condition);
    let mut marker = None;
    let mut values = Vec::with_capacity(outputs.len());
    for (at, mut output) in outputs.into_iter().enumerate() {
        let absent = missing.as_ref().and_then(|m| m.get(at).cloned());
        let absent = absent.filter(|e| !null_of_null(e, &|_| false));
        // An output that reads only the right side is computed there, so that it is null without a
        // match.
        let stays = !reached.is_empty() && expr_may_fail(&output);
        if !stays && !matches!(output.kind, ExprKind::Column(_)) && only(&output, &is_right) {
            let mut expr = output.clone();
            shift_columns(&mut expr, -(width as isize));
            let is_null = |at: usize| right_fields.get(at).is_none_or(|f| f.nullable);
            let nullable = nullable(&expr, &is_null);
            output = Expr::column(width + right_exprs.len(), expr.data_type);
            right_fields.push(Field { name: "value".into(), data_type: expr.data_type, nullable });
            right_exprs.push(expr);
        }
        let is_plain = match output.kind {
            ExprKind::Column(at) => is_right(at),
            _ => null_of_null(&output, &is_right),
        };
        let never_null = match output.kind {
            ExprKind::Column(at) => {
                at >= width && right_fields.get(at - width).is_some_and(|f| !f.nullable)
            }
            _ => false,
        };
        values.push(match absent {
            None if is_plain => output,
            Some(absent) if never_null => or_else(output, absent),
            absent => {
                let found = *marker.get_or_insert_with(|| {
                    right_exprs.push(truth(true));
                    right_fields.push(Field {
                        name: "found".into(),
                        data_type: DataType::Boolean,
                        nullable: false,
                    });
                    width + right_exprs.len() - 1
                });
                let data_type = output.data_type;
                let found = is_null(Expr::column(found, DataType::Boolean), true);
                let kind = ExprKind::Case {
                    branches: vec![(found, output)],
                    otherwise: absent.map(Box::new),
                };
                Expr { kind, data_type }
            }
        });
    }
    if right_exprs.len() > right_width {
        right = Plan::Project { input: Box::new(right), exprs: right_exprs, fields: right_fields };
    }
    let residual = (!on.is_empty()).then(|| all(on));
    let (left, right) = (Box::new(left), Box::new(right));
    let kind = kind.unwrap_or(JoinKind::Left);
    (Plan::Join { left, right, kind, keys, residual }, values)
}
