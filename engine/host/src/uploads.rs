//! Background work that moves local bytes to a blob store, a step at a time.

use crate::{Answer, Rest};

/// Uploads of one database. Dropping an answer gives its call up; the next one goes on.
pub trait Uploads: Send + Sync {
    /// Does a piece of work, with one call of the blob store or two, and says when to call again. Failures are
    /// retried by later steps.
    fn step(&self) -> Answer<'_, Rest>;
    /// Uploads everything that is durable now, without waiting for more.
    ///
    /// Errors: `unavailable` if the blob store is away for long; `in_use` if another writer has the blobs now.
    fn finish(&self) -> Answer<'_, ()>;
    /// Sets what is called when a step that rested until it is woken is due. It must be fast, and not call
    /// back.
    fn on_change(&self, wake: Box<dyn Fn() + Send + Sync>);
    /// Position of the log up to which the loss of the local disk loses nothing.
    fn position(&self) -> u64;
}
