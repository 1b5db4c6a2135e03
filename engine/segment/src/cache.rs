//! Blocks in memory, bounded in bytes over all segments that share the cache.
//!
//! Every segment has one slot a block, so a hit is one uncontended lock and one reference count, no
//! hashing. The cache proper is a ring of what is loaded, swept by the clock algorithm: a block
//! that was used since the hand last passed is spared once. Lock order: ring before slot.

use nacre_column::Values;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The bytes of one block or dictionary, as verified; for a dictionary also its decoded values.
pub(crate) struct Page {
    pub bytes: Box<[u8]>,
    pub decoded: OnceLock<Arc<Values>>,
    used: AtomicBool,
}

impl Page {
    pub fn new(bytes: Box<[u8]>) -> Page {
        Page { bytes, decoded: OnceLock::new(), used: AtomicBool::new(true) }
    }
}

type Slot = Mutex<Option<Arc<Page>>>;

/// The slots of one segment; those of a column are made when it is first touched.
pub(crate) struct Slots {
    segment: u64,
    columns: Box<[OnceLock<Box<[Slot]>>]>,
    per_column: usize,
}

impl Slots {
    /// Slots of a segment. The last one of each column is for its dictionary.
    pub fn new(segment: u64, columns: usize, blocks: usize) -> Arc<Slots> {
        let columns = (0..columns).map(|_| OnceLock::new()).collect();
        Arc::new(Slots { segment, columns, per_column: blocks + 1 })
    }

    fn slot(&self, column: usize, index: usize) -> &Slot {
        let make = || (0..self.per_column).map(|_| Slot::default()).collect();
        &self.columns[column].get_or_init(make)[index]
    }

    /// The page in a slot, if it is there.
    #[inline]
    pub fn get(&self, column: usize, index: usize) -> Option<Arc<Page>> {
        let page = locked(self.slot(column, index)).clone()?;
        // Written only when it changes: hits by many threads leave the line shared.
        if !page.used.load(Ordering::Relaxed) {
            page.used.store(true, Ordering::Relaxed);
        }
        Some(page)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Entry {
    slots: Weak<Slots>,
    column: u32,
    index: u32,
    bytes: usize,
}

#[derive(Default)]
struct Ring {
    entries: Vec<Entry>,
    hand: usize,
    bytes: usize,
}

/// Blocks held in memory, shared by the segments of a database and bounded in bytes.
pub struct BlockCache {
    limit_bytes: usize,
    read_bytes: AtomicU64,
    ring: Mutex<Ring>,
}

impl BlockCache {
    /// A cache that holds about `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<BlockCache> {
        Arc::new(BlockCache { limit_bytes, read_bytes: AtomicU64::new(0), ring: Mutex::default() })
    }

    /// Bytes read from the store so far, ever growing.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> usize {
        locked(&self.ring).bytes
    }

    /// Drops the blocks of a segment that will not be read again.
    pub fn forget(&self, segment: u64) {
        self.remove(|slots| slots.segment == segment);
    }

    pub(crate) fn forget_slots(&self, gone: &Arc<Slots>) {
        let gone = Arc::as_ptr(gone);
        self.remove(|slots| std::ptr::eq(slots, gone));
    }

    fn remove(&self, matches: impl Fn(&Slots) -> bool) {
        let mut ring = locked(&self.ring);
        let mut freed = 0;
        ring.entries.retain(|entry| {
            let slots = entry.slots.upgrade();
            let keep = slots.as_ref().is_some_and(|slots| !matches(slots));
            if !keep {
                freed += entry.bytes;
                if let Some(slots) = slots {
                    *locked(slots.slot(entry.column as usize, entry.index as usize)) = None;
                }
            }
            keep
        });
        ring.bytes -= freed;
        ring.hand = 0;
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Keeps a page that was just loaded; answers the one that others will see, which may have been
    /// loaded by somebody else in the meantime. `bytes` is what it counts as.
    pub(crate) fn insert(
        &self,
        slots: &Arc<Slots>,
        column: usize,
        index: usize,
        page: Arc<Page>,
        bytes: usize,
    ) -> Arc<Page> {
        {
            let mut slot = locked(slots.slot(column, index));
            if let Some(other) = &*slot {
                return other.clone();
            }
            *slot = Some(page.clone());
        }
        let mut ring = locked(&self.ring);
        let (column, index) = (column as u32, index as u32);
        ring.entries.push(Entry { slots: Arc::downgrade(slots), column, index, bytes });
        ring.bytes += bytes;
        ring.shrink(self.limit_bytes);
        page
    }
}

impl Ring {
    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit && !self.entries.is_empty() {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &self.entries[self.hand];
            if let Some(slots) = entry.slots.upgrade() {
                let mut slot = locked(slots.slot(entry.column as usize, entry.index as usize));
                if slot.as_ref().is_some_and(|page| page.used.swap(false, Ordering::Relaxed)) {
                    self.hand += 1;
                    continue;
                }
                *slot = None;
            }
            self.bytes -= entry.bytes;
            self.entries.swap_remove(self.hand);
        }
    }
}
