//! Postings lists: strictly ascending row offsets, compressed, read forward with skipping.
//!
//! A list is the number of rows as a varint. Up to 16 rows follow as varints: the first row, then
//! each row's distance from its predecessor, less one. More rows come in blocks of 128: one entry
//! of 8 bytes per block (its first row `u32`; `u32`: where its words start in 16-byte units from
//! the first block, in the low 26 bits, and their width in bits in the high 6), then the words of
//! all blocks. A block is a BP128 block without its head: 128 distances (the last block may have
//! fewer) from the preceding row, less one, packed over four lanes, the first one zero. Consecutive
//! rows thus take no bits, and a search for a row reads the entries up to its block and decodes
//! only that block.
//!
//! The inverted index of a segment writes a list once ([`encode`]) and opens a [`Postings`] per
//! query; [`Postings::advance_to`] intersects several lists. Bytes are untrusted: a damaged list is
//! `corrupt` or yields other rows, still in ascending order.

use super::block::corrupt;
use super::bp128::{LANES, ROWS, decode};
use crate::pack::{pack, packed_bytes, width_of};
use nacre_types::bytes::{Reader, Write};
use nacre_types::{Error, Result, invariant};

/// Maximum length of a list without blocks: most values of most indexes occur once or a few times.
const FEW: usize = 16;
const ENTRY_BYTES: usize = 8;
/// Unit of block offsets, in bytes.
const UNIT_BYTES: usize = 16;
/// Bits of an offset.
const OFFSET_BITS: u32 = 26;
// An entry fits an offset and the widest width in 32 bits; the words of every block are whole
// units.
const _: () = assert!(OFFSET_BITS + width_of(u32::BITS as u64) == u32::BITS);
const _: () = assert!((LANES * size_of::<u32>()).is_multiple_of(UNIT_BYTES));
const DISORDER: &str = "postings do not ascend";

/// Appends the list of `rows`, which must ascend strictly.
pub fn encode(rows: &[u32], out: &mut Vec<u8>) {
    invariant!(rows.len() <= u32::MAX as usize, "a postings list of {} rows", rows.len());
    debug_assert!(rows.is_sorted_by(|a, b| a < b), "rows of a postings list do not ascend");
    let before = out.len();
    out.put_varint(rows.len() as u64);
    if rows.len() <= FEW {
        rows.first().into_iter().for_each(|first| out.put_varint(*first as u64));
        rows.windows(2).for_each(|pair| out.put_varint(distance(pair) as u64));
    } else {
        encode_blocks(rows, out);
    }
    debug_assert!(
        decoded(&out[before..]).is_ok_and(|read| read == rows),
        "a postings list does not read back"
    );
}

/// The distance of a row from its predecessor, less one.
fn distance(pair: &[u32]) -> u32 {
    pair[1].wrapping_sub(pair[0]).wrapping_sub(1)
}

/// All rows of a list.
fn decoded(list: &[u8]) -> Result<Vec<u32>> {
    let mut rows = Vec::new();
    Postings::open(list)?.rest(&mut rows)?;
    Ok(rows)
}

/// Appends the entries and the words of blocks.
fn encode_blocks(rows: &[u32], out: &mut Vec<u8>) {
    let mut words = Vec::new();
    for block in rows.chunks(ROWS) {
        let mut distances = [0u32; ROWS];
        let mut all = 0;
        for (out, pair) in distances[1..].iter_mut().zip(block.windows(2)) {
            *out = distance(pair);
            all |= *out;
        }
        let width = width_of(all as u64);
        out.put_u32(block[0]);
        let offset = words.len() / UNIT_BYTES;
        invariant!(offset < 1 << OFFSET_BITS, "a postings block at unit {offset}");
        debug_assert!(words.len().is_multiple_of(UNIT_BYTES), "a postings block off its unit");
        out.put_u32(offset as u32 | width << OFFSET_BITS);
        pack::<u32, LANES>(&distances[..block.len()], width, &mut words);
    }
    out.extend_from_slice(&words);
}

/// Forward reader of a list.
pub struct Postings<'a> {
    entries: &'a [[u8; ENTRY_BYTES]],
    words: &'a [u8],
    count: usize,
    /// Rows of the current block, their number, and the position of the next row to return.
    rows: [u32; ROWS],
    have: usize,
    at: usize,
    /// Index of the block after the current one.
    next_block: usize,
    /// The last row returned.
    last: Option<u32>,
}

impl<'a> Postings<'a> {
    /// Reads the head of a list that occupies all of `bytes`.
    pub fn open(bytes: &'a [u8]) -> Result<Postings<'a>> {
        let mut reader = Reader::new(bytes, "postings");
        let count = reader.count(u32::MAX as usize)?;
        let mut list = Postings {
            entries: &[],
            words: &[],
            count,
            rows: [0; ROWS],
            have: 0,
            at: 0,
            next_block: 0,
            last: None,
        };
        if count <= FEW {
            let mut previous: Option<u32> = None;
            for row in list.rows.iter_mut().take(count) {
                let distance = reader.varint()?;
                let next = previous.map_or(distance, |p| (p as u64 + 1).saturating_add(distance));
                *row = u32::try_from(next).map_err(|_| corrupt("postings exceed 32 bits"))?;
                previous = Some(*row);
            }
            list.have = count;
            reader.finish()?;
            return Ok(list);
        }
        let entries = reader.take(count.div_ceil(ROWS).saturating_mul(ENTRY_BYTES))?;
        list.entries = entries.as_chunks().0;
        list.words = reader.take(reader.remaining())?;
        Ok(list)
    }

    /// Number of rows in the whole list.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the list has no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn first_of(&self, block: usize) -> Option<u32> {
        let [a, b, c, d, ..] = *self.entries.get(block)?;
        Some(u32::from_le_bytes([a, b, c, d]))
    }

    /// Decodes a block and moves before its first row.
    fn load(&mut self, block: usize) -> Result<()> {
        let Some([a, b, c, d, e, f, g, h]) = self.entries.get(block).copied() else {
            return Err(corrupt("postings have no such block"));
        };
        let (first, place) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let (offset, width) = (place & ((1 << OFFSET_BITS) - 1), place >> OFFSET_BITS);
        debug_assert!(block * ROWS < self.count, "block {block} of {} rows", self.count);
        let have = ROWS.min(self.count - block * ROWS);
        let length = packed_bytes::<u32, LANES>(have, width);
        let words =
            self.words.get(offset as usize * UNIT_BYTES..).and_then(|words| words.get(..length));
        let Some(words) = words.filter(|_| width <= 32) else { return Err(ends_early()) };
        decode(words, width, first, 1, &mut self.rows, have);
        // Damaged distances may wrap; then the rows do not ascend.
        let ascends = self.rows[..have].is_sorted_by(|a, b| a < b)
            && self.last.is_none_or(|last| last < self.rows[0]);
        if !ascends || self.rows[0] != first {
            return Err(corrupt(DISORDER));
        }
        (self.have, self.at, self.next_block) = (have, 0, block + 1);
        Ok(())
    }

    /// Returns the current row, if the block has one, and moves past it.
    fn pass(&mut self) -> Option<u32> {
        let row = *self.rows[..self.have].get(self.at)?;
        debug_assert!(self.last.is_none_or(|last| last < row), "row {row} after {:?}", self.last);
        self.at += 1;
        self.last = Some(row);
        Some(row)
    }

    /// The next row; `None` past the last one.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator could not say that bytes are damaged"
    )]
    pub fn next(&mut self) -> Result<Option<u32>> {
        if self.at >= self.have {
            if self.next_block >= self.entries.len() {
                return Ok(None);
            }
            self.load(self.next_block)?;
        }
        Ok(self.pass())
    }

    /// The first row not returned yet and not below `row`; `None` if there is none. Skips preceding
    /// blocks without decoding them.
    pub fn advance_to(&mut self, row: u32) -> Result<Option<u32>> {
        // Finds the last block that starts at or before the row, if it is ahead: galloping, then
        // binary search.
        if self.next_block < self.entries.len()
            && self.first_of(self.next_block).is_some_and(|first| first <= row)
        {
            let (mut low, mut step) = (self.next_block, 1);
            while self.first_of(low + step).is_some_and(|first| first <= row) {
                low += step;
                step *= 2;
            }
            let mut high = (low + step).min(self.entries.len());
            while high - low > 1 {
                let middle = low.midpoint(high);
                if self.first_of(middle).is_some_and(|first| first <= row) {
                    low = middle
                } else {
                    high = middle
                }
            }
            debug_assert!(
                self.first_of(low).is_some_and(|first| first <= row),
                "block {low} starts after row {row}"
            );
            self.load(low)?;
        }
        let rest = &self.rows[self.at.min(self.have)..self.have];
        self.at += rest.partition_point(|r| *r < row);
        debug_assert!(self.at <= ROWS, "position {} in a block of {ROWS}", self.at);
        if self.at < self.have { Ok(self.pass()) } else { self.next() }
    }

    /// Appends all remaining rows.
    pub fn rest(&mut self, out: &mut Vec<u32>) -> Result<()> {
        // Reserves no more than the words justify: a damaged count must not cause a huge
        // allocation.
        out.reserve((self.count).min(self.entries.len() * ROWS + FEW));
        loop {
            let rest = &self.rows[self.at.min(self.have)..self.have];
            out.extend_from_slice(rest);
            self.last = rest.last().copied().or(self.last);
            self.at = self.have;
            if self.next_block >= self.entries.len() {
                return Ok(());
            }
            self.load(self.next_block)?;
        }
    }
}

#[cold]
fn ends_early() -> Error {
    corrupt("postings end early")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::hash::hash_u64;

    fn lists() -> Vec<Vec<u32>> {
        let mut out: Vec<Vec<u32>> =
            vec![vec![], vec![0], vec![u32::MAX], vec![0, u32::MAX], (5..900).collect()];
        for count in [2usize, 16, 17, 127, 128, 129, 256, 300, 5000] {
            for spread in [1u64, 2, 30, 5_000, 800_000] {
                let mut rows: Vec<u32> = (0..count as u64)
                    .map(|i| (hash_u64(i * 31 + spread) % (count as u64 * spread)) as u32)
                    .collect();
                rows.sort_unstable();
                rows.dedup();
                out.push(rows);
            }
        }
        out.push((0..200).map(|i| u32::MAX - 199 + i).collect());
        out
    }

    fn encoded(rows: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(rows, &mut out);
        out
    }

    #[test]
    fn lists_come_back() {
        for rows in lists() {
            let bytes = encoded(&rows);
            let mut list = Postings::open(&bytes).unwrap();
            assert_eq!((list.len(), list.is_empty()), (rows.len(), rows.is_empty()));
            let mut found = Vec::new();
            while let Some(row) = list.next().unwrap() {
                found.push(row);
            }
            assert_eq!(found, rows);
            assert_eq!(list.next().unwrap(), None);
            let mut list = Postings::open(&bytes).unwrap();
            let first = list.next().unwrap();
            let mut rest: Vec<u32> = first.into_iter().collect();
            list.rest(&mut rest).unwrap();
            assert_eq!(rest, rows);
            assert_eq!(list.next().unwrap(), None);
        }
    }

    #[test]
    fn advancing_finds_what_walking_finds() {
        for (seed, rows) in lists().into_iter().enumerate() {
            let bytes = encoded(&rows);
            for round in 0..20u64 {
                let mut list = Postings::open(&bytes).unwrap();
                let mut from = 0;
                let mut target = 0u32;
                for step in 0..50u64 {
                    let random = hash_u64(seed as u64 * 1_000_003 + round * 1009 + step);
                    let expected;
                    let found;
                    if random.is_multiple_of(4) {
                        expected = rows.get(from).copied();
                        found = list.next().unwrap();
                    } else {
                        // Targets are ahead of, behind and equal to rows.
                        target = match (random >> 8) % 3 {
                            0 => {
                                rows.get(random as usize % rows.len().max(1)).copied().unwrap_or(9)
                            }
                            1 => target.saturating_add((random >> 20) as u32 % 5_000),
                            _ => (random >> 20) as u32,
                        };
                        let skipped =
                            rows[from.min(rows.len())..].partition_point(|row| *row < target);
                        from += skipped;
                        expected = rows.get(from).copied();
                        found = list.advance_to(target).unwrap();
                    }
                    from += 1;
                    assert_eq!(
                        found, expected,
                        "list {seed}, round {round}, step {step}, target {target}"
                    );
                    if expected.is_none() {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn skipping_decodes_one_block() {
        let rows: Vec<u32> = (0..100_000).map(|i| i * 7).collect();
        let mut bytes = encoded(&rows);
        // Damages the width of every block but the fifth.
        let entries = bytes.len()
            - rows.chunks(ROWS).map(|b| packed_bytes::<u32, LANES>(b.len(), 3)).sum::<usize>();
        let start = entries - rows.len().div_ceil(ROWS) * ENTRY_BYTES;
        for block in (0..rows.len().div_ceil(ROWS)).filter(|block| *block != 5) {
            bytes[start + block * ENTRY_BYTES + 7] = 0xff;
        }
        let mut list = Postings::open(&bytes).unwrap();
        assert_eq!(list.advance_to(5 * 128 * 7 + 1).unwrap(), Some((5 * 128 + 1) * 7));
        assert!(list.advance_to(50 * 128 * 7).is_err());
    }

    #[test]
    fn runs_take_next_to_nothing_and_single_rows_few_bytes() {
        assert!(
            encoded(&(0..1 << 20).collect::<Vec<_>>()).len() <= (1 << 20) / 128 * ENTRY_BYTES + 8
        );
        assert_eq!(encoded(&[77]).len(), 2);
        assert!(encoded(&[1_000_000]).len() <= 4);
    }

    #[test]
    fn damage_is_an_error_or_other_rows() {
        for (seed, rows) in lists().into_iter().enumerate() {
            let whole = encoded(&rows);
            let survive = |bytes: &[u8]| {
                let Ok(mut list) = Postings::open(bytes) else { return };
                let mut last = None;
                while let Ok(Some(row)) = list.next() {
                    assert!(last.is_none_or(|last| last < row), "rows ascend");
                    last = Some(row);
                }
                let Ok(mut list) = Postings::open(bytes) else { return };
                let _ = list.advance_to(1000);
                let _ = list.advance_to(1 << 20);
                let _ = list.rest(&mut Vec::new());
            };
            (0..whole.len().min(300)).for_each(|cut| survive(&whole[..cut]));
            for round in 0..200u64 {
                let mut bytes = whole.clone();
                let random = hash_u64(seed as u64 * 1000 + round);
                let room = if round % 2 == 0 { bytes.len().min(40) } else { bytes.len() };
                bytes[random as usize % room] = (random >> 40) as u8;
                survive(&bytes);
            }
        }
    }
}
