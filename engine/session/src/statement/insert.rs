//! `INSERT`: few rows go into the rowstore, under locks; many go directly into segments, as a bulk
//! load.

use super::repeated::repeated;
use super::returning::Returned;
use super::row_types::in_table_types;
use crate::execution::{Execution, InsertPath};
use nacre_exec::{Reservation, build};
use nacre_sql::Plan;
use nacre_table::{BulkLoad, LoadStep, OnDuplicate, Transaction};
use nacre_types::{Result, TableSchema};
use std::sync::Arc;

/// An autocommit `INSERT` of at least this many rows writes segments instead of the rowstore.
const DIRECT_ROWS: usize = 1 << 16;

/// Inserts the rows of `source` and returns their number. Collects the rows in `returned` if set.
pub(crate) fn run(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    source: &Plan,
    execution: &Execution<'_>,
    returned: Option<&mut Returned>,
) -> Result<u64> {
    let direct = execution.insert_path() == InsertPath::Direct && returned.is_none();
    let target = transaction.table_of(table)?;
    let context = execution.context(transaction);
    let mut waits = context.fetch_waits();
    let mut operator = waits.call(|| build(source, &context))?;
    let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0usize);
    let mut held = Reservation::default();
    let mut load = None;
    while let Some(batch) = waits.call(|| operator.next(&context))? {
        let batch = in_table_types(&batch.compact(), table);
        rows += batch.rows;
        bytes += batch.memory_bytes(batches.last());
        batches.push(batch);
        if direct && rows >= DIRECT_ROWS {
            let begin = || execution.store().bulk_load(&target, OnDuplicate::Error);
            let load = load.get_or_insert_with(begin);
            batches.drain(..).try_for_each(|batch| load.append(&batch))?;
            bytes = 0;
        }
        context.reserve(&mut held, "the statement's rows", bytes)?;
    }
    drop((operator, waits));
    if let Some(load) = load {
        return finish(load, transaction, execution);
    }
    let mut affected = 0;
    for batch in &batches {
        affected += repeated(transaction, |transaction| transaction.insert(&target, batch))?;
    }
    if let Some(returned) = returned {
        *returned = batches;
    }
    Ok(affected)
}

/// Publishes a load. A row lock that it meets is waited for as one of the transaction.
pub(super) fn finish(
    mut load: BulkLoad,
    transaction: &mut Transaction,
    execution: &Execution<'_>,
) -> Result<u64> {
    loop {
        execution.check_cancelled()?;
        match load.step()? {
            LoadStep::More => {}
            LoadStep::Blocked(blocker) => {
                return Err(transaction.blocked_by(load.table(), blocker));
            }
            LoadStep::Done(rows) => return Ok(rows),
        }
    }
}
