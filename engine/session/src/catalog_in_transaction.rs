//! Statements that change the catalog, in an open transaction: others see the change once the
//! transaction has committed. A statement that fails is undone.

use crate::catalog_change::{no_table, no_view, with_defaults};
use crate::engine::Engine;
use crate::references;
use crate::result::{ResultKind, StatementResult};
use nacre_sql::CatalogStatement;
use nacre_table::{Table, Transaction};
use nacre_types::{Error, ErrorKind, Result, TableSchema};
use std::sync::Arc;

/// Runs the statement.
///
/// Errors: `unsupported` for `OPTIMIZE`.
pub(crate) fn run(
    statement: &CatalogStatement,
    engine: &Engine,
    transaction: &mut Transaction,
) -> Result<StatementResult> {
    engine.store().check_writable()?;
    let savepoint = transaction.savepoint();
    let changed = change(statement, engine, transaction);
    if changed.is_err() {
        transaction.rollback_to(savepoint);
    }
    changed.map(|()| StatementResult::new(ResultKind::Ddl))
}

fn change(
    statement: &CatalogStatement,
    engine: &Engine,
    transaction: &mut Transaction,
) -> Result<()> {
    let name = statement.describe().name;
    match statement {
        CatalogStatement::CreateTable { schema, if_not_exists, replace } => {
            if let Some(old) = transaction.table(&schema.name).filter(|_| *replace) {
                drop_replaced(&old, schema, transaction)?;
            }
            match transaction.create_table(schema.clone(), *replace) {
                Ok(table) => references::created(transaction, &table),
                Err(error) => unless_exists(Err(error), *if_not_exists),
            }
        }
        CatalogStatement::CreateView { view, replace, if_not_exists } => {
            unless_exists(transaction.create_view(view.clone(), *replace), *if_not_exists)
        }
        CatalogStatement::DropTable { names, if_exists, cascade } => {
            drop_tables(names, (*if_exists, *cascade), transaction)
        }
        CatalogStatement::DropView { names, if_exists } => {
            drop_views(names, *if_exists, transaction)
        }
        CatalogStatement::AlterTable { table, changed } => {
            let changed = with_defaults(changed, table, engine)?;
            let table = transaction.table_of(table)?;
            let before = table.schema().clone();
            let after = transaction.alter_table(&table, changed)?;
            references::altered(transaction, &before, &after)
        }
        CatalogStatement::CreateIndex { table, index, changed } => {
            let table = transaction.table_of(table)?;
            match changed {
                Some(changed) => transaction.alter_table(&table, changed.clone()).map(drop),
                None => transaction.create_index(&table, index.clone()).map(drop),
            }
        }
        CatalogStatement::DropIndex { indexes } => indexes.iter().try_for_each(|(table, name)| {
            // Dropping a table's first index changes the table for its other indexes too.
            let known = transaction.table_by_id(table.id).ok_or_else(|| no_table(&table.name))?;
            let after = transaction.drop_index(&known, name)?;
            references::altered(transaction, known.schema(), &after)
        }),
        CatalogStatement::Truncate { tables } => {
            references::truncated(transaction, tables)?;
            tables.iter().try_for_each(|table| {
                let known = transaction.table_by_id(table.id);
                transaction.truncate(&known.ok_or_else(|| no_table(&table.name))?)
            })
        }
        // Any other statement only runs outside transactions.
        _ => Err(Error::unsupported(format!("{name} inside a transaction"))),
    }
}

fn unless_exists(created: Result<()>, if_not_exists: bool) -> Result<()> {
    match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && if_not_exists => Ok(()),
        other => other,
    }
}

/// Drops a table whose place another one takes.
fn drop_replaced(old: &Arc<Table>, new: &TableSchema, transaction: &mut Transaction) -> Result<()> {
    match old.is_temporary() == new.is_temporary() {
        true => references::drop_tables(transaction, std::slice::from_ref(old), false),
        false => Ok(()),
    }
}

fn drop_tables(
    names: &[String],
    (if_exists, cascade): (bool, bool),
    transaction: &mut Transaction,
) -> Result<()> {
    // Named twice, a table is dropped once.
    let mut tables = Vec::new();
    for name in names {
        match transaction.table(name) {
            Some(table) => tables.push(table),
            None if if_exists => {}
            None => return Err(no_table(name)),
        }
    }
    tables.sort_by_key(|table| table.schema().id);
    tables.dedup_by_key(|table| table.schema().id);
    references::drop_tables(transaction, &tables, cascade)
}

fn drop_views(names: &[String], if_exists: bool, transaction: &mut Transaction) -> Result<()> {
    // Named twice, a view is dropped once.
    let mut views = Vec::new();
    for name in names {
        match transaction.view_named(name) {
            Some(view) => views.push(view),
            None if if_exists => {}
            None => return Err(no_view(name, transaction.table(name).is_some())),
        }
    }
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views.dedup_by(|a, b| a.name == b.name);
    views.iter().try_for_each(|view| transaction.drop_view(&view.name))
}
