//! Operators on bound operands: coercion, result types and constant folding.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::literal;
use crate::bind::expression::types::{arithmetic, common, meets};
use crate::bind::given::Given;
use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_builtin::scalar::json::change::JSON_REMOVE;
use nacre_types::{DataType, Error, Result, Value, temporal};
use std::cmp::Ordering;

fn boolean(value: bool) -> Expr {
    Expr::literal(Value::Boolean(value), DataType::Boolean)
}
use crate::bind::expression::cast::{binary, cast, fit, is_null, is_text_literal, literal_value};
use crate::bind::expression::temporal::{date_arithmetic, is_temporal, negate_interval};

/// Builds a conjunction or disjunction; flattens nested ones and removes neutral elements.
pub(crate) fn connect(and: bool, list: Vec<Expr>) -> Expr {
    let mut flat = Vec::with_capacity(list.len());
    for expr in list {
        match expr.kind {
            ExprKind::And(inner) if and => flat.extend(inner),
            ExprKind::Or(inner) if !and => flat.extend(inner),
            ExprKind::Literal(Value::Boolean(v)) if v == and => {}
            ExprKind::Literal(Value::Boolean(v)) => return boolean(v),
            // A second null does not change the result.
            ExprKind::Literal(Value::Null) if flat.iter().any(is_null) => {}
            kind => flat.push(Expr { kind, data_type: expr.data_type }),
        }
    }
    match flat.len() {
        0 => boolean(and),
        1 => flat.swap_remove(0),
        _ => Expr {
            kind: if and { ExprKind::And(flat) } else { ExprKind::Or(flat) },
            data_type: DataType::Boolean,
        },
    }
}

/// Negates a predicate; pushes `NOT` into predicates that have a negated form.
pub(crate) fn not(mut expr: Expr) -> Expr {
    if let ExprKind::Binary { op, .. } = &mut expr.kind
        && let Some(opposite) = negated(*op)
    {
        *op = opposite;
        return expr;
    }
    match &mut expr.kind {
        ExprKind::Literal(Value::Boolean(v)) => {
            *v = !*v;
            expr
        }
        ExprKind::Literal(Value::Null) => expr,
        ExprKind::IsNull { negated, .. }
        | ExprKind::IsBoolean { negated, .. }
        | ExprKind::InList { negated, .. }
        | ExprKind::Like { negated, .. } => {
            *negated = !*negated;
            expr
        }
        ExprKind::Not(_) => match expr.kind {
            ExprKind::Not(inner) => *inner,
            _ => expr,
        },
        _ => Expr { kind: ExprKind::Not(Box::new(expr)), data_type: DataType::Boolean },
    }
}

/// Returns the comparison that is the negation of `op`, if `op` is a comparison.
fn negated(op: BinaryOp) -> Option<BinaryOp> {
    use BinaryOp::*;
    Some(match op {
        Equal => NotEqual,
        NotEqual => Equal,
        Less => GreaterOrEqual,
        LessOrEqual => Greater,
        Greater => LessOrEqual,
        GreaterOrEqual => Less,
        NotDistinct => Distinct,
        Distinct => NotDistinct,
        _ => return None,
    })
}

impl Binder<'_> {
    /// Converts two operands to types that can be compared. `what` names the operator in errors.
    pub(crate) fn unify(&mut self, left: Expr, right: Expr, what: &str) -> Result<(Expr, Expr)> {
        let (left, right) = self.json_sides(left, right);
        let (left, right) = self.settle_pair(left, right);
        let (a, b) = (left.data_type, right.data_type);
        if meets(a, b) {
            return Ok((left, right));
        }
        let (left, right) = (spelled(left, b)?, spelled(right, a)?);
        let (a, b) = (left.data_type, right.data_type);
        if let Some(value) = literal_value(&right)
            && let Some(fitted) = fit(value, b, a)?
        {
            return Ok((left, Expr::literal(fitted, a)));
        }
        if let Some(value) = literal_value(&left)
            && let Some(fitted) = fit(value, a, b)?
        {
            return Ok((Expr::literal(fitted, b), right));
        }
        let Some(to) = common(a, b) else {
            return Err(Error::type_error(format!("no operator {what} for {a} and {b}"))
                .with_sqlstate("42883"));
        };
        let left = if meets(a, to) { left } else { cast(left, to)? };
        let right = if meets(b, to) { right } else { cast(right, to)? };
        Ok((left, right))
    }

    /// Gives an untyped parameter the type of the other side, unless that type would lose digits of
    /// its value.
    pub(crate) fn settle_pair(&mut self, left: Expr, right: Expr) -> (Expr, Expr) {
        match (Self::is_untyped(&left), Self::is_untyped(&right)) {
            (false, false) => (left, right),
            (true, true) => (self.settle(left, DataType::TEXT), self.settle(right, DataType::TEXT)),
            (true, false) => {
                let to = right.data_type;
                (self.settle_with(left, to), right)
            }
            (false, true) => {
                let to = left.data_type;
                let right = self.settle_with(right, to);
                (left, right)
            }
        }
    }

    fn settle_with(&mut self, parameter: Expr, other: DataType) -> Expr {
        let Given { natural, exact } = match parameter.kind {
            ExprKind::Parameter(index) => self.given(index),
            _ => DataType::Null.into(),
        };
        // A value that the type would round or truncate must not compare equal to the rounded one.
        let to = match (other, exact) {
            (DataType::Null, _) => return self.settle(parameter, DataType::TEXT),
            (DataType::Text { .. }, _) => DataType::TEXT,
            (DataType::Float32, _) if natural.is_numeric() => DataType::Float64,
            (DataType::Date, DataType::Timestamp | DataType::TimestampTz) => exact,
            (_, e)
                if other.is_integer() && !natural.is_text() && (e.is_float() || e.scale() > 0) =>
            {
                exact
            }
            (DataType::Decimal { scale, .. }, e) if e.is_float() || e.scale() > scale => exact,
            _ => other,
        };
        self.decide(parameter, to)
    }

    /// Binds a comparison of two operands.
    pub(crate) fn comparison(&mut self, op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
        let null_safe = matches!(op, BinaryOp::Distinct | BinaryOp::NotDistinct);
        if !null_safe && (is_null(&left) || is_null(&right)) {
            self.settle(left, DataType::TEXT);
            self.settle(right, DataType::TEXT);
            return Ok(Expr::literal(Value::Null, DataType::Boolean));
        }
        let (left, right) = self.unify(left, right, op.symbol())?;
        if let (Some(a), Some(b)) = (literal_value(&left), literal_value(&right))
            && let Some(order) = literal::compare(a, b)
        {
            return Ok(boolean(holds(op, order)));
        }
        // Later passes expect the constant on the right: `expression op literal`.
        let constant = |e: &Expr| matches!(e.kind, ExprKind::Literal(_) | ExprKind::Parameter(_));
        let (op, left, right) = if constant(&left) && !constant(&right) {
            (op.turned(), right, left)
        } else {
            (op, left, right)
        };
        Ok(binary(op, left, right, DataType::Boolean))
    }

    /// Binds any binary operator except `AND` and `OR`.
    pub(crate) fn binary(&mut self, op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
        use BinaryOp::*;
        if op.is_comparison() {
            return self.comparison(op, left, right);
        }
        let binary_operand = |e: &Expr| matches!(e.data_type, DataType::Binary { .. });
        if op == Concat && binary_operand(&left) && binary_operand(&right) {
            return Ok(binary(op, left, right, DataType::BLOB));
        }
        if op == Concat {
            let left = self.text(left)?;
            let right = self.text(right)?;
            return Ok(binary(op, left, right, DataType::TEXT));
        }
        if op == Subtract && left.data_type == DataType::Json {
            return self.call(&JSON_REMOVE, vec![left, right]);
        }
        let (left, right) = self.settle_arithmetic(op, left, right);
        let (a, b) = (left.data_type, right.data_type);
        if matches!(op, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight) {
            return self.bits(op, left, right);
        }
        if is_temporal(a) || is_temporal(b) {
            return date_arithmetic(op, left, right);
        }
        let left = numeric_operand(left, b, op)?;
        let right = numeric_operand(right, left.data_type, op)?;
        // Division of integers is integer division, as in PostgreSQL and SQLite.
        let whole = |t: DataType| t.is_integer() || (t.is_decimal() && t.scale() == 0);
        let op = if op == Divide && whole(left.data_type) && whole(right.data_type) {
            IntegerDivide
        } else {
            op
        };
        let (to_left, to_right, result) = arithmetic(op, left.data_type, right.data_type)?;
        if is_null(&left) || is_null(&right) {
            return Ok(Expr::literal(Value::Null, result));
        }
        if let (Some(a), Some(b)) = (literal_value(&left), literal_value(&right))
            && let Some(value) =
                literal::arithmetic(op, a, b).and_then(|v| literal::fit(&v, result))
        {
            return Ok(Expr::literal(value, result));
        }
        let operand =
            |e: Expr, to: DataType| if meets(e.data_type, to) { Ok(e) } else { cast(e, to) };
        Ok(binary(op, operand(left, to_left)?, operand(right, to_right)?, result))
    }

    fn settle_arithmetic(&mut self, op: BinaryOp, left: Expr, right: Expr) -> (Expr, Expr) {
        // Next to an integer, an untyped parameter is BIGINT, so that `tiny + ?` accepts 1000.
        let like = |t: DataType| match t {
            DataType::UInt64 => t,
            _ if t.is_integer() => DataType::Int64,
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => DataType::Interval,
            DataType::Interval if matches!(op, BinaryOp::Multiply | BinaryOp::Divide) => {
                DataType::Int64
            }
            DataType::Null => DataType::Float64,
            _ => t,
        };
        let (a, mut b) = (like(left.data_type), like(right.data_type));
        if op == BinaryOp::Subtract
            && matches!(
                right.data_type,
                DataType::Date | DataType::Timestamp | DataType::TimestampTz
            )
        {
            b = right.data_type;
        }
        (self.settle(left, b), self.settle(right, a))
    }

    fn bits(&mut self, op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
        let operand = |e: Expr| match e.data_type {
            DataType::UInt64 | DataType::Int64 => Ok(e),
            t if t.is_integer() => Ok(e),
            DataType::Null => cast(e, DataType::Int64),
            t => Err(Error::type_error(format!("no operator {} for {t}", op.symbol()))
                .with_sqlstate("42883")),
        };
        let (mut left, mut right) = (operand(left)?, operand(right)?);
        // Bit operations work on BIGINT.
        if left.data_type == DataType::UInt64 {
            left = cast(left, DataType::Int64)?;
        }
        if right.data_type == DataType::UInt64 {
            right = cast(right, DataType::Int64)?;
        }
        Ok(binary(op, left, right, DataType::Int64))
    }

    /// Binds arithmetic negation.
    pub(crate) fn negate(&mut self, expr: Expr) -> Result<Expr> {
        let expr = self.settle(expr, DataType::Float64);
        let t = expr.data_type;
        let folded = match literal_value(&expr) {
            Some(Value::Null) => Some(Value::Null),
            Some(Value::Int(v)) => v.checked_neg().map(Value::Int),
            Some(Value::Float(v)) => Some(Value::Float(-v)),
            Some(Value::Decimal { unscaled, scale }) => match i64::try_from(-unscaled) {
                // `-9223372036854775808` is a BIGINT, although 9223372036854775808 is not.
                Ok(v) if *scale == 0 => {
                    return Ok(Expr::literal(Value::Int(v), DataType::Int64));
                }
                _ => Some(Value::Decimal { unscaled: -unscaled, scale: *scale }),
            },
            Some(Value::Interval(i)) => Some(Value::Interval(negate_interval(*i)?)),
            _ => None,
        };
        if let Some(value) = folded {
            // An unsigned type, or one too narrow for the negated value, widens to BIGINT.
            let holds = |v: i64| {
                t.integer_range()
                    .is_some_and(|(low, high)| low < 0 && (low..=high).contains(&v.into()))
            };
            let narrow = matches!(value, Value::Int(v) if !holds(v));
            return Ok(Expr::literal(value, if narrow { DataType::Int64 } else { t }));
        }
        let (expr, result) = match t {
            // The only value is null.
            DataType::Null => return Ok(expr),
            DataType::UInt64 => (
                cast(expr, DataType::Decimal { precision: 20, scale: 0 })?,
                DataType::Decimal { precision: 20, scale: 0 },
            ),
            DataType::Float32 => (expr, DataType::Float64),
            _ if t.is_integer() => (expr, DataType::Int64),
            _ if t.is_numeric() || t == DataType::Interval => (expr, t),
            _ => {
                return Err(
                    Error::type_error(format!("no operator - for {t}")).with_sqlstate("42883")
                );
            }
        };
        Ok(Expr { kind: ExprKind::Negate(Box::new(expr)), data_type: result })
    }

    /// Requires a Boolean operand. `what` names it in errors.
    pub(crate) fn condition(&mut self, expr: Expr, what: &str) -> Result<Expr> {
        let expr = self.decide(expr, DataType::Boolean);
        match expr.data_type {
            DataType::Boolean => Ok(expr),
            DataType::Null => cast(expr, DataType::Boolean),
            t => Err(Error::type_error(format!("{what} must be BOOLEAN, not {t}"))),
        }
    }

    /// Casts an operand to text.
    pub(crate) fn text(&mut self, expr: Expr) -> Result<Expr> {
        let expr = self.settle(expr, DataType::TEXT);
        if expr.data_type.is_text() { Ok(expr) } else { cast(expr, DataType::TEXT) }
    }

    /// Casts all expressions to one type, for `CASE`, `COALESCE` and `VALUES`. Text literals take
    /// the type of the other expressions, whatever their position. `what` names the construct in
    /// errors.
    pub(crate) fn unify_all(
        &mut self,
        mut list: Vec<Expr>,
        what: &str,
    ) -> Result<(Vec<Expr>, DataType)> {
        let with = |to: DataType, expr: &Expr| match common_with_literal(to, expr) {
            Some(t) => Ok(t),
            None => {
                let message = format!("{what} cannot mix {to} and {}", expr.data_type);
                Err(Error::type_error(message).with_sqlstate("42804"))
            }
        };
        let mut to = DataType::Null;
        for expr in list.iter().filter(|e| !Self::is_untyped(e) && !is_text_literal(e)) {
            to = with(to, expr)?;
        }
        for expr in list.iter_mut().filter(|e| is_text_literal(e)) {
            *expr = spelled(expr.clone(), to)?;
            to = with(to, expr)?;
        }
        for expr in list.iter_mut().filter(|e| Self::is_untyped(e)) {
            *expr = self.settle_with(expr.clone(), to);
            to = with(to, expr)?;
        }
        let mut out = Vec::with_capacity(list.len());
        for expr in list {
            let same = expr.data_type.is_text() && to.is_text();
            out.push(if same { expr } else { cast(expr, to)? });
        }
        Ok((out, to))
    }

    /// Casts to the type of a column under the rules of assignment.
    pub(crate) fn assign(&mut self, expr: Expr, to: DataType, column: &str) -> Result<Expr> {
        let expr = self.decide(expr, to);
        let from = expr.data_type;
        let named = |e: Error| e.context(format!("column {column}"));
        let fits = match (from, to) {
            (DataType::Text { .. }, _) => {
                literal_value(&expr).is_some()
                    || to.is_text()
                    || to == DataType::Json
                    || matches!(to, DataType::Binary { .. })
            }
            (f, DataType::Text { .. }) => f != DataType::Boolean || literal_value(&expr).is_some(),
            (DataType::Boolean, t) if t.is_numeric() => false,
            _ => true,
        };
        if !fits {
            let message = format!(
                "column {column} is of type {to} but the value is of type {from}; add a CAST"
            );
            return Err(Error::type_error(message));
        }
        if from.is_text() && to == DataType::TEXT {
            return Ok(expr);
        }
        cast(expr, to).map_err(named)
    }
}

/// Like `common`, but a text literal takes the type of the other expressions.
fn common_with_literal(to: DataType, expr: &Expr) -> Option<DataType> {
    let takes =
        is_text_literal(expr) && !to.is_text() && !matches!(to, DataType::Null | DataType::Json);
    if takes { Some(to) } else { common(to, expr.data_type) }
}

fn holds(op: BinaryOp, order: Ordering) -> bool {
    use BinaryOp::*;
    match op {
        Equal | NotDistinct => order.is_eq(),
        NotEqual | Distinct => order.is_ne(),
        Less => order.is_lt(),
        LessOrEqual => order.is_le(),
        Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// Converts a text literal next to a `DECIMAL` to the exact number it spells, which may have more
/// decimal places, and one next to a `DATE` to the timestamp it spells if that has a time of day.
fn spelled(expr: Expr, other: DataType) -> Result<Expr> {
    let Some(Value::Text(text)) = literal_value(&expr) else { return Ok(expr) };
    if matches!(other, DataType::Binary { .. }) {
        return Ok(Expr::literal(Value::Binary(text.as_bytes().to_vec()), DataType::BLOB));
    }
    if other == DataType::Date
        && let Some(micros) = temporal::parse_timestamp(text)
        && micros.rem_euclid(temporal::MICROS_PER_DAY) != 0
    {
        return Ok(Expr::literal(Value::Timestamp(micros), DataType::Timestamp));
    }
    // Text with a fraction must not compare equal to the integer it would be rounded to.
    let fraction = other.is_integer() && text.contains(['.', 'e', 'E']);
    if !other.is_decimal() && !fraction {
        return Ok(expr);
    }
    let value = literal::exact_number(text, other)?;
    let data_type = value.natural_type();
    Ok(Expr::literal(value, data_type))
}

/// Converts an operand of arithmetic to a number. Next to a decimal, an integer literal gets the
/// fewest digits.
fn numeric_operand(expr: Expr, other: DataType, op: BinaryOp) -> Result<Expr> {
    let t = expr.data_type;
    if t == DataType::Null {
        return cast(expr, if other.is_numeric() { other } else { DataType::Int64 });
    }
    if let Some(value) = literal_value(&expr) {
        if t.is_text() && other.is_numeric() {
            return cast(expr, other);
        }
        // Next to a decimal, an integer literal has as many digits as written, so that `1 -
        // discount` stays narrow.
        if t.is_integer()
            && other.is_decimal()
            && let Some((unscaled, _)) = literal::exact(value)
        {
            let precision = nacre_types::decimal::digits(unscaled).max(1);
            return cast(expr, DataType::Decimal { precision, scale: 0 });
        }
    }
    if !t.is_numeric() {
        let message = format!("no operator {} for {t} and {other}", op.symbol());
        return Err(Error::type_error(message).with_sqlstate("42883"));
    }
    Ok(expr)
}

/// Builds the error for an aggregate where none is allowed.
pub(crate) fn aggregates_not_allowed(env: &Env<'_>) -> Error {
    if env.in_aggregate {
        return nested_aggregates();
    }
    Error::type_error(format!("aggregates are not allowed in {}", env.clause))
        .with_sqlstate("42803")
}

/// The error of an aggregate inside an aggregate.
pub(crate) fn nested_aggregates() -> Error {
    Error::type_error("aggregates cannot be nested").with_sqlstate("42803")
}
