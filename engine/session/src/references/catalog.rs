//! Foreign keys in the catalog: a table that others refer to knows which ones, and keeps the key that they refer
//! to. Both tables change in one transaction.

use super::check::check_parents;
use super::key::Reference;
use crate::boxed::Boxed;
use crate::execution::Execution;
use nacre_sql::CatalogStatement;
use nacre_table::{Table, Transaction};
use nacre_types::{Error, Result, TableId, TableSchema, limits};
use std::sync::Arc;

/// Whether a statement changes tables with foreign keys, or to which others refer. `table` looks up a name.
pub(crate) fn is_concerned(
    statement: &CatalogStatement,
    table: impl Fn(&str) -> Option<Arc<Table>>,
) -> bool {
    let refers = |name: &str| table(name).is_some_and(|table| table.schema().has_references());
    match statement {
        CatalogStatement::CreateTable { schema, replace, .. } => {
            schema.has_references() || (*replace && refers(&schema.name))
        }
        CatalogStatement::DropTable { names, .. } => names.iter().any(|name| refers(name)),
        CatalogStatement::AlterTable { table, changed } => {
            table.has_references() || changed.has_references()
        }
        CatalogStatement::DropIndex { indexes } => {
            indexes.iter().any(|(table, _)| table.has_references())
        }
        CatalogStatement::Truncate { tables } => tables.iter().any(|table| table.has_references()),
        _ => false,
    }
}

/// Tells the tables that a new one refers to.
pub(crate) fn created(transaction: &mut Transaction, table: &Table) -> Result<()> {
    link(transaction, &TableSchema::default(), table.schema())
}

/// Tells the tables that a changed one refers to now, or not any more. Fails if it has lost a key that rows of
/// others refer to.
pub(crate) fn altered(
    transaction: &mut Transaction,
    before: &TableSchema,
    after: &Table,
) -> Result<()> {
    let schema = after.schema();
    link(transaction, before, schema)?;
    for child in schema.referenced_by.iter().chain([&schema.id]) {
        let Some(child) = transaction.table_by_id(*child) else { continue };
        let mut keys = child.schema().keys_to(schema.id);
        if let Some(key) = keys.find(|key| !schema.has_unique_key(&key.parent_columns)) {
            let (child, table) = (&child.schema().name, &schema.name);
            let message =
                format!("FOREIGN KEY {} of table {child} refers to this key of {table}", key.name);
            return Err(Error::constraint(message)
                .with_sqlstate("2BP01")
                .with_table(table.clone())
                .with_hint("drop the foreign key first"));
        }
    }
    Ok(())
}

/// Checks the rows of a table for the foreign keys that it did not have before.
pub(crate) fn verify<'a>(
    transaction: &'a Transaction,
    before: &'a TableSchema,
    execution: &'a Execution<'_>,
) -> Boxed<'a, ()> {
    Box::pin(async move {
        let Some(table) = transaction.table_by_id(before.id) else { return Ok(()) };
        for reference in Reference::of_child(transaction, &table)? {
            if !before.foreign_keys.contains(&reference.key) {
                let keys = reference.all(transaction, execution).await?;
                check_parents(transaction, &reference, &keys, execution).await?;
            }
        }
        Ok(())
    })
}

/// Drops tables. Those that others refer to are dropped with the foreign keys of the others, or not.
pub(crate) fn drop_tables(
    transaction: &mut Transaction,
    tables: &[Arc<Table>],
    cascade: bool,
) -> Result<()> {
    let is_dropped = |id: &TableId| tables.iter().any(|table| table.schema().id == *id);
    for table in tables {
        let schema = table.schema();
        for child in schema.referenced_by.iter().filter(|id| !is_dropped(id)) {
            let Some(child) = transaction.table_by_id(*child) else { continue };
            if !cascade {
                return Err(referred(&child, schema, "2BP01", "drop it first, or use CASCADE"));
            }
            let mut changed = (**child.schema()).clone();
            changed.foreign_keys.retain(|key| key.parent != schema.id);
            transaction.alter_table(&child, changed)?;
        }
        let none = TableSchema { id: schema.id, ..TableSchema::default() };
        link_unless(transaction, schema, &none, &is_dropped)?;
    }
    for table in tables {
        if let Some(table) = transaction.table_by_id(table.schema().id) {
            transaction.drop_table(&table)?;
        }
    }
    Ok(())
}

/// Fails if a table that is to be emptied is one that others refer to which are not.
pub(crate) fn truncated(transaction: &Transaction, tables: &[Arc<TableSchema>]) -> Result<()> {
    for schema in tables.iter().filter(|schema| schema.is_referred_to()) {
        let is_emptied = |id: &TableId| tables.iter().any(|table| table.id == *id);
        let mut others = schema.referenced_by.iter().filter(|id| !is_emptied(id));
        if let Some(child) = others.find_map(|id| transaction.table_by_id(*id)) {
            return Err(referred(&child, schema, "0A000", "truncate both, or DELETE"));
        }
    }
    Ok(())
}

fn referred(child: &Table, schema: &TableSchema, sqlstate: &'static str, hint: &str) -> Error {
    let (child, table) = (&child.schema().name, &schema.name);
    Error::constraint(format!("table {child} has a FOREIGN KEY that refers to {table}"))
        .with_sqlstate(sqlstate)
        .with_table(table.clone())
        .with_hint(hint)
}

fn link(transaction: &mut Transaction, before: &TableSchema, after: &TableSchema) -> Result<()> {
    link_unless(transaction, before, after, &|_| false)
}

/// Tells other tables that one refers to them now, or not any more, except for some.
fn link_unless(
    transaction: &mut Transaction,
    before: &TableSchema,
    after: &TableSchema,
    is_left: &dyn Fn(&TableId) -> bool,
) -> Result<()> {
    let parents = |schema: &TableSchema| -> Vec<TableId> {
        let all = schema.foreign_keys.iter().map(|key| key.parent);
        all.filter(|id| *id != 0 && !is_left(id)).collect()
    };
    let (old, new) = (parents(before), parents(after));
    let mut todo: Vec<TableId> = old.iter().chain(&new).copied().collect();
    todo.sort_unstable();
    todo.dedup();
    for id in todo.into_iter().filter(|id| old.contains(id) != new.contains(id)) {
        let Some(parent) = transaction.table_by_id(id) else {
            let message = format!("a table that {} refers to was dropped", after.name);
            return Err(Error::conflict(message).with_hint("retry the statement"));
        };
        let mut changed = (**parent.schema()).clone();
        changed.referenced_by.retain(|child| *child != after.id);
        if new.contains(&id) {
            changed.referenced_by.push(after.id);
            changed.referenced_by.sort_unstable();
        }
        if changed.referenced_by.len() > limits::MAX_REFERENCES {
            let (table, most) = (&changed.name, limits::MAX_REFERENCES);
            return Err(Error::limit(format!("more than {most} tables refer to table {table}")));
        }
        transaction.alter_table(&parent, changed)?;
    }
    Ok(())
}
