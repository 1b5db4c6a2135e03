//! Roots, powers, logarithms and integer functions.

use nacre_column::Vector;
use nacre_function::entry::coerce;
use nacre_function::entry::definition::Kernel::{Values, Vectors};
use nacre_function::entry::definition::Parameter::{Double, RoundedInteger};
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Arguments, Arity};
use nacre_function::entry::definition::{Binding, Operand};
use nacre_function::entry::definition::{Call, boolean, int};
use nacre_function::entry::definition::{Expression, Parameters, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{expression, function, takes};
use nacre_function::kernel::decimals::zero_division;
use nacre_function::kernel::double::{doubles, finite};
use nacre_function::operator::BinaryOp;
use nacre_function::vector::map::map_doubles;
use nacre_function::vector::validity::validity;
use nacre_types::{DataType, Error, Result, Value};

const DOUBLE: DataType = DataType::Float64;
const INT: DataType = DataType::Int64;
const BOOLEAN: DataType = DataType::Boolean;
const ONE: Parameters = takes(&[Double]);
const TWO_INTEGERS: Parameters = takes(&[RoundedInteger, RoundedInteger]);

/// Natural logarithm; other logarithms are quotients of it.
pub static LN: ScalarFunction = function(
    &["ln"],
    Doc::new("ln(x)", "Natural logarithm.", "ln(1)", "0.0"),
    Declared(ONE, DOUBLE),
    Vectors(|call| each(call, |x| Ok(positive(x)?.ln()))),
);

/// Decimal logarithm.
static LOG10: ScalarFunction = function(
    &["log10"],
    Doc::new("log10(x)", "Decimal logarithm.", "log10(1000)", "3.0"),
    Declared(ONE, DOUBLE),
    Vectors(|call| each(call, |x| Ok(positive(x)?.log10()))),
);

/// Exponential function.
pub static EXP: ScalarFunction = function(
    &["exp"],
    Doc::new("exp(x)", "The number e raised to a power.", "exp(0)", "1.0"),
    Declared(ONE, DOUBLE),
    Vectors(|call| each(call, |x| finite(x.exp(), x.is_finite(), DOUBLE))),
);

/// Power of doubles; PostgreSQL's operator `^` as well.
pub static POWER: ScalarFunction = function(
    &["power", "pow"],
    Doc::new("power(x, y), pow", "`x` raised to the power `y`.", "power(2, 10)", "1024.0"),
    Declared(takes(&[Double, Double]), DOUBLE),
    Vectors(power),
);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &function(
        &["sqrt"],
        Doc::new("sqrt(x)", "Square root.", "sqrt(16)", "4.0"),
        Declared(ONE, DOUBLE),
        Vectors(|call| {
            each(call, |x| match x < 0.0 {
                true => {
                    Err(Error::type_error("square root of a negative number")
                        .with_sqlstate("2201F"))
                }
                false => Ok(x.sqrt()),
            })
        }),
    ),
    &function(
        &["cbrt"],
        Doc::new("cbrt(x)", "Cube root.", "cbrt(27)", "3.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).cbrt())),
    ),
    &EXP,
    &LN,
    &LOG10,
    &POWER,
    &function(
        &["factorial"],
        Doc::new("factorial(n)", "Factorial, up to 33!.", "factorial(20)", "2432902008176640000"),
        Declared(takes(&[RoundedInteger]), DataType::Decimal { precision: 38, scale: 0 }),
        Values(|row| match row.int(0) {
            n @ 0..=33 => Ok(Value::Decimal { unscaled: (1..=n as i128).product(), scale: 0 }),
            _ => Err(row.out_of_range()),
        }),
    ),
    &function(
        &["gcd", "greatest_common_divisor"],
        Doc::new(
            "gcd(a, b), greatest_common_divisor",
            "Greatest common divisor.",
            "gcd(12, 18)",
            "6",
        ),
        Declared(TWO_INTEGERS, INT),
        Values(|row| {
            let divisor = gcd(row.int(0).unsigned_abs().into(), row.int(1).unsigned_abs().into());
            int(i64::try_from(divisor).map_err(|_| row.out_of_range())?)
        }),
    ),
    &function(
        &["lcm", "least_common_multiple"],
        Doc::new("lcm(a, b), least_common_multiple", "Least common multiple.", "lcm(4, 6)", "12"),
        Declared(TWO_INTEGERS, INT),
        Values(|row| {
            let (a, b) = (row.int(0).unsigned_abs() as u128, row.int(1).unsigned_abs() as u128);
            let multiple = if a == 0 || b == 0 { 0 } else { a / gcd(a, b) * b };
            int(i64::try_from(multiple).map_err(|_| row.out_of_range())?)
        }),
    ),
    &function(
        &["bit_count"],
        Doc::new("bit_count(n)", "Number of one bits, of 64.", "bit_count(7)", "3"),
        Declared(takes(&[RoundedInteger]), INT),
        Values(|row| int(row.int(0).count_ones().into())),
    ),
    &function(
        &["even"],
        Doc::new("even(x)", "The next even number away from zero.", "even(2.1)", "4.0"),
        Declared(ONE, DOUBLE),
        Values(|row| {
            let x = row.double(0);
            row.float(((x.abs() / 2.0).ceil() * 2.0).copysign(x))
        }),
    ),
    &function(
        &["isnan"],
        Doc::new("isnan(x)", "Whether a number is NaN.", "isnan(1e0)", "false"),
        Declared(ONE, BOOLEAN),
        Values(|row| boolean(row.double(0).is_nan())),
    ),
    &function(
        &["isinf"],
        Doc::new("isinf(x)", "Whether a number is infinite.", "isinf(1e0)", "false"),
        Declared(ONE, BOOLEAN),
        Values(|row| boolean(row.double(0).is_infinite())),
    ),
    &function(
        &["isfinite"],
        Doc::new(
            "isfinite(x)",
            "Whether a number is neither infinite nor NaN.",
            "isfinite(1e0)",
            "true",
        ),
        Declared(ONE, BOOLEAN),
        Values(|row| boolean(row.double(0).is_finite())),
    ),
    &function(
        &["width_bucket"],
        Doc::new(
            "width_bucket(x, low, high, n)",
            "The one of `n` buckets of equal width between two bounds that holds `x`.",
            "width_bucket(5.35, 0.024, 10.06, 5)",
            "3",
        ),
        Declared(takes(&[Double, Double, Double, RoundedInteger]), INT),
        Values(|row| {
            let (x, low, high, count) = (row.double(0), row.double(1), row.double(2), row.int(3));
            if count <= 0 || low == high || !low.is_finite() || !high.is_finite() {
                let what = "needs at least one bucket between two different bounds";
                return Err(row.error(what, "2201G"));
            }
            int(bucket(x, low, high, count))
        }),
    ),
];

/// The functions of this file that are expressions.
pub(crate) static EXPRESSIONS: &[&Expression] = &[
    &expression(
        &["log2"],
        Doc::new("log2(x)", "Binary logarithm.", "log2(8)", "3.0"),
        Arity::exactly(1),
        |binding, arguments| {
            let [x] = arguments.exactly()?;
            let two = binding.constant(Value::Int(2), DataType::Int32);
            logarithm(binding, two, x)
        },
    ),
    &expression(
        &["log"],
        Doc::new(
            "log(x), log(base, x)",
            "Decimal logarithm, or that to another base.",
            "log(2, 8)",
            "3.0",
        ),
        Arity::between(1, 2),
        |binding, arguments| match arguments.operands.len() {
            1 => LOG10.bind(binding, arguments),
            _ => {
                let [base, x] = arguments.exactly()?;
                logarithm(binding, base, x)
            }
        },
    ),
    &expression(
        &["mod"],
        Doc::new("mod(x, y)", "The remainder of a division, as `x % y`.", "mod(7, 3)", "1"),
        Arity::exactly(2),
        |binding, arguments| operator(binding, BinaryOp::Modulo, arguments),
    ),
    &expression(
        &["div"],
        Doc::new("div(x, y)", "The whole part of a division, as `x DIV y`.", "div(7, 2)", "3"),
        Arity::exactly(2),
        |binding, arguments| operator(binding, BinaryOp::IntegerDivide, arguments),
    ),
    &expression(
        &["xor"],
        Doc::new("xor(a, b)", "Exclusive or of bits.", "xor(6, 3)", "5"),
        Arity::exactly(2),
        |binding, arguments| operator(binding, BinaryOp::BitXor, arguments),
    ),
];

fn operator(binding: &mut dyn Binding, op: BinaryOp, arguments: Arguments<'_>) -> Result<Operand> {
    let [left, right] = arguments.exactly()?;
    binding.binary(op, left, right)
}

fn logarithm(binding: &mut dyn Binding, base: Operand, x: Operand) -> Result<Operand> {
    let base = coerce::double(binding, base)?;
    let x = coerce::double(binding, x)?;
    let x = binding.call(&LN, vec![x], DOUBLE);
    let base = binding.call(&LN, vec![base], DOUBLE);
    binding.binary(BinaryOp::Divide, x, base)
}

/// The bucket of `x` among `count`: 0 before the first, `count + 1` after the last.
fn bucket(x: f64, low: f64, high: f64, count: i64) -> i64 {
    let width = high - low;
    let share = (x - low) / width;
    if share < 0.0 {
        return 0;
    }
    if share >= 1.0 {
        return count.saturating_add(1);
    }
    let before = (share * count as f64).floor();
    // Rounding may put a value that equals the upper bound of a bucket before it.
    let next = low + width * (before + 1.0) / count as f64;
    let has_passed = if width > 0.0 { x >= next } else { x <= next };
    (before as i64 + 1 + i64::from(has_passed)).min(count)
}

/// Applies a function of one double.
fn each(call: &Call<'_>, compute: fn(f64) -> Result<f64>) -> Result<Vector> {
    let [arg] = call.exactly()?;
    let values = doubles(arg)?;
    map_doubles(DOUBLE, arg.validity().cloned(), call.rows, |i| compute(values.get(i)))
}

fn positive(x: f64) -> Result<f64> {
    if x <= 0.0 {
        let what = "logarithm of a number that is not positive";
        return Err(Error::type_error(what).with_sqlstate("2201E"));
    }
    Ok(x)
}

fn power(call: &Call<'_>) -> Result<Vector> {
    let [base, exponent] = call.exactly()?;
    let (a, b) = (doubles(base)?, doubles(exponent)?);
    map_doubles(DOUBLE, validity(&[base, exponent]), call.rows, |i| {
        let (x, y) = (a.get(i), b.get(i));
        if x == 0.0 && y < 0.0 {
            return Err(zero_division());
        }
        let v = x.powf(y);
        if v.is_nan() && !x.is_nan() && !y.is_nan() {
            let what = "a negative number raised to a fraction is not real";
            return Err(Error::type_error(what).with_sqlstate("2201F"));
        }
        finite(v, x.is_finite() && y.is_finite(), DOUBLE)
    })
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
