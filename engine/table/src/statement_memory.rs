//! The memory that the operators of all statements share.

use nacre_types::invariant;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that the operators of all statements hold, up to a limit.
#[derive(Debug)]
pub struct StatementMemory {
    limit_bytes: usize,
    held: AtomicUsize,
}

impl StatementMemory {
    /// Creates a pool of `limit_bytes`, none of them held.
    pub fn new(limit_bytes: usize) -> StatementMemory {
        StatementMemory { limit_bytes, held: AtomicUsize::new(0) }
    }

    /// The limit.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Bytes held now. Above the limit by no more than [`StatementMemory::take_always`] took.
    pub fn memory_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Bytes that may still be taken.
    pub fn left_bytes(&self) -> usize {
        self.limit_bytes.saturating_sub(self.memory_bytes())
    }

    /// Takes `more` bytes. Returns false if fewer are left.
    #[must_use]
    pub fn take(&self, more: usize) -> bool {
        let take = |held: usize| held.checked_add(more).filter(|held| *held <= self.limit_bytes);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes `more` bytes even if they are not left: what an operator needs to make progress.
    pub fn take_always(&self, more: usize) {
        let before = self.held.fetch_add(more, Ordering::Relaxed);
        debug_assert!(before.checked_add(more).is_some(), "{more} bytes after {before} held");
    }

    /// Returns bytes.
    pub fn give_back(&self, bytes: usize) {
        let held = self.held.fetch_sub(bytes, Ordering::Relaxed);
        invariant!(bytes <= held, "statements return {bytes} bytes of {held}");
    }
}
