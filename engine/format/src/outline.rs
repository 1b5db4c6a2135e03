//! Outlines: what lets a reader verify and decode one row of a block without reading all of it.
//!
//! A column's outline has a *stub* for each block: copies of the bytes of its head, and a checksum
//! of each of its parts of [`PART_BYTES`]. The stub is empty if the block is only read as a whole:
//! because it is one part, because it is very long, or because of its encoding. The footer has the
//! checksum of the outline. `docs/FORMAT.md` describes the bytes.

use nacre_column::block::Block;
use nacre_column::encoding::Encoding;
use nacre_types::bytes::{Reader, Write};
use nacre_types::checksum::checksum;
use nacre_types::{DataType, Error, Result, invariant};
use std::ops::Range;

/// Bytes of a part of a block.
pub const PART_BYTES: usize = 1 << 10;
/// Blocks of up to this many bytes are one part, which the checksum of the block verifies.
pub const WHOLE_BYTES: usize = 4 << 10;
/// Blocks of more bytes are only read as a whole: reading a row takes memory of that size.
const MOST_BYTES: usize = 1 << 20;

/// The outline of a column being written.
#[derive(Default)]
pub struct OutlineBuilder {
    /// Where the stub of each block ends.
    ends: Vec<u32>,
    stubs: Vec<u8>,
}

impl OutlineBuilder {
    /// Adds the stub of the next block.
    pub fn push(
        &mut self,
        block: &[u8],
        data_type: DataType,
        encoding: Encoding,
        rows: usize,
    ) -> Result<()> {
        if (WHOLE_BYTES + 1..=MOST_BYTES).contains(&block.len()) {
            let mut pieces: Vec<Range<usize>> = Vec::new();
            let by_parts = Block::head(block, data_type, encoding, rows, &mut |piece| {
                let start = piece.as_ptr() as usize - block.as_ptr() as usize;
                let end = start + piece.len();
                match pieces.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => pieces.push(start..end),
                }
            })?;
            if by_parts {
                self.put_stub(block, &pieces);
            }
        }
        let end = u32::try_from(self.stubs.len());
        self.ends.push(end.map_err(|_| Error::limit("outline longer than 4 GiB"))?);
        Ok(())
    }

    fn put_stub(&mut self, block: &[u8], pieces: &[Range<usize>]) {
        let start = self.stubs.len();
        let count = pieces.len();
        invariant!(count <= u8::MAX as usize, "a block with a head of {count} pieces");
        self.stubs.put_u8(count as u8);
        for piece in pieces {
            invariant!(piece.end <= block.len(), "a piece at {piece:?} of {} bytes", block.len());
            invariant!(piece.len() <= u16::MAX as usize, "a piece of {} bytes", piece.len());
            self.stubs.put_u32(piece.start as u32);
            self.stubs.put_u16(piece.len() as u16);
            self.stubs.extend_from_slice(&block[piece.clone()]);
        }
        block.chunks(PART_BYTES).for_each(|part| self.stubs.put_u32(part_checksum(part)));
        debug_assert!(
            Stub::read(&self.stubs[start..], block.len())
                .is_ok_and(|stub| stub.is_some_and(|stub| stub.is_of(block))),
            "a stub does not read back"
        );
    }

    /// The outline; `None` if all stubs are empty.
    pub fn finish(self) -> Option<Vec<u8>> {
        if self.stubs.is_empty() {
            return None;
        }
        invariant!(self.ends.is_sorted(), "stubs of an outline out of order");
        invariant!(
            self.ends.last().is_some_and(|end| *end as usize == self.stubs.len()),
            "the last stub does not end at byte {}",
            self.stubs.len()
        );
        let mut out = Vec::with_capacity(self.ends.len() * 4 + self.stubs.len());
        self.ends.iter().for_each(|end| out.put_u32(*end));
        out.extend_from_slice(&self.stubs);
        Some(out)
    }
}

/// Checksum of a part of a block.
fn part_checksum(part: &[u8]) -> u32 {
    debug_assert!((1..=PART_BYTES).contains(&part.len()), "a part of {} bytes", part.len());
    checksum(part) as u32
}

/// What an outline says of a block.
pub struct Stub<'a> {
    /// The number of pieces, then the pieces.
    pieces: &'a [u8],
    checksums: &'a [[u8; 4]],
}

impl<'a> Stub<'a> {
    /// Finds the stub of a block of `length` bytes in the outline of a column of `blocks` blocks;
    /// `None` if the block is only read as a whole.
    pub fn find(
        outline: &'a [u8],
        blocks: usize,
        block: usize,
        length: usize,
    ) -> Result<Option<Stub<'a>>> {
        debug_assert!(block < blocks, "the stub of block {block} of {blocks}");
        let ends = outline.get(..blocks * 4).ok_or_else(|| damaged("ends early"))?;
        let (ends, stubs) = (ends.as_chunks::<4>().0, &outline[blocks * 4..]);
        debug_assert_eq!(ends.len(), blocks, "stubs of an outline");
        let end = |block: usize| u32::from_le_bytes(ends[block]) as usize;
        let start = if block == 0 { 0 } else { end(block - 1) };
        let stub = stubs.get(start..end(block));
        Stub::read(stub.ok_or_else(|| damaged("stubs out of order"))?, length)
    }

    fn read(bytes: &'a [u8], length: usize) -> Result<Option<Stub<'a>>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let pieces = bytes.len().checked_sub(length.div_ceil(PART_BYTES) * 4);
        let (pieces, checksums) = bytes.split_at(pieces.ok_or_else(|| damaged("stub ends early"))?);
        Ok(Some(Stub { pieces, checksums: checksums.as_chunks().0 }))
    }

    /// Passes the pieces of the head, with their offsets in the block.
    fn each_piece(&self, mut see: impl FnMut(usize, &'a [u8]) -> Option<()>) -> Result<()> {
        debug_assert!(!self.checksums.is_empty(), "a stub of a block without parts");
        let mut reader = Reader::new(self.pieces, "outline");
        for _ in 0..reader.u8()? {
            let (at, len) = (reader.u32()? as usize, reader.u16()? as usize);
            see(at, reader.take(len)?).ok_or_else(|| damaged("head outside its block"))?;
        }
        reader.finish()
    }

    /// Copies the head into the bytes of the block.
    pub fn fill(&self, block: &mut [u8]) -> Result<()> {
        self.each_piece(|at, piece| {
            block.get_mut(at..)?.get_mut(..piece.len())?.copy_from_slice(piece);
            Some(())
        })
    }

    /// Sets the bytes of the head to zero again.
    pub fn clear(&self, block: &mut [u8]) -> Result<()> {
        self.each_piece(|at, piece| {
            block.get_mut(at..)?.get_mut(..piece.len())?.fill(0);
            Some(())
        })
    }

    /// Whether it is that of a block with these bytes.
    pub fn is_of(&self, block: &[u8]) -> bool {
        debug_assert_eq!(
            self.checksums.len(),
            block.len().div_ceil(PART_BYTES),
            "parts of a block"
        );
        let same =
            |at: usize, piece: &[u8]| (block.get(at..)?.get(..piece.len())? == piece).then_some(());
        self.each_piece(same).is_ok() && self.verify(0, block)
    }

    /// Whether consecutive parts, from number `first` on, have their checksums.
    pub fn verify(&self, first: usize, parts: &[u8]) -> bool {
        let expected = self.checksums.iter().skip(first);
        let parts = parts.chunks(PART_BYTES);
        debug_assert!(parts.len() <= expected.len(), "{} parts from {first} on", parts.len());
        parts.zip(expected).all(|(part, sum)| part_checksum(part) == u32::from_le_bytes(*sum))
    }
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::corrupt(format!("outline: {what}"))
}
