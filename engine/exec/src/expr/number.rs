//! Numeric functions: rounding of exact numbers stays exact; the rest is on doubles.

use nacre_column::{Values, Vector};
use nacre_function::kernel::double::{self, not_a_number};
use nacre_function::kernel::{cast, decimals};
use nacre_function::vector::{
    map,
    rows::ActiveRows,
    validity::{valid, validity},
    view,
};
use nacre_sql::expr::ScalarFunction;
use nacre_types::decimal::{self, POWERS};
use nacre_types::{DataType, Error, Result};

/// `ABS`, `CEIL`, `FLOOR` and `SIGN`.
pub(super) fn unary(
    function: ScalarFunction,
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    use ScalarFunction::{Abs, Ceil, Floor};
    if arg.data_type().is_float() && data_type.is_float() {
        return doubles(arg, data_type, rows, &mut |v| {
            Ok(match function {
                Abs => v.abs(),
                Ceil => v.ceil(),
                Floor => v.floor(),
                _ if v > 0.0 => 1.0,
                _ if v < 0.0 => -1.0,
                _ => v,
            })
        });
    }
    if arg.data_type().is_float() {
        let values = double::doubles(arg)?;
        return map::map_integers(data_type, arg.validity().cloned(), rows, &mut |i| {
            let v = values.get(i);
            let whole = match function {
                Abs => v.abs(),
                Ceil => v.ceil(),
                Floor => v.floor(),
                _ => (i8::from(v > 0.0) - i8::from(v < 0.0)) as f64,
            };
            decimals::fit(decimal::from_f64(whole, data_type.scale()), data_type)
        });
    }
    let Some(values) = view::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let (from, to) = (arg.data_type().scale(), data_type.scale());
    let unit = POWERS.get(from as usize).copied().unwrap_or(1);
    let exact = |v: i128| match function {
        Abs => decimal::rescale(v.checked_abs()?, from, to),
        Ceil => decimal::rescale(-((-v).div_euclid(unit)), 0, to),
        Floor => decimal::rescale(v.div_euclid(unit), 0, to),
        _ => decimal::rescale(v.signum(), 0, to),
    };
    if data_type.is_float() {
        return doubles_of(arg, data_type, rows, &mut |i| match function {
            Abs => Ok(decimal::to_f64(values.get(i), from).abs()),
            Ceil => Ok(-((-values.get(i)).div_euclid(unit)) as f64),
            Floor => Ok(values.get(i).div_euclid(unit) as f64),
            _ => Ok(values.get(i).signum() as f64),
        });
    }
    map::map_integers(data_type, arg.validity().cloned(), rows, &mut |i| {
        decimals::fit(exact(values.get(i)), data_type)
    })
}

/// `ROUND` (half away from zero) and `TRUNC`, to a number of decimal places that may be negative.
pub(super) fn round(
    arg: &Vector,
    places: Option<&Vector>,
    truncate: bool,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let validity = validity(&places.iter().copied().chain([arg]).collect::<Vec<_>>());
    let places = places.map(view::wide);
    let place = |i: usize| match &places {
        Some(Some(p)) => p.get(i).clamp(-40, 40) as i32,
        _ => 0,
    };
    if arg.data_type().is_float() {
        let values = double::doubles(arg)?;
        let mut out = vec![0.0; rows.len];
        for i in rows.iter().filter(|i| valid(&validity, *i)) {
            out[i] = round_double(values.get(i), place(i), truncate);
        }
        let rounded = Vector::new(DataType::Float64, Values::F64(out), validity);
        return cast::cast_vector(&rounded, data_type, rows);
    }
    let Some(values) = view::wide(arg) else { return Err(not_a_number(arg.data_type())) };
    let from = arg.data_type().scale();
    let exact_type = if data_type.is_float() {
        DataType::Decimal { precision: 38, scale: from }
    } else {
        data_type
    };
    let to = exact_type.scale();
    let rounded = map::map_integers(exact_type, validity, rows, &mut |i| {
        let (v, dropped) = (values.get(i), from as i32 - place(i));
        let kept = match usize::try_from(dropped) {
            Ok(0) | Err(_) => Some(v),
            Ok(n) => match POWERS.get(n) {
                Some(unit) if truncate => Some(v / unit * unit),
                Some(unit) => decimal::divide_rounded(v, *unit).checked_mul(*unit),
                None => Some(0),
            },
        };
        decimals::fit(kept.and_then(|v| decimal::rescale(v, from, to)), exact_type)
    })?;
    cast::cast_vector(&rounded, data_type, rows)
}

fn round_double(v: f64, places: i32, truncate: bool) -> f64 {
    if !v.is_finite() {
        return v;
    }
    if places == 0 {
        return if truncate { v.trunc() } else { v.round() };
    }
    // By the digits a user sees, so that 2.675 rounds as written and not as its nearest double.
    let factor = 10f64.powi(places.abs());
    if !truncate && places > 0 {
        return match u8::try_from(places).ok().and_then(|scale| decimal::from_f64(v, scale.min(38)))
        {
            Some(unscaled) if places <= 38 => decimal::to_f64(unscaled, places as u8),
            _ => v,
        };
    }
    let scaled = if places > 0 { v * factor } else { v / factor };
    let whole = if truncate { scaled.trunc() } else { scaled.round() };
    let result = if places > 0 { whole / factor } else { whole * factor };
    if result.is_finite() { result } else { v }
}

/// `SQRT`, `EXP`, `LN` and `LOG10`.
pub(super) fn transcendental(
    function: ScalarFunction,
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    doubles(arg, data_type, rows, &mut |v| match function {
        ScalarFunction::Sqrt if v < 0.0 => {
            Err(Error::type_error("square root of a negative number").with_sqlstate("2201F"))
        }
        ScalarFunction::Ln | ScalarFunction::Log10 if v <= 0.0 => {
            Err(Error::type_error("logarithm of a number that is not positive")
                .with_sqlstate("2201E"))
        }
        ScalarFunction::Sqrt => Ok(v.sqrt()),
        ScalarFunction::Ln => Ok(v.ln()),
        ScalarFunction::Log10 => Ok(v.log10()),
        _ => double::finite(v.exp(), v.is_finite(), data_type),
    })
}

/// `POWER`.
pub(super) fn power(
    base: &Vector,
    exponent: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    let validity = validity(&[base, exponent]);
    let (a, b) = (double::doubles(base)?, double::doubles(exponent)?);
    let mut out = vec![0.0; rows.len];
    for i in rows.iter().filter(|i| valid(&validity, *i)) {
        let (x, y) = (a.get(i), b.get(i));
        if x == 0.0 && y < 0.0 {
            return Err(decimals::zero_division());
        }
        let v = x.powf(y);
        if v.is_nan() && !x.is_nan() && !y.is_nan() {
            let what = "a negative number raised to a fraction is not real";
            return Err(Error::type_error(what).with_sqlstate("2201F"));
        }
        out[i] = double::finite(v, x.is_finite() && y.is_finite(), data_type)?;
    }
    Ok(Vector::new(data_type, Values::F64(out), validity))
}

fn doubles(
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
    compute: &mut dyn FnMut(f64) -> Result<f64>,
) -> Result<Vector> {
    let values = double::doubles(arg)?;
    doubles_of(arg, data_type, rows, &mut |i| compute(values.get(i)))
}

fn doubles_of(
    arg: &Vector,
    data_type: DataType,
    rows: ActiveRows<'_>,
    compute: &mut dyn FnMut(usize) -> Result<f64>,
) -> Result<Vector> {
    let validity = arg.validity().cloned();
    let mut out = vec![0.0; rows.len];
    for i in rows.iter().filter(|i| valid(&validity, *i)) {
        out[i] = compute(i)?;
    }
    Ok(Vector::new(data_type, Values::F64(out), validity))
}
