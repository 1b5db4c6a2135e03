//! Morsels: the units of work of a parallel scan.

use super::filter::adaptive::learned::Learned;
use nacre_column::Batch;
use nacre_table::{RowLocator, SegmentView, TableView};
use std::sync::Arc;

/// A part of a scan's input.
pub(crate) enum Morsel {
    /// Blocks of a segment, ascending.
    Blocks { view: SegmentView, blocks: Vec<usize>, learned: Arc<Learned> },
    /// The rowstores of a view.
    Memory(TableView),
    /// Rows of a segment that indexes found, ascending.
    Rows { view: SegmentView, rows: Vec<u32> },
    /// Rows in memory that indexes found.
    Batches(Vec<(Batch, Vec<RowLocator>)>),
}

impl Morsel {
    /// Keeps the first `at` blocks and returns the others, if there are any.
    pub fn split_off(&mut self, at: usize) -> Option<Morsel> {
        debug_assert!(at > 0, "a morsel keeps at least one block");
        match self {
            Morsel::Blocks { view, blocks, learned } if blocks.len() > at => {
                let (view, learned) = (view.clone(), learned.clone());
                Some(Morsel::Blocks { view, blocks: blocks.split_off(at), learned })
            }
            _ => None,
        }
    }
}
