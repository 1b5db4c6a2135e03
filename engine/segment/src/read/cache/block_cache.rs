//! The cache that the segments of a database share.

use super::footers::Footers;
use super::hits::Hits;
use super::queues::Queues;
use super::scratch::Scratch;
use super::slots::{Page, Pages, Slots};
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// Reads of a block by parts after which it is loaded: reading all of it, and evicting others for it,
/// costs about as much.
const READS_BY_PARTS: u32 = 8;

/// The block cache, shared by the segments of a database and bounded in bytes.
pub struct BlockCache {
    limit_bytes: usize,
    read_bytes: AtomicU64,
    misses: AtomicU64,
    hits: Arc<Hits>,
    queues: Mutex<Queues>,
    /// Bytes of the cached blocks, readable without the mutex.
    bytes: AtomicUsize,
    /// Bytes of the blocks that were read by parts: a clock that goes on as fast as one of evicted
    /// bytes would if they had been loaded.
    passed: AtomicU64,
    scratch: Scratch,
    footers: Footers,
}

impl BlockCache {
    /// Creates a cache of at most `limit_bytes` of blocks, and of any number of footers.
    pub fn new(limit_bytes: usize) -> Arc<BlockCache> {
        BlockCache::with_footers(limit_bytes, usize::MAX)
    }

    /// Creates a cache of at most `limit_bytes` of blocks and `footer_bytes` of footers. Footers in
    /// use may exceed the limit.
    pub fn with_footers(limit_bytes: usize, footer_bytes: usize) -> Arc<BlockCache> {
        Arc::new(BlockCache {
            limit_bytes,
            read_bytes: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            hits: Hits::new(),
            queues: Mutex::new(Queues::new(limit_bytes)),
            bytes: AtomicUsize::new(0),
            passed: AtomicU64::new(0),
            scratch: Scratch::default(),
            footers: Footers::new(footer_bytes),
        })
    }

    /// Bytes of the footers in memory.
    pub fn footer_bytes(&self) -> usize {
        self.footers.bytes()
    }

    /// Number of segments whose footer is in memory.
    pub fn opened_segments(&self) -> usize {
        self.footers.count_all()
    }

    pub(crate) fn footers(&self) -> &Footers {
        &self.footers
    }

    /// The limit passed to [`BlockCache::new`].
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Total bytes read from the store.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Reads of the store: of a block, of a part of one, or of several that lie beside each other.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Uses of a block that was cached. Concurrent ones may count as one.
    pub fn hits(&self) -> u64 {
        self.hits.total()
    }

    /// Where the slots of its segments count their hits.
    pub(crate) fn hit_counter(&self) -> &Arc<Hits> {
        &self.hits
    }

    /// Bytes of the cached blocks, at most the limit. A dictionary counts twice, for its bytes and
    /// its decoded values.
    pub fn memory_bytes(&self) -> usize {
        let bytes = self.with_queues(|queues| queues.bytes());
        debug_assert!(bytes <= self.limit_bytes, "{bytes} of {} bytes", self.limit_bytes);
        bytes
    }

    /// Makes the bytes of the cached blocks readable without the mutex, which the caller holds.
    fn note_bytes(&self, bytes: usize) {
        debug_assert!(bytes <= self.limit_bytes, "{bytes} of {} bytes", self.limit_bytes);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Counts one read of the store.
    pub(crate) fn count_read(&self, bytes: usize) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Drops the blocks of a segment.
    pub(crate) fn forget(&self, slots: &Slots) {
        self.with_queues(|queues| {
            queues.forget(slots);
            self.note_bytes(queues.bytes());
        });
    }

    /// Whether a row of an uncached block should be read by parts: the cache has no room for `bytes`,
    /// and the block has not been read so often lately that it belongs into it. Counts the read.
    /// Another thread may have cached the block meanwhile: either answer is right then.
    pub(crate) fn prefers_parts(
        &self,
        pages: &Pages,
        column: usize,
        block: usize,
        bytes: usize,
    ) -> bool {
        debug_assert!(bytes > 0, "a block without bytes");
        if self.bytes.load(Ordering::Relaxed) + bytes <= self.limit_bytes {
            return false;
        }
        let (now, window) = (self.passed.load(Ordering::Relaxed), self.limit_bytes as u64);
        let window = window.saturating_mul(u64::from(READS_BY_PARTS));
        debug_assert!(window >= self.limit_bytes as u64, "a window shorter than the cache");
        pages.count_partial_read(column, block, now, window) < READS_BY_PARTS
    }

    /// Advances the clock by the bytes of blocks that were read by parts.
    pub(crate) fn pass(&self, bytes: usize) {
        if bytes > 0 {
            self.passed.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Memory to decode parts in.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
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
        let place = (column as u32, index as u32);
        self.with_queues(|queues| {
            let kept = queues.insert(slots, place, page, bytes);
            self.note_bytes(queues.bytes());
            kept
        })
    }

    pub(super) fn with_queues<T>(&self, work: impl FnOnce(&mut Queues) -> T) -> T {
        work(&mut self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
