//! Stream VByte: differences of one to four bytes, with their lengths stored separately (Lemire,
//! Kurz and Rupp, *Stream VByte: Faster Byte-Oriented Integer Compression*, Information Processing
//! Letters 2018).
//!
//! The head is followed by the lengths minus one, two bits each, four to a byte, least significant
//! first, one for every value but the first; then the differences. Lengths can be read without
//! decoding the differences, which makes it faster than variable byte.

use super::block::{
    BlockChange, Codec, ENDS_EARLY, HEAD_BYTES, Head, corrupt, decoded, out_of_range,
};
use nacre_types::{Result, invariant};

/// Stream VByte.
pub struct StreamVByte;

/// Length of a difference, one to four bytes.
#[inline]
fn length(difference: u32) -> usize {
    (4 - difference.leading_zeros() as usize / 8).max(1)
}

/// The parts of a block.
struct Parts<'a> {
    head: Head,
    lengths: &'a [u8],
    data: &'a [u8],
}

impl<'a> Parts<'a> {
    fn new(block: &'a [u8]) -> Result<Parts<'a>> {
        let (head, rest) = Head::read(block)?;
        let head = head.at_most(StreamVByte.capacity())?;
        match rest.split_at_checked(head.count.saturating_sub(1).div_ceil(4)) {
            Some((lengths, data)) => Ok(Parts { head, lengths, data }),
            None => Err(corrupt(ENDS_EARLY)),
        }
    }

    /// Passes values to `emit` until it returns `false`; returns the number passed.
    #[inline]
    fn each(&self, mut emit: impl FnMut(u32) -> bool) -> Result<usize> {
        if self.head.count == 0 {
            return Ok(0);
        }
        let mut value = self.head.low;
        if !emit(value) {
            return Ok(1);
        }
        let mut data = self.data;
        for at in 1..self.head.count {
            let code = self.lengths[(at - 1) / 4] >> ((at - 1) % 4 * 2) & 3;
            let length = code as usize + 1;
            let difference = match data.first_chunk::<4>() {
                // Reads four bytes and masks the surplus, which avoids a branch on the length.
                Some(four) => u32::from_le_bytes(*four) & (u32::MAX >> (8 * (3 - code as u32))),
                None => {
                    let rest = data.get(..length).ok_or_else(|| corrupt(ENDS_EARLY))?;
                    rest.iter().rev().fold(0, |number, byte| number << 8 | *byte as u32)
                }
            };
            data = data.get(length..).ok_or_else(|| corrupt(ENDS_EARLY))?;
            value = value.wrapping_add(difference);
            if !emit(value) {
                return Ok(at + 1);
            }
        }
        Ok(self.head.count)
    }
}

impl Codec for StreamVByte {
    fn name(&self) -> &'static str {
        "stream vbyte"
    }

    fn capacity(&self) -> usize {
        256
    }

    fn compress(&self, values: &[u32]) -> Vec<u8> {
        invariant!(values.len() <= self.capacity(), "a block of {} integers", values.len());
        let mut out = Head::of(values, 0).start(values.len() * 2);
        out.resize(HEAD_BYTES + values.len().saturating_sub(1).div_ceil(4), 0);
        for (at, pair) in values.windows(2).enumerate() {
            let difference = pair[1] - pair[0];
            let length = length(difference);
            out[HEAD_BYTES + at / 4] |= (length as u8 - 1) << (at % 4 * 2);
            out.extend_from_slice(&difference.to_le_bytes()[..length]);
        }
        debug_assert!(
            decoded(self, &out).is_ok_and(|read| read == values),
            "compressed integers do not read back"
        );
        out
    }

    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()> {
        let before = out.len();
        let parts = Parts::new(block)?;
        out.reserve(parts.head.count);
        parts.each(|value| {
            out.push(value);
            true
        })?;
        debug_assert_eq!(out.len(), before + parts.head.count, "integers of a block");
        Ok(())
    }

    fn get(&self, block: &[u8], at: usize) -> Result<u32> {
        let parts = Parts::new(block)?;
        if at >= parts.head.count {
            return Err(out_of_range());
        }
        let (mut left, mut found) = (at, 0);
        let passed = parts.each(|value| {
            found = value;
            left = left.wrapping_sub(1);
            left != usize::MAX
        })?;
        debug_assert_eq!(passed, at + 1, "integers read up to the one at {at}");
        Ok(found)
    }

    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize> {
        let parts = Parts::new(block)?;
        if parts.head.count > 0 && value > parts.head.high {
            return Ok(parts.head.count);
        }
        let mut below = 0;
        let passed = parts.each(|v| {
            below += (v < value) as usize;
            v < value
        })?;
        debug_assert!(passed - below <= 1, "{passed} integers read to count {below}");
        Ok(below)
    }

    fn sum(&self, block: &[u8]) -> Result<u64> {
        let mut sum = 0;
        Parts::new(block)?.each(|value| {
            sum += value as u64;
            true
        })?;
        Ok(sum)
    }

    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let head = Parts::new(block)?.head;
        if head.count == self.capacity() || block.len() > room {
            return Ok(BlockChange::NoRoom);
        }
        let grown = head.appended(value)?;
        if head.count > 0 {
            let (at, difference) = (head.count - 1, value.wrapping_sub(head.high));
            let length = length(difference);
            let one_more = at.is_multiple_of(4);
            if block.len() + one_more as usize + length > room {
                return Ok(BlockChange::NoRoom);
            }
            if one_more {
                block.insert(HEAD_BYTES + at / 4, 0);
            }
            block[HEAD_BYTES + at / 4] |= (length as u8 - 1) << (at % 4 * 2);
            block.extend_from_slice(&difference.to_le_bytes()[..length]);
        }
        debug_assert!(block.len() <= room, "a block of {} bytes in {room}", block.len());
        grown.put(block)?;
        debug_assert!(Parts::new(block).is_ok(), "a block with an appended integer does not open");
        Ok(BlockChange::Done)
    }
}
