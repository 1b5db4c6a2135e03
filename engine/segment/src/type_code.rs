//! Data types as numbers in the footer. A number once given is never given again.

use nacre_types::bytes::{Reader, Write};
use nacre_types::{DECIMAL_MAX_PRECISION, DataType, Result};

const DECIMAL: u8 = 13;
const TEXT: u8 = 14;
const BINARY: u8 = 15;

/// Types without parameters, and their numbers.
const SIMPLE: [(u8, DataType); 17] = [
    (0, DataType::Null),
    (1, DataType::Boolean),
    (2, DataType::Int8),
    (3, DataType::Int16),
    (4, DataType::Int32),
    (5, DataType::Int64),
    (6, DataType::UInt8),
    (7, DataType::UInt16),
    (8, DataType::UInt32),
    (9, DataType::UInt64),
    (10, DataType::Float32),
    (11, DataType::Float64),
    (16, DataType::Date),
    (17, DataType::Time),
    (18, DataType::Timestamp),
    (19, DataType::Interval),
    (20, DataType::Json),
];

/// Appends a type: its number, then its parameters.
pub fn put(out: &mut Vec<u8>, data_type: DataType) {
    let limit = |n: Option<u32>| n.map_or(0, |n| n as u64 + 1);
    match data_type {
        DataType::Decimal { precision, scale } => {
            out.extend_from_slice(&[DECIMAL, precision, scale])
        }
        DataType::Text { max_chars } => {
            out.put_u8(TEXT);
            out.put_varint(limit(max_chars));
        }
        DataType::Binary { max_bytes } => {
            out.put_u8(BINARY);
            out.put_varint(limit(max_bytes));
        }
        other => out.extend(SIMPLE.iter().find(|(_, t)| *t == other).map(|(number, _)| *number)),
    }
}

/// Reads a type.
pub fn get(reader: &mut Reader<'_>) -> Result<DataType> {
    let limit = |reader: &mut Reader<'_>| -> Result<Option<u32>> {
        let n = reader.varint()?;
        match n.checked_sub(1).map(u32::try_from).transpose() {
            Ok(limit) => Ok(limit),
            Err(_) => Err(reader.corrupt("length limit too large")),
        }
    };
    match reader.u8()? {
        DECIMAL => match (reader.u8()?, reader.u8()?) {
            (precision, scale)
                if (1..=DECIMAL_MAX_PRECISION).contains(&precision) && scale <= precision =>
            {
                Ok(DataType::Decimal { precision, scale })
            }
            _ => Err(reader.corrupt("impossible decimal")),
        },
        TEXT => Ok(DataType::Text { max_chars: limit(reader)? }),
        BINARY => Ok(DataType::Binary { max_bytes: limit(reader)? }),
        number => match SIMPLE.iter().find(|(n, _)| *n == number) {
            Some((_, data_type)) => Ok(*data_type),
            None => Err(reader.corrupt("unknown data type")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_come_back() {
        let sized = [
            DataType::Decimal { precision: 38, scale: 38 },
            DataType::Text { max_chars: Some(0) },
            DataType::Text { max_chars: Some(u32::MAX - 1) },
            DataType::TEXT,
            DataType::Binary { max_bytes: Some(7) },
            DataType::BLOB,
        ];
        for data_type in SIMPLE.iter().map(|(_, t)| *t).chain(sized) {
            let mut out = Vec::new();
            put(&mut out, data_type);
            let mut reader = Reader::new(&out, "type");
            assert_eq!(get(&mut reader).unwrap(), data_type);
            reader.finish().unwrap();
        }
        assert!(get(&mut Reader::new(&[99], "type")).is_err());
        assert!(get(&mut Reader::new(&[DECIMAL, 39, 0], "type")).is_err());
    }
}
