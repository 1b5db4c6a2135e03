//! The immutable columnar file: its writer, its reader and the cache of its blocks.
//!
//! Handles bytes, not transactions: deletes, snapshots and indexes across segments live elsewhere.
//! `docs/FORMAT.md`, chapter "Segment file", describes the format; `nacre-column` encodes blocks.

mod column;
mod document;
mod filter;
mod footer;
mod identity;
mod outline;
mod read;
mod sync;
mod write;

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

pub use column::{ColumnMeta, ColumnSpec, PathMeta, Zone};
pub use identity::{BoundsOfColumns, ColumnBounds, Identity, Known, OrderBounds};
pub use read::{
    BlockCache, CheckColumns, Columns, FileSource, PathForm, PathNeed, PathPart, PathPlace,
    PathRows, PathStep, ResidentBytes, Segment, Span,
};
pub use write::{IndexOrder, SegmentBuilder, SegmentWriter};
