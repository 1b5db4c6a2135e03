//! Sorting the keys of a segment's rows in steps: pieces are sorted as keys arrive, and then merged
//! two at a time.

use crate::layout::gather::Pick;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::iter::Peekable;
use std::vec::IntoIter;

/// Bytes of a key that are compared at once, and that a shorter one consists of.
const FIRST: usize = 16;

/// An encoded key and the position of its row. A short one owns no memory: there are millions, and
/// freeing them takes as long as sorting them.
pub(super) struct KeyAt {
    /// The first bytes, followed by zeros, as a number: it decides most comparisons.
    first: u128,
    /// How many bytes of the key those are; one more if there are others.
    length: u8,
    /// The others.
    rest: Box<[u8]>,
    pub pick: Pick,
}

/// A stable sort: equal keys stay in the order in which they were added.
pub(super) struct KeySort {
    /// Keys that are sorted at once, and merged in one step.
    piece: usize,
    /// Keys that are in no piece yet.
    added: Vec<KeyAt>,
    /// Sorted pieces, in the order of their keys' arrival.
    pieces: VecDeque<Vec<KeyAt>>,
    /// Pieces of the round of merges that is going on; the others belong to the next one.
    left: usize,
    merging: Option<Merging>,
}

struct Merging {
    a: Peekable<IntoIter<KeyAt>>,
    b: Peekable<IntoIter<KeyAt>>,
    merged: Vec<KeyAt>,
}

impl KeyAt {
    pub fn new(bytes: &[u8], pick: Pick) -> KeyAt {
        let (shared, rest) = bytes.split_at(bytes.len().min(FIRST));
        let mut first = [0; FIRST];
        first[..shared.len()].copy_from_slice(shared);
        let length = (shared.len() + usize::from(!rest.is_empty())) as u8;
        KeyAt { first: u128::from_be_bytes(first), length, rest: rest.into(), pick }
    }

    pub fn compare(&self, other: &KeyAt) -> Ordering {
        // Of two that begin alike, the shorter one is a part of the other.
        let firsts = self.first.cmp(&other.first).then(self.length.cmp(&other.length));
        firsts.then_with(|| self.rest.cmp(&other.rest))
    }

    /// The encoded key.
    pub fn bytes(&self) -> Vec<u8> {
        let shared = FIRST.min(self.length.into());
        [&self.first.to_be_bytes()[..shared], &self.rest].concat()
    }
}

impl KeySort {
    /// Sorts pieces of this many keys.
    pub fn new(piece: usize) -> KeySort {
        debug_assert!(piece > 0, "a piece of no keys is sorted");
        KeySort { piece, added: Vec::new(), pieces: VecDeque::new(), left: 0, merging: None }
    }

    /// Adds a key. May sort a piece.
    pub fn add(&mut self, key: KeyAt) {
        debug_assert!(self.left == 0, "a key is added to those that are being merged");
        self.added.push(key);
        if self.added.len() == self.piece {
            self.end_piece();
        }
    }

    fn end_piece(&mut self) {
        let mut piece = std::mem::take(&mut self.added);
        debug_assert!(piece.len() <= self.piece, "a piece of {} keys is sorted", piece.len());
        piece.sort_by(KeyAt::compare);
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    /// Does a part of the work; returns all keys, ascending, once it is done. No more may be added.
    pub fn step(&mut self) -> Option<Vec<KeyAt>> {
        self.end_piece();
        if let Some(merging) = &mut self.merging {
            if merging.step(self.piece) {
                self.pieces.extend(self.merging.take().map(|merging| merging.merged));
            }
            return None;
        }
        if self.pieces.len() <= 1 {
            return Some(self.pieces.pop_front().unwrap_or_default());
        }
        debug_assert!(self.left <= self.pieces.len(), "{} pieces are left to merge", self.left);
        if self.left < 2 {
            // The last piece of an odd number waits for the next round, behind those before it.
            self.pieces.rotate_left(self.left);
            self.left = self.pieces.len();
            return None;
        }
        self.left -= 2;
        if let (Some(a), Some(b)) = (self.pieces.pop_front(), self.pieces.pop_front()) {
            self.merging = Some(Merging::new(a, b));
        }
        None
    }
}

impl Merging {
    fn new(a: Vec<KeyAt>, b: Vec<KeyAt>) -> Merging {
        debug_assert!(!a.is_empty() && !b.is_empty(), "a piece without keys is merged");
        let merged = Vec::with_capacity(a.len() + b.len());
        Merging { a: a.into_iter().peekable(), b: b.into_iter().peekable(), merged }
    }

    /// Merges at most this many keys; returns whether all are.
    fn step(&mut self, some: usize) -> bool {
        debug_assert!(
            self.merged.len() + self.a.len() + self.b.len() <= self.merged.capacity(),
            "keys are merged that were not there"
        );
        for _ in 0..some {
            let next = match (self.a.peek(), self.b.peek()) {
                (Some(a), Some(b)) if b.compare(a).is_lt() => self.b.next(),
                (Some(_), _) => self.a.next(),
                (None, _) => self.b.next(),
            };
            let Some(next) = next else { return true };
            self.merged.push(next);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_equal_ones_keep_their_order() {
        const PIECE: usize = 100;
        for count in [0, 1, 2, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 7, 100 * PIECE] {
            let mut sort = KeySort::new(PIECE);
            // Of all lengths, many of which begin alike, some with zeros.
            let key = |row: usize| {
                let number = (row * 7919) % 1_000;
                vec![(number / 40) as u8 % 3; number % 40]
            };
            for row in 0..count {
                sort.add(KeyAt::new(&key(row), Pick { batch: 0, row: row as u32 }));
            }
            let sorted = loop {
                if let Some(sorted) = sort.step() {
                    break sorted;
                }
            };
            let found: Vec<(Vec<u8>, u32)> =
                sorted.into_iter().map(|key| (key.bytes(), key.pick.row)).collect();
            let mut expected: Vec<(Vec<u8>, u32)> =
                (0..count).map(|row| (key(row), row as u32)).collect();
            expected.sort();
            assert_eq!(found, expected, "{count} keys");
        }
    }
}
