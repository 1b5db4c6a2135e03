//! ALP: stores doubles as the decimal integers they were written from (Afroozeh, Kuffó and Boncz,
//! *ALP: Adaptive Lossless floating-Point Compression*, SIGMOD 2024).
//!
//! Body: a head of 8 bytes, one entry of 8 bytes for every vector of 1,024 rows, the packed
//! numbers, the exceptions. Head: kind (`u8`: 0 decimal, 1 real), flags (`u8`: 1 = single
//! precision), two bytes that depend on the kind, then the `u32` length in bytes of the packed
//! numbers. Entry: exponent and factor (`u8` each, decimal only), number of exceptions (`u16`),
//! their offset (`u32`, in 8-byte words). Exceptions of a vector: their rows in it, ascending
//! (`u16` each), zeroes up to a multiple of 8 bytes, then their values (8 bytes each). Reading one
//! row thus takes an entry, a search among the exceptions of its vector and one packed number.
//!
//! *Decimal*: one bit-packed body of integers `d`; a value is `d · 10^factor · 10^-exponent`.
//! *Real* (doubles that are not short decimals): see [`real`]. With single precision the product is
//! rounded to a `FLOAT`. A value that does not round-trip bit by bit is an exception; so are NaN,
//! −0 and infinities.

use super::bitpacked::{self, BitPacked};
use super::read::{array_at, corrupt, slice, u32_at};
use super::scheme::{Body, Input, Offer, Scheme, See, Shared, Source};
use crate::kernel::{Predicate, filter_form};
use crate::{Bitmap, Form, Scalar, Values};
use decimal::{Decoder, decode_all};
use layout::{DECIMAL, ENDS_EARLY, ENTRY_BYTES, Exponents, HEAD_BYTES, REAL, SINGLE, VECTOR};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};
use real::Real;

mod decimal;
mod layout;
mod real;
#[cfg(test)]
mod tests;

/// Whether a double is a widened `FLOAT`.
fn is_single(value: f64) -> bool {
    (value as f32 as f64).to_bits() == value.to_bits() || value.is_nan()
}

/// Appends the body if the values are doubles.
fn encode(input: Input<'_>, out: &mut Vec<u8>) -> bool {
    let Values::F64(values) = input.values else { return false };
    let values = &values[input.start..input.start + input.len];
    let valid = |row: usize| input.is_valid(row);
    let there: Vec<f64> = (0..input.len).filter(|row| valid(*row)).map(|row| values[row]).collect();
    let single = there.iter().all(|v| is_single(*v));
    let (candidates, decimal_bits) = decimal::candidates(&there, single);
    let (split, real_bits) = real::split(&there);
    let numbers = if decimal_bits <= real_bits {
        decimal::encode(values, &valid, &candidates, single)
    } else {
        real::encode(values, &valid, &split)
    };
    invariant!(
        numbers.exponents.len() == values.len().div_ceil(VECTOR),
        "{} vectors of {} doubles",
        numbers.exponents.len(),
        values.len()
    );
    debug_assert!(numbers.exceptions.is_sorted_by(|a, b| a < b), "exceptions do not ascend");
    out.extend_from_slice(&[numbers.kind, if single { SINGLE } else { 0 }]);
    out.extend_from_slice(&numbers.parameters);
    out.put_u32(numbers.packed.len() as u32);
    let mut stored = Vec::new();
    let mut exceptions = &numbers.exceptions[..];
    for (vector, exponents) in numbers.exponents.iter().enumerate() {
        let (own, rest) =
            exceptions.split_at(exceptions.partition_point(|row| *row < (vector + 1) * VECTOR));
        exceptions = rest;
        out.extend_from_slice(&[exponents.exponent, exponents.factor]);
        out.put_u16(own.len() as u16);
        out.put_u32((stored.len() / 8) as u32);
        own.iter().for_each(|row| stored.put_u16((row % VECTOR) as u16));
        stored.resize(stored.len().next_multiple_of(8), 0);
        own.iter().for_each(|row| stored.put_u64(values[*row].to_bits()));
    }
    invariant!(exceptions.is_empty(), "{} exceptions after the last vector", exceptions.len());
    out.extend_from_slice(&numbers.packed);
    out.extend_from_slice(&stored);
    true
}

/// The packed numbers of either kind.
enum Kind<'a> {
    Decimal(BitPacked<'a>),
    Real(Real<'a>),
}

/// A body of doubles.
pub(crate) struct Alp<'a> {
    kind: Kind<'a>,
    single: bool,
    entries: &'a [u8],
    exceptions: &'a [u8],
    rows: usize,
}

/// The exceptions of one vector: rows in it, and values.
struct Exceptions<'a> {
    rows: &'a [[u8; 2]],
    values: &'a [[u8; 8]],
}

impl Exceptions<'_> {
    #[inline]
    fn find(&self, row: usize) -> Option<f64> {
        if self.rows.is_empty() {
            return None;
        }
        let at =
            self.rows.binary_search_by_key(&row, |row| u16::from_le_bytes(*row) as usize).ok()?;
        self.values.get(at).map(|value| f64::from_le_bytes(*value))
    }

    fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        let rows = self.rows.iter().map(|row| u16::from_le_bytes(*row) as usize);
        rows.zip(self.values.iter().map(|value| f64::from_le_bytes(*value)))
    }
}

impl<'a> Alp<'a> {
    /// The exponents and exceptions of one vector.
    #[inline]
    fn vector(&self, index: usize) -> Result<(Exponents, Exceptions<'a>)> {
        let entry: [u8; ENTRY_BYTES] = array_at(self.entries, index * ENTRY_BYTES, ENDS_EARLY)?;
        let [exponent, factor, c0, c1, o0, o1, o2, o3] = entry;
        let exponents = Exponents { exponent, factor };
        let count = u16::from_le_bytes([c0, c1]) as usize;
        if count == 0 {
            return Ok((exponents, Exceptions { rows: &[], values: &[] }));
        }
        let start = (u32::from_le_bytes([o0, o1, o2, o3]) as usize).saturating_mul(8);
        let rows_bytes = (count * 2).next_multiple_of(8);
        let all = slice(self.exceptions, start, rows_bytes + count * 8, ENDS_EARLY)?;
        let (rows, values) = all.split_at(rows_bytes);
        Ok((
            exponents,
            Exceptions { rows: &rows.as_chunks().0[..count], values: values.as_chunks().0 },
        ))
    }

    #[inline]
    fn one(&self, row: usize) -> Result<f64> {
        let (exponents, exceptions) = self.vector(row / VECTOR)?;
        if let Some(value) = exceptions.find(row % VECTOR) {
            return Ok(value);
        }
        match &self.kind {
            Kind::Decimal(integers) => {
                Ok(Decoder::of(exponents, self.single).decode(integers.one(row)?))
            }
            Kind::Real(real) => real.one(row),
        }
    }

    fn range(&self, start: usize, len: usize) -> Result<Vec<f64>> {
        let integers = match &self.kind {
            Kind::Decimal(integers) => integers.range::<i64>(start, len)?,
            Kind::Real(_) => Vec::new(),
        };
        let mut out = match &self.kind {
            Kind::Decimal(_) => Vec::with_capacity(len),
            Kind::Real(real) => real.range(start, len)?,
        };
        debug_assert!(start + len <= self.rows, "rows {start}+{len} of {}", self.rows);
        let mut at = start;
        while at < start + len {
            let index = at / VECTOR;
            let to = ((index + 1) * VECTOR).min(start + len);
            let (exponents, exceptions) = self.vector(index)?;
            if let Some(integers) = integers.get(at - start..to - start) {
                decode_all(integers, Decoder::of(exponents, self.single), &mut out);
            }
            for (row, value) in exceptions.iter() {
                let row = index * VECTOR + row;
                if row >= at
                    && row < to
                    && let Some(slot) = out.get_mut(row - start)
                {
                    *slot = value;
                }
            }
            at = to;
        }
        debug_assert_eq!(out.len(), len, "doubles of a range");
        Ok(out)
    }
}

impl<'a> Scheme<'a> for Alp<'a> {
    const NAME: &'static str = "alp";
    const OFFER: Offer = Offer::InsteadOfPlain;

    fn suits(input: Input<'_>, _rival: usize) -> bool {
        matches!(input.values, Values::F64(_))
    }

    /// The multiplication and the check for exceptions must save a tenth of the space.
    fn pays(bytes: usize, rival: usize) -> bool {
        bytes * 10 < rival * 9
    }

    fn encode(input: Input<'_>, _shared: Shared<'_>, out: &mut Vec<u8>) -> bool {
        encode(input, out)
    }

    fn open(source: Source<'a>) -> Result<Alp<'a>> {
        let Source { bytes, physical, rows, .. } = source;
        let [kind, flags, p0, p1] = array_at(bytes, 0, ENDS_EARLY)?;
        let length = u32_at(bytes, 4, ENDS_EARLY)?;
        if physical != PhysicalType::F64 || flags > SINGLE {
            return Err(corrupt("decimals of doubles of the wrong type or kind"));
        }
        let entries = slice(bytes, HEAD_BYTES, rows.div_ceil(VECTOR) * ENTRY_BYTES, ENDS_EARLY)?;
        let packed = slice(bytes, HEAD_BYTES + entries.len(), length, ENDS_EARLY)?;
        let exceptions = &bytes[HEAD_BYTES + entries.len() + length..];
        let kind = match kind {
            DECIMAL => Kind::Decimal(BitPacked::read(packed, PhysicalType::I64, rows)?),
            REAL => Kind::Real(Real::read(packed, [p0, p1], rows)?),
            _ => return Err(corrupt("unknown kind of doubles")),
        };
        Ok(Alp { kind, single: flags == SINGLE, entries, exceptions, rows })
    }

    fn head(source: Source<'a>, see: See<'_, 'a>) -> Result<bool> {
        let body = Alp::open(source)?;
        let entries = HEAD_BYTES + body.entries.len();
        debug_assert!(entries <= source.bytes.len(), "entries of {entries} bytes");
        see(slice(source.bytes, 0, entries, ENDS_EARLY)?);
        match &body.kind {
            Kind::Decimal(integers) => integers.head(see),
            Kind::Real(real) => real.head(&source.bytes[entries..], see)?,
        }
        Ok(true)
    }
}

impl<'a> Body<'a> for Alp<'a> {
    fn get(&self, row: usize) -> Result<Scalar<'a>> {
        Ok(Scalar::F64(self.one(row)?))
    }

    fn parts(&self, row: usize, see: See<'_, 'a>) {
        debug_assert!(row < self.rows, "row {row} of {} doubles", self.rows);
        if let Ok((_, exceptions)) = self.vector(row / VECTOR) {
            see(exceptions.rows.as_flattened());
            see(exceptions.values.as_flattened());
        }
        match &self.kind {
            Kind::Decimal(integers) => integers.parts(row, row, see),
            Kind::Real(real) => real.parts(row, see),
        }
    }

    fn decode(&self, start: usize, len: usize) -> Result<Form> {
        Ok(Form::Flat(Values::F64(self.range(start, len)?)))
    }

    fn take(&self, rows: &[u32]) -> Result<Form> {
        debug_assert!(rows.is_sorted(), "rows to take do not ascend");
        let mut out = Vec::with_capacity(rows.len());
        for run in rows.chunk_by(|a, b| *a as usize / VECTOR == *b as usize / VECTOR) {
            let start = run[0] as usize / VECTOR * VECTOR;
            if run.len() >= bitpacked::UNPACK_FROM {
                let all = self.range(start, VECTOR.min(self.rows - start))?;
                out.extend(run.iter().map(|row| all[*row as usize - start]));
            } else {
                for row in run {
                    out.push(self.one(*row as usize)?);
                }
            }
        }
        Ok(Form::Flat(Values::F64(out)))
    }

    /// Decoding preserves order, so ranges of doubles are ranges of integers. Exceptions are tested
    /// one by one.
    fn filter(
        &self,
        predicate: &Predicate,
        start: usize,
        len: usize,
        out: &mut Bitmap,
    ) -> Result<()> {
        let Kind::Decimal(integers) = &self.kind else {
            filter_form(&self.decode(start, len)?, len, predicate, out);
            return Ok(());
        };
        let before = out.len();
        let mut known = None;
        let mut at = start;
        while at < start + len {
            let index = at / VECTOR;
            let to = ((index + 1) * VECTOR).min(start + len);
            let (exponents, exceptions) = self.vector(index)?;
            let ranges = match known.take() {
                Some((same, ranges)) if same == exponents => ranges,
                _ => Decoder::of(exponents, self.single).ranges(predicate.numbers()),
            };
            integers.filter_as::<i64>(&ranges, at, to - at, out)?;
            for (row, value) in exceptions.iter() {
                let row = index * VECTOR + row;
                if row >= at && row < to {
                    out.set(before + row - start, predicate.accepts(&Scalar::F64(value)));
                }
            }
            known = Some((exponents, ranges));
            at = to;
        }
        debug_assert_eq!(out.len(), before + len, "bits of filtered doubles");
        Ok(())
    }
}
