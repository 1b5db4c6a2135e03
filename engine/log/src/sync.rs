//! The atomics and locks of this crate: the real ones, or those of a model checker.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU64};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic::AtomicU64};

pub(crate) use std::sync::atomic::Ordering;
