//! Versions of one key, newest first, linked by atomics: readers walk them without waiting for anybody.
//!
//! A record is complete before it is linked and is never changed afterwards, but for the link to the older one, which
//! only ever becomes null. Whoever swaps a record out of the link that leads to it owns it, so each is taken out
//! exactly once; it is freed when no reader can be looking at it any more ([`crate::reclaim`]).
//!
//! Nothing here knows what a lock is or which versions are still needed.

#![allow(unsafe_code)]

use crate::node::Change;
use crate::reclaim::{Pin, pin};
use crate::sync::{AtomicPtr, AtomicU64, Ordering, Published};
use nacre_types::Timestamp;
use std::ops::Deref;
use std::ptr::{self, NonNull};

/// Two reference counts in front of a shared row or key.
pub(crate) const SHARED_HEADER_BYTES: usize = 2 * size_of::<usize>();

/// One version. Its times are set when it is committed, before it is linked into the chain.
pub(crate) struct Record {
    commit: AtomicU64,
    content: AtomicU64,
    change: Published<Change>,
    older: Link,
    #[cfg(any(feature = "loom", feature = "shuttle"))]
    freed: std::sync::atomic::AtomicBool,
}

impl Record {
    /// Under a model checker: that nobody uses what could have been freed.
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
        self.content.load(Ordering::Relaxed)
    }

    pub(crate) fn change(&self) -> &Change {
        self.check();
        self.change.get()
    }

    /// Memory that goes when this record goes.
    pub(crate) fn bytes(&self) -> usize {
        let row = match self.change() {
            Change::Put(row) => SHARED_HEADER_BYTES + row.len(),
            Change::Delete | Change::Flushed => 0,
        };
        size_of::<Record>() + row
    }
}

/// A record that no link leads to, so that nobody new finds it. Readers may still be looking at it: retiring or
/// dropping it frees it later.
pub(crate) struct Detached(NonNull<Record>);

impl Detached {
    pub(crate) fn new(commit: Timestamp, content: Timestamp, change: Change) -> Detached {
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

    /// Sets both times. Who looks at it as a pending change does not ask for them.
    pub(crate) fn stamp(&self, commit: Timestamp) {
        self.commit.store(commit, Ordering::Relaxed);
        self.content.store(commit, Ordering::Relaxed);
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
        // SAFETY: it came from a `Box` and is freed by nobody but `drop`. Others have only shared references.
        unsafe { self.0.as_ref() }
    }
}

impl Detached {
    /// Frees it when no reader can be looking at it any more.
    pub(crate) fn retire(self, pin: &Pin) {
        let bytes = self.bytes();
        let record = self.into_raw();
        let free = move || {
            // A reader that would still use it is to find out, not to crash.
            #[cfg(any(feature = "loom", feature = "shuttle"))]
            // SAFETY: under a model checker records are never freed.
            unsafe { &*record }.freed.store(true, Ordering::Relaxed);
            #[cfg(not(any(feature = "loom", feature = "shuttle")))]
            // SAFETY: it came from a `Box`, and this is the only place that frees one that was detached.
            drop(unsafe { Box::from_raw(record) });
        };
        // SAFETY: no link leads to it. It holds nothing but atomics and shared rows, which any thread may drop.
        unsafe { pin.defer(bytes, free) };
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        Detached(self.0).retire(&pin());
    }
}

/// A place that holds a record or none. What it holds belongs to it.
#[derive(Default)]
pub(crate) struct Link(AtomicPtr<Record>);

impl Link {
    /// The record, for as long as both the pin and this place are there.
    #[inline]
    pub(crate) fn get<'a>(&'a self, _pin: &'a Pin) -> Option<&'a Record> {
        // Acquire: pairs with the release that linked it, which came after it was written.
        let record = self.0.load(Ordering::Acquire);
        // SAFETY: what was in a link after the pin is freed only after the pin (`Detached::drop`), or together with
        // the link itself, which is borrowed.
        unsafe { record.as_ref() }
    }

    /// Puts another record, or none, in the place.
    pub(crate) fn replace(&self, record: Option<Detached>) -> Option<Detached> {
        let new = record.map_or(ptr::null_mut(), Detached::into_raw);
        // Release: the record is complete. Acquire: whoever takes one out reads it.
        NonNull::new(self.0.swap(new, Ordering::AcqRel)).map(Detached)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Takes the record out.
    pub(crate) fn take(&self) -> Option<Detached> {
        // Most have nothing to take, and looking is cheaper than swapping.
        if self.is_empty() { None } else { self.replace(None) }
    }

    /// Puts a record before the one that is there.
    pub(crate) fn push(&self, record: Detached) {
        let new = record.into_raw();
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody frees it: it is neither linked nor a `Detached` any more.
            unsafe { &(*new).older }.0.store(head, Ordering::Relaxed);
            // Release: it is complete, and so is all behind it, whose releases this one continues.
            match self.0.compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// The newest record not after `at`.
    #[inline]
    pub(crate) fn at<'a>(&'a self, pin: &'a Pin, at: Timestamp) -> Option<&'a Record> {
        let mut next = self.get(pin);
        while let Some(record) = next {
            if record.commit() <= at {
                return Some(record);
            }
            next = record.older.get(pin);
        }
        None
    }

    /// Whether some record is wanted.
    pub(crate) fn any(&self, pin: &Pin, mut wanted: impl FnMut(&Record) -> bool) -> bool {
        let mut next = self.get(pin);
        while let Some(record) = next {
            if wanted(record) {
                return true;
            }
            next = record.older.get(pin);
        }
        false
    }

    /// Takes everything out and answers with how many bytes that were.
    pub(crate) fn clear(&self, pin: &Pin) -> usize {
        let mut bytes = 0;
        let mut next = self.take();
        while let Some(record) = next {
            bytes += record.bytes();
            next = record.older.take();
            record.retire(pin);
        }
        bytes
    }

    /// Takes out what is older than the newest record not after `oldest`. Answers with the bytes.
    pub(crate) fn cut(&self, pin: &Pin, oldest: Timestamp) -> usize {
        self.at(pin, oldest).map_or(0, |kept| kept.older.clear(pin))
    }

    /// The record behind the first.
    pub(crate) fn second<'a>(&'a self, pin: &'a Pin) -> Option<&'a Record> {
        self.get(pin).and_then(|record| record.older.get(pin))
    }

    /// Whether there is nothing behind the first record.
    pub(crate) fn is_alone(&self, pin: &Pin) -> bool {
        self.get(pin).is_none_or(|record| record.older.get(pin).is_none())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Nobody can reach them through this place any more: no reason to wait, and no recursion either.
        let mut next = self.0.load(Ordering::Acquire);
        while let Some(record) = NonNull::new(next) {
            // SAFETY: a link owns what it holds, every record came from a `Box`, and whoever looked at it through
            // this link had borrowed the link. Taking it out here keeps its own drop from finding anything.
            let record = unsafe { Box::from_raw(record.as_ptr()) };
            next = record.older.0.swap(ptr::null_mut(), Ordering::Acquire);
        }
    }
}
