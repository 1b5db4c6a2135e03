//! Rows follow keys that are gone, or have become others.

use super::key::{Keys, Reference, reserved};
use crate::execution::Execution;
use crate::rules::default_now;
use crate::statement::{LocatedRows, TargetRows, Update, delete};
use nacre_column::{Batch, Vector};
use nacre_table::{KeyChanges, Savepoint, Transaction};
use nacre_types::hash::Map;
use nacre_types::{ColumnRule, ReferentialAction, Result, TableId, Value};
use std::sync::Arc;

/// The keys that rows follow, each with the values that these get; with none, the rows are deleted.
type Following = Map<Vec<u8>, Vec<Value>>;

/// Lets rows follow the keys that were changed since a savepoint. Returns the tables whose rows did.
pub(super) async fn follow(
    transaction: &mut Transaction,
    since: Savepoint,
    execution: &Execution<'_>,
) -> Result<Vec<TableId>> {
    let mut todo = Vec::new();
    for parent in transaction.referring_tables(since) {
        for reference in Reference::of_parent(transaction, &parent)? {
            let (on_delete, on_update) = (reference.key.on_delete, reference.key.on_update);
            if !acts(on_delete) && !acts(on_update) {
                continue;
            }
            let followed = [reference.followed_parent()];
            let mut waits = execution.waits();
            let mut changes = waits.call(|| transaction.key_changes(since, &followed)).await?;
            let Some(KeyChanges { added, mut removed, .. }) = changes.pop() else { continue };
            let mut changed = changed(transaction, since, &reference)?;
            removed.retain(|key| !added.contains(key) && !changed.contains_key(key));
            let others = others(&reference, on_delete, execution.now_us())?;
            let mut gone: Following =
                removed.into_iter().map(|key| (key, others.clone())).collect();
            if on_update != ReferentialAction::Cascade {
                let others = self::others(&reference, on_update, execution.now_us())?;
                changed.values_mut().for_each(|values| values.clone_from(&others));
            }
            if !acts(on_delete) {
                gone.clear();
            }
            if acts(on_update) {
                gone.extend(changed);
            }
            if !gone.is_empty() {
                todo.push((reference, gone));
            }
        }
    }
    let mut tables = Vec::new();
    for (reference, following) in todo {
        if apply(transaction, &reference, &following, execution).await? {
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
) -> Result<Following> {
    let mut changed = Following::default();
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

/// The values that rows get whose key is gone.
fn others(reference: &Reference, action: ReferentialAction, now_us: i64) -> Result<Vec<Value>> {
    let schema = reference.child.schema();
    let value = |at: &usize| match (action, &schema.columns[*at].rule) {
        (ReferentialAction::SetDefault, ColumnRule::Default(_)) => default_now(schema, *at, now_us),
        (ReferentialAction::SetDefault, _) => Ok(schema.columns[*at].default.clone()),
        _ => Ok(Value::Null),
    };
    match action {
        ReferentialAction::Cascade => Ok(Vec::new()),
        _ => reference.columns.iter().map(value).collect(),
    }
}

/// Changes or deletes the rows that refer to keys. Returns whether there are any.
async fn apply(
    transaction: &mut Transaction,
    reference: &Reference,
    following: &Following,
    execution: &Execution<'_>,
) -> Result<bool> {
    let keys: Keys = following.keys().cloned().collect();
    let _held = reserved(&keys, transaction, execution)?;
    let found = reference.rows(&keys, transaction, execution).await?;
    let schema = reference.child.schema();
    let mut update = Update::new(transaction, schema, reference.columns.clone(), execution)?;
    let mut gone = TargetRows::default();
    let mut is_any = false;
    for (LocatedRows { rows, locators }, keys) in found {
        let values: Vec<&[Value]> = keys.iter().map(|key| &*following[key]).collect();
        let is_gone = |row: &u32| values[*row as usize].is_empty();
        let all = 0..keys.len() as u32;
        let context = execution.context(transaction);
        gone.add(all.clone().filter(is_gone).map(|row| locators[row as usize].clone()), &context)?;
        is_any |= !keys.is_empty();
        let kept: Vec<u32> = all.filter(|row| !is_gone(row)).collect();
        if kept.is_empty() {
            continue;
        }
        let locators = kept.iter().map(|row| locators[*row as usize].clone()).collect();
        let mut new = Batch { selection: Some(kept.clone()), ..rows }.compact();
        let old = new.clone();
        for (n, at) in reference.columns.iter().enumerate() {
            let column = &schema.columns[*at];
            let values: Vec<Value> =
                kept.iter().map(|row| values[*row as usize][n].clone()).collect();
            let checked = values.iter().try_for_each(|value| column.check(value));
            checked.map_err(|error| error.with_table(schema.name.clone()))?;
            new.columns[*at] = Arc::new(Vector::from_values(column.data_type, &values));
        }
        let rows = reference.child.complete(new)?;
        update.note(&old, &rows);
        update.add(transaction, LocatedRows { rows, locators }).await?;
    }
    if gone.len() > 0 {
        delete(transaction, schema, &gone, execution).await?;
    }
    update.write(transaction).await?;
    Ok(is_any)
}
