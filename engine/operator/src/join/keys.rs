//! Keys of joins: their types, their values, and where one of them is null.

use crate::context::Context;
use crate::expr::{self, ActiveRows};
use nacre_column::{Batch, Vector};
use nacre_sql::expr::Expr;
use nacre_types::{DataType, PhysicalType, Result};
use std::sync::Arc;

/// The type as which the keys of both sides are grouped; narrow packing needs the exact type.
pub(super) fn key_type(left: DataType, right: DataType) -> DataType {
    if left == right || left.physical() != PhysicalType::I64 { right } else { DataType::Int64 }
}

/// The values of expressions over a batch.
pub(super) fn evaluate_all(
    exprs: &[Expr],
    batch: &Batch,
    context: &Context<'_>,
) -> Result<Vec<Arc<Vector>>> {
    exprs.iter().map(|e| expr::evaluate_shared(e, batch, context)).collect()
}

/// The rows where no key is null; `None` when that is all of them.
pub(super) fn without_nulls(keys: &[Arc<Vector>], rows: ActiveRows<'_>) -> Option<Vec<u32>> {
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
