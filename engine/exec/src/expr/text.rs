//! Text functions. Positions and lengths count characters; binary values count bytes.

use nacre_column::{Values, Vector};
use nacre_function::kernel::search;
use nacre_function::vector::{
    map,
    room::Room,
    rows::ActiveRows,
    validity::validity,
    view::{self, Texts},
};
use nacre_sql::expr::ScalarFunction;
use nacre_types::{DataType, Error, PhysicalType, Result, limits};
use std::sync::Arc;

fn wrong(function: ScalarFunction) -> Error {
    Error::type_error(format!("wrong arguments for {function:?}")).with_sqlstate("42883")
}

pub(super) fn check_length(bytes: usize) -> Result<()> {
    if bytes > limits::MAX_VALUE_BYTES {
        return Err(Error::limit(format!(
            "a text value of more than {} bytes",
            limits::MAX_VALUE_BYTES
        )));
    }
    Ok(())
}

/// `||` and `CONCAT`: null when any argument is.
pub(super) fn concat(
    args: &[Arc<Vector>],
    data_type: DataType,
    rows: ActiveRows<'_>,
    room: Room,
) -> Result<Vector> {
    let all: Vec<&Vector> = args.iter().map(|arg| &**arg).collect();
    if let Some(other) = all.iter().find(|arg| arg.data_type().physical() != PhysicalType::Bytes) {
        if other.data_type() == DataType::Null {
            return Ok(Vector::constant(data_type, &nacre_types::Value::Null, rows.len));
        }
        return Err(Error::type_error(format!("cannot concatenate {}", other.data_type())));
    }
    map::map_bytes(&all, data_type, rows, room, &mut |i, out| {
        for arg in &all {
            let more = Texts::new(arg).bytes(i);
            check_length(out.len() + more.len())?;
            out.extend_from_slice(more);
        }
        Ok(true)
    })
}

/// Functions from text to a number or boolean.
pub(super) fn measure(
    function: ScalarFunction,
    args: &[Arc<Vector>],
    data_type: DataType,
    rows: ActiveRows<'_>,
) -> Result<Vector> {
    use ScalarFunction::{Length, OctetLength, Position, StartsWith};
    let all: Vec<&Vector> = args.iter().map(|arg| &**arg).collect();
    let Some(first) = all.first() else { return Err(wrong(function)) };
    let validity = validity(&all);
    let unit = Unit::of(first);
    let a = Texts::new(first);
    let b = Texts::new(all.get(1).unwrap_or(first));
    match (function, all.len()) {
        (Length, 1) => {
            map::map_integers(
                data_type,
                validity,
                rows,
                &mut |i| Ok(unit.count(a.bytes(i)) as i128),
            )
        }
        (OctetLength, 1) => {
            map::map_integers(data_type, validity, rows, &mut |i| Ok(a.bytes(i).len() as i128))
        }
        (Position, 2) => map::map_integers(data_type, validity, rows, &mut |i| {
            let text = b.bytes(i);
            Ok(search::find(text, a.bytes(i)).map_or(0, |at| unit.count(&text[..at]) as i128 + 1))
        }),
        (StartsWith, 2) => {
            let mut out = vec![false; rows.len];
            rows.iter().for_each(|i| out[i] = a.bytes(i).starts_with(b.bytes(i)));
            Ok(Vector::new(DataType::Boolean, Values::Bool(out), validity))
        }
        _ => Err(wrong(function)),
    }
}

/// What positions and lengths count.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Characters,
    Bytes,
}

impl Unit {
    fn of(vector: &Vector) -> Unit {
        if matches!(vector.data_type(), DataType::Binary { .. }) {
            Unit::Bytes
        } else {
            Unit::Characters
        }
    }

    /// How many there are. A character is a byte of UTF-8 that does not continue one.
    fn count(self, value: &[u8]) -> usize {
        match self {
            Unit::Characters => value.iter().filter(|b| (**b & 0xc0) != 0x80).count(),
            Unit::Bytes => value.len(),
        }
    }

    /// Byte offset of the `n`th; the length when there are fewer.
    fn offset(self, value: &[u8], n: usize) -> usize {
        if self == Unit::Bytes || value.is_ascii() {
            return n.min(value.len());
        }
        let starts = value.iter().enumerate().filter(|(_, b)| (**b & 0xc0) != 0x80);
        starts.map(|(at, _)| at).nth(n).unwrap_or(value.len())
    }

    /// Those from `from` to `to` (clamped).
    fn slice(self, value: &[u8], from: usize, to: usize) -> &[u8] {
        if to <= from {
            return &[];
        }
        let rest = &value[self.offset(value, from)..];
        &rest[..self.offset(rest, to - from)]
    }
}

fn trim<'a>(text: &'a str, set: &str, left: bool, right: bool) -> &'a str {
    let inside = |c: char| set.contains(c);
    let text = if left { text.trim_start_matches(inside) } else { text };
    if right { text.trim_end_matches(inside) } else { text }
}

/// Functions from text to text.
pub(super) fn transform(
    function: ScalarFunction,
    args: &[Arc<Vector>],
    data_type: DataType,
    rows: ActiveRows<'_>,
    room: Room,
) -> Result<Vector> {
    use ScalarFunction as F;
    let all: Vec<&Vector> = args.iter().map(|arg| &**arg).collect();
    let numbers: Vec<_> = all.iter().map(|arg| view::wide(arg)).collect();
    let number = |index: usize, i: usize| -> Result<i64> {
        match numbers.get(index) {
            Some(Some(v)) => Ok(v.get(i).clamp(i32::MIN as i128, i32::MAX as i128) as i64),
            _ => Err(wrong(function)),
        }
    };
    let text = |index: usize, i: usize| -> Result<&[u8]> {
        match all.get(index) {
            Some(arg) if arg.data_type().physical() == PhysicalType::Bytes => {
                Ok(Texts::new(arg).bytes(i))
            }
            _ => Err(wrong(function)),
        }
    };
    let unit = all.first().map_or(Unit::Characters, |arg| Unit::of(arg));
    map::map_bytes(&all, data_type, rows, room, &mut |i, out| {
        let value = text(0, i)?;
        let string = || String::from_utf8_lossy(value);
        match function {
            F::Lower | F::Upper => {
                let upper = function == F::Upper;
                if value.is_ascii() {
                    out.extend_from_slice(value);
                    if upper { out.make_ascii_uppercase() } else { out.make_ascii_lowercase() }
                } else if upper {
                    out.extend_from_slice(string().to_uppercase().as_bytes());
                } else {
                    out.extend_from_slice(string().to_lowercase().as_bytes());
                }
            }
            F::Trim | F::LeftTrim | F::RightTrim => {
                let set =
                    if all.len() > 1 { String::from_utf8_lossy(text(1, i)?) } else { " ".into() };
                let trimmed = string();
                let trimmed =
                    trim(&trimmed, &set, function != F::RightTrim, function != F::LeftTrim);
                out.extend_from_slice(trimmed.as_bytes());
            }
            F::Substring => {
                let start = number(1, i)?;
                let end = if all.len() > 2 {
                    let length = number(2, i)?;
                    if length < 0 {
                        return Err(
                            Error::type_error("negative substring length").with_sqlstate("22011")
                        );
                    }
                    start + length
                } else {
                    i64::MAX
                };
                // Positions before the first character count towards the length, as in the SQL standard.
                let from = (start - 1).max(0) as usize;
                let to = (end.saturating_sub(1)).max(0) as usize;
                out.extend_from_slice(unit.slice(value, from, to));
            }
            F::Left | F::Right => {
                let n = number(1, i)?;
                let length = unit.count(value);
                // A negative count means all but so many characters of the other end.
                let kept = if n >= 0 {
                    (n as usize).min(length)
                } else {
                    length.saturating_sub(n.unsigned_abs() as usize)
                };
                let (from, to) =
                    if function == F::Left { (0, kept) } else { (length - kept, length) };
                out.extend_from_slice(unit.slice(value, from, to));
            }
            F::Replace => replace(value, text(1, i)?, text(2, i)?, out)?,
            F::Reverse if unit == Unit::Bytes => out.extend(value.iter().rev()),
            F::Reverse => {
                out.extend_from_slice(string().chars().rev().collect::<String>().as_bytes())
            }
            F::Repeat => {
                let n = if value.is_empty() { 0 } else { number(1, i)?.max(0) as usize };
                check_length(value.len().saturating_mul(n))?;
                (0..n).for_each(|_| out.extend_from_slice(value));
            }
            F::LeftPad | F::RightPad => {
                let n = number(1, i)?.max(0) as usize;
                let fill = if all.len() > 2 { text(2, i)? } else { b" " };
                pad(value, n, fill, function == F::LeftPad, unit, out)?;
            }
            _ => return Err(wrong(function)),
        }
        Ok(true)
    })
}

fn replace(value: &[u8], from: &[u8], to: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut rest = value;
    if !from.is_empty() {
        while let Some(at) = search::find(rest, from) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(to);
            check_length(out.len())?;
            rest = &rest[at + from.len()..];
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn pad(
    value: &[u8],
    n: usize,
    fill: &[u8],
    left: bool,
    unit: Unit,
    out: &mut Vec<u8>,
) -> Result<()> {
    let length = unit.count(value);
    if length >= n || fill.is_empty() {
        out.extend_from_slice(unit.slice(value, 0, n));
        return Ok(());
    }
    check_length(value.len() + (n - length).saturating_mul(4))?;
    if !left {
        out.extend_from_slice(value);
    }
    let (missing, width) = (n - length, unit.count(fill).max(1));
    (0..missing / width).for_each(|_| out.extend_from_slice(fill));
    out.extend_from_slice(unit.slice(fill, 0, missing % width));
    if left {
        out.extend_from_slice(value);
    }
    Ok(())
}
