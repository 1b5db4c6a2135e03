//! The row lock: one word that says who holds it.
//!
//! The word is 0 when the row is free, the address of its counted holder when it is locked, or one of two marks:
//! *latched*, for the few instructions in which somebody who is no transaction changes the node and must not be
//! overtaken by a new holder, and *dead*, for ever, when the node was unlinked. Nobody waits here: waiting for a
//! holder is [`Owner`]'s matter.
//!
//! Whoever wants to know the holder must keep it from being freed meanwhile. He says so by the bit *asked*, set while
//! the word still has the address: a holder that finds it leaves its count to be given back when all who are pinned
//! now are gone. That is the rare case; a lock nobody asked for costs two exchanges and no more.

#![allow(unsafe_code)]

use crate::lock::{Blocker, LockError, Owner};
use crate::reclaim::{Pin, pin};
use crate::sync::{AtomicUsize, Ordering, spin_loop};
use std::ptr;
use std::sync::Arc;

const FREE: usize = 0;
// An `Owner` is aligned to more than these, so none has such an address.
const LATCHED: usize = 1;
const DEAD: usize = 2;
const ASKED: usize = 4;

fn is_owner(word: usize) -> bool {
    !matches!(word, FREE | LATCHED | DEAD)
}

/// The owner behind a word.
fn owner_of(word: usize) -> *const Owner {
    // Owners are always exposed before they get into a word. Addresses, not pointers, because a word may be taken for
    // the one it was before, with another owner at the same address, and then it is that one that counts.
    ptr::with_exposed_provenance(word & !ASKED)
}

#[derive(Default)]
pub(crate) struct Holder(AtomicUsize);

impl Holder {
    /// Makes `owner` the holder; `false` when it was already.
    pub(crate) fn lock(&self, owner: &Arc<Owner>) -> Result<bool, LockError> {
        loop {
            // Acquire: what the holder before did to the node.
            match self.0.load(Ordering::Acquire) {
                FREE => {
                    let counted = Arc::into_raw(owner.clone());
                    let word = counted.expose_provenance();
                    // Release: who asks for the holder finds a complete one.
                    if self
                        .0
                        .compare_exchange(FREE, word, Ordering::AcqRel, Ordering::Relaxed)
                        .is_ok()
                    {
                        return Ok(true);
                    }
                    // SAFETY: from `into_raw` above, and not stored.
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

    /// Frees the lock, if it is held.
    pub(crate) fn unlock(&self) {
        let mut word = self.0.load(Ordering::Relaxed);
        // Release: what the holder did to the node is there for the next one.
        while is_owner(word) {
            match self.0.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return give_back(word),
                Err(now) => word = now,
            }
        }
    }

    /// Who holds the lock, to wait until it is given back.
    pub(crate) fn blocker(&self) -> Option<Blocker> {
        loop {
            let blocker = Blocker::new(self.owner()?);
            // One that has gone meanwhile may have counted before it was asked.
            if self.is(blocker.owner()) {
                return Some(blocker);
            }
        }
    }

    /// Who holds the lock.
    fn owner(&self) -> Option<Arc<Owner>> {
        let mut word = self.0.load(Ordering::Acquire);
        if !is_owner(word) {
            return None;
        }
        let pin = pin();
        while is_owner(word) {
            match self.0.compare_exchange(word, word | ASKED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(word) => {
                    // A place for a model checker to let the holder leave.
                    #[cfg(any(feature = "loom", feature = "shuttle"))]
                    self.0.load(Ordering::Relaxed);
                    // SAFETY: the word had the holder with the bit set, after the pin.
                    return Some(unsafe { another(word, &pin) });
                }
                Err(now) => word = now,
            }
        }
        None
    }

    /// Whether this owner is the holder. Its own address cannot be anybody else's while it lives.
    #[inline]
    pub(crate) fn is(&self, owner: &Arc<Owner>) -> bool {
        ptr::addr_eq(owner_of(self.0.load(Ordering::Acquire)), Arc::as_ptr(owner))
    }

    /// Whether anybody is the holder. Whoever becomes it after the answer was no finds everything that was done
    /// before the question: that is why this is an exchange and no load.
    pub(crate) fn is_held(&self) -> bool {
        is_owner(self.0.fetch_or(0, Ordering::AcqRel))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.0.load(Ordering::Acquire) == DEAD
    }

    /// Keeps everybody from locking until it is dropped; `None` when the row is locked, or dead.
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

/// Drops the count that a word had. Only who took the word out may do so.
fn give_back(word: usize) {
    // SAFETY: `lock` put a count into the word, and it is not there any more.
    let free = move || drop(unsafe { Arc::from_raw(owner_of(word)) });
    if word & ASKED == 0 {
        return free();
    }
    // SAFETY: nobody finds it in the word any more; who did before is pinned. Owners may be dropped by any thread.
    unsafe { pin().defer(0, free) };
}

/// Another count of the owner of a word.
///
/// # Safety
/// The word had this owner and [`ASKED`] at some time after the pin.
unsafe fn another(word: usize, _pin: &Pin) -> Arc<Owner> {
    let owner = owner_of(word);
    // SAFETY: under a model checker the memory of owners is never freed (`Owner::new`).
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    let counted = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(owner) });
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    assert!(Arc::strong_count(&counted) > 0, "a freed owner is asked for");
    // SAFETY: as the bit was set, the count of the word is given back only after the pin, so there is one to add to.
    unsafe {
        Arc::increment_strong_count(owner);
        Arc::from_raw(owner)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Acquire);
        if is_owner(word) {
            give_back(word);
        }
    }
}

/// See [`Holder::latch`].
pub(crate) struct Latch<'a>(&'a AtomicUsize);

impl Latch<'_> {
    /// Lets nobody lock ever again.
    pub(crate) fn kill(self) {
        self.0.store(DEAD, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        // Release: what was done under the latch is there for the next holder.
        self.0.store(FREE, Ordering::Release);
    }
}

// What words and links lead to is shared between threads by hand, which the compiler does not look at.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Owner>();
    is_shared::<crate::node::Version>();
};
