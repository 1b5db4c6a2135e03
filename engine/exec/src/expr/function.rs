//! Which kernel computes which scalar function, and the functions that are of no one type.

use super::{number, temporal, text};
use crate::Context;
use nacre_column::Vector;
use nacre_function::kernel::{arithmetic, cast, order};
use nacre_function::vector::{map, room::Room, rows::ActiveRows};
use nacre_sql::expr::{BinaryOp, ScalarFunction};
use nacre_types::temporal::MICROS_PER_DAY;
use nacre_types::{DataType, Error, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Applies a function to its arguments. `COALESCE` is lazy and never gets here.
pub(super) fn apply(
    function: ScalarFunction,
    args: &[Arc<Vector>],
    data_type: DataType,
    rows: ActiveRows<'_>,
    context: &Context<'_>,
) -> Result<Vector> {
    use ScalarFunction as F;
    let room = Room::new(context.most_text_bytes());
    if let F::Builtin(builtin) = function {
        return super::builtin::apply(builtin, args, data_type, rows, room);
    }
    if args.iter().any(|arg| arg.data_type() == DataType::Null)
        && !matches!(function, F::TypeOf | F::NullIf)
    {
        return Ok(Vector::constant(data_type, &Value::Null, rows.len));
    }
    match (function, args) {
        (F::Abs | F::Ceil | F::Floor | F::Sign, [arg]) => {
            number::unary(function, arg, data_type, rows)
        }
        (F::Round | F::Trunc, [arg]) => {
            number::round(arg, None, function == F::Trunc, data_type, rows)
        }
        (F::Round | F::Trunc, [arg, places]) => {
            number::round(arg, Some(places), function == F::Trunc, data_type, rows)
        }
        (F::Sqrt | F::Exp | F::Ln | F::Log10, [arg]) => {
            number::transcendental(function, arg, data_type, rows)
        }
        (F::Power, [base, exponent]) => number::power(base, exponent, data_type, rows),
        (F::Mod, [left, right]) => {
            arithmetic::binary(BinaryOp::Modulo, left, right, data_type, rows)
        }
        (F::Greatest, [_, ..]) => extreme(args, Ordering::Greater, data_type, rows, room),
        (F::Least, [_, ..]) => extreme(args, Ordering::Less, data_type, rows, room),
        (F::NullIf, [arg, other]) => map::map_values(&[arg], data_type, rows, room, &mut |i| {
            let value = arg.value(i);
            let same = !other.is_null(i) && order::compare_values(&value, &other.value(i)).is_eq();
            Ok(if same { Value::Null } else { value })
        }),
        (F::TypeOf, [arg]) => {
            let name = Value::Text(arg.data_type().to_string());
            Ok(Vector::constant(data_type, &name, rows.len))
        }
        (F::CurrentTimestamp, _) => {
            let now = cast::cast_value(&Value::Timestamp(context.now_us), data_type)?;
            Ok(Vector::constant(data_type, &now, rows.len))
        }
        (F::CurrentDate, _) => {
            let today = Value::Date(context.now_us.div_euclid(MICROS_PER_DAY) as i32);
            Ok(Vector::constant(data_type, &cast::cast_value(&today, data_type)?, rows.len))
        }
        (F::Extract(part), [arg]) => temporal::extract(part, arg, data_type, rows),
        (F::Year, [arg]) => {
            temporal::extract(nacre_sql::expr::DatePart::Year, arg, data_type, rows)
        }
        (F::Month, [arg]) => {
            temporal::extract(nacre_sql::expr::DatePart::Month, arg, data_type, rows)
        }
        (F::Day, [arg]) => temporal::extract(nacre_sql::expr::DatePart::Day, arg, data_type, rows),
        (F::DateTrunc(part), [arg]) => temporal::truncate(part, arg, data_type, rows),
        (F::Length | F::OctetLength | F::Position | F::StartsWith, _) => {
            text::measure(function, args, data_type, rows)
        }
        (F::Concat, _) => text::concat(args, data_type, rows, room),
        (
            F::Lower
            | F::Upper
            | F::Trim
            | F::LeftTrim
            | F::RightTrim
            | F::Substring
            | F::Replace
            | F::Left
            | F::Right
            | F::Reverse
            | F::Repeat
            | F::LeftPad
            | F::RightPad,
            [_, ..],
        ) => text::transform(function, args, data_type, rows, room),
        _ => Err(Error::type_error(format!("wrong number of arguments for {function:?}"))
            .with_sqlstate("42883")),
    }
}

/// `GREATEST` and `LEAST`: null when any argument is, as in the SQL standard.
fn extreme(
    args: &[Arc<Vector>],
    wanted: Ordering,
    data_type: DataType,
    rows: ActiveRows<'_>,
    room: Room,
) -> Result<Vector> {
    let all: Vec<&Vector> = args.iter().map(|arg| &**arg).collect();
    map::map_values(&all, data_type, rows, room, &mut |i| {
        let mut best = Value::Null;
        for arg in args {
            let value = arg.value(i);
            if best.is_null() || order::compare_values(&value, &best) == wanted {
                best = value;
            }
        }
        Ok(best)
    })
}
