//! The atomics and locks of this crate: the real ones, or those of a model checker.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU64};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU64};

pub(crate) use std::sync::atomic::Ordering;

use std::sync::{PoisonError, TryLockError};

/// Locks a mutex, even after a panic of another holder: the guarded data is consistent between
/// statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex unless it is held.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(panicked)) => Some(panicked.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
