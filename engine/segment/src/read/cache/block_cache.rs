//! The cache that the segments of a database share.

use super::footers::Footers;
use super::queues::Queues;
use super::slots::{Page, Slots};
use crate::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

/// The block cache, shared by the segments of a database and bounded in bytes.
pub struct BlockCache {
    limit_bytes: usize,
    read_bytes: AtomicU64,
    queues: Mutex<Queues>,
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
            queues: Mutex::new(Queues::new(limit_bytes)),
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

    /// Bytes of the cached blocks, at most the limit. A dictionary counts twice, for its bytes and
    /// its decoded values.
    pub fn memory_bytes(&self) -> usize {
        let bytes = self.with_queues(|queues| queues.bytes());
        debug_assert!(bytes <= self.limit_bytes, "{bytes} of {} bytes", self.limit_bytes);
        bytes
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Drops the blocks of a segment.
    pub(crate) fn forget(&self, slots: &Slots) {
        self.with_queues(|queues| queues.forget(slots));
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
        self.with_queues(|queues| queues.insert(slots, place, page, bytes))
    }

    pub(super) fn with_queues<T>(&self, work: impl FnOnce(&mut Queues) -> T) -> T {
        work(&mut self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
