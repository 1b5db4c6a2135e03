//! Runs a plan to its end: returns its rows, or the locators of target rows.

use super::held::{HeldRows, HeldTargets, LocatedRows};
use super::target_rows::TargetRows;
use crate::result::{ResultKind, StatementResult};
use crate::time_slices::Waits;
use nacre_exec::{build, build_locating};
use nacre_operator::{Context, LocatedColumns};
use nacre_sql::Plan;
use nacre_types::Result;

/// The result of a query.
pub(crate) async fn query(
    plan: &Plan,
    context: &Context<'_>,
    waits: Waits<'_>,
) -> Result<StatementResult> {
    let batches = collect(plan, context, waits).await?.take();
    let columns = plan.fields();
    Ok(StatementResult { columns, batches, ..StatementResult::new(ResultKind::Query) })
}

/// All rows of a plan.
pub(crate) async fn collect(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
) -> Result<HeldRows> {
    context.memory.share_among(plan, 1);
    let mut operator = waits.call(|| build(plan, context)).await?;
    let mut rows = HeldRows::default();
    while let Some(batch) = waits.next(&mut *operator, context).await? {
        rows.push(batch.compact(), "the result", context)?;
    }
    Ok(rows)
}

/// All rows of a target table that a plan yields.
pub(crate) async fn locate(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
) -> Result<HeldTargets> {
    let mut operator = waits.call(|| build_locating(plan, LocatedColumns::All, context)).await?;
    let mut found = HeldTargets::default();
    while let Some((rows, locators)) = waits.next_located(&mut *operator, context).await? {
        found.push(LocatedRows { rows, locators }, context)?;
    }
    Ok(found)
}

/// The rows that a statement is about to delete. Collects their values in `returned` if set.
pub(super) async fn find_targets(
    plan: &Plan,
    context: &Context<'_>,
    mut waits: Waits<'_>,
    mut returned: Option<&mut HeldRows>,
) -> Result<TargetRows> {
    let rows = if returned.is_some() { LocatedColumns::All } else { LocatedColumns::None };
    let mut operator = waits.call(|| build_locating(plan, rows, context)).await?;
    let mut targets = TargetRows::default();
    while let Some((rows, locators)) = waits.next_located(&mut *operator, context).await? {
        debug_assert!(rows.rows == locators.len(), "{} rows, {} places", rows.rows, locators.len());
        targets.add(locators, context)?;
        if let Some(returned) = &mut returned {
            returned.push(rows, "the returned rows", context)?;
        }
    }
    Ok(targets)
}
