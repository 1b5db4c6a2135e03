//! Variable byte: differences between successive values, seven bits per byte, least significant
//! first, with the high bit set on all bytes of a difference but its last.
//!
//! The head holds the first value. Insertion splits a difference in two and deletion merges two, in
//! place.

use super::block::{BlockChange, Codec, HEAD_BYTES, Head, corrupt, decoded, out_of_range};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Result, invariant};

/// Variable byte.
pub struct VariableByte;

/// Iterates over the values of a block.
struct Walk<'a> {
    reader: Reader<'a>,
    head: Head,
    /// Current position and value.
    at: usize,
    value: u32,
    /// Offset in the block where the difference to this value starts.
    start: usize,
}

impl<'a> Walk<'a> {
    /// Starts at the first value, if any.
    fn new(block: &'a [u8]) -> Result<Walk<'a>> {
        let (head, rest) = Head::read(block)?;
        let head = head.at_most(VariableByte.capacity())?;
        Ok(Walk {
            reader: Reader::new(rest, "block of integers"),
            head,
            at: 0,
            value: head.low,
            start: HEAD_BYTES,
        })
    }

    /// Moves to the next value.
    #[inline]
    fn step(&mut self) -> Result<()> {
        debug_assert!(self.at < self.head.count, "a step past value {}", self.at);
        self.start = HEAD_BYTES + self.reader.position();
        let difference = self.reader.varint()?;
        let next = self.value as u64 + difference;
        match u32::try_from(next) {
            Ok(next) => self.value = next,
            Err(_) => return Err(corrupt("differences exceed 32 bits")),
        }
        self.at += 1;
        Ok(())
    }

    /// Offset in the block where the difference to this value ends.
    fn end(&self) -> usize {
        HEAD_BYTES + self.reader.position()
    }

    /// Moves to the first value not below `value`; past the last one if all are below.
    fn seek(&mut self, value: u32) -> Result<()> {
        while self.at < self.head.count && self.value < value {
            if self.at + 1 == self.head.count {
                self.start = self.end();
                self.at += 1;
                return Ok(());
            }
            self.step()?;
        }
        Ok(())
    }
}

impl Codec for VariableByte {
    fn name(&self) -> &'static str {
        "variable byte"
    }

    fn capacity(&self) -> usize {
        256
    }

    fn compress(&self, values: &[u32]) -> Vec<u8> {
        invariant!(values.len() <= self.capacity(), "a block of {} integers", values.len());
        let mut out = Head::of(values, 0).start(values.len());
        values.windows(2).for_each(|pair| out.put_varint((pair[1] - pair[0]) as u64));
        debug_assert!(
            decoded(self, &out).is_ok_and(|read| read == values),
            "compressed integers do not read back"
        );
        out
    }

    fn uncompress(&self, block: &[u8], out: &mut Vec<u32>) -> Result<()> {
        let before = out.len();
        let mut walk = Walk::new(block)?;
        for at in 0..walk.head.count {
            if at > 0 {
                walk.step()?;
            }
            out.push(walk.value);
        }
        debug_assert_eq!(out.len(), before + walk.head.count, "integers of a block");
        Ok(())
    }

    fn get(&self, block: &[u8], at: usize) -> Result<u32> {
        let mut walk = Walk::new(block)?;
        if at >= walk.head.count {
            return Err(out_of_range());
        }
        while walk.at < at {
            walk.step()?;
        }
        Ok(walk.value)
    }

    fn lower_bound(&self, block: &[u8], value: u32) -> Result<usize> {
        let mut walk = Walk::new(block)?;
        if walk.head.count > 0 && value > walk.head.high {
            return Ok(walk.head.count);
        }
        walk.seek(value)?;
        Ok(walk.at)
    }

    fn sum(&self, block: &[u8]) -> Result<u64> {
        let mut walk = Walk::new(block)?;
        let mut sum = 0;
        for at in 0..walk.head.count {
            if at > 0 {
                walk.step()?;
            }
            sum += walk.value as u64;
        }
        Ok(sum)
    }

    fn append(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let (head, _) = Head::read(block)?;
        let head = head.at_most(self.capacity())?;
        if head.count == self.capacity() {
            return Ok(BlockChange::NoRoom);
        }
        let grown = head.appended(value)?;
        let before = block.len();
        if head.count > 0 {
            block.put_varint(value.wrapping_sub(head.high) as u64);
        }
        if block.len() > room {
            block.truncate(before);
            return Ok(BlockChange::NoRoom);
        }
        grown.put(block)?;
        debug_assert!(Walk::new(block).is_ok(), "a block with an appended integer does not open");
        Ok(BlockChange::Done)
    }

    fn insert(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let mut walk = Walk::new(block)?;
        let head = walk.head;
        if head.count == self.capacity() {
            return Ok(BlockChange::NoRoom);
        }
        if head.count == 0 || value >= head.high {
            return self.append(block, value, room);
        }
        walk.seek(value)?;
        if walk.at == head.count {
            return Err(corrupt("greatest integer of a block is below its bound"));
        }
        debug_assert!(walk.value >= value, "{value} is inserted before {}", walk.value);
        let mut bytes = Vec::new();
        let (range, head) = if walk.at == 0 {
            bytes.put_varint((head.low - value) as u64);
            (HEAD_BYTES..HEAD_BYTES, Head { count: head.count + 1, low: value, ..head })
        } else {
            // The difference to replace starts after the preceding value.
            let (start, end, next) = (walk.start, walk.end(), walk.value);
            let previous = self.get(block, walk.at - 1)?;
            bytes.put_varint((value - previous) as u64);
            bytes.put_varint((next - value) as u64);
            (start..end, Head { count: head.count + 1, ..head })
        };
        if block.len() - range.len() + bytes.len() > room {
            return Ok(BlockChange::NoRoom);
        }
        block.splice(range, bytes);
        head.put(block)?;
        debug_assert!(block.len() <= room, "a block of {} bytes in {room}", block.len());
        debug_assert!(Walk::new(block).is_ok(), "a block with an inserted integer does not open");
        Ok(BlockChange::Done)
    }

    fn delete(&self, block: &mut Vec<u8>, value: u32, room: usize) -> Result<BlockChange> {
        let mut walk = Walk::new(block)?;
        walk.seek(value)?;
        let head = walk.head;
        if walk.at >= head.count || walk.value != value {
            return Ok(BlockChange::Absent);
        }
        let (at, start, end) = (walk.at, walk.start, walk.end());
        let mut bytes = Vec::new();
        let mut new = Head { count: head.count - 1, ..head };
        let mut stop = end;
        if at + 1 < head.count {
            walk.step()?;
            stop = walk.end();
            if at == 0 {
                new.low = walk.value;
            } else {
                bytes.put_varint((walk.value - self.get(block, at - 1)?) as u64);
            }
        } else {
            new.high = if at == 0 { 0 } else { self.get(block, at - 1)? };
            new.low = if at == 0 { 0 } else { head.low };
        }
        let range = if at == 0 { HEAD_BYTES..stop } else { start..stop };
        if block.len() - range.len() + bytes.len() > room {
            return Ok(BlockChange::NoRoom);
        }
        block.splice(range, bytes);
        new.put(block)?;
        debug_assert!(block.len() <= room, "a block of {} bytes in {room}", block.len());
        debug_assert!(Walk::new(block).is_ok(), "a block without a deleted integer does not open");
        Ok(BlockChange::Done)
    }
}
