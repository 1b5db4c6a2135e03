//! Batches of which few rows are selected.

use nacre_column::Batch;

/// A batch of which fewer rows than one in this many are selected is copied.
const SPARSE: usize = 8;

/// The selected rows, compacted when carrying the others along would cost more than copying.
pub(crate) fn settle(mut batch: Batch) -> Batch {
    match &batch.selection {
        Some(selection) if selection.len() == batch.rows => {
            batch.selection = None;
            batch
        }
        Some(selection) if selection.len() * SPARSE < batch.rows => batch.compact(),
        _ => batch,
    }
}
