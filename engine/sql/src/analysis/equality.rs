//! Comparisons built by unnesting and the optimizer, and equality that treats nulls as equal.

use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_builtin::scalar::any::COALESCE;
use nacre_types::{DataType, Value};

/// `COALESCE(left, otherwise)`.
pub(crate) fn or_else(left: Expr, otherwise: Expr) -> Expr {
    let data_type = left.data_type;
    Expr::call(&COALESCE, vec![left, otherwise], data_type)
}

/// `left op right`.
pub(crate) fn compare(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr {
        kind: ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) },
        data_type: DataType::Boolean,
    }
}

/// `expr IS [NOT] NULL`.
pub(crate) fn is_null(expr: Expr, negated: bool) -> Expr {
    Expr { kind: ExprKind::IsNull { arg: Box::new(expr), negated }, data_type: DataType::Boolean }
}

/// `CAST(expr AS TEXT)`.
pub(crate) fn text_of(expr: Expr) -> Expr {
    Expr { kind: ExprKind::Cast(Box::new(expr)), data_type: DataType::TEXT }
}

/// Appends conditions for equality that treats nulls as equal, built from plain equalities so that
/// they can become hash join keys.
pub(crate) fn same(left: Expr, right: Expr, nullable: bool, out: &mut Vec<Expr>) {
    // Equal intervals may differ in their fields; their texts do not.
    if left.data_type == DataType::Interval {
        return same(text_of(left), text_of(right), nullable, out);
    }
    if !nullable {
        out.push(compare(BinaryOp::Equal, left, right));
        return;
    }
    let filler = Expr::literal(some_value(left.data_type), left.data_type);
    out.push(compare(BinaryOp::Equal, is_null(left.clone(), false), is_null(right.clone(), false)));
    if left.data_type != DataType::Null {
        out.push(compare(BinaryOp::Equal, or_else(left, filler.clone()), or_else(right, filler)));
    }
}

/// An arbitrary value of a type.
fn some_value(data_type: DataType) -> Value {
    match data_type {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Boolean(false),
        DataType::Float32 | DataType::Float64 => Value::Float(0.0),
        DataType::Decimal { scale, .. } => Value::Decimal { unscaled: 0, scale },
        DataType::UInt64 => Value::UInt(0),
        DataType::Text { .. } => Value::Text(String::new()),
        DataType::Json => Value::Json("null".into()),
        DataType::Binary { .. } => Value::Binary(Vec::new()),
        DataType::Date => Value::Date(0),
        DataType::Time => Value::Time(0),
        DataType::Timestamp => Value::Timestamp(0),
        DataType::TimestampTz => Value::TimestampTz(0),
        DataType::Uuid => Value::Uuid(0),
        DataType::Interval => Value::Interval(Default::default()),
        _ => Value::Int(0),
    }
}
