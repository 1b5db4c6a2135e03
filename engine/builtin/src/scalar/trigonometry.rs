//! Trigonometry on doubles.

use nacre_function::entry::definition::Kernel::Values;
use nacre_function::entry::definition::Parameter::Double;
use nacre_function::entry::definition::RowCall;
use nacre_function::entry::definition::Typing::Declared;
use nacre_function::entry::definition::{Parameters, ScalarFunction};
use nacre_function::entry::doc::Doc;
use nacre_function::entry::scalar::{function, takes};
use nacre_types::{DataType, Error, Result, Value};

const DOUBLE: DataType = DataType::Float64;
const ONE: Parameters = takes(&[Double]);

/// The functions of this file.
pub(crate) static FUNCTIONS: &[&ScalarFunction] = &[
    &function(
        &["sin"],
        Doc::new("sin(x)", "Sine of an angle in radians.", "round(sin(0), 4)", "0.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).sin())),
    ),
    &function(
        &["cos"],
        Doc::new("cos(x)", "Cosine of an angle in radians.", "round(cos(0), 4)", "1.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).cos())),
    ),
    &function(
        &["tan"],
        Doc::new("tan(x)", "Tangent of an angle in radians.", "round(tan(0), 4)", "0.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).tan())),
    ),
    &function(
        &["cot"],
        Doc::new("cot(x)", "Cotangent of an angle in radians.", "round(cot(1), 4)", "0.6421"),
        Declared(ONE, DOUBLE),
        Values(|row| match row.double(0) {
            0.0 => Err(undefined(row)),
            x => row.float(x.tan().recip()),
        }),
    ),
    &function(
        &["asin"],
        Doc::new("asin(x)", "Inverse sine, in radians.", "round(asin(1), 4)", "1.5708"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(unit(row)?.asin())),
    ),
    &function(
        &["acos"],
        Doc::new("acos(x)", "Inverse cosine, in radians.", "round(acos(1), 4)", "0.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(unit(row)?.acos())),
    ),
    &function(
        &["atan"],
        Doc::new("atan(x)", "Inverse tangent, in radians.", "round(atan(1), 4)", "0.7854"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).atan())),
    ),
    &function(
        &["atan2"],
        Doc::new(
            "atan2(y, x)",
            "Angle of the point `(x, y)`, in radians.",
            "round(atan2(1, 1), 4)",
            "0.7854",
        ),
        Declared(takes(&[Double, Double]), DOUBLE),
        Values(|row| row.float(row.double(0).atan2(row.double(1)))),
    ),
    &function(
        &["sinh"],
        Doc::new("sinh(x)", "Hyperbolic sine.", "round(sinh(1), 4)", "1.1752"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).sinh())),
    ),
    &function(
        &["cosh"],
        Doc::new("cosh(x)", "Hyperbolic cosine.", "round(cosh(1), 4)", "1.5431"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).cosh())),
    ),
    &function(
        &["tanh"],
        Doc::new("tanh(x)", "Hyperbolic tangent.", "round(tanh(1), 4)", "0.7616"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).tanh())),
    ),
    &function(
        &["asinh"],
        Doc::new("asinh(x)", "Inverse hyperbolic sine.", "round(asinh(1), 4)", "0.8814"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).asinh())),
    ),
    &function(
        &["acosh"],
        Doc::new("acosh(x)", "Inverse hyperbolic cosine.", "round(acosh(2), 4)", "1.317"),
        Declared(ONE, DOUBLE),
        Values(|row| match row.double(0) {
            x if x < 1.0 => Err(undefined(row)),
            x => row.float(x.acosh()),
        }),
    ),
    &function(
        &["atanh"],
        Doc::new("atanh(x)", "Inverse hyperbolic tangent.", "round(atanh(0.5), 4)", "0.5493"),
        Declared(ONE, DOUBLE),
        Values(|row| match row.double(0) {
            x if x.abs() >= 1.0 => Err(undefined(row)),
            x => row.float(x.atanh()),
        }),
    ),
    &function(
        &["degrees"],
        Doc::new("degrees(x)", "An angle in radians, in degrees.", "degrees(pi())", "180.0"),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).to_degrees())),
    ),
    &function(
        &["radians"],
        Doc::new(
            "radians(x)",
            "An angle in degrees, in radians.",
            "round(radians(180), 5)",
            "3.14159",
        ),
        Declared(ONE, DOUBLE),
        Values(|row| row.float(row.double(0).to_radians())),
    ),
    &function(
        &["pi"],
        Doc::new("pi()", "The number π.", "round(pi(), 5)", "3.14159"),
        Declared(takes(&[]), DOUBLE),
        Values(|_| Ok(Value::Float(std::f64::consts::PI))),
    ),
];

/// The first argument, if it is NaN or between -1 and 1.
fn unit(row: &RowCall<'_>) -> Result<f64> {
    let x = row.double(0);
    if (-1.0..=1.0).contains(&x) || x.is_nan() { Ok(x) } else { Err(undefined(row)) }
}

fn undefined(row: &RowCall<'_>) -> Error {
    row.error("the argument is outside what the function is defined for", "22003")
}
