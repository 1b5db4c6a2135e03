//! Futures behind a pointer.
//!
//! The code of an `async` function belongs to the crate that polls it by its own type, which may
//! compile for speed where this one compiles for size, and its state is a part of its caller's.
//! What is not called for every row read by key is therefore boxed here.

use nacre_types::Result;
use std::future::Future;
use std::pin::Pin;

/// A future of this crate, compiled with it.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;
