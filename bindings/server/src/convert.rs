//! Converts text to values of a column's type, for CSV, TBL and NDJSON.

use nacredb::{DataType, PhysicalType, VectorBuilder, decimal, json, temporal, uuid};

/// Parses text as a value of the type and appends it. The error is a predicate that completes a
/// sentence whose subject is the text ("is not a BIGINT").
pub fn push_text(
    builder: &mut VectorBuilder,
    data_type: DataType,
    text: &str,
) -> Result<(), String> {
    let not = || format!("is not a {data_type}");
    match data_type {
        DataType::Null => builder.push_null(),
        DataType::Boolean => builder.push_bool(boolean(text).ok_or_else(not)?),
        DataType::Float32 | DataType::Float64 => {
            let text = text.trim();
            let parsed: f64 = text.parse().map_err(|_| not())?;
            let value =
                if data_type == DataType::Float32 { f64::from(parsed as f32) } else { parsed };
            // Same rule as CAST: the word `infinity` is infinite, digits that overflow are an
            // error.
            let spelled = text.trim_start_matches(['-', '+']).starts_with(['i', 'I']);
            if value.is_infinite() && !spelled {
                return Err(format!("does not fit {data_type}"));
            }
            builder.push_f64(value);
        }
        DataType::Decimal { precision, scale } => {
            let (unscaled, from) = decimal::parse(text).ok_or_else(not)?;
            let unscaled = decimal::rescale(unscaled, from, scale)
                .filter(|v| decimal::digits(*v) <= precision)
                .ok_or_else(|| format!("does not fit {data_type}"))?;
            if data_type.physical() == PhysicalType::I64 {
                builder.push_i64(unscaled as i64);
            } else {
                builder.push_i128(unscaled);
            }
        }
        DataType::Text { max_chars } => {
            if max_chars
                .is_some_and(|n| text.len() > n as usize && text.chars().count() > n as usize)
            {
                return Err(format!("is too long for {data_type}"));
            }
            builder.push_bytes(text.as_bytes());
        }
        DataType::Binary { max_bytes } => {
            let bytes = binary(text).ok_or_else(not)?;
            if max_bytes.is_some_and(|n| bytes.len() > n as usize) {
                return Err(format!("is too long for {data_type}"));
            }
            builder.push_bytes(&bytes);
        }
        DataType::Date => builder.push_i64(temporal::parse_date(text).ok_or_else(not)? as i64),
        DataType::Time => builder.push_i64(temporal::parse_time(text).ok_or_else(not)?),
        DataType::Timestamp => builder.push_i64(temporal::parse_timestamp(text).ok_or_else(not)?),
        DataType::TimestampTz => {
            builder.push_i64(temporal::parse_timestamp_tz(text).ok_or_else(not)?);
        }
        DataType::Uuid => builder.push_i128(uuid::pack(uuid::parse(text).ok_or_else(not)?)),
        DataType::Interval => return Err("INTERVAL cannot be stored".into()),
        DataType::Json => {
            let text = json::normal(text).map_err(|_| not())?;
            builder.push_bytes(text.as_bytes());
        }
        _ => {
            let (low, high) = data_type.integer_range().unwrap_or((0, 0));
            let value: i128 = text.trim().parse().map_err(|_| not())?;
            if value < low || value > high {
                return Err(format!("does not fit {data_type}"));
            }
            if data_type == DataType::UInt64 {
                builder.push_i128(value)
            } else {
                builder.push_i64(value as i64)
            }
        }
    }
    Ok(())
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.trim();
    let is = |words: &[&str]| words.iter().any(|w| text.eq_ignore_ascii_case(w));
    if is(&["true", "t", "yes", "y", "1"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// Decodes `\x` followed by hexadecimal digits, the format in which binary values are printed; any
/// other text yields its own bytes.
fn binary(text: &str) -> Option<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else { return Some(text.as_bytes().to_vec()) };
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|pair| Some((hex(pair[0])? << 4) | hex(pair[1])?)).collect()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|v| v as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacredb::Value;

    fn convert(data_type: DataType, text: &str) -> Result<Value, String> {
        let mut builder = VectorBuilder::new(data_type);
        push_text(&mut builder, data_type, text)?;
        Ok(builder.finish().value(0))
    }

    #[test]
    fn parses_every_type() {
        let money = DataType::Decimal { precision: 15, scale: 2 };
        let wide = DataType::Decimal { precision: 38, scale: 0 };
        let digits = "9".repeat(38);
        for (data_type, text, value) in [
            (DataType::Int8, "-128", Value::Int(-128)),
            (DataType::Int64, " 7 ", Value::Int(7)),
            (DataType::UInt64, "18446744073709551615", Value::UInt(u64::MAX)),
            (DataType::Boolean, "TRUE", Value::Boolean(true)),
            (DataType::Boolean, "0", Value::Boolean(false)),
            (DataType::Float64, "1e3", Value::Float(1000.0)),
            (DataType::Float32, "0.1", Value::Float(0.1f32 as f64)),
            (DataType::Float32, "3.4e38", Value::Float(3.4e38f32 as f64)),
            (DataType::Float32, "-Infinity", Value::Float(f64::NEG_INFINITY)),
            (DataType::Float64, " inf ", Value::Float(f64::INFINITY)),
            (DataType::Float64, "1e308", Value::Float(1e308)),
            (money, "1.005", Value::Decimal { unscaled: 101, scale: 2 }),
            (money, "-7", Value::Decimal { unscaled: -700, scale: 2 }),
            (wide, &digits, Value::Decimal { unscaled: digits.parse().unwrap(), scale: 0 }),
            (DataType::Text { max_chars: Some(2) }, "é日", Value::Text("é日".into())),
            (DataType::BLOB, "\\x00fF", Value::Binary(vec![0, 255])),
            (DataType::BLOB, "ab", Value::Binary(b"ab".to_vec())),
            (DataType::Date, "1970-01-02", Value::Date(1)),
            (DataType::Time, "00:00:01", Value::Time(1_000_000)),
            (DataType::Timestamp, "1970-01-01T00:00:01Z", Value::Timestamp(1_000_000)),
            (DataType::Json, " {\"a\": 1}", Value::Json("{\"a\":1}".into())),
        ] {
            assert_eq!(convert(data_type, text), Ok(value), "{data_type} {text}");
        }
    }

    #[test]
    fn rejects_values_outside_the_type() {
        for (data_type, text) in [
            (DataType::Int8, "128"),
            (DataType::Int32, "1.0"),
            (DataType::Int32, ""),
            (DataType::UInt8, "-1"),
            (DataType::Boolean, "maybe"),
            (DataType::Float64, "1e999"),
            (DataType::Float64, "-1e999"),
            (DataType::Float32, "1e39"),
            (DataType::Float32, "nought"),
            (DataType::Decimal { precision: 3, scale: 2 }, "10"),
            (DataType::Text { max_chars: Some(2) }, "abc"),
            (DataType::BLOB, "\\x0"),
            (DataType::BLOB, "\\x0g"),
            (DataType::Date, "2026-02-30"),
            (DataType::Json, "{"),
        ] {
            assert!(convert(data_type, text).is_err(), "{data_type} {text}");
        }
    }
}
