//! Training: which tokens a column gets.
//!
//! A sample of the column is split by the tokens found so far, beginning with single bytes. Once two
//! tokens were neighbours often enough, they become one, and the split goes on with it. So a single
//! pass finds words, and pairs of words (Gargiulo and Venturini, *OnPair: Short Strings Compression
//! for Fast Random Access*, 2025).

use super::tokens::{LONGEST, MAX_TOKENS, TokenSet};
use crate::{BlockValues, Values};
use nacre_types::invariant;
use std::ops::{Range, RangeInclusive};

/// The sample has this part of the column's bytes, within limits.
const SAMPLE_ONE_IN: usize = 8;
const SAMPLE_BYTES: RangeInclusive<usize> = 128 << 10..=1 << 20;
/// Bytes of a row that are sampled.
const ROW_BYTES: usize = 2 << 10;
/// Passes over the column. Each samples one row in as many of every block, and begins elsewhere: a
/// column whose texts change from block to block thus contributes all of them.
const PASSES: usize = 256;
/// Odd, so that the passes begin at every row of [`PASSES`] once.
const PASS_STEP: usize = 101;
/// Bytes of a column that are scanned in a step. It takes as long as encoding a block of numbers.
const SCAN_BYTES: usize = 256 << 10;
/// Bytes that are learned from in a step, and those that take as long as a block of numbers.
const LEARN_BYTES: usize = 16 << 10;
const LEARN_COST_BYTES: usize = 4 << 10;
/// What a row costs besides its bytes, in bytes.
const ROW_COST_BYTES: usize = 4;
/// Entries of the table of pairs.
const COUNTED: usize = 1 << 16;

/// Counts pairs of tokens. Each entry counts one pair at a time, the most frequent of those that
/// share it most likely.
struct Pairs(Vec<u32>);

impl Pairs {
    /// Counts a pair once more; returns how often it was counted.
    fn count(&mut self, first: usize, second: usize) -> u32 {
        debug_assert!(first < MAX_TOKENS && second < MAX_TOKENS, "a pair of {first} and {second}");
        let pair = (first * MAX_TOKENS + second) as u32;
        let at = pair.wrapping_mul(0x9e37_79b1) as usize >> (32 - COUNTED.ilog2());
        let entry = &mut self.0[at];
        let count = *entry & 0xff;
        if *entry >> 8 == pair {
            *entry = pair << 8 | (count + 1).min(0xff);
            return *entry & 0xff;
        }
        *entry = if count > 1 { *entry - 1 } else { pair << 8 | 1 };
        0
    }
}

impl TokenSet {
    /// Splits a text and joins pairs of tokens that were counted `often`.
    fn learn(&mut self, data: &[u8], text: Range<usize>, pairs: &mut Pairs, often: u32) {
        let mut previous: Option<(usize, usize)> = None;
        let mut at = text.start;
        while at < text.end {
            let Some((number, len)) = self.longest(data, at, text.end) else { return };
            at += len;
            let joined = match previous {
                Some((first, before)) if before + len <= LONGEST => {
                    let count = pairs.count(first, number);
                    if count < often { None } else { self.join(first, number) }
                        .map(|number| (number, before + len))
                }
                _ => None,
            };
            previous = joined.or(Some((number, len)));
        }
    }

    /// Trains the tokens of a column of text or binary; `None` if it has no bytes.
    #[cfg(test)]
    pub(crate) fn train(blocks: &[BlockValues]) -> Option<TokenSet> {
        let mut training = Training::new();
        while training.step(blocks).is_some() {}
        training.finish()
    }
}

/// The training of the tokens of a column of text or binary, in steps. Each takes the same blocks.
pub(crate) struct Training {
    occurs: Box<[bool; 256]>,
    /// Bytes scanned.
    total: usize,
    /// The next block, and the next byte in it, to be scanned.
    block: usize,
    byte: usize,
    /// Begins once all bytes are scanned.
    learning: Option<Learning>,
}

impl Training {
    pub fn new() -> Training {
        Training { occurs: Box::new([false; 256]), total: 0, block: 0, byte: 0, learning: None }
    }

    /// Scans or learns from some bytes; returns what that cost, in blocks of numbers. `None` once
    /// the tokens are trained.
    pub fn step(&mut self, blocks: &[BlockValues]) -> Option<usize> {
        if let Some(learning) = &mut self.learning {
            return learning.step(blocks);
        }
        let Some((values, _)) = blocks.get(self.block) else {
            self.learning = (self.total > 0).then(|| Learning::new(&self.occurs, self.total));
            return self.learning.as_ref().map(|_| 1);
        };
        let Values::Bytes(column) = values else { return None };
        debug_assert!(self.byte <= column.data.len(), "a scan from byte {}", self.byte);
        let end = column.data.len().min(self.byte + SCAN_BYTES);
        column.data[self.byte..end].iter().for_each(|byte| self.occurs[*byte as usize] = true);
        self.total += end - self.byte;
        self.byte = end;
        if end == column.data.len() {
            (self.block, self.byte) = (self.block + 1, 0);
        }
        Some(1)
    }

    /// The tokens, once every step is done; `None` if the column has no bytes.
    pub fn finish(self) -> Option<TokenSet> {
        let learning = self.learning?;
        invariant!(learning.is_done(), "training ends in pass {}", learning.pass);
        Some(learning.tokens.sorted())
    }
}

struct Learning {
    tokens: TokenSet,
    pairs: Pairs,
    /// Bytes left to learn from.
    left: usize,
    /// How often a pair is seen before it becomes a token.
    often: u32,
    pass: usize,
    /// The next block of the pass.
    block: usize,
}

impl Learning {
    fn new(occurs: &[bool; 256], total: usize) -> Learning {
        let left = (total / SAMPLE_ONE_IN).clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        let often = if left < 512 << 10 { 3 } else { 4 };
        let (tokens, pairs) = (TokenSet::of_bytes(occurs), Pairs(vec![0; COUNTED]));
        debug_assert!(tokens.len() > 0, "{total} bytes of which none occurs");
        Learning { tokens, pairs, left, often, pass: 0, block: 0 }
    }

    fn is_done(&self) -> bool {
        self.left == 0 || self.tokens.len() == MAX_TOKENS || self.pass == PASSES
    }

    fn step(&mut self, blocks: &[BlockValues]) -> Option<usize> {
        if self.is_done() {
            return None;
        }
        debug_assert!(self.block <= blocks.len(), "a pass at block {}", self.block);
        let mut cost = 0;
        while cost < LEARN_BYTES && !self.is_done() {
            match blocks.get(self.block) {
                Some(block) => {
                    cost += self.sample(block);
                    self.block += 1;
                }
                None => (self.pass, self.block) = (self.pass + 1, 0),
            }
        }
        Some(1 + cost / LEARN_COST_BYTES)
    }

    /// Learns from the rows of a block that the pass samples; returns what that cost, in bytes.
    fn sample(&mut self, (values, validity): &BlockValues) -> usize {
        let Values::Bytes(column) = values else { return 0 };
        let mut cost = 0;
        for row in (self.pass * PASS_STEP % PASSES..column.len()).step_by(PASSES) {
            cost += ROW_COST_BYTES;
            if validity.as_ref().is_some_and(|bits| !bits.get(row)) {
                continue;
            }
            let start = column.offsets[row] as usize;
            let end = (column.offsets[row + 1] as usize).min(start + ROW_BYTES);
            self.tokens.learn(&column.data, start..end, &mut self.pairs, self.often);
            self.left = self.left.saturating_sub(end - start);
            cost += end - start;
            if self.is_done() {
                break;
            }
        }
        debug_assert!(cost <= 2 * PASSES * ROW_BYTES, "{cost} bytes of a block in one pass");
        cost
    }
}
