//! The rows of an `INSERT` of many rows. They are written to segments while its source is read, and
//! then published as a load of their own, or added to the transaction.
//!
//! As a load of its own, the statement decides about duplicate keys at the moment of its commit. In a
//! transaction, the rows of the table that are in the way are looked up in its snapshot.

use super::changed_rows::delete;
use super::repeated::repeated;
use super::target_rows::TargetRows;
use crate::execution::Execution;
use crate::time_slices::Waits;
use nacre_column::Batch;
use nacre_operator::{Context, Reservation};
use nacre_sql::Plan;
use nacre_table::{BulkLoad, LoadStep, OnDuplicate, RowLocator, Table, Transaction};
use nacre_types::hash::Set;
use nacre_types::{Error, Reason, Result, invariant};
use std::sync::Arc;

/// An `INSERT` of many rows under way. Nothing is changed before [`Load::finish`].
pub(super) struct Load {
    load: Box<BulkLoad>,
    on_duplicate: OnDuplicate,
    /// Whether it is the whole transaction.
    is_direct: bool,
    /// Rows added, skipped ones included.
    rows: u64,
    /// Rows of the table that are replaced in the transaction.
    replaced: TargetRows,
    /// Those of them that are in memory.
    in_memory: Set<RowLocator>,
    held: Reservation,
}

impl Load {
    /// Starts to load the rows of `source`.
    pub fn new(
        target: &Arc<Table>,
        on_duplicate: OnDuplicate,
        source: &Plan,
        execution: &Execution<'_>,
    ) -> Load {
        debug_assert!(!target.is_temporary(), "a table without segments is loaded");
        // A row that the statement read must not change before it is replaced.
        let may_be_direct = on_duplicate != OnDuplicate::Replace || !reads(source, target);
        Load {
            load: Box::new(execution.store().bulk_load(target, on_duplicate)),
            on_duplicate,
            is_direct: may_be_direct
                && execution.load_end().is_some()
                && !target.schema().has_references(),
            rows: 0,
            replaced: TargetRows::default(),
            in_memory: Set::default(),
            held: Reservation::default(),
        }
    }

    /// Adds rows that are complete. Writes segments that are full before.
    pub async fn append(
        &mut self,
        rows: &Batch,
        (context, execution): (&Context<'_>, &Execution<'_>),
        waits: &mut Waits<'_>,
    ) -> Result<()> {
        execution.steps(|| self.load.write(false)).await?;
        self.rows += rows.rows as u64;
        if self.is_direct || self.on_duplicate == OnDuplicate::Error {
            return self.load.append(rows);
        }
        let target = self.load.table().clone();
        target.check_batch(rows)?;
        let mut chosen: Vec<u32> = Vec::with_capacity(rows.rows);
        for row in 0..rows.rows {
            let values = rows.row(row);
            let met = waits.call(|| context.transaction.conflicting(&target, &values)).await?;
            if self.on_duplicate == OnDuplicate::Replace {
                met.into_iter().try_for_each(|locator| self.replace(locator, context))?;
            } else if !met.is_empty() {
                continue;
            }
            chosen.push(row as u32);
        }
        let bytes = self.in_memory.len() * size_of::<RowLocator>() * 2;
        context.reserve(&mut self.held, "the statement's rows", bytes)?;
        match chosen.len() {
            0 => Ok(()),
            all if all == rows.rows => self.load.append(rows),
            _ => self.load.append(&Batch { selection: Some(chosen), ..rows.clone() }.compact()),
        }
    }

    fn replace(&mut self, locator: RowLocator, context: &Context<'_>) -> Result<()> {
        debug_assert!(self.on_duplicate == OnDuplicate::Replace, "a load replaces {locator:?}");
        let in_memory = matches!(locator, RowLocator::Memory { .. });
        if in_memory && !self.in_memory.insert(locator.clone()) {
            return Ok(());
        }
        self.replaced.add([locator], context)
    }

    /// Publishes the rows, or adds them to the transaction. Returns how many rows were written, those
    /// that gave way to later ones included.
    pub async fn finish(
        self,
        transaction: &mut Transaction,
        execution: &Execution<'_>,
    ) -> Result<u64> {
        let Load { mut load, on_duplicate, is_direct, rows, replaced, .. } = self;
        execution.steps(|| load.write(true)).await?;
        let written = match execution.load_end().filter(|_| is_direct) {
            Some(end) => end.finish(load).await?,
            None => {
                if replaced.len() > 0 {
                    let table = load.table().schema().clone();
                    delete(transaction, &table, &replaced, execution).await?;
                }
                add(transaction, load, on_duplicate, execution).await?
            }
        };
        invariant!(written <= rows, "{written} of {rows} rows are loaded");
        Ok(if on_duplicate == OnDuplicate::Replace { rows } else { written })
    }
}

/// Adds rows to a transaction, which has deleted those that they replace. Returns their number.
pub(super) async fn add(
    transaction: &mut Transaction,
    mut load: Box<BulkLoad>,
    on_duplicate: OnDuplicate,
    execution: &Execution<'_>,
) -> Result<u64> {
    let table = load.table().clone();
    execution.steps(|| load.complete()).await?;
    let mut update = load.into_update()?;
    if update.rows() == 0 {
        return Ok(0);
    }
    match repeated(transaction, execution, |transaction| transaction.reserve_keys(&mut update))
        .await
    {
        // No row that the transaction sees is in the way.
        Err(error)
            if on_duplicate != OnDuplicate::Error
                && error.reason() == Some(Reason::DuplicateKey) =>
        {
            let message = format!(
                "a row of table {} was inserted by another transaction",
                table.schema().name
            );
            Err(Error::conflict(message).with_hint("retry the transaction"))
        }
        Err(error) => Err(error),
        Ok(()) => Ok(transaction.add_updated(update)),
    }
}

/// Publishes a load whose rows nothing else can lock.
pub(super) async fn finish(load: &mut BulkLoad, execution: &Execution<'_>) -> Result<u64> {
    let mut waits = execution.waits();
    loop {
        execution.end_step().await?;
        match waits.call(|| load.step()).await? {
            LoadStep::More => {}
            LoadStep::Done(rows) => return Ok(rows),
            LoadStep::Blocked(_) => invariant!(false, "a row of a new table is locked"),
        }
    }
}

/// Whether a plan reads a table.
fn reads(plan: &Plan, table: &Table) -> bool {
    plan.any_node(
        &mut |node| matches!(node, Plan::Scan { table: read, .. } if read.id == table.schema().id),
    )
}
