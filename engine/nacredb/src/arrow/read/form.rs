//! The types of a stream's columns.

use arrow_ipc::{DateUnit, Field, Int, Precision, TimeUnit, Type};
use nacre_types::{Error, Result};

/// How the values of a column lie in their buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Null,
    Boolean,
    Int {
        bytes: usize,
        signed: bool,
    },
    Float32,
    Float64,
    Decimal128 {
        scale: i32,
    },
    /// Days, or milliseconds.
    Date {
        ms: bool,
    },
    /// Length of a value, and units in a second.
    Time {
        bytes: usize,
        units: i64,
    },
    Timestamp {
        units: i64,
    },
    /// Length of an offset.
    Text {
        offset_bytes: usize,
    },
    Binary {
        offset_bytes: usize,
    },
    FixedBinary {
        bytes: usize,
    },
}

/// The type of indices without a type.
pub(super) const INT32: Form = Form::Int { bytes: 4, signed: true };

/// The form of integers.
pub(super) fn int(of: Int<'_>) -> Result<Form> {
    match of.bitWidth() {
        bits @ (8 | 16 | 32 | 64) => {
            Ok(Form::Int { bytes: bits as usize / 8, signed: of.is_signed() })
        }
        bits => Err(Error::corrupt(format!("an Arrow integer of {bits} bits"))),
    }
}

/// The form of a field, or of the entries of its dictionary.
pub(super) fn form_of(field: Field<'_>) -> Result<Form> {
    let unsupported = |what: &str| Err(Error::unsupported(format!("Arrow type {what} in a table")));
    let absent = || Error::corrupt("an Arrow field without its type");
    Ok(match field.type_type() {
        Type::Null => Form::Null,
        Type::Bool => Form::Boolean,
        Type::Int => int(field.type_as_int().ok_or_else(absent)?)?,
        Type::FloatingPoint => {
            match field.type_as_floating_point().ok_or_else(absent)?.precision() {
                Precision::SINGLE => Form::Float32,
                Precision::DOUBLE => Form::Float64,
                _ => return unsupported("Float16"),
            }
        }
        Type::Decimal => {
            let decimal = field.type_as_decimal().ok_or_else(absent)?;
            match decimal.bitWidth() {
                128 => Form::Decimal128 { scale: decimal.scale() },
                bits => return unsupported(&format!("Decimal{bits}")),
            }
        }
        Type::Date => {
            let unit = field.type_as_date().ok_or_else(absent)?.unit();
            Form::Date { ms: unit == DateUnit::MILLISECOND }
        }
        Type::Time => {
            let time = field.type_as_time().ok_or_else(absent)?;
            let bytes = if time.bitWidth() == 64 { 8 } else { 4 };
            Form::Time { bytes, units: units(time.unit()) }
        }
        Type::Timestamp => {
            let unit = field.type_as_timestamp().ok_or_else(absent)?.unit();
            Form::Timestamp { units: units(unit) }
        }
        Type::Utf8 => Form::Text { offset_bytes: 4 },
        Type::LargeUtf8 => Form::Text { offset_bytes: 8 },
        Type::Binary => Form::Binary { offset_bytes: 4 },
        Type::LargeBinary => Form::Binary { offset_bytes: 8 },
        Type::FixedSizeBinary => {
            let bytes = field.type_as_fixed_size_binary().ok_or_else(absent)?.byteWidth();
            let bytes = usize::try_from(bytes)
                .map_err(|_| Error::corrupt("an Arrow type of negative length"))?;
            Form::FixedBinary { bytes }
        }
        other => return unsupported(other.variant_name().unwrap_or("of a later version")),
    })
}

/// Units in a second.
fn units(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::SECOND => 1,
        TimeUnit::MILLISECOND => 1_000,
        TimeUnit::NANOSECOND => 1_000_000_000,
        _ => 1_000_000,
    }
}
