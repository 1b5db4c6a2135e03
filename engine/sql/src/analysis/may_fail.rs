//! Which expressions may raise an error and so must not be evaluated for rows outside the query's
//! result.

use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_function::decimal_type::decimal_shape;
use nacre_function::entry::definition::Errors;
use nacre_function::kernel::like::ends_in_escape;
use nacre_types::{DataType, Value};

/// Whether an expression may raise an error, depending on its columns' values.
pub fn expr_may_fail(expr: &Expr) -> bool {
    let own = match &expr.kind {
        ExprKind::Cast(arg) => !widens(arg.data_type, expr.data_type),
        ExprKind::Negate(_) | ExprKind::Subquery(_) => true,
        ExprKind::Binary { op, .. } => !op.is_comparison() && *op != BinaryOp::Concat,
        ExprKind::Like { pattern, escape, .. } => match &pattern.kind {
            ExprKind::Literal(Value::Text(pattern)) => ends_in_escape(pattern, *escape),
            kind => !matches!(kind, ExprKind::Literal(_)),
        },
        ExprKind::Function { function, .. } => function.errors() == Errors::Possible,
        _ => false,
    };
    let mut found = own;
    expr.for_each_child(&mut |e| found |= expr_may_fail(e));
    found
}

/// Whether every value of one type can be represented in another.
fn widens(from: DataType, to: DataType) -> bool {
    let is_integer = |t: DataType| t.is_integer() && t != DataType::UInt64;
    from == to
        || from == DataType::Null
        || (is_integer(from) && to == DataType::Int64)
        || ((from.is_integer() || from == DataType::Float32) && to == DataType::Float64)
        || (matches!(from, DataType::Text { .. }) && to == DataType::TEXT)
        || (from == DataType::Date && to == DataType::Timestamp)
        || match (decimal_shape(from), to) {
            (Some((digits, from)), DataType::Decimal { precision, scale }) => {
                from <= scale && digits - from <= precision - scale
            }
            _ => false,
        }
}
