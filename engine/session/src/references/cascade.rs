//! Rows follow keys that are gone, or have become others.

use super::key::{Keys, Reference};
use crate::execution::Execution;
use crate::rules::default_now;
use crate::statement::{LocatedRows, TargetRows, Update, delete};
use nacre_column::{Batch, Vector};
use nacre_table::{Savepoint, Transaction};
use nacre_types::hash::Map;
use nacre_types::{ColumnRule, ReferentialAction, Result, TableId, TableSchema, Value};
use std::sync::Arc;

/// What rows that refer to keys become.
enum Becoming {
    Deleted,
    /// Their columns get these values.
    Set(Vec<Value>),
    /// Their columns get the values by their key.
    Changed(Map<Vec<u8>, Vec<Value>>),
}

/// Lets rows follow the keys that were changed since a savepoint. Returns the tables whose rows did.
pub(super) async fn follow(
    transaction: &mut Transaction,
    since: Savepoint,
    execution: &Execution<'_>,
) -> Result<Vec<TableId>> {
    let mut todo = Vec::new();
    for parent in transaction.referring_tables(since) {
        let acting =
            |reference: &Reference| acts(reference.key.on_delete) || acts(reference.key.on_update);
        let mut references = Reference::of_parent(transaction, &parent)?;
        references.retain(acting);
        let followed: Vec<_> = references.iter().map(Reference::followed_parent).collect();
        let mut waits = execution.waits();
        let changes = waits.call(|| transaction.key_changes(since, &followed)).await?;
        for (reference, changes) in references.into_iter().zip(changes) {
            let changed = changed(transaction, since, &reference)?;
            let is_gone =
                |key: &&Vec<u8>| !changes.added.contains(*key) && !changed.contains_key(*key);
            let gone: Keys = changes.removed.iter().filter(is_gone).cloned().collect();
            let (on_delete, on_update) = (reference.key.on_delete, reference.key.on_update);
            if acts(on_delete) && !gone.is_empty() {
                let becoming = becoming(&reference, on_delete, Map::default(), execution)?;
                todo.push((reference.clone(), gone, becoming));
            }
            if acts(on_update) && !changed.is_empty() {
                let keys: Keys = changed.keys().cloned().collect();
                let becoming = becoming(&reference, on_update, changed, execution)?;
                todo.push((reference, keys, becoming));
            }
        }
    }
    let mut tables = Vec::new();
    for (reference, keys, becoming) in todo {
        if apply(transaction, &reference, &keys, becoming, execution).await? {
            tables.push(reference.child.schema().id);
        }
    }
    Ok(tables)
}

/// Whether rows follow.
fn acts(action: ReferentialAction) -> bool {
    !matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict)
}

/// The keys that have become others since a savepoint, with the values that they have now.
fn changed(
    transaction: &Transaction,
    since: Savepoint,
    reference: &Reference,
) -> Result<Map<Vec<u8>, Vec<Value>>> {
    let mut changed = Map::default();
    for row in transaction.rekeyed(since, reference.parent.schema().id) {
        let (old, new) = (reference.key_of_parent(&row.old)?, reference.key_of_parent(&row.new)?);
        if let Some(old) = old.filter(|old| Some(old) != new.as_ref()) {
            let values = match &new {
                Some(new) => reference.decode(new)?,
                None => vec![Value::Null; reference.columns.len()],
            };
            changed.insert(old, values);
        }
    }
    Ok(changed)
}

fn becoming(
    reference: &Reference,
    action: ReferentialAction,
    changed: Map<Vec<u8>, Vec<Value>>,
    execution: &Execution<'_>,
) -> Result<Becoming> {
    Ok(match action {
        // A key that was deleted has become no other.
        ReferentialAction::Cascade if changed.is_empty() => Becoming::Deleted,
        ReferentialAction::Cascade => Becoming::Changed(changed),
        ReferentialAction::SetDefault => {
            let schema = reference.child.schema();
            let default = |at: &usize| default_of(schema, *at, execution.now_us());
            Becoming::Set(reference.columns.iter().map(default).collect::<Result<_>>()?)
        }
        ReferentialAction::SetNull | ReferentialAction::NoAction | ReferentialAction::Restrict => {
            Becoming::Set(vec![Value::Null; reference.columns.len()])
        }
    })
}

/// The default of a column, now.
fn default_of(schema: &TableSchema, at: usize, now_us: i64) -> Result<Value> {
    match schema.columns[at].rule {
        ColumnRule::Default(_) => default_now(schema, at, now_us),
        _ => Ok(schema.columns[at].default.clone()),
    }
}

/// Changes or deletes the rows that refer to keys. Returns whether there are any.
async fn apply(
    transaction: &mut Transaction,
    reference: &Reference,
    keys: &Keys,
    becoming: Becoming,
    execution: &Execution<'_>,
) -> Result<bool> {
    let found = reference.rows(keys, transaction, execution).await?;
    if found.iter().all(|(rows, _)| rows.locators.is_empty()) {
        return Ok(false);
    }
    let schema = reference.child.schema();
    if matches!(becoming, Becoming::Deleted) {
        let mut targets = TargetRows::default();
        let context = execution.context(transaction);
        for (LocatedRows { locators, .. }, _) in found {
            targets.add(locators, &context)?;
        }
        delete(transaction, schema, &targets, execution).await?;
        return Ok(true);
    }
    let mut update = Update::new(transaction, schema, reference.columns.clone(), execution)?;
    for (LocatedRows { rows, locators }, keys) in found {
        let mut new: Batch = rows.clone();
        for (n, at) in reference.columns.iter().enumerate() {
            let value = |key: &Vec<u8>| match &becoming {
                Becoming::Set(values) => values[n].clone(),
                Becoming::Changed(changed) => {
                    changed.get(key).map_or(Value::Null, |v| v[n].clone())
                }
                Becoming::Deleted => Value::Null,
            };
            let values: Vec<Value> = keys.iter().map(value).collect();
            values.iter().try_for_each(|value| schema.columns[*at].check(value)).map_err(
                |error| error.with_table(schema.name.clone()).with_key(reference.key.name.clone()),
            )?;
            let vector = Vector::from_values(schema.columns[*at].data_type, &values);
            new.columns[*at] = Arc::new(vector);
        }
        let new = reference.child.complete(new)?;
        update.note(&rows, &new);
        update.add(transaction, LocatedRows { rows: new, locators }).await?;
    }
    update.write(transaction).await?;
    Ok(true)
}
