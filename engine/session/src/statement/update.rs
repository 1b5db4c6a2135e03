//! `UPDATE`: rows are changed under locks. Many rows of segments are written to new segments instead,
//! while the statement reads, so that it needs neither their memory nor their log.

use super::held::{HeldRows, LOCATOR_BYTES, LocatedRows};
use super::repeated::repeated;
use super::row_types::in_table_types;
use crate::execution::Execution;
use nacre_column::Batch;
use nacre_exec::build_locating;
use nacre_operator::{LocatedColumns, Reservation, evaluate};
use nacre_sql::{Expr, Plan};
use nacre_table::{BulkUpdate, Rekeyed, RowLocator, Table, Transaction};
use nacre_types::{Result, TableSchema};
use std::sync::Arc;

/// Approximate number of rows that one commit moves out of segments.
pub(super) const MOVED_TOGETHER: usize = 1 << 16;

/// Estimated bytes of a value of a row that gets another key.
const VALUE_BYTES: usize = 48;

/// An `UPDATE` under way. Nothing is changed before [`Update::write`].
pub(crate) struct Update<'a> {
    table: &'a Arc<TableSchema>,
    target: Arc<Table>,
    /// Positions of the columns with new values.
    columns: Vec<usize>,
    execution: &'a Execution<'a>,
    /// Whether a row may get another key, unique value or partition.
    rekeys: bool,
    /// Whether a row may get another unique value.
    changes_unique: bool,
    /// Rows to be changed under locks.
    kept: Vec<LocatedRows>,
    /// How many of those are in segments.
    kept_in_segments: usize,
    bytes: usize,
    held: Reservation,
    /// Rows that are written to new segments.
    bulk: Option<BulkUpdate>,
    /// Rows with other keys, where rows of tables may refer to them.
    rekeyed: Vec<Rekeyed>,
}

impl<'a> Update<'a> {
    /// An update of these columns of a table.
    pub fn new(
        transaction: &Transaction,
        table: &'a Arc<TableSchema>,
        columns: Vec<usize>,
        execution: &'a Execution<'a>,
    ) -> Result<Update<'a>> {
        // Generated columns follow.
        let generated = (0..table.columns.len()).filter(|at| table.columns[*at].is_generated());
        let columns: Vec<usize> = columns.into_iter().chain(generated).collect();
        let target = transaction.table_of(table)?;
        let changes_unique = target.may_change_unique(&columns)?;
        Ok(Update {
            target,
            rekeys: changes_unique || rekeys(table, &columns),
            changes_unique,
            table,
            columns,
            execution,
            kept: Vec::new(),
            kept_in_segments: 0,
            bytes: 0,
            held: Reservation::default(),
            bulk: None,
            rekeyed: Vec::new(),
        })
    }

    /// Adds the rows of `input` with new values. Collects them in `returned` if set.
    pub async fn read(
        &mut self,
        transaction: &Transaction,
        input: &Plan,
        assignments: &[(usize, Expr)],
        mut returned: Option<&mut HeldRows>,
    ) -> Result<()> {
        let context = self.execution.context(transaction);
        let mut waits = self.execution.waits();
        let mut operator =
            waits.call(|| build_locating(input, LocatedColumns::All, &context)).await?;
        while let Some((batch, locators)) = waits.next_located(&mut *operator, &context).await? {
            let mut columns = batch.columns.clone();
            for (position, expr) in assignments {
                columns[*position] = Arc::new(evaluate(expr, &batch, &context)?);
            }
            let rows = in_table_types(&Batch::new(columns, batch.rows), self.table);
            let rows = self.target.complete(rows)?;
            self.note(&batch, &rows);
            if let Some(returned) = &mut returned {
                returned.push(rows.clone(), "the returned rows", &context)?;
            }
            self.add(transaction, LocatedRows { rows, locators }).await?;
        }
        Ok(())
    }

    /// Notes which rows get other keys, if other rows may refer to those. Both have all columns of the table.
    pub fn note(&mut self, old: &Batch, new: &Batch) {
        if !self.rekeys || !self.target.schema().is_referred_to() {
            return;
        }
        let unique: Vec<usize> = self.target.schema().unique_sets(false).flatten().collect();
        for row in 0..new.rows {
            let (old, new) = (old.row(row), new.row(row));
            if unique.iter().any(|at| old[*at] != new[*at]) {
                self.bytes += (old.len() + new.len()) * VALUE_BYTES;
                self.rekeyed.push(Rekeyed { old, new });
            }
        }
    }

    /// Adds rows with new values, before the transaction has changed anything else. `limit` if those
    /// that are kept in memory exceed the statement's.
    pub async fn add(&mut self, transaction: &Transaction, change: LocatedRows) -> Result<()> {
        self.keep_or_write(transaction, change).await?;
        let context = self.execution.context(transaction);
        context.reserve(&mut self.held, "the statement's rows", self.bytes)
    }

    async fn keep_or_write(
        &mut self,
        transaction: &Transaction,
        change: LocatedRows,
    ) -> Result<()> {
        debug_assert!(
            change.rows.rows == change.locators.len(),
            "{} rows, {} places",
            change.rows.rows,
            change.locators.len()
        );
        if let Some(bulk) = &mut self.bulk {
            let in_memory = add_together(bulk, change, self.execution).await?;
            in_memory.into_iter().for_each(|change| self.keep(change));
            return Ok(());
        }
        self.keep(change);
        let is_many = self.kept_in_segments >= self.execution.store().bulk_rows();
        if !is_many || self.target.is_temporary() {
            return Ok(());
        }
        let mut bulk = self.execution.store().bulk_update(transaction, &self.target, self.rekeys);
        let kept = std::mem::take(&mut self.kept);
        (self.kept_in_segments, self.bytes) = (0, 0);
        for change in kept {
            let in_memory = add_together(&mut bulk, change, self.execution).await?;
            in_memory.into_iter().for_each(|change| self.keep(change));
        }
        self.bulk = Some(bulk);
        Ok(())
    }

    fn keep(&mut self, change: LocatedRows) {
        self.kept_in_segments += change.locators.iter().filter(is_in_segment).count();
        self.bytes += change.rows.memory_bytes(self.kept.last().map(|before| &before.rows));
        self.bytes += change.locators.len() * LOCATOR_BYTES;
        self.kept.push(change);
    }

    /// Replaces the rows by the new ones. Returns how many there are.
    pub async fn write(mut self, transaction: &mut Transaction) -> Result<u64> {
        if !self.rekeyed.is_empty() {
            transaction.note_rekeyed(&self.target, std::mem::take(&mut self.rekeyed));
        }
        let Some(mut bulk) = self.bulk.take() else {
            return self.write_kept(transaction).await;
        };
        self.execution.steps(|| bulk.complete()).await?;
        for place in bulk.places() {
            self.execution.end_step().await?;
            repeated(transaction, self.execution, |transaction| {
                transaction.replace_together(&mut bulk, place)
            })
            .await?;
        }
        if !self.rekeys {
            return Ok(transaction.add_updated(bulk) + self.write_kept(transaction).await?);
        }
        // All old keys are free before any new one is assigned.
        self.lock_together(transaction).await?;
        self.delete_kept(transaction).await?;
        repeated(transaction, self.execution, |transaction| transaction.reserve_keys(&mut bulk))
            .await?;
        Ok(transaction.add_updated(bulk) + self.insert_kept(transaction).await?)
    }

    async fn write_kept(&self, transaction: &mut Transaction) -> Result<u64> {
        self.lock_together(transaction).await?;
        let (target, changes) = (&self.target, &self.kept);
        // A new unique value may equal an old one in another batch, as a key may. Within one batch
        // the storage handles this.
        let deletes_first =
            changes_key(self.table, &self.columns) || (self.changes_unique && changes.len() > 1);
        if deletes_first {
            // Delete all old keys before inserting new ones, so that `set id = id + 1` works.
            self.delete_kept(transaction).await?;
            return self.insert_kept(transaction).await;
        }
        let mut affected = 0;
        for LocatedRows { rows, locators } in changes {
            affected += repeated(transaction, self.execution, |transaction| {
                transaction.update(target, locators, rows)
            })
            .await?;
            self.execution.end_step().await?;
        }
        Ok(affected)
    }

    async fn delete_kept(&self, transaction: &mut Transaction) -> Result<()> {
        for LocatedRows { locators, .. } in &self.kept {
            repeated(transaction, self.execution, |transaction| {
                transaction.delete(&self.target, locators)
            })
            .await?;
            self.execution.end_step().await?;
        }
        Ok(())
    }

    async fn insert_kept(&self, transaction: &mut Transaction) -> Result<u64> {
        let mut affected = 0;
        for LocatedRows { rows, .. } in &self.kept {
            affected += repeated(transaction, self.execution, |transaction| {
                transaction.insert(&self.target, rows)
            })
            .await?;
            self.execution.end_step().await?;
        }
        Ok(affected)
    }

    /// Locks the rows of several batches together, so that few commits move those in segments.
    async fn lock_together(&self, transaction: &mut Transaction) -> Result<()> {
        if self.kept.len() < 2 {
            return Ok(());
        }
        let mut together: Vec<RowLocator> = Vec::new();
        for (at, batch) in self.kept.iter().enumerate() {
            together.extend_from_slice(&batch.locators);
            if together.len() >= MOVED_TOGETHER || at + 1 == self.kept.len() {
                self.execution.end_step().await?;
                let lock =
                    |transaction: &mut Transaction| transaction.lock(&self.target, &together);
                repeated(transaction, self.execution, lock).await?;
                together.clear();
            }
        }
        Ok(())
    }
}

fn changes_key(table: &TableSchema, columns: &[usize]) -> bool {
    let key = table.primary_key.as_ref();
    key.is_some_and(|key| columns.iter().any(|position| key.columns.contains(position)))
}

/// Whether a row may get another key or partition by a change of these columns.
fn rekeys(table: &TableSchema, columns: &[usize]) -> bool {
    let shard = table.shard_key.as_ref();
    changes_key(table, columns)
        || shard.is_some_and(|key| columns.iter().any(|position| key.columns.contains(position)))
}

fn is_in_segment(locator: &&RowLocator) -> bool {
    matches!(locator, RowLocator::Segment { .. })
}

/// Adds the rows of segments to a bulk update. Returns those in memory.
async fn add_together(
    bulk: &mut BulkUpdate,
    change: LocatedRows,
    execution: &Execution<'_>,
) -> Result<Option<LocatedRows>> {
    let (in_segments, in_memory) = divide(change);
    if !in_segments.locators.is_empty() {
        let LocatedRows { rows, locators } = in_segments;
        execution.waits().call(|| bulk.add(rows.clone(), &locators)).await?;
        execution.steps(|| bulk.write(false)).await?;
    }
    Ok((!in_memory.locators.is_empty()).then_some(in_memory))
}

/// Divides rows into those of segments and those in memory.
fn divide(change: LocatedRows) -> (LocatedRows, LocatedRows) {
    let LocatedRows { rows, locators } = change;
    let part = |in_segments: bool| {
        let is_part = |at: &u32| is_in_segment(&&locators[*at as usize]) == in_segments;
        let picked: Vec<u32> = (0..locators.len() as u32).filter(is_part).collect();
        let locators = picked.iter().map(|at| locators[*at as usize].clone()).collect();
        let rows = match picked.len() == rows.rows {
            true => rows.clone(),
            false => Batch { selection: Some(picked), ..rows.clone() }.compact(),
        };
        LocatedRows { rows, locators }
    };
    (part(true), part(false))
}
