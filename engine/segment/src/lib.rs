//! The immutable columnar file: its reader and the cache of its blocks. `nacre-format` has its layout and its writer.
//!
//! Handles bytes, not transactions: deletes, snapshots and indexes across segments live elsewhere.
//! `docs/FORMAT.md`, chapter "Segment file", describes the format; `nacre-column` encodes blocks.

mod read;
mod sync;

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests;

pub use nacre_format::column::{ColumnMeta, ColumnSpec, PathMeta, Zone};
pub use nacre_format::identity::{BoundsOfColumns, ColumnBounds, Identity, Known, OrderBounds};
pub use nacre_format::write::{IndexOrder, SegmentBuilder, SegmentWriter};
pub use read::{
    BlockCache, CheckColumns, Columns, FileSource, PathForm, PathNeed, PathPart, PathPlace,
    PathRows, PathStep, ResidentBytes, Segment, Span,
};
