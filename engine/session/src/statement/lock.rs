//! `SELECT … FOR UPDATE`: locks rows, and returns what the query says of them.

use super::changed_rows::matches_of;
use super::plan::{find_targets, locate, query};
use super::repeated::repeated;
use super::update::MOVED_TOGETHER;
use crate::execution::Execution;
use crate::result::{ResultKind, StatementResult};
use nacre_column::{Batch, Values};
use nacre_operator::row_count;
use nacre_sql::{IfLocked, LockedRows, Plan};
use nacre_table::{RowLocator, Table, Transaction};
use nacre_types::{Error, ErrorKind, Result, TableSchema};
use std::sync::Arc;

/// Runs the statement. `input` finds rows of the table.
pub(super) async fn run(
    transaction: &mut Transaction,
    (table, input): (&Arc<TableSchema>, &Plan),
    rows: &LockedRows,
    if_locked: IfLocked,
    execution: &Execution<'_>,
) -> Result<StatementResult> {
    match rows {
        LockedRows::All(output) => {
            let targets = {
                let context = execution.context(transaction);
                find_targets(input, &context, execution.waits(), None).await?
            };
            let target = transaction.table_of(table)?;
            let mut locators = targets.locators();
            loop {
                let some: Vec<RowLocator> = locators.by_ref().take(MOVED_TOGETHER).collect();
                if some.is_empty() {
                    break;
                }
                lock(transaction, &target, &some, if_locked, execution).await?;
            }
            // A row's lock is granted only if the snapshot has its newest version, so the query
            // sees that version.
            query(output, &execution.context(transaction), execution.waits()).await
        }
        LockedRows::First { rows, plan, fields, offset, limit } => {
            let (found, sorted, mut skip, mut pass) = {
                let context = execution.context(transaction);
                let found = locate(input, &context, execution.waits()).await?;
                let sorted = matches_of(&found, *rows, plan, &context, execution.waits()).await?;
                let skip = row_count(offset, 0, "OFFSET", &context)?;
                (found, sorted, skip, row_count(limit, u64::MAX, "LIMIT", &context)?)
            };
            let locators: Vec<&RowLocator> =
                found.iter().flat_map(|found| &found.locators).collect();
            let target = transaction.table_of(table)?;
            // What fails for other reasons than the rows fails now.
            transaction.lock(&target, &[])?;
            let mut batches = Vec::new();
            for batch in sorted.iter() {
                let numbers = numbers_of(batch);
                let mut returned = Vec::new();
                let mut at = 0;
                while at < numbers.len() && pass > 0 {
                    let wanted = skip.saturating_add(pass).min(MOVED_TOGETHER as u64) as usize;
                    let end = numbers.len().min(at + wanted);
                    let some: Vec<RowLocator> = numbers[at..end]
                        .iter()
                        .map(|number| locators[*number as usize].clone())
                        .collect();
                    let locked = lock(transaction, &target, &some, if_locked, execution).await?;
                    for (row, _) in (at..end).zip(locked).filter(|(_, is_locked)| *is_locked) {
                        if skip > 0 {
                            skip -= 1;
                        } else {
                            returned.push(row as u32);
                            pass -= 1;
                        }
                    }
                    at = end;
                }
                if returned.is_empty() {
                    continue;
                }
                let columns = batch.columns[..fields.len()].to_vec();
                let selection = Some(returned);
                batches.push(Batch { selection, ..Batch::new(columns, batch.rows) }.compact());
            }
            let columns = fields.clone();
            Ok(StatementResult { columns, batches, ..StatementResult::new(ResultKind::Query) })
        }
    }
}

/// The numbers of the rows, which are the last column.
fn numbers_of(batch: &Batch) -> Vec<i64> {
    let column = batch.columns.last().map(|column| column.flat());
    match column.as_deref() {
        Some(Values::I64(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}

/// Locks rows, together if that is possible; returns which are locked, where others may be skipped.
async fn lock(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    rows: &[RowLocator],
    if_locked: IfLocked,
    execution: &Execution<'_>,
) -> Result<Vec<bool>> {
    let (mut locked, mut together) = (Vec::with_capacity(rows.len()), rows.len());
    while locked.len() < rows.len() {
        let savepoint = transaction.savepoint();
        let some = &rows[locked.len()..][..together];
        match repeated(transaction, execution, |transaction| transaction.lock(table, some)).await {
            Ok(()) => locked.resize(locked.len() + together, true),
            Err(error) if if_locked == IfLocked::Skip && is_taken(&error) => {
                // Before that, so that those are told who wait for what is given back.
                transaction.take_blocker();
                transaction.rollback_to(savepoint);
                if together == 1 {
                    locked.push(false);
                }
                together = 1;
            }
            Err(error) => return Err(error),
        }
    }
    execution.end_step().await?;
    Ok(locked)
}

/// Whether an error says that others have locked a row, or changed it since the snapshot.
fn is_taken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::LockTimeout | ErrorKind::Conflict)
}
