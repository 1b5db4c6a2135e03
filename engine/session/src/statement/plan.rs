//! Runs a plan to its end: returns its rows, or the locators of target rows.

use super::returning::Returned;
use super::target_rows::TargetRows;
use crate::result::{ResultKind, StatementResult};
use nacre_column::Batch;
use nacre_exec::{Context, Reservation, build, build_locating};
use nacre_sql::Plan;
use nacre_table::RowLocator;
use nacre_types::Result;

/// Rows of a target table with their locators.
pub(crate) struct LocatedRows {
    pub rows: Batch,
    pub locators: Vec<RowLocator>,
}

/// The result of a query.
pub(crate) fn query(plan: &Plan, context: &Context<'_>) -> Result<StatementResult> {
    let batches = collect(plan, context)?;
    let columns = plan.fields();
    Ok(StatementResult { columns, batches, ..StatementResult::new(ResultKind::Query) })
}

/// All rows of a plan.
pub(crate) fn collect(plan: &Plan, context: &Context<'_>) -> Result<Vec<Batch>> {
    context.memory.share_among(plan, 1);
    let mut waits = context.fetch_waits();
    let mut operator = waits.call(|| build(plan, context))?;
    let mut batches = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some(batch) = waits.call(|| operator.next(context))? {
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
pub(crate) fn locate(plan: &Plan, context: &Context<'_>) -> Result<Vec<LocatedRows>> {
    let mut waits = context.fetch_waits();
    let mut operator = waits.call(|| build_locating(plan, context))?;
    let mut found: Vec<LocatedRows> = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some((rows, locators)) = waits.call(|| operator.next(context))? {
        debug_assert!(rows.rows == locators.len(), "{} rows, {} places", rows.rows, locators.len());
        bytes += rows.memory_bytes(found.last().map(|found| &found.rows));
        bytes += locators.len() * LOCATOR_BYTES;
        context.reserve(&mut held, "the statement's rows", bytes)?;
        found.push(LocatedRows { rows, locators });
    }
    Ok(found)
}

/// The rows that a statement is about to delete. Collects their values in `returned` if set.
pub(super) fn find_targets(
    plan: &Plan,
    context: &Context<'_>,
    mut returned: Option<&mut Returned>,
) -> Result<TargetRows> {
    let mut waits = context.fetch_waits();
    let mut operator = waits.call(|| build_locating(plan, context))?;
    let mut targets = TargetRows::default();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some((rows, locators)) = waits.call(|| operator.next(context))? {
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
