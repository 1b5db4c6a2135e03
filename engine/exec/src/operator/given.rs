//! Rows that are given to a plan from outside: see [`Given`].

use crate::context::{Context, Given, Operator, Step};
use nacre_types::{Error, Result};

/// Passes them on.
pub(crate) struct GivenRows {
    id: u32,
    at: usize,
}

impl GivenRows {
    pub fn new(id: u32) -> GivenRows {
        GivenRows { id, at: 0 }
    }
}

impl Operator for GivenRows {
    fn next(&mut self, context: &Context<'_>) -> Result<Step> {
        context.check_cancelled()?;
        let mut given: Option<&Given<'_>> = context.given;
        while let Some(rows) = given {
            if rows.id == self.id {
                let Some(batch) = rows.batches.get(self.at) else { return Ok(Step::Done) };
                self.at += 1;
                return Ok(Step::Batch(batch.clone()));
            }
            given = rows.others;
        }
        Err(Error::unsupported("rows of a recursive WITH in this place"))
    }
}
