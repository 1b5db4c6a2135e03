//! The rows that indexes found for a scan.

use crate::scan::morsel::Morsel;
use nacre_column::Batch;
use nacre_table::{RowLocator, SegmentView};

/// The rows that indexes found for a scan.
pub(in crate::scan) struct Found {
    /// Rows of segments, ascending.
    pub segments: Vec<(SegmentView, Vec<u32>)>,
    /// Rows in memory with their locators, in scan order.
    pub memory: Vec<(Batch, Vec<RowLocator>)>,
}

impl Found {
    /// Divides them into morsels of at most `rows` rows, in scan order.
    pub fn morsels(self, rows: usize) -> Vec<Morsel> {
        let mut morsels = Vec::new();
        for (view, found) in self.segments {
            let cut = found.chunks(rows.max(1));
            morsels
                .extend(cut.map(|rows| Morsel::Rows { view: view.clone(), rows: rows.to_vec() }));
        }
        if !self.memory.is_empty() {
            morsels.push(Morsel::Batches(self.memory));
        }
        morsels
    }
}
