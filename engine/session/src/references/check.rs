//! Checks that rows refer to rows that are there.

use super::When;
use super::key::{Keys, Reference};
use crate::execution::Execution;
use nacre_table::{Savepoint, Table, Transaction};
use nacre_types::{Error, ReferentialAction, Result};
use std::sync::Arc;

/// Checks what was written since a savepoint. Locks the keys of all foreign keys, except at a commit, when they
/// are locked already.
pub(super) async fn check(
    transaction: &mut Transaction,
    since: Savepoint,
    when: When,
    execution: &Execution<'_>,
) -> Result<()> {
    for table in transaction.referring_tables(since) {
        for reference in Reference::of_child(transaction, &table)? {
            let keys = added(transaction, since, &reference, execution).await?;
            if keys.is_empty() {
                continue;
            }
            lock(transaction, &reference, &keys, false, when)?;
            if is_due(reference.key.is_deferred, when) {
                check_parents(transaction, &reference, &keys, execution).await?;
            }
        }
        for reference in Reference::of_parent(transaction, &table)? {
            let keys = gone(transaction, since, &reference, execution).await?;
            if keys.is_empty() {
                continue;
            }
            lock(transaction, &reference, &keys, true, when)?;
            let is_deferred =
                reference.key.is_deferred && reference.key.on_delete != ReferentialAction::Restrict;
            if is_due(is_deferred, when) {
                check_children(transaction, &reference, &keys, execution).await?;
            }
        }
    }
    Ok(())
}

/// Checks the deferred foreign keys of all that a transaction has written.
pub(crate) async fn check_deferred(
    transaction: &mut Transaction,
    execution: &Execution<'_>,
) -> Result<()> {
    let beginning = Savepoint::default();
    let has_deferred = |table: &Arc<Table>| {
        let referred = table.schema().referenced_by.iter();
        let others = referred.filter_map(|id| transaction.table_by_id(*id));
        let mut tables = others.chain([table.clone()]);
        tables.any(|table| table.schema().foreign_keys.iter().any(|key| key.is_deferred))
    };
    if !transaction.referring_tables(beginning).iter().any(has_deferred) {
        return Ok(());
    }
    check(transaction, beginning, When::Commit, execution).await
}

fn is_due(is_deferred: bool, when: When) -> bool {
    match when {
        When::Statement => !is_deferred,
        When::Both => true,
        When::Commit => is_deferred,
    }
}

fn lock(
    transaction: &mut Transaction,
    reference: &Reference,
    keys: &Keys,
    is_alone: bool,
    when: When,
) -> Result<()> {
    if when == When::Commit {
        return Ok(());
    }
    let keys = keys.iter().map(|key| reference.locked(key)).collect();
    transaction.lock_references(&reference.parent, keys, is_alone)
}

/// The keys that new and changed rows refer to, and that no row before the change did.
async fn added(
    transaction: &Transaction,
    since: Savepoint,
    reference: &Reference,
    execution: &Execution<'_>,
) -> Result<Keys> {
    let followed = [reference.followed()];
    let changes = execution.waits().call(|| transaction.key_changes(since, &followed)).await?;
    let keys = changes.into_iter().flat_map(|changes| {
        let committed = changes.committed;
        changes.added.into_iter().filter(move |key| !committed.contains(key))
    });
    Ok(keys.collect())
}

/// The keys that rows of the parent had and that none has any more.
async fn gone(
    transaction: &Transaction,
    since: Savepoint,
    reference: &Reference,
    execution: &Execution<'_>,
) -> Result<Keys> {
    let followed = [reference.followed_parent()];
    let changes = execution.waits().call(|| transaction.key_changes(since, &followed)).await?;
    let keys = changes.into_iter().flat_map(|changes| {
        let added = changes.added;
        changes.removed.into_iter().filter(move |key| !added.contains(key))
    });
    Ok(keys.collect())
}

/// Fails if a key has no row.
pub(super) async fn check_parents(
    transaction: &Transaction,
    reference: &Reference,
    keys: &Keys,
    execution: &Execution<'_>,
) -> Result<()> {
    let missing = reference.missing(keys, transaction, execution).await?;
    let is_behind = transaction.is_behind(&reference.parent);
    if is_behind {
        let newest = transaction.newest()?;
        let mut now = reference.missing(keys, &newest, execution).await?;
        if missing.iter().any(|key| !now.contains(key)) {
            return Err(conflict(&reference.parent));
        }
        now.retain(|key| !missing.contains(key));
        if !now.is_empty() {
            // Nobody else sees the rows of this transaction.
            let followed = [reference.followed_parent()];
            let own = Savepoint::default();
            let own = execution.waits().call(|| transaction.key_changes(own, &followed)).await?;
            now.retain(|key| !own.iter().any(|changes| changes.added.contains(key)));
        }
        if !now.is_empty() {
            return Err(conflict(&reference.parent));
        }
    }
    match missing.iter().min() {
        None => Ok(()),
        Some(key) => Err(violated(
            reference,
            format!(
                "a row of table {} refers to {}, which no row has",
                reference.child.schema().name,
                shown(reference, key)?
            ),
        )),
    }
}

/// Fails if a row refers to a key that is gone.
async fn check_children(
    transaction: &Transaction,
    reference: &Reference,
    keys: &Keys,
    execution: &Execution<'_>,
) -> Result<()> {
    if transaction.is_behind(&reference.child) {
        // What this transaction has changed is locked, so others can only have added rows.
        let (seen, newest) = (transaction.reader(), transaction.newest()?);
        let (before, _) = reference.referring(keys, u64::MAX, &seen, execution).await?;
        let (now, _) = reference.referring(keys, u64::MAX, &newest, execution).await?;
        if now != before {
            return Err(conflict(&reference.child));
        }
    }
    match reference.referring(keys, 1, transaction, execution).await? {
        (_, None) => Ok(()),
        (_, Some(key)) => Err(violated(
            reference,
            format!(
                "{} is gone, but a row of table {} refers to it",
                shown(reference, &key)?,
                reference.child.schema().name
            ),
        )),
    }
}

/// A key as it is shown in messages.
fn shown(reference: &Reference, key: &[u8]) -> Result<String> {
    let values = reference.decode(key)?;
    let schema = reference.parent.schema();
    let ids = reference.key.parent_columns.iter();
    let names =
        ids.filter_map(|id| schema.column_position(*id)).map(|at| &*schema.columns[at].name);
    let pairs: Vec<String> =
        names.zip(&values).map(|(name, value)| format!("{name} = {value}")).collect();
    Ok(format!("{} of table {}", pairs.join(", "), schema.name))
}

fn violated(reference: &Reference, message: String) -> Error {
    Error::constraint(format!("{message}: FOREIGN KEY {}", reference.key.name))
        .with_sqlstate("23503")
        .with_table(reference.child.schema().name.clone())
        .with_key(reference.key.name.clone())
}

fn conflict(table: &Table) -> Error {
    let name = &table.schema().name;
    Error::conflict(format!("rows of table {name} were changed by another transaction"))
        .with_table(name.clone())
        .with_hint("retry the transaction")
}
