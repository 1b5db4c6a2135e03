//! Rows that a plan reads but does not compute: see [`SuppliedRows`](crate::context::supplied).

use super::protocol::Operator;
use crate::context::Context;
use nacre_column::Batch;
use nacre_types::{Error, Result};

/// Returns the supplied rows with one number.
pub struct SuppliedScan {
    id: u32,
    at: usize,
}

impl SuppliedScan {
    /// The rows with this number.
    pub fn new(id: u32) -> SuppliedScan {
        SuppliedScan { id, at: 0 }
    }
}

impl Operator for SuppliedScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.check_cancelled()?;
        let Some(batches) = context.supplied.and_then(|rows| rows.find(self.id)) else {
            return Err(Error::unsupported("a reference to a recursive WITH in this position"));
        };
        let Some(batch) = batches.get(self.at) else { return Ok(None) };
        debug_assert!(batch.selection.is_none(), "supplied rows have no selection");
        self.at += 1;
        Ok(Some(batch.clone()))
    }
}
