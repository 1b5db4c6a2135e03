//! The types of a stream's columns.

use super::flat::Table;
use arrow_ipc::{
    Date, DateUnit, Decimal, Field, FixedSizeBinary, FloatingPoint, Int, Precision, Time, TimeUnit,
    Timestamp, Type,
};
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
pub(super) fn int(of: Table<'_>) -> Result<Form> {
    let signed = of.bool(Int::VT_IS_SIGNED)?;
    match of.integer(Int::VT_BITWIDTH, 4, 0)? {
        bits @ (8 | 16 | 32 | 64) => Ok(Form::Int { bytes: bits as usize / 8, signed }),
        bits => Err(Error::corrupt(format!("an Arrow integer of {bits} bits"))),
    }
}

/// The form of a field, or of the entries of its dictionary.
pub(super) fn form_of(field: Table<'_>) -> Result<Form> {
    let unsupported = |what: &str| Err(Error::unsupported(format!("Arrow type {what} in a table")));
    let absent = || Error::corrupt("an Arrow field without its type");
    let parameters = || field.table(Field::VT_TYPE_)?.ok_or_else(absent);
    Ok(match Type(field.integer(Field::VT_TYPE_TYPE, 1, 0)? as u8) {
        Type::Null => Form::Null,
        Type::Bool => Form::Boolean,
        Type::Int => int(parameters()?)?,
        Type::FloatingPoint => {
            match Precision(parameters()?.integer(FloatingPoint::VT_PRECISION, 2, 0)? as i16) {
                Precision::SINGLE => Form::Float32,
                Precision::DOUBLE => Form::Float64,
                _ => return unsupported("Float16"),
            }
        }
        Type::Decimal => {
            let decimal = parameters()?;
            match decimal.integer(Decimal::VT_BITWIDTH, 4, 128)? {
                128 => Form::Decimal128 { scale: decimal.integer(Decimal::VT_SCALE, 4, 0)? as i32 },
                bits => return unsupported(&format!("Decimal{bits}")),
            }
        }
        Type::Date => Form::Date {
            ms: unit(parameters()?, Date::VT_UNIT, DateUnit::MILLISECOND.0)?
                == DateUnit::MILLISECOND.0,
        },
        Type::Time => {
            let time = parameters()?;
            let bytes = if time.integer(Time::VT_BITWIDTH, 4, 32)? == 64 { 8 } else { 4 };
            let unit = unit(time, Time::VT_UNIT, TimeUnit::MILLISECOND.0)?;
            Form::Time { bytes, units: units(TimeUnit(unit)) }
        }
        Type::Timestamp => {
            let unit = unit(parameters()?, Timestamp::VT_UNIT, TimeUnit::SECOND.0)?;
            Form::Timestamp { units: units(TimeUnit(unit)) }
        }
        Type::Utf8 => Form::Text { offset_bytes: 4 },
        Type::LargeUtf8 => Form::Text { offset_bytes: 8 },
        Type::Binary => Form::Binary { offset_bytes: 4 },
        Type::LargeBinary => Form::Binary { offset_bytes: 8 },
        Type::FixedSizeBinary => {
            let bytes = parameters()?.integer(FixedSizeBinary::VT_BYTEWIDTH, 4, 0)?;
            let bytes = usize::try_from(bytes)
                .map_err(|_| Error::corrupt("an Arrow type of negative length"))?;
            Form::FixedBinary { bytes }
        }
        other => return unsupported(other.variant_name().unwrap_or("of a later version")),
    })
}

/// The unit of a type's values, which has a default.
fn unit(of: Table<'_>, field: u16, absent: i16) -> Result<i16> {
    Ok(of.integer(field, 2, absent.into())? as i16)
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
