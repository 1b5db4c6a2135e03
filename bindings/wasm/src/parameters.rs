//! Conversion of JavaScript values to statement parameters.

use crate::error::to_js;
use js_sys::{Array, ArrayBuffer, BigInt, Date, JsString, Object, Uint8Array};
use nacredb::{Error, Result, Value};
use wasm_bindgen::{JsCast, JsValue};

/// Largest integer up to which a double represents all integers.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Parameters by position or by name.
pub enum Parameters {
    /// For `?` and `$1`.
    Positional(Vec<Value>),
    /// For `:name`.
    Named(Vec<(String, Value)>),
}

impl Parameters {
    /// Converts an array, a plain object, or nothing.
    pub fn from_js(parameters: &JsValue) -> Result<Parameters, JsValue> {
        if parameters.is_undefined() || parameters.is_null() {
            return Ok(Parameters::Positional(Vec::new()));
        }
        if let Some(array) = parameters.dyn_ref::<Array>() {
            let values =
                array.iter().enumerate().map(|(i, v)| value(&v, || format!("parameter {}", i + 1)));
            return values.collect::<Result<_>>().map(Parameters::Positional).map_err(to_js);
        }
        // Not `instanceof Object`: an object may have no prototype, or come from another frame.
        if !parameters.is_object() {
            return Err(to_js(Error::type_error("parameters are an array or an object")));
        }
        let mut named = Vec::new();
        for entry in Object::entries(parameters.unchecked_ref::<Object>()).iter() {
            let entry: Array = entry.unchecked_into();
            // Keys of `Object.entries` are strings.
            let name = entry.get(0).as_string().unwrap_or_default();
            let value = value(&entry.get(1), || format!("parameter {name}")).map_err(to_js)?;
            named.push((name, value));
        }
        Ok(Parameters::Named(named))
    }
}

/// Converts one value.
pub fn value(from: &JsValue, which: impl Fn() -> String) -> Result<Value> {
    if from.is_null() || from.is_undefined() {
        return Ok(Value::Null);
    }
    if let Some(number) = from.as_f64() {
        let negative_zero = number == 0.0 && number.is_sign_negative();
        let is_integer =
            number.fract() == 0.0 && number.abs() <= MAX_SAFE_INTEGER && !negative_zero;
        return Ok(if is_integer { Value::Int(number as i64) } else { Value::Float(number) });
    }
    if let Some(text) = from.as_string() {
        // A lone surrogate is converted to U+FFFD.
        if text.contains('\u{FFFD}') && !from.unchecked_ref::<JsString>().is_valid_utf16() {
            return Err(Error::type_error(format!(
                "{}: text with a lone surrogate is not Unicode",
                which()
            )));
        }
        return Ok(Value::Text(text));
    }
    if let Some(boolean) = from.as_bool() {
        return Ok(Value::Boolean(boolean));
    }
    if let Some(integer) = from.dyn_ref::<BigInt>() {
        return big_integer(integer).ok_or_else(|| {
            Error::out_of_range(format!("{}: an integer of more than 38 digits", which()))
        });
    }
    if let Some(date) = from.dyn_ref::<Date>() {
        let ms = date.get_time();
        if ms.is_nan() {
            return Err(Error::type_error(format!("{}: an invalid Date", which())));
        }
        return Ok(Value::Timestamp(ms as i64 * 1000));
    }
    if let Some(bytes) = from.dyn_ref::<Uint8Array>() {
        return Ok(Value::Binary(bytes.to_vec()));
    }
    if let Some(buffer) = from.dyn_ref::<ArrayBuffer>() {
        return Ok(Value::Binary(Uint8Array::new(buffer).to_vec()));
    }
    if from.is_instance_of::<JsString>() {
        // The caller converted other objects to JSON, as a `String` object, which is not a
        // primitive string.
        let text = from.unchecked_ref::<JsString>().value_of().as_string();
        return Ok(Value::Json(text.unwrap_or_default()));
    }
    Err(Error::type_error(format!("{}: a value that has no SQL type", which())))
}

fn big_integer(integer: &BigInt) -> Option<Value> {
    if let Ok(v) = i64::try_from(integer.clone()) {
        return Some(Value::Int(v));
    }
    if let Ok(v) = u64::try_from(integer.clone()) {
        return Some(Value::UInt(v));
    }
    let text = integer.to_string(10).ok()?;
    let unscaled: i128 = String::from(text).parse().ok()?;
    (unscaled.unsigned_abs() < 10u128.pow(38)).then_some(Value::Decimal { unscaled, scale: 0 })
}
