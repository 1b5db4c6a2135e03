//! The locks and atomics used for publishing segments and delete bitmaps: the standard ones, or a
//! model checker's. Nothing else in this crate uses the latter.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::{RwLock, atomic::AtomicBool, atomic::AtomicU64};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{RwLock, atomic::AtomicBool, atomic::AtomicU64};
