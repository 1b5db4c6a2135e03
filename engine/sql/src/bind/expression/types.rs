//! Type names, and the coercion rules: the common type of two operands and the result type of
//! arithmetic. `docs/SQL.md` states the same rules for users.

use nacre_function::decimal_type::{decimal, decimal_shape};
use nacre_types::{DECIMAL_MAX_PRECISION, DataType, Error, PhysicalType, Result};
use sqlparser::ast::{
    BinaryLength, CharLengthUnits, CharacterLength, DataType as Ast, ExactNumberInfo, TimezoneInfo,
};

/// Converts a type name in a statement to a data type.
pub(crate) fn data_type(ast: &Ast) -> Result<DataType> {
    use DataType::*;
    Ok(match ast {
        Ast::Bool | Ast::Boolean => Boolean,
        Ast::TinyInt(_) => Int8,
        Ast::SmallInt(_) | Ast::Int2(_) | Ast::Int16 => Int16,
        Ast::Int(_) | Ast::Integer(_) | Ast::Int4(_) | Ast::MediumInt(_) | Ast::Int32 => Int32,
        Ast::BigInt(_) | Ast::Int8(_) | Ast::Int64 | Ast::Signed | Ast::SignedInteger => Int64,
        Ast::TinyIntUnsigned(_) | Ast::UTinyInt | Ast::UInt8 => UInt8,
        Ast::SmallIntUnsigned(_) | Ast::Int2Unsigned(_) | Ast::USmallInt | Ast::UInt16 => UInt16,
        Ast::IntUnsigned(_)
        | Ast::IntegerUnsigned(_)
        | Ast::Int4Unsigned(_)
        | Ast::MediumIntUnsigned(_) => UInt32,
        Ast::UInt32 => UInt32,
        Ast::BigIntUnsigned(_) | Ast::Int8Unsigned(_) | Ast::UBigInt | Ast::UInt64 => UInt64,
        Ast::Unsigned | Ast::UnsignedInteger => UInt64,
        Ast::Float(ExactNumberInfo::PrecisionAndScale(..))
        | Ast::Double(ExactNumberInfo::PrecisionAndScale(..)) => {
            return Err(Error::unsupported("digits of FLOAT and DOUBLE are not supported"));
        }
        Ast::Float(ExactNumberInfo::Precision(p)) if *p > 24 => Float64,
        Ast::Float(_) | Ast::Float4 | Ast::Float32 | Ast::Real => Float32,
        Ast::Double(_) | Ast::DoublePrecision | Ast::Float8 | Ast::Float64 => Float64,
        Ast::Decimal(n) | Ast::Numeric(n) | Ast::Dec(n) => decimal_type(n)?,
        Ast::Char(n) | Ast::Character(n) => Text { max_chars: Some(characters(n)?.unwrap_or(1)) },
        Ast::Varchar(n) | Ast::CharacterVarying(n) | Ast::CharVarying(n) | Ast::Nvarchar(n) => {
            Text { max_chars: characters(n)? }
        }
        Ast::Text | Ast::TinyText | Ast::MediumText | Ast::LongText => DataType::TEXT,
        Ast::String(n) | Ast::Clob(n) => Text { max_chars: n.map(length).transpose()? },
        Ast::Binary(n) => Binary { max_bytes: Some(n.map(length).transpose()?.unwrap_or(1)) },
        Ast::Varbinary(Some(BinaryLength::IntegerLength { length: n })) => {
            Binary { max_bytes: Some(length(*n)?) }
        }
        Ast::Blob(n) | Ast::Bytes(n) => Binary { max_bytes: n.map(length).transpose()? },
        Ast::Varbinary(_) | Ast::TinyBlob | Ast::MediumBlob | Ast::LongBlob | Ast::Bytea => {
            DataType::BLOB
        }
        Ast::Date | Ast::Date32 => Date,
        Ast::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => return Err(time_zone()),
        Ast::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => return Err(time_zone()),
        Ast::Time(p, _) => temporal(*p, Time)?,
        Ast::Datetime(p) | Ast::Timestamp(p, _) | Ast::TimestampNtz(p) => temporal(*p, Timestamp)?,
        Ast::Datetime64(p, _) => temporal(Some(*p), Timestamp)?,
        Ast::HugeInt => Decimal { precision: DECIMAL_MAX_PRECISION, scale: 0 },
        Ast::Interval { .. } => Interval,
        Ast::JSON | Ast::JSONB => Json,
        Ast::Custom(name, arguments) if arguments.is_empty() => match alias(&name.to_string()) {
            Some(data_type) => data_type,
            None => return Err(unknown_type(ast)),
        },
        other => return Err(unknown_type(other)),
    })
}

/// Returns the type of a name that is not a word of the parser.
fn alias(name: &str) -> Option<DataType> {
    const NAMES: [(&str, DataType); 11] = [
        ("int1", DataType::Int8),
        ("short", DataType::Int16),
        ("long", DataType::Int64),
        ("uinteger", DataType::UInt32),
        ("uint", DataType::UInt32),
        ("logical", DataType::Boolean),
        ("bpchar", DataType::TEXT),
        ("timestamp_s", DataType::Timestamp),
        ("timestamp_ms", DataType::Timestamp),
        ("timestamp_us", DataType::Timestamp),
        ("timestamp_ns", DataType::Timestamp),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, to)| *to)
}

/// The type of a column declared `SERIAL`, which counts rows; `None` for any other type.
pub(crate) fn serial(ast: &Ast) -> Option<DataType> {
    const NAMES: [(&str, DataType); 6] = [
        ("serial", DataType::Int32),
        ("serial4", DataType::Int32),
        ("bigserial", DataType::Int64),
        ("serial8", DataType::Int64),
        ("smallserial", DataType::Int16),
        ("serial2", DataType::Int16),
    ];
    let Ast::Custom(name, _) = ast else { return None };
    let name = name.to_string();
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name)).map(|(_, to)| *to)
}

fn time_zone() -> Error {
    Error::unsupported("types WITH TIME ZONE are not supported")
}

#[cold]
fn unknown_type(ast: &Ast) -> Error {
    let name = ast.to_string();
    let known = matches!(
        ast,
        Ast::Array(_)
            | Ast::Map(..)
            | Ast::Struct(..)
            | Ast::Enum(..)
            | Ast::Set(_)
            | Ast::Uuid
            | Ast::UHugeInt
            | Ast::Bit(_)
    );
    if known {
        return Error::unsupported(format!("type {name} is not supported"));
    }
    Error::not_found(format!("no type `{name}`"))
}

fn length(n: u64) -> Result<u32> {
    match u32::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::type_error(format!("length {n} of a type is out of range"))),
    }
}

fn characters(n: &Option<CharacterLength>) -> Result<Option<u32>> {
    match n {
        Some(CharacterLength::IntegerLength { unit: Some(CharLengthUnits::Octets), .. }) => {
            Err(Error::unsupported("a length in OCTETS is not supported"))
        }
        Some(CharacterLength::IntegerLength { length: n, .. }) => length(*n).map(Some),
        _ => Ok(None),
    }
}

fn temporal(precision: Option<u64>, data_type: DataType) -> Result<DataType> {
    match precision {
        Some(p) if p > 6 => {
            Err(Error::type_error(format!("precision {p} of {data_type} exceeds 6 digits")))
        }
        _ => Ok(data_type),
    }
}

fn decimal_type(n: &ExactNumberInfo) -> Result<DataType> {
    let (precision, scale) = match n {
        ExactNumberInfo::None => (18, 3),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, *s),
    };
    let max = DECIMAL_MAX_PRECISION as u64;
    if precision == 0 || precision > max || scale < 0 || scale as u64 > precision {
        let message = format!(
            "DECIMAL({precision},{scale}): precision must be between 1 and {max}, scale between 0 and the precision"
        );
        return Err(Error::type_error(message));
    }
    Ok(DataType::Decimal { precision: precision as u8, scale: scale as u8 })
}

/// Whether an operator takes values of both types without a cast: same family, physical
/// representation and scale.
pub(crate) fn meets(a: DataType, b: DataType) -> bool {
    if a == b {
        return true;
    }
    let family = |t: DataType| match t {
        _ if t.is_integer() || t.is_decimal() => 1,
        _ if t.is_float() => 2,
        DataType::Text { .. } => 3,
        DataType::Binary { .. } => 4,
        _ => 0,
    };
    family(a) != 0
        && family(a) == family(b)
        && a.physical() == b.physical()
        && a.scale() == b.scale()
}

/// Returns the common type in which two operands are compared, or to which branches of a `CASE` are
/// cast, if any.
pub(crate) fn common(a: DataType, b: DataType) -> Option<DataType> {
    use DataType::*;
    Some(match (a, b) {
        _ if a == b => a,
        (Null, t) | (t, Null) => t,
        (Text { .. }, Text { .. }) => DataType::TEXT,
        (Binary { .. }, Binary { .. }) => DataType::BLOB,
        (Json, Text { .. }) | (Text { .. }, Json) => DataType::TEXT,
        (Date, Timestamp) | (Timestamp, Date) => Timestamp,
        _ if a.is_float() || b.is_float() => {
            if !a.is_numeric() || !b.is_numeric() {
                return None;
            }
            Float64
        }
        _ if a.is_integer() && b.is_integer() => common_integer(a, b),
        _ => {
            let ((p1, s1), (p2, s2)) = (decimal_shape(a)?, decimal_shape(b)?);
            let scale = s1.max(s2);
            decimal((p1 - s1).max(p2 - s2) as u32 + scale as u32, scale as u32)
        }
    })
}

fn common_integer(a: DataType, b: DataType) -> DataType {
    let (Some((low_a, high_a)), Some((low_b, high_b))) = (a.integer_range(), b.integer_range())
    else {
        return a;
    };
    let (low, high) = (low_a.min(low_b), high_a.max(high_b));
    use DataType::*;
    for t in [a, b, Int16, Int32, Int64] {
        if t.integer_range().is_some_and(|(l, h)| l <= low && h >= high) {
            return t;
        }
    }
    decimal(20, 0)
}

/// Returns the types to which the operands of `+`, `-`, `*`, `/`, `DIV` or `%` on two numbers are
/// cast, then the result type.
pub(crate) fn arithmetic(
    op: crate::expr::BinaryOp,
    a: DataType,
    b: DataType,
) -> Result<(DataType, DataType, DataType)> {
    use crate::expr::BinaryOp::*;
    use DataType::*;
    if a.is_float() || b.is_float() {
        return Ok((Float64, Float64, Float64));
    }
    let no_type = || Error::type_error(format!("no operator {} for {a} and {b}", op.symbol()));
    let ((p1, s1), (p2, s2)) =
        (decimal_shape(a).ok_or_else(no_type)?, decimal_shape(b).ok_or_else(no_type)?);
    let integers = a.is_integer() && b.is_integer();
    if integers && op != Divide {
        if a != UInt64 && b != UInt64 {
            return Ok((a, b, Int64));
        }
        if matches!(op, IntegerDivide | Modulo) && a == UInt64 && b == UInt64 {
            return Ok((a, b, UInt64));
        }
        let wide = decimal(20, 0);
        return Ok((wide, wide, wide));
    }
    let (p1, s1, p2, s2) = (p1 as u32, s1 as u32, p2 as u32, s2 as u32);
    let scale = s1.max(s2);
    let whole = (p1 - s1).max(p2 - s2);
    match op {
        Multiply => {
            if s1 + s2 > DECIMAL_MAX_PRECISION as u32 {
                let message = format!(
                    "{a} * {b} has {} digits after the decimal point; cast an operand to fewer",
                    s1 + s2
                );
                return Err(Error::type_error(message));
            }
            let (left, right) = same_physical((p1, s1), (p2, s2));
            Ok((left, right, decimal(p1 + p2, s1 + s2)))
        }
        Divide => {
            let (left, right) = if integers && a != UInt64 && b != UInt64 {
                (a, b)
            } else {
                same_physical((p1, s1), (p2, s2))
            };
            Ok((left, right, decimal(38, s1.max((s1 + 6).min(18)))))
        }
        IntegerDivide => {
            let operand = decimal(whole + scale, scale);
            Ok((operand, operand, decimal(38, 0)))
        }
        Modulo => {
            let operand = decimal(whole + scale, scale);
            Ok((operand, operand, operand))
        }
        _ => {
            let operand = decimal(whole + scale, scale);
            Ok((operand, operand, decimal(whole + scale + 1, scale)))
        }
    }
}

/// Returns decimal types for two `(precision, scale)`; widens one to 128 bits if only the other
/// needs them.
fn same_physical(a: (u32, u32), b: (u32, u32)) -> (DataType, DataType) {
    let (left, right) = (decimal(a.0, a.1), decimal(b.0, b.1));
    match (left.physical(), right.physical()) {
        (PhysicalType::I64, PhysicalType::I128) => (decimal(38, a.1), right),
        (PhysicalType::I128, PhysicalType::I64) => (left, decimal(38, b.1)),
        _ => (left, right),
    }
}
