//! Versions of one key, newest first, linked by atomics: readers walk them without waiting.
//!
//! A record is complete before it is linked and never changes afterwards, except that its link to
//! the older record may become null. The thread that swaps a record out of its link owns it, so
//! each record is removed exactly once; it is freed when no reader can still reach it
//! ([`crate::reclaim`]).
//!
//! Locks, and which versions are still needed, are the business of callers.

#![allow(unsafe_code)]

use crate::reclaim::{Pin, pin};
use crate::sync::{AtomicPtr, AtomicU64, MODELLED, Ordering, Published};
use crate::version::Change;
use nacre_types::Timestamp;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// Size in bytes of the two reference counts in front of a shared row or key.
pub(crate) const SHARED_HEADER_BYTES: usize = 2 * size_of::<usize>();

/// One version. Its timestamps are set at commit, before it is linked into the chain.
pub(crate) struct Record {
    commit: AtomicU64,
    content: AtomicU64,
    change: Published<Change>,
    older: Link,
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    freed: std::sync::atomic::AtomicBool,
}

impl Record {
    /// Under a model checker, asserts that the record was not freed.
    #[inline]
    fn check(&self) {
        #[cfg(any(feature = "loom", feature = "shuttle"))]
        assert!(!self.freed.load(Ordering::Relaxed), "a freed version is read");
    }

    pub(crate) fn commit(&self) -> Timestamp {
        self.check();
        self.commit.load(Ordering::Relaxed)
    }

    pub(crate) fn content(&self) -> Timestamp {
        self.check();
        let content = self.content.load(Ordering::Relaxed);
        debug_assert!(
            MODELLED || content <= self.commit(),
            "content of {content} in a version of {}",
            self.commit()
        );
        content
    }

    pub(crate) fn change(&self) -> &Change {
        self.check();
        self.change.get()
    }

    /// The next older record in the chain.
    #[inline]
    fn behind<'a>(&'a self, pin: &'a Pin) -> Option<&'a Record> {
        let older = self.older.get(pin);
        debug_assert!(
            MODELLED || older.is_none_or(|older| older.commit() < self.commit()),
            "commit timestamps must decrease along a chain"
        );
        older
    }

    /// Memory that freeing this record releases, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let row = match self.change() {
            Change::Put(row) => SHARED_HEADER_BYTES + row.len(),
            Change::Delete | Change::Flushed => 0,
        };
        size_of::<Record>() + row
    }
}

/// A record that no link leads to, so that no new reader finds it. Earlier readers may still use
/// it: retiring or dropping it frees it once they are gone.
pub(crate) struct Detached(NonNull<Record>);

// SAFETY: it owns its record, and `needs_send` checks that a record can be sent to another thread.
// Threads that still read the record have shared references.
unsafe impl Send for Detached {}

const fn needs_send<T: Send>() {}
const _: () = needs_send::<Record>();

impl Detached {
    pub(crate) fn new(commit: Timestamp, content: Timestamp, change: Change) -> Detached {
        debug_assert!(content <= commit, "content of {content} in a version of {commit}");
        let record = Box::new(Record {
            commit: AtomicU64::new(commit),
            content: AtomicU64::new(content),
            change: Published::new(change),
            older: Link::default(),
            #[cfg(any(feature = "loom", feature = "shuttle"))]
            freed: std::sync::atomic::AtomicBool::new(false),
        });
        Detached(NonNull::from(Box::leak(record)))
    }

    /// Sets both timestamps. Readers of a pending change do not read them.
    pub(crate) fn stamp(&self, commit: Timestamp) {
        debug_assert!(MODELLED || self.commit() == 0, "a change is committed twice");
        self.commit.store(commit, Ordering::Relaxed);
        self.content.store(commit, Ordering::Relaxed);
    }

    /// Sets the timestamps of a record that was made before they were known.
    pub(crate) fn date(&self, commit: Timestamp, content: Timestamp) {
        debug_assert!(content <= commit, "content of {content} in a version of {commit}");
        debug_assert!(MODELLED || self.commit() == 0, "a record is dated twice");
        self.commit.store(commit, Ordering::Relaxed);
        self.content.store(content, Ordering::Relaxed);
    }

    fn into_raw(self) -> *mut Record {
        let raw = self.0.as_ptr();
        std::mem::forget(self);
        raw
    }
}

impl Deref for Detached {
    type Target = Record;

    fn deref(&self) -> &Record {
        // SAFETY: it came from a `Box`, and only `drop` frees it. Others have only shared
        // references.
        unsafe { self.0.as_ref() }
    }
}

impl Detached {
    /// Frees the record once no reader can still reach it.
    pub(crate) fn retire(self, pin: &Pin) {
        debug_assert!(MODELLED || self.older.is_empty(), "a record is freed with older ones");
        let bytes = self.bytes();
        let record = self.into_raw();
        let free = move || {
            // A reader that still uses it must fail an assertion instead of crashing.
            #[cfg(any(feature = "loom", feature = "shuttle"))]
            // SAFETY: under a model checker records are never freed.
            unsafe { &*record }.freed.store(true, Ordering::Relaxed);
            #[cfg(not(any(feature = "loom", feature = "shuttle")))]
            // SAFETY: it came from a `Box`, and only this line frees a detached record.
            drop(unsafe { Box::from_raw(record) });
        };
        // SAFETY: no link leads to it. It holds only atomics and shared rows, which any thread may
        // drop.
        unsafe { pin.defer(bytes, free) };
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        Detached(self.0).retire(&pin());
    }
}

/// An owning, atomic link to a record, or to none.
#[derive(Default)]
pub(crate) struct Link(AtomicPtr<Record>);

impl Link {
    /// The record, valid while both the pin and this link are borrowed.
    #[inline]
    pub(crate) fn get<'a>(&'a self, _pin: &'a Pin) -> Option<&'a Record> {
        // Acquire: pairs with the release that linked the record after it was written.
        let record = self.0.load(Ordering::Acquire);
        // SAFETY: a record that was linked after the pin is freed only after the pin
        // (`Detached::drop`), or together with the link itself, which is borrowed.
        unsafe { record.as_ref() }
    }

    /// Replaces the record, or removes it, and returns the one before. A new record must have no
    /// older ones.
    pub(crate) fn replace(&self, record: Option<Detached>) -> Option<Detached> {
        debug_assert!(
            MODELLED || record.as_ref().is_none_or(|record| record.older.is_empty()),
            "a record is linked with older ones"
        );
        let new = record.map_or(ptr::null_mut(), Detached::into_raw);
        // Release: the new record is complete. Acquire: the caller reads the one it takes out.
        NonNull::new(self.0.swap(new, Ordering::AcqRel)).map(Detached)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Removes and returns the record.
    pub(crate) fn take(&self) -> Option<Detached> {
        // Most links are empty, and a load is cheaper than a swap.
        if self.is_empty() { None } else { self.replace(None) }
    }

    /// Links a record in front of the chain.
    pub(crate) fn push(&self, record: Detached) {
        debug_assert!(MODELLED || record.older.is_empty(), "a record is linked with older ones");
        let new = record.into_raw();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: no thread frees it: it is not linked yet, and no longer a `Detached`.
            unsafe { &(*new).older }.0.store(head, Ordering::Relaxed);
            // Release: the record is complete, and so are all older ones, whose release sequence
            // this exchange continues.
            match self.0.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// The newest record committed at or before `at`.
    #[inline]
    pub(crate) fn at<'a>(&'a self, pin: &'a Pin, at: Timestamp) -> Option<&'a Record> {
        let mut next = self.get(pin);
        while let Some(record) = next {
            if record.commit() <= at {
                return Some(record);
            }
            next = record.behind(pin);
        }
        None
    }

    /// Whether `wanted` holds for any record.
    pub(crate) fn any(&self, pin: &Pin, mut wanted: impl FnMut(&Record) -> bool) -> bool {
        let mut next = self.get(pin);
        while let Some(record) = next {
            if wanted(record) {
                return true;
            }
            next = record.behind(pin);
        }
        false
    }

    /// Removes all records and returns their size in bytes.
    pub(crate) fn clear(&self, pin: &Pin) -> usize {
        let mut bytes = 0;
        let mut next = self.take();
        while let Some(record) = next {
            bytes += record.bytes();
            next = record.older.take();
            record.retire(pin);
        }
        debug_assert!(MODELLED || self.is_empty(), "a cleared link leads to a record");
        bytes
    }

    /// Removes the records older than the newest one committed at or before `oldest`, and returns
    /// their size in bytes.
    pub(crate) fn cut(&self, pin: &Pin, oldest: Timestamp) -> usize {
        self.at(pin, oldest).map_or(0, |kept| kept.older.clear(pin))
    }

    /// The second record of the chain.
    pub(crate) fn second<'a>(&'a self, pin: &'a Pin) -> Option<&'a Record> {
        self.get(pin).and_then(|record| record.behind(pin))
    }

    /// Whether there is at most one record.
    pub(crate) fn is_alone(&self, pin: &Pin) -> bool {
        self.get(pin).is_none_or(|record| record.behind(pin).is_none())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // No reader can reach the records through this link any more, so they are freed at once,
        // and in a loop rather than by recursion.
        let mut next = self.0.load(Ordering::Acquire);
        while let Some(record) = NonNull::new(next) {
            // SAFETY: a link owns its record, every record came from a `Box`, and a reader that
            // reached it through this link had borrowed the link. Emptying the record's own link
            // leaves nothing for its drop.
            let record = unsafe { Box::from_raw(record.as_ptr()) };
            next = record.older.0.swap(ptr::null_mut(), Ordering::Acquire);
        }
    }
}
