//! Bound, typed expressions. The binder has resolved names, inserted casts so that operand types
//! agree, and computed every result type; no later pass adds a coercion. Expressions and plans
//! contain each other, so their types are defined together in `plan/tree`.

pub use crate::plan::tree::{Aggregate, Expr, ExprKind, Placeholder, Subquery, SubqueryKind};
pub use nacre_function::entry::aggregate::{AggregateCallee, AggregateFunction};
pub use nacre_function::entry::definition::{ScalarCallee, ScalarFunction};
pub use nacre_function::operator::BinaryOp;
use nacre_types::{DataType, Value};

impl Aggregate {
    /// Iterates over the arguments, then the sort keys, then the filter.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(self.order.iter().map(|key| &key.expr)).chain(&self.filter)
    }

    /// Like [`exprs`](Self::exprs), mutably.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        self.args.iter_mut().chain(order).chain(&mut self.filter)
    }
}

/// Calls a function on each direct child of an expression, by shared or by mutable references: the
/// one list of children for both.
macro_rules! for_each_child {
    ($kind:expr, $f:ident, $iter:ident) => {{
        use ExprKind::*;
        match $kind {
            Column(_) | Literal(_) | Parameter(_) | Outer { .. } | Placeholder(_) => {}
            Cast(a) | Not(a) | Negate(a) => $f(a),
            IsNull { arg, .. } | IsBoolean { arg, .. } => $f(arg),
            Binary { left, right, .. } => {
                $f(left);
                $f(right);
            }
            And(list) | Or(list) => list.$iter().for_each($f),
            Case { branches, otherwise } => {
                for (condition, result) in branches {
                    $f(condition);
                    $f(result);
                }
                if let Some(e) = otherwise {
                    $f(e);
                }
            }
            InList { arg, list, .. } => {
                $f(arg);
                list.$iter().for_each($f);
            }
            Like { arg, pattern, .. } => {
                $f(arg);
                $f(pattern);
            }
            Function { args, .. } => args.$iter().for_each($f),
            Subquery(sub) => sub.args.$iter().chain(sub.operands.$iter()).for_each($f),
        }
    }};
}

impl Expr {
    /// Builds a literal of the given type.
    pub fn literal(value: Value, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Literal(value), data_type }
    }

    /// Builds a function call; the arguments must have the types that the kernel expects.
    pub fn call(function: impl Into<ScalarCallee>, args: Vec<Expr>, data_type: DataType) -> Expr {
        let function = function.into();
        Expr { kind: ExprKind::Function { function, args }, data_type }
    }

    /// Builds a reference to the input column at `index`.
    pub fn column(index: usize, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Column(index), data_type }
    }

    /// A value of the query being bound.
    pub(crate) fn placeholder(of: Placeholder, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Placeholder(of), data_type }
    }

    /// Calls `f` on each direct child.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        for_each_child!(&self.kind, f, iter)
    }

    /// Calls `f` on each direct child, mutably.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for_each_child!(&mut self.kind, f, iter_mut)
    }
}
