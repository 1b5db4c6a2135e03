//! Stored numbers of data types, and the two layouts in which types are written.
//!
//! A segment's footer holds a type as its number, followed by the parameters that the type has
//! ([`put`], [`get`]). A log record holds a number, which skips the gap at 12, and always two
//! parameters ([`put_in_record`], [`get_in_record`]). A number is never reused.

use crate::bytes::{Reader, Write};
use crate::{DECIMAL_MAX_PRECISION, DataType, Result, invariant};

/// One type of each kind, with arbitrary parameters.
const KINDS: [DataType; 22] = [
    DataType::Null,
    DataType::Boolean,
    DataType::Int8,
    DataType::Int16,
    DataType::Int32,
    DataType::Int64,
    DataType::UInt8,
    DataType::UInt16,
    DataType::UInt32,
    DataType::UInt64,
    DataType::Float32,
    DataType::Float64,
    DataType::Decimal { precision: 1, scale: 0 },
    DataType::TEXT,
    DataType::BLOB,
    DataType::Date,
    DataType::Time,
    DataType::Timestamp,
    DataType::Interval,
    DataType::Json,
    DataType::TimestampTz,
    DataType::Uuid,
];

/// The number of a type's kind.
const fn number(data_type: DataType) -> u8 {
    match data_type {
        DataType::Null => 0,
        DataType::Boolean => 1,
        DataType::Int8 => 2,
        DataType::Int16 => 3,
        DataType::Int32 => 4,
        DataType::Int64 => 5,
        DataType::UInt8 => 6,
        DataType::UInt16 => 7,
        DataType::UInt32 => 8,
        DataType::UInt64 => 9,
        DataType::Float32 => 10,
        DataType::Float64 => 11,
        DataType::Decimal { .. } => 13,
        DataType::Text { .. } => 14,
        DataType::Binary { .. } => 15,
        DataType::Date => 16,
        DataType::Time => 17,
        DataType::Timestamp => 18,
        DataType::Interval => 19,
        DataType::Json => 20,
        DataType::TimestampTz => 21,
        DataType::Uuid => 22,
    }
}

/// The number that no type has in footers; numbers in records close this gap.
const GAP: u8 = 12;

/// The number of a type's kind in log records.
const fn number_in_record(data_type: DataType) -> u8 {
    match number(data_type) {
        n if n > GAP => n - 1,
        n => n,
    }
}

/// Parameters of a type. A length limit `n` is stored as `n + 1`, no limit as 0.
enum Parameters {
    None,
    Limit(u64),
    Digits { precision: u8, scale: u8 },
}

fn parameters(data_type: DataType) -> Parameters {
    let stored = |limit: Option<u32>| Parameters::Limit(limit.map_or(0, |n| n as u64 + 1));
    match data_type {
        DataType::Decimal { precision, scale } => Parameters::Digits { precision, scale },
        DataType::Text { max_chars } => stored(max_chars),
        DataType::Binary { max_bytes } => stored(max_bytes),
        _ => Parameters::None,
    }
}

/// Builds a type of the given kind with these parameters; `None` if they are impossible for the
/// kind.
fn with_parameters(kind: DataType, parameters: Parameters) -> Option<DataType> {
    let limit = |stored: u64| stored.checked_sub(1).map(u32::try_from).transpose().ok();
    match (kind, parameters) {
        (DataType::Decimal { .. }, Parameters::Digits { precision, scale }) => {
            let is_possible =
                (1..=DECIMAL_MAX_PRECISION).contains(&precision) && scale <= precision;
            is_possible.then_some(DataType::Decimal { precision, scale })
        }
        (DataType::Text { .. }, Parameters::Limit(n)) => {
            limit(n).map(|max_chars| DataType::Text { max_chars })
        }
        (DataType::Binary { .. }, Parameters::Limit(n)) => {
            limit(n).map(|max_bytes| DataType::Binary { max_bytes })
        }
        (kind, Parameters::None) => Some(kind),
        _ => None,
    }
}

/// Asserts that a type will be read back as written.
fn check_readable(data_type: DataType) {
    let kind = KINDS.into_iter().find(|kind| number(*kind) == number(data_type));
    let read = kind.and_then(|kind| with_parameters(kind, parameters(data_type)));
    invariant!(read == Some(data_type), "the type {data_type} reads back as {read:?}");
}

/// Appends a type in the layout of segment footers.
pub fn put(out: &mut Vec<u8>, data_type: DataType) {
    check_readable(data_type);
    out.put_u8(number(data_type));
    match parameters(data_type) {
        Parameters::None => {}
        Parameters::Limit(stored) => out.put_varint(stored),
        Parameters::Digits { precision, scale } => out.extend_from_slice(&[precision, scale]),
    }
}

/// Reads what [`put`] wrote.
pub fn get(reader: &mut Reader<'_>) -> Result<DataType> {
    let stored = reader.u8()?;
    let kind = KINDS.into_iter().find(|kind| number(*kind) == stored);
    let kind = kind.ok_or_else(|| reader.corrupt("unknown data type"))?;
    let parameters = match parameters(kind) {
        Parameters::None => Parameters::None,
        Parameters::Limit(_) => Parameters::Limit(reader.varint()?),
        Parameters::Digits { .. } => {
            Parameters::Digits { precision: reader.u8()?, scale: reader.u8()? }
        }
    };
    with_parameters(kind, parameters).ok_or_else(|| reader.corrupt("impossible data type"))
}

/// Appends a type in the layout of log records: its number and two parameters, 0 for those it
/// lacks.
pub fn put_in_record(out: &mut Vec<u8>, data_type: DataType) {
    check_readable(data_type);
    out.put_u8(number_in_record(data_type));
    let (first, second) = match parameters(data_type) {
        Parameters::None => (0, 0),
        Parameters::Limit(stored) => (stored, 0),
        Parameters::Digits { precision, scale } => (precision as u64, scale as u64),
    };
    out.put_varint(first);
    out.put_varint(second);
}

/// Reads what [`put_in_record`] wrote.
pub fn get_in_record(reader: &mut Reader<'_>) -> Result<DataType> {
    let stored = reader.u8()?;
    let (first, second) = (reader.varint()?, reader.varint()?);
    let kind = KINDS.into_iter().find(|kind| number_in_record(*kind) == stored);
    let kind = kind.ok_or_else(|| reader.corrupt("unknown data type"))?;
    let digits = |n: u64| u8::try_from(n).map_err(|_| reader.corrupt("impossible data type"));
    let parameters = match parameters(kind) {
        Parameters::Digits { .. } => {
            Parameters::Digits { precision: digits(first)?, scale: digits(second)? }
        }
        Parameters::Limit(_) if second == 0 => Parameters::Limit(first),
        Parameters::None if first == 0 && second == 0 => Parameters::None,
        _ => return Err(reader.corrupt("impossible data type")),
    };
    with_parameters(kind, parameters).ok_or_else(|| reader.corrupt("impossible data type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind, with several parameters, and its bytes in a footer and in a record.
    fn all() -> Vec<(DataType, Vec<u8>, Vec<u8>)> {
        let simple = [
            (DataType::Null, 0, 0),
            (DataType::Boolean, 1, 1),
            (DataType::Int8, 2, 2),
            (DataType::Int16, 3, 3),
            (DataType::Int32, 4, 4),
            (DataType::Int64, 5, 5),
            (DataType::UInt8, 6, 6),
            (DataType::UInt16, 7, 7),
            (DataType::UInt32, 8, 8),
            (DataType::UInt64, 9, 9),
            (DataType::Float32, 10, 10),
            (DataType::Float64, 11, 11),
            (DataType::Date, 16, 15),
            (DataType::Time, 17, 16),
            (DataType::Timestamp, 18, 17),
            (DataType::Interval, 19, 18),
            (DataType::Json, 20, 19),
            (DataType::TimestampTz, 21, 20),
            (DataType::Uuid, 22, 21),
        ];
        let mut all: Vec<_> = simple
            .into_iter()
            .map(|(data_type, footer, record)| (data_type, vec![footer], vec![record, 0, 0]))
            .collect();
        for (precision, scale) in [(1, 0), (1, 1), (18, 2), (19, 0), (38, 38)] {
            all.push((
                DataType::Decimal { precision, scale },
                vec![13, precision, scale],
                vec![12, precision, scale],
            ));
        }
        for (limit, stored) in [
            (None, vec![0]),
            (Some(0), vec![1]),
            (Some(126), vec![127]),
            (Some(127), vec![128, 1]),
            (Some(u32::MAX), vec![128, 128, 128, 128, 16]),
        ] {
            let footer = |number: u8| [vec![number], stored.clone()].concat();
            let record = |number: u8| [vec![number], stored.clone(), vec![0]].concat();
            all.push((DataType::Text { max_chars: limit }, footer(14), record(13)));
            all.push((DataType::Binary { max_bytes: limit }, footer(15), record(14)));
        }
        all
    }

    #[test]
    fn every_type_keeps_its_bytes_in_both_layouts_and_reads_back() {
        for (data_type, footer, record) in all() {
            let mut out = Vec::new();
            put(&mut out, data_type);
            assert_eq!(out, footer, "{data_type} in a footer");
            let mut reader = Reader::new(&out, "type");
            assert_eq!(get(&mut reader).unwrap(), data_type);
            reader.finish().unwrap();

            let mut out = Vec::new();
            put_in_record(&mut out, data_type);
            assert_eq!(out, record, "{data_type} in a record");
            let mut reader = Reader::new(&out, "type");
            assert_eq!(get_in_record(&mut reader).unwrap(), data_type);
            reader.finish().unwrap();
        }
    }

    #[test]
    fn every_number_is_a_type_or_corrupt() {
        let known = |stored: fn(DataType) -> u8| {
            let mut numbers: Vec<u8> = KINDS.into_iter().map(stored).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), KINDS.len(), "two kinds share a number");
            numbers
        };
        let (footer, record) = (known(number), known(number_in_record));
        for stored in 0..=u8::MAX {
            let read = get(&mut Reader::new(&[stored, 1, 1], "type"));
            assert_eq!(read.is_ok(), footer.contains(&stored), "{stored} in a footer");
            // A decimal needs a precision, the others lack a second parameter.
            let first = u8::from(stored == number_in_record(KINDS[12]));
            let read = get_in_record(&mut Reader::new(&[stored, first, 0], "type"));
            assert_eq!(read.is_ok(), record.contains(&stored), "{stored} in a record");
        }
    }

    #[test]
    fn impossible_parameters_are_corrupt() {
        let too_long = [14, 0x80, 0x80, 0x80, 0x80, 0x20];
        for bytes in [&[13, 39, 0][..], &[13, 0, 0], &[13, 5, 6], &[13, 5], &too_long] {
            assert!(get(&mut Reader::new(bytes, "type")).is_err(), "{bytes:?}");
        }
        let too_long = [13, 0x80, 0x80, 0x80, 0x80, 0x20, 0];
        let wide = [12, 0x85, 0x02, 0];
        for bytes in [
            &[12, 39, 0][..],
            &[12, 0, 0],
            &[12, 5, 6],
            &[12, 5],
            &[4, 1, 0],
            &[13, 1, 1],
            &too_long,
            &wide,
        ] {
            assert!(get_in_record(&mut Reader::new(bytes, "type")).is_err(), "{bytes:?}");
        }
    }
}
