//! Computed columns.

use super::protocol::Operator;
use crate::context::Context;
use crate::expr;
use nacre_column::Batch;
use nacre_sql::expr::Expr;
use nacre_types::Result;

/// One column for each expression.
pub struct Project {
    input: Box<dyn Operator>,
    exprs: Vec<Expr>,
}

impl Project {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>, exprs: Vec<Expr>) -> Project {
        Project { input, exprs }
    }
}

impl Operator for Project {
    fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let Some(batch) = self.input.next(context)? else { return Ok(None) };
        context.check_cancelled()?;
        let columns = self
            .exprs
            .iter()
            .map(|e| expr::evaluate_shared(e, &batch, context))
            .collect::<Result<Vec<_>>>()?;
        Ok(Some(Batch { columns, rows: batch.rows, selection: batch.selection }))
    }
}
