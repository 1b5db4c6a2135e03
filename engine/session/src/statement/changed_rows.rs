//! Rows that a statement changes by what they match in other tables: their matches, and their deletion.

use super::held::{HeldRows, LocatedRows};
use super::plan::collect;
use super::repeated::repeated;
use super::target_rows::TargetRows;
use super::update::MOVED_TOGETHER;
use crate::execution::Execution;
use crate::time_slices::Waits;
use nacre_column::{Batch, Values, Vector};
use nacre_operator::{Context, Reservation, SuppliedRows};
use nacre_sql::Plan;
use nacre_table::{RowLocator, Transaction};
use nacre_types::{DataType, Result, TableSchema, invariant};
use std::sync::Arc;

/// Deletes rows: many in segments by a bit each, others one by one.
pub(crate) async fn delete(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    targets: &TargetRows,
    execution: &Execution<'_>,
) -> Result<u64> {
    let target = transaction.table_of(table)?;
    let is_bulk = targets.len() >= execution.store().bulk_rows() as u64;
    let all: Vec<RowLocator>;
    let locators = match is_bulk {
        true => targets.memory(),
        false => {
            all = targets.locators().collect();
            &all
        }
    };
    let mut affected = 0;
    for locators in locators.chunks(MOVED_TOGETHER) {
        execution.end_step().await?;
        affected +=
            repeated(transaction, execution, |transaction| transaction.delete(&target, locators))
                .await?;
    }
    for ((partition, segment), rows) in targets.segments().filter(|_| is_bulk) {
        execution.end_step().await?;
        affected += repeated(transaction, execution, |transaction| {
            transaction.delete_together(&target, partition, segment, rows)
        })
        .await?;
    }
    invariant!(affected == targets.len(), "{affected} of {} rows are deleted", targets.len());
    Ok(affected)
}

/// The rows of `matches`, a plan over the found rows followed by their numbers from zero.
pub(super) async fn matches_of(
    found: &[LocatedRows],
    id: u32,
    matches: &Plan,
    context: &Context<'_>,
    waits: Waits<'_>,
) -> Result<HeldRows> {
    let mut batches = Vec::with_capacity(found.len());
    let mut next = 0i64;
    for LocatedRows { rows: batch, .. } in found {
        let rows = batch.rows as i64;
        let numbers = Values::I64((next..next + rows).collect());
        next += rows;
        let mut columns = batch.columns.clone();
        columns.push(Arc::new(Vector::new(DataType::Int64, numbers, None)));
        batches.push(Batch::new(columns, batch.rows));
    }
    let mut held = Reservation::default();
    // The other columns are those of the found rows, which are counted.
    context.reserve(&mut held, "the statement's rows", next as usize * size_of::<i64>())?;
    let given = SuppliedRows { id, batches: &batches, others: None };
    let mut inner = *context;
    inner.supplied = Some(&given);
    collect(matches, &inner, waits).await
}
