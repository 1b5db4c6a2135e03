//! Delete bitmaps of timestamps that lie between a segment's deltas, each merged once (seed: Doris).
//!
//! Most readers look at the newest or the oldest state of a segment, which it keeps ready. A reader with an older
//! snapshot needs a union of some of the deltas; the ones used last are kept here, for all segments of a store
//! together, up to a number of bytes.

use nacre_types::Timestamp;
use nacre_types::hash::{Map, Set};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A segment, and the newest of its deltas that is part of the bitmap.
type Place = (u64, Timestamp);

/// See the module.
pub(crate) struct BitmapCache {
    limit_bytes: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bitmaps: Map<Place, Entry>,
    /// By the time of the last use.
    by_use: BTreeMap<u64, Place>,
    uses: u64,
    bytes: usize,
    made: u64,
}

struct Entry {
    bitmap: Arc<RoaringBitmap>,
    bytes: usize,
    used: u64,
}

impl BitmapCache {
    pub fn new(limit_bytes: usize) -> Arc<BitmapCache> {
        Arc::new(BitmapCache { limit_bytes, held: Mutex::default() })
    }

    /// The bitmap of a place, made if it is not there.
    pub fn get(&self, place: Place, make: impl FnOnce() -> RoaringBitmap) -> Arc<RoaringBitmap> {
        if let Some(found) = self.held.lock().unwrap_or_else(PoisonError::into_inner).touch(place) {
            return found;
        }
        // Made outside the lock: two readers may make the same one, and one of them is forgotten.
        let bitmap = Arc::new(make());
        let bytes = bitmap.serialized_size() + size_of::<Entry>();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.made += 1;
        if bytes <= self.limit_bytes && held.touch(place).is_none() {
            held.uses += 1;
            let used = held.uses;
            held.bitmaps.insert(place, Entry { bitmap: bitmap.clone(), bytes, used });
            held.by_use.insert(used, place);
            held.bytes += bytes;
            while held.bytes > self.limit_bytes {
                let Some((_, oldest)) = held.by_use.pop_first() else { break };
                held.bytes -= held.bitmaps.remove(&oldest).map_or(0, |entry| entry.bytes);
            }
        }
        bitmap
    }

    /// Forgets the bitmaps of segments that are gone.
    pub fn forget(&self, segments: &Set<u64>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = &mut *held;
        let bytes = &mut held.bytes;
        held.bitmaps.retain(|place, entry| {
            let keep = !segments.contains(&place.0);
            *bytes -= if keep { 0 } else { entry.bytes };
            keep
        });
        held.by_use.retain(|_, place| !segments.contains(&place.0));
    }

    /// How many bitmaps were made so far, how many are held, and their bytes.
    #[cfg(test)]
    pub fn statistics(&self) -> (u64, usize, usize) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(held.bitmaps.len(), held.by_use.len());
        (held.made, held.bitmaps.len(), held.bytes)
    }
}

impl Held {
    fn touch(&mut self, place: Place) -> Option<Arc<RoaringBitmap>> {
        let entry = self.bitmaps.get_mut(&place)?;
        self.uses += 1;
        self.by_use.remove(&entry.used);
        entry.used = self.uses;
        self.by_use.insert(self.uses, place);
        Some(entry.bitmap.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept_and_the_limit_holds() {
        let one = RoaringBitmap::from_iter(0..100u32);
        let bytes = one.serialized_size() + size_of::<Entry>();
        let cache = BitmapCache::new(bytes * 3);
        for at in 0..3 {
            cache.get((1, at), || one.clone());
        }
        cache.get((1, 0), || unreachable!("it is held"));
        cache.get((2, 7), || one.clone());
        assert_eq!(cache.statistics(), (4, 3, bytes * 3));
        cache.get((1, 0), || unreachable!("it was used after the others"));
        cache.get((1, 1), || one.clone());
        assert_eq!(cache.statistics(), (5, 3, bytes * 3));
        cache.forget(&Set::from_iter([1]));
        assert_eq!(cache.statistics(), (5, 1, bytes));
        cache.get((3, 0), || RoaringBitmap::from_iter((0..90_000u32).step_by(2)));
        assert_eq!(cache.statistics(), (6, 1, bytes), "larger than the limit: not kept");
    }
}
