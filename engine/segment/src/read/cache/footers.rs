//! The footers in memory, bounded in bytes over all segments that share a cache.
//!
//! A footer is read when its segment is first used, and dropped when others need its memory: by
//! least use, approximated by a clock (Corbato, *A Paging Experiment with the Multics System*,
//! 1968). A segment's cached blocks and its open file go with its footer.
//!
//! A reader holds a shared lock on the cell of a footer, and reads the file under it. Eviction
//! never waits for the exclusive lock: it passes over a footer in use. Hence nested readers cannot
//! deadlock.

use nacre_types::Result;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, TryLockError, Weak};

/// Something that is kept as a footer.
pub(crate) trait Weigh: Send + Sync + 'static {
    /// Its memory in bytes.
    fn memory_bytes(&self) -> usize;
}

/// The place of a segment's footer.
pub(crate) struct FooterCell<F> {
    footer: RwLock<OnceLock<Counted<F>>>,
    /// Whether it was used since eviction last passed over it.
    used: AtomicBool,
}

/// A footer, and what it counts as.
struct Counted<F> {
    footer: F,
    bytes: usize,
    total: Arc<Total>,
}

/// A cell as eviction sees it.
trait Evict: Send + Sync {
    /// Whether it was used since the last call.
    fn was_used(&self) -> bool;
    /// Whether its footer is in memory.
    fn is_filled(&self) -> bool;
    /// Takes the footer unless it is in use, to be dropped without locks.
    fn evict(&self) -> Evicted;
}

/// The outcome of an eviction.
enum Evicted {
    /// The footer is in use.
    InUse,
    /// There was none.
    Nothing,
    /// This footer, and its size in bytes.
    Footer(Box<dyn Send>, usize),
}

/// What all footers in memory take together.
#[derive(Default)]
struct Total {
    bytes: AtomicUsize,
    count: AtomicUsize,
}

/// A footer that is not evicted meanwhile.
pub(crate) struct Pinned<'a, F>(RwLockReadGuard<'a, OnceLock<Counted<F>>>);

/// The footers of the segments that share a cache.
pub(crate) struct Footers {
    limit_bytes: usize,
    total: Arc<Total>,
    /// Cells in the order in which eviction visits them. Some are gone, some are empty.
    queue: Mutex<VecDeque<Weak<dyn Evict>>>,
}

impl<F> Deref for Pinned<'_, F> {
    type Target = F;

    #[inline]
    fn deref(&self) -> &F {
        match self.0.get() {
            Some(counted) => &counted.footer,
            // Checked when it was pinned; only the holder of the exclusive lock takes it.
            None => nacre_types::invariant::broken(format_args!("a pinned footer is gone")),
        }
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        let before = self.total.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.total.count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before >= self.bytes, "{before} bytes of footers, and one of {}", self.bytes);
    }
}

impl<F> Default for FooterCell<F> {
    fn default() -> Self {
        FooterCell { footer: RwLock::default(), used: AtomicBool::new(false) }
    }
}

impl<F: Weigh> FooterCell<F> {
    /// The footer, if it is in memory. Does not count as a use.
    pub fn peek(&self) -> Option<Pinned<'_, F>> {
        let guard = self.footer.read().unwrap_or_else(PoisonError::into_inner);
        guard.get()?;
        Some(Pinned(guard))
    }

    /// Pins the footer, which `read` reads if it is not in memory.
    #[inline]
    pub fn pin(
        self: &Arc<FooterCell<F>>,
        footers: &Footers,
        read: impl FnOnce() -> Result<F>,
    ) -> Result<Pinned<'_, F>> {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        let guard = self.footer.read().unwrap_or_else(PoisonError::into_inner);
        if guard.get().is_some() {
            return Ok(Pinned(guard));
        }
        self.fill(guard, footers, read)
    }

    #[cold]
    fn fill<'a>(
        self: &'a Arc<FooterCell<F>>,
        guard: RwLockReadGuard<'a, OnceLock<Counted<F>>>,
        footers: &Footers,
        read: impl FnOnce() -> Result<F>,
    ) -> Result<Pinned<'a, F>> {
        // Another thread may have read it meanwhile.
        if guard.set(footers.count(read()?)).is_ok() {
            footers.make_room(self.clone());
        }
        debug_assert!(guard.get().is_some(), "a footer was read and is not in memory");
        Ok(Pinned(guard))
    }

    /// Drops the footer unless it is in use.
    pub fn close(&self) {
        drop(self.evict());
    }
}

impl<F: Weigh> Evict for FooterCell<F> {
    fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    fn is_filled(&self) -> bool {
        self.peek().is_some()
    }

    fn evict(&self) -> Evicted {
        let taken = match self.footer.try_write() {
            Ok(mut guard) => guard.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            Err(TryLockError::WouldBlock) => return Evicted::InUse,
        };
        match taken {
            Some(counted) => {
                let bytes = counted.bytes;
                debug_assert!(
                    counted.total.bytes.load(Ordering::Relaxed) >= bytes,
                    "{bytes} bytes"
                );
                Evicted::Footer(Box::new(counted), bytes)
            }
            None => Evicted::Nothing,
        }
    }
}

impl Footers {
    /// Keeps footers of at most this many bytes, besides those in use.
    pub fn new(limit_bytes: usize) -> Footers {
        Footers { limit_bytes, total: Arc::default(), queue: Mutex::default() }
    }

    /// Bytes of the footers in memory.
    pub fn bytes(&self) -> usize {
        self.total.bytes.load(Ordering::Relaxed)
    }

    /// Number of the footers in memory.
    pub fn count_all(&self) -> usize {
        self.total.count.load(Ordering::Relaxed)
    }

    fn count<F: Weigh>(&self, footer: F) -> Counted<F> {
        let bytes = footer.memory_bytes() + size_of::<FooterCell<F>>();
        self.total.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.total.count.fetch_add(1, Ordering::Relaxed);
        debug_assert!(bytes > 0, "a footer takes memory");
        Counted { footer, bytes, total: self.total.clone() }
    }

    /// Enters a footer that was just read, and evicts others until all are within the limit. Those
    /// used since the last visit are spared once.
    fn make_room(&self, new: Arc<dyn Evict>) {
        let mut evicted = Vec::new();
        let mut freed = 0;
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(Arc::downgrade(&new));
        let mut visits = 2 * queue.len();
        while visits > 0
            && self.bytes().saturating_sub(freed) > self.limit_bytes
            && let Some(weak) = queue.pop_front()
        {
            visits -= 1;
            let Some(cell) = weak.upgrade() else { continue };
            if cell.was_used() {
                queue.push_back(weak);
                continue;
            }
            match cell.evict() {
                Evicted::InUse => queue.push_back(weak),
                Evicted::Nothing => {}
                Evicted::Footer(footer, bytes) => {
                    freed += bytes;
                    evicted.push(footer);
                }
            }
        }
        if queue.len() > 64 + 2 * self.count_all() {
            queue.retain(|weak| weak.upgrade().is_some_and(|cell| cell.is_filled()));
        }
        debug_assert!(evicted.is_empty() == (freed == 0), "{freed} bytes of evicted footers");
        drop(queue);
        // Dropping a footer takes the lock of the block cache.
        drop(evicted);
    }
}
