//! The real kind, for doubles that are not short decimals: the front bits, which vary little, go
//! into a small dictionary; the back bits are stored unchanged.
//!
//! The two parameters of the head are `shift`, the number of low bits that are zero in all values,
//! and `back`, the number of bits above them that are packed unchanged. Packed numbers: 8 words of
//! 64 bits (the dictionary of front bits), the `u32` length in bytes of the codes and four zero
//! bytes, the codes, the back bits, both as bit-packed bodies of 64-bit integers. A value is
//! `(dictionary[code] << back | back bits) << shift`. A `FLOAT` has 29 low bits that are zero.

use super::decimal::sample;
use super::layout::{ENDS_EARLY, EXCEPTION_BITS, Exponents, Numbers, REAL, VECTOR};
use crate::Values;
use crate::encoding::bitpacked::{self, BitPacked};
use crate::encoding::read::{array_at, corrupt, slice, u32_at};
use crate::encoding::scheme::{Input, See};
use nacre_types::bytes::Write;
use nacre_types::{PhysicalType, Result, invariant};

/// Number of entries in the dictionary of fronts.
const FRONTS: usize = 8;
const CODE_BITS: usize = 3;
/// Maximum length of a front, in bits.
const FRONT_BITS: u32 = 16;
const SAMPLE: usize = 256;

/// Where doubles are split into front and back.
pub(super) struct Split {
    shift: u32,
    back: u32,
    fronts: Vec<u64>,
}

impl Split {
    fn front(&self, value: f64) -> u64 {
        value.to_bits() >> self.shift >> self.back
    }
}

/// The best split for a sample, and its estimated bits per value.
pub(super) fn split(values: &[f64]) -> (Split, usize) {
    let all = values.iter().fold(0, |all, value| all | value.to_bits());
    // Leaves at least the bits of the longest front.
    let shift = all.trailing_zeros().min(63 - FRONT_BITS);
    let sample: Vec<u64> = sample(values, SAMPLE).map(|value| value.to_bits() >> shift).collect();
    let significant = 64 - shift;
    let mut best =
        (Split { shift, back: significant - FRONT_BITS, fronts: Vec::new() }, usize::MAX);
    for front_bits in 1..=FRONT_BITS {
        let back = significant - front_bits;
        let mut fronts: Vec<u64> = sample.iter().map(|bits| bits >> back).collect();
        fronts.sort_unstable();
        let mut counted: Vec<(usize, u64)> =
            fronts.chunk_by(|a, b| a == b).map(|run| (run.len(), run[0])).collect();
        counted.sort_unstable_by(|a, b| b.cmp(a));
        counted.truncate(FRONTS);
        let exceptions = sample.len() - counted.iter().map(|(count, _)| count).sum::<usize>();
        let bits = sample.len() * (back as usize + CODE_BITS) + exceptions * EXCEPTION_BITS;
        if bits < best.1 {
            let fronts = counted.into_iter().map(|(_, front)| front).collect();
            best = (Split { shift, back, fronts }, bits);
        }
    }
    (best.0, best.1 / sample.len().max(1))
}

/// Encodes rows with a split.
pub(super) fn encode(values: &[f64], valid: &dyn Fn(usize) -> bool, split: &Split) -> Numbers {
    let (mut codes, mut backs) =
        (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
    let mut exceptions = Vec::new();
    for (row, value) in values.iter().enumerate() {
        let front = split.front(*value);
        match split.fronts.iter().position(|known| *known == front).filter(|_| valid(row)) {
            Some(code) => {
                codes.push(code as i64);
                backs.push(((value.to_bits() >> split.shift) & ((1 << split.back) - 1)) as i64);
            }
            None => {
                codes.push(0);
                // A repeated number widens no range; without a predecessor it is 0.
                backs.push(backs.last().copied().unwrap_or(0));
                if valid(row) {
                    exceptions.push(row);
                }
            }
        }
    }
    debug_assert!(
        codes.len() == values.len() && backs.len() == values.len(),
        "{} fronts and {} backs of {} doubles",
        codes.len(),
        backs.len(),
        values.len()
    );
    invariant!(split.fronts.len() <= FRONTS, "{} fronts", split.fronts.len());
    invariant!(split.shift + split.back < 64, "a cut at {}+{}", split.shift, split.back);
    let mut packed = Vec::new();
    // Unused entries are zero.
    (0..FRONTS).for_each(|at| packed.put_u64(split.fronts.get(at).copied().unwrap_or(0)));
    let body = |values: Vec<i64>| {
        let mut out = Vec::new();
        let held = bitpacked::encode(Input::new(&Values::I64(values), None), &mut out);
        invariant!(held, "64-bit integers do not pack");
        out
    };
    let codes = body(codes);
    packed.put_u64(codes.len() as u64);
    packed.extend_from_slice(&codes);
    packed.extend_from_slice(&body(backs));
    let exponents = vec![Exponents::default(); values.len().div_ceil(VECTOR)];
    Numbers {
        kind: REAL,
        parameters: [split.shift as u8, split.back as u8],
        packed,
        exponents,
        exceptions,
    }
}

/// Packed numbers of the real kind.
pub(super) struct Real<'a> {
    shift: u32,
    back: u32,
    fronts: [u64; FRONTS],
    codes: BitPacked<'a>,
    backs: BitPacked<'a>,
}

impl<'a> Real<'a> {
    /// Reads the head of the packed numbers.
    pub fn read(bytes: &'a [u8], [shift, back]: [u8; 2], rows: usize) -> Result<Real<'a>> {
        if shift as u32 + back as u32 >= 64 {
            return Err(corrupt("doubles are cut past their end"));
        }
        let mut fronts = [0; FRONTS];
        for (at, front) in fronts.iter_mut().enumerate() {
            *front = u64::from_le_bytes(array_at(bytes, at * 8, ENDS_EARLY)?);
        }
        let length = u32_at(bytes, FRONTS * 8, ENDS_EARLY)?;
        let codes = slice(bytes, FRONTS * 8 + 8, length, ENDS_EARLY)?;
        Ok(Real {
            shift: shift as u32,
            back: back as u32,
            fronts,
            codes: BitPacked::read(codes, PhysicalType::I64, rows)?,
            backs: BitPacked::read(&bytes[FRONTS * 8 + 8 + length..], PhysicalType::I64, rows)?,
        })
    }

    /// Passes the head of the packed numbers `bytes`: the dictionary, and the entries.
    pub fn head(&self, bytes: &'a [u8], see: See<'_, 'a>) -> Result<()> {
        see(slice(bytes, 0, FRONTS * 8 + 8, ENDS_EARLY)?);
        self.codes.head(see);
        self.backs.head(see);
        Ok(())
    }

    /// Passes the words of a row.
    pub fn parts(&self, row: usize, see: See<'_, 'a>) {
        debug_assert!(self.shift + self.back < 64, "a cut at {}+{}", self.shift, self.back);
        self.codes.parts(row, row, see);
        self.backs.parts(row, row, see);
    }

    #[inline(always)]
    fn value(&self, code: u32, back: i64) -> f64 {
        let front = self.fronts[code as usize % FRONTS];
        f64::from_bits((front << self.back | back as u64) << self.shift)
    }

    #[inline]
    pub fn one(&self, row: usize) -> Result<f64> {
        Ok(self.value(self.codes.one(row)?, self.backs.one(row)?))
    }

    pub fn range(&self, start: usize, len: usize) -> Result<Vec<f64>> {
        let codes: Vec<u32> = self.codes.range(start, len)?;
        let backs: Vec<i64> = self.backs.range(start, len)?;
        Ok(codes.iter().zip(&backs).map(|(code, back)| self.value(*code, *back)).collect())
    }
}
