//! The skiplist that rows and index entries are in: `crossbeam-skiplist`, by its interface that counts no references.
//!
//! The one that counts them leaks every node that a range has visited, as soon as it is taken out (crossbeam's issue
//! 1178, in all of 0.1), and counting costs readers that walk side by side.

use crate::Key;
use crossbeam_epoch::{default_collector, pin};
use crossbeam_skiplist::SkipList;
use std::ops::Bound;

/// Values in the order of their keys.
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
        self.0.get(key, &pin()).map(|entry| entry.value().clone())
    }

    /// The value of a key, made if there is none, and whether that is so. One search. What was made is dropped when
    /// somebody else was faster.
    pub(crate) fn get_or_insert_with(&self, key: &Key, make: impl FnOnce() -> V) -> (V, bool) {
        let guard = pin();
        let entry = self.0.get_or_insert_with(key.clone(), make, &guard);
        let found = (entry.value().clone(), Key::ptr_eq(entry.key(), key));
        entry.release(&guard);
        found
    }

    /// Takes a key out, if its value is such; whether that has happened.
    pub(crate) fn remove_if(&self, key: &[u8], is_meant: impl FnOnce(&V) -> bool) -> bool {
        self.0.get(key, &pin()).is_some_and(|entry| is_meant(entry.value()) && entry.remove())
    }

    /// Up to `limit` values between two keys, in order, until `visit` answers `false`. What is done with each must be
    /// short: nothing that is taken out meanwhile is freed. Answers the last key when there may be more.
    pub(crate) fn visit(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        limit: usize,
        mut visit: impl FnMut(&Key, &V) -> bool,
    ) -> Option<Key> {
        let guard = pin();
        for (at, entry) in self.0.range::<[u8], _>((from, to), &guard).take(limit).enumerate() {
            if !visit(entry.key(), entry.value()) || at + 1 == limit {
                return Some(entry.key().clone());
            }
        }
        None
    }
}
