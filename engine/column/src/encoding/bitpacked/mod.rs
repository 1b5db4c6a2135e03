//! Bit-packed frame of reference: integers as differences from a reference, in just enough bits.
//!
//! Body: one entry for every sub-block of 1,024 rows, then packed words. An entry is the reference
//! (the smallest value; 8 bytes for `I64` and dictionary codes, 16 for `I128`), a `u32` offset of
//! its words (in 8-byte words from the first word), a `u8` width in bits (0 to 64) and three zero
//! bytes. Reading one value thus takes an entry and its bits. Differences of up to 32 bits are
//! packed in 32 lanes of 32-bit words, wider ones in 16 lanes of 64-bit words ([`crate::pack`]).

use super::read::{array_at, corrupt, slice};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::kernel::Predicate;
use crate::kernel::predicate::Range;
use crate::kernel::spans::Spans;
use crate::pack::{pack, packed_bytes, pick, picked, sum, unpack, width_of};
use crate::{Bitmap, Form, Scalar, Values};
use groups::Groups;
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};

mod groups;
mod integer;

pub(crate) use integer::Integer;

/// Rows of a sub-block.
pub(crate) const SUB_ROWS: usize = 1024;
/// Lanes for differences of up to [`NARROW`] bits, and for wider ones.
const LANES_32: usize = 32;
const LANES_64: usize = 16;
/// Maximum width of differences packed in 32-bit words, in bits.
const NARROW: u32 = 32;
/// Number of rows of a sub-block from which unpacking all of it beats picking them one by one.
pub(super) const UNPACK_FROM: usize = 96;
const _: () = assert!(SUB_ROWS.is_multiple_of(LANES_32) && SUB_ROWS.is_multiple_of(LANES_64));
const ENDS_EARLY: &str = "bit-packed values end early";

/// Size of the words of a sub-block, in bytes.
fn words_bytes(rows: usize, width: u32) -> usize {
    debug_assert!(rows <= SUB_ROWS && width <= 64, "a sub-block of {rows} rows of {width} bits");
    match width {
        0..=NARROW => packed_bytes::<u32, LANES_32>(rows, width),
        _ => packed_bytes::<u64, LANES_64>(rows, width),
    }
}

/// Appends the body if the values are integers and their range fits in 64 bits in each sub-block.
pub(crate) fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    match input.values {
        Values::I64(v) => encode_integers(v, input, out),
        Values::I128(v) => encode_integers(v, input, out),
        _ => false,
    }
}

/// Length of the body that [`encode`] would append, in bytes.
pub(crate) fn encoded_size(input: Input<'_>) -> Option<usize> {
    match input.values {
        Values::I64(v) => frames(v, input).map(|frames| size(&frames, i64::BYTES)),
        Values::I128(v) => frames(v, input).map(|frames| size(&frames, i128::BYTES)),
        _ => None,
    }
}

/// Reference and width of one sub-block.
struct Frame<T> {
    reference: T,
    width: u32,
    rows: usize,
}

/// The frames of all sub-blocks, over their non-null rows; `None` if a range exceeds 64 bits.
fn frames<T: Integer>(values: &[T], input: Input<'_>) -> Option<Vec<Frame<T>>> {
    let values = &values[input.start..input.start + input.len];
    let frame = |(index, sub): (usize, &[T])| {
        let mut range: Option<(T, T)> = None;
        if input.validity.is_none() {
            let (mut low, mut high) = (sub[0], sub[0]);
            for &v in sub {
                low = low.min(v);
                high = high.max(v);
            }
            range = Some((low, high));
        } else {
            for (row, &v) in sub.iter().enumerate() {
                if input.is_valid(index * SUB_ROWS + row) {
                    range = Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))));
                }
            }
        }
        // Without values the frame is that of zeroes: no bits per row.
        let (low, high) = range.unwrap_or_default();
        debug_assert!(low <= high, "least value above the greatest");
        Some(Frame { reference: low, width: width_of(high.difference(low)?), rows: sub.len() })
    };
    values.chunks(SUB_ROWS).enumerate().map(frame).collect()
}

fn size<T>(frames: &[Frame<T>], reference: usize) -> usize {
    frames.iter().map(|f| reference + 8 + words_bytes(f.rows, f.width)).sum()
}

/// Appends the body of integers of one type if their range fits in 64 bits in each sub-block.
pub(crate) fn encode_integers<T: Integer>(
    values: &[T],
    input: Input<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let Some(frames) = frames(values, input) else { return false };
    let (head, expected) = (out.len(), size(&frames, T::BYTES));
    out.reserve(expected);
    let mut offset = 0;
    for frame in &frames {
        frame.reference.write(out);
        out.put_u32(offset as u32);
        out.put_u32(frame.width);
        offset += words_bytes(frame.rows, frame.width) / 8;
    }
    let (mut narrow, mut wide) = ([0u32; SUB_ROWS], [0u64; SUB_ROWS]);
    for (index, frame) in frames.iter().enumerate() {
        let start = input.start + index * SUB_ROWS;
        let sub = &values[start..start + frame.rows];
        let valid = |row: usize| input.validity.is_none() || input.is_valid(index * SUB_ROWS + row);
        let difference = |row: usize, v: &T| {
            if !valid(row) {
                return 0;
            }
            let difference = v.difference(frame.reference);
            invariant!(difference.is_some(), "value {} outside its frame", v.number());
            difference.unwrap_or(0)
        };
        if frame.width <= NARROW {
            let pairs = narrow.iter_mut().zip(sub).enumerate();
            pairs.for_each(|(row, (out, v))| *out = difference(row, v) as u32);
            pack::<u32, LANES_32>(&narrow[..frame.rows], frame.width, out);
        } else {
            wide.iter_mut()
                .zip(sub)
                .enumerate()
                .for_each(|(row, (out, v))| *out = difference(row, v));
            pack::<u64, LANES_64>(&wide[..frame.rows], frame.width, out);
        }
    }
    let written = out.len() - head;
    invariant!(written == expected, "bit-packed body of {written} bytes instead of {expected}");
    true
}

/// A bit-packed body.
pub(crate) struct BitPacked<'a> {
    physical: PhysicalType,
    entries: &'a [u8],
    words: &'a [u8],
    rows: usize,
}

/// A sub-block: its reference, its width, and its words.
struct Sub<'a, T> {
    reference: T,
    width: u32,
    words: &'a [u8],
    rows: usize,
}

impl<T: Integer> Sub<'_, T> {
    /// The difference of one row.
    #[inline(always)]
    fn difference(&self, row: usize) -> u64 {
        debug_assert!(row < self.rows, "row {row} of a sub-block of {}", self.rows);
        match self.width {
            0..=NARROW => pick::<u32, LANES_32>(self.words, self.width, row) as u64,
            _ => pick::<u64, LANES_64>(self.words, self.width, row),
        }
    }

    #[inline(always)]
    fn value(&self, row: usize) -> T {
        self.reference.plus(self.difference(row))
    }

    /// Appends the values of rows `from..to`.
    #[inline]
    fn append(&self, from: usize, to: usize, out: &mut Vec<T>) {
        debug_assert!(from <= to && to <= self.rows, "rows {from}..{to} of {}", self.rows);
        let (before, reference) = (out.len(), self.reference);
        let lanes = if self.width <= NARROW { LANES_32 } else { LANES_64 };
        let (first, last) = (from / lanes, to.div_ceil(lanes));
        out.reserve((last - first) * lanes);
        if self.width == 0 {
            out.resize(before + (last - first) * lanes, reference);
        } else if self.width <= NARROW {
            unpack::<u32, LANES_32>(self.words, self.width, first, last, |group| {
                out.extend_from_slice(&group.map(|difference| reference.plus(difference as u64)));
            });
        } else {
            unpack::<u64, LANES_64>(self.words, self.width, first, last, |group| {
                out.extend_from_slice(&group.map(|difference| reference.plus(difference)));
            });
        }
        if !from.is_multiple_of(lanes) {
            out.drain(before..before + from % lanes);
        }
        out.truncate(before + to - from);
        debug_assert_eq!(out.len(), before + to - from, "values of a sub-block");
    }
}

impl<'a> BitPacked<'a> {
    /// Reads the head of a body. `physical` is `I64` for dictionary codes.
    pub(crate) fn read(
        bytes: &'a [u8],
        physical: PhysicalType,
        rows: usize,
    ) -> Result<BitPacked<'a>> {
        let reference = match physical {
            PhysicalType::I64 => i64::BYTES,
            PhysicalType::I128 => i128::BYTES,
            _ => return Err(corrupt("bit packing of a type other than an integer")),
        };
        let entries = slice(bytes, 0, rows.div_ceil(SUB_ROWS) * (reference + 8), ENDS_EARLY)?;
        let words = &bytes[entries.len()..];
        Ok(BitPacked { physical, entries, words, rows })
    }

    #[inline]
    fn sub<T: Integer>(&self, index: usize) -> Result<Sub<'a, T>> {
        debug_assert_eq!(
            T::BYTES,
            if self.physical == PhysicalType::I128 { i128::BYTES } else { i64::BYTES },
            "bytes of the references of {:?}",
            self.physical
        );
        let entry = slice(self.entries, index * (T::BYTES + 8), T::BYTES + 8, ENDS_EARLY)?;
        let (reference, rest) = entry.split_at(T::BYTES);
        let rest = u64::from_le_bytes(array_at(rest, 0, ENDS_EARLY)?);
        let (offset, width) = (rest as u32 as usize, (rest >> 32) as u32);
        if width > 64 {
            return Err(corrupt("bit-packed width above 64"));
        }
        let rows = SUB_ROWS.min(self.rows - index * SUB_ROWS);
        let len = words_bytes(rows, width);
        match self.words.get(offset.saturating_mul(8)..).and_then(|words| words.get(..len)) {
            Some(words) => Ok(Sub { reference: T::read(reference), width, words, rows }),
            None => Err(corrupt(ENDS_EARLY)),
        }
    }

    /// Passes the head: the entries.
    pub(super) fn head(&self, see: See<'_, 'a>) {
        see(self.entries);
    }

    /// Passes the words of rows `from` to `to`, both included, of one sub-block.
    pub(super) fn parts(&self, from: usize, to: usize, see: See<'_, 'a>) {
        let index = from / SUB_ROWS;
        debug_assert!(index == to / SUB_ROWS, "rows {from} to {to} leave their sub-block");
        let sub = match self.physical {
            PhysicalType::I128 => self.sub::<i128>(index).map(|sub| (sub.width, sub.words)),
            _ => self.sub::<i64>(index).map(|sub| (sub.width, sub.words)),
        };
        // Damage is reported when the row is read.
        let Ok((width, words)) = sub else { return };
        let (from, to) = (from % SUB_ROWS, to % SUB_ROWS);
        let range = match width {
            0..=NARROW => picked::<u32, LANES_32>(width, from, to),
            _ => picked::<u64, LANES_64>(width, from, to),
        };
        debug_assert!(range.start <= range.end, "words {range:?} of rows {from} to {to}");
        see(words.get(range.start..range.end.min(words.len())).unwrap_or_default());
    }

    /// Decodes one value.
    #[inline]
    pub(super) fn one<T: Integer>(&self, row: usize) -> Result<T> {
        Ok(self.sub::<T>(row / SUB_ROWS)?.value(row % SUB_ROWS))
    }

    /// The wrapping sum of a few values within one sub-block.
    #[inline]
    pub(super) fn sum(&self, start: usize, len: usize) -> Result<i64> {
        if len == 0 {
            return Ok(0);
        }
        let sub = self.sub::<i64>(start / SUB_ROWS)?;
        let start = start % SUB_ROWS;
        debug_assert!(start + len <= SUB_ROWS, "rows {start}+{len} leave their sub-block");
        if sub.width <= NARROW && start / LANES_32 == (start + len - 1) / LANES_32 {
            let differences = sum::<LANES_32>(sub.words, sub.width, start, len) as i64;
            return Ok(sub.reference.wrapping_mul(len as i64).wrapping_add(differences));
        }
        Ok((start..start + len).map(|row| sub.value(row)).fold(0, i64::wrapping_add))
    }

    /// Decodes the values of a range.
    pub(super) fn range<T: Integer>(&self, start: usize, len: usize) -> Result<Vec<T>> {
        // Reserves space for the rows that an unaligned start unpacks in front, and for those of a
        // partial last group of lanes.
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let mut out: Vec<T> = Vec::with_capacity(len + 2 * LANES_32);
        let end = start + len;
        let mut at = start;
        while at < end {
            let index = at / SUB_ROWS;
            let sub = self.sub::<T>(index)?;
            let (from, to) = (at % SUB_ROWS, sub.rows.min(end - index * SUB_ROWS));
            sub.append(from, to, &mut out);
            at += to - from;
        }
        Ok(out)
    }

    /// Decodes the values at ascending rows.
    pub(super) fn some<T: Integer>(&self, rows: &[u32]) -> Result<Vec<T>> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let mut out = Vec::with_capacity(rows.len());
        for run in rows.chunk_by(|a, b| *a as usize / SUB_ROWS == *b as usize / SUB_ROWS) {
            let index = run[0] as usize / SUB_ROWS;
            if run.len() >= UNPACK_FROM {
                let start = index * SUB_ROWS;
                let all = self.range::<T>(start, SUB_ROWS.min(self.rows - start))?;
                out.extend(run.iter().map(|row| all[*row as usize - start]));
            } else {
                let sub = self.sub::<T>(index)?;
                out.extend(run.iter().map(|row| sub.value(*row as usize % SUB_ROWS)));
            }
        }
        Ok(out)
    }

    /// Appends a bit for every row: whether its value lies in one of the ranges. Shifts the ranges
    /// by each reference instead of every value, and does not unpack a sub-block whose frame lies
    /// inside or outside all of them.
    pub(super) fn filter_as<T: Integer>(
        &self,
        ranges: &[Range],
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let (end, before) = (start + len, out.len());
        let mut at = start;
        while at < end {
            let index = at / SUB_ROWS;
            let sub = self.sub::<T>(index)?;
            let (from, to) = (at % SUB_ROWS, sub.rows.min(end - index * SUB_ROWS));
            let origin = sub.reference.number();
            // A width of 0 shifts all bits out.
            let greatest = u64::MAX.checked_shr(64 - sub.width).unwrap_or(0);
            let frame = (origin, origin.saturating_add(greatest as i128));
            if sub.width <= NARROW {
                let spans = Spans::<u32>::new(ranges, frame, origin);
                match spans.same_for_all() {
                    Some(answer) => out.extend_run(answer, to - from),
                    None => {
                        let mut put = Groups::new(from, to, LANES_32, out);
                        unpack::<u32, LANES_32>(
                            sub.words,
                            sub.width,
                            from / LANES_32,
                            to.div_ceil(LANES_32),
                            |group| {
                                put.push(spans.test(&group));
                            },
                        );
                    }
                }
            } else {
                let spans = Spans::<u64>::new(ranges, frame, origin);
                match spans.same_for_all() {
                    Some(answer) => out.extend_run(answer, to - from),
                    None => {
                        let mut put = Groups::new(from, to, LANES_64, out);
                        unpack::<u64, LANES_64>(
                            sub.words,
                            sub.width,
                            from / LANES_64,
                            to.div_ceil(LANES_64),
                            |group| {
                                put.push(spans.test(&group));
                            },
                        );
                    }
                }
            }
            at += to - from;
        }
        debug_assert_eq!(out.len(), before + len, "bits of filtered integers");
        Ok(())
    }
}

impl<'a> Scheme<'a> for BitPacked<'a> {
    const NAME: &'static str = "bitpacked";
    const OFFER: Offer = Offer::InsteadOfPlain;

    fn suits(input: Input<'_>, rival: usize) -> bool {
        encoded_size(input).is_some_and(|size| size < rival)
    }

    /// Reading packed integers is as fast as reading plain ones, so any saving pays.
    fn pays(_bytes: usize, _rival: usize) -> bool {
        true
    }

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    #[inline]
    fn open(source: Source<'a>) -> Result<BitPacked<'a>> {
        BitPacked::read(source.bytes, source.physical, source.rows)
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        BitPacked::read(source.bytes, source.physical, source.rows)?.head(see);
        Ok(true)
    }
}

impl<'a> Body<'a> for BitPacked<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(match self.physical {
            PhysicalType::I128 => Scalar::I128(self.one(row)?),
            _ => Scalar::I64(self.one(row)?),
        })
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        BitPacked::parts(self, row, row, see);
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(match self.physical {
            PhysicalType::I128 => Values::I128(self.range(start, len)?),
            _ => Values::I64(self.range(start, len)?),
        }))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        Ok(Form::Flat(match self.physical {
            PhysicalType::I128 => Values::I128(self.some(rows)?),
            _ => Values::I64(self.some(rows)?),
        }))
    }

    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        match self.physical {
            PhysicalType::I128 => self.filter_as::<i128>(predicate.numbers(), start, len, out),
            _ => self.filter_as::<i64>(predicate.numbers(), start, len, out),
        }
    }
}
