//! A set of tokens, strings of 1 to 16 bytes, and the search for the longest one that a text starts
//! with.
//!
//! A token is kept as a 128-bit word, padded with zeroes, so that comparing and hashing it takes a
//! few instructions. Which lengths occur after the same first three bytes is known, so most lengths
//! are never looked up.

use crate::{BytesColumn, Values};
use nacre_types::{hash::hash_u64, invariant};

/// Maximum length of a token, in bytes.
pub(super) const LONGEST: usize = 16;
/// Maximum number of tokens: a code has at most 12 bits.
pub(super) const MAX_TOKENS: usize = 1 << 12;
/// Slots of the hash table: at least half of them stay free.
const SLOTS: usize = 2 * MAX_TOKENS;
/// Bits of a slot that hold a token's number plus 1; the others hold bits of its hash.
const NUMBER: u32 = (1 << 13) - 1;
const _: () = assert!(MAX_TOKENS <= NUMBER as usize);

/// A token: its bytes as a little-endian word, padded with zeroes, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Token {
    word: u128,
    len: usize,
}

impl Token {
    /// The first `len` bytes of a word.
    #[inline]
    fn cut(word: u128, len: usize) -> Token {
        debug_assert!((1..=LONGEST).contains(&len), "a token of {len} bytes");
        Token { word: word & (u128::MAX >> (8 * (LONGEST - len))), len }
    }

    #[inline]
    fn hash(self) -> u32 {
        let mixed = self.word as u64 ^ ((self.word >> 64) as u64).rotate_left(23);
        (hash_u64(mixed ^ (self.len as u64) << 56) >> 32) as u32
    }
}

/// A set of tokens, numbered from 0.
pub struct TokenSet {
    tokens: Vec<Token>,
    /// A hash table of their numbers, with linear probing; 0 is a free slot.
    slots: Vec<u32>,
    /// Bit *n* - 1 is set if a token of *n* bytes, at least 3, has the same hash of its first three
    /// bytes.
    lengths: Vec<u16>,
}

/// 16 bytes from `at`, padded with zeroes.
#[inline]
fn load(data: &[u8], at: usize) -> u128 {
    let rest = data.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | *byte as u128),
    }
}

/// The entry of [`TokenSet::lengths`] for a word's first three bytes.
#[inline]
fn start_of(word: u128) -> usize {
    ((word as u32) << 8).wrapping_mul(0x9e37_79b1) as usize >> (32 - SLOTS.ilog2())
}

impl TokenSet {
    /// The tokens of one byte for all bytes that occur.
    pub(super) fn of_bytes(occurs: &[bool; 256]) -> TokenSet {
        let (tokens, slots) = (Vec::new(), vec![0; SLOTS]);
        let mut set = TokenSet { tokens, slots, lengths: vec![0; SLOTS] };
        for byte in (0..=u8::MAX).filter(|byte| occurs[*byte as usize]) {
            set.add(Token { word: byte as u128, len: 1 });
        }
        set
    }

    /// The same tokens numbered in the order of their bytes.
    pub(super) fn sorted(mut self) -> TokenSet {
        self.tokens.sort_unstable_by_key(|token| (token.word.swap_bytes(), token.len));
        let mut set = TokenSet::of_bytes(&[false; 256]);
        self.tokens.iter().for_each(|token| set.add(*token));
        set
    }

    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Bits of a code, at least 1: the bytes of a block bound the number of its codes.
    pub(super) fn width(&self) -> u32 {
        (usize::BITS - self.len().saturating_sub(1).leading_zeros()).max(1)
    }

    /// The tokens as values, as the dictionary of a column stores them.
    pub(crate) fn values(&self) -> Values {
        let mut out = BytesColumn::default();
        self.tokens.iter().for_each(|token| out.push(&token.word.to_le_bytes()[..token.len]));
        Values::Bytes(out)
    }

    /// Adds a token, unless it is there or the set is full.
    fn add(&mut self, token: Token) {
        if self.find(token).is_ok() || self.len() == MAX_TOKENS {
            return;
        }
        let mut slot = token.hash() as usize % SLOTS;
        while self.slots[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.tokens.push(token);
        self.slots[slot] = token.hash() & !NUMBER | self.tokens.len() as u32;
        if token.len > 2 {
            self.lengths[start_of(token.word)] |= 1 << (token.len - 1);
        }
        debug_assert_eq!(self.find(token), Ok(self.len() - 1), "a token that was added");
    }

    /// Adds two tokens, one after the other, as one; returns its number. `None` if the set is full.
    pub(super) fn join(&mut self, first: usize, second: usize) -> Option<usize> {
        let (first, second) = (self.tokens[first], self.tokens[second]);
        let len = first.len + second.len;
        debug_assert!(len <= LONGEST, "a token of {len} bytes");
        let token = Token { word: first.word | second.word << (8 * first.len), len };
        self.add(token);
        self.find(token).ok()
    }

    /// The number of a token; the error means that it is not in the set.
    #[inline]
    fn find(&self, token: Token) -> Result<usize, ()> {
        let hash = token.hash();
        let mut slot = hash as usize % SLOTS;
        loop {
            let found = self.slots[slot];
            if found == 0 {
                return Err(());
            }
            let number = (found & NUMBER) as usize - 1;
            if (found ^ hash) & !NUMBER == 0 && self.tokens[number] == token {
                return Ok(number);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Number and length of the longest token that `data[at..end]` starts with. `None` if there is
    /// none: the first byte did not occur.
    #[inline]
    pub(super) fn longest(&self, data: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
        debug_assert!(at < end && end <= data.len(), "a token in bytes {at}..{end}");
        let word = load(data, at);
        let room = (end - at).min(LONGEST);
        let mut lengths = (self.lengths[start_of(word)] as u32 | 0b11) & (u32::MAX >> (32 - room));
        while lengths != 0 {
            let len = (u32::BITS - lengths.leading_zeros()) as usize;
            if let Ok(number) = self.find(Token::cut(word, len)) {
                return Some((number, len));
            }
            lengths ^= 1 << (len - 1);
        }
        None
    }

    /// Splits a text into tokens, each the longest that fits, and passes their numbers.
    #[inline]
    pub(super) fn split(&self, data: &[u8], from: usize, end: usize, mut see: impl FnMut(usize)) {
        let mut at = from;
        while at < end {
            let found = self.longest(data, at, end);
            invariant!(found.is_some(), "no token starts with byte {}", data[at]);
            let Some((number, len)) = found else { return };
            see(number);
            at += len;
        }
        debug_assert_eq!(at, end, "tokens past the end of a text");
    }
}
