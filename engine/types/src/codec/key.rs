//! Order-preserving key encoding: comparing two encoded keys as bytes compares their values.
//!
//! Each value is a tag (`0` null, `1` not null, so nulls sort first), then:
//! integers, dates and the like as big-endian with the sign bit flipped, at the width of the
//! physical type; floats as their IEEE order; text and binary with `00` escaped as `00 ff` and
//! closed by `00 00`. A key is the concatenation of its columns.

use crate::bytes::Reader;
use crate::{DataType, Error, PhysicalType, Result, Value, limits, uuid};

/// Appends one value, which must be of the given type (see [`crate::Column::check`]). Returns a
/// `limit` error if the key becomes longer than [`limits::MAX_KEY_BYTES`].
pub fn encode(out: &mut Vec<u8>, data_type: DataType, value: &Value) -> Result<()> {
    append(out, data_type, value)?;
    check_length(out)
}

/// Returns a `limit` error if an encoded key is longer than [`limits::MAX_KEY_BYTES`].
pub fn check_length(key: &[u8]) -> Result<()> {
    if key.len() > limits::MAX_KEY_BYTES {
        return Err(Error::limit(format!("key longer than {} bytes", limits::MAX_KEY_BYTES)));
    }
    Ok(())
}

/// Like [`encode`], without a limit, for keys that are not stored.
pub fn append(out: &mut Vec<u8>, data_type: DataType, value: &Value) -> Result<()> {
    if value.is_null() {
        out.push(0);
        return Ok(());
    }
    out.push(1);
    match (data_type.physical(), value) {
        (PhysicalType::Bool, Value::Boolean(v)) => out.push(*v as u8),
        (PhysicalType::I64, v) => {
            put_i64(out, integer(v).ok_or_else(|| mismatch(data_type, v))? as i64)
        }
        (PhysicalType::I128, v) => {
            put_i128(out, integer(v).ok_or_else(|| mismatch(data_type, v))?);
        }
        (PhysicalType::F64, Value::Float(v)) => put_f64(out, *v),
        (PhysicalType::Bytes, Value::Text(v) | Value::Json(v)) => put_escaped(out, v.as_bytes()),
        (PhysicalType::Bytes, Value::Binary(v)) => put_escaped(out, v),
        (_, v) => return Err(mismatch(data_type, v)),
    }
    Ok(())
}

/// Appends an `i64` without its tag.
#[inline]
pub fn put_i64(out: &mut Vec<u8>, v: i64) {
    out.extend_from_slice(&((v as u64) ^ (1 << 63)).to_be_bytes());
}

/// Appends an `i128` without its tag.
#[inline]
pub fn put_i128(out: &mut Vec<u8>, v: i128) {
    out.extend_from_slice(&((v as u128) ^ (1 << 127)).to_be_bytes());
}

/// Appends a double without its tag. Negative zero equals zero; NaN sorts last.
#[inline]
pub fn put_f64(out: &mut Vec<u8>, v: f64) {
    out.extend_from_slice(&order_f64(v).to_be_bytes());
}

/// Appends text or binary without its tag.
pub fn put_escaped(out: &mut Vec<u8>, v: &[u8]) {
    let mut rest = v;
    while let Some(zero) = rest.iter().position(|byte| *byte == 0) {
        let (before, after) = rest.split_at(zero + 1);
        out.extend_from_slice(before);
        out.push(0xff);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Maps a double to an integer that compares like it in SQL's total order.
#[inline]
pub fn order_f64(v: f64) -> u64 {
    let v = if v.is_nan() { f64::NAN } else { v + 0.0 };
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn mismatch(data_type: DataType, value: &Value) -> Error {
    Error::type_error(format!("key column is {data_type}, value is {}", value.natural_type()))
}

/// Returns the physical integer of a value; `None` if its physical type is not an integer.
pub fn integer(value: &Value) -> Option<i128> {
    Some(match value {
        Value::Int(v) => *v as i128,
        Value::UInt(v) => *v as i128,
        Value::Decimal { unscaled, .. } => *unscaled,
        Value::Date(v) => *v as i128,
        Value::Time(v) | Value::Timestamp(v) | Value::TimestampTz(v) => *v as i128,
        Value::Uuid(v) => uuid::pack(*v),
        Value::Interval(v) => v.pack(),
        _ => return None,
    })
}

/// Converts a physical integer to a value of the type.
pub fn from_integer(data_type: DataType, v: i128) -> Value {
    match data_type {
        DataType::UInt64 => Value::UInt(v as u64),
        DataType::Decimal { scale, .. } => Value::Decimal { unscaled: v, scale },
        DataType::Date => Value::Date(v as i32),
        DataType::Time => Value::Time(v as i64),
        DataType::Timestamp => Value::Timestamp(v as i64),
        DataType::TimestampTz => Value::TimestampTz(v as i64),
        DataType::Uuid => Value::Uuid(uuid::unpack(v)),
        DataType::Interval => Value::Interval(crate::Interval::unpack(v)),
        _ => Value::Int(v as i64),
    }
}

/// Decodes the values of a whole key.
pub fn decode(bytes: &[u8], types: &[DataType]) -> Result<Vec<Value>> {
    let mut reader = Reader::new(bytes, "key");
    let values = types.iter().map(|t| decode_one(&mut reader, *t)).collect::<Result<Vec<_>>>()?;
    reader.finish()?;
    Ok(values)
}

fn decode_one(reader: &mut Reader<'_>, data_type: DataType) -> Result<Value> {
    match reader.u8()? {
        0 => return Ok(Value::Null),
        1 => {}
        _ => return Err(reader.corrupt("bad tag")),
    }
    let eight = |reader: &mut Reader<'_>| -> Result<u64> {
        let mut raw = [0; 8];
        raw.copy_from_slice(reader.take(8)?);
        Ok(u64::from_be_bytes(raw))
    };
    Ok(match data_type.physical() {
        PhysicalType::Bool => Value::Boolean(reader.u8()? != 0),
        PhysicalType::I64 => from_integer(data_type, (eight(reader)? ^ (1 << 63)) as i64 as i128),
        PhysicalType::I128 => {
            let high = eight(reader)? as u128;
            let low = eight(reader)? as u128;
            from_integer(data_type, (((high << 64) | low) ^ (1 << 127)) as i128)
        }
        PhysicalType::F64 => {
            let bits = eight(reader)?;
            Value::Float(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
        }
        PhysicalType::Bytes => {
            let mut out = Vec::new();
            loop {
                match (reader.u8()?, out.len()) {
                    (0, _) => match reader.u8()? {
                        0 => break,
                        0xff => out.push(0),
                        _ => return Err(reader.corrupt("bad escape")),
                    },
                    (byte, _) => out.push(byte),
                }
            }
            match data_type {
                DataType::Binary { .. } => Value::Binary(out),
                _ => {
                    let text = String::from_utf8(out).map_err(|_| reader.corrupt("not UTF-8"))?;
                    if data_type == DataType::Json { Value::Json(text) } else { Value::Text(text) }
                }
            }
        }
    })
}

/// Splits a key into its encoded values, tags included. The key must be well formed: encoded in
/// this process, or decoded once before.
pub fn parts<'a>(key: &'a [u8], types: &[DataType]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = key;
    types.iter().map(move |data_type| {
        let length = match (rest.first(), data_type.physical()) {
            (None | Some(0), _) => 1,
            (_, PhysicalType::Bool) => 2,
            (_, PhysicalType::I64 | PhysicalType::F64) => 9,
            (_, PhysicalType::I128) => 17,
            (_, PhysicalType::Bytes) => escaped_length(&rest[1..]) + 1,
        };
        let (part, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        part
    })
}

/// Length of an escaped value, including its terminator.
fn escaped_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(zero) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| *b == 0)) {
        at += zero + 2;
        if bytes.get(at - 1) == Some(&0) {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data_type: DataType, ascending: &[Value]) {
        let keys: Vec<Vec<u8>> = ascending
            .iter()
            .map(|v| {
                let mut out = Vec::new();
                encode(&mut out, data_type, v).unwrap();
                assert_eq!(decode(&out, &[data_type]).unwrap(), vec![v.clone()]);
                out
            })
            .collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]), "{data_type}: {keys:?}");
    }

    #[test]
    fn order_is_kept() {
        let ints = [i64::MIN, -5, 0, 7, i64::MAX].map(Value::Int);
        check(DataType::Int64, &[&[Value::Null], &ints[..]].concat());
        check(DataType::UInt64, &[Value::Null, Value::UInt(0), Value::UInt(u64::MAX)]);
        check(
            DataType::Float64,
            &[f64::NEG_INFINITY, -1.5, 0.0, 1e-9, f64::INFINITY].map(Value::Float),
        );
        check(
            DataType::TEXT,
            &["", "\0", "\0a", "a", "a\0", "a\0b", "aa", "b"].map(|s| Value::Text(s.into())),
        );
        let wide = DataType::Decimal { precision: 38, scale: 2 };
        check(wide, &[-3, 0, 9].map(|v| Value::Decimal { unscaled: v, scale: 2 }));
    }

    #[test]
    fn parts_are_the_values_encoded_alone() {
        let wide = DataType::Decimal { precision: 38, scale: 0 };
        let types = [
            DataType::TEXT,
            DataType::Int64,
            DataType::Boolean,
            wide,
            DataType::Float64,
            DataType::TEXT,
        ];
        let values = [
            Value::Text("a\0\0b".into()),
            Value::Null,
            Value::Boolean(true),
            Value::Decimal { unscaled: -1, scale: 0 },
            Value::Float(0.5),
            Value::Text("\0".into()),
        ];
        let alone: Vec<Vec<u8>> = (types.iter().zip(&values))
            .map(|(data_type, value)| {
                let mut out = Vec::new();
                encode(&mut out, *data_type, value).unwrap();
                out
            })
            .collect();
        assert_eq!(parts(&alone.concat(), &types).map(<[u8]>::to_vec).collect::<Vec<_>>(), alone);
        assert_eq!(parts(&alone.concat()[..5], &types).count(), types.len());
    }

    #[test]
    fn damaged_keys_are_errors() {
        let mut out = Vec::new();
        encode(&mut out, DataType::TEXT, &Value::Text("abc".into())).unwrap();
        for cut in 0..out.len() {
            assert!(decode(&out[..cut], &[DataType::TEXT]).is_err());
        }
    }
}
