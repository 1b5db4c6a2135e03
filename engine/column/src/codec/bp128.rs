//! BP128: up to 128 differences between successive values, bit-packed over four lanes (Lemire and
//! Boytsov, *Decoding Billions of Integers per Second Through Vectorization*, Software: Practice
//! and Experience 2015).
//!
//! The head holds the width and the first value, whose slot among the differences is zero. It is
//! the most compact codec, and the only one whose blocks may grow when a value is deleted.

use super::block::{
    BlockChange, Codec, ENDS_EARLY, HEAD_BYTES, Head, corrupt, decoded, out_of_range, replace,
};
use crate::pack::{pack, packed_bytes, put, unpack, width_of};
use nacre_types::{Result, invariant};

/// Maximum number of values in a block, and the lanes over which they are packed.
pub(super) const ROWS: usize = 128;
pub(super) const LANES: usize = 4;

/// BP128.
pub struct Bp128;

fn open(block: &[u8]) -> Result<(Head, &[u8])> {
    let (head, rest) = Head::read(block)?;
    let head = head.at_most(ROWS)?;
    match rest.get(..packed_bytes::<u32, LANES>(head.count, head.width)) {
        Some(words) => Ok((head, words)),
        None => Err(corrupt(ENDS_EARLY)),
    }
}

/// Decodes packed differences: each value is its predecessor plus `step` plus its difference; the
/// first value is `first`.
#[inline]
pub(super) fn decode(
    words: &[u8],
    width: u32,
    first: u32,
    step: u32,
    out: &mut [u32; ROWS],
    count: usize,
) {
    debug_assert!(count <= ROWS, "{count} values of a block of {ROWS}");
    debug_assert!(
        words.len() >= packed_bytes::<u32, LANES>(count, width),
        "{} bytes for {count} values of {width} bits",
        words.len()
    );
    let groups = count.min(ROWS).div_ceil(LANES);
    let mut value = first.wrapping_sub(step);
    let mut at = 0;
    unpack::<u32, LANES>(words, width, 0, groups, |[a, b, c, d]| {
        // The sums inside a group do not depend on the preceding value.
        let (ab, cd) = (a.wrapping_add(b), c.wrapping_add(d));
        let sums = [a, ab, ab.wrapping_add(c), ab.wrapping_add(cd)];
        if let Some(four) = out.get_mut(at..at + LANES) {
            for (lane, (out, sum)) in four.iter_mut().zip(sums).enumerate() {
                *out = value.wrapping_add(sum).wrapping_add(step.wrapping_mul(lane as u32 + 1));
            }
            value = four[LANES - 1];
        }
        at += LANES;
    });
}

impl Codec for Bp128 {
    fn name(&self) -> &'static str {
        "BP128"
    }

    fn capacity(&self) -> usize {
        ROWS
    }

    fn compress(&self, values: &[u32]) -> Vec<u8> {
        invariant!(values.len() <= self.capacity(), "a block of {} integers", values.len());
        let mut differences = [0u32; ROWS];
        let mut all = 0;
        for (out, pair) in differences[1..].iter_mut().zip(values.windows(2)) {
            *out = pair[1] - pair[0];
            all |= *out;
        }
        let head = Head::of(values, width_of(all as u64));
        let mut out = head.start(packed_bytes::<u32, LANES>(values.len(), head.width));
        pack::<u32, LANES>(&differences[..values.len()], head.width, &mut out);
        debug_assert!(
            decoded(self, &out).is_ok_and(|read| read == values),
            "compressed integers do not read back"
        );
        out
    }

    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()> {
        let before = out.len();
        let (head, words) = open(block)?;
        let mut values = [0; ROWS];
        decode(words, head.width, head.low, 0, &mut values, head.count);
        out.extend_from_slice(&values[..head.count]);
        debug_assert_eq!(out.len(), before + head.count, "integers of a block");
        Ok(())
    }

    fn get(&self, block: &[u8], at: usize) -> Result<u32> {
        let (head, words) = open(block)?;
        if at >= head.count {
            return Err(out_of_range());
        }
        let mut values = [0; ROWS];
        decode(words, head.width, head.low, 0, &mut values, at + 1);
        Ok(values[at])
    }

    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize> {
        let (head, words) = open(block)?;
        if head.count == 0 || value <= head.low {
            return Ok(0);
        }
        if value > head.high {
            return Ok(head.count);
        }
        let mut values = [0; ROWS];
        decode(words, head.width, head.low, 0, &mut values, head.count);
        // All values are decoded already, and counting has no branch to mispredict.
        Ok(values[..head.count].iter().map(|v| (*v < value) as usize).sum())
    }

    fn sum(&self, block: &[u8]) -> Result<u64> {
        let (head, words) = open(block)?;
        let mut values = [0; ROWS];
        decode(words, head.width, head.low, 0, &mut values, head.count);
        Ok(values[..head.count].iter().map(|v| *v as u64).sum())
    }

    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let (head, words) = open(block)?;
        if head.count == ROWS {
            return Ok(BlockChange::NoRoom);
        }
        let grown = head.appended(value)?;
        let difference = if head.count == 0 { 0 } else { value.wrapping_sub(head.high) };
        if width_of(difference as u64) > head.width {
            let mut values = decoded(self, block)?;
            values.push(value);
            return Ok(replace(block, self.compress(&values), room));
        }
        let words = words.len().max(packed_bytes::<u32, LANES>(head.count + 1, head.width));
        if HEAD_BYTES + words > room {
            return Ok(BlockChange::NoRoom);
        }
        block.resize(HEAD_BYTES + words, 0);
        put::<LANES>(&mut block[HEAD_BYTES..], head.width, head.count, difference);
        grown.put(block)?;
        debug_assert!(open(block).is_ok(), "a block with an appended integer does not open");
        Ok(BlockChange::Done)
    }
}
