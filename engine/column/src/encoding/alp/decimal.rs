//! The decimal kind: selects exponent and factor from a sample, encodes and decodes.
//!
//! Floating-point multiplication yields the same bits on every machine, so a value that round-trips
//! when written round-trips everywhere. Integers stay within ±2^51, where adding a constant
//! converts between double and integer; unlike a conversion instruction, that vectorises.

use super::layout::{DECIMAL, EXCEPTION_BITS, Exponents, Numbers, VECTOR};
use crate::Values;
use crate::encoding::bitpacked;
use crate::encoding::scheme::Input;
use crate::kernel::predicate::Range;
use crate::pack::width_of;
use nacre_types::{invariant, key};

/// 10^0 to 10^18, all exact as a double.
const POWERS: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];
const INVERSES: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14,
    1e-15, 1e-16, 1e-17, 1e-18,
];
/// 2^52 + 2^51: adding it to a double leaves the nearest integer in the low bits.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// Maximum absolute value of an integer.
const LIMIT: i64 = 1 << 51;
/// Number of values sampled in a block to find candidates, and in a vector to choose among them.
const SAMPLE: usize = 64;
const SAMPLE_VECTOR: usize = 32;
const CANDIDATES: usize = 4;

/// Arithmetic for the exponents of a vector.
#[derive(Clone, Copy)]
pub(super) struct Decoder {
    up: f64,
    down: f64,
    single: bool,
}

/// The integer that decodes to exactly this value, if any.
#[inline(always)]
fn integer_of(value: f64, exponents: Exponents, decoder: Decoder) -> Option<i64> {
    let Exponents { exponent, factor } = exponents;
    let scaled = value * POWERS[exponent as usize] * INVERSES[factor as usize];
    let integer = (scaled + MAGIC).to_bits().wrapping_sub(MAGIC.to_bits()) as i64;
    let same = decoder.decode(integer).to_bits() == value.to_bits();
    (same && integer.unsigned_abs() <= LIMIT as u64).then_some(integer)
}

impl Decoder {
    /// Exponents beyond the tables are damage and decode to arbitrary doubles.
    #[inline]
    pub fn of(exponents: Exponents, single: bool) -> Decoder {
        let power = |table: &[f64; 19], at: u8| table.get(at as usize).copied().unwrap_or(0.0);
        let (up, down) = (power(&POWERS, exponents.factor), power(&INVERSES, exponents.exponent));
        Decoder { up, down, single }
    }

    /// The double that an integer represents.
    #[inline(always)]
    pub fn decode(self, integer: i64) -> f64 {
        let exact = f64::from_bits((integer as u64).wrapping_add(MAGIC.to_bits())) - MAGIC;
        let value = exact * self.up * self.down;
        if self.single { value as f32 as f64 } else { value }
    }

    /// The integers whose doubles lie in these ranges of [`key::order_f64`].
    pub fn ranges(self, ranges: &[Range]) -> Vec<Range> {
        let order = |integer: i64| key::order_f64(self.decode(integer)) as i128;
        // The first integer whose double is at or above a bound; one past the limit if there is
        // none.
        let first = |bound: i128| {
            let (mut low, mut high) = (-LIMIT, LIMIT + 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if order(middle) < bound { low = middle + 1 } else { high = middle }
            }
            low as i128
        };
        let one = |&(low, high): &Range| {
            Some((first(low), first(high + 1) - 1)).filter(|(low, high)| low <= high)
        };
        ranges.iter().filter_map(one).collect()
    }
}

/// Decodes integers and appends the doubles.
#[inline]
pub(super) fn decode_all(integers: &[i64], decoder: Decoder, out: &mut Vec<f64>) {
    // The precision is tested outside the loop, so that the loop vectorises.
    if decoder.single {
        out.extend(integers.iter().map(|d| Decoder { single: true, ..decoder }.decode(*d)));
    } else {
        out.extend(integers.iter().map(|d| Decoder { single: false, ..decoder }.decode(*d)));
    }
}

/// At most `most` of the values, evenly spaced.
pub(super) fn sample(values: &[f64], most: usize) -> impl Iterator<Item = f64> {
    values.iter().copied().step_by(values.len().div_ceil(most).max(1))
}

/// Estimates the size of the sampled values in bits.
fn bits(values: &[f64], exponents: Exponents, single: bool) -> usize {
    let decoder = Decoder::of(exponents, single);
    let (mut low, mut high, mut exceptions) = (i64::MAX, i64::MIN, 0);
    for value in values {
        match integer_of(*value, exponents, decoder) {
            Some(integer) => (low, high) = (low.min(integer), high.max(integer)),
            None => exceptions += 1,
        }
    }
    let width = if low > high { 0 } else { width_of((high - low) as u64) as usize };
    values.len() * width + exceptions * EXCEPTION_BITS
}

/// The best exponents for a sample, best first, and the bits per value of the best.
pub(super) fn candidates(values: &[f64], single: bool) -> (Vec<Exponents>, usize) {
    let sample: Vec<f64> = sample(values, SAMPLE).collect();
    // A factor above the exponent is for multiples of a power of ten; exponent 0 covers all of
    // them.
    let powers = POWERS.len() as u8;
    let factors = |e: u8| 0..if e == 0 { powers } else { e + 1 };
    let pairs =
        (0..powers).flat_map(|e| factors(e).map(move |f| Exponents { exponent: e, factor: f }));
    let mut found: Vec<(usize, Exponents)> =
        pairs.map(|pair| (bits(&sample, pair, single), pair)).collect();
    // Among equals, prefers the smallest powers: they have the fewest exceptions among values
    // outside the sample.
    found.sort_by_key(|(bits, pair)| (*bits, pair.exponent, pair.factor));
    found.truncate(CANDIDATES);
    let best = found.first().map_or(0, |(bits, _)| *bits);
    (found.into_iter().map(|(_, pair)| pair).collect(), best / sample.len().max(1))
}

/// Encodes rows, each vector with its best candidate.
pub(super) fn encode(
    values: &[f64],
    valid: &dyn Fn(usize) -> bool,
    candidates: &[Exponents],
    single: bool,
) -> Numbers {
    invariant!(!candidates.is_empty(), "no exponents to choose from");
    let mut integers = Vec::with_capacity(values.len());
    let (mut exponents, mut exceptions) = (Vec::new(), Vec::new());
    for (index, vector) in values.chunks(VECTOR).enumerate() {
        let some: Vec<f64> = {
            let step = vector.len().div_ceil(SAMPLE_VECTOR).max(1);
            let rows = (0..vector.len()).step_by(step).filter(|row| valid(index * VECTOR + row));
            rows.map(|row| vector[row]).collect()
        };
        let best = candidates
            .iter()
            .min_by_key(|pair| bits(&some, **pair, single))
            .copied()
            .unwrap_or_default();
        let decoder = Decoder::of(best, single);
        let start = integers.len();
        let mut holes = Vec::new();
        let mut filler = None;
        for (row, value) in vector.iter().enumerate() {
            let there = valid(index * VECTOR + row);
            match if there { integer_of(*value, best, decoder) } else { None } {
                Some(integer) => {
                    filler.get_or_insert(integer);
                    integers.push(integer);
                }
                None => {
                    holes.push(start + row);
                    integers.push(0);
                    if there {
                        exceptions.push(start + row);
                    }
                }
            }
        }
        // A row without an integer repeats one that widens no range, or 0 if there is none.
        holes.into_iter().for_each(|row| integers[row] = filler.unwrap_or(0));
        exponents.push(best);
    }
    invariant!(
        integers.len() == values.len(),
        "{} integers of {} doubles",
        integers.len(),
        values.len()
    );
    let integers = Values::I64(integers);
    let mut packed = Vec::new();
    let held = bitpacked::encode(Input::new(&integers, None), &mut packed);
    invariant!(held, "64-bit integers do not pack");
    Numbers { kind: DECIMAL, parameters: [0, 0], packed, exponents, exceptions }
}
