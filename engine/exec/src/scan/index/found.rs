//! What indexes found for a scan.

use nacre_column::Batch;
use nacre_table::{RowLocator, SegmentView};

/// What indexes found for a scan.
pub(in crate::scan) struct Found {
    /// Segments of which too many rows were found: they are scanned, in scan order.
    pub scanned: Vec<SegmentView>,
    /// Rows of segments, ascending.
    pub segments: Vec<(SegmentView, Vec<u32>)>,
    /// Rows in memory with their locators, in scan order; `None` if memory is scanned.
    pub memory: Option<Vec<(Batch, Vec<RowLocator>)>>,
}
