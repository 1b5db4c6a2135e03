//! Bound, typed expressions. The binder has resolved names, inserted casts so that operand types
//! agree, and computed every result type; nobody downstream coerces anything.

use crate::plan::SortKey;
pub use nacre_function::entry::aggregate::AggregateFunction;
pub use nacre_function::entry::scalar::ScalarFunction;
pub use nacre_function::operator::BinaryOp;
use nacre_types::{DataType, Value};

/// An expression with its result type.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Result type.
    pub data_type: DataType,
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// Column of the input row, by position.
    Column(usize),
    /// A constant of `data_type`.
    Literal(Value),
    /// Statement parameter, by position from zero. Its value is cast to `data_type` before execution.
    Parameter(usize),
    /// Converts to `data_type`; fails at run time when the value does not fit.
    Cast(Box<Expr>),
    /// Three-valued negation.
    Not(Box<Expr>),
    /// Arithmetic negation; overflow is an error.
    Negate(Box<Expr>),
    /// `IS NULL` (`negated`: `IS NOT NULL`); never null.
    IsNull {
        /// Argument.
        arg: Box<Expr>,
        /// `IS NOT NULL`.
        negated: bool,
    },
    /// `IS [NOT] TRUE`, `IS [NOT] FALSE` on a boolean; never null.
    IsBoolean {
        /// Argument.
        arg: Box<Expr>,
        /// The truth value asked for.
        value: bool,
        /// `IS NOT …`.
        negated: bool,
    },
    /// Both operands have the same physical type and family, and decimals the same scale but for `*` and
    /// `/`; integers of different widths meet without a cast, as do text types of different lengths. Date or
    /// timestamp plus or minus an interval is the exception. The result may be wider than the operands:
    /// `I64` decimals multiply to an `I128` decimal, integers divide to a decimal.
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// Conjunction of two or more, three-valued.
    And(Vec<Expr>),
    /// Disjunction of two or more, three-valued.
    Or(Vec<Expr>),
    /// `CASE WHEN condition THEN result … ELSE otherwise END`; branches are tried in order and only as
    /// far as needed: an error in a branch not taken must not surface.
    Case {
        /// `(condition, result)`.
        branches: Vec<(Expr, Expr)>,
        /// Null when absent.
        otherwise: Option<Box<Expr>>,
    },
    /// `arg [NOT] IN (list)`, three-valued; all of one type.
    InList {
        /// Argument.
        arg: Box<Expr>,
        /// Candidates.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `arg [NOT] LIKE pattern [ESCAPE escape]`: `%` any run, `_` any one character.
    Like {
        /// Text.
        arg: Box<Expr>,
        /// Pattern, text.
        pattern: Box<Expr>,
        /// Escape character; backslash when absent.
        escape: Option<char>,
        /// `NOT LIKE`.
        negated: bool,
        /// `ILIKE`: ASCII case is ignored.
        case_insensitive: bool,
    },
    /// A scalar function.
    Function {
        /// Which.
        function: &'static ScalarFunction,
        /// Arguments, already cast to the types the function wants.
        args: Vec<Expr>,
    },
    /// Inside a subquery: what the enclosing row gives it, [`Subquery::args`] at `index` of the subquery of
    /// this `frame`. Unnesting removes it.
    Outer {
        /// Which enclosing subquery.
        frame: u32,
        /// Which of its arguments.
        index: usize,
    },
    /// A subquery as a value. Unnesting removes it.
    Subquery(Box<Subquery>),
}

/// A query inside an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    /// How its rows become a value.
    pub kind: SubqueryKind,
    /// Its rows; `Outer` of this frame are its arguments.
    pub plan: crate::plan::Plan,
    /// Distinct for each subquery of a statement.
    pub frame: u32,
    /// What it needs of the enclosing row.
    pub args: Vec<Expr>,
    /// Left operands of a comparison with its rows, of the types of its columns.
    pub operands: Vec<Expr>,
}

/// How the rows of a subquery become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// The one column of the one row; null without rows; an error when there are more.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the comparison holds for any row, three-valued. `IN` is `= ANY`.
    Any(BinaryOp),
}

/// An aggregate in an `Aggregate` plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which function.
    pub function: &'static AggregateFunction,
    /// Arguments over the input row, of the types the function expects; none for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// The order in which the function sees rows, where that matters.
    pub order: Vec<SortKey>,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Expr>,
    /// Result type.
    pub data_type: DataType,
}

impl Aggregate {
    /// Its expressions: arguments, sort keys, filter.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(self.order.iter().map(|key| &key.expr)).chain(&self.filter)
    }

    /// Its expressions, mutably.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order = self.order.iter_mut().map(|key| &mut key.expr);
        self.args.iter_mut().chain(order).chain(&mut self.filter)
    }
}

impl Expr {
    /// A literal of a type.
    pub fn literal(value: Value, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Literal(value), data_type }
    }

    /// A call of a function, on arguments of the types its kernel expects.
    pub fn call(function: &'static ScalarFunction, args: Vec<Expr>, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Function { function, args }, data_type }
    }

    /// A column reference.
    pub fn column(index: usize, data_type: DataType) -> Expr {
        Expr { kind: ExprKind::Column(index), data_type }
    }

    /// Calls `f` on each direct child.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        use ExprKind::*;
        match &self.kind {
            Column(_) | Literal(_) | Parameter(_) | Outer { .. } => {}
            Cast(a) | Not(a) | Negate(a) => f(a),
            IsNull { arg, .. } | IsBoolean { arg, .. } => f(arg),
            Binary { left, right, .. } => {
                f(left);
                f(right);
            }
            And(list) | Or(list) => list.iter().for_each(f),
            Case { branches, otherwise } => {
                for (condition, result) in branches {
                    f(condition);
                    f(result);
                }
                if let Some(e) = otherwise {
                    f(e);
                }
            }
            InList { arg, list, .. } => {
                f(arg);
                list.iter().for_each(f);
            }
            Like { arg, pattern, .. } => {
                f(arg);
                f(pattern);
            }
            Function { args, .. } => args.iter().for_each(f),
            Subquery(sub) => sub.args.iter().chain(&sub.operands).for_each(f),
        }
    }

    /// Calls `f` on each direct child, mutably.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        use ExprKind::*;
        match &mut self.kind {
            Column(_) | Literal(_) | Parameter(_) | Outer { .. } => {}
            Cast(a) | Not(a) | Negate(a) => f(a),
            IsNull { arg, .. } | IsBoolean { arg, .. } => f(arg),
            Binary { left, right, .. } => {
                f(left);
                f(right);
            }
            And(list) | Or(list) => list.iter_mut().for_each(f),
            Case { branches, otherwise } => {
                for (condition, result) in branches {
                    f(condition);
                    f(result);
                }
                if let Some(e) = otherwise {
                    f(e);
                }
            }
            InList { arg, list, .. } => {
                f(arg);
                list.iter_mut().for_each(f);
            }
            Like { arg, pattern, .. } => {
                f(arg);
                f(pattern);
            }
            Function { args, .. } => args.iter_mut().for_each(f),
            Subquery(sub) => sub.args.iter_mut().chain(&mut sub.operands).for_each(f),
        }
    }
}
