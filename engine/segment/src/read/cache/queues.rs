//! Which pages stay in memory: S3-FIFO (Yang et al., *FIFO Queues are All You Need for Cache
//! Eviction*, SOSP 2023), counted in bytes.
//!
//! A loaded page enters the small queue. At its end, a page that was used again moves to the main
//! queue, and any other is evicted: a scan passes through the small queue only. A block that is
//! loaded again soon after it left the small queue enters the main queue at once. At the end of
//! the main queue, a page goes round again as often as it was used, up to three times.
//!
//! "Soon" is the paper's ghost queue: as many evicted bytes as the main queue may hold. It takes
//! no queue here, because each slot records when its block was evicted, on a clock that counts
//! evicted bytes; it costs no hash table either and disappears with the segment.
//!
//! Differences from the paper: the load of a block counts the reader that asked for it, so a page
//! needs two uses to be promoted, one of them after the load; and a scan never counts as more than
//! one (`Purpose`).

use super::slots::{Filled, Page, Slots};
use nacre_types::invariant;
use std::sync::Arc;

/// Uses from which a page moves from the small to the main queue.
pub(super) const PROMOTED_FROM: u8 = 2;
/// Pages of the main queue spared in one eviction at most, which bounds its time. If fewer than one
/// page in this many is unused, evicting any of them costs the same.
pub(super) const MOST_SPARED: usize = 256;
/// The small queue may hold this many bytes even if they are more than a tenth of the cache: the
/// blocks that a scan reads ahead must not be evicted before they are decoded.
pub(super) const READ_AHEAD_BYTES: usize = 4 << 20;
/// No page: the end of a queue.
const NONE: u32 = u32::MAX;

/// Bytes of the small queue: a tenth of the cache, or [`READ_AHEAD_BYTES`] up to a quarter.
pub(super) fn small_limit(limit_bytes: usize) -> usize {
    (limit_bytes / 10).max(READ_AHEAD_BYTES.min(limit_bytes / 4))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Small,
    Main,
}

/// A cached page in its queue.
struct Entry {
    slots: Arc<Slots>,
    page: Arc<Page>,
    column: u32,
    index: u32,
    bytes: usize,
    queue: Which,
    /// Positions of the neighbours in the queue.
    newer: u32,
    older: u32,
}

/// A doubly linked list of entries.
struct Queue {
    newest: u32,
    oldest: u32,
    bytes: usize,
}

impl Queue {
    const EMPTY: Queue = Queue { newest: NONE, oldest: NONE, bytes: 0 };
}

/// All cached pages, in the order in which they are considered for eviction.
pub(super) struct Queues {
    limit: usize,
    small_limit: usize,
    /// In no order; each page records its position.
    entries: Vec<Entry>,
    small: Queue,
    main: Queue,
    /// Bytes evicted from the small queue so far, plus one.
    evicted: u64,
}

impl Queues {
    /// Creates empty queues for `limit` bytes.
    pub fn new(limit: usize) -> Queues {
        debug_assert!(
            small_limit(limit) <= limit,
            "the small queue exceeds a cache of {limit} bytes"
        );
        Queues {
            limit,
            small_limit: small_limit(limit),
            entries: Vec::new(),
            small: Queue::EMPTY,
            main: Queue::EMPTY,
            evicted: 1,
        }
    }

    /// Bytes of all pages.
    pub fn bytes(&self) -> usize {
        self.small.bytes + self.main.bytes
    }

    /// Adds a loaded page, counted as `bytes`, and evicts others. Returns the cached page: another
    /// one if a concurrent thread loaded the same block.
    pub fn insert(
        &mut self,
        slots: &Arc<Slots>,
        (column, index): (u32, u32),
        page: Arc<Page>,
        bytes: usize,
    ) -> Arc<Page> {
        debug_assert!(bytes >= page.bytes.len(), "a page is counted as {bytes} bytes");
        let queue = match slots.fill(column, index, &page) {
            Filled::Already(kept) => return kept,
            Filled::Now { evicted_at } if self.is_recent(evicted_at) => Which::Main,
            Filled::Now { .. } => Which::Small,
        };
        let at = self.entries.len() as u32;
        invariant!(at < NONE, "{at} pages are cached");
        page.set_position(at);
        let (slots, newer, older) = (slots.clone(), NONE, NONE);
        let entry = Entry { slots, page: page.clone(), column, index, bytes, queue, newer, older };
        self.entries.push(entry);
        self.link(at, queue);
        self.shrink();
        debug_assert!(self.bytes() <= self.limit, "{} bytes are cached", self.bytes());
        page
    }

    /// Removes all pages of a segment. The time depends on the segment's size only.
    pub fn forget(&mut self, slots: &Slots) {
        for page in slots.take_all() {
            let at = page.position();
            invariant!(
                self.entries.get(at as usize).is_some_and(|e| Arc::ptr_eq(&e.page, &page)),
                "a page is not at its position {at} of {}",
                self.entries.len()
            );
            self.remove(at);
        }
    }

    /// Whether a block that left the small queue at this time counts as used again. An entry of a
    /// ghost queue would still be there.
    fn is_recent(&self, evicted_at: u64) -> bool {
        debug_assert!(evicted_at < self.evicted, "a block was evicted at {evicted_at}");
        debug_assert!(self.small_limit <= self.limit, "the main queue holds less than 0 bytes");
        evicted_at > 0 && self.evicted - evicted_at <= (self.limit - self.small_limit) as u64
    }

    /// Evicts pages until the rest fits.
    fn shrink(&mut self) {
        while self.bytes() > self.limit {
            debug_assert!(
                self.small.bytes == 0 || self.small.oldest != NONE,
                "{} bytes in a small queue without pages",
                self.small.bytes
            );
            if self.small.bytes > self.small_limit || self.main.oldest == NONE {
                self.shrink_small();
            } else {
                self.shrink_main();
            }
        }
    }

    /// Takes the oldest page out of the small queue: into the main queue or out of memory.
    fn shrink_small(&mut self) {
        let at = self.small.oldest;
        debug_assert!(at != NONE, "{} bytes in an empty queue", self.small.bytes);
        if self.entries[at as usize].page.uses() >= PROMOTED_FROM {
            self.unlink(at);
            self.entries[at as usize].page.set_uses(0);
            self.link(at, Which::Main);
            return;
        }
        let evicted_at = self.evicted;
        let entry = self.remove(at);
        entry.slots.evict(entry.column, entry.index, evicted_at);
        self.evicted += entry.bytes as u64;
        debug_assert!(self.evicted > evicted_at, "an evicted page is of 0 bytes");
    }

    /// Evicts a page of the main queue. The used pages before it go round again.
    fn shrink_main(&mut self) {
        for _ in 0..MOST_SPARED {
            let at = self.main.oldest;
            debug_assert!(at != NONE, "{} bytes in an empty queue", self.main.bytes);
            let page = &self.entries[at as usize].page;
            let uses = page.uses();
            if uses == 0 {
                break;
            }
            page.set_uses(uses - 1);
            self.unlink(at);
            self.link(at, Which::Main);
        }
        debug_assert!(self.main.oldest != NONE, "a page of an empty queue is evicted");
        let entry = self.remove(self.main.oldest);
        entry.slots.evict(entry.column, entry.index, 0);
    }

    fn queue(&mut self, queue: Which) -> &mut Queue {
        match queue {
            Which::Small => &mut self.small,
            Which::Main => &mut self.main,
        }
    }

    /// Appends an entry to a queue as its newest.
    fn link(&mut self, at: u32, which: Which) {
        let bytes = self.entries[at as usize].bytes;
        let queue = self.queue(which);
        let before = std::mem::replace(&mut queue.newest, at);
        queue.bytes += bytes;
        debug_assert!(bytes > 0 && before != at, "page {at} of {bytes} bytes enters a queue");
        match before {
            NONE => queue.oldest = at,
            before => self.entries[before as usize].newer = at,
        }
        let entry = &mut self.entries[at as usize];
        (entry.queue, entry.older, entry.newer) = (which, before, NONE);
    }

    /// Takes an entry out of its queue.
    fn unlink(&mut self, at: u32) {
        let Entry { queue: which, newer, older, bytes, .. } = self.entries[at as usize];
        let queue = self.queue(which);
        invariant!(bytes <= queue.bytes, "{bytes} bytes leave a queue of {}", queue.bytes);
        queue.bytes -= bytes;
        self.join(which, older, newer);
    }

    /// Makes two entries of a queue neighbours. `NONE` stands for its end.
    fn join(&mut self, which: Which, older: u32, newer: u32) {
        debug_assert!(older != newer || older == NONE, "page {older} is its own neighbour");
        match older {
            NONE => self.queue(which).oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.queue(which).newest = older,
            newer => self.entries[newer as usize].older = older,
        }
    }

    /// Takes an entry out of its queue and of the list. The last entry moves to its position.
    fn remove(&mut self, at: u32) -> Entry {
        self.unlink(at);
        let removed = self.entries.swap_remove(at as usize);
        debug_assert!(removed.page.position() == at, "page {at} is at another position");
        if let Some(moved) = self.entries.get(at as usize) {
            moved.page.set_position(at);
            let Entry { queue, newer, older, .. } = *moved;
            self.join(queue, older, at);
            self.join(queue, at, newer);
        }
        removed
    }

    /// Verifies links, positions and byte counts; for tests.
    #[cfg(test)]
    pub fn check(&self) {
        let mut count = 0;
        for (queue, which) in [(&self.small, Which::Small), (&self.main, Which::Main)] {
            let (mut at, mut older, mut bytes) = (queue.oldest, NONE, 0);
            while at != NONE {
                let entry = &self.entries[at as usize];
                assert_eq!((entry.queue, entry.older, entry.page.position()), (which, older, at));
                let pages = entry.slots.pin();
                let cached = pages.peek(entry.column as usize, entry.index as usize);
                assert!(cached.is_some_and(|cached| Arc::ptr_eq(cached, &entry.page)));
                (bytes, count) = (bytes + entry.bytes, count + 1);
                (older, at) = (at, entry.newer);
            }
            assert_eq!((queue.newest, queue.bytes), (older, bytes));
        }
        assert_eq!(count, self.entries.len());
        assert!(self.bytes() <= self.limit);
    }

    /// The pages of both queues, oldest first, each by its first bytes and with its uses; for
    /// tests.
    #[cfg(test)]
    #[cfg(not(feature = "loom"))]
    pub fn contents(&self) -> [Vec<(Vec<u8>, u8)>; 2] {
        [&self.small, &self.main].map(|queue| {
            let mut found = Vec::new();
            let mut at = queue.oldest;
            while at != NONE {
                let entry = &self.entries[at as usize];
                found.push((entry.page.bytes[..3].to_vec(), entry.page.uses()));
                at = entry.newer;
            }
            found
        })
    }
}
