//! Conversion of columns of JavaScript values.

use crate::parameters::value;
use js_sys::{
    Array, BigInt64Array, BigUint64Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Uint8Array, Uint8ClampedArray, Uint16Array, Uint32Array,
};
use nacredb::{Error, Result, Value};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

#[wasm_bindgen]
extern "C" {
    /// `WireTexts` of `worker/shared/wire.ts`.
    type Texts;
    #[wasm_bindgen(method, getter)]
    fn bytes(this: &Texts) -> Vec<u8>;
    #[wasm_bindgen(method, getter)]
    fn lengths(this: &Texts) -> JsValue;
}

/// The values of an array, or packed texts. All of typed and packed ones are copied in one call.
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
    let packed: &Texts = from.unchecked_ref();
    if let Some(lengths) = packed.lengths().dyn_ref::<Int32Array>()
        && let Some(values) = texts(&packed.bytes(), &lengths.to_vec())
    {
        return Ok(values);
    }
    Err(Error::type_error(format!("column {name} is no array")))
}

/// Texts that follow each other, by their lengths: -1 for null. `None` if the lengths are not theirs.
fn texts(mut bytes: &[u8], lengths: &[i32]) -> Option<Vec<Value>> {
    let mut values = Vec::with_capacity(lengths.len());
    for length in lengths {
        values.push(match usize::try_from(*length) {
            Ok(length) => {
                let (text, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Value::Text(std::str::from_utf8(text).ok()?.to_owned())
            }
            Err(_) => Value::Null,
        });
    }
    bytes.is_empty().then_some(values)
}
