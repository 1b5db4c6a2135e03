//! Maps and sets that are sorted lists: for some hundred entries, or for many whose keys mostly ascend. A B-tree takes
//! several kilobytes of code for each pair of types (`docs/decisions/0028-size-of-the-wasm-module.md`).

use std::borrow::Borrow;
use std::ops::{Bound, RangeBounds};

/// A map in the order of its keys. A change in the middle moves what follows.
///
/// ```
/// use nacre_types::sorted::SortedMap;
///
/// let mut map: SortedMap<u64, &str> = [(2, "b"), (1, "a")].into_iter().collect();
/// assert_eq!(map.insert(2, "c"), Some("b"));
/// *map.or_insert_with(3, || "d") = "e";
/// assert_eq!(map.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>(), [(1, "a"), (2, "c"), (3, "e")]);
/// assert_eq!(map.range(2..).next_back(), Some((&3, &"e")));
/// assert_eq!(map.remove(&1), Some("a"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap(Vec::new())
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    /// Without entries.
    pub const fn new() -> SortedMap<K, V> {
        SortedMap(Vec::new())
    }

    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &self.0[at].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &mut self.0[at].1)
    }

    /// Whether a key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Sets the value of a key. Returns the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// The value of a key, which `make` makes if there is none.
    pub fn or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = match self.find(&key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, (key, make()));
                at
            }
        };
        &mut self.0[at].1
    }

    /// Removes a key. Returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| self.0.remove(at).1)
    }

    /// Removes the first entry.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    /// The last entry.
    pub fn last(&self) -> Option<(&K, &V)> {
        self.0.last().map(|(key, value)| (key, value))
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The entries, in order, with values to be changed.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&K, &mut V)> {
        self.0.iter_mut().map(|(key, value)| (&*key, value))
    }

    /// The entries whose keys are in a range.
    pub fn range(
        &self,
        range: impl RangeBounds<K>,
    ) -> impl DoubleEndedIterator<Item = (&K, &V)> + ExactSizeIterator {
        let from = match range.start_bound() {
            Bound::Included(start) => self.0.partition_point(|(key, _)| key < start),
            Bound::Excluded(start) => self.0.partition_point(|(key, _)| key <= start),
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(end) => self.0.partition_point(|(key, _)| key <= end),
            Bound::Excluded(end) => self.0.partition_point(|(key, _)| key < end),
            Bound::Unbounded => self.0.len(),
        };
        self.0[from.min(to)..to].iter().map(|(key, value)| (key, value))
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.0.iter().map(|(_, value)| value)
    }

    /// The values, in the order of their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.0.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries for which a condition holds.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| keeps(key, value));
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SortedMap<K, V> {
        let mut map = SortedMap::new();
        map.extend(entries);
        map
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A set in order. A change in the middle moves what follows.
///
/// ```
/// use nacre_types::sorted::SortedSet;
///
/// let mut set: SortedSet<u64> = [3, 1, 3].into_iter().collect();
/// assert!(set.insert(2) && !set.insert(1) && set.remove(&3) && !set.contains(&3));
/// assert_eq!(set.iter().copied().collect::<Vec<_>>(), [1, 2]);
/// assert_eq!(set.first(), Some(&1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<T>(Vec<T>);

impl<T> Default for SortedSet<T> {
    fn default() -> SortedSet<T> {
        SortedSet(Vec::new())
    }
}

impl<T: Ord> SortedSet<T> {
    /// Without elements.
    pub const fn new() -> SortedSet<T> {
        SortedSet(Vec::new())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has an element.
    pub fn contains(&self, element: &T) -> bool {
        self.0.binary_search(element).is_ok()
    }

    /// Adds an element. Returns whether it is new.
    pub fn insert(&mut self, element: T) -> bool {
        match self.0.binary_search(&element) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, element);
                true
            }
        }
    }

    /// Removes an element. Returns whether it was there.
    pub fn remove(&mut self, element: &T) -> bool {
        let found = self.0.binary_search(element);
        found.map(|at| self.0.remove(at)).is_ok()
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.0.first()
    }

    /// The elements, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Keeps the elements for which a condition holds.
    pub fn retain(&mut self, keeps: impl FnMut(&T) -> bool) {
        self.0.retain(keeps);
    }
}

impl<T: Ord> Extend<T> for SortedSet<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<T: Ord> FromIterator<T> for SortedSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> SortedSet<T> {
        let mut set = SortedSet::new();
        set.extend(elements);
        set
    }
}

impl<T> IntoIterator for SortedSet<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a SortedSet<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
