//! Frame of reference: differences from the smallest value, in just enough bits for the largest.
//!
//! The head holds the width. Values are independent of each other: `get` reads one value, a lower
//! bound is a binary search, an append writes one value. The plain kind packs values consecutively;
//! the SIMD kind interleaves them over four lanes.

use super::block::{
    BlockChange, Codec, ENDS_EARLY, HEAD_BYTES, Head, corrupt, decoded, out_of_range, replace,
};
use crate::pack::{pack, packed_bytes, pick, put, unpack, width_of};
use nacre_types::{Result, invariant};

/// Frame of reference over `LANES` lanes of 32-bit words.
pub struct Frame<const LANES: usize>(&'static str);

/// Frame of reference, values packed consecutively.
pub type FrameOfReference = Frame<1>;
/// Frame of reference over four lanes.
pub type SimdFrameOfReference = Frame<4>;

impl Frame<1> {
    /// The codec.
    pub const NEW: Self = Frame("frame of reference");
}

impl Frame<4> {
    /// The codec.
    pub const NEW: Self = Frame("SIMD frame of reference");
}

impl<const LANES: usize> Frame<LANES> {
    fn open<'a>(&self, block: &'a [u8]) -> Result<(Head, &'a [u8])> {
        let (head, rest) = Head::read(block)?;
        let head = head.at_most(self.capacity())?;
        match rest.get(..packed_bytes::<u32, LANES>(head.count, head.width)) {
            Some(words) => Ok((head, words)),
            None => Err(corrupt(ENDS_EARLY)),
        }
    }

    /// Passes groups of differences to `emit`. A writer stores zeroes after the last value.
    #[inline(always)]
    fn groups(head: Head, words: &[u8], emit: impl FnMut([u32; LANES])) {
        unpack::<u32, LANES>(words, head.width, 0, head.count.div_ceil(LANES), emit);
    }
}

impl<const LANES: usize> Codec for Frame<LANES> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn capacity(&self) -> usize {
        256
    }

    fn compress(&self, values: &[u32]) -> Vec<u8> {
        invariant!(values.len() <= self.capacity(), "a block of {} integers", values.len());
        let mut head = Head::of(values, 0);
        head.width = width_of((head.high - head.low) as u64);
        let mut out = head.start(packed_bytes::<u32, LANES>(values.len(), head.width));
        let differences: Vec<u32> = values.iter().map(|value| value - head.low).collect();
        pack::<u32, LANES>(&differences, head.width, &mut out);
        debug_assert!(
            decoded(self, &out).is_ok_and(|read| read == values),
            "compressed integers do not read back"
        );
        out
    }

    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()> {
        let (head, words) = self.open(block)?;
        let before = out.len();
        out.reserve(head.count + LANES);
        Self::groups(head, words, |group| {
            out.extend_from_slice(&group.map(|difference| head.low.wrapping_add(difference)));
        });
        out.truncate(before + head.count);
        debug_assert_eq!(out.len(), before + head.count, "integers of a block");
        Ok(())
    }

    fn get(&self, block: &[u8], at: usize) -> Result<u32> {
        let (head, words) = self.open(block)?;
        if at >= head.count {
            return Err(out_of_range());
        }
        Ok(head.low.wrapping_add(pick::<u32, LANES>(words, head.width, at)))
    }

    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize> {
        let (head, words) = self.open(block)?;
        if head.count == 0 || value <= head.low {
            return Ok(0);
        }
        if value > head.high {
            return Ok(head.count);
        }
        let bound = value - head.low;
        let (mut low, mut high) = (0, head.count);
        while low < high {
            let middle = low.midpoint(high);
            if pick::<u32, LANES>(words, head.width, middle) < bound {
                low = middle + 1
            } else {
                high = middle
            }
        }
        Ok(low)
    }

    fn sum(&self, block: &[u8]) -> Result<u64> {
        let (head, words) = self.open(block)?;
        let mut sums = [0u64; LANES];
        Self::groups(head, words, |group| {
            sums.iter_mut().zip(group).for_each(|(sum, difference)| *sum += difference as u64);
        });
        Ok(sums.iter().sum::<u64>() + head.low as u64 * head.count as u64)
    }

    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let (head, words) = self.open(block)?;
        if head.count == self.capacity() {
            return Ok(BlockChange::NoRoom);
        }
        let grown = head.appended(value)?;
        let fits = head.count > 0 && width_of(value.wrapping_sub(head.low) as u64) <= head.width;
        if !fits {
            let mut values = decoded(self, block)?;
            values.push(value);
            return Ok(replace(block, self.compress(&values), room));
        }
        let words = words.len().max(packed_bytes::<u32, LANES>(head.count + 1, head.width));
        if HEAD_BYTES + words > room {
            return Ok(BlockChange::NoRoom);
        }
        block.resize(HEAD_BYTES + words, 0);
        put::<LANES>(&mut block[HEAD_BYTES..], head.width, head.count, value - head.low);
        grown.put(block)?;
        debug_assert!(self.open(block).is_ok(), "a block with an appended integer does not open");
        Ok(BlockChange::Done)
    }
}
