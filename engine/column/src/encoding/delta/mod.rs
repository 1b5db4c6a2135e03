//! Delta: ascending 64-bit integers as bit-packed differences to the row before.
//!
//! Body: a `u32` length in bytes of the bases and four zero bytes, then the bases, then the
//! differences, both as bit-packed bodies of 64-bit integers. Bases are the values of every 32nd
//! row, from row 0 on; differences are one a row, that of a base row meaning nothing. So one row
//! costs its base and at most 31 differences, all in one sub-block. Arithmetic wraps, so any
//! integers can be held; only ascending ones become small.

use super::bitpacked::{self, BitPacked};
use super::{Body, Input, corrupt, slice, u32_at};
use crate::{Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result};

/// Rows that share a base. Divides the rows of a bit-packed sub-block.
const GROUP: usize = 32;
/// From this many of a block's rows on, decoding what is between them is cheaper than seeking each.
const SEEK_BELOW: usize = 8;
const ENDS_EARLY: &str = "deltas end early";

/// Whether the encoding is for these values: 64-bit integers, ascending but for nulls.
pub fn suits(input: Input<'_>) -> bool {
    let Values::I64(values) = input.values else { return false };
    let values = &values[input.start..input.start + input.len];
    match input.validity {
        None => values.is_sorted(),
        Some(_) => {
            (0..input.len).filter(|row| input.is_valid(*row)).is_sorted_by_key(|row| values[row])
        }
    }
}

/// Appends the body, if the values are 64-bit integers.
pub fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Values::I64(values) = input.values else { return false };
    let mut bases = Vec::with_capacity(input.len.div_ceil(GROUP));
    let mut deltas = Vec::with_capacity(input.len);
    // A null is the value before it; nulls in front are the first value there is.
    let first =
        (0..input.len).find(|row| input.is_valid(*row)).map_or(0, |row| values[input.start + row]);
    let (mut previous, mut delta) = (first, 0i64);
    for row in 0..input.len {
        let value = if input.is_valid(row) { values[input.start + row] } else { previous };
        if row % GROUP == 0 {
            bases.push(value);
        } else {
            delta = value.wrapping_sub(previous);
        }
        // In the place of a base the difference before it, which does not widen any range.
        deltas.push(delta);
        previous = value;
    }
    if deltas.len() > 1 {
        deltas[0] = deltas[1];
    }
    let head = out.len();
    out.put_u64(0);
    if !pack(bases, out) {
        return false;
    }
    let length = out.len() - head - 8;
    out[head..head + 4].copy_from_slice(&(length as u32).to_le_bytes());
    pack(deltas, out)
}

fn pack(values: Vec<i64>, out: &mut Vec<u8>) -> bool {
    let values = Values::I64(values);
    bitpacked::encode(Input { values: &values, validity: None, start: 0, len: values.len() }, out)
}

/// A delta body.
pub struct Delta<'a> {
    bases: BitPacked<'a>,
    deltas: BitPacked<'a>,
}

impl<'a> Delta<'a> {
    /// Reads the head of a body.
    pub fn open(bytes: &'a [u8], physical: PhysicalType, rows: usize) -> Result<Delta<'a>> {
        if physical != PhysicalType::I64 {
            return Err(corrupt("deltas of a type that cannot be"));
        }
        let length = u32_at(bytes, 0, ENDS_EARLY)?;
        let bases = slice(bytes, 8, length, ENDS_EARLY)?;
        Ok(Delta {
            bases: BitPacked::open(bases, physical, rows.div_ceil(GROUP))?,
            deltas: BitPacked::open(&bytes[8 + length..], physical, rows)?,
        })
    }

    #[inline]
    fn one(&self, row: usize) -> Result<i64> {
        let base: i64 = self.bases.one(row / GROUP)?;
        Ok(base.wrapping_add(self.deltas.sum(row - row % GROUP + 1, row % GROUP)?))
    }

    fn range(&self, start: usize, len: usize) -> Result<Vec<i64>> {
        let skip = start % GROUP;
        let first = start / GROUP;
        let mut values: Vec<i64> = self.deltas.range(start - skip, len + skip)?;
        let bases: Vec<i64> = self.bases.range(first, (len + skip).div_ceil(GROUP))?;
        for (group, base) in values.chunks_mut(GROUP).zip(bases) {
            let mut value = base;
            if let Some((first, rest)) = group.split_first_mut() {
                *first = value;
                for delta in rest {
                    value = value.wrapping_add(*delta);
                    *delta = value;
                }
            }
        }
        values.drain(..skip);
        Ok(values)
    }
}

impl<'a> Body<'a> for Delta<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(Scalar::I64(self.one(row)?))
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(Values::I64(self.range(start, len)?)))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else {
            return self.decode(0, 0);
        };
        let span = (last - first) as usize + 1;
        let values: Vec<i64> = if rows.len() * SEEK_BELOW < span {
            rows.iter().map(|row| self.one(*row as usize)).collect::<Result<_>>()?
        } else {
            let all = self.range(first as usize, span)?;
            rows.iter().map(|row| all[(row - first) as usize]).collect()
        };
        Ok(Form::Flat(Values::I64(values)))
    }
}
