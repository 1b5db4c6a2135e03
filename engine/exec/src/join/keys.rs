//! Keys of joins: their types, their values, and where one of them is null.

use crate::context::Context;
use crate::expr::{self, ActiveRows};
use nacre_column::{Batch, Vector};
use nacre_sql::expr::Expr;
use nacre_types::{DataType, PhysicalType, Result};
use std::sync::Arc;

/// The type keys of both sides are grouped as; narrow packing needs the exact type.
pub(super) fn key_type(left: DataType, right: DataType) -> DataType {
    if left == right || left.physical() != PhysicalType::I64 { right } else { DataType::Int64 }
}

/// The keys of a batch.
pub(crate) fn evaluate_all(
    exprs: &[Expr],
    batch: &Batch,
    context: &Context<'_>,
) -> Result<Vec<Arc<Vector>>> {
    exprs.iter().map(|e| expr::evaluate_shared(e, batch, context)).collect()
}

/// The rows where no key is null; `None` when that is all of them.
pub(crate) fn without_nulls(keys: &[Arc<Vector>], rows: ActiveRows<'_>) -> Option<Vec<u32>> {
    let nullable: Vec<_> = keys.iter().filter_map(|k| k.validity()).collect();
    if nullable.is_empty() {
        return None;
    }
    Some(
        rows.iter()
            .filter(|row| nullable.iter().all(|v| v.get(*row)))
            .map(|row| row as u32)
            .collect(),
    )
}
