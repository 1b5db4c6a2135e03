//! The locks and atomics of the block cache: the standard ones, or those of a model checker.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{
    Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU8, AtomicU32},
};
#[cfg(feature = "loom")]
pub(crate) use modelled::OnceLock;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{
    Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU8, AtomicU32},
};

#[cfg(feature = "loom")]
mod modelled {
    use loom::sync::atomic::{AtomicBool, Ordering};

    /// A cell that is written once. `loom` has none; a flag tells it what a reader of the standard
    /// one is guaranteed to see.
    pub(crate) struct OnceLock<T> {
        value: std::sync::OnceLock<T>,
        is_set: AtomicBool,
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> Self {
            OnceLock::new()
        }
    }

    impl<T> OnceLock<T> {
        pub fn new() -> OnceLock<T> {
            OnceLock { value: std::sync::OnceLock::new(), is_set: AtomicBool::new(false) }
        }

        pub fn get(&self) -> Option<&T> {
            if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
        }

        pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            if let Some(value) = self.get() {
                return value;
            }
            let value = self.value.get_or_init(make);
            self.is_set.store(true, Ordering::Release);
            value
        }

        pub fn get_mut(&mut self) -> Option<&mut T> {
            self.value.get_mut()
        }

        pub fn take(&mut self) -> Option<T> {
            self.is_set.store(false, Ordering::Relaxed);
            self.value.take()
        }

        pub fn into_inner(self) -> Option<T> {
            self.value.into_inner()
        }
    }
}
