//! Casts, and the folding of casts of literals.

use crate::bind::expression::literal;
use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, Error, Result, Value, temporal};

/// Casts an expression. A literal is converted at bind time if that cannot lose information
/// silently.
pub(crate) fn cast(expr: Expr, to: DataType) -> Result<Expr> {
    if expr.data_type == to {
        return Ok(expr);
    }
    if let ExprKind::Literal(value) = &expr.kind
        && let Some(value) = literal::cast(value, to)?
    {
        return Ok(Expr::literal(value, to));
    }
    cast_later(expr, to)
}

/// Binds a written `CAST`. A text literal that does not parse as the type becomes an error at run
/// time, when the expression is evaluated, not at bind time.
pub(crate) fn explicit_cast(expr: Expr, to: DataType) -> Result<Expr> {
    match &expr.kind {
        ExprKind::Literal(value @ Value::Text(_)) if literal::cast(value, to).is_err() => {
            cast_later(expr, to)
        }
        _ => cast(expr, to),
    }
}

/// Builds a cast that is evaluated at run time.
fn cast_later(expr: Expr, to: DataType) -> Result<Expr> {
    if !castable(expr.data_type, to) {
        let message = format!("cannot cast {} to {to}", expr.data_type);
        return Err(Error::type_error(message).with_sqlstate("42846"));
    }
    Ok(Expr { kind: ExprKind::Cast(Box::new(expr)), data_type: to })
}

pub(super) fn castable(from: DataType, to: DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Null, _) | (Text { .. }, _) | (_, Text { .. }) => true,
        (Boolean, t) | (t, Boolean) if t.is_numeric() || t == Boolean => true,
        (Date | Timestamp | TimestampTz, Date | Timestamp | TimestampTz) => true,
        (Timestamp | TimestampTz, Time) | (Time, Interval) => true,
        (Json, t) | (t, Json) if t.is_moment() || matches!(t, Boolean | Uuid) => true,
        (Json, t) | (t, Json) if t.is_numeric() => true,
        (Json, Json) | (Binary { .. }, Binary { .. }) | (Interval, Interval) | (Time, Time) => true,
        _ => from.is_numeric() && to.is_numeric(),
    }
}

pub(super) fn literal_value(expr: &Expr) -> Option<&Value> {
    match &expr.kind {
        ExprKind::Literal(value) => Some(value),
        _ => None,
    }
}

pub(super) fn is_text_literal(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(Value::Text(_)))
}

pub(crate) fn is_null(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(Value::Null))
}

/// Converts a literal to the type of the other operand if that does not change the result of a
/// comparison.
pub(super) fn fit(value: &Value, from: DataType, to: DataType) -> Result<Option<Value>> {
    if value.is_null() {
        return Ok(Some(Value::Null));
    }
    if from.is_text() && !to.is_text() && to != DataType::Json {
        return literal::cast(value, to);
    }
    if from.is_numeric() && to.is_numeric() {
        return Ok(literal::fit(value, to));
    }
    Ok(match (value, to) {
        (Value::Int(v @ (0 | 1)), DataType::Boolean) => Some(Value::Boolean(*v == 1)),
        (Value::Date(_) | Value::Timestamp(_), DataType::Timestamp | DataType::TimestampTz) => {
            literal::cast(value, to)?
        }
        (Value::Timestamp(t), DataType::Date) if t.rem_euclid(temporal::MICROS_PER_DAY) == 0 => {
            Some(Value::Date((t / temporal::MICROS_PER_DAY) as i32))
        }
        _ => None,
    })
}

pub(crate) fn binary(op: BinaryOp, left: Expr, right: Expr, data_type: DataType) -> Expr {
    Expr { kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, data_type }
}
