//! The atomics and locks of this crate: the real ones, or those of a model checker.
//!
//! All contended state goes through here; statistics counters and the skiplist itself are not
//! modelled.

#[cfg(feature = "loom")]
mod chosen {
    pub use loom::hint::spin_loop;
    pub use loom::sync::Mutex;
    pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
}
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
mod chosen {
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::Mutex;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
}
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
mod chosen {
    pub use std::hint::spin_loop;
    pub use std::sync::Mutex;
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
}

/// Whether a model checker runs. Assertions that load atomics check nothing then: each load would
/// be a step of its own, and some would order what the real build leaves unordered.
pub(crate) const MODELLED: bool = cfg!(any(feature = "loom", feature = "shuttle"));

pub(crate) use chosen::*;
pub(crate) use std::sync::atomic::Ordering;

/// A value that is written before its holder is published and only read afterwards. Under `loom`,
/// every read checks that the write happened before it.
pub(crate) struct Published<T> {
    #[cfg(not(feature = "loom"))]
    value: T,
    #[cfg(feature = "loom")]
    value: loom::cell::UnsafeCell<T>,
}

// SAFETY: it is only read, like the real one.
#[cfg(feature = "loom")]
#[allow(unsafe_code)]
unsafe impl<T: Sync> Sync for Published<T> {}

impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Published<T> {
        #[cfg(feature = "loom")]
        let value = loom::cell::UnsafeCell::new(value);
        Published { value }
    }

    #[cfg(not(feature = "loom"))]
    pub(crate) fn get(&self) -> &T {
        &self.value
    }

    #[cfg(feature = "loom")]
    #[allow(unsafe_code)]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: the cell is never written after `new`.
        self.value.with(|value| unsafe { &*value })
    }
}
