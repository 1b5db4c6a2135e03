//! Plain: values stored consecutively.
//!
//! Body by physical type. `Bool`: one bit per row, least significant first. `I64`, `I128`, `F64`:
//! 8, 16, 8 bytes per row, little-endian. `Bytes`: a `u32` layout (0 fixed length, 2 short offsets,
//! 4 long offsets), a `u32` length (of every value when fixed, else zero), then the offsets, then
//! the data. Long offsets are one `u32` end per row. Short offsets are one `u32` base for every
//! 1,024 rows, then one `u16` end per row, relative to the base of its 1,024 rows. A null row is
//! stored as zeroes, or as no bytes.

use super::read::{array_at, corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::kernel::Predicate;
use crate::kernel::predicate::domain;
use crate::kernel::spans::Spans;
use crate::{Bitmap, BytesColumn, Form, Scalar, Values};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant, key};
use std::borrow::Cow;

const FIXED: u32 = 0;
const SHORT: u32 = 2;
const LONG: u32 = 4;
/// Rows that share a base of short offsets.
const GROUP: usize = 1024;
const ENDS_EARLY: &str = "plain values end early";
const BAD_OFFSET: &str = "plain offset out of order";

/// Appends the body. Every block has a plain encoding.
pub(crate) fn encode(input: Input<'_>, out: &mut Vec<u8>) {
    let before = out.len();
    let range = input.start..input.start + input.len;
    match input.values {
        Values::Bool(v) => {
            for (index, eight) in v[range].chunks(8).enumerate() {
                let byte = eight.iter().enumerate().fold(0, |byte, (bit, v)| {
                    byte | ((*v && input.is_valid(index * 8 + bit)) as u8) << bit
                });
                out.push(byte);
            }
        }
        Values::I64(v) => {
            v[range]
                .iter()
                .enumerate()
                .for_each(|(i, v)| out.put_u64(if input.is_valid(i) { *v as u64 } else { 0 }));
        }
        Values::I128(v) => {
            v[range]
                .iter()
                .enumerate()
                .for_each(|(i, v)| out.put_i128(if input.is_valid(i) { *v } else { 0 }));
        }
        Values::F64(v) => {
            let bits = |i: usize, v: &f64| if input.is_valid(i) { v.to_bits() } else { 0 };
            v[range].iter().enumerate().for_each(|(i, v)| out.put_u64(bits(i, v)));
        }
        Values::Bytes(v) => encode_bytes(input, v, out),
    }
    debug_assert!(
        Plain::read(&out[before..], input.values.physical(), input.len).is_ok(),
        "a plain body of {} bytes for {} rows",
        out.len() - before,
        input.len
    );
}

fn encode_bytes(input: Input<'_>, values: &BytesColumn, out: &mut Vec<u8>) {
    invariant!(values.data.len() <= u32::MAX as usize, "more than 4 GiB of text in one body");
    let before = out.len();
    let get = |row: usize| if input.is_valid(row) { values.get(input.start + row) } else { &[] };
    let first = if input.len == 0 { 0 } else { get(0).len() };
    let fixed = (0..input.len).all(|row| get(row).len() == first);
    let short = !fixed
        && (0..input.len).step_by(GROUP).all(|at| {
            (at..input.len.min(at + GROUP)).map(|row| get(row).len()).sum::<usize>()
                <= u16::MAX as usize
        });
    out.put_u32(if fixed { FIXED } else { LONG - SHORT * short as u32 });
    out.put_u32(if fixed { first as u32 } else { 0 });
    if short {
        let mut end = 0;
        for row in 0..input.len {
            if row % GROUP == 0 {
                out.put_u32(end);
            }
            end += get(row).len() as u32;
        }
        let mut end = 0;
        for row in 0..input.len {
            end = if row % GROUP == 0 { 0 } else { end } + get(row).len() as u16;
            out.put_u16(end);
        }
    } else if !fixed {
        let mut end = 0;
        for row in 0..input.len {
            end += get(row).len() as u32;
            out.put_u32(end);
        }
    }
    match input.validity {
        None => {
            let at = |row: usize| values.offsets[input.start + row] as usize;
            out.extend_from_slice(&values.data[at(0)..at(input.len)]);
        }
        Some(_) => (0..input.len).for_each(|row| out.extend_from_slice(get(row))),
    }
    debug_assert!(
        Plain::read(&out[before..], PhysicalType::Bytes, input.len)
            .is_ok_and(|body| body.end_of_data() == Some(out.len() - before)),
        "the offsets of a plain body lead to its end"
    );
}

/// A plain body.
pub(crate) struct Plain<'a> {
    physical: PhysicalType,
    layout: u32,
    length: usize,
    offsets: &'a [u8],
    data: &'a [u8],
    rows: usize,
}

impl<'a> Plain<'a> {
    /// Reads the head of a body and checks its size.
    pub(crate) fn read(bytes: &'a [u8], physical: PhysicalType, rows: usize) -> Result<Plain<'a>> {
        let mut view =
            Plain { physical, layout: FIXED, length: 0, offsets: &[], data: bytes, rows };
        let size = match physical {
            PhysicalType::Bool => rows.div_ceil(8),
            PhysicalType::I64 | PhysicalType::F64 => rows * 8,
            PhysicalType::I128 => rows * 16,
            PhysicalType::Bytes => {
                view.layout = u32_at(bytes, 0, ENDS_EARLY)? as u32;
                view.length = u32_at(bytes, 4, ENDS_EARLY)?;
                let offsets = match view.layout {
                    FIXED => 0,
                    SHORT => rows.div_ceil(GROUP) * 4 + rows * 2,
                    LONG => rows * 4,
                    _ => return Err(corrupt("unknown plain layout")),
                };
                view.offsets = slice(bytes, 8, offsets, ENDS_EARLY)?;
                view.data = &bytes[8 + offsets..];
                match view.layout {
                    FIXED => view.length.saturating_mul(rows),
                    _ => 0,
                }
            }
        };
        if view.data.len() < size { Err(corrupt(ENDS_EARLY)) } else { Ok(view) }
    }

    /// Passes the head of a body: layout and length, and the bases of short offsets.
    pub(crate) fn head(
        bytes: &'a [u8],
        physical: PhysicalType,
        rows: usize,
        see: See<'_, 'a>,
    ) -> Result<bool> {
        let view = Plain::read(bytes, physical, rows)?;
        if physical == PhysicalType::Bytes {
            let bases = if view.layout == SHORT { rows.div_ceil(GROUP) * 4 } else { 0 };
            see(slice(bytes, 0, 8 + bases, ENDS_EARLY)?);
        }
        Ok(true)
    }

    /// Passes the slices of a row: its offsets, and its value.
    pub(crate) fn parts(&self, row: usize, see: See<'_, 'a>) {
        debug_assert!(row < self.rows, "row {row} of a plain body of {}", self.rows);
        let width = match self.physical {
            PhysicalType::Bool => return see(self.data.get(row / 8..=row / 8).unwrap_or_default()),
            PhysicalType::I64 | PhysicalType::F64 => 8,
            PhysicalType::I128 => 16,
            PhysicalType::Bytes => {
                let (skip, width) = match self.layout {
                    FIXED => (0, 0),
                    LONG => (0, 4),
                    _ => (self.rows.div_ceil(GROUP) * 4, 2),
                };
                // The end of the row before is the start of this one.
                let ends = skip + row.saturating_sub(1) * width..skip + (row + 1) * width;
                debug_assert!(ends.end <= self.offsets.len(), "ends {ends:?} of row {row}");
                see(self.offsets.get(ends).unwrap_or_default());
                return see(self.bytes(row).unwrap_or_default());
            }
        };
        see(self.data.get(row * width..(row + 1) * width).unwrap_or_default());
    }

    /// Length of a `Bytes` body according to its own offsets.
    fn end_of_data(&self) -> Option<usize> {
        let data = if self.rows == 0 { 0 } else { self.end(self.rows - 1).ok()? };
        Some(8 + self.offsets.len() + data)
    }

    /// Where the data of a row ends.
    #[inline]
    fn end(&self, row: usize) -> Result<usize> {
        debug_assert!(row < self.rows, "row {row} of a plain body of {}", self.rows);
        match self.layout {
            FIXED => Ok((row + 1) * self.length),
            LONG => u32_at(self.offsets, row * 4, ENDS_EARLY),
            _ => {
                let ends = self.rows.div_ceil(GROUP) * 4;
                let end = u16::from_le_bytes(array_at(self.offsets, ends + row * 2, ENDS_EARLY)?)
                    as usize;
                // Damaged offsets may wrap in a 32-bit `usize`; readers check their order.
                Ok(self.base(row)?.wrapping_add(end))
            }
        }
    }

    fn base(&self, row: usize) -> Result<usize> {
        debug_assert_eq!(self.layout, SHORT, "the layout whose offsets have a base");
        u32_at(self.offsets, row / GROUP * 4, ENDS_EARLY)
    }

    #[inline]
    fn start(&self, row: usize) -> Result<usize> {
        match (row, self.layout) {
            (0, _) => Ok(0),
            (_, SHORT) if row.is_multiple_of(GROUP) => self.base(row),
            _ => self.end(row - 1),
        }
    }

    /// The bytes of a row of a `Bytes` body.
    #[inline]
    pub(crate) fn bytes(&self, row: usize) -> Result<&'a [u8]> {
        debug_assert_eq!(self.physical, PhysicalType::Bytes, "the type of a row's bytes");
        let (start, end) = (self.start(row)?, self.end(row)?);
        self.data.get(start..end).ok_or_else(|| corrupt(BAD_OFFSET))
    }

    /// The data of a `Bytes` body from where those of a row start, and the row's length.
    #[inline]
    pub(crate) fn bytes_on(&self, row: usize) -> Result<(&'a [u8], usize)> {
        debug_assert_eq!(self.physical, PhysicalType::Bytes, "the type of a row's bytes");
        let (start, end) = (self.start(row)?, self.end(row)?);
        match self.data.get(start..) {
            Some(data) if start <= end && end - start <= data.len() => Ok((data, end - start)),
            _ => Err(corrupt(BAD_OFFSET)),
        }
    }

    fn decode_bytes(&self, start: usize, len: usize) -> Result<BytesColumn> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let mut offsets = Vec::with_capacity(len + 1);
        offsets.push(0u32);
        if len == 0 {
            return Ok(BytesColumn { offsets, data: Vec::new() });
        }
        let first = self.start(start)?;
        let mut previous = first;
        let mut put = |end: usize| {
            let ordered = end >= previous && end.wrapping_sub(first) <= u32::MAX as usize;
            previous = end;
            offsets.push(end.wrapping_sub(first) as u32);
            ordered
        };
        let mut ordered = true;
        match self.layout {
            FIXED => (start..start + len).for_each(|row| ordered &= put((row + 1) * self.length)),
            LONG => {
                let (ends, _) =
                    slice(self.offsets, start * 4, len * 4, ENDS_EARLY)?.as_chunks::<4>();
                ends.iter().for_each(|end| ordered &= put(u32::from_le_bytes(*end) as usize));
            }
            _ => {
                let ends = slice(
                    self.offsets,
                    self.rows.div_ceil(GROUP) * 4 + start * 2,
                    len * 2,
                    ENDS_EARLY,
                )?;
                let mut base = self.base(start)?;
                for (row, end) in (start..).zip(ends.as_chunks::<2>().0) {
                    if row.is_multiple_of(GROUP) {
                        base = self.base(row)?;
                    }
                    ordered &= put(base.wrapping_add(u16::from_le_bytes(*end) as usize));
                }
            }
        }
        match self.data.get(first..previous) {
            Some(data) if ordered => Ok(BytesColumn { offsets, data: data.to_vec() }),
            _ => Err(corrupt(BAD_OFFSET)),
        }
    }

    /// All values of a range in flat form.
    pub(crate) fn values(&self, start: usize, len: usize) -> Result<Values> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let fixed = |width: usize| slice(self.data, start * width, len * width, ENDS_EARLY);
        let values = match self.physical {
            PhysicalType::Bool => {
                Values::Bool((start..start + len).map(|row| self.bit(row)).collect())
            }
            PhysicalType::I64 => Values::I64(
                fixed(8)?.as_chunks::<8>().0.iter().map(|v| i64::from_le_bytes(*v)).collect(),
            ),
            PhysicalType::F64 => Values::F64(
                fixed(8)?.as_chunks::<8>().0.iter().map(|v| f64::from_le_bytes(*v)).collect(),
            ),
            PhysicalType::I128 => Values::I128(
                fixed(16)?.as_chunks::<16>().0.iter().map(|v| i128::from_le_bytes(*v)).collect(),
            ),
            PhysicalType::Bytes => Values::Bytes(self.decode_bytes(start, len)?),
        };
        debug_assert_eq!(values.len(), len, "values of a range");
        Ok(values)
    }

    #[inline]
    fn bit(&self, row: usize) -> bool {
        debug_assert!(row < self.rows, "row {row} of a plain body of {}", self.rows);
        self.data.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    #[inline]
    fn fixed<const N: usize>(&self, row: usize) -> Result<[u8; N]> {
        debug_assert!(row < self.rows, "row {row} of a plain body of {}", self.rows);
        array_at(self.data, row * N, ENDS_EARLY)
    }

    /// The values of some rows in flat form, in the given order.
    pub(crate) fn pick(&self, rows: &[u32]) -> Result<Values> {
        let rows = rows.iter().map(|row| *row as usize);
        Ok(match self.physical {
            PhysicalType::Bool => Values::Bool(rows.map(|row| self.bit(row)).collect()),
            PhysicalType::I64 => Values::I64(
                rows.map(|row| self.fixed(row).map(i64::from_le_bytes)).collect::<Result<_>>()?,
            ),
            PhysicalType::F64 => Values::F64(
                rows.map(|row| self.fixed(row).map(f64::from_le_bytes)).collect::<Result<_>>()?,
            ),
            PhysicalType::I128 => Values::I128(
                rows.map(|row| self.fixed(row).map(i128::from_le_bytes)).collect::<Result<_>>()?,
            ),
            PhysicalType::Bytes => {
                let mut out = BytesColumn::default();
                out.offsets.reserve(rows.len());
                for row in rows {
                    let value = self.bytes(row)?;
                    // Damaged offsets could give every row the same long value.
                    if out.data.len() + value.len() > self.data.len() {
                        return Err(corrupt(BAD_OFFSET));
                    }
                    out.push(value);
                }
                Values::Bytes(out)
            }
        })
    }
}

impl<'a> Scheme<'a> for Plain<'a> {
    const NAME: &'static str = "plain";
    const OFFER: Offer = Offer::Last;
    const SEEK_ONE_IN: usize = 8;

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out);
        true
    }

    #[inline]
    fn open(source: Source<'a>) -> Result<Plain<'a>> {
        Plain::read(source.bytes, source.physical, source.rows)
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        Plain::head(source.bytes, source.physical, source.rows, see)
    }
}

impl<'a> Body<'a> for Plain<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(match self.physical {
            PhysicalType::Bool => Scalar::Bool(self.bit(row)),
            PhysicalType::I64 => Scalar::I64(i64::from_le_bytes(self.fixed(row)?)),
            PhysicalType::I128 => Scalar::I128(i128::from_le_bytes(self.fixed(row)?)),
            PhysicalType::F64 => Scalar::F64(f64::from_le_bytes(self.fixed(row)?)),
            PhysicalType::Bytes => Scalar::Bytes(Cow::Borrowed(self.bytes(row)?)),
        })
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        Plain::parts(self, row, see);
    }

    fn touch(&self, row: usize) -> u8 {
        match self.physical {
            PhysicalType::Bytes => {
                // The byte is meaningless; damage is reported when the row is read.
                self.bytes(row).ok().and_then(|bytes| bytes.first().copied()).unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(self.values(start, len)?))
    }

    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let fixed = |width: usize| slice(self.data, start * width, len * width, ENDS_EARLY);
        let (ranges, domain) = (predicate.numbers(), domain(self.physical));
        match self.physical {
            PhysicalType::Bool => {
                let pass = [predicate.accepts_number(0), predicate.accepts_number(1)];
                (start..start + len).for_each(|row| out.push(pass[self.bit(row) as usize]));
            }
            PhysicalType::I64 => {
                Spans::<u64>::new(ranges, domain, 0).filter(
                    fixed(8)?.as_chunks::<8>().0,
                    u64::from_le_bytes,
                    out,
                );
            }
            PhysicalType::F64 => {
                let order = |raw| key::order_f64(f64::from_le_bytes(raw));
                Spans::<u64>::new(ranges, domain, 0).filter(
                    fixed(8)?.as_chunks::<8>().0,
                    order,
                    out,
                );
            }
            PhysicalType::I128 => {
                Spans::<u128>::new(ranges, domain, 0).filter(
                    fixed(16)?.as_chunks::<16>().0,
                    u128::from_le_bytes,
                    out,
                );
            }
            PhysicalType::Bytes => {
                for row in start..start + len {
                    out.push(predicate.accepts_bytes(self.bytes(row)?));
                }
            }
        }
        Ok(())
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        match (self.pick(rows), rows.first(), rows.last()) {
            (Ok(values), _, _) => Ok(Form::Flat(values)),
            // Damage, or a row repeated often enough to look like damage: decoding in order
            // distinguishes them.
            (Err(_), Some(&first), Some(&last)) => {
                let all = self.values(first as usize, (last - first) as usize + 1)?;
                Ok(Form::Flat(all.take(rows.iter().map(|row| row - first))))
            }
            (Err(error), _, _) => Err(error),
        }
    }
}
