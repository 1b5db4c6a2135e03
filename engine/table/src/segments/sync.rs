//! The locks and atomics of what has a model: publishing segments and delete bitmaps, and journals
//! of locks. The standard ones, or a model checker's. Nothing else in this crate uses the latter.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, fence},
};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, RwLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, fence},
};
