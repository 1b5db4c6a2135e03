//! Sign, absolute value and rounding. Exact numbers stay exact.

use nacre_column::Vector;
use nacre_function::decimal_type::{decimal, decimal_shape};
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Call;
use nacre_function::entry::definition::Kernel::Vectors;
use nacre_function::entry::definition::ScalarFunction;
use nacre_function::entry::definition::Typing::Rule;
use nacre_function::entry::definition::{Arguments, Arity};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::function;
use nacre_function::kernel::cast::cast_vector;
use nacre_function::kernel::decimals;
use nacre_function::kernel::double::{doubles, not_a_number};
use nacre_function::vector::map::{map_doubles, map_integers};
use nacre_function::vector::validity::validity;
use nacre_function::vector::view;
use nacre_types::decimal::{self as exact, POWERS};
use nacre_types::{DataType, Result, Value};

/// Rounding up; the syntax form `CEIL(x)` refers to it.
pub static CEIL: ScalarFunction = function(
    &["ceil", "ceiling"],
    Doc::new("ceil(x), ceiling(x)", "The next integer that is not less.", "ceil(1.2)", "2"),
    Rule(Arity::exactly(1), |binding, arguments| rounded(&CEIL, binding, arguments)),
    Vectors(|call| unary(call, &Unary { double: f64::ceil, exact: ceil })),
);

/// Rounding down; the syntax form `FLOOR(x)` refers to it.
pub static FLOOR: ScalarFunction = function(
    &["floor"],
    Doc::new("floor(x)", "The next integer that is not greater.", "floor(-1.2)", "-2"),
    Rule(Arity::exactly(1), |binding, arguments| rounded(&FLOOR, binding, arguments)),
    Vectors(|call| unary(call, &Unary { double: f64::floor, exact: floor })),
);

static ROUND: ScalarFunction = function(
    &["round"],
    Doc::new(
        "round(x[, digits])",
        "Rounds half away from zero, to a number of digits after the point.",
        "round(2.675, 2)",
        "2.68",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| rounded(&ROUND, binding, arguments)),
    Vectors(|call| to_places(call, Rounding::HalfAwayFromZero)),
);

static TRUNC: ScalarFunction = function(
    &["trunc", "truncate"],
    Doc::new(
        "trunc(x[, digits]), truncate",
        "Cuts a number to some digits after the point.",
        "trunc(2.679, 2)",
        "2.67",
    ),
    Rule(Arity::between(1, 2), |binding, arguments| rounded(&TRUNC, binding, arguments)),
    Vectors(|call| to_places(call, Rounding::TowardsZero)),
);

static ABS: ScalarFunction = function(
    &["abs"],
    Doc::new("abs(x)", "Absolute value.", "abs(-2.5)", "2.5"),
    Rule(Arity::exactly(1), |binding, arguments| {
        let name = arguments.name;
        let [x] = arguments.exactly()?;
        let x = coerce::number(binding, x, name)?;
        let data_type = match binding.data_type(&x) {
            DataType::Float32 => DataType::Float64,
            t if t.is_integer() && t != DataType::UInt64 => DataType::Int64,
            t => t,
        };
        Ok(binding.call(&ABS, vec![x], data_type))
    }),
    Vectors(|call| unary(call, &Unary { double: f64::abs, exact: absolute })),
);

static SIGN: ScalarFunction = function(
    &["sign"],
    Doc::new("sign(x)", "-1, 0 or 1.", "sign(-3)", "-1"),
    Rule(Arity::exactly(1), |binding, arguments| {
        let name = arguments.name;
        let [x] = arguments.exactly()?;
        let x = coerce::number(binding, x, name)?;
        Ok(binding.call(&SIGN, vec![x], DataType::Int64))
    }),
    Vectors(|call| unary(call, &Unary { double: sign, exact: exact_sign })),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[&ABS, &SIGN, &CEIL, &FLOOR, &ROUND, &TRUNC];

/// The type of a rounded number: integers stay integers, decimals get the requested scale.
fn rounded(
    function: &'static ScalarFunction,
    binding: &mut dyn Binding,
    arguments: Arguments<'_>,
) -> Result<Operand> {
    let name = arguments.name;
    let mut operands = arguments.operands.into_iter();
    let (Some(x), digits) = (operands.next(), operands.next()) else {
        return Err(Arity::between(1, 2).wrong(name, 0));
    };
    let digits = digits.map(|digits| coerce::integer(binding, digits, name)).transpose()?;
    let x = coerce::number(binding, x, name)?;
    let constant = match digits.as_ref().map(|digits| binding.literal(digits)) {
        None => Some(0),
        Some(Some(Value::Int(v))) => Some(*v),
        Some(_) => None,
    };
    let data_type = match binding.data_type(&x) {
        DataType::UInt64 => DataType::UInt64,
        t if t.is_integer() => DataType::Int64,
        t => match (decimal_shape(t), constant) {
            (None, _) => DataType::Float64,
            // The precision of the value, and one more digit for rounding up.
            (Some((precision, scale)), None) => decimal(precision as u32 + 1, scale as u32),
            (Some((_, scale)), Some(n)) if n >= scale as i64 && n > 0 => t,
            (Some((precision, scale)), Some(n)) => {
                let kept = n.clamp(0, scale as i64) as u32;
                decimal(precision as u32 - scale as u32 + kept + 1, kept)
            }
        },
    };
    Ok(binding.call(function, [x].into_iter().chain(digits).collect(), data_type))
}

/// A function of one number, for doubles and for unscaled integers.
struct Unary {
    double: fn(f64) -> f64,
    /// Takes an unscaled integer, the unit of its scale, its scale and that of the result.
    exact: fn(i128, i128, u8, u8) -> Option<i128>,
}

fn ceil(v: i128, unit: i128, _: u8, to: u8) -> Option<i128> {
    exact::rescale(-((-v).div_euclid(unit)), 0, to)
}

fn floor(v: i128, unit: i128, _: u8, to: u8) -> Option<i128> {
    exact::rescale(v.div_euclid(unit), 0, to)
}

fn absolute(v: i128, _: i128, from: u8, to: u8) -> Option<i128> {
    exact::rescale(v.checked_abs()?, from, to)
}

fn exact_sign(v: i128, _: i128, _: u8, to: u8) -> Option<i128> {
    exact::rescale(v.signum(), 0, to)
}

/// Zero for NaN, which has no sign.
fn sign(v: f64) -> f64 {
    (i8::from(v > 0.0) - i8::from(v < 0.0)) as f64
}

fn unary(call: &Call<'_>, function: &Unary) -> Result<Vector> {
    let [arg] = call.exactly()?;
    let (data_type, validity) = (call.data_type, arg.validity().cloned());
    if arg.data_type().is_float() {
        let values = doubles(arg)?;
        if data_type.is_float() {
            let compute = |i: usize| Ok((function.double)(values.get(i)));
            return map_doubles(data_type, validity, call.rows, compute);
        }
        return map_integers(data_type, validity, call.rows, &mut |i| {
            let v = (function.double)(values.get(i));
            decimals::fit(exact::from_f64(v, data_type.scale()), data_type)
        });
    }
    let Some(values) = view::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let (from, to) = (arg.data_type().scale(), data_type.scale());
    let unit = POWERS[from as usize];
    map_integers(data_type, validity, call.rows, &mut |i| {
        decimals::fit((function.exact)(values.get(i), unit, from, to), data_type)
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Rounding {
    HalfAwayFromZero,
    TowardsZero,
}

/// Rounds to a number of decimal places that may be negative.
fn to_places(call: &Call<'_>, rounding: Rounding) -> Result<Vector> {
    let vectors = call.vectors();
    let (arg, places) = match vectors[..] {
        [arg] => (arg, None),
        [arg, places] => (arg, view::wide(places)),
        _ => return Err(call.wrong_arguments()),
    };
    let validity = validity(&vectors);
    let place = |i: usize| match &places {
        Some(places) => places.get(i).clamp(-40, 40) as i32,
        None => 0,
    };
    if arg.data_type().is_float() {
        let values = doubles(arg)?;
        let rounded = map_doubles(DataType::Float64, validity, call.rows, |i| {
            Ok(round_double(values.get(i), place(i), rounding))
        })?;
        return cast_vector(&rounded, call.data_type, call.rows);
    }
    let Some(values) = view::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let from = arg.data_type().scale();
    let exact_type = if call.data_type.is_float() {
        DataType::Decimal { precision: 38, scale: from }
    } else {
        call.data_type
    };
    let to = exact_type.scale();
    let rounded = map_integers(exact_type, validity, call.rows, &mut |i| {
        let (v, dropped) = (values.get(i), from as i32 - place(i));
        let kept = match usize::try_from(dropped) {
            Ok(0) | Err(_) => Some(v),
            Ok(n) => match (POWERS.get(n), rounding) {
                (Some(unit), Rounding::TowardsZero) => Some(v / unit * unit),
                (Some(unit), Rounding::HalfAwayFromZero) => {
                    exact::divide_rounded(v, *unit).checked_mul(*unit)
                }
                (None, _) => Some(0),
            },
        };
        decimals::fit(kept.and_then(|v| exact::rescale(v, from, to)), exact_type)
    })?;
    cast_vector(&rounded, call.data_type, call.rows)
}

fn round_double(v: f64, places: i32, rounding: Rounding) -> f64 {
    if !v.is_finite() {
        return v;
    }
    let cut = rounding == Rounding::TowardsZero;
    if places == 0 {
        return if cut { v.trunc() } else { v.round() };
    }
    if places > 0 {
        // By the decimal digits as displayed, so that 2.675 rounds as written and not as its nearest
        // double.
        let digits = if cut { exact::cut_f64 } else { exact::from_f64 };
        let scale = places as u8;
        return match digits(v, scale.min(38)) {
            Some(unscaled) if scale <= 38 => exact::to_f64(unscaled, scale),
            _ => v,
        };
    }
    let factor = 10f64.powi(-places);
    let scaled = v / factor;
    let result = factor * if cut { scaled.trunc() } else { scaled.round() };
    if result.is_finite() { result } else { v }
}
