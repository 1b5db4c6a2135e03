//! Caches delete bitmaps for timestamps between a segment's deltas. Source: Apache Doris, the cache
//! of aggregated delete bitmaps.
//!
//! Most readers need the newest or the oldest version of a segment's bitmap, which the segment
//! holds merged. A reader with an older snapshot needs the union of some deltas. The most recently
//! used unions of all segments of a store are kept here, up to a limit in bytes.

use nacre_types::Timestamp;
use nacre_types::hash::Set;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A segment, and the newest of its deltas included in the bitmap.
type BitmapKey = (u64, Timestamp);

/// A least-recently-used cache of merged bitmaps.
pub(crate) struct BitmapCache {
    limit_bytes: usize,
    contents: Mutex<Contents>,
}

#[derive(Default)]
struct Contents {
    /// In the order of segments, so that those of one segment are found without the others.
    bitmaps: BTreeMap<BitmapKey, Entry>,
    /// By the time of the last use.
    by_use: BTreeMap<u64, BitmapKey>,
    uses: u64,
    /// Sum over the entries.
    bytes: usize,
    /// Bitmaps made so far, for tests.
    made: u64,
}

struct Entry {
    bitmap: Arc<RoaringBitmap>,
    bytes: usize,
    used: u64,
}

impl BitmapCache {
    /// A cache of at most this many bytes.
    pub fn new(limit_bytes: usize) -> Arc<BitmapCache> {
        Arc::new(BitmapCache { limit_bytes, contents: Mutex::default() })
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bitmap with this key, calling `make` if it is not cached.
    pub fn get(&self, key: BitmapKey, make: impl FnOnce() -> RoaringBitmap) -> Arc<RoaringBitmap> {
        if let Some(found) = self.contents().touch(key) {
            return found;
        }
        // Built outside the lock: two readers may build the same bitmap, and one copy is dropped.
        let bitmap = Arc::new(make());
        let bytes = bitmap.serialized_size() + size_of::<Entry>();
        let mut contents = self.contents();
        contents.made += 1;
        if bytes <= self.limit_bytes && contents.touch(key).is_none() {
            contents.insert(key, bitmap.clone(), bytes);
            contents.shrink_to(self.limit_bytes);
        }
        bitmap
    }

    /// Bytes of the cached bitmaps, and their limit.
    pub fn memory_bytes(&self) -> (usize, usize) {
        (self.contents().bytes, self.limit_bytes)
    }

    /// Removes the bitmaps of segments that are gone, in time for these bitmaps alone.
    pub fn forget(&self, segments: &Set<u64>) {
        let mut contents = self.contents();
        for segment in segments {
            contents.forget(*segment);
        }
        contents.check();
    }

    /// The number of bitmaps built so far, the number cached, and their bytes.
    #[cfg(test)]
    pub fn statistics(&self) -> (u64, usize, usize) {
        let contents = self.contents();
        contents.check();
        (contents.made, contents.bitmaps.len(), contents.bytes)
    }
}

impl Contents {
    fn touch(&mut self, key: BitmapKey) -> Option<Arc<RoaringBitmap>> {
        let entry = self.bitmaps.get_mut(&key)?;
        self.uses += 1;
        let last_use = self.by_use.remove(&entry.used);
        debug_assert!(last_use == Some(key), "use {} is of {last_use:?}, not {key:?}", entry.used);
        entry.used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(entry.bitmap.clone())
    }

    fn insert(&mut self, key: BitmapKey, bitmap: Arc<RoaringBitmap>, bytes: usize) {
        self.uses += 1;
        let used = self.uses;
        let known = self.bitmaps.insert(key, Entry { bitmap, bytes, used });
        debug_assert!(known.is_none(), "bitmap {key:?} is cached already");
        debug_assert!(
            self.by_use.last_key_value().is_none_or(|(last, _)| *last < used),
            "use {used} comes after a later one"
        );
        self.by_use.insert(used, key);
        self.bytes += bytes;
    }

    fn forget(&mut self, segment: u64) {
        let all = (segment, Timestamp::MIN)..=(segment, Timestamp::MAX);
        let keys: Vec<BitmapKey> = self.bitmaps.range(all).map(|(key, _)| *key).collect();
        for key in keys {
            let Some(entry) = self.bitmaps.remove(&key) else { continue };
            let last_use = self.by_use.remove(&entry.used);
            debug_assert!(last_use == Some(key), "use {} is of {last_use:?}", entry.used);
            self.bytes -= entry.bytes;
        }
    }

    /// Evicts the least recently used bitmaps until the rest fits.
    fn shrink_to(&mut self, limit_bytes: usize) {
        while self.bytes > limit_bytes {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            let gone = self.bitmaps.remove(&oldest);
            debug_assert!(gone.is_some(), "bitmap {oldest:?} was used but is not cached");
            self.bytes -= gone.map_or(0, |entry| entry.bytes);
        }
        debug_assert!(self.bytes <= limit_bytes, "{} cached bytes of {limit_bytes}", self.bytes);
        self.check();
    }

    /// Checks that both maps hold the same bitmaps and that the byte count matches.
    fn check(&self) {
        debug_assert!(
            self.bitmaps.len() == self.by_use.len()
                && self.bytes == self.bitmaps.values().map(|entry| entry.bytes).sum::<usize>(),
            "the bitmap cache has {} entries, {} uses and {} bytes",
            self.bitmaps.len(),
            self.by_use.len(),
            self.bytes
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_used_last_stay_within_the_limit() {
        let one = RoaringBitmap::from_iter(0..100u32);
        let bytes = one.serialized_size() + size_of::<Entry>();
        let cache = BitmapCache::new(bytes * 3);
        for at in 0..3 {
            cache.get((1, at), || one.clone());
        }
        cache.get((1, 0), || unreachable!("it is cached"));
        cache.get((2, 7), || one.clone());
        assert_eq!(cache.statistics(), (4, 3, bytes * 3));
        cache.get((1, 0), || unreachable!("it was used after the others"));
        cache.get((1, 1), || one.clone());
        assert_eq!(cache.statistics(), (5, 3, bytes * 3));
        cache.forget(&Set::from_iter([1]));
        assert_eq!(cache.statistics(), (5, 1, bytes));
        cache.get((3, 0), || RoaringBitmap::from_iter((0..90_000u32).step_by(2)));
        assert_eq!(
            cache.statistics(),
            (6, 1, bytes),
            "a bitmap larger than the limit is not cached"
        );
    }
}
