//! The skiplist of rows and index entries: `crossbeam-skiplist`, used through its interface without
//! reference counts.
//!
//! The interface with reference counts leaks every removed node that a range has visited
//! (crossbeam's issue 1178, in all of 0.1), and readers that scan in parallel contend for the
//! counts.

use crate::encoded::Key;
use crossbeam_epoch::{default_collector, pin};
use crossbeam_skiplist::SkipList;
use std::ops::{Bound, RangeBounds};

/// Values sorted by key.
pub(crate) struct List<V>(SkipList<Key, V>);

impl<V> Default for List<V> {
    fn default() -> List<V> {
        List(SkipList::new(default_collector().clone()))
    }
}

impl<V: Clone + Send + 'static> List<V> {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<V> {
        let guard = pin();
        let entry = self.0.get(key, &guard)?;
        debug_assert_eq!(**entry.key(), *key, "the key of an entry that was found");
        Some(entry.value().clone())
    }

    /// The value of a key, created if missing, and whether this call created it. Takes one search.
    /// If another thread inserts first, the value created here is dropped.
    pub(crate) fn get_or_insert_with(&self, key: &Key, make: impl FnOnce() -> V) -> (V, bool) {
        let guard = pin();
        let entry = self.0.get_or_insert_with(key.clone(), make, &guard);
        debug_assert_eq!(entry.key(), key, "the key of an entry that was found or inserted");
        let found = (entry.value().clone(), Key::ptr_eq(entry.key(), key));
        entry.release(&guard);
        found
    }

    /// Removes a key if `is_meant` holds for its value. Returns whether it did.
    pub(crate) fn remove_if(&self, key: &[u8], is_meant: impl FnOnce(&V) -> bool) -> bool {
        let guard = pin();
        let Some(entry) = self.0.get(key, &guard) else { return false };
        debug_assert_eq!(**entry.key(), *key, "the key of an entry to remove");
        is_meant(entry.value()) && entry.remove()
    }

    /// Visits up to `limit` values between two keys, in order, until `visit` returns `false`.
    /// Returns the last key if there may be more. `visit` must be short: memory removed meanwhile
    /// is not freed until it returns.
    pub(crate) fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        limit: usize,
        mut visit: impl FnMut(&Key, &V) -> bool,
    ) -> Option<Key> {
        let guard = pin();
        let mut before: Option<&Key> = None;
        for (at, entry) in self.0.range::<[u8], _>((from, to), &guard).take(limit).enumerate() {
            debug_assert!(
                RangeBounds::<[u8]>::contains(&(from, to), &**entry.key()),
                "a key outside the range visited"
            );
            debug_assert!(before.is_none_or(|key| key < entry.key()), "keys do not ascend");
            before = Some(entry.key());
            if !visit(entry.key(), entry.value()) || at + 1 == limit {
                return Some(entry.key().clone());
            }
        }
        None
    }
}
