//! The operators that are not scans: each pulls from its children and answers batches.

mod limit;
mod limit_by;
mod recursive;
mod row;
mod set_operation;
mod shared;
mod supplied;
#[cfg(test)]
mod tests;

pub(crate) use limit::{Limit, wanted};
pub(crate) use limit_by::LimitBy;
pub(crate) use recursive::Recursive;
pub(crate) use row::{Filter, Project, Values};
pub(crate) use set_operation::{SetOperation, Union};
pub(crate) use shared::{Buffer, SharedScan};
pub(crate) use supplied::SuppliedScan;

use nacre_column::Batch;

/// The same rows, without carrying along many that do not count.
pub(crate) fn settle(mut batch: Batch) -> Batch {
    match &batch.selection {
        Some(selection) if selection.len() == batch.rows => {
            batch.selection = None;
            batch
        }
        Some(selection) if selection.len() * 8 < batch.rows => batch.compact(),
        _ => batch,
    }
}
