//! Arithmetic on dates, times and intervals, and time zones.

use crate::bind::binder::Binder;
use crate::bind::environment::Env;
use crate::bind::expression::cast::{binary, cast, is_null, is_text_literal, literal_value};
use crate::bind::names::{UTC, place, unsupported};
use crate::expr::{BinaryOp, Expr, ExprKind};
use nacre_types::{DataType, Error, Interval, Result, Value, decimal, interval, temporal};
use sqlparser::ast;

impl<'a> Binder<'a> {
    /// Binds `timestamp AT TIME ZONE zone`: of one with a time zone, its clock in that zone; of another, the moment at
    /// which clocks in that zone show it.
    pub(super) fn at_time_zone(
        &mut self,
        timestamp: &'a ast::Expr,
        zone: &'a ast::Expr,
        env: &mut Env<'_>,
    ) -> Result<Expr> {
        let expr = self.expr(timestamp, env)?;
        let zone_at = place(zone);
        let zone = self.expr(zone, env)?;
        let is_utc = matches!(&zone.kind, ExprKind::Literal(Value::Text(name))
            if UTC.iter().any(|utc| utc.eq_ignore_ascii_case(name)));
        if !is_utc {
            return Err(unsupported("AT TIME ZONE of a zone other than UTC").at(zone_at));
        }
        let expr = self.settle(expr, DataType::TimestampTz);
        match expr.data_type {
            DataType::TimestampTz => cast(expr, DataType::Timestamp),
            DataType::Date | DataType::Timestamp | DataType::Null => {
                cast(expr, DataType::TimestampTz)
            }
            DataType::Text { .. } if is_text_literal(&expr) => {
                cast(cast(expr, DataType::TimestampTz)?, DataType::Timestamp)
            }
            other => {
                Err(Error::type_error(format!("AT TIME ZONE expects a timestamp, not {other}"))
                    .with_sqlstate("42883"))
            }
        }
    }
}

pub(super) fn negate_interval(i: Interval) -> Result<Interval> {
    match (i.months.checked_neg(), i.days.checked_neg(), i.micros.checked_neg()) {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(Error::out_of_range("INTERVAL out of range").with_sqlstate("22015")),
    }
}

/// Binds `+` and `-` on dates, timestamps and intervals, and `*` and `/` of an interval and a whole number.
pub(super) fn date_arithmetic(op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
    use DataType::*;
    let (mut left, mut right) = (left, right);
    let (a, b) = (left.data_type, right.data_type);
    let no_operator = || {
        Err(Error::type_error(format!("no operator {} for {a} and {b}", op.symbol()))
            .with_sqlstate("42883"))
    };
    match (op, a, b) {
        (BinaryOp::Add | BinaryOp::Subtract, ..) => {}
        (BinaryOp::Multiply | BinaryOp::Divide, Interval, n) if n.is_integer() => {
            return Ok(binary(op, left, cast(right, Int64)?, Interval));
        }
        (BinaryOp::Multiply, n, Interval) if n.is_integer() => {
            return Ok(binary(op, cast(left, Int64)?, right, Interval));
        }
        (BinaryOp::Multiply | BinaryOp::Divide, Interval, Null)
        | (BinaryOp::Multiply, Null, Interval) => return Ok(Expr::literal(Value::Null, Interval)),
        _ => return no_operator(),
    }
    // `interval + date` is `date + interval`.
    if op == BinaryOp::Add && matches!(right.data_type, Date | Timestamp | TimestampTz | Time) {
        std::mem::swap(&mut left, &mut right);
    }
    if is_null(&left) || is_null(&right) {
        let t = if is_null(&left) { right.data_type } else { left.data_type };
        return Ok(Expr::literal(Value::Null, t));
    }
    // A text literal takes the type that the other operand calls for; an integer is a number of
    // days.
    if left.data_type.is_text() && literal_value(&left).is_some() {
        let to = if right.data_type == Interval { Timestamp } else { right.data_type };
        left = cast(left, to)?;
    }
    if let (true, Some(Value::Text(text))) = (right.data_type.is_text(), literal_value(&right)) {
        // A number without a unit may mean days or seconds.
        if op == BinaryOp::Add && decimal::parse(text.trim()).is_some() {
            return no_operator();
        }
        let to = if op == BinaryOp::Add { Interval } else { left.data_type };
        right = cast(right, to)?;
    }
    if let (Date | Timestamp | TimestampTz, Some(Value::Int(days))) =
        (left.data_type, literal_value(&right))
        && let Ok(days) = i32::try_from(*days)
    {
        right = Expr::literal(
            Value::Interval(nacre_types::Interval { months: 0, days, micros: 0 }),
            Interval,
        );
    }
    match (left.data_type, right.data_type, op) {
        (Date, Interval, _) => {
            let whole_days =
                matches!(literal_value(&right), Some(Value::Interval(i)) if i.micros == 0);
            let left = if whole_days { left } else { cast(left, Timestamp)? };
            add_interval(op, left, right)
        }
        (Timestamp | TimestampTz, Interval, _) => add_interval(op, left, right),
        (t @ (Date | Timestamp | TimestampTz), days, _) if days.is_integer() => {
            Ok(binary(op, left, cast(right, Int64)?, t))
        }
        (Date, Date, BinaryOp::Subtract) => Ok(binary(op, left, right, Int64)),
        (Timestamp | TimestampTz, Timestamp | TimestampTz | Date, BinaryOp::Subtract)
        | (Date, Timestamp | TimestampTz, BinaryOp::Subtract) => {
            Ok(binary(op, cast(left, Timestamp)?, cast(right, Timestamp)?, Interval))
        }
        (Interval, Interval, _) => match (literal_value(&left), literal_value(&right)) {
            (Some(Value::Interval(a)), Some(Value::Interval(b))) => {
                let b = if op == BinaryOp::Subtract { negate_interval(*b)? } else { *b };
                let sum = (
                    a.months.checked_add(b.months),
                    a.days.checked_add(b.days),
                    a.micros.checked_add(b.micros),
                );
                let (Some(months), Some(days), Some(micros)) = sum else {
                    return Err(Error::out_of_range("INTERVAL out of range").with_sqlstate("22015"));
                };
                let sum = nacre_types::Interval { months, days, micros };
                Ok(Expr::literal(Value::Interval(sum), Interval))
            }
            _ => Ok(binary(op, left, right, Interval)),
        },
        _ => no_operator(),
    }
}

/// Adds an interval to a date or timestamp, or subtracts it; folds literals.
pub(super) fn add_interval(op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
    let data_type = left.data_type;
    if let (Some(start), Some(Value::Interval(interval))) =
        (literal_value(&left), literal_value(&right))
    {
        let interval =
            if op == BinaryOp::Subtract { negate_interval(*interval)? } else { *interval };
        let moved = match start {
            Value::Date(days) => interval::add(*days as i64 * temporal::MICROS_PER_DAY, interval)
                .map(|t| Value::Date(t.div_euclid(temporal::MICROS_PER_DAY) as i32)),
            Value::Timestamp(t) => interval::add(*t, interval).map(Value::Timestamp),
            Value::TimestampTz(t) => interval::add(*t, interval).map(Value::TimestampTz),
            _ => None,
        };
        return match moved {
            Some(value) => Ok(Expr::literal(value, data_type)),
            None => Err(Error::out_of_range("date out of range").with_sqlstate("22008")),
        };
    }
    Ok(binary(op, left, right, data_type))
}

pub(super) fn is_temporal(t: DataType) -> bool {
    t.is_moment() || t == DataType::Interval
}
