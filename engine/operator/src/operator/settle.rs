//! Compacts batches in which few rows are selected.

use nacre_column::Batch;

/// A batch is copied if fewer than one row in this many is selected.
const SPARSE: usize = 8;

/// The selected rows, compacted if that costs less than carrying the others along.
pub fn settle(mut batch: Batch) -> Batch {
    match &batch.selection {
        Some(selection) if selection.len() == batch.rows => {
            batch.selection = None;
            batch
        }
        Some(selection) if selection.len() * SPARSE < batch.rows => batch.compact(),
        _ => batch,
    }
}
