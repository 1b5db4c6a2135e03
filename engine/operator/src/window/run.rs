//! One window call over the sorted rows, and the expressions it evaluates.

use crate::context::Context;
use crate::expr::{self, ActiveRows};
use nacre_column::{Batch, Vector, VectorBuilder};
use nacre_sql::Expr;
use nacre_sql::plan::{SortKey, WindowCall};
use nacre_types::{Error, Reason, Result};
use std::ops::Range;
use std::sync::Arc;

/// Partitions and peers among the sorted rows.
pub(super) struct Places {
    pub partitions: Vec<Range<usize>>,
    /// The peers of each row.
    pub peers: Vec<Range<usize>>,
}

/// A call to compute over all rows.
pub(super) struct Run<'a> {
    pub call: &'a WindowCall,
    pub order: &'a [SortKey],
    pub batch: &'a Batch,
    pub places: &'a Places,
    pub context: &'a Context<'a>,
}

impl Run<'_> {
    pub fn eval(&self, e: &Expr) -> Result<Arc<Vector>> {
        expr::evaluate_shared(e, self.batch, self.context)
    }

    /// Evaluates row by row; null where the result is out of range.
    pub fn eval_row_by_row(&self, e: &Expr) -> Result<Arc<Vector>> {
        let evaluator = expr::Evaluator::new(self.batch, self.context);
        let mut out = VectorBuilder::new(e.data_type);
        for row in 0..self.batch.rows as u32 {
            self.context.check_cancelled()?;
            match evaluator.eval(e, ActiveRows::all(self.batch.rows).narrowed(&[row])) {
                Err(error) if is_beyond(&error) => out.push_null(),
                value => out.push(&value?.value(row as usize)),
            }
        }
        Ok(Arc::new(out.finish()))
    }
}

/// Whether an error reports a value out of its type's range.
pub(super) fn is_beyond(error: &Error) -> bool {
    error.reason() == Some(Reason::OutOfRange)
}
