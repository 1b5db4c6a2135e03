//! The memory part of an index: which rows of a rowstore have, or lately had, which index key.
//!
//! An entry is an index key followed by a row's key. There is one for every index key that any version or pending
//! change of the row has, and there may be more: whoever finds an entry looks at the row itself. That is why entries
//! need no versions, locks, or undo of their own.
//!
//! Invariant, kept by the callers: an entry is put in by who holds the row's lock before the version or change that
//! needs it can be seen, and taken out only while nobody can lock the row ([`crate::Node::while_free`]) or by who holds
//! its lock.

use crate::Key;
use crossbeam_skiplist::SkipMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of one index over one rowstore, in the order of their bytes.
#[derive(Default)]
pub struct Entries {
    /// To the length of the index key.
    map: SkipMap<Key, u32>,
    bytes: AtomicUsize,
}

/// An index key and the key of a row that has it, or had.
#[derive(Clone, Debug)]
pub struct Entry {
    bytes: Key,
    split: u32,
}

impl Entry {
    /// The index key.
    pub fn index_key(&self) -> &[u8] {
        &self.bytes[..self.split as usize]
    }

    /// The row's key.
    pub fn row_key(&self) -> &[u8] {
        &self.bytes[self.split as usize..]
    }

    /// Both, one after the other: their place in the order.
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

/// What an entry takes: its key with two counters, and a place in the skiplist with two links on average.
fn bytes_of(key: &[u8]) -> usize {
    size_of::<(Key, u32, [usize; 5])>() + key.len()
}

impl Entries {
    /// No entries.
    pub fn new() -> Entries {
        Entries::default()
    }

    /// Puts an entry in; nothing when it is there.
    pub fn insert(&self, index_key: &[u8], row_key: &[u8]) {
        let key = joined(index_key, row_key);
        if self.map.contains_key(&key) {
            return;
        }
        let bytes = bytes_of(&key);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.map.insert(key, index_key.len() as u32);
    }

    /// Takes an entry out, if it is there.
    pub fn remove(&self, index_key: &[u8], row_key: &[u8]) {
        let key = joined(index_key, row_key);
        if self.map.remove(&key).is_some() {
            self.bytes.fetch_sub(bytes_of(&key), Ordering::Relaxed);
        }
    }

    /// Up to `limit` entries from `from` on, before `to` when it is given. Scanning in such runs keeps no position
    /// pinned while the caller works.
    pub fn range(&self, from: Bound<&[u8]>, to: Option<&[u8]>, limit: usize, out: &mut Vec<Entry>) {
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        if let (Bound::Included(from) | Bound::Excluded(from), Some(to)) = (from, to)
            && from >= to
        {
            return;
        }
        let range = self.map.range::<[u8], _>((from, end));
        out.extend(range.take(limit).map(|entry| Entry { bytes: entry.key().clone(), split: *entry.value() }));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Memory of all entries, about.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
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
            entries.insert(index.as_bytes(), row.as_bytes());
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
}
