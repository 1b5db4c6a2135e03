//! Type names, and the coercion rules: the common type of two operands and the result type of
//! arithmetic. `docs/SQL.md` states the same rules for users.

use crate::type_names::{Meaning, meaning};
use nacre_function::decimal_type::{decimal, decimal_shape};
use nacre_types::{DECIMAL_MAX_PRECISION, DataType, Error, PhysicalType, Result};
use sqlparser::ast::DataType as Ast;

/// Converts a type name in a statement to a data type.
pub(crate) fn data_type(ast: &Ast) -> Result<DataType> {
    let written = ast.to_string();
    let (name, numbers) = parts(&written);
    let (first, second) = (numbers.first().copied(), numbers.get(1).copied());
    let meaning = meaning(&name).unwrap_or(Meaning::Foreign);
    let most = match meaning {
        Meaning::Plain(_) => 0,
        Meaning::Float(_) | Meaning::Decimal => 2,
        Meaning::Foreign => usize::MAX,
        _ => 1,
    };
    if numbers.len() > most {
        return Err(Error::type_error(format!("the type {written} has too many numbers")));
    }
    Ok(match meaning {
        Meaning::Plain(data_type) => data_type,
        Meaning::Integer(data_type) => {
            first.map(whole).transpose()?;
            data_type
        }
        Meaning::Float(_) if second.is_some() => {
            return Err(Error::unsupported("digits of FLOAT and DOUBLE are not supported"));
        }
        Meaning::Float(data_type) => match first.map(whole).transpose()? {
            Some(25..) => DataType::Float64,
            _ => data_type,
        },
        Meaning::Decimal => {
            let precision = first.map(whole).transpose()?;
            let scale = second.map(whole).transpose()?;
            decimal_type(
                precision.unwrap_or(18),
                scale.unwrap_or(if first.is_some() { 0 } else { 3 }),
            )?
        }
        Meaning::Text(unless_given) => {
            DataType::Text { max_chars: first.map_or(Ok(unless_given), characters)? }
        }
        Meaning::Binary(unless_given) => {
            let given = |n: &str| length(n).map(Some);
            DataType::Binary { max_bytes: first.map_or(Ok(unless_given), given)? }
        }
        Meaning::Temporal(data_type) => temporal(first.map(whole).transpose()?, data_type)?,
        Meaning::Zoned => return Err(Error::unsupported("TIME WITH TIME ZONE is not supported")),
        Meaning::Foreign => return Err(unknown_type(&written, &name)),
    })
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

/// Divides a type as it is written, such as `INT(10) UNSIGNED`, into its words and what is in its parentheses.
fn parts(written: &str) -> (String, Vec<&str>) {
    let Some((before, rest)) = written.split_once('(') else {
        return (written.to_string(), Vec::new());
    };
    let (inside, after) = rest.rsplit_once(')').unwrap_or((rest, ""));
    (format!("{before}{after}"), inside.split(',').map(str::trim).collect())
}

#[cold]
fn unknown_type(written: &str, name: &str) -> Error {
    let first = name.split([' ', '[', '<']).next().unwrap_or(name);
    if meaning(first).is_some() {
        return Error::unsupported(format!("type {written} is not supported"));
    }
    Error::not_found(format!("no type `{written}`"))
}

/// Reads a number in the parentheses of a type.
fn whole(text: &str) -> Result<i64> {
    text.parse().map_err(|_| Error::syntax(format!("expected a whole number, found {text}")))
}

fn length(text: &str) -> Result<u32> {
    match u32::try_from(whole(text)?) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::type_error(format!("length {text} of a type is out of range"))),
    }
}

/// Reads the length of a text: a number, which may be followed by its unit, or `MAX`.
fn characters(text: &str) -> Result<Option<u32>> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    if unit.eq_ignore_ascii_case("octets") {
        return Err(Error::unsupported("a length in OCTETS is not supported"));
    }
    match text.eq_ignore_ascii_case("max") {
        true => Ok(None),
        false => length(number).map(Some),
    }
}

fn temporal(precision: Option<i64>, data_type: DataType) -> Result<DataType> {
    match precision {
        Some(p) if !(0..=6).contains(&p) => {
            Err(Error::type_error(format!("precision {p} of {data_type} exceeds 6 digits")))
        }
        _ => Ok(data_type),
    }
}

fn decimal_type(precision: i64, scale: i64) -> Result<DataType> {
    let max = DECIMAL_MAX_PRECISION as i64;
    if !(1..=max).contains(&precision) || !(0..=precision).contains(&scale) {
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

/// Whether a type holds all values of another one, in the same form.
pub(crate) fn holds_all(wider: DataType, of: DataType) -> bool {
    use DataType::*;
    let reaches = |most: Option<u32>, all: Option<u32>| match (most, all) {
        (None, _) => true,
        (Some(most), Some(all)) => most >= all,
        (Some(_), None) => false,
    };
    match (wider, of) {
        _ if wider == of => true,
        (Text { max_chars: most }, Text { max_chars: all }) => reaches(most, all),
        (Binary { max_bytes: most }, Binary { max_bytes: all }) => reaches(most, all),
        (Decimal { precision: p, scale: s }, Decimal { precision: q, scale: t }) => {
            s == t && p >= q && wider.physical() == of.physical()
        }
        (Float64, Float32) => true,
        _ => match (wider.integer_range(), of.integer_range()) {
            (Some((low, high)), Some((from, to))) => {
                low <= from && to <= high && wider.physical() == of.physical()
            }
            _ => false,
        },
    }
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
        (TimestampTz, Date | Timestamp) | (Date | Timestamp, TimestampTz) => TimestampTz,
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
