//! Running one bound statement inside a transaction.
//!
//! A statement that reads what it writes sees the rows as they were when it began: everything it
//! reads is collected before the first write.

use crate::database::Database;
use crate::profile;
use crate::result::{QueryResult, ResultKind};
use crate::session::Session;
use crate::upsert;
use nacre_column::{Batch, Vector};
use nacre_exec::{Context, Profile, Statistics, Step, Threads, build, build_locating, evaluate};
use nacre_sql::{Expr, Field, Plan, Statement, explain};
use nacre_table::{OnDuplicate, RowLocator, Store, Table, Transaction};
use nacre_types::{DataType, Error, ErrorKind, Result, TableSchema, Value};
use std::sync::Arc;

/// Rows of one statement that are moved out of segments in one commit, about.
const MOVED_TOGETHER: usize = 1 << 16;
/// An `INSERT` of its own transaction that has so many rows writes segments, not the rowstore.
const DIRECT_ROWS: usize = 1 << 16;

/// What a statement is run with, beside its transaction.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub parameters: &'a [Value],
    pub statistics: &'a Statistics,
    pub memory_limit: usize,
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
        Statement::Profile(_) => profile::fields(),
        _ => Vec::new(),
    }
}

/// Whether a statement may write rows, or move them to lock them.
pub(crate) fn writes(statement: &Statement) -> bool {
    use Statement::{Delete, Insert, Lock, Profile, Update, Upsert};
    if let Profile(inner) = statement {
        return writes(inner);
    }
    matches!(statement, Insert { .. } | Upsert { .. } | Update { .. } | Delete { .. } | Lock { .. })
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
) -> Result<QueryResult> {
    match statement {
        Statement::Query(plan) => query(plan, &Session::context(transaction, settings)),
        Statement::Lock { table, input, output } => {
            let found = locate(input, &Session::context(transaction, settings))?;
            let target = transaction.table_of(table)?;
            for (_, locators) in &found {
                transaction.lock(&target, locators)?;
            }
            // Whoever holds the rows' locks sees them newest: the snapshot has just been found to be that.
            query(output, &Session::context(transaction, settings))
        }
        Statement::Insert { table, source } => insert(transaction, table, source, settings),
        Statement::Upsert { table, source, on_duplicate } => {
            let batches = collect(source, &Session::context(transaction, settings))?;
            let batches: Vec<Batch> = batches.iter().map(|batch| in_table_types(batch, table)).collect();
            upsert::run(transaction, table, &batches, on_duplicate, settings).map(written)
        }
        Statement::Update { table, input, assignments } => update(transaction, table, input, assignments, settings),
        Statement::Delete { table, input } => {
            let found = locate(input, &Session::context(transaction, settings))?;
            let target = transaction.table_of(table)?;
            lock_together(transaction, &target, &found)?;
            let mut affected = 0;
            for (_, locators) in &found {
                affected += transaction.delete(&target, locators)?;
            }
            Ok(written(affected))
        }
        Statement::Profile(inner) => profile::run(transaction, inner, settings),
        Statement::Explain(inner) => {
            let mut result = QueryResult::new(ResultKind::Query);
            let lines: Vec<Value> = explain(inner).into_iter().map(Value::Text).collect();
            result.columns = vec![explain_field()];
            result.batches = vec![Batch::new(vec![Arc::new(Vector::from_values(DataType::TEXT, &lines))], lines.len())];
            Ok(result)
        }
        Statement::Nothing => Ok(QueryResult::new(ResultKind::Control)),
        other => Err(Error::unsupported(format!("{} inside a transaction", name(other)))),
    }
}

fn query(plan: &Plan, context: &Context<'_>) -> Result<QueryResult> {
    let batches = collect(plan, context)?;
    Ok(QueryResult { columns: plan.fields(), batches, ..QueryResult::new(ResultKind::Query) })
}

pub(crate) fn written(rows_affected: u64) -> QueryResult {
    QueryResult { rows_affected, ..QueryResult::new(ResultKind::Write) }
}

/// Few rows go into the rowstore, under locks; many go straight into segments, which is a bulk load with its rules.
fn insert(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    source: &Plan,
    settings: &Settings<'_>,
) -> Result<QueryResult> {
    let target = transaction.table_of(table)?;
    let context = Session::context(transaction, settings);
    let mut operator = build(source, &context)?;
    let (mut batches, mut rows, mut bytes) = (Vec::new(), 0, 0usize);
    let mut load = None;
    loop {
        let batch = match operator.next(&context)? {
            Step::Batch(batch) => in_table_types(&batch.compact(), table),
            Step::Done => break,
            _ => return Err(Error::unsupported("waiting for remote bytes")),
        };
        rows += batch.rows;
        bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
        batches.push(batch);
        if settings.direct && rows >= DIRECT_ROWS {
            let begin = || transaction.store().bulk_load(&target, OnDuplicate::Error);
            let load = load.get_or_insert_with(begin);
            batches.drain(..).try_for_each(|batch| load.append(&batch))?;
            bytes = 0;
        }
        check_memory(bytes, &context)?;
    }
    drop(operator);
    if let Some(load) = load {
        return load.finish().map(written);
    }
    let mut affected = 0;
    for batch in &batches {
        affected += transaction.insert(&target, batch)?;
    }
    Ok(written(affected))
}

/// All rows of a plan.
fn collect(plan: &Plan, context: &Context<'_>) -> Result<Vec<Batch>> {
    let mut operator = build(plan, context)?;
    let mut batches = Vec::new();
    let mut bytes = 0usize;
    loop {
        match operator.next(context)? {
            Step::Batch(batch) => {
                let batch = batch.compact();
                bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>();
                check_memory(bytes, context)?;
                batches.push(batch);
            }
            Step::Done => return Ok(batches),
            _ => return Err(Error::unsupported("waiting for remote bytes")),
        }
    }
}

fn check_memory(bytes: usize, context: &Context<'_>) -> Result<()> {
    if bytes > context.memory_limit {
        return Err(Error::limit(format!(
            "the result needs more than the memory limit of {} bytes",
            context.memory_limit
        ))
        .with_sqlstate("53200"));
    }
    Ok(())
}

/// All rows of a target table that a plan yields, and where they are.
fn locate(plan: &Plan, context: &Context<'_>) -> Result<Vec<(Batch, Vec<RowLocator>)>> {
    let mut operator = build_locating(plan, context)?;
    let mut found = Vec::new();
    let mut bytes = 0usize;
    while let Some((batch, locators)) = operator.next(context)? {
        bytes += batch.columns.iter().map(|c| c.memory_bytes()).sum::<usize>() + locators.len() * 24;
        check_memory(bytes, context)?;
        found.push((batch, locators));
    }
    Ok(found)
}

/// Vectors under the table's own column types: a text column's limit, say, is not part of an expression's type.
fn in_table_types(batch: &Batch, table: &TableSchema) -> Batch {
    let columns = batch.columns.iter().zip(&table.columns);
    let columns = columns
        .map(|(vector, column)| {
            let same = vector.data_type() == column.data_type;
            let fits = vector.data_type().physical() == column.data_type.physical();
            if same || !fits { vector.clone() } else { Arc::new((**vector).clone().with_type(column.data_type)) }
        })
        .collect();
    Batch { columns, rows: batch.rows, selection: batch.selection.clone() }
}

/// Locks the rows of several batches at once, so that those in segments are moved in few commits.
fn lock_together(
    transaction: &mut Transaction,
    table: &Arc<Table>,
    batches: &[(Batch, Vec<RowLocator>)],
) -> Result<()> {
    if batches.len() < 2 {
        return Ok(());
    }
    let mut together: Vec<RowLocator> = Vec::new();
    for (at, (_, locators)) in batches.iter().enumerate() {
        together.extend_from_slice(locators);
        if together.len() >= MOVED_TOGETHER || at + 1 == batches.len() {
            transaction.lock(table, &together)?;
            together.clear();
        }
    }
    Ok(())
}

fn update(
    transaction: &mut Transaction,
    table: &Arc<TableSchema>,
    input: &Plan,
    assignments: &[(usize, Expr)],
    settings: &Settings<'_>,
) -> Result<QueryResult> {
    let context = Session::context(transaction, settings);
    let mut changes = Vec::new();
    for (batch, locators) in locate(input, &context)? {
        let mut columns = batch.columns.clone();
        for (position, expr) in assignments {
            columns[*position] = Arc::new(evaluate(expr, &batch, &context)?);
        }
        let rows = batch.rows;
        changes.push((in_table_types(&Batch::new(columns, rows), table), locators));
    }
    let target = transaction.table_of(table)?;
    lock_together(transaction, &target, &changes)?;
    let rekeys = table
        .primary_key
        .as_ref()
        .is_some_and(|key| assignments.iter().any(|(position, _)| key.columns.contains(position)));
    let mut affected = 0;
    if rekeys {
        // Every old key goes before the first new one comes, so that `set id = id + 1` works.
        for (_, locators) in &changes {
            transaction.delete(&target, locators)?;
        }
        for (rows, _) in &changes {
            affected += transaction.insert(&target, rows)?;
        }
    } else {
        for (rows, locators) in &changes {
            affected += transaction.update(&target, locators, rows)?;
        }
    }
    Ok(written(affected))
}

/// The newest version of a table, if it is the one a statement was bound to; else `conflict`.
fn bound_table(store: &Store, bound: &TableSchema) -> Result<Arc<Table>> {
    let table = store.table_by_id(bound.id)?;
    if **table.schema() == *bound {
        return Ok(table);
    }
    Err(Error::conflict(format!("table {} was altered meanwhile", bound.name)).with_hint("retry the statement"))
}

/// Runs a statement that changes the catalog or does house-keeping, outside any transaction.
pub(crate) fn run_ddl(db: &Database, statement: &Statement) -> Result<QueryResult> {
    let store = &db.0.store;
    match statement {
        Statement::CreateTable { schema, if_not_exists } => {
            match store.create_table(schema.clone()) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && *if_not_exists => {}
                other => {
                    other?;
                    db.catalog_changed();
                }
            }
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::CreateView { view, replace, if_not_exists } => {
            match store.create_view(view.clone(), *replace) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists && *if_not_exists => {}
                other => {
                    other?;
                    db.catalog_changed();
                }
            }
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::DropView { names, if_exists } => {
            let missing = names.iter().find(|name| store.view(name).is_none());
            if let (Some(name), false) = (missing, *if_exists) {
                let error = Error::not_found(format!("view {name} does not exist")).with_sqlstate("42P01");
                let is_table = store.table(name).is_some();
                return Err(if is_table { error.with_hint("it is a table: DROP TABLE") } else { error });
            }
            for name in names.iter().filter(|name| store.view(name).is_some()) {
                store.drop_view(name)?;
            }
            db.catalog_changed();
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::DropTable { names, if_exists } => {
            // All names are looked up before the first table goes, so that a wrong one changes nothing.
            let mut tables = Vec::new();
            for name in names {
                match store.table(name) {
                    Some(table) => tables.push(table),
                    None if *if_exists => {}
                    None => return Err(Error::not_found(format!("table {name}")).with_sqlstate("42P01")),
                }
            }
            for table in &tables {
                store.drop_table(table)?;
            }
            db.catalog_changed();
            store.maintain().ok();
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::AlterTable { table, changed } => {
            store.alter_table(&bound_table(store, table)?, changed.clone())?;
            db.catalog_changed();
            store.maintain().ok();
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::CreateIndex { table, index } => {
            store.create_index(&bound_table(store, table)?, index.clone())?;
            db.catalog_changed();
            store.maintain().ok();
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::DropIndex { indexes } => {
            for (at, (table, name)) in indexes.iter().enumerate() {
                // Of several indexes of one table the first to go has changed it.
                let seen = indexes[..at].iter().any(|(other, _)| other.id == table.id);
                let target = if seen { store.table_by_id(table.id)? } else { bound_table(store, table)? };
                store.drop_index(&target, name)?;
                db.catalog_changed();
            }
            store.maintain().ok();
            Ok(QueryResult::new(ResultKind::Ddl))
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
            db.catalog_changed();
            store.maintain().ok();
            Ok(QueryResult::new(ResultKind::Ddl))
        }
        Statement::Optimize { table, full } => {
            let target = store.table_by_id(table.id)?;
            match full {
                true => store.merge_all(&target)?,
                false => store.flush(&target)?,
            }
            Ok(QueryResult::new(ResultKind::Control))
        }
        other => Err(Error::unsupported(name(other))),
    }
}
