//! The block cache, bounded in bytes over all segments that share it.
//!
//! Every segment has one slot per block, so a hit needs no hashing. A reader pins the segment's
//! pages ([`Slots::pin`]): one shared lock for all pages that a row needs, and no reference counts,
//! because only eviction takes the lock exclusively. A pin is short: it is never held across a file
//! read, nor while taking another pin, which could wait for an eviction that waits for the first.
//! The cache proper is a ring of the loaded blocks, swept by the clock algorithm: a block used
//! since the last pass of the hand is spared once. Lock order: ring before pages.

use nacre_column::Values;
use nacre_types::invariant;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, Weak};

/// The verified bytes of one block or dictionary, and the decoded values of a dictionary.
pub(crate) struct Page {
    pub bytes: Box<[u8]>,
    pub decoded: OnceLock<Arc<Values>>,
    used: AtomicBool,
}

impl Page {
    /// Creates a page marked as used.
    pub fn new(bytes: Box<[u8]>) -> Page {
        debug_assert!(!bytes.is_empty(), "a page without bytes");
        Page { bytes, decoded: OnceLock::new(), used: AtomicBool::new(true) }
    }
}

type Slot = OnceLock<Arc<Page>>;

/// The cached pages of one segment. The slots of a column are allocated on first use.
pub(crate) struct Pages {
    columns: Box<[OnceLock<Box<[Slot]>>]>,
    per_column: usize,
}

impl Pages {
    fn slot(&self, column: usize, index: usize) -> &Slot {
        let make = || (0..self.per_column).map(|_| Slot::default()).collect();
        &self.columns[column].get_or_init(make)[index]
    }

    /// The page in a slot, if cached.
    #[inline]
    pub fn get(&self, column: usize, index: usize) -> Option<&Arc<Page>> {
        let page = self.columns[column].get()?[index].get()?;
        // Writes only on a change, so that hits by many threads share the cache line.
        if !page.used.load(Ordering::Relaxed) {
            page.used.store(true, Ordering::Relaxed);
        }
        Some(page)
    }
}

/// The slots of one segment.
pub(crate) struct Slots {
    segment: u64,
    pages: RwLock<Pages>,
}

impl Slots {
    /// Creates slots for every block of every column. The last slot of a column is that of its
    /// dictionary.
    pub fn new(segment: u64, columns: usize, blocks: usize) -> Arc<Slots> {
        let columns = (0..columns).map(|_| OnceLock::new()).collect();
        Arc::new(Slots { segment, pages: RwLock::new(Pages { columns, per_column: blocks + 1 }) })
    }

    /// Pins the cached pages; none is evicted meanwhile. Do not wait or pin again while holding the
    /// result.
    #[inline]
    pub fn pin(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page that outlives the pin, if cached.
    #[inline]
    pub fn get(&self, column: usize, index: usize) -> Option<Arc<Page>> {
        self.pin().get(column, index).cloned()
    }

    /// Empties a slot.
    fn evict(&self, column: u32, index: u32) {
        let mut pages = self.pages.write().unwrap_or_else(PoisonError::into_inner);
        let slots = pages.columns[column as usize].get_mut();
        let page = slots.and_then(|slots| slots[index as usize].take());
        debug_assert!(page.is_some(), "page {index} of column {column} was not in memory");
    }

    /// Whether a page was used since the last call. Clears the mark.
    fn was_used(&self, column: u32, index: u32) -> bool {
        let pages = self.pin();
        pages
            .slot(column as usize, index as usize)
            .get()
            .is_some_and(|page| page.used.swap(false, Ordering::Relaxed))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loaded page in the ring.
struct Loaded {
    slots: Weak<Slots>,
    column: u32,
    index: u32,
    bytes: usize,
}

/// The loaded pages, and the clock hand.
#[derive(Default)]
struct Ring {
    entries: Vec<Loaded>,
    hand: usize,
    bytes: usize,
}

/// The block cache, shared by the segments of a database and bounded in bytes.
pub struct BlockCache {
    limit_bytes: usize,
    read_bytes: AtomicU64,
    ring: Mutex<Ring>,
}

impl BlockCache {
    /// Creates a cache of about `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Arc<BlockCache> {
        Arc::new(BlockCache { limit_bytes, read_bytes: AtomicU64::new(0), ring: Mutex::default() })
    }

    /// Total bytes read from the store.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Bytes currently held.
    pub fn memory_bytes(&self) -> usize {
        locked(&self.ring).bytes
    }

    /// Drops the blocks of a segment that is no longer read.
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
                    slots.evict(entry.column, entry.index);
                }
            }
            keep
        });
        invariant!(freed <= ring.bytes, "{freed} bytes freed of {}", ring.bytes);
        ring.bytes -= freed;
        debug_assert!(ring.is_consistent(), "the ring counts other bytes than it holds");
        ring.hand = 0;
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Caches a page that was just loaded, counted as `bytes`. Returns the cached page: another one
    /// if a concurrent thread loaded the same block.
    pub(crate) fn insert(
        &self,
        slots: &Arc<Slots>,
        column: usize,
        index: usize,
        page: Arc<Page>,
        bytes: usize,
    ) -> Arc<Page> {
        debug_assert!(bytes >= page.bytes.len(), "a page is counted as {bytes} bytes");
        {
            let pages = slots.pin();
            let slot = pages.slot(column, index);
            let kept = slot.get_or_init(|| page.clone());
            if !Arc::ptr_eq(kept, &page) {
                return kept.clone();
            }
        }
        let mut ring = locked(&self.ring);
        let (column, index) = (column as u32, index as u32);
        ring.entries.push(Loaded { slots: Arc::downgrade(slots), column, index, bytes });
        ring.bytes += bytes;
        ring.shrink(self.limit_bytes);
        page
    }
}

impl Ring {
    /// Whether the byte count matches the entries.
    fn is_consistent(&self) -> bool {
        self.entries.iter().map(|entry| entry.bytes).sum::<usize>() == self.bytes
    }

    /// Evicts pages until at most `limit` bytes are held.
    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit && !self.entries.is_empty() {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &self.entries[self.hand];
            if let Some(slots) = entry.slots.upgrade() {
                if slots.was_used(entry.column, entry.index) {
                    self.hand += 1;
                    continue;
                }
                slots.evict(entry.column, entry.index);
            }
            debug_assert!(entry.bytes <= self.bytes, "an entry larger than the ring");
            self.bytes -= entry.bytes;
            self.entries.swap_remove(self.hand);
        }
        debug_assert!(
            !self.entries.is_empty() || self.bytes == 0,
            "an empty ring counts {} bytes",
            self.bytes
        );
    }
}
