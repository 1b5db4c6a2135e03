//! `INSERT`: few rows go into the rowstore, under locks; many go directly into segments, as a bulk
//! load or, in a transaction with other changes, as a part of it.

use super::held::HeldRows;
use super::load::{self, Load};
use super::repeated::repeated;
use super::row_types::{in_batches, in_table_types};
use super::upsert::{self, Upsert};
use crate::execution::{Execution, InsertPath};
use nacre_column::Batch;
use nacre_exec::build;
use nacre_sql::{OnDuplicateKey, Plan};
use nacre_table::{OnDuplicate, Table, Transaction};
use nacre_types::{IndexId, Result, TableSchema};
use std::sync::Arc;

/// An `INSERT` writes segments as well if its rows exceed this part of the statement's memory.
const HELD_PART: usize = 8;

/// An `INSERT`.
pub(crate) struct Insert<'a> {
    /// The target table.
    pub table: &'a Arc<TableSchema>,
    /// The rows.
    pub source: &'a Plan,
    /// The keys to check, and how to handle a row that has one; `None` if that is an error.
    pub conflicts: Option<(&'a [Option<IndexId>], &'a OnDuplicateKey)>,
}

impl Insert<'_> {
    /// How a load of the rows handles those with the same keys; `None` if no load does what the
    /// statement says.
    fn policy(&self) -> Option<OnDuplicate> {
        let Some((keys, on_duplicate)) = self.conflicts else { return Some(OnDuplicate::Error) };
        let unique = self.table.indexes.iter().filter(|index| index.unique).count();
        let all = unique + usize::from(self.table.primary_key.is_some());
        debug_assert!(keys.len() <= all, "{} of {all} keys are checked", keys.len());
        match on_duplicate {
            _ if keys.len() < all => None,
            OnDuplicateKey::Ignore => Some(OnDuplicate::Skip),
            OnDuplicateKey::Replace => Some(OnDuplicate::Replace),
            OnDuplicateKey::Update { .. } => None,
        }
    }
}

/// Inserts the rows and returns how many were inserted or changed. Collects them in `returned` if
/// set.
pub(crate) async fn run(
    transaction: &mut Transaction,
    insert: Insert<'_>,
    execution: &Execution<'_>,
    returned: Option<&mut HeldRows>,
) -> Result<u64> {
    let Insert { table, source, conflicts } = insert;
    let target = transaction.table_of(table)?;
    let may_load = returned.is_none() && execution.insert_path() != InsertPath::OneByOne;
    // Temporary tables have no segments.
    let load_rows = execution.store().load_rows();
    let policy = insert.policy().filter(|_| may_load && !target.is_temporary());
    let context = execution.context(transaction);
    let mut waits = execution.waits();
    context.memory.share_among(source, 2);
    let mut operator = waits.call(|| build(source, &context)).await?;
    let (mut batches, mut rows) = (HeldRows::default(), 0);
    let most_bytes = context.memory.limit() / HELD_PART;
    let mut load: Option<Load> = None;
    while let Some(batch) = waits.next(&mut *operator, &context).await? {
        let batch = target.complete(in_table_types(&batch.compact(), table))?;
        rows += batch.rows;
        batches.push(batch, "the statement's rows", &context)?;
        let is_many = rows >= load_rows || batches.bytes() > most_bytes || load.is_some();
        let Some(policy) = policy.filter(|_| is_many) else { continue };
        let load = load.get_or_insert_with(|| Load::new(&target, policy, source, execution));
        for batch in batches.take() {
            load.append(&batch, (&context, execution), &mut waits).await?;
            execution.end_step().await?;
        }
    }
    drop((operator, waits));
    if let Some(load) = load {
        return load.finish(transaction, execution).await;
    }
    if let Some((keys, on_duplicate)) = conflicts {
        let upsert = Upsert { table, keys, on_duplicate };
        return one_by_one_checked(transaction, upsert, &batches, execution, returned).await;
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
    if rows < execution.store().load_rows() || target.is_temporary() {
        return one_by_one(transaction, target, batches, execution).await;
    }
    let mut load = Box::new(execution.store().bulk_load(target, OnDuplicate::Error));
    for batch in batches {
        execution.steps(|| load.write(false)).await?;
        load.append(batch)?;
    }
    load::add(transaction, load, OnDuplicate::Error, execution).await
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
        affected +=
            repeated(transaction, execution, |transaction| transaction.insert(target, batch))
                .await?;
        execution.end_step().await?;
    }
    Ok(affected)
}

/// Inserts rows under locks, and handles those whose keys exist.
async fn one_by_one_checked(
    transaction: &mut Transaction,
    upsert: Upsert<'_>,
    batches: &[Batch],
    execution: &Execution<'_>,
    mut returned: Option<&mut HeldRows>,
) -> Result<u64> {
    let mut affected = 0;
    for batch in batches {
        let mut written = Vec::new();
        let wanted = returned.is_some().then_some(&mut written);
        let mut proposed = (0..batch.rows).map(|row| Ok(batch.row(row)));
        affected += upsert::run(transaction, upsert, &mut proposed, execution, wanted)?;
        if let Some(returned) = &mut returned {
            let context = execution.context(transaction);
            for rows in in_batches(upsert.table, &written) {
                returned.push(rows, "the returned rows", &context)?;
            }
        }
        execution.end_step().await?;
    }
    Ok(affected)
}
