//! The in-memory half of an index: the rows of a rowstore that have, or recently had, an index key.
//!
//! An entry is an index key followed by a row's key. Each index key of any version or pending
//! change of a row has an entry. There may be more entries, because a reader that finds an entry
//! checks the row itself. Hence entries need no versions, locks or undo of their own.
//!
//! Invariant, kept by the callers: the holder of the row's lock inserts an entry before the version
//! or change that needs it becomes visible. An entry is removed only by the holder of the lock or
//! while the row cannot be locked ([`crate::Node::while_free`]).
//!
//! In general, entries are nodes of a skiplist. For an index over one integer of a table whose key
//! is one integer, they are pairs of integers in compressed blocks ([`packed`]), which take a tenth
//! of the memory (`docs/decisions/0015-btree-blocks.md`).

mod packed;

use crate::encoded::Key;
use crate::list::List;
use nacre_types::{Error, Result};
use packed::{Packed, Pair};
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of one index over one rowstore, in the order of their bytes.
#[derive(Default)]
pub struct Entries {
    /// Maps the bytes of an entry to the length of its index key.
    list: List<u32>,
    bytes: AtomicUsize,
    /// Used instead of the list if both keys are one integer.
    integers: Option<Box<Integers>>,
}

/// Entries of two integer keys: the ones with a null index key, and the others.
#[derive(Default)]
struct Integers {
    halves: [Packed; 2],
}

/// A position among the entries: a half and a pair within it. The end position is in a third half.
type Place = (usize, Pair);

/// Tag of an integer in a key ([`nacre_types::key`]), followed by eight bytes. Null has tag 0.
const TAG: u8 = 1;
const INTEGER_BYTES: usize = 9;
const _: () = assert!(INTEGER_BYTES == size_of_val(&TAG) + size_of::<u64>());

/// Reads eight bytes of a key from `at` on; missing bytes read as zero.
fn number(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    let there = bytes.get(at..).unwrap_or_default();
    let length = there.len().min(8);
    raw[..length].copy_from_slice(&there[..length]);
    u64::from_be_bytes(raw)
}

/// The position after `place`, which is not the end.
fn next(place: Place) -> Place {
    debug_assert!(place.0 < 2, "the end has no next position");
    match place {
        (half, (key, row)) if row < u64::MAX => (half, (key, row + 1)),
        (half, (key, _)) if key < u64::MAX => (half, (key + 1, 0)),
        (half, _) => (half + 1, (0, 0)),
    }
}

impl Integers {
    /// The position of an entry; `None` for keys that are not integers.
    fn place_of(index_key: &[u8], row_key: &[u8]) -> Option<Place> {
        let is_integer = |key: &[u8]| key.len() == INTEGER_BYTES && key[0] == TAG;
        let fits = is_integer(row_key) && (index_key == [0] || is_integer(index_key));
        fits.then(|| (index_key[0] as usize, (number(index_key, 1), number(row_key, 1))))
    }

    /// The first position whose entry is not below these bytes.
    fn from(bytes: &[u8]) -> Place {
        let Some(half) = bytes.first().map(|tag| *tag as usize) else { return (0, (0, 0)) };
        if half > 1 {
            return (2, (0, 0));
        }
        let split = if half == 0 { 1 } else { INTEGER_BYTES };
        let key = if half == 0 { 0 } else { number(bytes, 1) };
        match bytes.get(split) {
            None | Some(0) => (half, (key, 0)),
            Some(&TAG) => {
                let exact = (half, (key, number(bytes, split + 1)));
                if bytes.len() > split + INTEGER_BYTES { next(exact) } else { exact }
            }
            Some(_) => next((half, (key, u64::MAX))),
        }
    }

    fn entry(half: usize, (key, row): Pair) -> Entry {
        debug_assert!(half < 2, "there are two halves, not {half}");
        let mut bytes = [0; 2 * INTEGER_BYTES];
        let split = if half == 0 { 1 } else { INTEGER_BYTES };
        bytes[0] = half as u8;
        if half > 0 {
            bytes[1..INTEGER_BYTES].copy_from_slice(&key.to_be_bytes());
        }
        bytes[split] = TAG;
        bytes[split + 1..split + INTEGER_BYTES].copy_from_slice(&row.to_be_bytes());
        Entry { bytes: bytes[..split + INTEGER_BYTES].into(), split: split as u32 }
    }

    /// Whether a position of this half round-trips through the keys of its entry.
    fn is_exact(half: usize, pair: Pair) -> bool {
        let entry = Integers::entry(half, pair);
        Integers::place_of(entry.index_key(), entry.row_key()) == Some((half, pair))
    }

    fn range(&self, from: Bound<&[u8]>, to: Option<&[u8]>, limit: usize, out: &mut Vec<Entry>) {
        let (before, bounds) = (out.len(), (from, to.map_or(Bound::Unbounded, Bound::Excluded)));
        let from = match from {
            Bound::Unbounded => (0, (0, 0)),
            Bound::Included(bytes) => Integers::from(bytes),
            Bound::Excluded(bytes) => {
                let from = Integers::from(bytes);
                let is_there = from.0 < 2 && Integers::entry(from.0, from.1).bytes() == bytes;
                if is_there { next(from) } else { from }
            }
        };
        let to = to.map(Integers::from);
        let mut pairs = Vec::new();
        let mut left = limit;
        for (half, packed) in self.halves.iter().enumerate() {
            if half < from.0 || to.is_some_and(|to| half > to.0) {
                continue;
            }
            let first = if half == from.0 { from.1 } else { (0, 0) };
            let end = to.filter(|to| to.0 == half).map(|to| to.1);
            pairs.clear();
            packed.range(first, end, left, &mut pairs);
            left -= pairs.len();
            debug_assert!(
                pairs.iter().all(|pair| Integers::is_exact(half, *pair)),
                "a pair of half {half} is not the position of its entry"
            );
            out.extend(pairs.iter().map(|pair| Integers::entry(half, *pair)));
        }
        let found = &out[before..];
        debug_assert!(
            found.iter().all(|entry| RangeBounds::<[u8]>::contains(&bounds, entry.bytes())),
            "an entry outside its range"
        );
        debug_assert!(
            found.is_sorted_by(|a, b| a.bytes() < b.bytes()) && found.len() <= limit,
            "{} entries of {limit} at most do not ascend",
            found.len()
        );
    }
}

/// An index key and the key of a row that has or had it.
#[derive(Clone, Debug)]
pub struct Entry {
    bytes: Key,
    split: u32,
}

impl Entry {
    /// The index key.
    pub fn index_key(&self) -> &[u8] {
        debug_assert!(self.split as usize <= self.bytes.len(), "an entry is split past its end");
        &self.bytes[..self.split as usize]
    }

    /// The row's key.
    pub fn row_key(&self) -> &[u8] {
        debug_assert!(self.split as usize <= self.bytes.len(), "a row key begins past its entry");
        &self.bytes[self.split as usize..]
    }

    /// Both keys concatenated, the sort key of entries.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn joined(index_key: &[u8], row_key: &[u8]) -> Key {
    let mut bytes = Vec::with_capacity(index_key.len() + row_key.len());
    bytes.extend_from_slice(index_key);
    bytes.extend_from_slice(row_key);
    bytes.into()
}

/// Memory of an entry in bytes: its key with two reference counts, and a skiplist entry with two
/// links on average.
fn bytes_of(key: &[u8]) -> usize {
    size_of::<(Key, u32, [usize; 5])>() + key.len()
}

impl Entries {
    /// Creates an empty set of entries.
    pub fn new() -> Entries {
        Entries::default()
    }

    /// Creates an empty set for index keys that are one integer or null and row keys that are one
    /// integer.
    pub fn of_integers() -> Entries {
        Entries { integers: Some(Box::default()), ..Entries::default() }
    }

    /// Inserts an entry unless it exists.
    ///
    /// # Errors
    /// `corrupt` for keys of another kind, which occur only if a row does not match its table's
    /// schema.
    pub fn insert(&self, index_key: &[u8], row_key: &[u8]) -> Result<()> {
        if let Some(integers) = &self.integers {
            let (half, pair) = Integers::place_of(index_key, row_key)
                .ok_or_else(|| Error::corrupt("a row's key does not match the key of its table"))?;
            integers.halves[half].insert(pair);
            return Ok(());
        }
        let key = joined(index_key, row_key);
        let (split, is_new) = self.list.get_or_insert_with(&key, || index_key.len() as u32);
        // No index key is a prefix of another ([`nacre_types::key`]), so the split is unique.
        debug_assert_eq!(split as usize, index_key.len(), "the split of an entry");
        if is_new {
            self.bytes.fetch_add(bytes_of(&key), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes an entry if it exists.
    pub fn remove(&self, index_key: &[u8], row_key: &[u8]) {
        if let Some(integers) = &self.integers {
            if let Some((half, pair)) = Integers::place_of(index_key, row_key) {
                integers.halves[half].remove(pair);
            }
            return;
        }
        let key = joined(index_key, row_key);
        if self.list.remove_if(&key, |_| true) {
            let bytes = bytes_of(&key);
            let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            debug_assert!(before >= bytes, "{bytes} of {before} bytes of entries are released");
        }
    }

    /// Appends up to `limit` entries from `from` on, and before `to` if given, to `out`. Callers
    /// scan in such batches, so nothing stays pinned while they work.
    pub fn range(&self, from: Bound<&[u8]>, to: Option<&[u8]>, limit: usize, out: &mut Vec<Entry>) {
        if let Some(integers) = &self.integers {
            return integers.range(from, to, limit, out);
        }
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        if let (Bound::Included(from) | Bound::Excluded(from), Some(to)) = (from, to)
            && from >= to
        {
            return;
        }
        let before = out.len();
        self.list.visit(from, end, limit, |bytes, split| {
            debug_assert!(*split as usize <= bytes.len(), "an entry is split past its end");
            out.push(Entry { bytes: bytes.clone(), split: *split });
            true
        });
        debug_assert!(
            out.len() - before <= limit,
            "{} entries of {limit} at most are read",
            out.len() - before
        );
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        let packed = self.integers.iter().flat_map(|integers| &integers.halves).map(Packed::len);
        self.list.len() + packed.sum::<usize>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate memory of all entries, in bytes.
    pub fn bytes(&self) -> usize {
        let packed = self.integers.iter().flat_map(|integers| &integers.halves).map(Packed::bytes);
        let listed = self.bytes.load(Ordering::Relaxed);
        debug_assert!(listed <= isize::MAX as usize, "entries of less than 0 bytes");
        listed + packed.sum::<usize>()
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn entries_come_in_order_and_are_counted_once() {
        let entries = Entries::new();
        for (index, row) in [("b", "1"), ("a", "2"), ("b", "0"), ("a", "2"), ("c", "")] {
            entries.insert(index.as_bytes(), row.as_bytes()).unwrap();
        }
        assert_eq!(entries.len(), 4);
        let mut out = Vec::new();
        entries.range(Bound::Included(b"a"), Some(b"c"), 2, &mut out);
        let last = out.last().map(|e| e.bytes().to_vec()).unwrap_or_default();
        entries.range(Bound::Excluded(&last), Some(b"c"), 9, &mut out);
        let found: Vec<_> = out.iter().map(|e| (e.index_key(), e.row_key())).collect();
        assert_eq!(found, [(&b"a"[..], &b"2"[..]), (b"b", b"0"), (b"b", b"1")]);
        entries.range(Bound::Included(b"c"), Some(b"a"), 9, &mut out);
        assert_eq!(out.len(), 3);
        for entry in &out {
            entries.remove(entry.index_key(), entry.row_key());
            entries.remove(entry.index_key(), entry.row_key());
        }
        entries.remove(b"c", b"");
        assert!(entries.is_empty());
        assert_eq!(entries.bytes(), 0);
    }

    #[test]
    fn packed_entries_take_no_other_keys() {
        let packed = Entries::of_integers();
        let integer = [1; INTEGER_BYTES];
        for (index_key, row_key) in
            [(&integer[..], &[0][..]), (&[0], &[]), (&[], &integer), (&[2], &integer)]
        {
            let error = packed.insert(index_key, row_key).unwrap_err();
            assert_eq!(error.kind(), nacre_types::ErrorKind::Corrupt);
            packed.remove(index_key, row_key);
        }
        assert!(packed.is_empty());
    }

    #[test]
    fn packed_entries_are_found_like_others() {
        use nacre_types::hash::hash_u64;
        use nacre_types::key::put_i64;
        let (all, packed) = (Entries::new(), Entries::of_integers());
        let integer = |v: i64| {
            let mut bytes = vec![1];
            put_i64(&mut bytes, v);
            bytes
        };
        let key = |random: u64| match random % 7 {
            0 => vec![0],
            1 => integer(i64::MIN + (random >> 8) as i64 % 3),
            2 => integer(i64::MAX - (random >> 8) as i64 % 3),
            _ => integer((random >> 8) as i64 % 50 - 25),
        };
        let row = |random: u64| integer((random >> 40) as i64 % 40 - 3);
        for n in 0..4_000u64 {
            let random = hash_u64(n);
            let (index_key, row_key) = (key(random), row(random));
            for entries in [&all, &packed] {
                match n % 3 {
                    0 => entries.remove(&index_key, &row_key),
                    _ => entries.insert(&index_key, &row_key).unwrap(),
                }
            }
            assert_eq!(all.len(), packed.len());
            if n % 10 > 0 {
                continue;
            }
            // Bounds: keys and entries, whole, truncated and extended.
            let bound = |random: u64| {
                let mut bytes = key(random);
                match random % 5 {
                    0 => bytes.extend(row(random)),
                    1 => bytes.push((random >> 9) as u8 % 3),
                    2 => bytes.truncate((random >> 9) as usize % 10),
                    3 => bytes.extend([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
                    _ => {}
                }
                bytes
            };
            let (from, to) = (bound(hash_u64(random)), bound(hash_u64(random + 1)));
            let start = match random % 3 {
                0 => Bound::Included(&from[..]),
                1 => Bound::Excluded(&from[..]),
                _ => Bound::Unbounded,
            };
            let end = (!random.is_multiple_of(4)).then_some(&to[..]);
            let found = |entries: &Entries| {
                let mut out = Vec::new();
                entries.range(start, end, (random >> 30) as usize % 60, &mut out);
                out.iter()
                    .map(|e| (e.index_key().to_vec(), e.row_key().to_vec()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(found(&all), found(&packed), "step {n}: {start:?} to {end:?}");
        }
        assert!(packed.bytes() * 5 < all.bytes());
    }
}
