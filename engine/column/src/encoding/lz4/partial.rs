//! Decompressing the front of an LZ4 block, as far as it is needed: a row of a chunk does not pay for the
//! rows after it. The block format is the library's; what it compressed is read here step by step.

use super::{ENDS_EARLY, corrupt};
use nacre_types::Result;

const DOES_NOT: &str = "compressed chunk does not decompress";
/// Matches are at least this long.
const SHORTEST: usize = 4;

/// A block, decompressed up to some sequence.
pub(super) struct Partial<'a> {
    packed: &'a [u8],
    at: usize,
    out: Vec<u8>,
    /// Length of the whole, decompressed.
    len: usize,
}

impl<'a> Partial<'a> {
    /// Nothing is decompressed yet.
    pub fn new(packed: &'a [u8], len: usize) -> Partial<'a> {
        Partial { packed, at: 0, out: Vec::with_capacity(len), len }
    }

    /// The bytes `start..end`, decompressing as far as that.
    #[inline]
    pub fn range(&mut self, start: usize, end: usize) -> Result<&[u8]> {
        while self.out.len() < end {
            self.sequence()?;
        }
        self.out.get(start..end).ok_or_else(|| corrupt(DOES_NOT))
    }

    fn byte(&mut self) -> Result<usize> {
        let byte = *self.packed.get(self.at).ok_or_else(|| corrupt(ENDS_EARLY))?;
        self.at += 1;
        Ok(byte as usize)
    }

    /// A length of four bits, and the bytes after it when these are all set.
    fn length(&mut self, bits: usize) -> Result<usize> {
        let mut length = bits;
        if bits == 15 {
            loop {
                let more = self.byte()?;
                length += more;
                if more < 255 {
                    break;
                }
            }
        }
        match length <= self.len {
            true => Ok(length),
            false => Err(corrupt(DOES_NOT)),
        }
    }

    /// Literals, then a match unless the block ends.
    fn sequence(&mut self) -> Result<()> {
        let token = self.byte()?;
        let literals = self.length(token >> 4)?;
        let bytes = self.packed.get(self.at..self.at + literals).ok_or_else(|| corrupt(ENDS_EARLY))?;
        self.at += literals;
        self.out.extend_from_slice(bytes);
        if self.at == self.packed.len() {
            return if self.out.len() == self.len { Ok(()) } else { Err(corrupt(DOES_NOT)) };
        }
        let distance = self.byte()? | self.byte()? << 8;
        let length = self.length(token & 15)? + SHORTEST;
        let start = match self.out.len().checked_sub(distance) {
            Some(start) if distance > 0 && self.out.len() + length <= self.len => start,
            _ => return Err(corrupt(DOES_NOT)),
        };
        // A match may reach into itself: then what is there repeats.
        let mut left = length;
        while left > 0 {
            let n = left.min(self.out.len() - start);
            self.out.extend_from_within(start..start + n);
            left -= n;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_of_what_the_library_compressed() {
        let texts: Vec<Vec<u8>> = vec![
            vec![],
            b"a".to_vec(),
            vec![b'x'; 5000],
            b"abcabcabcabcabcabcabcabcabc, abcabcabcabc".repeat(30),
            (0..3000u64).map(|i| nacre_types::hash::hash_u64(i) as u8).collect(),
            (0..3000u64).map(|i| (nacre_types::hash::hash_u64(i / 40) % 7) as u8).collect(),
        ];
        for text in texts {
            let packed = lz4_flex::block::compress(&text);
            for end in (0..=text.len()).step_by(1 + text.len() / 50).chain([text.len()]) {
                let start = end / 2;
                let mut partial = Partial::new(&packed, text.len());
                assert_eq!(partial.range(start, end).unwrap(), &text[start..end]);
                assert_eq!(partial.range(0, text.len()).unwrap(), text);
                assert!(partial.range(0, text.len() + 1).is_err());
            }
        }
    }

    #[test]
    fn fronts_stop_early() {
        let text: Vec<u8> = (0..3000u64).map(|i| (nacre_types::hash::hash_u64(i / 9) % 9) as u8).collect();
        let packed = lz4_flex::block::compress(&text);
        // What is behind the front does not matter to it.
        let mut partial = Partial::new(&packed[..packed.len() / 2], text.len());
        assert_eq!(partial.range(0, 800).unwrap(), &text[..800]);
        assert!(partial.range(0, 3000).is_err());
    }
}
