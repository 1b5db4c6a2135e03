//! Running one bound statement inside a transaction.
//!
//! A statement that reads what it writes sees the rows as they were when it began: everything it
//! reads is collected before the first write.

use crate::engine::Engine;
use crate::profile;
use crate::result::{ResultKind, StatementResult};
use crate::session::Connection;
use crate::write;
use nacre_column::{Batch, Vector};
use nacre_exec::{
    Context, Memory, Profile, Reservation, Statistics, Threads, build, build_locating,
};
use nacre_sql::{Field, Plan, Statement, explain};
use nacre_table::{RowLocator, Store, Table, Transaction};
use nacre_types::{DataType, Error, ErrorKind, Result, TableSchema, Value};
use std::sync::Arc;

/// What a statement is run with, beside its transaction.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub parameters: &'a [Value],
    pub statistics: &'a Statistics,
    pub memory: &'a Memory,
    pub now_us: i64,
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    pub threads: Threads,
    /// The statement is a transaction of its own, so a large `INSERT` may write segments directly.
    pub direct: bool,
    /// What measures the statement's plans, if somebody asked.
    pub profile: Option<&'a Profile>,
}

/// Columns of a statement's result.
pub(crate) fn columns(statement: &Statement) -> Vec<Field> {
    match statement {
        Statement::Query(plan) | Statement::Lock { output: plan, .. } => plan.fields(),
        Statement::Explain(_) => vec![explain_field()],
        Statement::Returning { fields, .. } => fields.clone(),
        Statement::Profile(_) => profile::fields(),
        _ => Vec::new(),
    }
}

/// Whether a statement may write rows, or move them to lock them.
pub(crate) fn writes(statement: &Statement) -> bool {
    use Statement::{
        Change, CreateTableAs, Delete, Insert, Lock, Profile, Returning, Update, Upsert,
    };
    match statement {
        Profile(inner) => writes(inner),
        Insert { .. }
        | Upsert { .. }
        | Update { .. }
        | Delete { .. }
        | Change { .. }
        | CreateTableAs { .. }
        | Returning { .. }
        | Lock { .. } => true,
        _ => false,
    }
}

/// How messages call a statement.
pub(crate) fn name(statement: &Statement) -> &'static str {
    match statement {
        Statement::CreateTable { .. } => "CREATE TABLE",
        Statement::CreateTableAs { .. } => "CREATE TABLE AS",
        Statement::DropTable { .. } => "DROP TABLE",
        Statement::CreateView { .. } => "CREATE VIEW",
        Statement::DropView { .. } => "DROP VIEW",
        Statement::AlterTable { .. } => "ALTER TABLE",
        Statement::CreateIndex { .. } => "CREATE INDEX",
        Statement::DropIndex { .. } => "DROP INDEX",
        Statement::Truncate { .. } => "TRUNCATE",
        Statement::Optimize { .. } => "OPTIMIZE TABLE",
        _ => "the statement",
    }
}

fn explain_field() -> Field {
    Field { name: "plan".into(), data_type: DataType::TEXT, nullable: false }
}

/// Runs a statement that reads or writes rows.
pub(crate) fn run(
    transaction: &mut Transaction,
    statement: &Statement,
    settings: &Settings<'_>,
) -> Result<StatementResult> {
    match statement {
        Statement::Query(plan) => query(plan, &Connection::context(transaction, settings)),
        Statement::Lock { table, input, output } => {
            let found = locate(input, &Connection::context(transaction, settings))?;
            let target = transaction.table_of(table)?;
            for (_, locators) in &found {
                transaction.lock(&target, locators)?;
            }
            // Whoever holds the rows' locks sees them newest: the snapshot has just been found to be that.
            query(output, &Connection::context(transaction, settings))
        }
        Statement::Insert { .. }
        | Statement::Upsert { .. }
        | Statement::Update { .. }
        | Statement::Delete { .. }
        | Statement::Change { .. } => {
            write::run(transaction, statement, settings, None).map(written)
        }
        Statement::CreateTableAs { schema, if_not_exists, source } => {
            write::create_table_as(transaction, schema, *if_not_exists, source, settings)
        }
        Statement::Returning { statement, exprs, fields } => {
            let mut rows = Vec::new();
            let rows_affected = write::run(transaction, statement, settings, Some(&mut rows))?;
            let batches =
                write::project(&rows, exprs, &Connection::context(transaction, settings))?;
            let columns = fields.clone();
            Ok(StatementResult {
                columns,
                batches,
                rows_affected,
                ..StatementResult::new(ResultKind::Query)
            })
        }
        Statement::Profile(inner) => profile::run(transaction, inner, settings),
        Statement::Explain(inner) => {
            let mut result = StatementResult::new(ResultKind::Query);
            let lines: Vec<Value> = explain(inner).into_iter().map(Value::Text).collect();
            result.columns = vec![explain_field()];
            result.batches = vec![Batch::new(
                vec![Arc::new(Vector::from_values(DataType::TEXT, &lines))],
                lines.len(),
            )];
            Ok(result)
        }
        Statement::Nothing => Ok(StatementResult::new(ResultKind::Control)),
        other => Err(Error::unsupported(format!("{} inside a transaction", name(other)))),
    }
}

fn query(plan: &Plan, context: &Context<'_>) -> Result<StatementResult> {
    let batches = collect(plan, context)?;
    Ok(StatementResult {
        columns: plan.fields(),
        batches,
        ..StatementResult::new(ResultKind::Query)
    })
}

pub(crate) fn written(rows_affected: u64) -> StatementResult {
    StatementResult { rows_affected, ..StatementResult::new(ResultKind::Write) }
}

/// All rows of a plan.
pub(crate) fn collect(plan: &Plan, context: &Context<'_>) -> Result<Vec<Batch>> {
    context.memory.share_among(plan, 1);
    let mut operator = build(plan, context)?;
    let mut batches = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    loop {
        match operator.next(context)? {
            Some(batch) => {
                let batch = batch.compact();
                bytes += batch.memory_bytes(batches.last());
                context.reserve(&mut held, "the result", bytes)?;
                batches.push(batch);
            }
            None => return Ok(batches),
        }
    }
}

/// All rows of a target table that a plan yields, and where they are.
pub(crate) fn locate(plan: &Plan, context: &Context<'_>) -> Result<Vec<(Batch, Vec<RowLocator>)>> {
    let mut operator = build_locating(plan, context)?;
    let mut found = Vec::new();
    let (mut bytes, mut held) = (0usize, Reservation::default());
    while let Some((batch, locators)) = operator.next(context)? {
        bytes += batch.memory_bytes(found.last().map(|(batch, _)| batch)) + locators.len() * 24;
        context.reserve(&mut held, "the statement's rows", bytes)?;
        found.push((batch, locators));
    }
    Ok(found)
}

/// The newest version of a table, if it is the one a statement was bound to; else `conflict`.
fn bound_table(store: &Store, bound: &TableSchema) -> Result<Arc<Table>> {
    let table = store.table_by_id(bound.id)?;
    if **table.schema() == *bound {
        return Ok(table);
    }
    Err(Error::conflict(format!("table {} was altered meanwhile", bound.name))
        .with_hint("retry the statement"))
}

/// Runs a statement that changes the catalog or does house-keeping, outside any transaction.
pub(crate) fn run_ddl(engine: &Engine, statement: &Statement) -> Result<StatementResult> {
    let store = &engine.store;
    match statement {
        Statement::CreateTable { schema, if_not_exists } => {
            match store.create_table(schema.clone()) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && *if_not_exists => {
                    store.settle_catalog()?
                }
                other => {
                    other?;
                    engine.catalog_changed();
                }
            }
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::CreateView { view, replace, if_not_exists } => {
            match store.create_view(view.clone(), *replace) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && *if_not_exists => {
                    store.settle_catalog()?
                }
                other => {
                    other?;
                    engine.catalog_changed();
                }
            }
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::DropView { names, if_exists } => {
            let missing = names.iter().find(|name| store.view(name).is_none());
            if let (Some(name), false) = (missing, *if_exists) {
                let error = Error::not_found(format!("no view `{name}`")).with_sqlstate("42P01");
                let is_table = store.table(name).is_some();
                return Err(if is_table {
                    error.with_hint("it is a table: DROP TABLE")
                } else {
                    error
                });
            }
            for name in names.iter().filter(|name| store.view(name).is_some()) {
                store.drop_view(name)?;
            }
            if missing.is_some() {
                store.settle_catalog()?;
            }
            engine.catalog_changed();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::DropTable { names, if_exists } => {
            // All names are looked up before the first table goes, so that a wrong one changes nothing.
            let mut tables = Vec::new();
            for name in names {
                match store.table(name) {
                    Some(table) => tables.push(table),
                    None if *if_exists => {}
                    None => {
                        return Err(
                            Error::not_found(format!("no table `{name}`")).with_sqlstate("42P01")
                        );
                    }
                }
            }
            store.drop_tables(&tables)?;
            if tables.len() < names.len() {
                store.settle_catalog()?;
            }
            engine.catalog_changed();
            store.maintain().ok();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::AlterTable { table, changed } => {
            store.alter_table(&bound_table(store, table)?, changed.clone())?;
            engine.catalog_changed();
            store.maintain().ok();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::CreateIndex { table, index } => {
            store.create_index(&bound_table(store, table)?, index.clone())?;
            engine.catalog_changed();
            store.maintain().ok();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::DropIndex { indexes } => {
            for (at, (table, name)) in indexes.iter().enumerate() {
                // Of several indexes of one table the first to go has changed it.
                let seen = indexes[..at].iter().any(|(other, _)| other.id == table.id);
                let target =
                    if seen { store.table_by_id(table.id)? } else { bound_table(store, table)? };
                store.drop_index(&target, name)?;
                engine.catalog_changed();
            }
            store.maintain().ok();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::Truncate { tables } => {
            let mut targets: Vec<Arc<Table>> = Vec::new();
            for table in tables {
                let target = store.table_by_id(table.id)?;
                if !targets.iter().any(|other| Arc::ptr_eq(other, &target)) {
                    targets.push(target);
                }
            }
            store.truncate(&targets)?;
            engine.catalog_changed();
            store.maintain().ok();
            Ok(StatementResult::new(ResultKind::Ddl))
        }
        Statement::Optimize { table, full } => {
            let target = store.table_by_id(table.id)?;
            match full {
                true => store.merge_all(&target)?,
                false => store.flush(&target)?,
            }
            Ok(StatementResult::new(ResultKind::Control))
        }
        other => Err(Error::unsupported(name(other))),
    }
}
