//! Training: which tokens a column gets.
//!
//! A sample of the column is split by the tokens found so far, beginning with single bytes. Once two
//! tokens were neighbours often enough, they become one, and the split goes on with it. So a single
//! pass finds words, and pairs of words (Gargiulo and Venturini, *OnPair: Short Strings Compression
//! for Fast Random Access*, 2025).

use super::tokens::{LONGEST, MAX_TOKENS, TokenSet};
use crate::{Bitmap, Values};
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
    pub(crate) fn train(blocks: &[(Values, Option<Bitmap>)]) -> Option<TokenSet> {
        let mut occurs = [false; 256];
        let mut total = 0;
        for (values, _) in blocks {
            let Values::Bytes(column) = values else { return None };
            column.data.iter().for_each(|byte| occurs[*byte as usize] = true);
            total += column.data.len();
        }
        if total == 0 {
            return None;
        }
        let mut tokens = TokenSet::of_bytes(&occurs);
        let mut left = (total / SAMPLE_ONE_IN).clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        // How often a pair is seen before it becomes a token.
        let often = if left < 512 << 10 { 3 } else { 4 };
        let mut pairs = Pairs(vec![0; COUNTED]);
        for pass in 0..PASSES {
            for (values, validity) in blocks {
                let Values::Bytes(column) = values else { return None };
                for row in (pass * PASS_STEP % PASSES..column.len()).step_by(PASSES) {
                    if validity.as_ref().is_some_and(|bits| !bits.get(row)) {
                        continue;
                    }
                    let start = column.offsets[row] as usize;
                    let end = (column.offsets[row + 1] as usize).min(start + ROW_BYTES);
                    tokens.learn(&column.data, start..end, &mut pairs, often);
                    left = left.saturating_sub(end - start);
                    if left == 0 || tokens.len() == MAX_TOKENS {
                        return Some(tokens.sorted());
                    }
                }
            }
        }
        Some(tokens.sorted())
    }
}
