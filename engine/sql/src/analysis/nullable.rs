//! Which expressions can be null.

use crate::expr::{BinaryOp, Expr, ExprKind, SubqueryKind};
use nacre_function::entry::definition::Nulls;
use nacre_types::invariant::broken;
use nacre_types::{DataType, PhysicalType};

/// Whether an expression can be null, given its input columns.
pub(crate) fn nullable(expr: &Expr, input: &dyn Fn(usize) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Column(at) => input(*at),
        ExprKind::Literal(value) => value.is_null(),
        ExprKind::Parameter(_) | ExprKind::Outer { .. } => true,
        ExprKind::Subquery(sub) => sub.kind != SubqueryKind::Exists,
        ExprKind::Placeholder(of) => broken(format_args!("{of:?} is asked whether it can be null")),
        ExprKind::IsNull { .. } | ExprKind::IsBoolean { .. } => false,
        ExprKind::Binary { op: BinaryOp::Distinct | BinaryOp::NotDistinct, .. } => false,
        ExprKind::Case { branches, otherwise } => match otherwise {
            None => true,
            Some(e) => nullable(e, input) || branches.iter().any(|(_, r)| nullable(r, input)),
        },
        ExprKind::Function { function, .. } if function.nulls().are_made() => true,
        ExprKind::Function { function, args } if function.nulls() == Nulls::AllNull => {
            args.iter().all(|a| nullable(a, input))
        }
        // Of JSON's null.
        ExprKind::Cast(arg)
            if arg.data_type == DataType::Json
                && expr.data_type.physical() != PhysicalType::Bytes =>
        {
            true
        }
        // Null if an operand is null.
        ExprKind::Cast(_)
        | ExprKind::Not(_)
        | ExprKind::Negate(_)
        | ExprKind::Binary { .. }
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::InList { .. }
        | ExprKind::Like { .. }
        | ExprKind::Function { .. } => {
            let mut any = expr.data_type == DataType::Null;
            expr.for_each_child(&mut |e| any |= nullable(e, input));
            any
        }
    }
}
