//! Rows for which a predicate is true.

use super::protocol::Operator;
use super::settle::settle;
use crate::context::Context;
use crate::expr;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_types::Result;

/// Rows for which a predicate is true.
pub struct Filter {
    input: Box<dyn Operator>,
    predicate: [Expr; 1],
}

impl Filter {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>, predicate: Expr) -> Filter {
        Filter { input, predicate: [predicate] }
    }
}

impl Operator for Filter {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        while let Some(mut batch) = self.input.next(context)? {
            context.check_cancelled()?;
            let selection = expr::filter(&self.predicate, &batch, context)?;
            if !selection.is_empty() {
                batch.selection = Some(selection);
                return Ok(Some(settle(batch)));
            }
        }
        Ok(None)
    }
}
