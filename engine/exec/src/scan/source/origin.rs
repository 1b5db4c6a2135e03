//! Where the rows of a batch are stored.

use nacre_table::{RowLocator, SegmentView};

/// Where the rows of a batch are stored.
pub(in crate::scan) enum Origin {
    /// Vector row `i` is row `start + i` of this segment.
    Segment { view: SegmentView, start: usize },
    /// Vector row `i` is row `rows[i]` of this segment.
    SegmentRows { view: SegmentView, rows: Vec<u32> },
    /// One locator for each vector row, where locators are made.
    Memory(Vec<RowLocator>),
}
