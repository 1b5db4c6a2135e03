//! The part of the filters that zone maps can rule out: comparisons of a column with constants.

use nacre_builtin::scalar::any::COALESCE;
use nacre_operator::context::Context;
use nacre_operator::expr::{self, compare_values};
use nacre_sql::expr::{BinaryOp, Expr, ExprKind};
use nacre_table::Zone;
use nacre_types::{DataType, Result, Value};

/// A condition on zone maps. It may hold for a block without a matching row, but never fails for
/// one with a matching row.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::scan) enum Prune {
    /// `column op value`, the value not null.
    Compare { column: usize, op: BinaryOp, value: Value },
    /// `column IN (values)`, none of them null.
    In { column: usize, values: Vec<Value> },
    /// `column IS [NOT] NULL`.
    IsNull { column: usize, negated: bool },
    /// One of these.
    Any(Vec<Prune>),
    /// All of these.
    All(Vec<Prune>),
    /// Nothing matches, as with a comparison to null.
    Nothing,
}

impl Prune {
    /// Derives the zone condition of a conjunction of filters. Columns are positions in the scan's
    /// output.
    pub fn of(filters: &[Expr], context: &Context<'_>) -> Prune {
        Prune::All(filters.iter().filter_map(|f| prune(f, context)).collect())
    }

    /// Whether it rules out nothing.
    pub fn is_open(&self) -> bool {
        matches!(self, Prune::All(list) if list.iter().all(Prune::is_open))
    }

    /// Whether it rules out everything.
    pub fn is_closed(&self) -> bool {
        match self {
            Prune::Nothing => true,
            Prune::All(list) => list.iter().any(Prune::is_closed),
            _ => false,
        }
    }

    /// Whether `rows` rows with these zones can hold a matching row. It can if a part of the rows
    /// can, with narrower zones; and it can if a zone is not known.
    pub fn may_match(
        &self,
        rows: usize,
        zone: &dyn Fn(usize) -> Result<Option<Zone>>,
    ) -> Result<bool> {
        let holds = |column: usize, test: &dyn Fn(Zone) -> bool| {
            zone(column).map(|zone| zone.is_none_or(test))
        };
        Ok(match self {
            Prune::Compare { column, op, value } => {
                holds(*column, &|zone| !zone.min.is_null() && compare(*op, &zone, value))?
            }
            Prune::In { column, values } => holds(*column, &|zone| {
                !zone.min.is_null() && values.iter().any(|v| compare(BinaryOp::Equal, &zone, v))
            })?,
            Prune::IsNull { column, negated: false } => {
                holds(*column, &|zone| zone.null_count > 0)?
            }
            Prune::IsNull { column, negated: true } => {
                holds(*column, &|zone| (zone.null_count as usize) < rows)?
            }
            Prune::Any(list) => {
                for prune in list {
                    if prune.may_match(rows, zone)? {
                        return Ok(true);
                    }
                }
                false
            }
            Prune::All(list) => {
                for prune in list {
                    if !prune.may_match(rows, zone)? {
                        return Ok(false);
                    }
                }
                true
            }
            Prune::Nothing => false,
        })
    }
}

fn compare(op: BinaryOp, zone: &Zone, value: &Value) -> bool {
    let (min, max) = (compare_values(&zone.min, value), compare_values(&zone.max, value));
    match op {
        BinaryOp::Equal => min.is_le() && max.is_ge(),
        BinaryOp::NotEqual => !(zone.exact && min.is_eq() && max.is_eq()),
        BinaryOp::Less => min.is_lt(),
        BinaryOp::LessOrEqual => min.is_le(),
        BinaryOp::Greater => max.is_gt(),
        BinaryOp::GreaterOrEqual => max.is_ge(),
        _ => true,
    }
}

/// A constant operand's value; `None` for other operands, and for an error, which evaluation then
/// raises if there are any rows.
pub(in crate::scan) fn constant(expr: &Expr, context: &Context<'_>) -> Option<Value> {
    fn has_column(expr: &Expr) -> bool {
        let mut found = matches!(expr.kind, ExprKind::Column(_));
        expr.for_each_child(&mut |child| found |= has_column(child));
        found
    }
    if has_column(expr) { None } else { expr::evaluate_constant(expr, context).ok() }
}

/// `column op constant`; the operator is reversed where the constant is on the left.
pub(in crate::scan) fn comparison(
    expr: &Expr,
    context: &Context<'_>,
) -> Option<(usize, BinaryOp, Value)> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return None };
    if !op.is_comparison() || left.data_type == DataType::Interval {
        return None;
    }
    match (&left.kind, &right.kind) {
        (ExprKind::Column(column), _) => Some((*column, *op, constant(right, context)?)),
        (_, ExprKind::Column(column)) => Some((*column, op.turned(), constant(left, context)?)),
        _ => None,
    }
}

/// `coalesce(number, cast(text)) op constant`, which the optimizer makes of a cast of a text of a
/// document: either column may have the value.
fn prune_cast(expr: &Expr, context: &Context<'_>) -> Option<Prune> {
    let ExprKind::Binary { op, left, right } = &expr.kind else { return None };
    let ExprKind::Function { function, args } = &left.kind else { return None };
    let (
        true,
        [Expr { kind: ExprKind::Column(column), .. }, Expr { kind: ExprKind::Cast(text), .. }],
    ) = (*function == COALESCE && op.is_comparison(), &args[..])
    else {
        return None;
    };
    let ExprKind::Column(text) = text.kind else { return None };
    let (column, value) = (*column, constant(right, context).filter(|value| !value.is_null())?);
    let is_text = Prune::IsNull { column: text, negated: true };
    match op {
        BinaryOp::Distinct | BinaryOp::NotDistinct => None,
        op => Some(Prune::Any(vec![Prune::Compare { column, op: *op, value }, is_text])),
    }
}

fn prune(expr: &Expr, context: &Context<'_>) -> Option<Prune> {
    match &expr.kind {
        ExprKind::Literal(Value::Boolean(false) | Value::Null) => Some(Prune::Nothing),
        ExprKind::Binary { .. } => {
            let Some((column, op, value)) = comparison(expr, context) else {
                return prune_cast(expr, context);
            };
            if matches!(op, BinaryOp::Distinct | BinaryOp::NotDistinct) {
                return (op == BinaryOp::NotDistinct && !value.is_null())
                    .then_some(Prune::Compare { column, op: BinaryOp::Equal, value });
            }
            Some(if value.is_null() {
                Prune::Nothing
            } else {
                Prune::Compare { column, op, value }
            })
        }
        ExprKind::InList { arg, list, negated: false } => {
            let ExprKind::Column(column) = arg.kind else { return None };
            let mut values =
                list.iter().map(|e| constant(e, context)).collect::<Option<Vec<_>>>()?;
            values.retain(|v| !v.is_null());
            Some(Prune::In { column, values })
        }
        ExprKind::IsNull { arg, negated } => match arg.kind {
            ExprKind::Column(column) => Some(Prune::IsNull { column, negated: *negated }),
            _ => None,
        },
        ExprKind::And(list) => {
            Some(Prune::All(list.iter().filter_map(|e| prune(e, context)).collect()))
        }
        ExprKind::Or(list) => {
            list.iter().map(|e| prune(e, context)).collect::<Option<_>>().map(Prune::Any)
        }
        _ => None,
    }
}
