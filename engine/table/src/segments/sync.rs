//! The locks and atomics through which segments and delete bitmaps are published: the real ones, or
//! those of a model checker. Nothing else in this crate uses them.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{RwLock, atomic::AtomicBool, atomic::AtomicU64};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{RwLock, atomic::AtomicBool, atomic::AtomicU64};
