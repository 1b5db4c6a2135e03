//! Conversion of columns of JavaScript values.

use crate::parameters::value;
use js_sys::{
    Array, BigInt64Array, BigUint64Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Uint8Array, Uint8ClampedArray, Uint16Array, Uint32Array,
};
use nacredb::{Error, Result, Value};
use wasm_bindgen::{JsCast, JsValue};

/// The values of an array, which is copied in one call if it is a typed one.
pub fn column(from: &JsValue, name: &str) -> Result<Vec<Value>> {
    if let Some(array) = from.dyn_ref::<Array>() {
        let mut values = Vec::with_capacity(array.length() as usize);
        for (row, of) in array.iter().enumerate() {
            values.push(value(&of, || format!("column {name}, row {}", row + 1))?);
        }
        return Ok(values);
    }
    macro_rules! typed {
        ($array:ty, $value:expr) => {
            if let Some(array) = from.dyn_ref::<$array>() {
                return Ok(array.to_vec().into_iter().map($value).collect());
            }
        };
    }
    typed!(Float64Array, Value::Float);
    typed!(Float32Array, |v| Value::Float(f64::from(v)));
    typed!(Int32Array, |v| Value::Int(i64::from(v)));
    typed!(BigInt64Array, Value::Int);
    typed!(BigUint64Array, Value::UInt);
    typed!(Uint32Array, |v| Value::Int(i64::from(v)));
    typed!(Int16Array, |v| Value::Int(i64::from(v)));
    typed!(Uint16Array, |v| Value::Int(i64::from(v)));
    typed!(Int8Array, |v| Value::Int(i64::from(v)));
    typed!(Uint8Array, |v| Value::Int(i64::from(v)));
    typed!(Uint8ClampedArray, |v| Value::Int(i64::from(v)));
    Err(Error::type_error(format!("column {name} is no array")))
}
