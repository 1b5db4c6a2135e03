//! Rows that are given to a plan from outside: see [`SuppliedRows`].

use crate::context::{Context, Operator, SuppliedRows};
use nacre_column::Batch;
use nacre_types::{Error, Result};

/// Passes them on.
pub(crate) struct SuppliedScan {
    id: u32,
    at: usize,
}

impl SuppliedScan {
    pub fn new(id: u32) -> SuppliedScan {
        SuppliedScan { id, at: 0 }
    }
}

impl Operator for SuppliedScan {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        context.check_cancelled()?;
        let mut given: Option<&SuppliedRows<'_>> = context.supplied;
        while let Some(rows) = given {
            if rows.id == self.id {
                let Some(batch) = rows.batches.get(self.at) else { return Ok(None) };
                self.at += 1;
                return Ok(Some(batch.clone()));
            }
            given = rows.others;
        }
        Err(Error::unsupported("rows of a recursive WITH in this place"))
    }
}
