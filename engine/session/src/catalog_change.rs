//! Statements that change the catalog or maintain a table, outside transactions.

use crate::boxed::Boxed;
use crate::engine::Engine;
use crate::result::{ResultKind, StatementResult};
use crate::retry::Shortages;
use crate::rules::default_now;
use crate::time_slices::TimeSlices;
use nacre_sql::CatalogStatement;
use nacre_table::{MergeStep, Store, Table};
use nacre_types::{ColumnRule, Error, ErrorKind, Result, TableSchema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Time between two looks at another `OPTIMIZE … FULL` that must end first, in nanoseconds.
const BUSY_NS: u64 = 1_000_000;

/// Runs the statement, retrying if it runs out of files. `cancel` ends an `OPTIMIZE … FULL`.
pub(crate) fn run<'a>(
    statement: &'a CatalogStatement,
    engine: &'a Engine,
    cancel: &'a AtomicBool,
) -> Boxed<'a, StatementResult> {
    Box::pin(retried(statement, engine, cancel))
}

async fn retried(
    statement: &CatalogStatement,
    engine: &Engine,
    cancel: &AtomicBool,
) -> Result<StatementResult> {
    let mut shortages = Shortages::default();
    loop {
        engine.prepare_files().await?;
        match run_once(statement, engine, cancel).await {
            Err(error) if shortages.should_retry(&error, engine) => {}
            other => return other,
        }
    }
}

async fn run_once(
    statement: &CatalogStatement,
    engine: &Engine,
    cancel: &AtomicBool,
) -> Result<StatementResult> {
    let store = engine.store();
    store.check_writable()?;
    match statement {
        CatalogStatement::CreateTable { schema, replace: true, .. } => {
            store.replace_table(schema.clone())?;
            changed_and_maintained(engine);
        }
        CatalogStatement::CreateTable { schema, if_not_exists, .. } => {
            created(store.create_table(schema.clone()).map(|_| ()), *if_not_exists, engine)?;
        }
        CatalogStatement::CreateView { view, replace, if_not_exists } => {
            created(store.create_view(view.clone(), *replace), *if_not_exists, engine)?;
        }
        CatalogStatement::DropView { names, if_exists } => drop_views(names, *if_exists, engine)?,
        CatalogStatement::DropTable { names, if_exists, .. } => {
            drop_tables(names, *if_exists, engine)?
        }
        CatalogStatement::AlterTable { table, changed } => {
            let changed = with_defaults(changed, table, engine)?;
            store.alter_table(&bound_table(store, table)?, changed)?;
            changed_and_maintained(engine);
        }
        CatalogStatement::CreateIndex { table, index, changed } => {
            let table = bound_table(store, table)?;
            match changed {
                Some(changed) => store.alter_table(&table, changed.clone())?,
                None => store.create_index(&table, index.clone())?,
            };
            changed_and_maintained(engine);
        }
        CatalogStatement::DropIndex { indexes } => {
            let bound = |(table, name): &(Arc<TableSchema>, String)| {
                Ok((bound_table(store, table)?, name.clone()))
            };
            store.drop_indexes(&indexes.iter().map(bound).collect::<Result<Vec<_>>>()?)?;
            changed_and_maintained(engine);
        }
        CatalogStatement::Truncate { tables } => {
            let mut targets: Vec<Arc<Table>> = Vec::new();
            for table in tables {
                let target = store.table_by_id(table.id)?;
                if !targets.iter().any(|other| Arc::ptr_eq(other, &target)) {
                    targets.push(target);
                }
            }
            store.truncate(&targets)?;
            changed_and_maintained(engine);
        }
        CatalogStatement::Optimize { table, full } => {
            optimize(&store.table_by_id(table.id)?, *full, engine, cancel).await?;
            return Ok(StatementResult::new(ResultKind::Control));
        }
    }
    Ok(StatementResult::new(ResultKind::Ddl))
}

/// Flushes a table, or merges all of it, step by step: other work of the thread goes on in between
/// where statements give way. What was merged before a cancellation stays.
async fn optimize(
    table: &Arc<Table>,
    is_full: bool,
    engine: &Engine,
    cancel: &AtomicBool,
) -> Result<()> {
    let (store, clock) = (engine.store(), &engine.host().clock);
    if !is_full {
        return store.flush(table);
    }
    let is_cancelled = || cancel.load(Ordering::Relaxed);
    let slices = TimeSlices::new(store.environment());
    let mut merge = store.begin_merge_all(table);
    loop {
        match engine.maintained(|| store.merge_all_step(&mut merge)).await? {
            MergeStep::Done => return Ok(()),
            _ if is_cancelled() => return Err(Error::cancelled()),
            MergeStep::Busy => clock.sleep_until(engine.now_ns().saturating_add(BUSY_NS)).await,
            MergeStep::More if slices.has_ended(store.environment()) => {
                slices.give_way(store.environment(), &is_cancelled).await?;
            }
            MergeStep::More => {}
        }
    }
}

/// The changed schema of a table, with the values that new columns have in existing rows: a default
/// that is an expression is computed once.
pub(crate) fn with_defaults(
    changed: &TableSchema,
    table: &TableSchema,
    engine: &Engine,
) -> Result<TableSchema> {
    let now_us = engine.host().clock.wall_us();
    let mut changed = changed.clone();
    for at in 0..changed.columns.len() {
        let column = &changed.columns[at];
        if matches!(column.rule, ColumnRule::Default(_))
            && table.column_position(column.id).is_none()
        {
            let value = default_now(&changed, at, now_us)?;
            changed.columns[at].check(&value).map_err(|e| e.with_table(table.name.clone()))?;
            changed.columns[at].default = value;
        }
    }
    Ok(changed)
}

/// Starts maintenance that the change enables, such as removal of files. A failure does not affect
/// the statement.
fn changed_and_maintained(engine: &Engine) {
    engine.catalog_changed();
    engine.start_maintenance();
}

fn created(created: Result<()>, if_not_exists: bool, engine: &Engine) -> Result<()> {
    match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && if_not_exists => {
            engine.store().settle_catalog()
        }
        other => {
            other?;
            engine.catalog_changed();
            Ok(())
        }
    }
}

fn drop_views(names: &[String], if_exists: bool, engine: &Engine) -> Result<()> {
    let store = engine.store();
    let (known, missing): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| store.view(name).is_some());
    if let (Some(name), false) = (missing.first(), if_exists) {
        return Err(no_view(name, store.table(name).is_some()));
    }
    store.drop_views(&known)?;
    if !missing.is_empty() {
        store.settle_catalog()?;
    }
    engine.catalog_changed();
    Ok(())
}

fn drop_tables(names: &[String], if_exists: bool, engine: &Engine) -> Result<()> {
    let store = engine.store();
    // Look up all names before dropping anything, so that an unknown name changes nothing.
    let mut tables = Vec::new();
    for name in names {
        match store.table(name) {
            Some(table) => tables.push(table),
            None if if_exists => {}
            None => return Err(no_table(name)),
        }
    }
    store.drop_tables(&tables)?;
    if tables.len() < names.len() {
        store.settle_catalog()?;
    }
    changed_and_maintained(engine);
    Ok(())
}

/// The error for a table that does not exist.
pub(crate) fn no_table(name: &str) -> Error {
    Error::not_found(format!("no table `{name}`")).with_sqlstate("42P01")
}

/// The error for a view that is to be dropped and does not exist.
pub(crate) fn no_view(name: &str, is_table: bool) -> Error {
    let error = Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01");
    if is_table { error.with_hint("it is a table; use DROP TABLE") } else { error }
}

/// The newest version of a table, if the statement was bound to it; otherwise `conflict`.
fn bound_table(store: &Store, bound: &TableSchema) -> Result<Arc<Table>> {
    let table = store.table_by_id(bound.id)?;
    if **table.schema() == *bound {
        return Ok(table);
    }
    Err(Error::conflict(format!("table {} was altered meanwhile", bound.name))
        .with_hint("retry the statement"))
}
