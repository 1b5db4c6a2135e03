//! `RETURNING`: evaluates expressions over written or deleted rows.

use nacre_column::Batch;
use nacre_operator::{Context, evaluate};
use nacre_sql::Expr;
use nacre_types::Result;
use std::sync::Arc;

/// Computes the expressions over the collected rows: each row, followed by other columns its
/// expressions read.
pub(crate) fn project(rows: &[Batch], exprs: &[Expr], context: &Context<'_>) -> Result<Vec<Batch>> {
    let project = |batch: &Batch| {
        let columns = exprs.iter().map(|e| Ok(Arc::new(evaluate(e, batch, context)?)));
        Ok(Batch::new(columns.collect::<Result<_>>()?, batch.rows))
    };
    rows.iter().filter(|batch| batch.rows > 0).map(project).collect()
}
