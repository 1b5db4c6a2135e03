//! The immutable columnar file: its writer, its reader and the cache of its blocks.
//!
//! Knows bytes, not transactions: deletes, snapshots and indexes across segments live elsewhere.
//! The format is described in `docs/FORMAT.md`, chapter "Segment file"; how one block is encoded is
//! `nacre-column`'s to know.

mod bounds;
mod builder;
mod cache;
mod column;
mod even;
mod filter;
mod footer;
mod index_order;
mod key_order;
mod row;
mod search;
mod segment;
mod verify;

#[cfg(test)]
mod tests;

pub use builder::{SegmentBuilder, SegmentWriter};
pub use cache::BlockCache;
pub use column::{ColumnMeta, ColumnSpec, Zone};
pub use index_order::IndexOrder;
pub use segment::Segment;
