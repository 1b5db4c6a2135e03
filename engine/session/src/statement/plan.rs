//! Runs a plan to its end: returns its rows, or the locators of target rows.

use super::returning::Returned;
use super::target_rows::TargetRows;
use crate::result::{ResultKind, StatementResult};
use crate::time_slices::Waits;
use nacre_column::Batch;
use nacre_exec::{Context, LocatedColumns, Reservation, build, build_locating};
use nacre_sql::Plan;
use nacre_table::RowLocator;
use nacre_types::Result;

/// Rows of a target table with their locators.
pub(crate) struct LocatedRows {
    pub rows: Batch,
    pub locators: Vec<RowLocator>,
}

/// The result of a query.
pub(crate) async fn query(
    plan: &Plan,
    context: &Context<'_>,
    waits: Waits<'_>,
) -> Result<StatementResult> {
    let batches = collect(plan, context, waits).await?;
    let columns = plan.fields();
    Ok(StatementResult { columns, batches, ..StatementResult::new(ResultKind::Query) })
}

/// All rows of a plan.
pub(crate) async fn collect(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
) -> Result<Vec<Batch>> {
    context.memory.share_among(plan, 1);
    let mut operator = waits.build(|| build(plan, context))?;
    let mut batches = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some(batch) = waits.next(&mut *operator, context).await? {
        let batch = batch.compact();
        bytes += batch.memory_bytes(batches.last());
        context.reserve(&mut held, "the result", bytes)?;
        batches.push(batch);
    }
    Ok(batches)
}

/// Estimated bytes of a [`RowLocator`].
const LOCATOR_BYTES: usize = 24;

/// All rows of a target table that a plan yields.
pub(crate) async fn locate(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
) -> Result<Vec<LocatedRows>> {
    let mut operator = waits.build(|| build_locating(plan, LocatedColumns::All, context))?;
    let mut found: Vec<LocatedRows> = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some((rows, locators)) = waits.next_located(&mut *operator, context).await? {
        debug_assert!(rows.rows == locators.len(), "{} rows, {} places", rows.rows, locators.len());
        bytes += rows.memory_bytes(found.last().map(|found| &found.rows));
        bytes += locators.len() * LOCATOR_BYTES;
        context.reserve(&mut held, "the statement's rows", bytes)?;
        found.push(LocatedRows { rows, locators });
    }
    Ok(found)
}

/// The rows that a statement is about to delete. Collects their values in `returned` if set.
pub(super) async fn find_targets(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
    mut returned: Option<&mut Returned>,
) -> Result<TargetRows> {
    let rows = if returned.is_some() { LocatedColumns::All } else { LocatedColumns::None };
    let mut operator = waits.build(|| build_locating(plan, rows, context))?;
    let mut targets = TargetRows::default();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some((rows, locators)) = waits.next_located(&mut *operator, context).await? {
        debug_assert!(rows.rows == locators.len(), "{} rows, {} places", rows.rows, locators.len());
        targets.add(locators);
        if let Some(returned) = &mut returned {
            bytes += rows.memory_bytes(returned.last());
            returned.push(rows);
        }
        context.reserve(&mut held, "the statement's rows", bytes + targets.bytes())?;
    }
    Ok(targets)
}
