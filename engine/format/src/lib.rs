//! The layout of the immutable columnar file, and its writer.
//!
//! A crate of its own, apart from `nacre-segment`, which reads: in a browser this one is compiled for the smallest
//! size. `docs/FORMAT.md`, chapter "Segment file", describes the format; `nacre-column` encodes blocks.

pub mod column;
pub mod document;
pub mod filter;
pub mod footer;
pub mod identity;
pub mod outline;
pub mod write;
