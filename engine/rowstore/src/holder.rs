//! The row lock: one word that identifies its holder.
//!
//! The word is 0 if the row is free, the address of its reference-counted holder if it is locked,
//! or one of two marks: *latched*, for the few instructions in which a thread changes the node
//! outside any transaction and excludes new holders, and *dead*, permanently, once the node is
//! unlinked. Nothing waits here: [`Owner`] implements waiting for a holder.
//!
//! A thread that reads the holder must keep it from being freed. It sets the bit *asked* while the
//! word still has the address: a holder that finds the bit set on release defers dropping its
//! reference until all threads pinned at that moment have unpinned. This is the rare case; a lock
//! without contention costs two exchanges.

#![allow(unsafe_code)]

use crate::lock::{Blocker, LockError, Owner};
use crate::reclaim::{Pin, pin};
use crate::sync::{AtomicUsize, MODELLED, Ordering, spin_loop};
use std::ptr;
use std::sync::Arc;

const FREE: usize = 0;
// An `Owner` is aligned to more than these values, so its address never equals one of them.
const LATCHED: usize = 1;
const DEAD: usize = 2;
const ASKED: usize = 4;
const _: () = assert!(align_of::<Owner>() > ASKED && (LATCHED | DEAD) & ASKED == 0);

fn is_owner(word: usize) -> bool {
    !matches!(word, FREE | LATCHED | DEAD)
}

/// The owner that a word points to.
fn owner_of(word: usize) -> *const Owner {
    // An owner's provenance is exposed before its address is stored in a word. Words hold
    // addresses, not pointers, because an exchange may succeed on a word whose owner was replaced
    // by another at the same address; then that other owner is the one that counts.
    ptr::with_exposed_provenance(word & !ASKED)
}

#[derive(Default)]
pub(crate) struct Holder(AtomicUsize);

impl Holder {
    /// Makes `owner` the holder. Returns `false` if it already was.
    pub(crate) fn lock(&self, owner: &Arc<Owner>) -> Result<bool, LockError> {
        loop {
            // Acquire: see what the previous holder did to the node.
            match self.0.load(Ordering::Acquire) {
                FREE => {
                    let counted = Arc::into_raw(owner.clone());
                    let word = counted.expose_provenance();
                    debug_assert!(is_owner(word) && word & ASKED == 0, "an owner at {word:#x}");
                    // Release: a thread that reads the holder finds it complete.
                    if self
                        .0
                        .compare_exchange(FREE, word, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        return Ok(true);
                    }
                    // SAFETY: it comes from `into_raw` above and was not stored.
                    drop(unsafe { Arc::from_raw(counted) });
                }
                LATCHED => spin_loop(),
                DEAD => return Err(LockError::Dead),
                word if ptr::eq(owner_of(word), Arc::as_ptr(owner)) => return Ok(false),
                _ => {
                    if let Some(blocker) = self.blocker() {
                        return Err(LockError::Held(blocker));
                    }
                }
            }
        }
    }

    /// Releases the lock if it is held.
    pub(crate) fn unlock(&self) {
        let mut word = self.0.load(Ordering::Relaxed);
        // Release: the next holder sees what this one did to the node.
        while is_owner(word) {
            match self.0.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return give_back(word),
                Err(now) => word = now,
            }
        }
    }

    /// The holder of the lock, for waiting.
    pub(crate) fn blocker(&self) -> Option<Blocker> {
        loop {
            let blocker = Blocker::new(self.owner()?);
            // A holder that has released the lock in the meantime may have counted the release
            // before we read the count.
            if self.is(blocker.owner()) {
                return Some(blocker);
            }
        }
    }

    /// The holder of the lock.
    fn owner(&self) -> Option<Arc<Owner>> {
        let mut word = self.0.load(Ordering::Acquire);
        if !is_owner(word) {
            return None;
        }
        let pin = pin();
        while is_owner(word) {
            match self.0.compare_exchange(word, word | ASKED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(word) => {
                    // Gives a model checker a point at which the holder can release the lock.
                    #[cfg(any(feature = "loom", feature = "shuttle"))]
                    self.0.load(Ordering::Relaxed);
                    // SAFETY: after the pin, the word named the holder with the bit set.
                    return Some(unsafe { another(word, &pin) });
                }
                Err(now) => word = now,
            }
        }
        None
    }

    /// Whether this owner is the holder. No other owner can have its address while it is alive.
    #[inline]
    pub(crate) fn is(&self, owner: &Arc<Owner>) -> bool {
        ptr::addr_eq(owner_of(self.0.load(Ordering::Acquire)), Arc::as_ptr(owner))
    }

    /// Whether the lock is held. An owner that locks it after this returned `false` sees everything
    /// this thread did before the call, which is why this is a read-modify-write and not a load.
    pub(crate) fn is_held(&self) -> bool {
        is_owner(self.0.fetch_or(0, Ordering::AcqRel))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) == DEAD
    }

    /// Prevents locking until the latch is dropped; `None` if the row is locked or dead.
    pub(crate) fn latch(&self) -> Option<Latch<'_>> {
        loop {
            match self.0.compare_exchange(FREE, LATCHED, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Latch(&self.0)),
                Err(LATCHED) => spin_loop(),
                Err(_) => return None,
            }
        }
    }
}

/// Drops the reference that a word held. Only the thread that removed it from the word may call
/// this.
fn give_back(word: usize) {
    debug_assert!(is_owner(word), "a reference to no owner is dropped: {word:#x}");
    // SAFETY: `lock` put a reference into the word, and the word no longer has it.
    let free = move || drop(unsafe { Arc::from_raw(owner_of(word)) });
    if word & ASKED == 0 {
        return free();
    }
    // SAFETY: the word no longer leads to it, and threads that found it there are pinned. Any
    // thread may drop an owner.
    unsafe { pin().defer(0, free) };
}

/// Clones the reference to the owner of a word.
///
/// # Safety
/// At some moment after the pin, the word must have named this owner with [`ASKED`] set.
unsafe fn another(word: usize, _pin: &Pin) -> Arc<Owner> {
    debug_assert!(is_owner(word), "a reference to no owner is counted: {word:#x}");
    let owner = owner_of(word);
    // SAFETY: under a model checker the memory of owners is never freed (`Owner::new`).
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    let counted = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(owner) });
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    assert!(Arc::strong_count(&counted) > 0, "a freed owner is asked for");
    // SAFETY: the bit was set, so the word's reference is dropped only after the pin, and the count
    // is above zero.
    unsafe {
        Arc::increment_strong_count(owner);
        Arc::from_raw(owner)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Acquire);
        debug_assert!(word != LATCHED, "a row lock is dropped under its latch");
        if is_owner(word) {
            give_back(word);
        }
    }
}

/// See [`Holder::latch`].
pub(crate) struct Latch<'a>(&'a AtomicUsize);

impl Latch<'_> {
    /// Makes the node dead: no owner can lock it again.
    pub(crate) fn kill(self) {
        let is_latched = || self.0.load(Ordering::Relaxed) == LATCHED;
        debug_assert!(MODELLED || is_latched(), "a row dies that is not latched");
        self.0.store(DEAD, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        let is_latched = || self.0.load(Ordering::Relaxed) == LATCHED;
        debug_assert!(MODELLED || is_latched(), "a latched row was changed by another thread");
        // Release: the next holder sees what was done under the latch.
        self.0.store(FREE, Ordering::Release);
    }
}

// Words and links share these types between threads through raw pointers, which the compiler cannot
// check.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Owner>();
    is_shared::<crate::version::Version>();
};
