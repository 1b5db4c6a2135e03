//! The cached pages of one segment, in one slot per block, so that a hit needs no hashing.
//!
//! A reader pins the segment's pages ([`Slots::pin`]): one shared lock for all pages that a row
//! needs, and no reference counts, because only eviction takes the lock exclusively. A pin is
//! short: it is never held across a file read, nor while taking another pin, which could wait for
//! an eviction that waits for the first.

use super::hits::{Hits, SegmentHits};
use crate::sync::{AtomicU8, AtomicU32, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use nacre_column::Values;
use nacre_types::invariant;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The greatest value of a page's use counter. Further uses do not write, so that hits by many
/// threads share the cache line.
pub(super) const MOST_USES: u8 = 3;

/// Memory of a slot in bytes.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();

/// What a block is read for, which decides how a use counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A row or a key: each use counts.
    Point,
    /// A range of rows, which reads a block several times in succession and then no more: all uses
    /// count as one.
    Scan,
}

/// The verified bytes of one block, dictionary or outline, and the decoded values of a dictionary.
pub(crate) struct Page {
    pub bytes: Box<[u8]>,
    pub decoded: std::sync::OnceLock<Arc<Values>>,
    /// Uses since the page was loaded or last spared, up to [`MOST_USES`]. Concurrent uses may
    /// count as one.
    uses: AtomicU8,
    /// Position in the cache's list of pages; changed only under the mutex of the queues.
    position: AtomicU32,
}

impl Page {
    /// Creates a page without uses.
    pub fn new(bytes: Box<[u8]>) -> Page {
        debug_assert!(!bytes.is_empty(), "a page without bytes");
        Page {
            bytes,
            decoded: std::sync::OnceLock::new(),
            uses: AtomicU8::new(0),
            position: AtomicU32::new(u32::MAX),
        }
    }

    /// Counts a use.
    #[inline]
    pub fn count_use(&self, purpose: Purpose) {
        let uses = self.uses.load(Ordering::Relaxed);
        debug_assert!(uses <= MOST_USES, "{uses} uses of a page");
        let most = match purpose {
            Purpose::Point => MOST_USES,
            Purpose::Scan => 1,
        };
        if uses < most {
            self.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    /// Uses since the page was loaded or last spared.
    pub(super) fn uses(&self) -> u8 {
        let uses = self.uses.load(Ordering::Relaxed);
        debug_assert!(uses <= MOST_USES, "{uses} uses of a page");
        uses
    }

    pub(super) fn set_uses(&self, uses: u8) {
        debug_assert!(uses <= MOST_USES, "{uses} uses of a page");
        self.uses.store(uses, Ordering::Relaxed);
    }

    /// Position in the cache's list of pages.
    pub(super) fn position(&self) -> u32 {
        self.position.load(Ordering::Relaxed)
    }

    pub(super) fn set_position(&self, position: u32) {
        debug_assert!(position != u32::MAX, "a page is put nowhere");
        self.position.store(position, Ordering::Relaxed);
    }
}

/// The place of one block.
#[derive(Default)]
struct Slot {
    page: OnceLock<Arc<Page>>,
    /// When the block last left the small queue, in [`Queues`](super::queues::Queues)'s count of
    /// evicted bytes; 0 if it did not, or was evicted from the main queue since.
    evicted_at: u64,
    /// Reads by parts while the block was not cached, and since when they are counted, in KiB of
    /// the clock of [`BlockCache`](super::BlockCache). Concurrent reads may count as one.
    partial_reads: AtomicU32,
    counted_since: AtomicU32,
}

/// The cached pages of one segment. The slots of a column are allocated on first use.
pub(crate) struct Pages {
    columns: Box<[OnceLock<Box<[Slot]>>]>,
    /// Number of slots of each column.
    counts: Box<[u32]>,
    hits: SegmentHits,
}

impl Pages {
    fn slot(&self, column: usize, index: usize) -> &Slot {
        debug_assert!(column < self.columns.len(), "column {column} of {}", self.columns.len());
        let count = self.counts[column];
        debug_assert!(index < count as usize, "slot {index} of {count}");
        let make = || (0..count).map(|_| Slot::default()).collect();
        &self.columns[column].get_or_init(make)[index]
    }

    /// The page in a slot, if cached, without counting a use.
    #[inline]
    pub fn peek(&self, column: usize, index: usize) -> Option<&Arc<Page>> {
        debug_assert!(index < self.counts[column] as usize, "slot {index} of column {column}");
        self.columns[column].get()?[index].page.get()
    }

    /// Counts a read by parts at `now` and returns how many there were. Starts again after `window`;
    /// both are bytes of the cache's clock.
    pub fn count_partial_read(&self, column: usize, index: usize, now: u64, window: u64) -> u32 {
        let slot = self.slot(column, index);
        let (now, window) = ((now >> 10) as u32, (window >> 10).min(u64::from(u32::MAX)) as u32);
        let is_over = now.wrapping_sub(slot.counted_since.load(Ordering::Relaxed)) > window;
        let before = if is_over { 0 } else { slot.partial_reads.load(Ordering::Relaxed) };
        if is_over {
            slot.counted_since.store(now, Ordering::Relaxed);
        }
        debug_assert!(before < u32::MAX, "{before} reads of block {index}");
        slot.partial_reads.store(before + 1, Ordering::Relaxed);
        before + 1
    }

    /// The page in a slot, if cached. Counts a use for a row or a key.
    #[inline]
    pub fn get(&self, column: usize, index: usize) -> Option<&Arc<Page>> {
        let page = self.peek(column, index)?;
        page.count_use(Purpose::Point);
        self.hits.count();
        Some(page)
    }
}

/// The outcome of filling a slot.
pub(super) enum Filled {
    /// The page is in the slot. `evicted_at` is when the block last left the small queue, or 0.
    Now { evicted_at: u64 },
    /// Another thread loaded the same block first.
    Already(Arc<Page>),
}

/// The slots of one segment.
pub(crate) struct Slots {
    pages: RwLock<Pages>,
}

impl Slots {
    /// Creates slots for every block of every column, given their numbers. The last slots of a
    /// column are those of its dictionary and its outline.
    pub fn new(blocks: impl Iterator<Item = usize>, hits: &Arc<Hits>) -> Arc<Slots> {
        let counts: Box<[u32]> = blocks.map(|blocks| blocks as u32 + 2).collect();
        debug_assert!(counts.iter().all(|count| *count >= 2), "slots of a column");
        let columns = counts.iter().map(|_| OnceLock::new()).collect();
        let pages = Pages { columns, counts, hits: SegmentHits::new(hits) };
        Arc::new(Slots { pages: RwLock::new(pages) })
    }

    /// Pins the cached pages; none is evicted meanwhile. Do not wait or pin again while holding the
    /// result.
    #[inline]
    pub fn pin(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page that outlives the pin, if cached. Counts a use.
    #[inline]
    pub fn get(&self, column: usize, index: usize, purpose: Purpose) -> Option<Arc<Page>> {
        let pages = self.pin();
        let page = pages.peek(column, index)?;
        page.count_use(purpose);
        pages.hits.count();
        Some(page.clone())
    }

    /// Whether a page is cached. Does not count as a use.
    pub fn has(&self, column: usize, index: usize) -> bool {
        self.pin().peek(column, index).is_some()
    }

    fn change(&self) -> RwLockWriteGuard<'_, Pages> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a page into its slot unless there is one. Only under the mutex of the queues.
    pub(super) fn fill(&self, column: u32, index: u32, page: &Arc<Page>) -> Filled {
        let pages = self.pin();
        let slot = pages.slot(column as usize, index as usize);
        let kept = slot.page.get_or_init(|| page.clone());
        match Arc::ptr_eq(kept, page) {
            true => Filled::Now { evicted_at: slot.evicted_at },
            false => Filled::Already(kept.clone()),
        }
    }

    /// Empties a slot. Only under the mutex of the queues.
    pub(super) fn evict(&self, column: u32, index: u32, evicted_at: u64) {
        let mut pages = self.change();
        let slots = pages.columns[column as usize].get_mut();
        let slot = slots.and_then(|slots| slots.get_mut(index as usize));
        invariant!(
            slot.as_ref().is_some_and(|slot| slot.page.get().is_some()),
            "page {index} of column {column} was not in memory"
        );
        if let Some(slot) = slot {
            *slot = Slot { evicted_at, ..Slot::default() };
        }
    }

    /// Empties all slots and returns their pages. Only under the mutex of the queues.
    pub(super) fn take_all(&self) -> Vec<Arc<Page>> {
        let mut pages = self.change();
        let slots = pages.columns.iter_mut().filter_map(OnceLock::take).flatten();
        let taken = slots.filter_map(|slot| slot.page.into_inner()).collect();
        debug_assert!(
            pages.columns.iter().all(|column| column.get().is_none()),
            "a segment has slots after its pages were taken"
        );
        taken
    }
}
