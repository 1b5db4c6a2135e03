//! Index entries for one integer index column and one integer key column: pairs of integers in
//! compressed blocks.
//!
//! Modelled on the tree nodes of upscaledb (Lemire and Rupp, *Upscaledb: Efficient integer-key
//! compression in a key-value store using SIMD instructions*, 2017). A block holds up to 128 pairs
//! in order: the difference of each key from the preceding one, bit-packed at the width of the
//! largest difference (BP128, for 64-bit integers), and the row as an offset from the smallest row.
//! Blocks have no fixed capacity: an insertion tries whether one more pair fits, and splits the
//! block if not. Removing a pair can take *more* bits, because a difference grows; that also splits
//! the block. A nearly empty block is merged into its predecessor.
//!
//! Blocks are found by a lower bound of their pairs, which is fixed for the lifetime of the block;
//! the first block has no lower bound. One lock guards them: writers hold it to rebuild a block or
//! two, readers to copy out a batch of pairs.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Maximum number of pairs in a block.
const MAX_PAIRS: usize = 128;
/// Maximum number of 64-bit words in a block.
const MAX_WORDS: usize = 64;
/// A block with fewer pairs is merged into its predecessor if the result leaves room to grow.
const FEW_PAIRS: usize = MAX_PAIRS / 8;
const JOINED_PAIRS: usize = MAX_PAIRS / 2;
// A block counts its pairs in a byte, one pair always fits, and merged blocks have room to grow.
const _: () = assert!(MAX_PAIRS <= u8::MAX as usize);
const _: () = assert!(MAX_WORDS >= size_of::<Pair>() / size_of::<u64>());
const _: () = assert!(FEW_PAIRS < JOINED_PAIRS && JOINED_PAIRS < MAX_PAIRS);

/// A key and a row.
pub(super) type Pair = (u64, u64);

/// Pairs in compressed blocks, behind one lock.
#[derive(Default)]
pub(super) struct Packed {
    blocks: RwLock<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// Keyed by a lower bound of the block's pairs; for the first block, the smallest possible
    /// pair.
    map: BTreeMap<Pair, Block>,
    pairs: usize,
    words: usize,
}

/// One or more pairs in ascending order.
#[derive(Debug)]
struct Block {
    count: u8,
    key_bits: u8,
    row_bits: u8,
    first: Pair,
    last: Pair,
    least_row: u64,
    /// For each pair, its key minus the preceding key (0 for the first) and its row minus
    /// `least_row`.
    words: Vec<u64>,
}

fn bits_of(value: u64) -> u8 {
    (u64::BITS - value.leading_zeros()) as u8
}

/// Number of words needed for `pairs` pairs.
fn words_for(pairs: usize, key_bits: u8, row_bits: u8) -> usize {
    (pairs * (key_bits as usize + row_bits as usize)).div_ceil(64)
}

/// Stores a value of `bits` bits where all bits are still zero.
fn put(words: &mut [u64], at: usize, bits: u8, value: u64) {
    debug_assert!(bits_of(value) <= bits, "{value} in {bits} bits");
    debug_assert_eq!(get(words, at, bits), 0, "bits from {at} on are in use");
    if bits == 0 {
        return;
    }
    let (word, shift) = (at / 64, at % 64);
    words[word] |= value << shift;
    if shift + bits as usize > 64 {
        words[word + 1] |= value >> (64 - shift);
    }
}

fn get(words: &[u64], at: usize, bits: u8) -> u64 {
    if bits == 0 {
        return 0;
    }
    let (word, shift) = (at / 64, at % 64);
    let mut value = words[word] >> shift;
    if shift + bits as usize > 64 {
        value |= words[word + 1] << (64 - shift);
    }
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

impl Block {
    /// Compresses pairs into a block; `None` if they do not fit or there are none.
    fn of(pairs: &[Pair]) -> Option<Block> {
        debug_assert!(pairs.is_sorted_by(|a, b| a < b), "pairs of a block must ascend");
        let (first, last) = (*pairs.first()?, *pairs.last()?);
        let (mut differences, mut before) = (0, first.0);
        let (mut least_row, mut greatest) = (u64::MAX, 0);
        for (key, row) in pairs {
            differences |= key - before;
            before = *key;
            (least_row, greatest) = (least_row.min(*row), greatest.max(*row));
        }
        let (key_bits, row_bits) = (bits_of(differences), bits_of(greatest - least_row));
        let length = words_for(pairs.len(), key_bits, row_bits);
        if pairs.len() > MAX_PAIRS || length > MAX_WORDS {
            return None;
        }
        let mut words = vec![0; length];
        let (mut at, mut before) = (0, first.0);
        for (key, row) in pairs {
            put(&mut words, at, key_bits, key - before);
            put(&mut words, at + key_bits as usize, row_bits, row - least_row);
            at += (key_bits + row_bits) as usize;
            before = *key;
        }
        let count = pairs.len() as u8;
        let block = Block { count, key_bits, row_bits, first, last, least_row, words };
        debug_assert!(block.holds(pairs), "a block must read back as it was written");
        Some(block)
    }

    /// Appends a pair beyond the last, if it needs no wider fields and there is room. Returns
    /// whether it did.
    fn append(&mut self, pair: Pair) -> bool {
        debug_assert!(pair > self.last, "{pair:?} is not beyond the last pair {:?}", self.last);
        let count = self.count as usize;
        debug_assert_eq!(
            self.words.len(),
            words_for(count, self.key_bits, self.row_bits),
            "words of {count} pairs"
        );
        let Some(row) = pair.1.checked_sub(self.least_row) else { return false };
        let difference = pair.0 - self.last.0;
        let length = words_for(count + 1, self.key_bits, self.row_bits);
        let fits = bits_of(difference) <= self.key_bits && bits_of(row) <= self.row_bits;
        if !fits || count == MAX_PAIRS || length > MAX_WORDS {
            return false;
        }
        self.words.resize(length, 0);
        let at = count * (self.key_bits + self.row_bits) as usize;
        put(&mut self.words, at, self.key_bits, difference);
        put(&mut self.words, at + self.key_bits as usize, self.row_bits, row);
        (self.count, self.last) = (self.count + 1, pair);
        debug_assert_eq!(
            (
                get(&self.words, at, self.key_bits),
                get(&self.words, at + self.key_bits as usize, self.row_bits)
            ),
            (difference, row),
            "the bits of an appended pair"
        );
        true
    }

    /// Whether the block decodes to these pairs.
    fn holds(&self, pairs: &[Pair]) -> bool {
        let mut decoded = Vec::with_capacity(pairs.len());
        self.pairs(&mut decoded);
        decoded == pairs
    }

    /// Appends the block's pairs to `out`.
    fn pairs(&self, out: &mut Vec<Pair>) {
        debug_assert!(self.words.len() <= MAX_WORDS, "a block of {} words", self.words.len());
        debug_assert_eq!(
            self.words.len(),
            words_for(self.count as usize, self.key_bits, self.row_bits),
            "words of {} pairs",
            self.count
        );
        let before = out.len();
        let (mut key, mut at) = (self.first.0, 0);
        for _ in 0..self.count {
            key += get(&self.words, at, self.key_bits);
            at += self.key_bits as usize;
            out.push((key, self.least_row + get(&self.words, at, self.row_bits)));
            at += self.row_bits as usize;
        }
        debug_assert_eq!(out.get(before), Some(&self.first), "the first pair of a block");
        debug_assert_eq!(out.last(), Some(&self.last), "the last pair of a block");
    }
}

/// Inserts pairs as the block with lower bound `from`, or as several blocks if they do not fit one.
fn put_blocks(blocks: &mut Blocks, from: Pair, pairs: &[Pair]) {
    debug_assert!(
        pairs.first().is_none_or(|first| from <= *first),
        "{from:?} bounds no block of {pairs:?}"
    );
    match Block::of(pairs) {
        Some(block) => {
            blocks.words += block.words.len();
            debug_assert!(
                blocks.map.range(..from).next_back().is_none_or(|(_, before)| before.last < from),
                "block {from:?} begins inside the one before"
            );
            debug_assert!(
                blocks.map.range(from..).next().is_none_or(|(after, _)| block.last < *after),
                "block {from:?} reaches past the next, or replaces another"
            );
            blocks.map.insert(from, block);
        }
        None if pairs.is_empty() => {}
        None => {
            debug_assert!(pairs.len() > 1, "one pair always fits a block");
            let (low, high) = pairs.split_at(pairs.len().div_ceil(2));
            put_blocks(blocks, from, low);
            put_blocks(blocks, high[0], high);
        }
    }
}

impl Blocks {
    /// Whether the counts are plausible for this number of blocks.
    fn is_plausible(&self) -> bool {
        let blocks = self.map.len();
        (blocks..=blocks * MAX_PAIRS).contains(&self.pairs) && self.words <= blocks * MAX_WORDS
    }

    /// Removes a block so that the caller can rebuild it.
    fn take(&mut self, from: Pair) {
        let block = self.map.remove(&from);
        debug_assert!(block.is_some(), "there is no block at {from:?} to remove");
        if let Some(block) = block {
            debug_assert!(self.words >= block.words.len(), "more words removed than inserted");
            self.words -= block.words.len();
        }
    }

    /// Merges a nearly empty block into its predecessor.
    fn join(&mut self, from: Pair) {
        let few = |block: &Block| (block.count as usize) < FEW_PAIRS;
        if from == (0, 0) || !self.map.get(&from).is_some_and(few) {
            return;
        }
        let Some((before, other)) = self.map.range(..from).next_back() else { return };
        let before = *before;
        let mut pairs = Vec::with_capacity(MAX_PAIRS);
        debug_assert!(other.last < from, "block {before:?} reaches past block {from:?}");
        other.pairs(&mut pairs);
        if let Some(block) = self.map.get(&from) {
            block.pairs(&mut pairs);
        }
        if pairs.len() <= JOINED_PAIRS && Block::of(&pairs).is_some() {
            self.take(from);
            self.take(before);
            put_blocks(self, before, &pairs);
        }
    }
}

impl Packed {
    fn read<R>(&self, look: impl FnOnce(&Blocks) -> R) -> R {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(
            blocks.is_plausible(),
            "{} pairs in {} blocks",
            blocks.pairs,
            blocks.map.len()
        );
        look(&blocks)
    }

    fn write<R>(&self, change: impl FnOnce(&mut Blocks) -> R) -> R {
        let mut blocks = self.blocks.write().unwrap_or_else(PoisonError::into_inner);
        let answer = change(&mut blocks);
        debug_assert!(
            blocks.is_plausible(),
            "{} pairs in {} blocks",
            blocks.pairs,
            blocks.map.len()
        );
        answer
    }

    /// Inserts a pair. Returns `false` if it exists already.
    pub fn insert(&self, pair: Pair) -> bool {
        self.write(|blocks| {
            let is_last = blocks.map.last_key_value().is_none_or(|(from, _)| *from <= pair);
            let Some((from, block)) = blocks.map.range_mut(..=pair).next_back() else {
                blocks.pairs += 1;
                put_blocks(blocks, (0, 0), &[pair]);
                return true;
            };
            debug_assert!(*from <= block.first, "a pair below the bound {from:?} of its block");
            let before = block.words.len();
            if pair > block.last && block.append(pair) {
                blocks.pairs += 1;
                blocks.words += block.words.len() - before;
                return true;
            }
            let mut pairs = Vec::with_capacity(MAX_PAIRS + 1);
            block.pairs(&mut pairs);
            let Err(at) = pairs.binary_search(&pair) else { return false };
            pairs.insert(at, pair);
            blocks.pairs += 1;
            if let Some(new) = Block::of(&pairs) {
                blocks.words += new.words.len();
                blocks.words -= before;
                *block = new;
            } else if is_last && at + 1 == pairs.len() {
                // Ascending keys append at the end and leave full blocks behind.
                put_blocks(blocks, pair, &[pair]);
            } else {
                let from = *from;
                blocks.take(from);
                put_blocks(blocks, from, &pairs);
            }
            true
        })
    }

    /// Removes a pair. Returns whether it existed.
    pub fn remove(&self, pair: Pair) -> bool {
        self.write(|blocks| {
            let Some((from, block)) = blocks.map.range_mut(..=pair).next_back() else {
                return false;
            };
            debug_assert!(*from <= block.first, "a pair below the bound {from:?} of its block");
            let (from, before) = (*from, block.words.len());
            let mut pairs = Vec::with_capacity(MAX_PAIRS);
            block.pairs(&mut pairs);
            let Ok(at) = pairs.binary_search(&pair) else { return false };
            pairs.remove(at);
            if let Some(new) = Block::of(&pairs) {
                blocks.words += new.words.len();
                blocks.words -= before;
                *block = new;
            } else {
                blocks.take(from);
                put_blocks(blocks, from, &pairs);
            }
            debug_assert!(blocks.pairs > 0, "a pair is removed from no pairs");
            blocks.pairs -= 1;
            if pairs.len() < FEW_PAIRS {
                blocks.join(from);
            }
            true
        })
    }

    /// Appends up to `limit` pairs from `from` on, and before `to` if given, to `out`.
    pub fn range(&self, from: Pair, to: Option<Pair>, limit: usize, out: &mut Vec<Pair>) {
        if to.is_some_and(|to| to <= from) {
            return;
        }
        self.read(|blocks| {
            let start = blocks.map.range(..=from).next_back().map_or((0, 0), |(start, _)| *start);
            let (mut left, before) = (limit, out.len());
            let mut pairs = Vec::with_capacity(MAX_PAIRS);
            for (_, block) in blocks.map.range(start..) {
                if left == 0 || to.is_some_and(|to| block.first >= to) {
                    break;
                }
                if block.last < from {
                    continue;
                }
                pairs.clear();
                block.pairs(&mut pairs);
                let first = pairs.partition_point(|pair| *pair < from);
                let end = to.map_or(pairs.len(), |to| pairs.partition_point(|pair| *pair < to));
                debug_assert!(first <= end, "pairs from {first} to {end} of a block");
                let found = &pairs[first..end.min(first.saturating_add(left))];
                out.extend_from_slice(found);
                left -= found.len();
            }
            debug_assert!(out[before..].is_sorted_by(|a, b| a < b), "pairs do not ascend");
        });
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.read(|blocks| blocks.pairs)
    }

    /// Approximate memory of all blocks, in bytes: the nodes of a B-tree are two thirds full.
    pub fn bytes(&self) -> usize {
        let a_block = size_of::<(Pair, Block)>() * 3 / 2 + 16;
        self.read(|blocks| blocks.words * 8 + blocks.map.len() * a_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_types::hash::hash_u64;
    use std::collections::BTreeSet;

    fn check(packed: &Packed, model: &BTreeSet<Pair>, seed: u64) {
        assert_eq!(packed.len(), model.len());
        let mut all = Vec::new();
        packed.range((0, 0), None, usize::MAX, &mut all);
        assert!(all.iter().eq(model.iter()), "seed {seed}");
        packed.read(|blocks| {
            assert_eq!(blocks.words, blocks.map.values().map(|b| b.words.len()).sum::<usize>());
            for (from, block) in &blocks.map {
                let mut pairs = Vec::new();
                block.pairs(&mut pairs);
                assert!(!pairs.is_empty() && pairs[0] >= *from && block.words.len() <= MAX_WORDS);
                assert_eq!((pairs[0], pairs[pairs.len() - 1]), (block.first, block.last));
            }
        });
        for n in 0..20 {
            let random = |k: u64| hash_u64(seed * 1000 + n * 10 + k);
            let bound = |k: u64| match model.iter().nth(random(k) as usize % model.len().max(1)) {
                Some((key, row)) => {
                    (key.saturating_add(random(k + 1) % 3), row.saturating_add(random(k + 2) % 3))
                }
                None => (random(k), 0),
            };
            let (from, to, limit) = (
                bound(1),
                (!random(4).is_multiple_of(4)).then(|| bound(5)),
                random(8) as usize % 300,
            );
            let mut found = Vec::new();
            packed.range(from, to, limit, &mut found);
            let before = |pair: &&Pair| to.is_none_or(|to| **pair < to);
            let expected: Vec<Pair> =
                model.range(from..).take_while(before).take(limit).copied().collect();
            assert_eq!(found, expected, "seed {seed}: {from:?} to {to:?}, {limit} at most");
        }
    }

    /// A key and a row of some kind: dense, sparse, often repeated, at the ends of the domain.
    fn pair(seed: u64, n: u64) -> Pair {
        let random = hash_u64(seed.wrapping_mul(7919) ^ n);
        match seed % 6 {
            0 => (n, n),
            1 => (random, random >> 7),
            2 => (random % 5, random >> 20),
            3 => (random % 3000, random >> 40),
            4 => (u64::MAX - random % 200, u64::MAX - random % 3),
            _ => (random % 1000 * (1 << (n % 50)), random % 100_000),
        }
    }

    #[test]
    fn it_is_a_set_of_pairs() {
        for seed in 0..18 {
            let (packed, mut model) = (Packed::default(), BTreeSet::new());
            for n in 0..6_000u64 {
                let random = hash_u64(seed * 31 + n * 3);
                // The set mostly grows at first, then mostly shrinks.
                if random % 10 < if n < 3_500 { 8 } else { 3 } {
                    let new = pair(seed, random % 4_000);
                    assert_eq!(packed.insert(new), model.insert(new), "seed {seed}, step {n}");
                } else if let Some(old) =
                    model.iter().nth(random as usize % model.len().max(1)).copied()
                {
                    assert!(packed.remove(old) && model.remove(&old), "seed {seed}, step {n}");
                    assert!(!packed.remove(old));
                }
                if n % 500 == 499 {
                    check(&packed, &model, seed);
                }
            }
            for old in std::mem::take(&mut model) {
                assert!(packed.remove(old));
            }
            assert_eq!((packed.len(), packed.bytes()), (0, 0), "seed {seed}");
        }
    }

    #[test]
    fn taking_a_pair_out_may_split_a_block() {
        let packed = Packed::default();
        let mut model = BTreeSet::new();
        // 32 bits per pair, the maximum number of pairs: a difference of one more bit does not fit.
        let pairs = (0..MAX_PAIRS as u64).map(|n| (n * 3, hash_u64(n) % (1 << 30)));
        pairs.for_each(|pair| assert!(packed.insert(pair) && model.insert(pair)));
        let blocks = || packed.read(|blocks| blocks.map.len());
        assert_eq!(blocks(), 1);
        let before = packed.bytes();
        let middle = *model.iter().nth(64).unwrap();
        assert!(packed.remove(middle) && model.remove(&middle));
        assert_eq!(blocks(), 2);
        assert!(packed.bytes() > before);
        check(&packed, &model, 1);
    }

    #[test]
    fn keys_in_a_row_fill_their_blocks() {
        let packed = Packed::default();
        (0..100_000).for_each(|n| assert!(packed.insert((n, n))));
        assert!(packed.bytes() < 300_000, "{} bytes", packed.bytes());
        assert_eq!(packed.read(|blocks| blocks.map.len()), 100_000usize.div_ceil(MAX_PAIRS));
    }
}
