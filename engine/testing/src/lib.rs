//! Fixtures of the engine's tests: seeded randomness, a host whose time and chance are fixed,
//! stores that fail or call back, and short ways to write schemas.
//!
//! A dev-dependency of the engine's crates, and never a part of a product build. It knows
//! `nacre-types` and `nacre-host` only, so that every crate above those can use it; fixtures that
//! need a table or a session live with the tests of the crate that has them.

mod absent;
mod fault_blobs;
mod fault_store;
mod fixed;
mod memory_blobs;
mod random;
mod schema;
mod slicing;
mod watched;

pub use absent::Absent;
pub use fault_blobs::{BlobChances, BlobFault, FaultBlobs};
pub use fault_store::FaultStore;
pub use fixed::{
    Fixed, host, lacking, reluctant, unblocked, wait, with_refused_background, without_background,
};
pub use memory_blobs::MemoryBlobs;
pub use random::{Random, WORDS};
pub use schema::column;
pub use slicing::{Slicing, slicing};
pub use watched::{Call, Watched};
