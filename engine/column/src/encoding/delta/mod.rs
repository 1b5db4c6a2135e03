//! Delta: ascending 64-bit integers as bit-packed differences from the preceding row.
//!
//! Body: a `u32` length in bytes of the bases and four zero bytes, then the bases, then the
//! differences, both as bit-packed bodies of 64-bit integers. Bases are the values of every 32nd
//! row, from row 0 on. There is one difference per row; that of a base row is unused. Reading one
//! row thus takes its base and at most 31 differences, all in one sub-block. Arithmetic wraps: any
//! integers can be encoded, but only ascending ones become small.

use super::bitpacked::{self, BitPacked};
use super::read::{corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::{Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};

/// Rows that share a base. Divides the number of rows of a bit-packed sub-block.
const GROUP: usize = 32;
const _: () = assert!(bitpacked::SUB_ROWS.is_multiple_of(GROUP));
/// Average distance between rows up to which decoding all rows in between beats seeking one by one.
const SEEK_BELOW: usize = 8;
const ENDS_EARLY: &str = "deltas end early";

/// Whether the values are ascending 64-bit integers, ignoring nulls.
fn suits(input: Input<'_>) -> bool {
    let Values::I64(values) = input.values else { return false };
    let values = &values[input.start..input.start + input.len];
    match input.validity {
        None => values.is_sorted(),
        Some(_) => {
            (0..input.len).filter(|row| input.is_valid(*row)).is_sorted_by_key(|row| values[row])
        }
    }
}

/// Appends the body if the values are 64-bit integers.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Values::I64(values) = input.values else { return false };
    let mut bases = Vec::with_capacity(input.len.div_ceil(GROUP));
    let mut deltas = Vec::with_capacity(input.len);
    // A null repeats the preceding value; leading nulls take the first value, or 0 if there is
    // none.
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
        // A base row repeats the preceding difference, which widens no range.
        deltas.push(delta);
        previous = value;
    }
    if deltas.len() > 1 {
        deltas[0] = deltas[1];
    }
    invariant!(
        bases.len() == input.len.div_ceil(GROUP) && deltas.len() == input.len,
        "{} bases and {} differences for {} rows",
        bases.len(),
        deltas.len(),
        input.len
    );
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
    bitpacked::encode(Input::new(&values, None), out)
}

/// A delta body.
pub(crate) struct Delta<'a> {
    bases: BitPacked<'a>,
    deltas: BitPacked<'a>,
}

impl Delta<'_> {
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
        debug_assert_eq!(values.len(), len, "values of a delta range");
        Ok(values)
    }
}

impl<'a> Scheme<'a> for Delta<'a> {
    const NAME: &'static str = "delta";
    const OFFER: Offer = Offer::InsteadOfAny;
    const SEEK_ONE_IN: usize = 128;

    fn suits(input: Input<'_>, _rival: usize) -> bool {
        suits(input)
    }

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    fn open(source: Source<'a>) -> Result<Delta<'a>> {
        let Source { bytes, physical, rows, .. } = source;
        if physical != PhysicalType::I64 {
            return Err(corrupt("delta encoding of a type other than a 64-bit integer"));
        }
        let length = u32_at(bytes, 0, ENDS_EARLY)?;
        let bases = slice(bytes, 8, length, ENDS_EARLY)?;
        Ok(Delta {
            bases: BitPacked::read(bases, physical, rows.div_ceil(GROUP))?,
            deltas: BitPacked::read(&bytes[8 + length..], physical, rows)?,
        })
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        let body = Delta::open(source)?;
        see(slice(source.bytes, 0, 8, ENDS_EARLY)?);
        body.bases.head(see);
        body.deltas.head(see);
        Ok(true)
    }
}

impl<'a> Body<'a> for Delta<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(Scalar::I64(self.one(row)?))
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        self.bases.parts(row / GROUP, row / GROUP, see);
        if !row.is_multiple_of(GROUP) {
            self.deltas.parts(row - row % GROUP + 1, row, see);
        }
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(Values::I64(self.range(start, len)?)))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        let (Some(&first), Some(&last)) = (rows.first(), rows.last()) else {
            return self.decode(0, 0);
        };
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
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
