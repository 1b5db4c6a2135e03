//! Checks that rows refer to rows that are there.

use super::key::{Keys, Reference, reserved};
use super::when::When;
use crate::boxed::Boxed;
use crate::execution::Execution;
use nacre_table::{Savepoint, Table, Transaction};
use nacre_types::{Error, ReferentialAction, Result};
use std::future::ready;
use std::sync::Arc;

/// Checks what was written since a savepoint. Locks the keys of all foreign keys, except at a commit, when they
/// are locked already.
pub(super) fn check<'a>(
    transaction: &'a mut Transaction,
    since: Savepoint,
    when: When,
    execution: &'a Execution<'_>,
) -> Boxed<'a, ()> {
    Box::pin(async move {
        for table in transaction.referring_tables(since) {
            let own = Reference::of_child(transaction, &table)?.into_iter();
            let others = Reference::of_parent(transaction, &table)?.into_iter();
            let own = own.map(|reference| (reference, false));
            for (reference, is_parent) in own.chain(others.map(|reference| (reference, true))) {
                let keys = keys(transaction, since, &reference, is_parent, execution).await?;
                if keys.is_empty() {
                    continue;
                }
                let _held = reserved(&keys, transaction, execution)?;
                if when != When::Commit {
                    let locked = keys.iter().map(|key| reference.locked(key)).collect();
                    transaction.lock_references(&reference.parent, locked, is_parent)?;
                }
                let is_late = !is_parent || reference.key.on_delete != ReferentialAction::Restrict;
                if is_due(reference.key.is_deferred && is_late, when) {
                    match is_parent {
                        true => check_children(transaction, &reference, &keys, execution).await?,
                        false => check_parents(transaction, &reference, &keys, execution).await?,
                    }
                }
            }
        }
        Ok(())
    })
}

/// Checks the deferred foreign keys of all that a transaction has written.
pub(crate) fn check_deferred<'a>(
    transaction: &'a mut Transaction,
    execution: &'a Execution<'_>,
) -> Boxed<'a, ()> {
    let beginning = Savepoint::default();
    let has_deferred = |table: &Arc<Table>| {
        let referred = table.schema().referenced_by.iter();
        let others = referred.filter_map(|id| transaction.table_by_id(*id));
        let mut tables = others.chain([table.clone()]);
        tables.any(|table| table.schema().foreign_keys.iter().any(|key| key.is_deferred))
    };
    match transaction.referring_tables(beginning).iter().any(has_deferred) {
        true => check(transaction, beginning, When::Commit, execution),
        false => Box::pin(ready(Ok(()))),
    }
}

fn is_due(is_deferred: bool, when: When) -> bool {
    match when {
        When::Statement => !is_deferred,
        When::Both => true,
        When::Commit => is_deferred,
    }
}

/// The keys that rows of the child refer to now and did not before, or those that rows of the parent had and that
/// none has any more.
async fn keys(
    transaction: &Transaction,
    since: Savepoint,
    reference: &Reference,
    is_parent: bool,
    execution: &Execution<'_>,
) -> Result<Keys> {
    let followed = [match is_parent {
        true => reference.followed_parent(),
        false => reference.followed(),
    }];
    let changes = execution.waits().call(|| transaction.key_changes(since, &followed)).await?;
    let Some(changes) = changes.into_iter().next() else { return Ok(Keys::default()) };
    let (mut keys, others) = match is_parent {
        true => (changes.removed, changes.added),
        false => (changes.added, changes.committed),
    };
    keys.retain(|key| !others.contains(key));
    Ok(keys)
}

/// Fails if a key has no row.
pub(super) fn check_parents<'a>(
    transaction: &'a Transaction,
    reference: &'a Reference,
    keys: &'a Keys,
    execution: &'a Execution<'_>,
) -> Boxed<'a, ()> {
    Box::pin(parents_checked(transaction, reference, keys, execution))
}

async fn parents_checked(
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
            // Other transactions do not see the rows of this one.
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
