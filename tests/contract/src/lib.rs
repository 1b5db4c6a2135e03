//! The contract of each seam in `nacre-host`, as a suite that every implementation runs in its own
//! tests.
//!
//! A suite panics with a sentence naming the broken promise. It checks what callers may rely on and
//! nothing else. Durability across a power cut cannot be observed from inside a process and is not
//! checked; `nacre_testing::FaultStore` simulates it for tests of components built on a store.

mod blob_store;
mod local_store;
mod world;

pub use blob_store::{check_blob_store, check_blob_times};
pub use local_store::{check_local_store, check_local_store_reopen};
pub use world::{check_clock, check_entropy, check_parallelism};

use nacre_host::{ErrorKind, Result};

/// Asserts that the result is an error of this kind.
#[track_caller]
fn expect_error<T>(result: Result<T>, kind: ErrorKind, what: &str) {
    match result {
        Ok(_) => panic!("{what}: must fail with {}, but succeeded", kind.name()),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}
