//! A Bloom filter stored as a column: one block tells whether a key may be in the segment.
//!
//! The column has 16 bits per row. A key's hash chooses a block, with a probability proportional to
//! its rows, and six bits in it; all six are set if the key is present. So a block has, on average,
//! at most as many keys as rows, and about one absent key in a thousand looks present. Like every
//! column, the filter is encoded, so that few keys take few bytes, checksummed and cached.
//!
//! The builder sets the same bits that the reader tests: both compute them here.

use crate::footer::block_rows;
use nacre_types::hash::hash_u64;
use nacre_types::limits::BLOCK_ROWS;

/// Bits per row.
const BITS: usize = 16;
/// Bits set per key.
const LOOKS: u64 = 6;

/// The block of a hash in a segment of `rows` rows, at least one, and its bits there: row and bit.
pub fn bits(rows: usize, hash: u64) -> (usize, impl Iterator<Item = (usize, u32)>) {
    let block = ((u128::from(hash) * rows as u128) >> 64) as usize / BLOCK_ROWS;
    let all = (block_rows(rows, block) * BITS) as u64;
    debug_assert!(all > 0, "block {block} of a filter of {rows} rows has no bits");
    let again = hash_u64(hash);
    let (first, step) = (again & 0xffff_ffff, (again >> 32) | 1);
    let mask = all.is_power_of_two().then(|| all - 1);
    let bit = move |look| {
        let place = first + look * step;
        // Nearly all blocks are full: their number of bits is a power of two, and a mask is faster
        // than a division.
        let bit = mask.map_or_else(|| place % all, |mask| place & mask) as usize;
        (bit / BITS, (bit % BITS) as u32)
    };
    (block, (0..LOOKS).map(bit))
}
