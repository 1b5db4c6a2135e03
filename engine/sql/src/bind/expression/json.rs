//! Operators and predicates on JSON, and JSON in comparisons with values of other types.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::operator::not;
use crate::bind::names::unsupported;
use crate::expr::{Expr, ExprKind, ScalarFunction};
use nacre_builtin::scalar::json::change::JSON_REMOVE;
use nacre_builtin::scalar::json::get::{JSON_EXTRACT, JSON_EXTRACT_STRING, JSON_VALUE};
use nacre_builtin::scalar::json::inspect::{
    JSON_CONTAINS, JSON_EXISTS, JSON_HAS_KEY, JSON_HAS_KEYS, JSON_VALID, MEMBER_OF,
};
use nacre_function::entry::definition::Arguments;
use nacre_types::{DECIMAL_MAX_PRECISION, DataType, Result, Value};
use sqlparser::ast::{self, BinaryOperator as Op, Expr as E};

/// The largest integer up to which a double has all.
const MAX_EXACT: u64 = 1 << 53;
/// Digits of a decimal up to which a double has all.
const MAX_EXACT_DIGITS: u8 = 15;
/// Digits after the point of JSON numbers that are compared with exact ones.
const SCALE: u8 = 9;

impl<'a> Binder<'a> {
    /// Binds an operator on JSON; `None` if it is another one.
    #[inline(never)]
    pub(super) fn json_operator(
        &mut self,
        left: &'a E,
        op: &Op,
        right: &'a E,
        env: &mut Env<'_>,
    ) -> Result<Option<Expr>> {
        let function: &'static ScalarFunction = match op {
            Op::Arrow | Op::HashArrow => &JSON_EXTRACT,
            Op::LongArrow | Op::HashLongArrow => &JSON_EXTRACT_STRING,
            Op::AtArrow | Op::ArrowAt => &JSON_CONTAINS,
            Op::AtQuestion => &JSON_EXISTS,
            Op::Question => &JSON_HAS_KEY,
            Op::QuestionPipe | Op::QuestionAnd => &JSON_HAS_KEYS,
            Op::HashMinus => &JSON_REMOVE,
            _ => return Ok(None),
        };
        let mut args = vec![self.expr(left, env)?, self.expr(right, env)?];
        if *op == Op::ArrowAt {
            args.reverse();
        }
        let name = if *op == Op::QuestionAnd { "jsonb_exists_all" } else { function.name() };
        self.by_rule(args, |binding, operands| function.bind(binding, Arguments { name, operands }))
            .map(Some)
    }

    /// Binds `arg IS [NOT] JSON`.
    #[inline(never)]
    pub(super) fn is_json(
        &mut self,
        arg: &'a E,
        kind: Option<&ast::JsonPredicateType>,
        unique_keys: Option<&ast::JsonKeyUniqueness>,
        negated: bool,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        if unique_keys == Some(&ast::JsonKeyUniqueness::WithUniqueKeys) {
            return Err(unsupported("IS JSON WITH UNIQUE KEYS"));
        }
        let kind = match kind {
            Some(ast::JsonPredicateType::Array) => "ARRAY",
            Some(ast::JsonPredicateType::Object) => "OBJECT",
            Some(ast::JsonPredicateType::Scalar) => "SCALAR",
            Some(ast::JsonPredicateType::Value) | None => "VALUE",
        };
        let kind = Expr::literal(Value::Text(kind.into()), DataType::TEXT);
        let args = vec![self.expr(arg, env)?, kind];
        let is_json = self.call(&JSON_VALID, args)?;
        Ok(if negated { not(is_json) } else { is_json })
    }

    /// Binds `value MEMBER OF(array)`.
    #[inline(never)]
    pub(super) fn member_of(
        &mut self,
        member: &'a ast::MemberOf,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let args = vec![self.expr(&member.value, env)?, self.expr(&member.array, env)?];
        self.call(&MEMBER_OF, args)
    }

    /// Gives a part of a document next to a value of another type that type, so that the two can
    /// be compared: null where it has no such value.
    pub(super) fn json_sides(&mut self, left: Expr, right: Expr) -> (Expr, Expr) {
        if !is_json(&left) && !is_json(&right) {
            return (left, right);
        }
        let (to_left, to_right) = (self.compared_as(&right), self.compared_as(&left));
        (typed(left, to_left), typed(right, to_right))
    }

    /// The type that JSON is compared as next to a value.
    fn compared_as(&self, other: &Expr) -> Option<DataType> {
        let data_type = match other.kind {
            ExprKind::Parameter(index) if Self::is_untyped(other) => self.given(index).natural,
            _ => other.data_type,
        };
        let is_large = matches!(other.kind, ExprKind::Literal(Value::Int(v))
            if v.unsigned_abs() >= MAX_EXACT);
        match data_type {
            DataType::Decimal { precision, scale } if precision > MAX_EXACT_DIGITS => {
                let scale = scale.max(SCALE);
                Some(DataType::Decimal { precision: DECIMAL_MAX_PRECISION, scale })
            }
            _ if is_large => {
                Some(DataType::Decimal { precision: DECIMAL_MAX_PRECISION, scale: SCALE })
            }
            t if t.is_numeric() => Some(DataType::Float64),
            DataType::Boolean | DataType::Date | DataType::Time | DataType::Timestamp => {
                Some(data_type)
            }
            _ => None,
        }
    }
}

/// The part of a document as a value of a type.
pub(super) fn typed(expr: Expr, to: Option<DataType>) -> Expr {
    let Some(to) = to.filter(|_| is_json(&expr)) else { return expr };
    match expr.kind {
        ExprKind::Function { function, args } if is_part(&function) => {
            Expr::call(&JSON_VALUE, args, to)
        }
        _ => {
            let root = Expr::literal(Value::Text("$".into()), DataType::TEXT);
            Expr::call(&JSON_VALUE, vec![expr, root], to)
        }
    }
}

/// Whether an expression is JSON, or the text of a part of a document.
fn is_json(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Function { function, .. } if expr.data_type.is_text() => is_part(function),
        ExprKind::Literal(_) => false,
        _ => expr.data_type == DataType::Json,
    }
}

fn is_part(function: &crate::expr::ScalarCallee) -> bool {
    *function == JSON_EXTRACT || *function == JSON_EXTRACT_STRING || *function == JSON_VALUE
}
