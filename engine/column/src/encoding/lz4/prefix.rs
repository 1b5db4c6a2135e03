//! Partial decompression of an LZ4 block: a row in the middle of a chunk needs the bytes before it,
//! but none after it.
//!
//! A block is a list of sequences. Each begins with a byte of two lengths: of literals and of a
//! match. A length of 15 continues in the following bytes. The literals come next, then, except in
//! the last sequence, the distance back to the match (`u16`) and the rest of its length, to which 4
//! is added. The format is defined in the *LZ4 Block Format Description* (lz4_Block_format.md).

use crate::encoding::read::corrupt;
use nacre_types::Result;

/// Minimum length of a match, in bytes.
const LEAST_MATCH: usize = 4;
/// Marks a length that continues in the next byte.
const LONG: usize = 15;
const ENDS_EARLY: &str = "compressed chunk ends early";

/// Decompresses a prefix of a block.
pub(super) struct Prefix<'a> {
    packed: &'a [u8],
    /// Length of the whole block uncompressed, according to its chunk table.
    limit: usize,
    /// The bytes decompressed so far.
    pub bytes: Vec<u8>,
}

impl<'a> Prefix<'a> {
    /// Starts on a block with a claimed uncompressed length of `limit` bytes.
    pub fn new(packed: &'a [u8], limit: usize) -> Prefix<'a> {
        Prefix { packed, limit, bytes: Vec::with_capacity(limit) }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.packed.split_at_checked(len) {
            Some((taken, rest)) => {
                self.packed = rest;
                Ok(taken)
            }
            None => Err(corrupt(ENDS_EARLY)),
        }
    }

    fn length(&mut self, short: u8) -> Result<usize> {
        let mut length = short as usize;
        if length == LONG {
            loop {
                let more = self.take(1)?[0];
                length += more as usize;
                if more != u8::MAX {
                    break;
                }
            }
        }
        Ok(length)
    }

    /// Decompresses until at least `wanted` bytes are available.
    pub fn extend_to(&mut self, wanted: usize) -> Result<()> {
        if wanted > self.limit {
            return Err(corrupt(ENDS_EARLY));
        }
        while self.bytes.len() < wanted {
            let lengths = self.take(1)?[0];
            let literals = self.length(lengths >> 4)?;
            let literals = self.take(literals)?;
            if literals.len() > self.limit - self.bytes.len() {
                return Err(corrupt("compressed chunk is longer than its table claims"));
            }
            self.bytes.extend_from_slice(literals);
            if self.packed.is_empty() {
                // The last sequence has no match.
                break;
            }
            let back = self.take(2)?;
            let back = u16::from_le_bytes([back[0], back[1]]) as usize;
            let length = self.length(lengths & 15)? + LEAST_MATCH;
            self.repeat(back, length)?;
        }
        debug_assert!(self.bytes.len() <= self.limit, "more bytes than the chunk claims");
        if self.bytes.len() < wanted { Err(corrupt(ENDS_EARLY)) } else { Ok(()) }
    }

    /// Appends a match `back` bytes ago. A match longer than that repeats itself.
    fn repeat(&mut self, back: usize, length: usize) -> Result<()> {
        let at = match self.bytes.len().checked_sub(back) {
            Some(at) if back > 0 && length <= self.limit - self.bytes.len() => at,
            _ => return Err(corrupt("compressed chunk repeats bytes before its start")),
        };
        debug_assert!(at < self.bytes.len(), "a match that starts at its own end");
        let end = self.bytes.len() + length;
        let mut left = length;
        while left > 0 {
            let now = left.min(self.bytes.len() - at);
            self.bytes.extend_from_within(at..at + now);
            left -= now;
        }
        debug_assert_eq!(self.bytes.len(), end, "bytes after a match of {length}");
        Ok(())
    }
}
