//! `INSERT`: few rows go into the rowstore, under locks; many go directly into segments, as a bulk
//! load or, in a transaction with other changes, as a part of it.

use super::repeated::repeated;
use super::returning::Returned;
use super::row_types::in_table_types;
use crate::execution::{Execution, InsertPath};
use nacre_column::Batch;
use nacre_exec::{Reservation, build};
use nacre_sql::Plan;
use nacre_table::{BulkLoad, BulkUpdate, LoadStep, OnDuplicate, Table, Transaction};
use nacre_types::{Result, TableSchema};
use std::sync::Arc;

/// An `INSERT` of at least this many rows writes segments instead of the rowstore.
const DIRECT_ROWS: usize = 1 << 16;

/// Inserts the rows of `source` and returns their number. Collects the rows in `returned` if set.
pub(crate) async fn run(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    source: &Plan,
    execution: &Execution<'_>,
    returned: Option<&mut Returned>,
) -> Result<u64> {
    let target = transaction.table_of(table)?;
    let direct = execution.insert_path() == InsertPath::Direct;
    // Temporary tables have no segments.
    let is_bulk = returned.is_none() && !target.is_temporary();
    let context = execution.context(transaction);
    let mut waits = execution.waits();
    let mut operator = waits.build(|| build(source, &context))?;
    let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0usize);
    let mut held = Reservation::default();
    let mut load: Option<Load> = None;
    while let Some(batch) = waits.next(&mut *operator, &context).await? {
        let batch = target.complete(in_table_types(&batch.compact(), table))?;
        rows += batch.rows;
        bytes += batch.memory_bytes(batches.last());
        batches.push(batch);
        if is_bulk && rows >= DIRECT_ROWS {
            let begin = || match direct {
                true => {
                    Load::Direct(Box::new(execution.store().bulk_load(&target, OnDuplicate::Error)))
                }
                false => {
                    Load::Own(Box::new(execution.store().bulk_update(transaction, &target, true)))
                }
            };
            let load = load.get_or_insert_with(begin);
            batches.drain(..).try_for_each(|batch| load.append(&batch))?;
            bytes = 0;
        }
        context.reserve(&mut held, "the statement's rows", bytes)?;
    }
    drop((operator, waits));
    match load {
        Some(Load::Direct(load)) => {
            return finish(*load, transaction, execution).await;
        }
        Some(Load::Own(mut rows)) => {
            rows.complete()?;
            repeated(transaction, |transaction| transaction.reserve_keys(&mut rows))?;
            return Ok(transaction.add_updated(*rows));
        }
        None => {}
    }
    let affected = one_by_one(transaction, &target, &batches, execution).await?;
    if let Some(returned) = returned {
        *returned = batches;
    }
    Ok(affected)
}

/// Inserts rows that are complete, and that belong to a statement which changes others.
pub(super) async fn beside(
    transaction: &mut Transaction,
    target: &Arc<Table>,
    batches: &[Batch],
    execution: &Execution<'_>,
) -> Result<u64> {
    let rows: usize = batches.iter().map(|batch| batch.rows).sum();
    if rows < DIRECT_ROWS || target.is_temporary() {
        return one_by_one(transaction, target, batches, execution).await;
    }
    let mut update = execution.store().bulk_update(transaction, target, true);
    batches.iter().try_for_each(|batch| update.add_new(batch))?;
    update.complete()?;
    repeated(transaction, |transaction| transaction.reserve_keys(&mut update))?;
    Ok(transaction.add_updated(update))
}

/// Inserts rows under locks.
async fn one_by_one(
    transaction: &mut Transaction,
    target: &Arc<Table>,
    batches: &[Batch],
    execution: &Execution<'_>,
) -> Result<u64> {
    let mut affected = 0;
    for batch in batches {
        affected += repeated(transaction, |transaction| transaction.insert(target, batch))?;
        execution.end_step().await?;
    }
    Ok(affected)
}

/// An `INSERT` of many rows.
enum Load {
    /// It is the whole transaction, and has met no conflict yet.
    Direct(Box<BulkLoad>),
    /// Its rows become visible with the other changes of its transaction.
    Own(Box<BulkUpdate>),
}

impl Load {
    fn append(&mut self, rows: &Batch) -> Result<()> {
        match self {
            Load::Direct(load) => load.append(rows),
            Load::Own(update) => update.add_new(rows),
        }
    }
}

/// Publishes a load. A row lock that it meets is waited for as one of the transaction.
pub(super) async fn finish(
    mut load: BulkLoad,
    transaction: &mut Transaction,
    execution: &Execution<'_>,
) -> Result<u64> {
    loop {
        execution.end_step().await?;
        match load.step()? {
            LoadStep::More => {}
            LoadStep::Blocked(blocker) => {
                return Err(transaction.blocked_by(load.table(), blocker));
            }
            LoadStep::Done(rows) => return Ok(rows),
        }
    }
}
