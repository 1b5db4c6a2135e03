//! The loops of bit-packing: 16 interleaved lanes of 64-bit words, one width for all.
//!
//! Group `r` is the 16 values `16 r .. 16 r + 16`, one in each lane. Its bits start at bit `r width`
//! of every lane, so shift distances are the same for the whole group and the inner loops run over
//! arrays of fixed length.

/// Lanes of a sub-block.
pub const LANES: usize = 16;

/// Words one lane needs for its share of `rows` values.
#[inline]
pub fn lane_words(rows: usize, width: u32) -> usize {
    (rows.div_ceil(LANES) * width as usize).div_ceil(64)
}

/// Appends the words of the first `rows` differences, each below `2^width`.
pub fn pack(differences: &[u64; 1024], rows: usize, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mut current = [0u64; LANES];
    let mut filled = 0;
    let mut flush = |words: &[u64; LANES]| words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    for group in differences.as_chunks::<LANES>().0.iter().take(rows.div_ceil(LANES)) {
        for (word, difference) in current.iter_mut().zip(group) {
            *word |= difference << filled;
        }
        filled += width;
        if filled >= 64 {
            flush(&current);
            filled -= 64;
            // What did not fit; a shift by the whole word would be none at all, hence the test.
            let kept = width - filled;
            for (word, difference) in current.iter_mut().zip(group) {
                *word = if kept == 64 { 0 } else { difference >> kept };
            }
        }
    }
    if filled > 0 {
        flush(&current);
    }
}

/// Gives the groups `from..to` to `emit`, in order. There are words for all of them.
#[inline]
pub fn unpack(words: &[[u8; 8]], width: u32, from: usize, to: usize, mut emit: impl FnMut([u64; LANES])) {
    if width == 0 {
        (from..to).for_each(|_| emit([0; LANES]));
        return;
    }
    let (words, _) = words.as_chunks::<LANES>();
    let mask = u64::MAX >> (64 - width);
    for group in from..to {
        let bit = group * width as usize;
        let shift = (bit % 64) as u32;
        let Some(low) = words.get(bit / 64) else { return };
        let mut out = [0u64; LANES];
        if shift + width <= 64 {
            for (out, low) in out.iter_mut().zip(low) {
                *out = (u64::from_le_bytes(*low) >> shift) & mask;
            }
        } else {
            let Some(high) = words.get(bit / 64 + 1) else { return };
            for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
                *out = ((u64::from_le_bytes(*low) >> shift) | (u64::from_le_bytes(*high) << (64 - shift))) & mask;
            }
        }
        emit(out);
    }
}

/// One difference. There are words for it.
#[inline]
pub fn pick(words: &[[u8; 8]], width: u32, row: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let bit = row / LANES * width as usize;
    let shift = (bit % 64) as u32;
    let at = bit / 64 * LANES + row % LANES;
    let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
    let mut value = word(at) >> shift;
    if shift + width > 64 {
        value |= word(at + LANES) << (64 - shift);
    }
    value & (u64::MAX >> (64 - width))
}
