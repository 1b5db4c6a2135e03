//! Bit-packing: the kernel shared by bit-packed columns and the integer codecs.
//!
//! Values are interleaved over `LANES` lanes of one word type, as in Afroozeh and Boncz, *The
//! FastLanes Compression Layout*, VLDB 2023: value `i` is number `i / LANES` of lane `i % LANES`;
//! word `k` of lane `l` is stored at `LANES * k + l`. All lanes shift by the same distance at the
//! same time, so the inner loops run over arrays of fixed length and compile to vector
//! instructions, natively and for `simd128`, without a copy of the loop for every width. Bytes are
//! untrusted: the caller checks that there are [`packed_bytes`] of them, and missing ones read as
//! zero.

use std::ops::{BitAnd, BitOr, Shl, Shr};

/// The word type of a lane.
pub(crate) trait Word:
    Copy
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Bits of the word.
    const BITS: u32;
    /// All bits clear, and all set.
    const ZERO: Self;
    const ONES: Self;
    /// Its stored form, little-endian.
    type Raw: Copy;
    fn words(bytes: &[u8]) -> &[Self::Raw];
    fn load(raw: Self::Raw) -> Self;
    fn store(self, out: &mut Vec<u8>);
}

macro_rules! word {
    ($word:ty, $bytes:literal) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;
            const ZERO: Self = 0;
            const ONES: Self = <$word>::MAX;
            type Raw = [u8; $bytes];
            #[inline(always)]
            fn words(bytes: &[u8]) -> &[[u8; $bytes]] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn load(raw: [u8; $bytes]) -> Self {
                <$word>::from_le_bytes(raw)
            }
            #[inline(always)]
            fn store(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}
word!(u32, 4);
word!(u64, 8);

/// Number of bits needed for every value up to `max`.
#[inline]
pub(crate) const fn width_of(max: u64) -> u32 {
    64 - max.leading_zeros()
}

/// Size of `rows` packed values, in bytes.
#[inline]
pub(crate) fn packed_bytes<W: Word, const LANES: usize>(rows: usize, width: u32) -> usize {
    let lane_words = (rows.div_ceil(LANES) * width as usize).div_ceil(W::BITS as usize);
    lane_words * LANES * (W::BITS as usize / 8)
}

/// Appends values, each below `2^width`. A short last group is padded with zeroes.
pub(crate) fn pack<W: Word, const LANES: usize>(values: &[W], width: u32, out: &mut Vec<u8>) {
    debug_assert!(width <= W::BITS, "values of {width} bits in words of {}", W::BITS);
    debug_assert!(
        width >= W::BITS || values.iter().all(|value| *value >> width == W::ZERO),
        "a value to pack takes more than {width} bits"
    );
    let before = out.len();
    if width == 0 {
        return;
    }
    let mut current = [W::ZERO; LANES];
    let mut filled = 0;
    let mut put = |group: &[W; LANES]| {
        for (word, value) in current.iter_mut().zip(group) {
            *word = *word | *value << filled;
        }
        filled += width;
        if filled >= W::BITS {
            current.iter().for_each(|word| word.store(out));
            filled -= W::BITS;
            // Keeps the bits that did not fit. A shift by the whole word would overflow, hence the
            // test.
            let kept = width - filled;
            for (word, value) in current.iter_mut().zip(group) {
                *word = if kept == W::BITS { W::ZERO } else { *value >> kept };
            }
        }
    };
    let (groups, rest) = values.as_chunks::<LANES>();
    groups.iter().for_each(&mut put);
    if !rest.is_empty() {
        let mut group = [W::ZERO; LANES];
        group[..rest.len()].copy_from_slice(rest);
        put(&group);
    }
    if filled > 0 {
        current.iter().for_each(|word| word.store(out));
    }
    debug_assert_eq!(
        out.len() - before,
        packed_bytes::<W, LANES>(values.len(), width),
        "bytes of packed values"
    );
}

/// Passes the groups `from..to` to `emit`, in order.
#[inline(always)]
pub(crate) fn unpack<W: Word, const LANES: usize>(
    bytes: &[u8],
    width: u32,
    from: usize,
    to: usize,
    mut emit: impl FnMut([W; LANES]),
) {
    debug_assert!(from <= to, "groups {from}..{to}");
    if width == 0 || width > W::BITS {
        (from..to).for_each(|_| emit([W::ZERO; LANES]));
        return;
    }
    let (words, _) = W::words(bytes).as_chunks::<LANES>();
    let mask = W::ONES >> (W::BITS - width);
    for group in from..to {
        let bit = group * width as usize;
        let (at, shift) = (bit / W::BITS as usize, bit as u32 % W::BITS);
        let mut out = [W::ZERO; LANES];
        if let Some(low) = words.get(at) {
            for (out, low) in out.iter_mut().zip(low) {
                *out = W::load(*low) >> shift;
            }
        }
        if shift + width > W::BITS
            && let Some(high) = words.get(at + 1)
        {
            for (out, high) in out.iter_mut().zip(high) {
                *out = *out | W::load(*high) << (W::BITS - shift);
            }
        }
        for out in &mut out {
            *out = *out & mask;
        }
        emit(out);
    }
}

/// Decodes one value.
#[inline(always)]
pub(crate) fn pick<W: Word, const LANES: usize>(bytes: &[u8], width: u32, row: usize) -> W {
    if width == 0 || width > W::BITS {
        return W::ZERO;
    }
    let words = W::words(bytes);
    let bit = row / LANES * width as usize;
    let shift = bit as u32 % W::BITS;
    let at = bit / W::BITS as usize * LANES + row % LANES;
    let word = |at: usize| words.get(at).map_or(W::ZERO, |raw| W::load(*raw));
    let mut value = word(at) >> shift;
    if shift + width > W::BITS {
        value = value | word(at + LANES) << (W::BITS - shift);
    }
    value & (W::ONES >> (W::BITS - width))
}

/// The sum of consecutive values of one group of lanes.
#[inline]
pub(crate) fn sum<const LANES: usize>(bytes: &[u8], width: u32, row: usize, len: usize) -> u64 {
    debug_assert!(row / LANES == (row + len - 1) / LANES, "rows {row}+{len} of one group");
    if width == 0 || width > u32::BITS {
        return 0;
    }
    let bit = row / LANES * width as usize;
    let (shift, mask) = (bit as u32 % u32::BITS, u32::MAX >> (u32::BITS - width));
    let at = bit / u32::BITS as usize * LANES + row % LANES;
    let words = |at: usize| {
        let words = u32::words(bytes).get(at..).and_then(|words| words.get(..len));
        words.unwrap_or_default().iter().map(|raw| u32::load(*raw))
    };
    if shift + width <= u32::BITS {
        return words(at).map(|word| (word >> shift & mask) as u64).sum();
    }
    let pairs = words(at).zip(words(at + LANES));
    pairs.map(|(low, high)| ((low >> shift | high << (u32::BITS - shift)) & mask) as u64).sum()
}

/// The bytes that [`pick`] reads for rows `from` to `to`, both included.
pub(crate) fn picked<W: Word, const LANES: usize>(
    width: u32,
    from: usize,
    to: usize,
) -> std::ops::Range<usize> {
    debug_assert!(from <= to && width <= W::BITS, "rows {from} to {to} of {width} bits");
    let (bits, width) = (W::BITS as usize, width as usize);
    let (first, end) = (from / LANES * width / bits, ((to / LANES + 1) * width).div_ceil(bits));
    first * LANES * bits / 8..end * LANES * bits / 8
}

/// Stores one value below `2^width` at a position whose bits are zero. The buffer must be long
/// enough.
pub(crate) fn put<const LANES: usize>(bytes: &mut [u8], width: u32, row: usize, value: u32) {
    debug_assert!(width_of(value as u64) <= width, "{value} in {width} bits");
    debug_assert!(
        bytes.len() >= packed_bytes::<u32, LANES>(row + 1, width),
        "{} bytes for value {row} of {width} bits",
        bytes.len()
    );
    if width == 0 {
        return;
    }
    let (words, _) = bytes.as_chunks_mut::<4>();
    let bit = row / LANES * width as usize;
    let shift = bit as u32 % 32;
    let at = bit / 32 * LANES + row % LANES;
    let mut join = |at: usize, bits: u32| {
        if let Some(word) = words.get_mut(at) {
            *word = (u32::from_le_bytes(*word) | bits).to_le_bytes();
        }
    };
    join(at, value << shift);
    if shift + width > 32 {
        join(at + LANES, value >> (32 - shift));
    }
}

/// Packs eight bytes of 0 or 1 into eight bits, the first byte lowest.
#[inline(always)]
fn gather(eight: [u8; 8]) -> u8 {
    debug_assert!(eight.iter().all(|byte| *byte <= 1), "bits {eight:?}");
    // Moves byte i from bit 8 i to bit 56 + i; no two products overlap, so there are no carries.
    (u64::from_le_bytes(eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// The results of `test` for up to 64 values, as bits. Uses intermediate bytes, which vectorises.
#[inline(always)]
pub(crate) fn test_bits<T: Copy, const N: usize>(values: &[T; N], test: impl Fn(T) -> bool) -> u64 {
    const { assert!(N <= 64 && N.is_multiple_of(8), "values of whole bytes of one word") };
    let mut bytes = [0u8; N];
    for (byte, value) in bytes.iter_mut().zip(values) {
        *byte = test(*value) as u8;
    }
    let mut bits = 0;
    for (at, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        bits |= (gather(*eight) as u64) << (8 * at);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<W: Word + PartialEq + std::fmt::Debug, const LANES: usize>(make: impl Fn(u64) -> W) {
        for width in 0..=W::BITS {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            for rows in [1, 3, 4, 31, 128, 129, 1000, 1024] {
                let numbers: Vec<u64> =
                    (0..rows as u64).map(|i| nacre_types::hash::hash_u64(i) & mask).collect();
                let values: Vec<W> = numbers.iter().map(|n| make(*n)).collect();
                let mut bytes = Vec::new();
                pack::<W, LANES>(&values, width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes::<W, LANES>(rows, width));
                let mut back = Vec::new();
                unpack::<W, LANES>(&bytes, width, 0, rows.div_ceil(LANES), |group| {
                    back.extend_from_slice(&group)
                });
                back.truncate(rows);
                assert_eq!(back, values, "{width} bits, {rows} rows");
                for (row, value) in values.iter().enumerate() {
                    assert_eq!(pick::<W, LANES>(&bytes, width, row), *value);
                }
                unpack::<W, LANES>(
                    &bytes[..bytes.len() / 2],
                    width,
                    0,
                    rows.div_ceil(LANES),
                    |_| (),
                );
            }
        }
    }

    #[test]
    fn every_width_of_every_layout_comes_back() {
        round::<u32, 4>(|n| n as u32);
        round::<u32, 32>(|n| n as u32);
        round::<u64, 16>(|n| n);
    }

    #[test]
    fn bits_are_in_order() {
        let values: [u32; 64] = std::array::from_fn(|i| i as u32);
        for limit in 0..64 {
            assert_eq!(test_bits(&values, |v| v < limit), (1u64 << limit) - 1);
            assert_eq!(test_bits(&values, |v| v == limit), 1 << limit);
        }
    }
}
