//! A Bloom filter as a column: whether a key may be among a segment's keys, from one block.
//!
//! The column has 16 bits a row. A key's hash chooses a block, each by its share of the rows, and six bits in it; all
//! are set where the key is. So a block has as many keys as rows, or fewer, and of keys that are not there about one in
//! a thousand looks as if it were. Like every column the filter is encoded, so that few keys take few bytes, checked,
//! and kept in the cache as long as it is used.

use crate::builder::Rows;
use crate::footer::{block_count, block_rows};
use crate::segment::Segment;
use nacre_column::Scalar;
use nacre_column::Values;
use nacre_types::hash::{hash_bytes, hash_u64};
use nacre_types::limits::BLOCK_ROWS;
use nacre_types::{Error, Result};

/// Bits of a row.
const BITS: usize = 16;
/// Bits of a key.
const LOOKS: u64 = 6;

/// The block of a hash, and the bits of that block: row and bit.
fn bits(rows: usize, hash: u64) -> (usize, impl Iterator<Item = (usize, u32)>) {
    let block = ((u128::from(hash) * rows as u128) >> 64) as usize / BLOCK_ROWS;
    let all = (block_rows(rows, block) * BITS) as u64;
    let again = hash_u64(hash);
    let (first, step) = (again & 0xffff_ffff, (again >> 32) | 1);
    let mask = all.is_power_of_two().then(|| all - 1);
    let bit = move |look| {
        let place = first + look * step;
        // Nearly all blocks are full, and division is slow.
        let bit = mask.map_or_else(|| place % all, |mask| place & mask) as usize;
        (bit / BITS, (bit % BITS) as u32)
    };
    (block, (0..LOOKS).map(bit))
}

/// The filter of keys, in blocks. Keys with a null are left out: nobody looks for them. Equal neighbours cost little.
pub(crate) fn build(columns: &[&[Rows]], rows: usize) -> Vec<Rows> {
    let mut blocks: Vec<Vec<i64>> =
        (0..block_count(rows)).map(|block| vec![0; block_rows(rows, block)]).collect();
    let (mut key, mut last) = (Vec::new(), Vec::new());
    for row in 0..rows {
        key.clear();
        let has_null = columns.iter().any(|blocks| {
            let (values, validity) = &blocks[row / BLOCK_ROWS];
            let at = row % BLOCK_ROWS;
            let is_null = validity.as_ref().is_some_and(|v| !v.get(at));
            if !is_null {
                values.put_key(at, &mut key);
            }
            is_null
        });
        if has_null || key == last {
            continue;
        }
        let (block, bits) = bits(rows, hash_bytes(&key));
        bits.for_each(|(row, bit)| blocks[block][row] |= 1 << bit);
        std::mem::swap(&mut key, &mut last);
    }
    blocks.into_iter().map(|words| (Values::I64(words), None)).collect()
}

impl Segment {
    /// Whether a filter column leaves it open that a key is there. `hash` is [`hash_bytes`] of the encoded key
    /// ([`nacre_types::key`]), which has no null.
    pub fn may_have(&self, filter: usize, hash: u64) -> Result<bool> {
        if self.rows() == 0 {
            return Ok(false);
        }
        let (block, bits) = bits(self.rows(), hash);
        self.with_block(filter, block, |block| {
            for (row, bit) in bits {
                match block.get(row)? {
                    Scalar::I64(word) if word >> bit & 1 == 1 => {}
                    Scalar::I64(_) => return Ok(false),
                    _ => return Err(Error::corrupt("a filter is no numbers")),
                }
            }
            Ok(true)
        })
    }
}
