//! The contract of each seam in `nacre-host`, as a suite that every implementation runs from its
//! own tests.
//!
//! A suite panics with a sentence that says which promise was broken. It checks what a caller may
//! rely on and nothing else. What survives a power cut cannot be seen from inside a process and is
//! not checked: `nacre_testing::FaultStore` simulates it for the tests of what is built on a store.

mod local_store;
mod world;

pub use local_store::{check_local_store, check_local_store_reopen};
pub use world::{check_clock, check_entropy, check_parallelism};

use nacre_host::{ErrorKind, Result};

/// The result must be an error of this kind.
#[track_caller]
fn expect_error<T>(result: Result<T>, kind: ErrorKind, what: &str) {
    match result {
        Ok(_) => panic!("{what}: must fail with {}, but succeeded", kind.name()),
        Err(error) => assert_eq!(error.kind(), kind, "{what}: {error}"),
    }
}
